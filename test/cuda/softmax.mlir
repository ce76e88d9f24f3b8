// A softmax is one kernel in one pass: rows stay in registers between its reductions.
// RUN: tressel compile %s --device cuda --gpu sm_90 --emit ptx --disable-pass split-producers | FileCheck %s

// CHECK: .visible .entry
// CHECK-COUNT-2: ld.global.v4
// CHECK-NOT: ld.global
// CHECK: shfl.sync
// CHECK-NOT: ld.global
// CHECK: st.global.v4
// CHECK-NOT: .visible .entry
// CHECK-NOT: .local
func.func @main(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> {
  %0 = tressel.softmax %x {axis = -1 : i64} : (tensor<4096x1024xf32>) -> tensor<4096x1024xf32>
  return %0 : tensor<4096x1024xf32>
}
