// Sorting, running totals, computed places, what is written in other ops: each rule is broken once.
// RUN: tressel-opt %s --split-input-file --verify-diagnostics

func.func @sort_c1(%a0: tensor<2x3xf32>) {
  // expected-error@+1 {{sort: (C1) axis is not a dimension: f32[2, 3]}}
  %r = tressel.sort %a0 {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @argsort_c1(%a0: tensor<f32>) {
  // expected-error@+1 {{argsort: (C1) axis is not a dimension: f32[]}}
  %r = tressel.argsort %a0 : (tensor<f32>) -> tensor<i64>
  return
}

// -----

func.func @top_k_c1(%a0: tensor<3xf32>) {
  // expected-error@+1 {{top_k: (C1) axis is not a dimension: f32[3]}}
  %r:2 = tressel.top_k %a0 {k = 1 : i64, axis = 1 : i64} : (tensor<3xf32>) -> (tensor<1xf32>, tensor<1xi64>)
  return
}

// -----

func.func @top_k_c2(%a0: tensor<3xf32>) {
  // expected-error@+1 {{top_k: (C2) k is not in [0, size of the dimension]: f32[3]}}
  %r:2 = tressel.top_k %a0 {k = 4 : i64} : (tensor<3xf32>) -> (tensor<4xf32>, tensor<4xi64>)
  return
}

// -----

func.func @cumsum_c1(%a0: tensor<3xf32>) {
  // expected-error@+1 {{cumsum: (C1) axis is not a dimension: f32[3]}}
  %r = tressel.cumsum %a0 {axis = 1 : i64} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @cummax_c1(%a0: tensor<3xf32>) {
  // expected-error@+1 {{cummax: (C1) axis is not a dimension: f32[3]}}
  %r = tressel.cummax %a0 {axis = -2 : i64} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @take_along_axis_c1(%a0: tensor<3xf32>, %a1: tensor<3xi64>) {
  // expected-error@+1 {{take_along_axis: (C1) axis is not a dimension: f32[3] x i64[3]}}
  %r = tressel.take_along_axis %a0, %a1 {axis = 1 : i64} : (tensor<3xf32>, tensor<3xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @take_along_axis_c2(%a0: tensor<3xf32>, %a1: tensor<3xf32>) {
  // expected-error@+1 {{take_along_axis: (C2) indices must be integers: f32[3] x f32[3]}}
  %r = tressel.take_along_axis %a0, %a1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @take_along_axis_c3(%a0: tensor<2x3xf32>, %a1: tensor<3xi64>) {
  // expected-error@+1 {{take_along_axis: (C3) indices must have x's rank: f32[2, 3] x i64[3]}}
  %r = tressel.take_along_axis %a0, %a1 : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @put_along_axis_c1(%a0: tensor<2x3xf32>, %a1: tensor<2x1xi64>, %a2: tensor<2x1xf32>) {
  // expected-error@+1 {{put_along_axis: (C1) axis is not a dimension: f32[2, 3] x i64[2, 1] x f32[2, 1]}}
  %r = tressel.put_along_axis %a0, %a1, %a2 {axis = -3 : i64} : (tensor<2x3xf32>, tensor<2x1xi64>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @put_along_axis_c2(%a0: tensor<2x3xf32>, %a1: tensor<2x1xf32>, %a2: tensor<2x1xf32>) {
  // expected-error@+1 {{put_along_axis: (C2) indices must be integers: f32[2, 3] x f32[2, 1] x f32[2, 1]}}
  %r = tressel.put_along_axis %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @put_along_axis_c3(%a0: tensor<2x3xf32>, %a1: tensor<4x1xi64>, %a2: tensor<4x1xf32>) {
  // expected-error@+1 {{put_along_axis: (C3) indices do not broadcast to x besides the axis: f32[2, 3] x i64[4, 1] x f32[4, 1]}}
  %r = tressel.put_along_axis %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<4x1xi64>, tensor<4x1xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @put_along_axis_c4(%a0: tensor<2x3xf32>, %a1: tensor<2x1xi64>, %a2: tensor<2x2xf32>) {
  // expected-error@+1 {{put_along_axis: (C4) values do not broadcast to [2, 1]: f32[2, 3] x i64[2, 1] x f32[2, 2]}}
  %r = tressel.put_along_axis %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<2x1xi64>, tensor<2x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @put_along_axis_c5(%a0: tensor<2x3xf32>, %a1: tensor<2x1xi64>, %a2: tensor<2x1xf32>) {
  // expected-error@+1 {{put_along_axis: (C5) mode is not set, add, mul, min or max: f32[2, 3] x i64[2, 1] x f32[2, 1]}}
  %r = tressel.put_along_axis %a0, %a1, %a2 {mode = "sum"} : (tensor<2x3xf32>, tensor<2x1xi64>, tensor<2x1xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_nd_c1(%a0: tensor<2x3xf32>, %a1: tensor<1x2xf32>) {
  // expected-error@+1 {{gather_nd: (C1) indices must be integers: f32[2, 3] x f32[1, 2]}}
  %r = tressel.gather_nd %a0, %a1 : (tensor<2x3xf32>, tensor<1x2xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @gather_nd_c2(%a0: tensor<2x3xf32>, %a1: tensor<4x1xi64>) {
  // expected-error@+1 {{gather_nd: (C2) the sizes of batch dimension 0 differ: f32[2, 3] x i64[4, 1]}}
  %r = tressel.gather_nd %a0, %a1 {batch_dims = 1 : i64} : (tensor<2x3xf32>, tensor<4x1xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @gather_nd_c3(%a0: tensor<2x3xf32>, %a1: tensor<4x3xi64>) {
  // expected-error@+1 {{gather_nd: (C3) the last size of indices is not in [1, rank of x - batch_dims]: f32[2, 3] x i64[4, 3]}}
  %r = tressel.gather_nd %a0, %a1 : (tensor<2x3xf32>, tensor<4x3xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @gather_nd_c4(%a0: tensor<1x1x1x1x1x1x1x2xf32>, %a1: tensor<3x4x1xi64>) {
  // expected-error@+1 {{gather_nd: (C4) the result would have more than 8 dimensions: f32[1, 1, 1, 1, 1, 1, 1, 2] x i64[3, 4, 1]}}
  %r = tressel.gather_nd %a0, %a1 : (tensor<1x1x1x1x1x1x1x2xf32>, tensor<3x4x1xi64>) -> tensor<3x4x1x1x1x1x1x2xf32>
  return
}

// -----

func.func @scatter_nd_c1(%a0: tensor<2x3xf32>, %a1: tensor<4x1xf32>, %a2: tensor<4x3xf32>) {
  // expected-error@+1 {{scatter_nd: (C1) indices must be integers: f32[2, 3] x f32[4, 1] x f32[4, 3]}}
  %r = tressel.scatter_nd %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<4x1xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_nd_c2(%a0: tensor<2x3xf32>, %a1: tensor<4x3xi64>, %a2: tensor<4xf32>) {
  // expected-error@+1 {{scatter_nd: (C2) the last size of indices is not in [1, rank of x]: f32[2, 3] x i64[4, 3] x f32[4]}}
  %r = tressel.scatter_nd %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<4x3xi64>, tensor<4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_nd_c3(%a0: tensor<2x3xf32>, %a1: tensor<4x1xi64>, %a2: tensor<4x2xf32>) {
  // expected-error@+1 {{scatter_nd: (C3) updates must have the shape [4, 3]: f32[2, 3] x i64[4, 1] x f32[4, 2]}}
  %r = tressel.scatter_nd %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<4x1xi64>, tensor<4x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_nd_c4(%a0: tensor<2x3xf32>, %a1: tensor<4x1xi64>, %a2: tensor<4x3xf32>) {
  // expected-error@+1 {{scatter_nd: (C4) mode is not set, add, mul, min or max: f32[2, 3] x i64[4, 1] x f32[4, 3]}}
  %r = tressel.scatter_nd %a0, %a1, %a2 {mode = "sum"} : (tensor<2x3xf32>, tensor<4x1xi64>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_c1(%a0: tensor<2x3xf32>, %a1: tensor<4xi64>, %a2: tensor<4x3xf32>) {
  // expected-error@+1 {{scatter: (C1) axis is not a dimension: f32[2, 3] x i64[4] x f32[4, 3]}}
  %r = tressel.scatter %a0, %a1, %a2 {axis = 2 : i64} : (tensor<2x3xf32>, tensor<4xi64>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_c2(%a0: tensor<2x3xf32>, %a1: tensor<4xf32>, %a2: tensor<4x3xf32>) {
  // expected-error@+1 {{scatter: (C2) indices must be integers: f32[2, 3] x f32[4] x f32[4, 3]}}
  %r = tressel.scatter %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_c3(%a0: tensor<2x3xf32>, %a1: tensor<4xi64>, %a2: tensor<4x2xf32>) {
  // expected-error@+1 {{scatter: (C3) updates must have the shape [4, 3]: f32[2, 3] x i64[4] x f32[4, 2]}}
  %r = tressel.scatter %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<4xi64>, tensor<4x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @scatter_c4(%a0: tensor<2x3xf32>, %a1: tensor<4xi64>, %a2: tensor<4x3xf32>) {
  // expected-error@+1 {{scatter: (C4) mode is not set, add, mul, min or max: f32[2, 3] x i64[4] x f32[4, 3]}}
  %r = tressel.scatter %a0, %a1, %a2 {mode = "sum"} : (tensor<2x3xf32>, tensor<4xi64>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dynamic_slice_c1(%a0: tensor<2x3xf32>, %a1: tensor<3xi64>) {
  // expected-error@+1 {{dynamic_slice: (C1) starts must be a vector with one integer per dimension of x: f32[2, 3] x i64[3]}}
  %r = tressel.dynamic_slice %a0, %a1 {sizes = array<i64: 1, 1>} : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<1x1xf32>
  return
}

// -----

func.func @dynamic_slice_c2(%a0: tensor<2x3xf32>, %a1: tensor<2xi64>) {
  // expected-error@+1 {{dynamic_slice: (C2) size 1 is not in [0, size of x]: f32[2, 3] x i64[2]}}
  %r = tressel.dynamic_slice %a0, %a1 {sizes = array<i64: 1, 4>} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<1x4xf32>
  return
}

// -----

func.func @dynamic_update_slice_c1(%a0: tensor<2x3xf32>, %a1: tensor<1x2xf32>, %a2: tensor<3xi64>) {
  // expected-error@+1 {{dynamic_update_slice: (C1) starts must be a vector with one integer per dimension of x: f32[2, 3] x f32[1, 2] x i64[3]}}
  %r = tressel.dynamic_update_slice %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<1x2xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dynamic_update_slice_c2(%a0: tensor<2x3xf32>, %a1: tensor<1x4xf32>, %a2: tensor<2xi64>) {
  // expected-error@+1 {{dynamic_update_slice: (C2) update is larger than x in dimension 1: f32[2, 3] x f32[1, 4] x i64[2]}}
  %r = tressel.dynamic_update_slice %a0, %a1, %a2 : (tensor<2x3xf32>, tensor<1x4xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @pad_c2(%a0: tensor<3xf32>) {
  // expected-error@+1 {{pad: (C2) mode is not constant, edge, reflect, symmetric or wrap: f32[3]}}
  %r = tressel.pad %a0 {low = array<i64: 1>, high = array<i64: 1>, mode = "mirror"} : (tensor<3xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @pad_c3(%a0: tensor<0xf32>) {
  // expected-error@+1 {{pad: (C3) dimension 0 is empty, or may be: f32[0]}}
  %r = tressel.pad %a0 {low = array<i64: 1>, high = array<i64: 1>, mode = "edge"} : (tensor<0xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @flip_c1(%a0: tensor<3xf32>) {
  // expected-error@+1 {{flip: (C1) an axis is not a dimension, or stands twice: f32[3]}}
  %r = tressel.flip %a0 {axis = array<i64: 1>} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @roll_c1(%a0: tensor<2x3xf32>) {
  // expected-error@+1 {{roll: (C1) an axis is not a dimension, or stands twice: f32[2, 3]}}
  %r = tressel.roll %a0 {shift = array<i64: 1, 2>, axis = array<i64: 1, -1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @roll_c2(%a0: tensor<3xf32>) {
  // expected-error@+1 {{roll: (C2) needs one shift per axis: f32[3]}}
  %r = tressel.roll %a0 {shift = array<i64: 1, 2>, axis = array<i64: 0>} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @repeat_c2_exactly_2_to_the_48(%a0: tensor<1xf32>, %a1: tensor<65536xf32>) {
  // expected-error@+1 {{repeat: (C2) repetitions is negative, or the result does not fit into memory: f32[1]}}
  %r = tressel.repeat %a0 {repetitions = 281474976710656 : i64} : (tensor<1xf32>) -> tensor<281474976710656xf32>
  return
}

// -----

func.func @tile_c1_exactly_2_to_the_48(%a0: tensor<65536xf32>) {
  // expected-error@+1 {{tile: (C1) the result does not fit into memory: f32[65536]}}
  %r = tressel.tile %a0 {repetitions = array<i64: 65536, 65536>} : (tensor<65536xf32>) -> tensor<65536x4294967296xf32>
  return
}

// -----

func.func @repeat_c1(%a0: tensor<3xf32>) {
  // expected-error@+1 {{repeat: (C1) axis is not a dimension: f32[3]}}
  %r = tressel.repeat %a0 {repetitions = 2 : i64, axis = 1 : i64} : (tensor<3xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @repeat_c2(%a0: tensor<3xf32>) {
  // expected-error@+1 {{repeat: (C2) repetitions is negative, or the result does not fit into memory: f32[3]}}
  %r = tressel.repeat %a0 {repetitions = -1 : i64} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @tile_c1(%a0: tensor<3xf32>) {
  // expected-error@+1 {{tile: (C1) a repetition is negative: f32[3]}}
  %r = tressel.tile %a0 {repetitions = array<i64: -1>} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @stack_c1(%a0: tensor<3xf32>, %a1: tensor<4xf32>) {
  // expected-error@+1 {{stack: (C1) shapes differ: f32[3] x f32[4]}}
  %r = tressel.stack %a0, %a1 : (tensor<3xf32>, tensor<4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @stack_c2(%a0: tensor<3xf32>, %a1: tensor<3xf32>) {
  // expected-error@+1 {{stack: (C2) axis is not a dimension of the result: f32[3] x f32[3]}}
  %r = tressel.stack %a0, %a1 {axis = 2 : i64} : (tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @unstack_c1(%a0: tensor<2x3xf32>) {
  // expected-error@+1 {{unstack: (C1) axis is not a dimension: f32[2, 3]}}
  %r:3 = tressel.unstack %a0 {axis = 2 : i64} : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @unstack_c2(%a0: tensor<0x3xf32>) {
  // expected-error@+1 {{unstack: (C2) the size of the dimension is not static, or 0: f32[0, 3]}}
  %r = tressel.unstack %a0 : (tensor<0x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @moveaxis_c1(%a0: tensor<2x3xf32>) {
  // expected-error@+1 {{moveaxis: (C1) source and destination must be equally many dimensions, none twice: f32[2, 3]}}
  %r = tressel.moveaxis %a0 {source = array<i64: 0>, destination = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @swapaxes_c1(%a0: tensor<3xf32>) {
  // expected-error@+1 {{swapaxes: (C1) an axis is not a dimension: f32[3]}}
  %r = tressel.swapaxes %a0 : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @diff_c1(%a0: tensor<3xf32>) {
  // expected-error@+1 {{diff: (C1) axis is not a dimension: f32[3]}}
  %r = tressel.diff %a0 {axis = 1 : i64} : (tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @diff_c2(%a0: tensor<3xf32>) {
  // expected-error@+1 {{diff: (C2) n is not in [0, 64]: f32[3]}}
  %r = tressel.diff %a0 {n = -1 : i64} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @diff_c3(%a0: tensor<3xf32>, %a1: tensor<2x2xf32>) {
  // expected-error@+1 {{diff: (C3) x, prepend and append do not fit, or are bools: f32[3] x f32[2, 2]}}
  %r = tressel.diff %a0, %a1 : (tensor<3xf32>, tensor<2x2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @diagonal_c1(%a0: tensor<3x3xf32>) {
  // expected-error@+1 {{diagonal: (C1) axis1 and axis2 must be two dimensions: f32[3, 3]}}
  %r = tressel.diagonal %a0 {axis2 = 0 : i64} : (tensor<3x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @diagonal_c2(%a0: tensor<3x3xf32>) {
  // expected-error@+1 {{diagonal: (C2) the offset lies beyond every matrix: f32[3, 3]}}
  %r = tressel.diagonal %a0 {offset = 281474976710657 : i64} : (tensor<3x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @trace_c2(%a0: tensor<3x3xf32>) {
  // expected-error@+1 {{trace: (C2) the offset lies beyond every matrix: f32[3, 3]}}
  %r = tressel.trace %a0 {offset = -281474976710657 : i64} : (tensor<3x3xf32>) -> tensor<f32>
  return
}

// -----

func.func @tril_c1(%a0: tensor<3xf32>) {
  // expected-error@+1 {{tril: (C1) x needs at least 2 dimensions: f32[3]}}
  %r = tressel.tril %a0 : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @meshgrid_c1(%a0: tensor<3xf32>, %a1: tensor<2x2xf32>) {
  // expected-error@+1 {{meshgrid: (C1) operands must be vectors: f32[3] x f32[2, 2]}}
  %r:2 = tressel.meshgrid %a0, %a1 : (tensor<3xf32>, tensor<2x2xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @meshgrid_c2(%a0: tensor<3xf32>, %a1: tensor<2xf32>) {
  // expected-error@+1 {{meshgrid: (C2) indexing is neither xy nor ij: f32[3] x f32[2]}}
  %r:2 = tressel.meshgrid %a0, %a1 {indexing = "yx"} : (tensor<3xf32>, tensor<2xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>)
  return
}

// -----

func.func @var_c1(%a0: tensor<3xf32>) {
  // expected-error@+1 {{var: (C1) an axis is not a dimension, or stands twice: f32[3]}}
  %r = tressel.var %a0 {axis = array<i64: 0, 0>} : (tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @logsumexp_c1(%a0: tensor<2x3xf32>) {
  // expected-error@+1 {{logsumexp: (C1) an axis is not a dimension, or stands twice: f32[2, 3]}}
  %r = tressel.logsumexp %a0 {axis = array<i64: 0, -2>} : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @logsumexp_c2(%a0: tensor<0xf32>) {
  // expected-error@+1 {{logsumexp: (C2) a reduced dimension is empty: f32[0]}}
  %r = tressel.logsumexp %a0 : (tensor<0xf32>) -> tensor<f32>
  return
}

// -----

func.func @eye_c1() {
  // expected-error@+1 {{eye: (C1) the shape needs at least 2 dimensions}}
  %r = tressel.eye {shape = array<i64: 3>} : () -> tensor<3xf32>
  return
}

// -----

func.func @linspace_c1() {
  // expected-error@+1 {{linspace: (C1) num is negative or too large}}
  %r = tressel.linspace {start = 0.0 : f64, stop = 1.0 : f64, num = -1 : i64} : () -> tensor<2xf32>
  return
}

// -----

func.func @linspace_c2() {
  // expected-error@+1 {{linspace: (C2) the element type is no float}}
  %r = tressel.linspace {start = 0.0 : f64, stop = 1.0 : f64, num = 2 : i64, dtype = i32} : () -> tensor<2xi32>
  return
}

// -----

func.func @random_normal_c1(%a0: tensor<i64>) {
  // expected-error@+1 {{random_normal: (C1) the shape must have at most 8 dimensions, none negative, and fit into memory: i64[]}}
  %r = tressel.random_normal %a0 {shape = array<i64: -2>} : (tensor<i64>) -> tensor<2xf32>
  return
}

// -----

func.func @random_normal_c2(%a0: tensor<f32>) {
  // expected-error@+1 {{random_normal: (C2) the seed must be one integer: f32[]}}
  %r = tressel.random_normal %a0 {shape = array<i64: 2>} : (tensor<f32>) -> tensor<2xf32>
  return
}

// -----

func.func @random_normal_c3(%a0: tensor<i64>) {
  // expected-error@+1 {{random_normal: (C3) the element type is no float: i64[]}}
  %r = tressel.random_normal %a0 {shape = array<i64: 2>, dtype = i32} : (tensor<i64>) -> tensor<2xi32>
  return
}

// -----

func.func @randint_c1(%a0: tensor<i64>) {
  // expected-error@+1 {{randint: (C1) the shape must have at most 8 dimensions, none negative, and fit into memory: i64[]}}
  %r = tressel.randint %a0 {low = 0 : i64, high = 3 : i64, shape = array<i64: 16777216, 16777216>} : (tensor<i64>) -> tensor<2xi64>
  return
}

// -----

func.func @randint_c2(%a0: tensor<1xi64>) {
  // expected-error@+1 {{randint: (C2) the seed must be one integer: i64[1]}}
  %r = tressel.randint %a0 {low = 0 : i64, high = 3 : i64, shape = array<i64: 2>} : (tensor<1xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @randint_c3(%a0: tensor<i64>) {
  // expected-error@+1 {{randint: (C3) low < high must both fit the integer type: i64[]}}
  %r = tressel.randint %a0 {low = 0 : i64, high = 300 : i64, shape = array<i64: 2>, dtype = ui8} : (tensor<i64>) -> tensor<2xui8>
  return
}

// -----

func.func @bernoulli_c1(%a0: tensor<2xi64>, %a1: tensor<2xf32>) {
  // expected-error@+1 {{bernoulli: (C1) the seed must be one integer: i64[2] x f32[2]}}
  %r = tressel.bernoulli %a0, %a1 : (tensor<2xi64>, tensor<2xf32>) -> tensor<2xi1>
  return
}

// -----

func.func @bernoulli_c2(%a0: tensor<i64>, %a1: tensor<2xi64>) {
  // expected-error@+1 {{bernoulli: (C2) p must be floats: i64[] x i64[2]}}
  %r = tressel.bernoulli %a0, %a1 : (tensor<i64>, tensor<2xi64>) -> tensor<2xi1>
  return
}

// -----

func.func @permutation_c1(%a0: tensor<1xi64>) {
  // expected-error@+1 {{permutation: (C1) the seed must be one integer: i64[1]}}
  %r = tressel.permutation %a0 {n = 3 : i64} : (tensor<1xi64>) -> tensor<3xi64>
  return
}

// -----

func.func @permutation_c2(%a0: tensor<i64>) {
  // expected-error@+1 {{permutation: (C2) n is negative or not below 2^32: i64[]}}
  %r = tressel.permutation %a0 {n = 4294967296 : i64} : (tensor<i64>) -> tensor<4294967296xi64>
  return
}

// -----

func.func @categorical_c1(%a0: tensor<f32>, %a1: tensor<2x3xf32>) {
  // expected-error@+1 {{categorical: (C1) the seed must be one integer: f32[] x f32[2, 3]}}
  %r = tressel.categorical %a0, %a1 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2xi64>
  return
}

// -----

func.func @categorical_c2(%a0: tensor<i64>, %a1: tensor<2x0xf32>) {
  // expected-error@+1 {{categorical: (C2) logits must be floats, and axis a dimension of them that is not empty: i64[] x f32[2, 0]}}
  %r = tressel.categorical %a0, %a1 : (tensor<i64>, tensor<2x0xf32>) -> tensor<2xi64>
  return
}

// -----

func.func @bitwise_and_c2(%a0: tensor<2xf32>, %a1: tensor<2xf32>) {
  // expected-error@+1 {{bitwise_and: (C2) wants integers or bools: f32[2] x f32[2]}}
  %r = tressel.bitwise_and %a0, %a1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @scatter_nd_c3_rank(%a0: tensor<1x1x1x1x1x1x1x2xf32>, %a1: tensor<3x4x1xi64>, %a2: tensor<f32>) {
  // expected-error@+1 {{scatter_nd: (C3) updates would have more than 8 dimensions}}
  %r = tressel.scatter_nd %a0, %a1, %a2 : (tensor<1x1x1x1x1x1x1x2xf32>, tensor<3x4x1xi64>, tensor<f32>) -> tensor<1x1x1x1x1x1x1x2xf32>
  return
}

// -----

func.func @dim_size_c1() {
  // expected-error@+1 {{dim_size: (C1) the size is negative}}
  %r = tressel.dim_size {size = -1 : i64} : () -> tensor<i64>
  return
}

// -----

func.func @nextafter_c1(%a0: tensor<2xf32>, %a1: tensor<3xf32>) {
  // expected-error@+1 {{nextafter: (C1) shapes do not broadcast: f32[2] x f32[3]}}
  %r = tressel.nextafter %a0, %a1 : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @nextafter_c2(%a0: tensor<2xi32>, %a1: tensor<2xi32>) {
  // expected-error@+1 {{nextafter: (C2) wants floats (cast them): i32[2] x i32[2]}}
  %r = tressel.nextafter %a0, %a1 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xf32>
  return
}

// -----

func.func @cumulative_logsumexp_c1(%a0: tensor<3xf32>) {
  // expected-error@+1 {{cumulative_logsumexp: (C1) axis is not a dimension: f32[3]}}
  %r = tressel.cumulative_logsumexp %a0 {axis = 1 : i64} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @searchsorted_c1(%a0: tensor<2x2xf32>, %a1: tensor<2xf32>) {
  // expected-error@+1 {{searchsorted: (C1) x must be a vector: f32[2, 2] x f32[2]}}
  %r = tressel.searchsorted %a0, %a1 : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2xi64>
  return
}

// -----

func.func @searchsorted_c2(%a0: tensor<2xf32>, %a1: tensor<2xf32>, %a2: tensor<3xi64>) {
  // expected-error@+1 {{searchsorted: (C2) sorter must be a vector of integers of x's size: f32[2] x f32[2] x i64[3]}}
  %r = tressel.searchsorted %a0, %a1, %a2 : (tensor<2xf32>, tensor<2xf32>, tensor<3xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @searchsorted_c3(%a0: tensor<2xf32>, %a1: tensor<2xf32>) {
  // expected-error@+1 {{searchsorted: (C3) side is 'left' or 'right': f32[2] x f32[2]}}
  %r = tressel.searchsorted %a0, %a1 {side = "middle"} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi64>
  return
}

// -----

func.func @vector_norm_c1(%a0: tensor<3xf32>) {
  // expected-error@+1 {{vector_norm: (C1) an axis is not a dimension, or stands twice: f32[3]}}
  %r = tressel.vector_norm %a0 {axis = array<i64: 1>} : (tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @vector_norm_c2(%a0: tensor<0xf32>) {
  // expected-error@+1 {{vector_norm: (C2) there is no largest or smallest of no elements: f32[0]}}
  %r = tressel.vector_norm %a0 {ord = 0x7FF0000000000000 : f64} : (tensor<0xf32>) -> tensor<f32>
  return
}

// -----

func.func @trapezoid_c1(%a0: tensor<2x0xf32>) {
  // expected-error@+1 {{trapezoid: (C1) axis is not a dimension, or it may be empty: f32[2, 0]}}
  %r = tressel.trapezoid %a0 : (tensor<2x0xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @trapezoid_c2(%a0: tensor<2x3xf32>, %a1: tensor<2xf32>) {
  // expected-error@+1 {{trapezoid: (C2) x must have y's shape or be a vector along axis: f32[2, 3] x f32[2]}}
  %r = tressel.trapezoid %a0, %a1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @broadcast_arrays_c1() {
  // expected-error@+1 {{broadcast_arrays: (C1) there is no operand}}
  %r = tressel.broadcast_arrays  : () -> tensor<2xf32>
  return
}

// -----

func.func @broadcast_arrays_c2(%a0: tensor<2xf32>, %a1: tensor<3xf32>) {
  // expected-error@+1 {{broadcast_arrays: (C2) shapes do not broadcast: f32[2] x f32[3]}}
  %r = tressel.broadcast_arrays %a0, %a1 : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}
