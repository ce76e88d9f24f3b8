// RUN: tressel-opt %s | tressel-opt | FileCheck %s
// RUN: tressel-opt %s --tressel-verify-schedule -o /dev/null
// Two accelerators sum a gradient each, and the host is told.

// CHECK-LABEL: sched.program @step in_flight 2 {
sched.program @step in_flight 2 {
  %cpu = sched.stream compute on cpu 0
  %in0 = sched.stream copy_in on gpu 0
  %in1 = sched.stream copy_in on gpu 1
  %comm0 = sched.stream copy_out on gpu 0
  %comm1 = sched.stream copy_out on gpu 1
  // CHECK: %pair = sched.group %comm0, %comm1
  %pair = sched.group %comm0, %comm1
  %m0 = sched.arena device on gpu 0 size 256
  %m1 = sched.arena device on gpu 1 size 256
  %x = sched.input "x" pinned : tensor<16xf32>
  %y = sched.output "y" : tensor<16xf32>
  %a0 = sched.buffer in %m0 at 0 : tensor<16xf32>
  %a1 = sched.buffer in %m1 at 0 : tensor<16xf32>
  %w0 = sched.buffer in %m0 at 64 : tensor<32xf32>
  %w1 = sched.buffer in %m1 at 64 : tensor<32xf32>
  sched.step {
    %c0 = sched.copy %x -> %a0 on %in0
    %c1 = sched.copy %x -> %a1 on %in1
    // CHECK: sched.collective all_reduce by max "w.grad" of %pair(%a0) -> %a0 on %comm0 after %{{.*}} data
    %r0 = sched.collective all_reduce by max "w.grad" of %pair(%a0) -> %a0 on %comm0 after %c0 data
    %r1 = sched.collective all_reduce by max "w.grad" of %pair(%a1) -> %a1 on %comm1 after %c1 data
    // CHECK: sched.collective all_gather "w" of %pair(%a0) -> %w0 on %comm0
    %g0 = sched.collective all_gather "w" of %pair(%a0) -> %w0 on %comm0
    %g1 = sched.collective all_gather "w" of %pair(%a1) -> %w1 on %comm1
    // CHECK: sched.collective broadcast from 1 "b" of %pair() -> %a0 on %comm0
    %b0 = sched.collective broadcast from 1 "b" of %pair() -> %a0 on %comm0
    %b1 = sched.collective broadcast from 1 "b" of %pair(%a1) -> %a1 on %comm1
    %o = sched.copy %a0 -> %y on %comm0
    // CHECK: sched.host_call "log" with "every 10"(%y) -> () on %cpu after %{{.*}} data
    %h = sched.host_call "log" with "every 10" (%y) -> () on %cpu after %o data
  }
}
