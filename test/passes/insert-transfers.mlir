// RUN: tressel-opt %s --tressel-insert-transfers --tressel-machine=sim:2gpu-pcie3 -split-input-file | FileCheck %s
// RUN: tressel-opt %s --tressel-insert-transfers --tressel-machine=sim:cluster-10gbe -split-input-file -o /dev/null

// One copy for all who read a value on a device; views of the copy; results come back to the host.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[W:.*]] = tressel.to %arg1 {device = "gpu0"}
// CHECK-NEXT: %[[X:.*]] = tressel.to %arg0 {device = "gpu0"}
// CHECK-NEXT: %[[V:.*]] = tressel.reshape %[[X]] {shape = array<i64: 4>}
// CHECK-NEXT: %[[A:.*]] = tressel.launch @add_0(%[[V]], %[[W]]) {tressel.device = "gpu0"}
// CHECK-NEXT: %[[B:.*]] = tressel.launch @add_0(%[[A]], %[[W]]) {tressel.device = "gpu0"}
// CHECK-NEXT: %[[H:.*]] = tressel.to %[[B]] {device = "cpu"}
// CHECK-NEXT: %[[G:.*]] = tressel.to %[[B]] {device = "gpu1"}
// CHECK-NEXT: %[[C:.*]] = tressel.launch @add_0(%[[G]], %[[G]]) {tressel.device = "gpu1"}
// CHECK-NEXT: %[[R:.*]] = tressel.to %[[C]] {device = "cpu"}
// CHECK-NEXT: %[[D:.*]] = tressel.launch @add_0(%[[H]], %[[R]]) {tressel.device = "cpu"}
// CHECK-NEXT: return %[[D]], %[[R]]
tressel.kernel @add_0(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}
func.func @main(%x: tensor<2x2xf32> {tressel.name = "x"}, %w: tensor<4xf32> {tressel.state = "w"})
    -> (tensor<4xf32> {tressel.name = "y"}, tensor<4xf32> {tressel.name = "z"}) {
  %v = tressel.reshape %x {shape = array<i64: 4>} : (tensor<2x2xf32>) -> tensor<4xf32>
  %0 = tressel.launch @add_0(%v, %w) {tressel.device = "gpu0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = tressel.launch @add_0(%0, %w) {tressel.device = "gpu0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = tressel.launch @add_0(%1, %1) {tressel.device = "gpu1"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = tressel.launch @add_0(%1, %2) {tressel.device = "cpu"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A constant in a body on an accelerator comes in as an invariant, from a copy.
// CHECK-LABEL: func.func @main
// CHECK: %[[C:.*]] = tressel.constant dense<[1.000000e+00, 2.000000e+00]>
// CHECK: %[[M:.*]] = tressel.to %[[C]] {device = "gpu0"}
// CHECK: tressel.scan 3 carries(%{{.*}} : tensor<2xf32>) with(%[[M]] : tensor<2xf32>)
// CHECK: ^bb0(%{{.*}}: tensor<i64>, %[[A:.*]]: tensor<2xf32>, %[[B:.*]]: tensor<2xf32>):
// CHECK-NEXT: tressel.launch @add_0(%[[A]], %[[B]])
tressel.kernel @add_0(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  tressel.yield %0 : tensor<2xf32>
}
func.func @main(%x: tensor<2xf32> {tressel.name = "x"}) -> (tensor<2xf32> {tressel.name = "y"}) {
  %r = tressel.scan 3 carries(%x : tensor<2xf32>) -> tensor<2xf32> attributes {tressel.device = "gpu0"} {
  ^bb0(%i: tensor<i64>, %a: tensor<2xf32>):
    %c = tressel.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %0 = tressel.launch @add_0(%a, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    tressel.yield %0 : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
