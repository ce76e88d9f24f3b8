// RUN: tressel-opt %s --tressel-shard --tressel-lower-collectives --tressel-machine=sim:2gpu-pcie3 -split-input-file | FileCheck %s
// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:2gpu-pcie3 -split-input-file | FileCheck %s --check-prefix=SCHED
// The program of one rank: its arguments and results are parts, and what ranks do together stays one op, for any number of them.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<32x8xf32> {tressel.home = "ranks", tressel.name = "x", tressel.on_host, tressel.sharding = "data, -"}
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8x4xf32> {tressel.home = "ranks", tressel.sharding = "-, -", tressel.state = "w"}
// CHECK-SAME: -> (tensor<f32> {{.*}}, tensor<32x4xf32> {{.*}}tressel.sharding = "data, -"}, tensor<8x4xf32>
// CHECK-SAME: tressel.rank_program
// CHECK: %[[Y:.*]] = tressel.matmul %[[X]], %[[W]] {tressel.device = "ranks"} : (tensor<32x8xf32>, tensor<8x4xf32>) -> tensor<32x4xf32>
// CHECK: tressel.concat
// CHECK: %[[ALL:.*]] = tressel.all_reduce %{{.*}} by "sum" over ["data"]
// CHECK-NOT: tressel.deal
// CHECK-NOT: tressel.collect
// SCHED: sched.program @main ranks <data = 1024>
// SCHED: %[[COMM:.*]] = sched.stream communication on gpu 0
// SCHED: %[[GROUP:.*]] = sched.group %[[COMM]] over ["data"]
// SCHED: %x = sched.input "x" : tensor<32x8xf32>
// SCHED: %w = sched.state mutable "w" on gpu 0 : tensor<8x4xf32>
// SCHED: %[[R:.*]] = sched.collective all_reduce "reduce.0" of %[[GROUP]](%{{.*}}) -> %{{.*}} on %[[COMM]] after
// SCHED: sched.launch @sub_0(%w, %{{.*}}) -> (%w) on %gpu0 after %[[R]] data
func.func @main(%x: tensor<32768x8xf32> {tressel.name = "x", tressel.sharding = "data, -"}, %w: tensor<8x4xf32> {tressel.state = "w", tressel.home = "ranks"})
    -> (tensor<f32> {tressel.name = "loss"}, tensor<32768x4xf32> {tressel.name = "y"}, tensor<8x4xf32> {tressel.state = "w", tressel.home = "ranks"})
    attributes {tressel.mesh = "data=1024", tressel.rank_program} {
  %0 = tressel.matmul %x, %w : (tensor<32768x8xf32>, tensor<8x4xf32>) -> tensor<32768x4xf32>
  %1 = tressel.transpose %x : (tensor<32768x8xf32>) -> tensor<8x32768xf32>
  %2 = tressel.matmul %1, %0 : (tensor<8x32768xf32>, tensor<32768x4xf32>) -> tensor<8x4xf32>
  %3 = tressel.sub %w, %2 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = tressel.sum %0 : (tensor<32768x4xf32>) -> tensor<f32>
  return %4, %0, %3 : tensor<f32>, tensor<32768x4xf32>, tensor<8x4xf32>
}

// -----

// Columns are gathered as rows, and brought into order. A whole value is cut by the rank's place.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = tressel.all_gather %{{.*}} along 0 over ["model"] {tressel.device = "ranks"} : tensor<6x4xf32> -> tensor<24x4xf32>
// CHECK: %[[B:.*]] = tressel.reshape %[[A]] {shape = array<i64: 4, 6, 4>
// CHECK: %[[C:.*]] = tressel.transpose %[[B]] {permutation = array<i64: 1, 0, 2>
// CHECK: tressel.reshape %[[C]] {shape = array<i64: 6, 16>
// CHECK: tressel.slice {{.*}} {limits = #tressel.dims<"rank.model[0..3] + 1", 4>, starts = #tressel.dims<"rank.model[0..3]", 0>
// SCHED: sched.program @main ranks <model = 4>
// SCHED: sched.collective all_gather "gather.0"
func.func @main(%x: tensor<6x16xf32> {tressel.name = "x", tressel.sharding = "-, model"}, %y: tensor<16xf32> {tressel.name = "y"})
    -> (tensor<6xf32> {tressel.name = "a"}, tensor<16xf32> {tressel.name = "b"}) attributes {tressel.mesh = "model=4", tressel.rank_program} {
  %0 = tressel.shard %x {axes = "-, -"} : (tensor<6x16xf32>) -> tensor<6x16xf32>
  %1 = tressel.argmax %0 {axis = 1 : i64} : (tensor<6x16xf32>) -> tensor<6xi64>
  %2 = tressel.cast %1 {dtype = f32} : (tensor<6xi64>) -> tensor<6xf32>
  %3 = tressel.shard %y {axes = "model"} : (tensor<16xf32>) -> tensor<16xf32>
  %4 = tressel.exp %3 : (tensor<16xf32>) -> tensor<16xf32>
  return %2, %4 : tensor<6xf32>, tensor<16xf32>
}

// -----

// A gradient of a weight in parts: each rank gets its part of the sum. Parts that do not lie behind each other are brought there.
// CHECK-LABEL: func.func @main
// CHECK: tressel.all_gather %{{.*}} along 0 over ["data"] {tressel.device = "ranks"} : tensor<4x16xf32> -> tensor<8x16xf32>
// CHECK: tressel.reduce_scatter %{{.*}} by "sum" along 0 over ["data"] {tressel.device = "ranks"} : tensor<8x16xf32> -> tensor<4x16xf32>
// SCHED: sched.program @main ranks <data = 2>
// SCHED: sched.collective reduce_scatter "reduce.1"
func.func @main(%x: tensor<64x8xf32> {tressel.name = "x", tressel.sharding = "data, -"}, %w: tensor<8x16xf32> {tressel.state = "w", tressel.home = "ranks", tressel.sharding = "data, -"})
    -> (tensor<8x16xf32> {tressel.state = "w", tressel.home = "ranks"}) attributes {tressel.mesh = "data=2", tressel.rank_program} {
  %0 = tressel.matmul %x, %w : (tensor<64x8xf32>, tensor<8x16xf32>) -> tensor<64x16xf32>
  %1 = tressel.transpose %x : (tensor<64x8xf32>) -> tensor<8x64xf32>
  %2 = tressel.matmul %1, %0 : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  %3 = tressel.sub %w, %2 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = tressel.reshape %{{.*}} {shape = array<i64: 8, 2, 8>
// CHECK: %[[B:.*]] = tressel.transpose %[[A]] {permutation = array<i64: 1, 0, 2>
// CHECK: %[[C:.*]] = tressel.reshape %[[B]] {shape = array<i64: 16, 8>
// CHECK: tressel.reduce_scatter %[[C]] by "sum" along 0 over ["data"] {tressel.device = "ranks"} : tensor<16x8xf32> -> tensor<8x8xf32>
func.func @main(%x: tensor<64x8xf32> {tressel.name = "x", tressel.sharding = "data, -"}, %y: tensor<64x16xf32> {tressel.name = "y", tressel.sharding = "data, -"},
                %w: tensor<8x16xf32> {tressel.state = "w", tressel.home = "ranks", tressel.sharding = "-, data"})
    -> (tensor<8x16xf32> {tressel.state = "w", tressel.home = "ranks"}) attributes {tressel.mesh = "data=2", tressel.rank_program} {
  %1 = tressel.transpose %x : (tensor<64x8xf32>) -> tensor<8x64xf32>
  %2 = tressel.matmul %1, %y : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  %3 = tressel.sub %w, %2 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}
