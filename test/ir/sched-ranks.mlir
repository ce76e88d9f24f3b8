// RUN: tressel-opt %s | tressel-opt | FileCheck %s
// RUN: tressel-opt %s -emit-bytecode -o %t.mlirbc && tressel-opt %t.mlirbc | FileCheck %s
// RUN: tressel-opt %s --tressel-verify-schedule -o /dev/null
// One program for eight ranks: each sums its gradient over "data" and gathers rows over "tensor".

// CHECK-LABEL: sched.program @step ranks <data = 4, tensor = 2> in_flight 2 {
sched.program @step ranks #sched.mesh<data = 4, tensor = 2> in_flight 2 {
  %in = sched.stream copy_in on gpu 0
  %comm = sched.stream copy_out on gpu 0
  // CHECK: %replicas = sched.group %comm over ["data"]
  %replicas = sched.group %comm over ["data"]
  // CHECK: %shards = sched.group %comm over ["tensor"]
  %shards = sched.group %comm over ["tensor"]
  %all = sched.group %comm over ["data", "tensor"]
  %m = sched.arena device on gpu 0 size 512
  %x = sched.input "x" : tensor<64xf32>
  %y = sched.output "y" : tensor<32xf32>
  // The rank's own part of the input.
  // CHECK: %mine = sched.view %x plus "64*rank.data[0..3]" : tensor<16xf32>
  %mine = sched.view %x plus "64*rank.data[0..3]" : tensor<16xf32>
  // CHECK: %a = sched.buffer in %m at "64*rank.tensor[0..1] + 128" : tensor<16xf32>
  %a = sched.buffer in %m at "64*rank.tensor[0..1] + 128" : tensor<16xf32>
  %w = sched.buffer in %m at 256 : tensor<32xf32>
  sched.step {
    %c = sched.copy %mine -> %a on %in
    // CHECK: sched.collective all_reduce "w.grad" of %replicas(%a) -> %a on %comm after %{{.*}} data
    %r = sched.collective all_reduce "w.grad" of %replicas(%a) -> %a on %comm after %c data
    // CHECK: sched.collective all_gather "w" of %shards(%a) -> %w on %comm
    %g = sched.collective all_gather "w" of %shards(%a) -> %w on %comm
    // CHECK: sched.collective broadcast from 5 "b" of %all(%w) -> %w on %comm
    %b = sched.collective broadcast from 5 "b" of %all(%w) -> %w on %comm
    %o = sched.copy %w -> %y on %comm
  }
}

// The number of replicas is known when the program runs.
// CHECK-LABEL: sched.program @any ranks <data = "replicas[1..1024]"> {
sched.program @any ranks #sched.mesh<data = "replicas[1..1024]"> {
  %comm = sched.stream copy_out on gpu 0
  %replicas = sched.group %comm over ["data"]
  %m = sched.arena device on gpu 0 size 64
  %a = sched.buffer in %m at 0 : tensor<16xf32>
  sched.step {
    %f = sched.fill 0.0 : f32 -> %a on %comm
    %r = sched.collective all_reduce "w.grad" of %replicas(%a) -> %a on %comm
  }
}
