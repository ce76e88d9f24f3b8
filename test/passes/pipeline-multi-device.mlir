// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:2gpu-pcie3 --tressel-verify-each -split-input-file | FileCheck %s

// From annotations to a schedule: streams and memory of each device, parameters copied ahead, results computed apart and copied
// into the outputs directly.
// CHECK-LABEL: sched.program @main
// CHECK: %cpu = sched.stream compute on cpu 0
// CHECK: %gpu0 = sched.stream compute on gpu 0
// CHECK-NEXT: %gpu0.in = sched.stream copy_in on gpu 0
// CHECK-NEXT: %gpu0.out = sched.stream copy_out on gpu 0
// CHECK-NEXT: %gpu1 = sched.stream compute on gpu 1
// CHECK: %gpu0.memory = sched.arena device on gpu 0
// CHECK: %x = sched.input "x" pinned
// CHECK: %y = sched.output "y" :
// CHECK: sched.state derived "derived.0" on gpu 1
// CHECK: sched.prepare {
// CHECK: sched.copy %w -> %derived.0 on %gpu1.in
// CHECK: sched.step {
// CHECK-DAG: %[[X0:.*]] = sched.copy %x -> %[[B0:.*]] on %gpu0.in
// CHECK-DAG: %[[X1:.*]] = sched.copy %x -> %[[B1:.*]] on %gpu1.in
// CHECK-DAG: %[[C0:.*]] = sched.launch @matmul_0(%[[B0]], {{.*}}) -> (%[[R0:.*]]) on %gpu0 after %[[X0]] data
// CHECK-DAG: %[[C1:.*]] = sched.launch @matmul_0(%[[B1]], {{.*}}) -> (%[[R1:.*]]) on %gpu1 after %[[X1]] data
// CHECK-DAG: sched.copy %[[R0]] -> %y on %gpu0.out after %[[C0]] data
// CHECK-DAG: sched.copy %[[R1]] -> %z on %gpu1.out after %[[C1]] data
func.func @main(%x: tensor<16x16xf32> {tressel.name = "x", tressel.pinned}, %w: tensor<16x16xf32> {tressel.state = "w"})
    -> (tensor<16x16xf32> {tressel.name = "y"}, tensor<16x16xf32> {tressel.name = "z", tressel.pinned}) {
  %0 = tressel.matmul %x, %w {tressel.device = "gpu0"} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = tressel.to %x {device = "gpu1"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %2 = tressel.matmul %1, %w : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %0, %2 : tensor<16x16xf32>, tensor<16x16xf32>
}

// -----

// Ops that would be one kernel stay apart where they are annotated with different devices; what is not annotated joins either.
// CHECK: tressel.kernel @exp_sin_0
// CHECK: tressel.kernel @cos_0
// CHECK-LABEL: sched.program @main
// CHECK: sched.launch @exp_sin_0({{.*}}) -> ({{.*}}) on %gpu0
// CHECK: sched.copy {{.*}} on %gpu0.out
// CHECK: sched.launch @cos_0({{.*}}) -> ({{.*}}) on %gpu1
func.func @main(%x: tensor<64xf32> {tressel.name = "x"}) -> (tensor<64xf32> {tressel.name = "y"}) {
  %0 = tressel.exp %x {tressel.device = "gpu0"} : (tensor<64xf32>) -> tensor<64xf32>
  %1 = tressel.sin %0 : (tensor<64xf32>) -> tensor<64xf32>
  %2 = tressel.cos %1 {tressel.device = "gpu1"} : (tensor<64xf32>) -> tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

// A loop on an accelerator: its body's commands, copies and memory are there. A branch that is not annotated stays on the host, with
// what it needs in pinned memory. A state's next value comes back to the host.
// CHECK-LABEL: sched.program @main
// CHECK: %pinned = sched.arena pinned on cpu 0
// CHECK: %gpu0.memory = sched.arena device on gpu 0
// CHECK: %s = sched.state mutable "s"
// CHECK: sched.step {
// CHECK: sched.loop 3 times {{.*}}on %gpu0
// CHECK: sched.launch @{{.*}} on %gpu0
// CHECK-DAG: sched.copy {{.*}} -> %s on %gpu0.out
// CHECK-DAG: %[[R:.*]] = sched.copy {{.*}} -> %t5 on %gpu0.out
// CHECK-DAG: sched.branch %p on %cpu after %[[R]] data
// CHECK-DAG: sched.launch @{{.*}} -> (%y) on %cpu
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}, %p: tensor<i1> {tressel.name = "p"}, %s: tensor<4xf32> {tressel.state = "s"})
    -> (tensor<4xf32> {tressel.name = "y"}, tensor<4xf32> {tressel.state = "s"}) {
  %r, %all = tressel.scan 3 carries(%x : tensor<4xf32>) with(%s : tensor<4xf32>) -> tensor<4xf32>, tensor<3x4xf32> attributes {tressel.device = "gpu0"} {
  ^bb0(%i: tensor<i64>, %a: tensor<4xf32>, %k: tensor<4xf32>):
    %c = tressel.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %0 = tressel.add %a, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = tressel.mul %0, %k : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  %n = tressel.sum %all {axis = array<i64: 0>, tressel.device = "gpu0"} : (tensor<3x4xf32>) -> tensor<4xf32>
  %b = tressel.cond %p : tensor<i1> with(%r : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %0 = tressel.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %0 : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    tressel.yield %a : tensor<4xf32>
  }
  return %b, %n : tensor<4xf32>, tensor<4xf32>
}
