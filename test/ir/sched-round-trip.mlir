// RUN: tressel-opt %s | tressel-opt | FileCheck %s
// Names of streams, arenas and buffers are those of the results, and survive printing and parsing.

tressel.kernel @relu_0(%a: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated", range = 4 : i64} {
  %0 = tressel.relu %a : (tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}

// CHECK-LABEL: sched.program @main peak 192 at_least 192 {
sched.program @main peak 192 at_least 192 {
  // CHECK-NEXT: %cpu = sched.stream compute on cpu 0
  %cpu = sched.stream compute on cpu 0
  // CHECK-NEXT: %gpu1_in = sched.stream copy_in on gpu 1
  %gpu1_in = sched.stream copy_in on gpu 1
  // CHECK-NEXT: %lane_of_the_loader = sched.stream lane on cpu 0 named "lane of the loader"
  %lane = sched.stream lane on cpu 0 named "lane of the loader"
  // CHECK-NEXT: %memory = sched.arena device on cpu 0 size 256
  %memory = sched.arena device on cpu 0 size 256
  // CHECK-NEXT: %staging = sched.arena pinned on cpu 0
  %staging = sched.arena pinned on cpu 0
  // CHECK-NEXT: %x = sched.input "x" : tensor<4xf32>
  %x = sched.input "x" : tensor<4xf32>
  // CHECK-NEXT: %p = sched.input "p" pinned : tensor<4xf32>
  %p = sched.input "p" pinned : tensor<4xf32>
  // CHECK-NEXT: %there = sched.input "there" on gpu 1 : tensor<4xf32>
  %there = sched.input "there" on gpu 1 : tensor<4xf32>
  // CHECK-NEXT: %back = sched.output "back" on gpu 1 : tensor<4xf32>
  %back = sched.output "back" on gpu 1 : tensor<4xf32>
  // CHECK-NEXT: %moment = sched.state mutable "moment" on gpu 1 : tensor<4xf32>
  %moment = sched.state mutable "moment" on gpu 1 : tensor<4xf32>
  // CHECK-NEXT: %y = sched.output "y" : tensor<4xf32>
  %y = sched.output "y" : tensor<4xf32>
  // CHECK-NEXT: %w = sched.state parameter "w" : tensor<4xf32>
  %w = sched.state parameter "w" : tensor<4xf32>
  // CHECK-NEXT: %m = sched.state mutable "m" : tensor<2x2xf32>
  %m = sched.state mutable "m" : tensor<2x2xf32>
  // CHECK-NEXT: %d = sched.state derived "d" : tensor<4xf32>
  %d = sched.state derived "d" : tensor<4xf32>
  // CHECK-NEXT: %on_gpu = sched.state derived "on_gpu" on gpu 1 : tensor<4xf32>
  %on_gpu = sched.state derived "on_gpu" on gpu 1 : tensor<4xf32>
  // CHECK-NEXT: %constant = sched.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
  %c = sched.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  // CHECK-NEXT: %hidden = sched.buffer in %memory at 128 : tensor<16xf32>
  %hidden = sched.buffer in %memory at 128 : tensor<16xf32>
  // CHECK-NEXT: %free = sched.buffer in %staging : tensor<4xf32>
  %free = sched.buffer in %staging : tensor<4xf32>
  // CHECK-NEXT: %part = sched.view %hidden plus 16 : tensor<4xf32>
  %part = sched.view %hidden plus 16 : tensor<4xf32>
  // CHECK-NEXT: %flat = sched.view %m : tensor<4xf32>
  %flat = sched.view %m : tensor<4xf32>
  // CHECK-NEXT: sched.prepare {
  sched.prepare {
    // CHECK-NEXT: %0 = sched.launch @relu_0(%w) -> (%d) on %cpu
    %0 = sched.launch @relu_0(%w) -> (%d) on %cpu
  }
  // CHECK: sched.step {
  sched.step {
    // CHECK-NEXT: %0 = sched.launch @relu_0(%x) -> (%part) on %cpu
    %0 = sched.launch @relu_0(%x) -> (%part) on %cpu
    // CHECK-NEXT: %1 = sched.copy %part -> %flat on %gpu1_in after %0 data
    %1 = sched.copy %part -> %flat on %gpu1_in after %0 data
    // CHECK-NEXT: %2 = sched.fill 0.000000e+00 : f32 -> %part on %lane_of_the_loader after %1 war, %0 pace
    %2 = sched.fill 0.0 : f32 -> %part on %lane after %1 war, %0 pace
    // CHECK-NEXT: %3 = sched.copy %constant -> %y on %cpu
    %3 = sched.copy %c -> %y on %cpu
  }
}
