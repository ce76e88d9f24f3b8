// RUN: tressel-opt %s --tressel-differentiate --tressel-simplify --split-input-file | FileCheck %s

// Each op is gone back over by its rule; what is not used is never made.
// CHECK-LABEL: func.func @main
// CHECK-SAME: -> (tensor<f32> {tressel.name = "y"}, tensor<4xf32> {tressel.name = "grad.x"}, tensor<4xf32> {tressel.name = "grad.w"})
// CHECK-NEXT: %[[P:.*]] = tressel.mul %arg0, %arg1
// CHECK-NEXT: %[[S:.*]] = tressel.sum %[[P]]
// CHECK-NEXT: return %[[S]], %arg1, %arg0
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}, %w: tensor<4xf32> {tressel.state = "w"}, %n: tensor<i64> {tressel.name = "n"})
    -> (tensor<f32> {tressel.name = "y"}) {
  %0 = tressel.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = tressel.sum %0 : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// A scan yields what its body makes, as far as the way back needs it: here tanh's result and, for the weights, the
// carried value. The way back is a scan too: it carries the cotangent, and adds up that of the invariant.
// CHECK-LABEL: func.func @main
// CHECK: %[[F:.*]]:3 = tressel.scan 5 carries(%{{.*}} : tensor<4xf32>) slices(%arg0 : tensor<5x4xf32>) with(%arg1 : tensor<4xf32>)
// CHECK-SAME: -> tensor<4xf32>, tensor<5x4xf32>, tensor<5x4xf32>
// CHECK-DAG: %[[A:.*]] = tressel.flip %[[F]]#1
// CHECK-DAG: %[[B:.*]] = tressel.flip %[[F]]#2
// CHECK: %[[R:.*]]:3 = tressel.scan 5 carries(%{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xf32>)
// CHECK-SAME: slices(%{{.*}}, %{{.*}} : tensor<5x4xf32>, tensor<5x4xf32>)
// CHECK: %[[X:.*]] = tressel.flip %[[R]]#2
// CHECK: return %{{.*}}, %[[X]], %[[R]]#1
func.func @main(%xs: tensor<5x4xf32> {tressel.name = "xs"}, %w: tensor<4xf32> {tressel.name = "w"}) -> (tensor<f32> {tressel.name = "y"}) {
  %h = tressel.constant dense<1.0> : tensor<4xf32>
  %last = tressel.scan 5 carries(%h : tensor<4xf32>) slices(%xs : tensor<5x4xf32>) with(%w : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<4xf32>, %x: tensor<4xf32>, %b: tensor<4xf32>):
    %0 = tressel.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = tressel.add %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = tressel.tanh %1 : (tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %2 : tensor<4xf32>
  }
  %s = tressel.sum %last : (tensor<4xf32>) -> tensor<f32>
  return %s : tensor<f32>
}

// -----

// The branch that was taken runs again.
// CHECK-LABEL: func.func @main
// CHECK: tressel.cond %[[C:.*]] : tensor<i1> with(%arg0
// CHECK: tressel.cond %[[C]] : tensor<i1> with(%arg0
// CHECK: tressel.exp
// CHECK: else
func.func @main(%x: tensor<f32> {tressel.name = "x"}) -> (tensor<f32> {tressel.name = "y"}) {
  %zero = tressel.constant dense<0.0> : tensor<f32>
  %p = tressel.greater %x, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %r = tressel.cond %p : tensor<i1> with(%x : tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    %0 = tressel.exp %a : (tensor<f32>) -> tensor<f32>
    tressel.yield %0 : tensor<f32>
  } else {
  ^bb0(%a: tensor<f32>):
    tressel.yield %a : tensor<f32>
  }
  return %r : tensor<f32>
}

// -----

// A loop with a bound is a scan of so many iterations, which do nothing once the condition fails.
// CHECK-LABEL: func.func @main
// CHECK: tressel.scan 6
// CHECK: tressel.cond
// CHECK: tressel.scan 6
// CHECK: tressel.cond
func.func @main(%x: tensor<f32> {tressel.name = "x"}) -> (tensor<f32> {tressel.name = "y"}) {
  %r = tressel.while at most 6 carries(%x : tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    %limit = tressel.constant dense<10.0> : tensor<f32>
    %0 = tressel.less %a, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tressel.yield %0 : tensor<i1>
  } do {
  ^bb0(%a: tensor<f32>):
    %0 = tressel.mul %a, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>
    tressel.yield %0 : tensor<f32>
  }
  return %r : tensor<f32>
}
