// RUN: tressel-opt %s --tressel-form-graphs | FileCheck %s

tressel.kernel @add_0(%a: tensor<16xf32>, %b: tensor<16xf32>) -> tensor<16xf32>
    attributes {params = "{}", provider = "cuda", target = #tressel.target<gpu>} {
  %0 = tressel.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  tressel.yield %0 : tensor<16xf32>
}
tressel.kernel @exp_0(%a: tensor<16xf32>) -> tensor<16xf32> attributes {provider = "generated"} {
  %0 = tressel.exp %a : (tensor<16xf32>) -> tensor<16xf32>
  tressel.yield %0 : tensor<16xf32>
}

// Copies and kernels of the accelerator are nodes of one graph, until one waits for the host's work, which waits for them.
// CHECK-LABEL: sched.program @main
// CHECK: sched.copy %x -> %a on %in {sched.graph = 0 : i64}
// CHECK: sched.launch @add_0(%a, %a) -> (%b) on %gpu after %{{.*}} data {sched.graph = 0 : i64}
// CHECK: sched.copy %b -> %h on %out after %{{.*}} data {sched.graph = 0 : i64}
// CHECK: sched.launch @exp_0(%h) -> (%k) on %cpu after %{{.*}} data{{$}}
// CHECK: sched.launch @add_0(%a, %b) -> (%c) on %gpu {sched.graph = 0 : i64}
// CHECK: sched.copy %k -> %d on %in after %{{.*}} data {sched.graph = 1 : i64}
// CHECK: sched.launch @add_0(%c, %d) -> (%b2) on %gpu after %{{.*}} data {sched.graph = 1 : i64}
sched.program @main {
  %cpu = sched.stream compute on cpu 0
  %gpu = sched.stream compute on gpu 0
  %in = sched.stream copy_in on gpu 0
  %out = sched.stream copy_out on gpu 0
  %memory = sched.arena device on gpu 0 size 320
  %host = sched.arena pinned on cpu 0 size 128
  %x = sched.input "x" : tensor<16xf32>
  %y = sched.output "y" : tensor<16xf32>
  %a = sched.buffer in %memory at 0 : tensor<16xf32>
  %b = sched.buffer in %memory at 64 : tensor<16xf32>
  %c = sched.buffer in %memory at 128 : tensor<16xf32>
  %d = sched.buffer in %memory at 192 : tensor<16xf32>
  %b2 = sched.buffer in %memory at 256 : tensor<16xf32>
  %h = sched.buffer in %host at 0 : tensor<16xf32>
  %k = sched.buffer in %host at 64 : tensor<16xf32>
  sched.step {
    %0 = sched.copy %x -> %a on %in
    %1 = sched.launch @add_0(%a, %a) -> (%b) on %gpu after %0 data
    %2 = sched.copy %b -> %h on %out after %1 data
    %3 = sched.launch @exp_0(%h) -> (%k) on %cpu after %2 data
    %4 = sched.launch @add_0(%a, %b) -> (%c) on %gpu
    %5 = sched.copy %k -> %d on %in after %3 data
    %6 = sched.launch @add_0(%c, %d) -> (%b2) on %gpu after %5 data
    %7 = sched.copy %b2 -> %y on %out after %6 data
  }
}
