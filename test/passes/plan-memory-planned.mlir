// RUN: tressel-opt %s --tressel-plan-memory -split-input-file | FileCheck %s

// By the order of commands %b could take the bytes of %a, whose last reader, the copy, has been issued. But the copy is predicted to
// run beside the launch that writes %b, which would wait for it: %b has bytes of its own, and %c, written when the copy has ended,
// takes those of %a. The predictions are gone.
// CHECK: %a = sched.buffer in %memory at [[A:[0-9]+]]
// CHECK-NOT: %b = sched.buffer in %memory at [[A]] :
// CHECK: %c = sched.buffer in %memory at [[A]] :
// CHECK-NOT: sched.planned
tressel.kernel @f(%a: tensor<64xf32>) -> tensor<64xf32> attributes {provider = "library", target = #tressel.target<host_library>, params = "{}"} {
  %0 = tressel.exp %a : (tensor<64xf32>) -> tensor<64xf32>
  tressel.yield %0 : tensor<64xf32>
}
sched.program @main {
  %gpu0 = sched.stream compute on gpu 0
  %gpu0.out = sched.stream copy_out on gpu 0
  %memory = sched.arena device on gpu 0
  %d = sched.state derived "d" on gpu 0 : tensor<64xf32>
  %x = sched.output "x" : tensor<64xf32>
  %y = sched.output "y" : tensor<64xf32>
  %z = sched.output "z" : tensor<64xf32>
  %a = sched.buffer in %memory : tensor<64xf32>
  %b = sched.buffer in %memory : tensor<64xf32>
  %c = sched.buffer in %memory : tensor<64xf32>
  sched.step {
    %0 = sched.launch @f(%d) -> (%a) on %gpu0 {sched.planned = array<i64: 0, 10>}
    %1 = sched.copy %a -> %x on %gpu0.out {sched.planned = array<i64: 10, 20>}
    %2 = sched.launch @f(%d) -> (%b) on %gpu0 {sched.planned = array<i64: 10, 20>}
    %3 = sched.launch @f(%d) -> (%c) on %gpu0 {sched.planned = array<i64: 20, 30>}
    %4 = sched.copy %b -> %y on %gpu0.out {sched.planned = array<i64: 20, 30>}
    %5 = sched.copy %c -> %z on %gpu0.out {sched.planned = array<i64: 30, 40>}
  }
}
