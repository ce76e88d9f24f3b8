// RUN: tressel-opt %s --tressel-shard --tressel-machine=sim:4gpu-pcie3 -split-input-file | FileCheck %s

// The batch is cut, weights are whole on each rank. What each rank has of the gradient is summed by the program, as it alone reads it.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<32x8xf32> {tressel.name = "x"}
// CHECK-DAG: %[[FIRST:.*]] = tressel.slice %[[X]] {limits = array<i64: 16, 8>, starts = array<i64: 0, 0>}
// CHECK-DAG: %[[SECOND:.*]] = tressel.slice %[[X]] {limits = array<i64: 32, 8>, starts = array<i64: 16, 0>}
// CHECK: %[[OWN:.*]] = tressel.deal %[[FIRST]], %[[SECOND]] over ["data"] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
// CHECK: %[[W:.*]] = tressel.deal %{{.*}} over [] : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK: %[[Y:.*]] = tressel.matmul %[[OWN]], %[[W]] {tressel.device = "ranks"} : (tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
// CHECK: %[[T:.*]] = tressel.transpose %[[OWN]] {tressel.device = "ranks"}
// CHECK: %[[G:.*]] = tressel.matmul %[[T]], %[[Y]] {tressel.device = "ranks"}
// CHECK: %[[GS:.*]]:2 = tressel.collect %[[G]] over ["data"] : tensor<8x4xf32> -> tensor<8x4xf32>, tensor<8x4xf32>
// CHECK: %[[SUM:.*]] = tressel.add %[[GS]]#0, %[[GS]]#1 :
// CHECK: tressel.sub %{{.*}}, %[[SUM]] :
func.func @main(%x: tensor<32x8xf32> {tressel.name = "x", tressel.sharding = "data, -"}, %w: tensor<8x4xf32> {tressel.state = "w"})
    -> (tensor<8x4xf32> {tressel.state = "w"}) attributes {tressel.mesh = "data=2"} {
  %0 = tressel.matmul %x, %w : (tensor<32x8xf32>, tensor<8x4xf32>) -> tensor<32x4xf32>
  %1 = tressel.transpose %x : (tensor<32x8xf32>) -> tensor<8x32xf32>
  %2 = tressel.matmul %1, %0 : (tensor<8x32xf32>, tensor<32x4xf32>) -> tensor<8x4xf32>
  %3 = tressel.sub %w, %2 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}

// -----

// Ranks that go on with a sum combine it. A mean of parts is a sum, divided afterwards.
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = tressel.sum %{{.*}} {axis = array<i64: 0>, keepdims = true, tressel.device = "ranks"} : (tensor<4x8xf32>) -> tensor<1x8xf32>
// CHECK: %[[R:.*]] = tressel.all_reduce %[[S]] by "sum" over ["data"] {tressel.device = "ranks"} : tensor<1x8xf32>
// CHECK: %[[N:.*]] = tressel.full {{.*}}value = 8.0
// CHECK: %[[M:.*]] = tressel.div %[[R]], %[[N]] {tressel.device = "ranks"}
// CHECK: tressel.sub %{{.*}}, %[[M]] {tressel.device = "ranks"} : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
// CHECK: tressel.concat
func.func @main(%x: tensor<8x8xf32> {tressel.name = "x", tressel.sharding = "data, -"}) -> (tensor<8x8xf32> {tressel.name = "y"})
    attributes {tressel.mesh = "data=2"} {
  %0 = tressel.mean %x {axis = array<i64: 0>, keepdims = true} : (tensor<8x8xf32>) -> tensor<1x8xf32>
  %1 = tressel.sub %x, %0 : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// Within a layer: a matrix cut by columns, then one by rows; the sum of the second is combined once.
// CHECK-LABEL: func.func @main
// CHECK: tressel.matmul {{.*}} {tressel.device = "ranks"} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK: tressel.relu {{.*}} {tressel.device = "ranks"}
// CHECK: %[[P:.*]] = tressel.matmul {{.*}} {tressel.device = "ranks"} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK: tressel.collect %[[P]] over ["model"]
func.func @main(%x: tensor<4x8xf32> {tressel.name = "x"}, %a: tensor<8x16xf32> {tressel.state = "a", tressel.sharding = "-, model"},
                %b: tensor<16x8xf32> {tressel.state = "b", tressel.sharding = "model, -"}) -> (tensor<4x8xf32> {tressel.name = "y"})
    attributes {tressel.mesh = "model=2"} {
  %0 = tressel.matmul %x, %a : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %1 = tressel.relu %0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %2 = tressel.matmul %1, %b : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// Seven rows on two ranks: four and three. Random numbers are those of the whole, from the rank's first row on.
// CHECK-LABEL: func.func @main
// CHECK-DAG: tressel.deal %{{.*}}, %{{.*}} over ["data"] : (tensor<4x2xf32>, tensor<3x2xf32>) -> tensor<?x2xf32, #tressel.dims<"-rank.data[0..1] + 4", 2>>
// CHECK-DAG: tressel.random_uniform %{{.*}} {first = #tressel.size<"8*rank.data[0..1]">, shape = #tressel.dims<"-rank.data[0..1] + 4", 2>, tressel.device = "ranks"}
func.func @main(%x: tensor<7x2xf32> {tressel.name = "x", tressel.sharding = "data, -"}, %seed: tensor<i64> {tressel.name = "seed"})
    -> (tensor<7x2xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=2"} {
  %0 = tressel.random_uniform %seed {shape = array<i64: 7, 2>} : (tensor<i64>) -> tensor<7x2xf32>
  %1 = tressel.mul %x, %0 : (tensor<7x2xf32>, tensor<7x2xf32>) -> tensor<7x2xf32>
  return %1 : tensor<7x2xf32>
}

// -----

// An annotation says where a value is cut, and is gone afterwards; so it is without a mesh.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tressel.shard
// CHECK: tressel.exp {{.*}} {tressel.device = "ranks"} : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK-NOT: tressel.shard
func.func @main(%x: tensor<4x8xf32> {tressel.name = "x"}) -> (tensor<4x8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=2"} {
  %0 = tressel.shard %x {axes = "data, -"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = tressel.exp %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-NEXT: tressel.exp %{{[a-z0-9]+}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @main(%x: tensor<4x8xf32> {tressel.name = "x"}) -> (tensor<4x8xf32> {tressel.name = "y"}) {
  %0 = tressel.shard %x {axes = "data, -"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = tressel.exp %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
