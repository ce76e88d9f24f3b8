// RUN: tressel-opt %s --tressel-build-schedule -split-input-file | FileCheck %s

// Slices of 12 bytes lie unaligned, and so does what is stacked: a kernel that needs alignment gets copies.
// CHECK: sched.loop
// CHECK-NEXT: sched.copy %{{.*}} -> %[[X:t[0-9]+]] on
// CHECK-NEXT: sched.launch @add_0(%[[X]], %w) -> (%[[Y:t[0-9]+]]) on
// CHECK-NEXT: sched.copy %[[Y]] -> %
tressel.kernel @add_0(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> attributes {provider = "generated", tressel.aligned} {
  %0 = tressel.add %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  tressel.yield %0 : tensor<3xf32>
}
func.func @main(%x: tensor<4x3xf32> {tressel.name = "x"}, %w: tensor<3xf32> {tressel.name = "w"}) -> (tensor<4x3xf32> {tressel.name = "y"}) {
  %0 = tressel.scan 4 slices(%x : tensor<4x3xf32>) with(%w : tensor<3xf32>) -> tensor<4x3xf32> {
  ^bb0(%i: tensor<i64>, %s: tensor<3xf32>, %v: tensor<3xf32>):
    %1 = tressel.launch @add_0(%s, %v) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    tressel.yield %1 : tensor<3xf32>
  }
  return %0 : tensor<4x3xf32>
}

// -----

// Those of 64 bytes do not.
// CHECK: sched.loop
// CHECK-NEXT: sched.launch @add_0
tressel.kernel @add_0(%a: tensor<16xf32>, %b: tensor<16xf32>) -> tensor<16xf32> attributes {provider = "generated", tressel.aligned} {
  %0 = tressel.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  tressel.yield %0 : tensor<16xf32>
}
func.func @main(%x: tensor<4x16xf32> {tressel.name = "x"}, %w: tensor<16xf32> {tressel.name = "w"}) -> (tensor<4x16xf32> {tressel.name = "y"}) {
  %0 = tressel.scan 4 slices(%x : tensor<4x16xf32>) with(%w : tensor<16xf32>) -> tensor<4x16xf32> {
  ^bb0(%i: tensor<i64>, %s: tensor<16xf32>, %v: tensor<16xf32>):
    %1 = tressel.launch @add_0(%s, %v) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    tressel.yield %1 : tensor<16xf32>
  }
  return %0 : tensor<4x16xf32>
}
