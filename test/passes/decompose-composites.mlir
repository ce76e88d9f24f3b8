// RUN: tressel-opt %s --tressel-decompose-composites -mlir-print-debuginfo | FileCheck %s

// Every op of the decomposition has the line of the composite; other ops stay.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tressel.softmax
// CHECK: tressel.relu
// CHECK: tressel.max {{.*}} loc(#[[LINE:.*]])
// CHECK: tressel.exp {{.*}} loc(#[[LINE]])
// CHECK: %[[R:.*]] = tressel.div {{.*}} loc(#[[LINE]])
// CHECK: return %[[R]]
// CHECK: #[[LINE]] = loc("model.cpp":7:0)
func.func @main(%x: tensor<8x64xf32> {tressel.name = "x"}) -> (tensor<8x64xf32> {tressel.name = "y"}) {
  %0 = tressel.relu %x : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = tressel.softmax %0 : (tensor<8x64xf32>) -> tensor<8x64xf32> loc("model.cpp":7:0)
  return %1 : tensor<8x64xf32>
}
