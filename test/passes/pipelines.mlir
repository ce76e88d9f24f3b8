// RUN: tressel-opt %s --tressel-shard --tressel-lower-collectives --tressel-machine=sim:2gpu-pcie3 | FileCheck %s
// RUN: tressel-opt %s --tressel-pipeline --tressel-verify-each --tressel-stop-after=place-clusters --tressel-machine=sim:2gpu-pcie3 | FileCheck %s --check-prefix=PLACED
// RUN: tressel-opt %s --tressel-pipeline --tressel-verify-each --tressel-machine=sim:2gpu-pcie3 | FileCheck %s --check-prefix=SCHED
// Two layers on two accelerators, for two micro-batches: each has its stage, and adds up its gradient over both.

// What a stage computes of a micro-batch; the sum of the gradients goes on with what the micro-batch before has.
// CHECK: %[[X:.*]] = tressel.deal %{{.*}}, %{{.*}} over ["micro"]
// CHECK: tressel.matmul %[[X]], %{{.*}} {tressel.device = "ranks", tressel.stage = 0 : i64} : (tensor<4x16xf32>
// CHECK: tressel.sum %{{.*}} {tressel.device = "ranks", tressel.stage = 1 : i64}
// CHECK: %[[G:.*]] = tressel.matmul %{{.*}} {tressel.backward, tressel.device = "ranks", tressel.stage = 1 : i64} : (tensor<16x4xf32>
// CHECK: %[[ZERO:.*]] = tressel.full
// CHECK: %[[BEFORE:.*]] = tressel.carry %[[G]] from %[[ZERO]] by "sum" over ["micro"]
// CHECK: %[[SUM:.*]] = tressel.add %[[BEFORE]], %[[G]] {tressel.backward, tressel.device = "ranks", tressel.stage = 1 : i64}
// CHECK: %[[ALL:.*]] = tressel.carried %[[SUM]] of %[[BEFORE]] over ["micro"]
// The update is the stage's, as it reads the weight, which lies there.
// CHECK: tressel.sub %{{.*}}, %[[ALL]] {{{.*}}tressel.stage = 1 : i64}

// PLACED: %[[A0:.*]] = tressel.launch @matmul_0({{.*}}) {tressel.device = "gpu0", tressel.micro_batch = 0 : i64, tressel.stage = 0 : i64}
// PLACED: %[[A1:.*]] = tressel.launch @matmul_0({{.*}}) {tressel.device = "gpu0", tressel.micro_batch = 1 : i64, tressel.stage = 0 : i64}
// PLACED: tressel.launch @matmul_0(%[[A0]], {{.*}}) {tressel.device = "gpu1", tressel.micro_batch = 0 : i64, tressel.stage = 1 : i64}
// PLACED: tressel.launch @matmul_0(%[[A1]], {{.*}}) {tressel.device = "gpu1", tressel.micro_batch = 1 : i64, tressel.stage = 1 : i64}
// PLACED: %[[S0:.*]] = tressel.launch @add_1({{.*}}) {tressel.backward, tressel.device = "gpu1", tressel.micro_batch = 0 : i64
// PLACED: %[[S1:.*]] = tressel.launch @add_1(%[[S0]], {{.*}}) {tressel.backward, tressel.device = "gpu1", tressel.micro_batch = 1 : i64
// Both micro-batches have the update in common.
// PLACED: tressel.launch @sub_0({{.*}}) {tressel.backward, tressel.device = "gpu0", tressel.stage = 0 : i64}
// PLACED: tressel.launch @sub_0({{.*}}, %[[S1]]) {tressel.backward, tressel.device = "gpu1", tressel.stage = 1 : i64}

// The second accelerator has the first micro-batch forward and back before the second one, the first has both forward.
// SCHED: sched.launch @matmul_0(%{{.*}}, %w0) -> (%[[F0:.*]]) on %gpu0
// SCHED: sched.launch @matmul_0(%{{.*}}, %w0) -> (%[[F1:.*]]) on %gpu0
// SCHED: sched.launch @matmul_0(%{{.*}}, %w1) -> (%[[Y:.*]]) on %gpu1
// SCHED: sched.launch @matmul_0(%[[Y]], %w1) -> (%{{.*}}) on %gpu1
// SCHED: sched.launch @matmul_0(%{{.*}}, %w1) -> (%{{.*}}) on %gpu1
func.func @main(%x: tensor<8x16xf32> {tressel.name = "x", tressel.sharding = "micro, -"}, %w0: tensor<16x16xf32> {tressel.state = "w0", tressel.home = "gpu0"}, %w1: tensor<16x16xf32> {tressel.state = "w1", tressel.home = "gpu1"})
    -> (tensor<f32> {tressel.name = "loss"}, tensor<16x16xf32> {tressel.state = "w0", tressel.home = "gpu0"}, tensor<16x16xf32> {tressel.state = "w1", tressel.home = "gpu1"})
    attributes {tressel.mesh = "micro=2", tressel.pipeline = {axis = "micro", size = 2 : i64, order = "1f1b"}} {
  %0 = tressel.matmul %x, %w0 {tressel.stage = 0 : i64} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %1 = tressel.matmul %0, %w1 {tressel.stage = 1 : i64} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %2 = tressel.sum %1 : (tensor<8x16xf32>) -> tensor<f32>
  %3 = tressel.transpose %0 {tressel.stage = 1 : i64, tressel.backward} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %4 = tressel.matmul %3, %1 {tressel.stage = 1 : i64, tressel.backward} : (tensor<16x8xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  %5 = tressel.matmul %1, %w1 {tressel.stage = 1 : i64, tressel.backward} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %6 = tressel.transpose %x {tressel.stage = 0 : i64, tressel.backward} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %7 = tressel.matmul %6, %5 {tressel.stage = 0 : i64, tressel.backward} : (tensor<16x8xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  %8 = tressel.sub %w0, %7 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %9 = tressel.sub %w1, %4 : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %2, %8, %9 : tensor<f32>, tensor<16x16xf32>, tensor<16x16xf32>
}
