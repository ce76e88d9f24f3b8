// RUN: tressel-opt %s --tressel-simplify -split-input-file | FileCheck %s --check-prefix=SIMPLE
// RUN: tressel-opt %s --tressel-pipeline --tressel-verify-each -split-input-file | FileCheck %s --check-prefix=SCHED
// Branches and loops: simplified, then scheduled, interpreted after every pass.

// A recurrence: the weight is packed ahead of the step, each row of the result is written where it belongs.
// SIMPLE-LABEL: func.func @main
// SIMPLE: tressel.scan 5 carries(%{{.*}} : tensor<4xf32>) slices(%{{.*}} : tensor<5x4xf32>) with(%{{.*}} : tensor<4x4xf32>)
// SCHED-LABEL: sched.program @main
// SCHED: %[[ROW:.*]] = sched.view %x : tensor<4xf32>
// SCHED: %[[RESULT:.*]] = sched.view %all : tensor<4xf32>
// SCHED: sched.prepare {
// SCHED-NEXT: sched.launch @pack_0(%w)
// SCHED: sched.step {
// SCHED-NEXT: sched.copy %h0 -> %last on %cpu
// SCHED-NEXT: sched.loop 5 times moving %[[ROW]], %[[RESULT]] on %cpu {
// SCHED-NEXT: sched.launch @matmul_add_tanh_0(%last, %w, %derived.0, %[[ROW]]) -> (%[[RESULT]]) on %cpu
// SCHED-NEXT: sched.copy %[[RESULT]] -> %last on %cpu
// SCHED-NEXT: }
// SCHED-NEXT: }
func.func @main(%x: tensor<5x4xf32> {tressel.name = "x"}, %h0: tensor<4xf32> {tressel.name = "h0"},
                %w: tensor<4x4xf32> {tressel.state = "w"})
    -> (tensor<4xf32> {tressel.name = "last"}, tensor<5x4xf32> {tressel.name = "all"}) {
  %last, %all = tressel.scan 5 carries(%h0 : tensor<4xf32>) slices(%x : tensor<5x4xf32>) with(%w : tensor<4x4xf32>)
      -> tensor<4xf32>, tensor<5x4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %a: tensor<4xf32>, %v: tensor<4x4xf32>):
    %0 = tressel.matmul %h, %v : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    %1 = tressel.add %0, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = tressel.tanh %1 : (tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %2, %2 : tensor<4xf32>, tensor<4xf32>
  }
  return %last, %all : tensor<4xf32>, tensor<5x4xf32>
}

// -----

// A loop in a branch; the loop's limit is a constant, which moves into it; its state is updated in place.
// SIMPLE-LABEL: func.func @main
// SIMPLE: tressel.cond
// SIMPLE: tressel.while carries(%{{.*}} : tensor<f32>) ->
// SIMPLE: tressel.constant dense<1.000000e+02>
// SCHED-LABEL: sched.program @main
// SCHED: sched.branch %p on %cpu {
// SCHED-NEXT: sched.copy %x -> %r on %cpu
// SCHED-NEXT: sched.while %[[FLAG:.*]] on %cpu {
// SCHED-NEXT: sched.launch @less_0(%r) -> (%[[FLAG]]) on %cpu
// SCHED-NEXT: } do {
// SCHED-NEXT: sched.launch @add_0(%r) -> (%r) on %cpu
// SCHED-NEXT: }
// SCHED-NEXT: } else {
// SCHED-NEXT: sched.copy %x -> %r on %cpu
// SCHED-NEXT: }
func.func @main(%x: tensor<f32> {tressel.name = "x"}, %p: tensor<i1> {tressel.name = "p"})
    -> (tensor<f32> {tressel.name = "r"}) {
  %limit = tressel.constant dense<100.0> : tensor<f32>
  %one = tressel.constant dense<1.0> : tensor<f32>
  %r = tressel.cond %p : tensor<i1> with(%x, %limit, %one : tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>):
    %q = tressel.while carries(%a : tensor<f32>) with(%b, %c : tensor<f32>, tensor<f32>) -> tensor<f32> {
    ^bb0(%v: tensor<f32>, %l: tensor<f32>, %n: tensor<f32>):
      %f = tressel.less %v, %l : (tensor<f32>, tensor<f32>) -> tensor<i1>
      tressel.yield %f : tensor<i1>
    } do {
    ^bb0(%v: tensor<f32>, %l: tensor<f32>, %n: tensor<f32>):
      %f = tressel.add %v, %n : (tensor<f32>, tensor<f32>) -> tensor<f32>
      tressel.yield %f : tensor<f32>
    }
    tressel.yield %q : tensor<f32>
  } else {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>):
    tressel.yield %a : tensor<f32>
  }
  return %r : tensor<f32>
}

// -----

// A known condition, and a loop without trips, are gone.
// SIMPLE-LABEL: func.func @main
// SIMPLE-NOT: tressel.cond
// SIMPLE-NOT: tressel.scan
// SIMPLE: %[[E:.*]] = tressel.exp
// SIMPLE: return %[[E]], %[[E]]
// SCHED-LABEL: sched.program @main
// SCHED-NOT: sched.branch
// SCHED-NOT: sched.loop
func.func @main(%x: tensor<4xf32> {tressel.name = "x"})
    -> (tensor<4xf32> {tressel.name = "a"}, tensor<4xf32> {tressel.name = "b"}) {
  %p = tressel.constant dense<true> : tensor<i1>
  %r = tressel.cond %p : tensor<i1> with(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %0 = tressel.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %0 : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    tressel.yield %a : tensor<4xf32>
  }
  %s = tressel.scan 0 carries(%r : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<4xf32>):
    %0 = tressel.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %0 : tensor<4xf32>
  }
  return %r, %s : tensor<4xf32>, tensor<4xf32>
}

// -----

// Carried values: one that nobody needs goes, with what only it needs; one that never changes is an invariant, and what
// is computed from it moves out.
// SIMPLE-LABEL: func.func @main
// SIMPLE: %[[E:.*]] = tressel.exp %arg1
// SIMPLE: tressel.scan 3 carries(%arg0 : tensor<4xf32>) with(%[[E]] : tensor<4xf32>) -> tensor<4xf32> {
// SIMPLE-NEXT: ^bb0(%{{.*}}: tensor<i64>, %[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>):
// SIMPLE-NEXT: %[[S:.*]] = tressel.add %[[A]], %[[B]]
// SIMPLE-NEXT: tressel.yield %[[S]] : tensor<4xf32>
// SCHED-LABEL: sched.program @main
// SCHED: sched.loop 3 times on %cpu {
// SCHED-NEXT: sched.launch @add_0(%r, %{{.*}}) -> (%r) on %cpu
// SCHED-NEXT: }
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}, %y: tensor<4xf32> {tressel.name = "y"})
    -> (tensor<4xf32> {tressel.name = "r"}) {
  %r:3 = tressel.scan 3 carries(%x, %y, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> tensor<4xf32>, tensor<4xf32>, tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<4xf32>, %b: tensor<4xf32>, %dead: tensor<4xf32>):
    %0 = tressel.exp %b : (tensor<4xf32>) -> tensor<4xf32>
    %1 = tressel.add %a, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = tressel.mul %dead, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %1, %b, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#0 : tensor<4xf32>
}

// -----

// Two carried values that change places go through a slot.
// SIMPLE-LABEL: func.func @main
// SCHED-LABEL: sched.program @main
// SCHED: sched.loop 3 times on %cpu {
// SCHED-NEXT: sched.copy %[[A:.*]] -> %[[KEPT:.*]] on %cpu
// SCHED-NEXT: sched.copy %[[B:.*]] -> %[[KEPT2:.*]] on %cpu
// SCHED-NEXT: sched.copy %[[KEPT]] -> %[[B]] on %cpu
// SCHED-NEXT: sched.copy %[[KEPT2]] -> %[[A]] on %cpu
// SCHED-NEXT: }
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}, %y: tensor<4xf32> {tressel.name = "y"})
    -> (tensor<4xf32> {tressel.name = "a"}, tensor<4xf32> {tressel.name = "b"}) {
  %r:2 = tressel.scan 3 carries(%x, %y : tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>, tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<4xf32>, %b: tensor<4xf32>):
    tressel.yield %b, %a : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Two that change places and that nobody needs go both.
// SIMPLE-LABEL: func.func @main
// SIMPLE: tressel.scan 3 carries(%arg0 : tensor<4xf32>) -> tensor<4xf32> {
// SIMPLE-NEXT: ^bb0(%{{.*}}: tensor<i64>, %[[A:.*]]: tensor<4xf32>):
// SIMPLE-NEXT: %[[E:.*]] = tressel.exp %[[A]]
// SIMPLE-NEXT: tressel.yield %[[E]] : tensor<4xf32>
// SCHED-LABEL: sched.program @main
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}, %y: tensor<4xf32> {tressel.name = "y"})
    -> (tensor<4xf32> {tressel.name = "r"}) {
  %r:3 = tressel.scan 3 carries(%x, %x, %y : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> tensor<4xf32>, tensor<4xf32>, tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>):
    %0 = tressel.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %0, %c, %b : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#0 : tensor<4xf32>
}

// -----

// Nested loops: the inner one's rows are parts of the outer one's, and its result goes to the outer one's place.
// SIMPLE-LABEL: func.func @main
// SCHED-LABEL: sched.program @main
// SCHED: sched.loop 3 times moving %[[IN:.*]], %[[OUT:.*]] on %cpu {
// SCHED: sched.loop 2 times moving %[[IN2:.*]], %[[OUT2:.*]] on %cpu {
func.func @main(%x: tensor<3x2x4xf32> {tressel.name = "x"}, %h: tensor<4xf32> {tressel.name = "h"})
    -> (tensor<3x2x4xf32> {tressel.name = "y"}) {
  %y = tressel.scan 3 slices(%x : tensor<3x2x4xf32>) with(%h : tensor<4xf32>) -> tensor<3x2x4xf32> {
  ^bb0(%i: tensor<i64>, %xs: tensor<2x4xf32>, %first: tensor<4xf32>):
    %last, %all = tressel.scan 2 carries(%first : tensor<4xf32>) slices(%xs : tensor<2x4xf32>)
        -> tensor<4xf32>, tensor<2x4xf32> {
    ^bb0(%j: tensor<i64>, %a: tensor<4xf32>, %b: tensor<4xf32>):
      %0 = tressel.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      tressel.yield %0, %0 : tensor<4xf32>, tensor<4xf32>
    }
    tressel.yield %all : tensor<2x4xf32>
  }
  return %y : tensor<3x2x4xf32>
}

// -----

// A state that a loop updates: no copy, the loop works on the state's own bytes.
// SIMPLE-LABEL: func.func @main
// SCHED-LABEL: sched.program @main
// SCHED: %n = sched.state mutable "n"
// SCHED: sched.step {
// SCHED-NEXT: sched.loop 7 times on %cpu {
// SCHED-NEXT: sched.launch @add_0(%n, %x) -> (%n) on %cpu
// SCHED-NEXT: }
// SCHED-NEXT: }
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}, %n: tensor<4xf32> {tressel.state = "n"})
    -> (tensor<4xf32> {tressel.state = "n"}) {
  %r = tressel.scan 7 carries(%n : tensor<4xf32>) with(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<4xf32>, %b: tensor<4xf32>):
    %0 = tressel.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// A loop that may not run at all stacks its results in no bytes: one of them has a place beside nothing all the same.
// SIMPLE-LABEL: func.func @main
// SCHED-LABEL: sched.program @main
// SCHED: sched.arena device on cpu 0 size "64*((5*max(1, n[0..5]) + 15)//16)"
func.func @main(%x: tensor<5xf32> {tressel.name = "x"}, %y: tensor<?xf16, #tressel.dims<"n[0..5]">> {tressel.name = "y"})
    -> (tensor<5xf32> {tressel.name = "r"}, tensor<?xf16, #tressel.dims<"n[0..5]">> {tressel.name = "s"}) {
  %all = tressel.scan "n[0..5]" with(%x : tensor<5xf32>) -> tensor<?x5xf32, #tressel.dims<"n[0..5]", 5>> {
  ^bb0(%i: tensor<i64>, %a: tensor<5xf32>):
    tressel.yield %a : tensor<5xf32>
  }
  %r = tressel.sum %all {axis = array<i64: 0>} : (tensor<?x5xf32, #tressel.dims<"n[0..5]", 5>>) -> tensor<5xf32>
  %s = tressel.exp %y : (tensor<?xf16, #tressel.dims<"n[0..5]">>) -> tensor<?xf16, #tressel.dims<"n[0..5]">>
  return %r, %s : tensor<5xf32>, tensor<?xf16, #tressel.dims<"n[0..5]">>
}
