// RUN: tressel-opt %s --tressel-plan-memory | FileCheck %s
// RUN: tressel-opt %s --tressel-plan-memory=in-place=false | FileCheck %s --check-prefix=APART

tressel.kernel @exp_0(%a: tensor<64xf32>) -> tensor<64xf32> attributes {provider = "generated"} {
  %0 = tressel.exp %a : (tensor<64xf32>) -> tensor<64xf32>
  tressel.yield %0 : tensor<64xf32>
}
tressel.kernel @flip_0(%a: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {provider = "generated"} {
  %0 = tressel.transpose %a {permutation = array<i64: 1, 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  tressel.yield %0 : tensor<8x8xf32>
}
tressel.kernel @add_0(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  tressel.yield %0 : tensor<64xf32>
}

// exp overwrites its operand, which dies there. The transpose may not: each element of its operand goes elsewhere. Its
// result takes the bytes of %a and %b again once they are dead.
// CHECK: sched.program @main peak 512 at_least 512 {
// CHECK: %memory = sched.arena device on cpu 0 size 512
// CHECK-DAG: %a = sched.buffer in %memory at [[A:[0-9]+]] : tensor<64xf32>
// CHECK-DAG: %b = sched.buffer in %memory at [[A]] : tensor<64xf32>
// CHECK-DAG: %c = sched.buffer in %memory at [[C:[0-9]+]] : tensor<8x8xf32>
// CHECK-DAG: %d = sched.buffer in %memory at {{[0-9]+}} : tensor<64xf32>
// Without reuse in place one more slot is live while exp runs; the peak is still the bound.
// APART: sched.program @main peak 512 at_least 512 {
// APART-DAG: %a = sched.buffer in %memory at [[A:[0-9]+]]
// APART-NOT: %b = sched.buffer in %memory at [[A]] :
sched.program @main {
  %cpu = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0
  %x = sched.input "x" : tensor<64xf32>
  %y = sched.output "y" : tensor<64xf32>
  %a = sched.buffer in %memory : tensor<64xf32>
  %b = sched.buffer in %memory : tensor<64xf32>
  %square = sched.view %b : tensor<8x8xf32>
  %c = sched.buffer in %memory : tensor<8x8xf32>
  %flat = sched.view %c : tensor<64xf32>
  %d = sched.buffer in %memory : tensor<64xf32>
  sched.step {
    %0 = sched.launch @exp_0(%x) -> (%a) on %cpu
    %1 = sched.launch @exp_0(%a) -> (%b) on %cpu
    %2 = sched.launch @flip_0(%square) -> (%c) on %cpu
    %3 = sched.launch @exp_0(%x) -> (%d) on %cpu
    %4 = sched.launch @add_0(%flat, %d) -> (%y) on %cpu
  }
}
