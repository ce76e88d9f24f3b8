// RUN: tressel-opt %s --tressel-insert-transfers --tressel-machine=sim:2gpu-pcie3 | FileCheck %s
// RUN: tressel-opt %s --tressel-insert-transfers --tressel-build-schedule --tressel-machine=sim:2gpu-pcie3 | FileCheck %s --check-prefix=SCHED
// Values that callers have on accelerators are read there; results go where they are at home, or stay where they are computed.

tressel.kernel @relu_0(%a: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated", range = 4 : i64} {
  %0 = tressel.relu %a : (tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<4xf32> {tressel.home = "gpu0", tressel.name = "x"}
// CHECK-SAME: -> (tensor<4xf32> {tressel.home = "gpu0", tressel.name = "here"}, tensor<4xf32> {tressel.name = "back"},
// CHECK-SAME: tensor<4xf32> {tressel.home = "gpu1", tressel.state = "m"}, tensor<4xf32> {tressel.name = "host"})
// SCHED-DAG: %x = sched.input "x" on gpu 0
// SCHED-DAG: %here = sched.output "here" on gpu 0
// SCHED-DAG: %back = sched.output "back" : tensor
// SCHED-DAG: %m = sched.state mutable "m" on gpu 1
func.func @main(%x: tensor<4xf32> {tressel.name = "x", tressel.home = "gpu0"}, %m: tensor<4xf32> {tressel.state = "m", tressel.home = "gpu1"},
                %h: tensor<4xf32> {tressel.name = "h"})
    -> (tensor<4xf32> {tressel.name = "here", tressel.home = "computed"}, tensor<4xf32> {tressel.name = "back"},
        tensor<4xf32> {tressel.state = "m", tressel.home = "gpu1"}, tensor<4xf32> {tressel.name = "host", tressel.home = "computed"}) {
  // CHECK-NEXT: %[[A:.*]] = tressel.launch @relu_0(%[[X]])
  %a = tressel.launch @relu_0(%x) {tressel.device = "gpu0"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %[[BACK:.*]] = tressel.to %[[A]] {device = "cpu"}
  // CHECK-NEXT: %[[B:.*]] = tressel.launch @relu_0(%[[M:.*]])
  %b = tressel.launch @relu_0(%m) {tressel.device = "gpu1"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %[[C:.*]] = tressel.launch @relu_0(%{{.*}})
  %c = tressel.launch @relu_0(%h) {tressel.device = "cpu"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: return %[[A]], %[[BACK]], %[[B]], %[[C]]
  return %a, %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
