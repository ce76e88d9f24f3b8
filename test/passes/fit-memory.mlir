// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:%S/Inputs/small-memory.json --tressel-disable-pass=split-producers --tressel-verify-each -split-input-file | FileCheck %s
// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:%S/Inputs/small-memory.json --tressel-disable-pass=split-producers --tressel-stop-after=fit-memory -split-input-file | FileCheck %s --check-prefix=GRAPH

// Three tensors of 4096 bytes fit beside the parameters. What is read last is evicted first, and prefetched for its use.
// GRAPH-LABEL: func.func @main
// GRAPH-SAME: tressel.ordered
// GRAPH: %[[A:.*]] = tressel.launch @exp_0({{.*}}) {tressel.device = "gpu0"}
// GRAPH: %[[H:.*]] = tressel.to %[[A]] {device = "cpu"}
// GRAPH: %[[G:.*]] = tressel.to %[[H]] {device = "gpu0"}
// GRAPH-NOT: tressel.to %[[A]]
// GRAPH: tressel.launch @{{.*}}(%{{.*}}, %[[G]])
// CHECK-LABEL: sched.program @main
// CHECK: %pinned = sched.arena pinned on cpu 0
// CHECK: %gpu0.memory = sched.arena device on gpu 0 size 12288
// CHECK: sched.copy {{.*}} on %gpu0.out
// CHECK: sched.copy {{.*}} on %gpu0.in
func.func @main(%x: tensor<32x32xf32> {tressel.name = "x"}) -> (tensor<32x32xf32> {tressel.name = "y"}) {
  %a = tressel.exp %x {tressel.device = "gpu0"} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %b = tressel.matmul %a, %a {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = tressel.matmul %b, %b {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %d = tressel.matmul %c, %b {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %e = tressel.matmul %d, %c {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %f = tressel.matmul %e, %a {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %f : tensor<32x32xf32>
}

// -----

// Parameters of more than the memory are streamed in each call, from pinned memory.
// CHECK-LABEL: sched.program @main
// CHECK-NOT: sched.state derived {{.*}} on gpu 0
// CHECK: sched.state derived "derived.0" : tensor<32x32xf32> {sched.pinned}
// CHECK: sched.prepare
// CHECK-DAG: sched.copy %w0 -> %[[W0:.*]] on %cpu
// CHECK-DAG: sched.copy %w3 -> %[[W3:.*]] on %cpu
// CHECK: sched.step
// CHECK: sched.copy %[[W0]] -> {{.*}} on %gpu0.in
// CHECK: sched.launch
// CHECK: sched.copy %[[W3]] -> {{.*}} on %gpu0.in
func.func @main(%x: tensor<32x32xf32> {tressel.name = "x"}, %w0: tensor<32x32xf32> {tressel.state = "w0"}, %w1: tensor<32x32xf32> {tressel.state = "w1"},
                %w2: tensor<32x32xf32> {tressel.state = "w2"}, %w3: tensor<32x32xf32> {tressel.state = "w3"}) -> (tensor<32x32xf32> {tressel.name = "y"}) {
  %a = tressel.matmul %w0, %x {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %b = tressel.matmul %w1, %a {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = tressel.matmul %w2, %b {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %d = tressel.matmul %w3, %c {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %d : tensor<32x32xf32>
}

// -----

// What the device makes of parameters, and cannot keep, is kept on the host: made once, one after the other, and copied in each call.
// CHECK-LABEL: sched.program @main
// CHECK-DAG: sched.state derived "derived.0" : tensor
// CHECK: sched.prepare
// CHECK: sched.copy %w0
// CHECK: sched.launch @exp_0
// CHECK: sched.copy {{.*}} -> %derived.0
// CHECK: sched.copy %w1
// CHECK: sched.launch @exp_0
// CHECK: sched.step
// CHECK: sched.copy %derived.0 -> {{.*}} on %gpu0.in
func.func @main(%x: tensor<32x32xf32> {tressel.name = "x"}, %w0: tensor<32x32xf32> {tressel.state = "w0"}, %w1: tensor<32x32xf32> {tressel.state = "w1"},
                %w2: tensor<32x32xf32> {tressel.state = "w2"}) -> (tensor<32x32xf32> {tressel.name = "y"}) {
  %t0 = tressel.exp %w0 {tressel.device = "gpu0"} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %t1 = tressel.exp %w1 {tressel.device = "gpu0"} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %t2 = tressel.exp %w2 {tressel.device = "gpu0"} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %a = tressel.matmul %t0, %x {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %b = tressel.matmul %t1, %a {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = tressel.matmul %t2, %b {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %c : tensor<32x32xf32>
}
