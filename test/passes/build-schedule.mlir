// RUN: tressel-opt %s --tressel-build-schedule -split-input-file | FileCheck %s

// Inputs, outputs and parameters; what depends on parameters alone is prepared; a view shares bytes; the result is
// computed in the output.
// CHECK-LABEL: sched.program @main {
// CHECK-NEXT: %cpu = sched.stream compute on cpu 0
// CHECK-NEXT: %memory = sched.arena device on cpu 0
// CHECK-NEXT: %x = sched.input "x" : tensor<2x2xf32>
// CHECK-NEXT: %[[X:.*]] = sched.view %x : tensor<4xf32>
// CHECK-NEXT: %w = sched.state parameter "w" : tensor<4xf32>
// CHECK-NEXT: %y = sched.output "y" : tensor<2x2xf32>
// CHECK-NEXT: %derived.0 = sched.state derived "derived.0" : tensor<4xf32>
// CHECK-NEXT: %t0 = sched.buffer in %memory : tensor<4xf32>
// CHECK-NEXT: %[[Y:.*]] = sched.view %y : tensor<4xf32>
// CHECK-NEXT: sched.prepare {
// CHECK-NEXT: sched.launch @exp_0(%w) -> (%derived.0) on %cpu
// CHECK-NEXT: }
// CHECK-NEXT: sched.step {
// CHECK-NEXT: sched.launch @add_0(%[[X]], %derived.0) -> (%t0) on %cpu
// CHECK-NEXT: sched.launch @exp_0(%t0) -> (%[[Y]]) on %cpu
// CHECK-NEXT: }
tressel.kernel @exp_0(%a: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated"} {
  %0 = tressel.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}
tressel.kernel @add_0(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}
func.func @main(%x: tensor<2x2xf32> {tressel.name = "x"}, %w: tensor<4xf32> {tressel.state = "w"})
    -> (tensor<2x2xf32> {tressel.name = "y"}) {
  %v = tressel.reshape %x {shape = array<i64: 4>} : (tensor<2x2xf32>) -> tensor<4xf32>
  %0 = tressel.launch @exp_0(%w) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = tressel.launch @add_0(%v, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = tressel.launch @exp_0(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = tressel.reshape %2 {shape = array<i64: 2, 2>} : (tensor<4xf32>) -> tensor<2x2xf32>
  return %3 : tensor<2x2xf32>
}

// -----

// Copies: an output that is an input, a state, or another output.
// CHECK-LABEL: sched.program @main {
// CHECK: sched.step {
// CHECK-NEXT: sched.launch @exp_0(%x) -> (%y) on %cpu
// CHECK-NEXT: sched.copy %y -> %again on %cpu
// CHECK-NEXT: sched.copy %x -> %same on %cpu
// CHECK-NEXT: sched.copy %w -> %weight on %cpu
// CHECK-NEXT: }
tressel.kernel @exp_0(%a: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated"} {
  %0 = tressel.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}, %w: tensor<4xf32> {tressel.state = "w"})
    -> (tensor<4xf32> {tressel.name = "y"}, tensor<4xf32> {tressel.name = "again"}, tensor<4xf32> {tressel.name = "same"},
        tensor<4xf32> {tressel.name = "weight"}) {
  %0 = tressel.launch @exp_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %0, %x, %w : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A state's next value is written in place by the op that reads the old one last, point by point.
// CHECK-LABEL: sched.program @main {
// CHECK: %w = sched.state mutable "w"
// CHECK: sched.step {
// CHECK-NEXT: sched.launch @add_0(%w, %x) -> (%w) on %cpu
// CHECK-NEXT: }
tressel.kernel @add_0(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}, %w: tensor<4xf32> {tressel.state = "w"})
    -> (tensor<4xf32> {tressel.state = "w"}) {
  %0 = tressel.launch @add_0(%w, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Not so when the old value is still needed: an output shows it, and it is copied out before it is replaced.
// CHECK-LABEL: sched.program @main {
// CHECK: sched.step {
// CHECK-NEXT: sched.launch @add_0(%w, %x) -> (%t0) on %cpu
// CHECK-NEXT: sched.copy %w -> %old on %cpu
// CHECK-NEXT: sched.copy %t0 -> %w on %cpu
// CHECK-NEXT: }
tressel.kernel @add_0(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}, %w: tensor<4xf32> {tressel.state = "w"})
    -> (tensor<4xf32> {tressel.state = "w"}, tensor<4xf32> {tressel.name = "old"}) {
  %0 = tressel.launch @add_0(%w, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %w : tensor<4xf32>, tensor<4xf32>
}

// -----

// A constant that only kernels hold is no buffer; one that a launch reads is.
// CHECK-LABEL: sched.program @main {
// CHECK: %constant = sched.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-NOT: sched.constant
// CHECK: sched.launch @add_0(%x, %constant) -> (%y) on %cpu
tressel.kernel @add_0(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  tressel.yield %0 : tensor<2xf32>
}
func.func @main(%x: tensor<2xf32> {tressel.name = "x"}) -> (tensor<2xf32> {tressel.name = "y"}) {
  %unused = tressel.constant dense<3.0> : tensor<f32>
  %c = tressel.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = tressel.launch @add_0(%x, %c) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Two states exchanged.
// CHECK-LABEL: sched.program @main {
// CHECK: sched.step {
// CHECK-NEXT: sched.copy %b -> %[[B:.*]] on %cpu
// CHECK-NEXT: sched.copy %a -> %[[A:.*]] on %cpu
// CHECK-NEXT: sched.copy %[[B]] -> %a on %cpu
// CHECK-NEXT: sched.copy %[[A]] -> %b on %cpu
// CHECK-NEXT: }
func.func @main(%a: tensor<4xf32> {tressel.state = "a"}, %b: tensor<4xf32> {tressel.state = "b"})
    -> (tensor<4xf32> {tressel.state = "a"}, tensor<4xf32> {tressel.state = "b"}) {
  return %b, %a : tensor<4xf32>, tensor<4xf32>
}

// -----

// A state is written behind what may fail, so that a step that fails leaves it as it was.
// CHECK-LABEL: sched.program @main {
// CHECK: sched.step {
// CHECK-NEXT: sched.launch @take_0(%x, %i) -> (%y) on %cpu
// CHECK-NEXT: sched.launch @add_0(%w, %x) -> (%w) on %cpu
// CHECK-NEXT: }
tressel.kernel @add_0(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}
tressel.kernel @take_0(%a: tensor<4xf32>, %i: tensor<2xi64>) -> tensor<2xf32> attributes {provider = "generated"} {
  %0 = tressel.take %a, %i : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  tressel.yield %0 : tensor<2xf32>
}
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}, %i: tensor<2xi64> {tressel.name = "i"}, %w: tensor<4xf32> {tressel.state = "w"})
    -> (tensor<2xf32> {tressel.name = "y"}, tensor<4xf32> {tressel.state = "w"}) {
  %0 = tressel.launch @add_0(%w, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = tressel.launch @take_0(%x, %i) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %1, %0 : tensor<2xf32>, tensor<4xf32>
}

// -----

// Where what may fail needs the next value, that is computed aside and copied in the end.
// CHECK-LABEL: sched.program @main {
// CHECK: sched.step {
// CHECK-NEXT: sched.launch @add_0(%w, %x) -> (%[[NEXT:.*]]) on %cpu
// CHECK-NEXT: sched.launch @take_0(%[[NEXT]], %i) -> (%y) on %cpu
// CHECK-NEXT: sched.copy %[[NEXT]] -> %w on %cpu
// CHECK-NEXT: }
tressel.kernel @add_0(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}
tressel.kernel @take_0(%a: tensor<4xf32>, %i: tensor<2xi64>) -> tensor<2xf32> attributes {provider = "generated"} {
  %0 = tressel.take %a, %i : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  tressel.yield %0 : tensor<2xf32>
}
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}, %i: tensor<2xi64> {tressel.name = "i"}, %w: tensor<4xf32> {tressel.state = "w"})
    -> (tensor<2xf32> {tressel.name = "y"}, tensor<4xf32> {tressel.state = "w"}) {
  %0 = tressel.launch @add_0(%w, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = tressel.launch @take_0(%0, %i) : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %1, %0 : tensor<2xf32>, tensor<4xf32>
}

// -----

// Memory decides the order where program order would keep both large values.
// CHECK-LABEL: sched.program @main {
// CHECK: sched.step {
// CHECK-NEXT: sched.launch @widen_0(%x) -> (%[[A:.*]]) on %cpu
// CHECK-NEXT: sched.launch @narrow_0(%[[A]])
// CHECK-NEXT: sched.launch @widen_0(%y) -> (%[[B:.*]]) on %cpu
// CHECK-NEXT: sched.launch @narrow_0(%[[B]])
tressel.kernel @widen_0(%a: tensor<1xf32>) -> tensor<64xf32> attributes {provider = "generated"} {
  %0 = tressel.broadcast_to %a {shape = array<i64: 64>} : (tensor<1xf32>) -> tensor<64xf32>
  tressel.yield %0 : tensor<64xf32>
}
tressel.kernel @narrow_0(%a: tensor<64xf32>) -> tensor<f32> attributes {provider = "generated"} {
  %0 = tressel.sum %a : (tensor<64xf32>) -> tensor<f32>
  tressel.yield %0 : tensor<f32>
}
func.func @main(%x: tensor<1xf32> {tressel.name = "x"}, %y: tensor<1xf32> {tressel.name = "y"})
    -> (tensor<f32> {tressel.name = "p"}, tensor<f32> {tressel.name = "q"}) {
  %0 = tressel.launch @widen_0(%x) : (tensor<1xf32>) -> tensor<64xf32>
  %1 = tressel.launch @widen_0(%y) : (tensor<1xf32>) -> tensor<64xf32>
  %2 = tressel.launch @narrow_0(%0) : (tensor<64xf32>) -> tensor<f32>
  %3 = tressel.launch @narrow_0(%1) : (tensor<64xf32>) -> tensor<f32>
  return %2, %3 : tensor<f32>, tensor<f32>
}
