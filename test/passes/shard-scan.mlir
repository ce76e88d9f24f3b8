// RUN: tressel-opt %s --tressel-shard --tressel-machine=sim:2gpu-pcie3 -split-input-file | FileCheck %s

// Recurrence over a batch is cut: what is carried, slices and stacked results are those of half of it. Weights are whole, and a
// constant of the body becomes one for a part.
// CHECK-LABEL: func.func @main
// CHECK: %{{.*}}:2 = tressel.scan 5 carries(%[[H:[a-z0-9]+]] : tensor<4x8xf32>) slices(%{{[0-9]+}} : tensor<5x4x8xf32>) with(%{{[0-9]+}} : tensor<8x8xf32>) -> tensor<4x8xf32>, tensor<5x4x8xf32>
// CHECK-SAME: tressel.device = "ranks"
// CHECK: tressel.constant dense<2.500000e-01> : tensor<4x8xf32>
// CHECK: tressel.matmul %{{.*}} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK-NOT: all_reduce
func.func @main(%x: tensor<5x8x8xf32> {tressel.name = "x", tressel.sharding = "-, data, -"}, %w: tensor<8x8xf32> {tressel.state = "w"})
    -> (tensor<8x8xf32> {tressel.name = "last"}, tensor<5x8x8xf32> {tressel.name = "all"}) attributes {tressel.mesh = "data=2"} {
  %h = tressel.constant dense<0.000000e+00> : tensor<8x8xf32>
  %0:2 = tressel.scan 5 carries(%h : tensor<8x8xf32>) slices(%x : tensor<5x8x8xf32>) with(%w : tensor<8x8xf32>) -> tensor<8x8xf32>, tensor<5x8x8xf32> {
  ^bb0(%i: tensor<i64>, %before: tensor<8x8xf32>, %step: tensor<8x8xf32>, %weights: tensor<8x8xf32>):
    %quarter = tressel.constant dense<2.500000e-01> : tensor<8x8xf32>
    %1 = tressel.matmul %before, %weights : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = tressel.add %1, %step : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = tressel.mul %2, %quarter : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %4 = tressel.tanh %3 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    tressel.yield %4, %4 : tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %0#0, %0#1 : tensor<8x8xf32>, tensor<5x8x8xf32>
}

// -----

// The gradient of a weight, which the steps add up: each rank carries its terms, and they are combined once, behind the
// last step. The stacked product with a number has terms as well.
// CHECK-LABEL: func.func @main
// CHECK: %[[R:[0-9]+]]:2 = tressel.scan 5 carries(%{{.*}} : tensor<4x6xf32>) slices(%{{.*}} : tensor<5x4x4xf32>, tensor<5x4x6xf32>)
// CHECK: tressel.matmul %{{.*}} : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK-NOT: all_reduce
// CHECK: }
// CHECK-DAG: tressel.collect %[[R]]#0 over ["data"] : tensor<4x6xf32>
// CHECK-DAG: tressel.collect %[[R]]#1 over ["data"] : tensor<5x4x6xf32>
func.func @main(%x: tensor<5x8x4xf32> {tressel.name = "x", tressel.sharding = "-, data, -"}, %g: tensor<5x8x6xf32> {tressel.name = "g", tressel.sharding = "-, data, -"})
    -> (tensor<4x6xf32> {tressel.name = "sum"}, tensor<5x4x6xf32> {tressel.name = "all"}) attributes {tressel.mesh = "data=2"} {
  %zero = tressel.constant dense<0.000000e+00> : tensor<4x6xf32>
  %0:2 = tressel.scan 5 carries(%zero : tensor<4x6xf32>) slices(%x, %g : tensor<5x8x4xf32>, tensor<5x8x6xf32>) -> tensor<4x6xf32>, tensor<5x4x6xf32> {
  ^bb0(%i: tensor<i64>, %before: tensor<4x6xf32>, %a: tensor<8x4xf32>, %b: tensor<8x6xf32>):
    %half = tressel.constant dense<5.000000e-01> : tensor<f32>
    %1 = tressel.transpose %a : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %2 = tressel.matmul %1, %b : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %3 = tressel.add %before, %2 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %4 = tressel.mul %3, %half : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
    tressel.yield %3, %4 : tensor<4x6xf32>, tensor<4x6xf32>
  }
  return %0#0, %0#1 : tensor<4x6xf32>, tensor<5x4x6xf32>
}

// -----

// What a step makes of the sum is no longer linear in it: ranks would have to combine it in each step, so all is
// computed on whole values.
// CHECK-LABEL: func.func @main
// CHECK: tressel.scan 5 carries(%{{.*}} : tensor<4x6xf32>) slices(%{{.*}} : tensor<5x8x4xf32>, tensor<5x8x6xf32>)
// CHECK-NOT: all_reduce
func.func @main(%x: tensor<5x8x4xf32> {tressel.name = "x", tressel.sharding = "-, data, -"}, %g: tensor<5x8x6xf32> {tressel.name = "g", tressel.sharding = "-, data, -"})
    -> (tensor<4x6xf32> {tressel.name = "sum"}) attributes {tressel.mesh = "data=2"} {
  %zero = tressel.constant dense<0.000000e+00> : tensor<4x6xf32>
  %0 = tressel.scan 5 carries(%zero : tensor<4x6xf32>) slices(%x, %g : tensor<5x8x4xf32>, tensor<5x8x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%i: tensor<i64>, %before: tensor<4x6xf32>, %a: tensor<8x4xf32>, %b: tensor<8x6xf32>):
    %1 = tressel.transpose %a : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %2 = tressel.matmul %1, %b : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %3 = tressel.tanh %2 : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %4 = tressel.add %before, %3 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    tressel.yield %4 : tensor<4x6xf32>
  }
  return %0 : tensor<4x6xf32>
}

// -----

// A carried sum that begins with something else than nothing would be counted by each rank.
// CHECK-LABEL: func.func @main
// CHECK: tressel.scan 5 carries(%{{.*}} : tensor<4xf32>) slices(%{{.*}} : tensor<5x8x4xf32>)
// CHECK-NOT: all_reduce
func.func @main(%x: tensor<5x8x4xf32> {tressel.name = "x", tressel.sharding = "-, data, -"}) -> (tensor<4xf32> {tressel.name = "sum"}) attributes {tressel.mesh = "data=2"} {
  %one = tressel.constant dense<1.000000e+00> : tensor<4xf32>
  %0 = tressel.scan 5 carries(%one : tensor<4xf32>) slices(%x : tensor<5x8x4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %before: tensor<4xf32>, %a: tensor<8x4xf32>):
    %1 = tressel.sum %a {axis = array<i64: 0>, keepdims = false} : (tensor<8x4xf32>) -> tensor<4xf32>
    %2 = tressel.add %before, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// Padding with a number is not linear: each rank would count the number. (With zeros, as the gradient of a slice is, it is.)
// CHECK-LABEL: func.func @main
// CHECK: tressel.scan 5 carries(%{{.*}} : tensor<6xf32>) slices(%{{.*}} : tensor<5x8x4xf32>)
// CHECK-NOT: tressel.collect
func.func @main(%x: tensor<5x8x4xf32> {tressel.name = "x", tressel.sharding = "-, data, -"}) -> (tensor<6xf32> {tressel.name = "sum"}) attributes {tressel.mesh = "data=2"} {
  %zero = tressel.constant dense<0.000000e+00> : tensor<6xf32>
  %0 = tressel.scan 5 carries(%zero : tensor<6xf32>) slices(%x : tensor<5x8x4xf32>) -> tensor<6xf32> {
  ^bb0(%i: tensor<i64>, %before: tensor<6xf32>, %a: tensor<8x4xf32>):
    %1 = tressel.sum %a {axis = array<i64: 0>, keepdims = false} : (tensor<8x4xf32>) -> tensor<4xf32>
    %2 = tressel.pad %1 {low = array<i64: 1>, high = array<i64: 1>, value = 3.000000e+00 : f64} : (tensor<4xf32>) -> tensor<6xf32>
    %3 = tressel.add %before, %2 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    tressel.yield %3 : tensor<6xf32>
  }
  return %0 : tensor<6xf32>
}
