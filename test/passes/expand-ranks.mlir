// RUN: tressel-opt %s --tressel-expand-ranks --tressel-machine=sim:4gpu-pcie3 -split-input-file | FileCheck %s

// Rank r is accelerator r; coordinates count row-major. One kernel serves all.
// CHECK: tressel.kernel @exp_0
// CHECK-NOT: tressel.kernel
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<4xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<4xf32>
// CHECK-NEXT: %[[R0:.*]] = tressel.launch @exp_0(%[[A]]) {tressel.device = "gpu0"}
// CHECK-NEXT: %[[R1:.*]] = tressel.launch @exp_0(%[[B]]) {tressel.device = "gpu1"}
// CHECK-NEXT: %[[R2:.*]] = tressel.launch @exp_0(%[[A]]) {tressel.device = "gpu2"}
// CHECK-NEXT: %[[R3:.*]] = tressel.launch @exp_0(%[[B]]) {tressel.device = "gpu3"}
// CHECK-NEXT: tressel.launch @exp_0(%[[R2]]) {tressel.device = "gpu0"}
// CHECK-NEXT: tressel.launch @exp_0(%[[R3]]) {tressel.device = "gpu1"}
// CHECK-NOT: tressel.collect
// CHECK: return %[[R0]], %[[R1]]
tressel.kernel @exp_0(%a: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated"} {
  %0 = tressel.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32> {tressel.name = "a"}, %b: tensor<4xf32> {tressel.name = "b"})
    -> (tensor<4xf32> {tressel.name = "y"}, tensor<4xf32> {tressel.name = "z"}, tensor<4xf32> {tressel.name = "u"}, tensor<4xf32> {tressel.name = "v"})
    attributes {tressel.mesh = "data=2, model=2"} {
  %0 = tressel.deal %a, %b over ["model"] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = tressel.launch @exp_0(%0) {tressel.device = "ranks"} : (tensor<4xf32>) -> tensor<4xf32>
  %2:2 = tressel.collect %1 over ["model"] : tensor<4xf32> -> tensor<4xf32>, tensor<4xf32>
  %3:2 = tressel.collect %1 over ["data"] on_ranks : tensor<4xf32> -> tensor<4xf32>, tensor<4xf32>
  %4 = tressel.launch @exp_0(%3#1) {tressel.device = "ranks"} : (tensor<4xf32>) -> tensor<4xf32>
  %5:2 = tressel.collect %4 over ["model"] : tensor<4xf32> -> tensor<4xf32>, tensor<4xf32>
  return %2#0, %2#1, %5#0, %5#1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// What lies on the ranks has an argument for each, also where nothing that comes out lies there.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<2xf32> {tressel.home = "gpu0", tressel.name = "a@0", tressel.sharding = "data"},
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<2xf32> {tressel.home = "gpu1", tressel.name = "a@1", tressel.sharding = "data"}) ->
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @main(%a: tensor<2xf32> {tressel.name = "a", tressel.home = "ranks", tressel.sharding = "data"})
    -> (tensor<2xf32> {tressel.name = "y"}, tensor<2xf32> {tressel.name = "z"}) attributes {tressel.mesh = "data=2", tressel.cut} {
  %0:2 = tressel.collect %a over ["data"] : tensor<2xf32> -> tensor<2xf32>, tensor<2xf32>
  return %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
}
