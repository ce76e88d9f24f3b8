// RUN: tressel-opt %s --tressel-pipeline --tressel-verify-each --tressel-machine=sim:2gpu-pcie3 -split-input-file | FileCheck %s
// What ranks do together, interpreted for all of them after each pass.
// CHECK: sched.collective all_gather
// CHECK: sched.collective reduce_scatter
// CHECK: sched.collective reduce_scatter

// Columns are gathered as rows, and brought into order. A whole value is cut by the rank's place.
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
func.func @main(%x: tensor<64x8xf32> {tressel.name = "x", tressel.sharding = "data, -"}, %w: tensor<8x16xf32> {tressel.state = "w", tressel.home = "ranks", tressel.sharding = "data, -"})
    -> (tensor<8x16xf32> {tressel.state = "w", tressel.home = "ranks"}) attributes {tressel.mesh = "data=2", tressel.rank_program} {
  %0 = tressel.matmul %x, %w : (tensor<64x8xf32>, tensor<8x16xf32>) -> tensor<64x16xf32>
  %1 = tressel.transpose %x : (tensor<64x8xf32>) -> tensor<8x64xf32>
  %2 = tressel.matmul %1, %0 : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  %3 = tressel.sub %w, %2 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}
// -----
func.func @main(%x: tensor<64x8xf32> {tressel.name = "x", tressel.sharding = "data, -"}, %y: tensor<64x16xf32> {tressel.name = "y", tressel.sharding = "data, -"},
                %w: tensor<8x16xf32> {tressel.state = "w", tressel.home = "ranks", tressel.sharding = "-, data"})
    -> (tensor<8x16xf32> {tressel.state = "w", tressel.home = "ranks"}) attributes {tressel.mesh = "data=2", tressel.rank_program} {
  %1 = tressel.transpose %x : (tensor<64x8xf32>) -> tensor<8x64xf32>
  %2 = tressel.matmul %1, %y : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  %3 = tressel.sub %w, %2 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}
