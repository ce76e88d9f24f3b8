// RUN: tressel-opt %s -verify-diagnostics -split-input-file

// Contractions, convolutions, pooling and composites: each rule of docs/ops.md broken once.

func.func @matmul_c1(%a: tensor<f32>, %b: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{matmul: (C1) operands need at least one dimension: f32[] x f32[2]}}
  %0 = tressel.matmul %a, %b : (tensor<f32>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @matmul_c1_bools(%a: tensor<2x2xi1>, %b: tensor<2x2xi1>) -> tensor<1xf32> {
  // expected-error@+1 {{matmul: (C1) wants numbers, not bools (cast them)}}
  %0 = tressel.matmul %a, %b : (tensor<2x2xi1>, tensor<2x2xi1>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @matmul_c2(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{matmul: (C2) inner dimensions differ: f32[2, 3] x f32[4, 5]}}
  %0 = tressel.matmul %a, %b : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @matmul_c2_vector(%a: tensor<3xf32>, %b: tensor<4xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{matmul: (C2) inner dimensions differ: f32[3] x f32[4]}}
  %0 = tressel.matmul %a, %b : (tensor<3xf32>, tensor<4xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @matmul_c3(%a: tensor<2x2x3xf32>, %b: tensor<4x3x5xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{matmul: (C3) leading dimensions do not broadcast: f32[2, 2, 3] x f32[4, 3, 5]}}
  %0 = tressel.matmul %a, %b : (tensor<2x2x3xf32>, tensor<4x3x5xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_by_weights_c1(%a: tensor<2x3x8xf32>, %b: tensor<1x4x6xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv_by_weights: (C1) x and given must have the same batch}}
  %0 = tressel.conv_by_weights %a, %b {window = array<i64: 3>} : (tensor<2x3x8xf32>, tensor<1x4x6xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_by_weights_c2(%a: tensor<2x3x8xf32>, %b: tensor<2x4x6xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv_by_weights: (C2) window, strides, pads and dilations need one valid entry per spatial dimension, or none}}
  %0 = tressel.conv_by_weights %a, %b {window = array<i64>} : (tensor<2x3x8xf32>, tensor<2x4x6xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_by_weights_c3(%a: tensor<2x3x8xf32>, %b: tensor<2x4x6xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv_by_weights: (C3) channels and features do not divide into 2 groups}}
  %0 = tressel.conv_by_weights %a, %b {window = array<i64: 3>, groups = 2} : (tensor<2x3x8xf32>, tensor<2x4x6xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_by_weights_c4(%a: tensor<2x3x8xf32>, %b: tensor<2x4x6xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv_by_weights: (C4) the window does not have as many places in the padded x as given}}
  %0 = tressel.conv_by_weights %a, %b {window = array<i64: 4>} : (tensor<2x3x8xf32>, tensor<2x4x6xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_c1(%a: tensor<1x3x8xf32>, %b: tensor<4x3x3x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv: (C1) x and w must have the same rank, 3 to 5}}
  %0 = tressel.conv %a, %b : (tensor<1x3x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_c1_types(%a: tensor<1x3x8xf32>, %b: tensor<4x3x3xf16>) -> tensor<1xf32> {
  // expected-error@+1 {{conv: (C1) x and w must have one float type: f32[1, 3, 8] x f16[4, 3, 3]}}
  %0 = tressel.conv %a, %b : (tensor<1x3x8xf32>, tensor<4x3x3xf16>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_c2(%a: tensor<1x3x8xf32>, %b: tensor<4x3x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv: (C2) strides, pads and dilations need one valid entry per spatial dimension, or none}}
  %0 = tressel.conv %a, %b {strides = array<i64: 1, 1>} : (tensor<1x3x8xf32>, tensor<4x3x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_c2_zero(%a: tensor<1x3x8xf32>, %b: tensor<4x3x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv: (C2) strides, pads and dilations}}
  %0 = tressel.conv %a, %b {strides = array<i64: 0>} : (tensor<1x3x8xf32>, tensor<4x3x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_c3(%a: tensor<1x3x8xf32>, %b: tensor<4x3x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv: (C3) channels and features do not divide into 3 groups}}
  %0 = tressel.conv %a, %b {groups = 3 : i64} : (tensor<1x3x8xf32>, tensor<4x3x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @conv_c4(%a: tensor<1x3x8xf32>, %b: tensor<4x3x9xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{conv: (C4) the window does not fit into the padded input: f32[1, 3, 8] x f32[4, 3, 9]}}
  %0 = tressel.conv %a, %b : (tensor<1x3x8xf32>, tensor<4x3x9xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @pool_c1(%a: tensor<3x8xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{max_pool: (C1) x must have rank 3 to 5: f32[3, 8]}}
  %0 = tressel.max_pool %a {window = array<i64: 2>} : (tensor<3x8xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @pool_c1_window(%a: tensor<1x3x8xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{max_pool: (C1) the window needs one entry per spatial dimension}}
  %0 = tressel.max_pool %a {window = array<i64: 2, 2>} : (tensor<1x3x8xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @pool_c2(%a: tensor<1x3x8xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{max_pool: (C2) strides, pads and dilations}}
  %0 = tressel.max_pool %a {window = array<i64: 2>, pad_low = array<i64: 2>} : (tensor<1x3x8xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @pool_c3(%a: tensor<1x3x8xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{avg_pool: (C3) the window does not fit into the padded input: f32[1, 3, 8]}}
  %0 = tressel.avg_pool %a {window = array<i64: 9>} : (tensor<1x3x8xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @pool_c4(%a: tensor<1x3x8xi32>) -> tensor<1xf32> {
  // expected-error@+1 {{sum_pool: (C4) wants floats (cast them): i32[1, 3, 8]}}
  %0 = tressel.sum_pool %a {window = array<i64: 2>} : (tensor<1x3x8xi32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @softmax_c1(%a: tensor<2x3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{softmax: (C1) axis is not a dimension: f32[2, 3]}}
  %0 = tressel.softmax %a {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @log_softmax_c1(%a: tensor<f32>) -> tensor<1xf32> {
  // expected-error@+1 {{log_softmax: (C1) axis is not a dimension: f32[]}}
  %0 = tressel.log_softmax %a : (tensor<f32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @layer_norm_c1(%a: tensor<2x3xf32>, %b: tensor<3xf16>, %c: tensor<3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{layer_norm: (C1) operands must have one float type}}
  %0 = tressel.layer_norm %a, %b, %c : (tensor<2x3xf32>, tensor<3xf16>, tensor<3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @layer_norm_c2(%a: tensor<2x3xf32>, %b: tensor<2xf32>, %c: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{layer_norm: (C2) scale and bias must have the shape of x's last dimensions}}
  %0 = tressel.layer_norm %a, %b, %c : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @batch_norm_c1(%a: tensor<3xf32>, %b: tensor<3xf32>, %c: tensor<3xf32>, %d: tensor<3xf32>, %e: tensor<3xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{batch_norm: (C1) operands must have one float type, and x rank at least 2}}
  %0 = tressel.batch_norm %a, %b, %c, %d, %e : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @batch_norm_c2(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<3xf32>, %d: tensor<3xf32>, %e: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{batch_norm: (C2) scale, bias, mean and variance must have shape [channels]}}
  %0 = tressel.batch_norm %a, %b, %c, %d, %e : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @one_hot_c1(%a: tensor<2xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{one_hot: (C1) wants integers of at most 7 dimensions: f32[2]}}
  %0 = tressel.one_hot %a {depth = 3 : i64} : (tensor<2xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @one_hot_c2(%a: tensor<2xi64>) -> tensor<1xf32> {
  // expected-error@+1 {{one_hot: (C2) depth is negative: i64[2]}}
  %0 = tressel.one_hot %a {depth = -1 : i64} : (tensor<2xi64>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----

func.func @max_pool_c3(%a: tensor<1x3x8xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{max_pool: (C3) the window does not fit into the padded input: f32[1, 3, 8]}}
  %0 = tressel.max_pool %a {window = array<i64: 5>, dilations = array<i64: 2>} : (tensor<1x3x8xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @sum_pool_c1(%a: tensor<3x8xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{sum_pool: (C1) x must have rank 3 to 5: f32[3, 8]}}
  %0 = tressel.sum_pool %a {window = array<i64: 2>} : (tensor<3x8xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @avg_pool_c2(%a: tensor<1x3x8xf32>) -> tensor<1xf32> {
  // expected-error@+1 {{avg_pool: (C2) strides, pads and dilations}}
  %0 = tressel.avg_pool %a {window = array<i64: 2>, strides = array<i64: 0>} : (tensor<1x3x8xf32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----
func.func @softmax_c2(%a: tensor<2x0xf32>) -> tensor<2x0xf32> {
  // expected-error@+1 {{softmax: (C2)}}
  %0 = tressel.softmax %a : (tensor<2x0xf32>) -> tensor<2x0xf32>
  return %0 : tensor<2x0xf32>
}

// -----

func.func @constant_c1() {
  // expected-error@+1 {{(C1) needs a static tensor of a supported type, not 'tensor<2xi5>'}}
  %0 = tressel.constant dense<1> : tensor<2xi5>
  return
}

// -----
func.func @constant_c2() {
  // expected-error@+1 {{(C2) the blob has 4 bytes, the type needs 8}}
  %0 = tressel.constant dense_resource<four_bytes> : tensor<2xf32>
  return
}
{-#
  dialect_resources: { builtin: { four_bytes: "0x400000000000803F" } }
#-}

// -----
func.func @constant_c2_missing() {
  // expected-error@+1 {{(C2) the blob 'nowhere' is not in the file}}
  %0 = tressel.constant dense_resource<nowhere> : tensor<2xf32>
  return
}

// -----
func.func @constant_c3() {
  // expected-error@+1 {{(C3) the value must be dense, a splat or a blob}}
  %0 = tressel.constant sparse<[[0]], [1.0]> : tensor<2xf32>
  return
}

// -----

func.func @outer_c1(%a0: tensor<2x2xf32>, %a1: tensor<2xf32>) {
  // expected-error@+1 {{outer: (C1) both must be vectors: f32[2, 2] x f32[2]}}
  %r = tressel.outer %a0, %a1 : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @outer_c2(%a0: tensor<2xi1>, %a1: tensor<2xi1>) {
  // expected-error@+1 {{outer: (C2) wants numbers, not bools (cast them): bool[2] x bool[2]}}
  %r = tressel.outer %a0, %a1 : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xf32>
  return
}

// -----

func.func @tensordot_c1(%a0: tensor<2xi1>, %a1: tensor<2xi1>) {
  // expected-error@+1 {{tensordot: (C1) wants numbers, not bools (cast them): bool[2] x bool[2]}}
  %r = tressel.tensordot %a0, %a1 {axes_a = array<i64: 0>, axes_b = array<i64: 0>} : (tensor<2xi1>, tensor<2xi1>) -> tensor<f32>
  return
}

// -----

func.func @tensordot_c2(%a0: tensor<2xf32>, %a1: tensor<2xf32>) {
  // expected-error@+1 {{tensordot: (C2) axes_a and axes_b must have equally many dimensions, none twice: f32[2] x f32[2]}}
  %r = tressel.tensordot %a0, %a1 {axes_a = array<i64: 0>, axes_b = array<i64>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
  return
}

// -----

func.func @tensordot_c3(%a0: tensor<2xf32>, %a1: tensor<3xf32>) {
  // expected-error@+1 {{tensordot: (C3) sizes of dimensions summed together differ, or the result has too many dimensions: f32[2] x f32[3]}}
  %r = tressel.tensordot %a0, %a1 {axes_a = array<i64: 0>, axes_b = array<i64: 0>} : (tensor<2xf32>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @vecdot_c1(%a0: tensor<3xi1>, %a1: tensor<3xi1>) {
  // expected-error@+1 {{vecdot: (C1) wants numbers, not bools (cast them): bool[3] x bool[3]}}
  %r = tressel.vecdot %a0, %a1 : (tensor<3xi1>, tensor<3xi1>) -> tensor<f32>
  return
}

// -----

func.func @vecdot_c2(%a0: tensor<3xf32>, %a1: tensor<3xf32>) {
  // expected-error@+1 {{vecdot: (C2) axis must be negative, and a dimension of both: f32[3] x f32[3]}}
  %r = tressel.vecdot %a0, %a1 {axis = 0 : i64} : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @vecdot_c3(%a0: tensor<2xf32>, %a1: tensor<3xf32>) {
  // expected-error@+1 {{vecdot: (C3) shapes do not broadcast, or differ along axis: f32[2] x f32[3]}}
  %r = tressel.vecdot %a0, %a1 : (tensor<2xf32>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @cross_c1(%a0: tensor<3xi1>, %a1: tensor<3xi1>) {
  // expected-error@+1 {{cross: (C1) wants numbers, not bools (cast them): bool[3] x bool[3]}}
  %r = tressel.cross %a0, %a1 : (tensor<3xi1>, tensor<3xi1>) -> tensor<f32>
  return
}

// -----

func.func @cross_c2(%a0: tensor<3xf32>, %a1: tensor<3xf32>) {
  // expected-error@+1 {{cross: (C2) axis must be negative, and a dimension of both: f32[3] x f32[3]}}
  %r = tressel.cross %a0, %a1 {axis = 0 : i64} : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @cross_c3(%a0: tensor<2xf32>, %a1: tensor<2xf32>) {
  // expected-error@+1 {{cross: (C3) shapes do not broadcast, or have another size than 3 along axis: f32[2] x f32[2]}}
  %r = tressel.cross %a0, %a1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
  return
}
