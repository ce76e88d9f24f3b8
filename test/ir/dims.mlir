// Symbolic sizes: as the encoding of types, in attributes, printed as they are read; inferred by every op.
// RUN: tressel-opt %s | tressel-opt | FileCheck %s
// RUN: tressel-opt %s --mlir-print-op-generic | tressel-opt | FileCheck %s

// CHECK-LABEL: @main(%arg0: tensor<?x784xf32, #tressel.dims<"n[1..512]", 784>>
func.func @main(%x: tensor<?x784xf32, #tressel.dims<"n[1..512]", 784>>, %y: tensor<1x784xf32>) {
  // CHECK: tressel.add {{.*}} -> tensor<?x784xf32, #tressel.dims<"n[1..512]", 784>>
  %0 = tressel.add %x, %y : (tensor<?x784xf32, #tressel.dims<"n[1..512]", 784>>, tensor<1x784xf32>) -> tensor<?x784xf32, #tressel.dims<"n[1..512]", 784>>
  // CHECK: tressel.reshape {{.*}} {shape = #tressel.dims<"14*n[1..512]", 56>}
  // CHECK-SAME: -> tensor<?x56xf32, #tressel.dims<"14*n[1..512]", 56>>
  %1 = tressel.reshape %0 {shape = #tressel.dims<"n[1..512]*14", 56>} : (tensor<?x784xf32, #tressel.dims<"n[1..512]", 784>>) -> tensor<?x56xf32, #tressel.dims<"n[1..512] * 14", 56>>
  // CHECK: tressel.concat {{.*}} -> tensor<?x784xf32, #tressel.dims<"n[1..512] + 1", 784>>
  %2 = tressel.concat %x, %y {axis = 0 : i64} : (tensor<?x784xf32, #tressel.dims<"n[1..512]", 784>>, tensor<1x784xf32>) -> tensor<?x784xf32, #tressel.dims<"1 + n[1..512]", 784>>
  // CHECK: tressel.slice {{.*}} -> tensor<?x784xf32, #tressel.dims<"(n[1..512] + 1)//2", 784>>
  %3 = tressel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 9223372036854775807, 784>, strides = array<i64: 2, 1>} : (tensor<?x784xf32, #tressel.dims<"n[1..512]", 784>>) -> tensor<?x784xf32, #tressel.dims<"(n[1..512] + 1)//2", 784>>
  // CHECK: tressel.one_hot {{.*}} {depth = #tressel.size<"n[1..512]">}
  %4 = tressel.argmax %x {axis = 0 : i64} : (tensor<?x784xf32, #tressel.dims<"n[1..512]", 784>>) -> tensor<784xi64>
  %5 = tressel.one_hot %4 {depth = #tressel.size<"n[1..512]">} : (tensor<784xi64>) -> tensor<784x?xf32, #tressel.dims<784, "n[1..512]">>
  return
}
