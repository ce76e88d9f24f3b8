// RUN: tressel-opt %s -verify-diagnostics -split-input-file

// Views, movement and indexing: each rule of docs/ops.md broken once.

func.func @reshape_c1_two(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{reshape: (C1) sizes must not be negative, but for one -1: f32[2, 3]}}
  %0 = tressel.reshape %x {shape = array<i64: -1, -1>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @reshape_c1_rank(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{reshape: (C1) more than 8 dimensions: f32[2, 3]}}
  %0 = tressel.reshape %x {shape = array<i64: 1, 1, 1, 1, 1, 1, 1, 1, 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @shard_c1(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{shard: (C1) names 1 dimensions of 2: f32[2, 3]}}
  %0 = tressel.shard %x {axes = "data"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----
func.func @reshape_c2(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{reshape: (C2) the number of elements would change to [7]: f32[2, 3]}}
  %0 = tressel.reshape %x {shape = array<i64: 7>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @reshape_c2_open(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{reshape: (C2) the number of elements would change to [4, ?]: f32[2, 3]}}
  %0 = tressel.reshape %x {shape = array<i64: 4, -1>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @expand_dims_c1(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{expand_dims: (C1) axis is not a dimension of the result: f32[2, 3]}}
  %0 = tressel.expand_dims %x {axis = 3 : i64} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @expand_dims_c2(%x: tensor<1x1x1x1x1x1x1x1xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{expand_dims: (C2) the result would have more than 8 dimensions: f32[1, 1, 1, 1, 1, 1, 1, 1]}}
  %0 = tressel.expand_dims %x : (tensor<1x1x1x1x1x1x1x1xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @squeeze_c1(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{squeeze: (C1) an axis is not a dimension, or stands twice: f32[2, 3]}}
  %0 = tressel.squeeze %x {axis = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @squeeze_c2(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{squeeze: (C2) dimension 1 has not size 1: f32[2, 3]}}
  %0 = tressel.squeeze %x {axis = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @flatten_c1(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{flatten: (C1) start_axis is not a dimension: f32[2, 3]}}
  %0 = tressel.flatten %x {start_axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @transpose_c1(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{transpose: (C1) the permutation must hold each dimension once: f32[2, 3]}}
  %0 = tressel.transpose %x {permutation = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @broadcast_to_c1(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{broadcast_to: (C1) the shape must have from rank to 8 dimensions: f32[2, 3]}}
  %0 = tressel.broadcast_to %x {shape = array<i64: 3>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @broadcast_to_c2(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{broadcast_to: (C2) does not broadcast to [4, 3]: f32[2, 3]}}
  %0 = tressel.broadcast_to %x {shape = array<i64: 4, 3>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @slice_c1(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{slice: (C1) needs one start, limit and stride per dimension: f32[2, 3]}}
  %0 = tressel.slice %x {starts = array<i64: 0>, limits = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @slice_c2(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{slice: (C2) a stride is 0: f32[2, 3]}}
  %0 = tressel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 1, 1>, strides = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @slice_c3(%x: tensor<?xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{slice: (C3) slices a dynamic dimension: f32[?]}}
  %0 = tressel.slice %x {starts = array<i64: 0>, limits = array<i64: 1>} : (tensor<?xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @concat_c1() -> tensor<6xf32> {
  // expected-error@+1 {{concat: (C1) needs at least one operand}}
  %0 = tressel.concat : () -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @concat_c2(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{concat: (C2) axis is not a dimension: f32[2, 3]}}
  %0 = tressel.concat %x {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @concat_c2_ranks(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{concat: (C2) ranks differ: f32[2, 3] x f32[3]}}
  %0 = tressel.concat %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @concat_c3(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{concat: (C3) sizes of dimension 1 differ: f32[2, 3] x f32[2, 4]}}
  %0 = tressel.concat %x, %y : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @split_c1(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{split: (C1) axis is not a dimension: f32[2, 3]}}
  %0 = tressel.split %x {sizes = array<i64: 2>, axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @split_c2(%x: tensor<2x3xf32>) -> tensor<1x3xf32> {
  // expected-error@+1 {{split: (C2) the sizes add up to 3, not to that of the dimension: f32[2, 3]}}
  %0:2 = tressel.split %x {sizes = array<i64: 1, 2>} : (tensor<2x3xf32>) -> (tensor<1x3xf32>, tensor<2x3xf32>)
  return %0#0 : tensor<1x3xf32>
}

// -----

func.func @split_results(%x: tensor<2x3xf32>) -> tensor<1x3xf32> {
  // expected-error@+1 {{split: has 2 results}}
  %0 = tressel.split %x {sizes = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}

// -----
func.func @pad_c1(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{pad: (C1) needs one entry of low and high per dimension: f32[2, 3]}}
  %0 = tressel.pad %x {low = array<i64: 0>, high = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @pad_c1_negative(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // expected-error@+1 {{pad: (C1) low and high must not be negative: f32[2, 3]}}
  %0 = tressel.pad %x {low = array<i64: 0, -1>, high = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----
func.func @take_c1(%x: tensor<2x3xf32>, %i: tensor<4xi64>) -> tensor<4x3xf32> {
  // expected-error@+1 {{take: (C1) axis is not a dimension of x: f32[2, 3] x i64[4]}}
  %0 = tressel.take %x, %i {axis = 2 : i64} : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----
func.func @take_c2(%x: tensor<2x3xf32>) -> tensor<2x3x3xf32> {
  // expected-error@+1 {{take: (C2) indices must be integers: f32[2, 3] x f32[2, 3]}}
  %0 = tressel.take %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3x3xf32>
  return %0 : tensor<2x3x3xf32>
}

// -----
func.func @take_c3(%x: tensor<1x1x1x1xf32>, %i: tensor<1x1x1x1x1x1xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{take: (C3) the result would have more than 8 dimensions: f32[1, 1, 1, 1] x i64[1, 1, 1, 1, 1, 1]}}
  %0 = tressel.take %x, %i : (tensor<1x1x1x1xf32>, tensor<1x1x1x1x1x1xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{to: (C1) names no device}}
  %0 = tressel.to %x {device = ""} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
