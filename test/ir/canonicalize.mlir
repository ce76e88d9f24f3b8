// RUN: tressel-opt %s --canonicalize --split-input-file | FileCheck %s

// Identity elements: bit for bit, so -0.0 for a sum, whose +0.0 would turn -0.0 into +0.0.
// CHECK-LABEL: @identity_elements
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
// CHECK-NEXT: return %[[X]]
func.func @identity_elements(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = tressel.constant dense<0.0> : tensor<f32>
  %minus_zero = tressel.constant dense<-0.0> : tensor<f32>
  %one = tressel.constant dense<1.0> : tensor<2x3xf32>
  %0 = tressel.add %minus_zero, %x : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = tressel.sub %0, %zero : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = tressel.mul %1, %one : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = tressel.div %2, %one : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}

// -----
// CHECK-LABEL: @plus_zero_stays
// CHECK: tressel.add
func.func @plus_zero_stays(%x: tensor<2xf32>) -> tensor<2xf32> {
  %zero = tressel.constant dense<0.0> : tensor<f32>
  %0 = tressel.add %x, %zero : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----
// One that broadcasts its operand, or changes its type, is no identity; nor is 1 - x.
// CHECK-LABEL: @not_identities
// CHECK: tressel.mul
// CHECK: tressel.mul
// CHECK: tressel.sub
func.func @not_identities(%x: tensor<3xf32>, %i: tensor<3xi32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %ones = tressel.constant dense<1.0> : tensor<2x3xf32>
  %one = tressel.constant dense<1.0> : tensor<f32>
  %zero = tressel.constant dense<0.0> : tensor<3xf32>
  %0 = tressel.mul %x, %ones : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = tressel.mul %i, %one : (tensor<3xi32>, tensor<f32>) -> tensor<3xf32>
  %2 = tressel.sub %zero, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0, %1, %2 : tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----
// CHECK-LABEL: @integer_zero
// CHECK-SAME: %[[X:.*]]: tensor<3xi32>
// CHECK-NEXT: return %[[X]]
func.func @integer_zero(%x: tensor<3xi32>) -> tensor<3xi32> {
  %zero = tressel.constant dense<0> : tensor<i32>
  %0 = tressel.add %x, %zero : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}

// -----
// CHECK-LABEL: @idempotent
// CHECK-COUNT-1: tressel.relu
// CHECK-NEXT: return
func.func @idempotent(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tressel.relu %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = tressel.relu %0 : (tensor<3xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// -----
// CHECK-LABEL: @transposes
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>
// CHECK-NEXT: return %[[X]]
func.func @transposes(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = tressel.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = tressel.transpose %0 {permutation = array<i64: 2, 0, -2>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// -----
// CHECK-LABEL: @views
// CHECK-SAME: %[[X:.*]]: tensor<2x6xf32>, %[[Y:.*]]: tensor<2x3x4xf32>
// CHECK-NEXT: tressel.reshape %[[X]] {shape = array<i64: 3, 4>} : (tensor<2x6xf32>)
// CHECK-NEXT: return %{{.*}}, %[[Y]]
func.func @views(%x: tensor<2x6xf32>, %y: tensor<2x3x4xf32>) -> (tensor<3x4xf32>, tensor<2x3x4xf32>) {
  %0 = tressel.reshape %x {shape = array<i64: 4, 3>} : (tensor<2x6xf32>) -> tensor<4x3xf32>
  %1 = tressel.reshape %0 {shape = array<i64: 3, 4>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %2 = tressel.flatten %y {start_axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  %3 = tressel.reshape %2 {shape = array<i64: 2, 3, 4>} : (tensor<2x12xf32>) -> tensor<2x3x4xf32>
  return %1, %3 : tensor<3x4xf32>, tensor<2x3x4xf32>
}

// -----
// A view whose result depends on the shape between stays where it is.
// CHECK-LABEL: @view_of_view_stays
// CHECK: tressel.expand_dims
// CHECK: tressel.flatten
func.func @view_of_view_stays(%x: tensor<2x6xf32>) -> tensor<1x12xf32> {
  %0 = tressel.expand_dims %x {axis = 0 : i64} : (tensor<2x6xf32>) -> tensor<1x2x6xf32>
  %1 = tressel.flatten %0 {start_axis = 1 : i64} : (tensor<1x2x6xf32>) -> tensor<1x12xf32>
  return %1 : tensor<1x12xf32>
}

// -----
// CHECK-LABEL: @same_type
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
// CHECK-NEXT: return %[[X]]
func.func @same_type(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = tressel.cast %x {dtype = f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = tressel.broadcast_to %0 {shape = array<i64: 2, 3>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = tressel.slice %1 {starts = array<i64: 0, 0>, limits = array<i64: 2, 9>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = tressel.pad %2 {low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = tressel.concat %3 {axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %4 : tensor<2x3xf32>
}

// -----
// A slice of full size that walks backwards is no identity.
// CHECK-LABEL: @reversal_stays
// CHECK: tressel.slice
func.func @reversal_stays(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tressel.slice %x {starts = array<i64: 2>, limits = array<i64: -9>, strides = array<i64: -1>} : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----
// Small constants are computed by the reference evaluation.
// CHECK-LABEL: @constants
// CHECK-DAG: dense<[5, 7]> : tensor<2xi64>
// CHECK-DAG: dense<{{\[}}[0.000000e+00, 0.000000e+00], [1.000000e+00, 1.000000e+00]]> : tensor<2x2xf32>
// CHECK-DAG: dense<[true, false]> : tensor<2xi1>
// CHECK-NOT: tressel.{{add|iota|less}}
func.func @constants() -> (tensor<2xi64>, tensor<2x2xf32>, tensor<2xi1>) {
  %0 = tressel.constant dense<[2, 4]> : tensor<2xi64>
  %1 = tressel.constant dense<3> : tensor<i64>
  %2 = tressel.add %0, %1 : (tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
  %3 = tressel.iota {shape = array<i64: 2, 2>, axis = 0 : i64, dtype = f32} : () -> tensor<2x2xf32>
  %4 = tressel.less %0, %1 : (tensor<2xi64>, tensor<i64>) -> tensor<2xi1>
  return %2, %3, %4 : tensor<2xi64>, tensor<2x2xf32>, tensor<2xi1>
}

// -----
// Nothing large is made of something small.
// CHECK-LABEL: @large_stays
// CHECK: tressel.broadcast_to
func.func @large_stays() -> tensor<64x64xf32> {
  %0 = tressel.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %1 = tressel.reshape %0 {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = tressel.slice %1 {starts = array<i64: 1, 0>, limits = array<i64: 2, 1>} : (tensor<4x1xf32>) -> tensor<1x1xf32>
  %3 = tressel.broadcast_to %2 {shape = array<i64: 64, 64>} : (tensor<1x1xf32>) -> tensor<64x64xf32>
  return %3 : tensor<64x64xf32>
}

// -----
// An index that is outside fails when the program runs, not when it is compiled.
// CHECK-LABEL: @bad_index_stays
// CHECK: tressel.take
func.func @bad_index_stays() -> tensor<1xf32> {
  %0 = tressel.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = tressel.constant dense<7> : tensor<1xi64>
  %2 = tressel.take %0, %1 : (tensor<2xf32>, tensor<1xi64>) -> tensor<1xf32>
  return %2 : tensor<1xf32>
}

// -----
// Constants move to the right of commutative ops.
// CHECK-LABEL: @constant_right
// CHECK: tressel.mul %arg0, %
func.func @constant_right(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tressel.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %1 = tressel.mul %0, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
