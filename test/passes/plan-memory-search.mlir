// RUN: tressel-opt %s --tressel-plan-memory | FileCheck %s

tressel.kernel @flip_0(%a: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {provider = "generated"} {
  %0 = tressel.transpose %a {permutation = array<i64: 1, 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  tressel.yield %0 : tensor<8x8xf32>
}
tressel.kernel @exp_0(%a: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> attributes {provider = "generated"} {
  %0 = tressel.exp %a : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  tressel.yield %0 : tensor<2x8x8xf32>
}
tressel.kernel @add_0(%a: tensor<2x8x8xf32>, %b: tensor<8x8xf32>) -> tensor<2x8x8xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<2x8x8xf32>, tensor<8x8xf32>) -> tensor<2x8x8xf32>
  tressel.yield %0 : tensor<2x8x8xf32>
}

// Two small buffers, one behind the other in time, and two large ones beside them. By size, and by time, the small ones
// share their bytes or lie in the middle: the second large one then finds no gap. They have to lie at different ends.
// CHECK: sched.program @main peak 768 at_least 768 {
sched.program @main {
  %cpu = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0
  %x = sched.input "x" : tensor<8x8xf32>
  %z = sched.input "z" : tensor<2x8x8xf32>
  %y0 = sched.output "y0" : tensor<2x8x8xf32>
  %y1 = sched.output "y1" : tensor<2x8x8xf32>
  %early = sched.buffer in %memory : tensor<8x8xf32>
  %second = sched.buffer in %memory : tensor<2x8x8xf32>
  %first = sched.buffer in %memory : tensor<2x8x8xf32>
  %late = sched.buffer in %memory : tensor<8x8xf32>
  sched.step {
    %0 = sched.launch @flip_0(%x) -> (%early) on %cpu
    %1 = sched.launch @exp_0(%z) -> (%first) on %cpu
    %2 = sched.launch @exp_0(%first) -> (%y0) on %cpu
    %3 = sched.launch @flip_0(%early) -> (%late) on %cpu
    %4 = sched.launch @add_0(%z, %late) -> (%second) on %cpu
    %5 = sched.launch @exp_0(%second) -> (%y1) on %cpu
  }
}
