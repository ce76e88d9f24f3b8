// RUN: tressel-opt %s --tressel-decompose-composites | FileCheck %s

// What only converts its operands stays once there is nothing to convert, also where nobody has a kernel for it.
// CHECK-LABEL: func.func @main
// CHECK: %[[U:.*]] = tressel.cast %{{.*}} : (tensor<2xf16>) -> tensor<2xf32>
// CHECK: %[[R:.*]] = tressel.dynamic_update_slice %{{.*}}, %[[U]], %{{.*}} : (tensor<8xf32>, tensor<2xf32>, tensor<1xi64>) -> tensor<8xf32>
// CHECK-NOT: dynamic_update_slice
// CHECK: return %[[R]]
func.func @main(%x: tensor<8xf32> {tressel.name = "x"}, %u: tensor<2xf16> {tressel.name = "u"}, %s: tensor<1xi64> {tressel.name = "s"}) -> (tensor<8xf32> {tressel.name = "y"}) {
  %0 = tressel.dynamic_update_slice %x, %u, %s : (tensor<8xf32>, tensor<2xf16>, tensor<1xi64>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
