// RUN: tressel-opt %s --tressel-verify-schedule -split-input-file -verify-diagnostics

// A race: nothing orders the two streams.
sched.program @race {
  %s0 = sched.stream compute on cpu 0
  %s1 = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0 size 64
  %x = sched.input "x" : tensor<16xf32>
  %y = sched.output "y" : tensor<16xf32>
  // expected-note @+1 {{the buffer}}
  %a = sched.buffer in %memory at 0 : tensor<16xf32>
  sched.step {
    // expected-note @+1 {{the other command}}
    %0 = sched.copy %x -> %a on %s0
    // expected-error @+1 {{on stream 's1' reads buffer 2 (arena 0, bytes 0 to 64) without waiting for step command 0}}
    %1 = sched.copy %a -> %y on %s1
  }
}

// -----

sched.program @read_before_write {
  %s0 = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0 size 64
  %y = sched.output "y" : tensor<16xf32>
  // expected-note @+1 {{the buffer}}
  %a = sched.buffer in %memory at 0 : tensor<16xf32>
  sched.step {
    // expected-error @+1 {{reads buffer 1 (arena 0, bytes 0 to 64), but nothing has written bytes 0 to 64}}
    %0 = sched.copy %a -> %y on %s0
  }
}

// -----

sched.program @unplanned {
  %s0 = sched.stream compute on cpu 0
  // expected-error @+1 {{has no size: memory is not planned yet}}
  %memory = sched.arena device on cpu 0
  sched.step {
  }
}
