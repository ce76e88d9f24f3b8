// RUN: tressel-opt %s --tressel-shard --tressel-machine=sim:4gpu-pcie3 -split-input-file | FileCheck %s

// Each rank computes mean and variance of its part; both are exchanged at once.
// CHECK-LABEL: func.func @main
// CHECK: %[[OWN:.*]] = tressel.reshape %{{.*}} {shape = array<i64: 1, 4, 3>, tressel.device = "ranks"} : (tensor<4x3xf32>) -> tensor<1x4x3xf32>
// CHECK: tressel.mean %[[OWN]] {axis = array<i64: 1>, keepdims = true, tressel.device = "ranks"}
// CHECK: %[[STACK:.*]] = tressel.concat {{.*}} {axis = 1 : i64, tressel.device = "ranks"} : (tensor<1x1x3xf32>, tensor<1x1x3xf32>) -> tensor<1x2x3xf32>
// CHECK: tressel.all_gather %[[STACK]] along 0 over ["data"] {tressel.device = "ranks"} : tensor<1x2x3xf32> -> tensor<2x2x3xf32>
// CHECK-NOT: tressel.all_reduce
// CHECK-NOT: tressel.all_gather
func.func @main(%x: tensor<8x3xf32> {tressel.name = "x", tressel.sharding = "data, -"}) -> (tensor<8x3xf32> {tressel.name = "y"})
    attributes {tressel.mesh = "data=2"} {
  %0:2 = tressel.moments %x {axis = array<i64: 0>, keepdims = true} : (tensor<8x3xf32>) -> (tensor<1x3xf32>, tensor<1x3xf32>)
  %1 = tressel.sub %x, %0#0 : (tensor<8x3xf32>, tensor<1x3xf32>) -> tensor<8x3xf32>
  %2 = tressel.mul %1, %0#1 : (tensor<8x3xf32>, tensor<1x3xf32>) -> tensor<8x3xf32>
  return %2 : tensor<8x3xf32>
}

// -----

// Parts of different sizes do not say alike much of the whole: sums of them are exchanged, one after the other.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: tressel.all_reduce
// CHECK-NOT: tressel.all_gather
func.func @main(%x: tensor<9x3xf32> {tressel.name = "x", tressel.sharding = "data, -"}) -> (tensor<9x3xf32> {tressel.name = "y"})
    attributes {tressel.mesh = "data=2"} {
  %0:2 = tressel.moments %x {axis = array<i64: 0>, keepdims = true} : (tensor<9x3xf32>) -> (tensor<1x3xf32>, tensor<1x3xf32>)
  %1 = tressel.sub %x, %0#0 : (tensor<9x3xf32>, tensor<1x3xf32>) -> tensor<9x3xf32>
  %2 = tressel.mul %1, %0#1 : (tensor<9x3xf32>, tensor<1x3xf32>) -> tensor<9x3xf32>
  return %2 : tensor<9x3xf32>
}

// -----

// In f16 the parts' means would lose what their differences say of the variance: they are exchanged in f32.
// CHECK-LABEL: func.func @main
// CHECK: tressel.all_gather {{.*}} : tensor<1x2x3xf32> -> tensor<2x2x3xf32>
// CHECK-COUNT-2: tressel.cast {{.*}} {dtype = f16
func.func @main(%x: tensor<8x3xf16> {tressel.name = "x", tressel.sharding = "data, -"}) -> (tensor<3xf16> {tressel.name = "y"}, tensor<3xf16> {tressel.name = "z"})
    attributes {tressel.mesh = "data=2"} {
  %0:2 = tressel.moments %x {axis = array<i64: 0>} : (tensor<8x3xf16>) -> (tensor<3xf16>, tensor<3xf16>)
  return %0#0, %0#1 : tensor<3xf16>, tensor<3xf16>
}

// -----

// A tensor has no more than 8 dimensions, so none of 8 can be split.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tressel.all_gather
// CHECK: tressel.collect
func.func @main(%x: tensor<8x1x1x1x1x1x1x3xf32> {tressel.name = "x", tressel.sharding = "data, -, -, -, -, -, -, -"})
    -> (tensor<3xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=2"} {
  %0:2 = tressel.moments %x {axis = array<i64: 0, 1, 2, 3, 4, 5, 6>} : (tensor<8x1x1x1x1x1x1x3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  return %0#1 : tensor<3xf32>
}
