// RUN: tressel-opt %s --tressel-plan-memory --tressel-verify-schedule | FileCheck %s
// A buffer of no bytes may lie anywhere, and does not hide another one that begins there: %b must not lie on %a.
// CHECK: sched.program @main peak 128 at_least 128 {
// CHECK-DAG: %a = sched.buffer in %memory at [[A:[0-9]+]] :
// CHECK-NOT: %b = sched.buffer in %memory at [[A]] :
sched.program @main {
  %cpu = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0
  %x = sched.input "x" : tensor<16xf32>
  %n = sched.input "n" : tensor<0xf32>
  %y = sched.output "y" : tensor<16xf32>
  %z = sched.output "z" : tensor<16xf32>
  %m = sched.output "m" : tensor<0xf32>
  %a = sched.buffer in %memory : tensor<16xf32>
  %none = sched.buffer in %memory : tensor<0xf32>
  %b = sched.buffer in %memory : tensor<16xf32>
  sched.step {
    %0 = sched.copy %x -> %a on %cpu
    %1 = sched.copy %n -> %none on %cpu
    %2 = sched.copy %none -> %m on %cpu
    %3 = sched.copy %x -> %b on %cpu
    %4 = sched.copy %b -> %z on %cpu
    %5 = sched.copy %a -> %y on %cpu
  }
}
