// RUN: tressel-opt %s --tressel-build-schedule -split-input-file | FileCheck %s

// Of several nests one may run late: a next value lies on the state only where no other nest reads it.
// CHECK-LABEL: sched.program
// CHECK: %[[A:.*]] = sched.state mutable "a"
// CHECK: %[[B:.*]] = sched.state mutable "b"
// CHECK: sched.launch @both(%[[A]], %[[B]]) -> (%[[T:.*]], %[[B]])
// CHECK: sched.copy %[[T]] -> %[[A]]
tressel.kernel @both(%a: tensor<64xf32>, %b: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) attributes {provider = "generated"} {
  %0 = tressel.exp %a : (tensor<64xf32>) -> tensor<64xf32>
  %1 = tressel.add %a, %b : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  tressel.yield %0, %1 : tensor<64xf32>, tensor<64xf32>
}
func.func @main(%a: tensor<64xf32> {tressel.state = "a"}, %b: tensor<64xf32> {tressel.state = "b"})
    -> (tensor<64xf32> {tressel.state = "a"}, tensor<64xf32> {tressel.state = "b"}) {
  %0:2 = tressel.launch @both(%a, %b) : (tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  return %0#0, %0#1 : tensor<64xf32>, tensor<64xf32>
}
