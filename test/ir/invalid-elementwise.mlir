// RUN: tressel-opt %s -verify-diagnostics -split-input-file

// Elementwise ops, creations and reductions: each rule of docs/ops.md broken once.

func.func @elementwise_c1(%x: tensor<2x3xf32>, %y: tensor<4xf32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{add: (C1) shapes do not broadcast: f32[2, 3] x f32[4]}}
  %0 = tressel.add %x, %y : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----
func.func @elementwise_c2_bools(%x: tensor<2xi1>) -> tensor<2xi1> {
  // expected-error@+1 {{add: (C2) wants numbers, not bools (cast them): bool[2] x bool[2]}}
  %0 = tressel.add %x, %x : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  return %0 : tensor<2xi1>
}

// -----
func.func @creation_c1() -> tensor<2xf32> {
  // expected-error@+1 {{full: (C1) the shape must have at most 8 dimensions, none negative, and fit into memory}}
  %0 = tressel.full {shape = array<i64: 2, -1>, value = 0.0 : f64} : () -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @iota_c2() -> tensor<2xi64> {
  // expected-error@+1 {{iota: (C2) axis is not a dimension of the shape: i64[2]}}
  %0 = tressel.iota {shape = array<i64: 2>, axis = 1 : i64} : () -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// -----
func.func @random_c2(%s: tensor<2xi64>) -> tensor<2xf32> {
  // expected-error@+1 {{random_uniform: (C2) the seed must be one integer: i64[2]}}
  %0 = tressel.random_uniform %s {shape = array<i64: 2>} : (tensor<2xi64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @reduction_c1(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{sum: (C1) an axis is not a dimension, or stands twice: f32[2, 3]}}
  %0 = tressel.sum %x {axis = array<i64: 1, -1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @reduction_c2(%x: tensor<2x0xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{max: (C2) a reduced dimension is empty: f32[2, 0]}}
  %0 = tressel.max %x {axis = array<i64: 1>} : (tensor<2x0xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @arg_reduction_c1(%x: tensor<2xf32>) -> tensor<i64> {
  // expected-error@+1 {{argmax: (C1) axis is not a dimension: f32[2]}}
  %0 = tressel.argmax %x {axis = 1 : i64} : (tensor<2xf32>) -> tensor<i64>
  return %0 : tensor<i64>
}

// -----
func.func @arg_reduction_c2(%x: tensor<0xf32>) -> tensor<i64> {
  // expected-error@+1 {{argmin: (C2) a reduced dimension is empty: f32[0]}}
  %0 = tressel.argmin %x : (tensor<0xf32>) -> tensor<i64>
  return %0 : tensor<i64>
}

// -----

// What the form of every op demands.
func.func @operand_count(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{add: takes 2 operands, got 1: f32[2]}}
  %0 = tressel.add %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @operand_type(%x: tensor<2xi3>) -> tensor<2xi3> {
  // expected-error@+1 {{relu: operand type 'tensor<2xi3>' is not supported}}
  %0 = tressel.relu %x : (tensor<2xi3>) -> tensor<2xi3>
  return %0 : tensor<2xi3>
}

// -----
func.func @rank_limit(%x: tensor<1x1x1x1x1x1x1x1x1xf32>) -> tensor<1x1x1x1x1x1x1x1x1xf32> {
  // expected-error@+1 {{relu: operand type 'tensor<1x1x1x1x1x1x1x1x1xf32>' is not supported}}
  %0 = tressel.relu %x : (tensor<1x1x1x1x1x1x1x1x1xf32>) -> tensor<1x1x1x1x1x1x1x1x1xf32>
  return %0 : tensor<1x1x1x1x1x1x1x1x1xf32>
}

// -----
func.func @unknown_attribute(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{relu: there is no attribute 'alpha'}}
  %0 = tressel.relu %x {alpha = 1.0 : f64} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @attribute_kind(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{leaky_relu: attribute 'alpha' cannot be 1 : i64; it is written like 0.5 : f64}}
  %0 = tressel.leaky_relu %x {alpha = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @attribute_missing(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{cast: attribute 'dtype' is missing}}
  %0 = tressel.cast %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @result_type(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{equal: the result is bool[2], not 'tensor<2xf32>'}}
  %0 = tressel.equal %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
func.func @too_large(%x: tensor<4000000000x4000000000xf32>) -> tensor<4000000000x4000000000xf32> {
  // expected-error@+1 {{relu: operand type 'tensor<4000000000x4000000000xf32>' is not supported}}
  %0 = tressel.relu %x : (tensor<4000000000x4000000000xf32>) -> tensor<4000000000x4000000000xf32>
  return %0 : tensor<4000000000x4000000000xf32>
}

// -----
func.func @result_too_large(%x: tensor<4000000000x1xf32>, %y: tensor<4000000000xf32>) {
  // expected-error@+1 {{add: the result does not fit into memory: f32[4000000000, 4000000000]}}
  %0 = tressel.add %x, %y : (tensor<4000000000x1xf32>, tensor<4000000000xf32>) -> tensor<4000000000x4000000000xf32>
  return
}

// -----
func.func @iota_c1() -> tensor<2xi64> {
  // expected-error@+1 {{iota: (C1) the shape must have at most 8 dimensions, none negative, and fit into memory}}
  %0 = tressel.iota {shape = array<i64: -2>} : () -> tensor<2xi64>
  return %0 : tensor<2xi64>
}

// -----
func.func @random_c1(%a: tensor<i64>) -> tensor<2xf32> {
  // expected-error@+1 {{random_uniform: (C1) the shape must have}}
  %0 = tressel.random_uniform %a {shape = array<i64: 4000000000, 4000000000>} : (tensor<i64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
