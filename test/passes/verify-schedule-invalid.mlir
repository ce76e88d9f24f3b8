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

// -----

// Members issue their collectives in different orders: each would wait for the other.
sched.program @orders {
  %g0 = sched.stream compute on gpu 0
  %g1 = sched.stream compute on gpu 1
  %pair = sched.group %g0, %g1
  %m0 = sched.arena device on gpu 0 size 128
  %m1 = sched.arena device on gpu 1 size 128
  %a0 = sched.buffer in %m0 at 0 : tensor<16xf32>
  %a1 = sched.buffer in %m1 at 0 : tensor<16xf32>
  sched.step {
    %f0 = sched.fill 0.0 : f32 -> %a0 on %g0
    %f1 = sched.fill 0.0 : f32 -> %a1 on %g1
    // expected-error @+1 {{is no part of collective 'one': each member has one, in their order, with nothing between}}
    %0 = sched.collective all_reduce "one" of %pair(%a0) -> %a0 on %g0
    // expected-error @+1 {{is no part of collective 'two'}}
    %1 = sched.collective all_reduce "two" of %pair(%a1) -> %a1 on %g1
    // expected-error @+1 {{is no part of collective 'two'}}
    %2 = sched.collective all_reduce "two" of %pair(%a0) -> %a0 on %g0
    // expected-error @+1 {{is no part of collective 'one'}}
    %3 = sched.collective all_reduce "one" of %pair(%a1) -> %a1 on %g1
  }
}

// -----

// A state that the next call reads while this one may still write it.
sched.program @overtaken in_flight 2 {
  %s0 = sched.stream compute on cpu 0
  %s1 = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<16xf32>
  %y = sched.output "y" : tensor<16xf32>
  // expected-note @+1 {{the buffer}}
  %m = sched.state mutable "m" : tensor<16xf32>
  sched.step {
    // expected-error @+1 {{on stream 's1' of an earlier call, which writes buffer 2 (state 0 'm', bytes 0 to 64)}}
    %0 = sched.copy %m -> %y on %s0
    // expected-note @+1 {{the other command}}
    %1 = sched.copy %x -> %m on %s1 after %0 war
  }
}

// -----

// Two communicators of the same two devices, in one order, but on streams of their own: gpu0 may begin with the one and gpu1 with the other.
sched.program @communicators {
  %g0 = sched.stream copy_out on gpu 0
  %g1 = sched.stream copy_out on gpu 1
  %h0 = sched.stream copy_in on gpu 0
  %h1 = sched.stream copy_in on gpu 1
  %pair = sched.group %g0, %g1
  %other = sched.group %h0, %h1
  %m0 = sched.arena device on gpu 0 size 128
  %m1 = sched.arena device on gpu 1 size 128
  %a0 = sched.buffer in %m0 at 0 : tensor<16xf32>
  %a1 = sched.buffer in %m1 at 0 : tensor<16xf32>
  %b0 = sched.buffer in %m0 at 64 : tensor<16xf32>
  %b1 = sched.buffer in %m1 at 64 : tensor<16xf32>
  sched.step {
    %f0 = sched.fill 0.0 : f32 -> %a0 on %g0
    %f1 = sched.fill 0.0 : f32 -> %a1 on %g1
    %e0 = sched.fill 0.0 : f32 -> %b0 on %h0
    %e1 = sched.fill 0.0 : f32 -> %b1 on %h1
    // expected-note @+1 {{the other command}}
    %0 = sched.collective all_reduce "one" of %pair(%a0) -> %a0 on %g0
    // expected-note @+1 {{the other command}}
    %1 = sched.collective all_reduce "one" of %pair(%a1) -> %a1 on %g1
    // expected-error @+1 {{runs collective 'two' in no order with step command 4}}
    %2 = sched.collective all_reduce "two" of %other(%b0) -> %b0 on %h0
    // expected-error @+1 {{Put them on one stream of gpu1, or let the later one wait for the earlier one there}}
    %3 = sched.collective all_reduce "two" of %other(%b1) -> %b1 on %h1
  }
}

// -----

// A flag of the rank's own decides whether it takes part.
sched.program @decides ranks #sched.mesh<data = 4> {
  %cpu = sched.stream compute on cpu 0
  %comm = sched.stream copy_out on gpu 0
  %replicas = sched.group %comm over ["data"]
  %m = sched.arena device on gpu 0 size 64
  %stop = sched.input "stop" : tensor<i1>
  %a = sched.buffer in %m at 0 : tensor<16xf32>
  sched.step {
    %f = sched.fill 0.0 : f32 -> %a on %comm
    // expected-error @+1 {{decides over collectives by a flag that may differ between ranks}}
    %b = sched.branch %stop on %cpu after %f data {
      %r = sched.collective all_reduce "w.grad" of %replicas(%a) -> %a on %comm
    } else {
    }
  }
}
