// RUN: tressel-opt %s --tressel-pipeline --tressel-verify-each --tressel-streams=2 | FileCheck %s
// Loops on several streams, interpreted after every pass: independent ones run side by side, and what reads both is
// ordered behind them (here by the wait of the second loop, which stands behind the first); so are the launches of one body.

// CHECK: sched.step {
// CHECK-NEXT: %[[X:.*]] = sched.copy %x -> %[[A:.*]] on %cpu
// CHECK-NEXT: sched.loop 3 times on %cpu {
// CHECK-NEXT: %[[FIRST:.*]] = sched.launch @matmul_0(%[[A]], %w) -> (%[[T:.*]]) on %cpu
// CHECK-NEXT: sched.launch @matmul_0(%w, %[[A]]) -> (%[[U:.*]]) on %cpu1
// CHECK-NEXT: sched.launch @matmul_tanh_0(%[[T]], %[[U]]) -> (%[[A]]) on %cpu1 after %[[FIRST]] data
// CHECK-NEXT: }
// CHECK-NEXT: %[[Y:.*]] = sched.copy %y -> %[[B:.*]] on %cpu
// CHECK-NEXT: sched.loop 2 times on %cpu1 after %[[Y]] data {
// CHECK: }
// CHECK-NEXT: sched.launch @matmul_0(%[[A]], %[[B]]) -> (%out) on %cpu1
func.func @main(%x: tensor<64x64xf32> {tressel.name = "x"}, %y: tensor<64x64xf32> {tressel.name = "y"}, %w: tensor<64x64xf32> {tressel.name = "w"})
    -> (tensor<64x64xf32> {tressel.name = "out"}) {
  %a = tressel.scan 3 carries(%x : tensor<64x64xf32>) with(%w : tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<64x64xf32>, %v: tensor<64x64xf32>):
    %0 = tressel.matmul %h, %v : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = tressel.matmul %v, %h : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %2 = tressel.matmul %0, %1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %3 = tressel.tanh %2 : (tensor<64x64xf32>) -> tensor<64x64xf32>
    tressel.yield %3 : tensor<64x64xf32>
  }
  %b = tressel.scan 2 carries(%y : tensor<64x64xf32>) with(%w : tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<64x64xf32>, %v: tensor<64x64xf32>):
    %0 = tressel.matmul %h, %v : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = tressel.tanh %0 : (tensor<64x64xf32>) -> tensor<64x64xf32>
    tressel.yield %1 : tensor<64x64xf32>
  }
  %c = tressel.matmul %a, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %c : tensor<64x64xf32>
}
