// Elementwise work moves 16 bytes per thread and access, in all types, with the rest of the elements apart.
// RUN: tressel compile %s --device cuda --gpu sm_90 --emit ptx | FileCheck %s
// RUN: tressel compile %s --device cuda --gpu sm_80 --emit ptx | FileCheck %s --check-prefix=SM80
// RUN: tressel compile %s --device cuda --gpu sm_120 --emit ptx | FileCheck %s --check-prefix=SM120

// CHECK: .version 8.0
// CHECK: .target sm_90
// SM80: .version 7.0
// SM80: .target sm_80
// SM120: .version 8.7
// SM120: .target sm_120

// CHECK: .visible .entry
// CHECK: .maxntid
// CHECK: ld.global.v4.b32
// CHECK: fma.rn.ftz.f32
// CHECK: st.global.v4.b32
// CHECK-NOT: .local
// CHECK-NOT: call
func.func @main(%x: tensor<16777216xf32>, %y: tensor<16777216xf32>) -> tensor<16777216xf32> {
  %0 = tressel.exp %x : (tensor<16777216xf32>) -> tensor<16777216xf32>
  %1 = tressel.add %0, %y : (tensor<16777216xf32>, tensor<16777216xf32>) -> tensor<16777216xf32>
  %2 = tressel.tanh %1 : (tensor<16777216xf32>) -> tensor<16777216xf32>
  return %2 : tensor<16777216xf32>
}
