// RUN: tressel-opt %s | tressel-opt | FileCheck %s
// RUN: tressel-opt %s --mlir-print-op-generic | tressel-opt | FileCheck %s
// RUN: tressel-opt %s --emit-bytecode -o %t.mlirbc
// RUN: tressel-opt %t.mlirbc | FileCheck %s

// Each family once, with every kind of attribute; printing and parsing again changes nothing.

// CHECK-LABEL: @elementwise
func.func @elementwise(%x: tensor<2x3xf32>, %b: tensor<3xf32>, %i: tensor<3xui8>, %c: tensor<2x1xi1>) -> tensor<2x3xbf16> {
  // CHECK: tressel.add %arg0, %arg1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %0 = tressel.add %x, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: tressel.mul %{{.*}}, %arg2 : (tensor<2x3xf32>, tensor<3xui8>) -> tensor<2x3xf32>
  %1 = tressel.mul %0, %i : (tensor<2x3xf32>, tensor<3xui8>) -> tensor<2x3xf32>
  // CHECK: tressel.leaky_relu %{{.*}} {alpha = 2.000000e-01 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = tressel.leaky_relu %1 {alpha = 0.2 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: tressel.where %arg3, %{{.*}}, %arg1 : (tensor<2x1xi1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %3 = tressel.where %c, %2, %b : (tensor<2x1xi1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: tressel.cast %{{.*}} {dtype = bf16} : (tensor<2x3xf32>) -> tensor<2x3xbf16>
  %4 = tressel.cast %3 {dtype = bf16} : (tensor<2x3xf32>) -> tensor<2x3xbf16>
  return %4 : tensor<2x3xbf16>
}

// CHECK-LABEL: @creation
func.func @creation(%seed: tensor<i64>) -> (tensor<2x2xi1>, tensor<4xi64>, tensor<8xf64>) {
  // CHECK: tressel.full {dtype = i1, shape = array<i64: 2, 2>, value = 1.000000e+00 : f64} : () -> tensor<2x2xi1>
  %0 = tressel.full {shape = array<i64: 2, 2>, value = 1.0 : f64, dtype = i1} : () -> tensor<2x2xi1>
  // CHECK: tressel.iota {shape = array<i64: 4>} : () -> tensor<4xi64>
  %1 = tressel.iota {shape = array<i64: 4>} : () -> tensor<4xi64>
  // CHECK: tressel.random_uniform %arg0 {dtype = f64, shape = array<i64: 8>} : (tensor<i64>) -> tensor<8xf64>
  %2 = tressel.random_uniform %seed {shape = array<i64: 8>, dtype = f64} : (tensor<i64>) -> tensor<8xf64>
  return %0, %1, %2 : tensor<2x2xi1>, tensor<4xi64>, tensor<8xf64>
}

// CHECK-LABEL: @reduction
func.func @reduction(%x: tensor<2x3x4xf16>, %i: tensor<5xi32>) -> (tensor<2x1x1xf16>, tensor<2x4xi64>, tensor<i64>) {
  // CHECK: tressel.mean %arg0 {axis = array<i64: 1, -1>, keepdims = true} : (tensor<2x3x4xf16>) -> tensor<2x1x1xf16>
  %0 = tressel.mean %x {axis = array<i64: 1, -1>, keepdims = true} : (tensor<2x3x4xf16>) -> tensor<2x1x1xf16>
  // CHECK: tressel.argmax %arg0 {axis = 1 : i64} : (tensor<2x3x4xf16>) -> tensor<2x4xi64>
  %1 = tressel.argmax %x {axis = 1 : i64} : (tensor<2x3x4xf16>) -> tensor<2x4xi64>
  // CHECK: tressel.sum %arg1 : (tensor<5xi32>) -> tensor<i64>
  %2 = tressel.sum %i : (tensor<5xi32>) -> tensor<i64>
  return %0, %1, %2 : tensor<2x1x1xf16>, tensor<2x4xi64>, tensor<i64>
}

// CHECK-LABEL: @linear
func.func @linear(%a: tensor<5x1x2x3xf64>, %b: tensor<7x3xf64>, %x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>)
    -> (tensor<5x1x2xf64>, tensor<1x4x4x4xf32>, tensor<1x3x4x4xf32>) {
  %row = tressel.slice %b {starts = array<i64: 0, 0>, limits = array<i64: 1, 3>} : (tensor<7x3xf64>) -> tensor<1x3xf64>
  %v = tressel.squeeze %row : (tensor<1x3xf64>) -> tensor<3xf64>
  // CHECK: tressel.matmul %arg0, %{{.*}} : (tensor<5x1x2x3xf64>, tensor<3xf64>) -> tensor<5x1x2xf64>
  %0 = tressel.matmul %a, %v : (tensor<5x1x2x3xf64>, tensor<3xf64>) -> tensor<5x1x2xf64>
  // CHECK: tressel.conv %arg2, %arg3 {pad_high = array<i64: 1, 1>, pad_low = array<i64: 1, 1>, strides = array<i64: 2, 2>}
  %1 = tressel.conv %x, %w {strides = array<i64: 2, 2>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>}
      : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x4x4xf32>
  // CHECK: tressel.max_pool %arg2 {window = array<i64: 2, 2>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
  %2 = tressel.max_pool %x {window = array<i64: 2, 2>} : (tensor<1x3x8x8xf32>) -> tensor<1x3x4x4xf32>
  return %0, %1, %2 : tensor<5x1x2xf64>, tensor<1x4x4x4xf32>, tensor<1x3x4x4xf32>
}

// CHECK-LABEL: @shape
func.func @shape(%x: tensor<2x3xf32>, %ids: tensor<4xi64>) -> (tensor<6x1xf32>, tensor<3x5xf32>, tensor<2x4xf32>) {
  // CHECK: tressel.reshape %arg0 {shape = array<i64: -1, 1>} : (tensor<2x3xf32>) -> tensor<6x1xf32>
  %0 = tressel.reshape %x {shape = array<i64: -1, 1>} : (tensor<2x3xf32>) -> tensor<6x1xf32>
  // CHECK: tressel.transpose %arg0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = tressel.transpose %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
  // CHECK: tressel.pad %{{.*}} {high = array<i64: 0, 1>, low = array<i64: 0, 0>, value = -1.000000e+00 : f64}
  %2 = tressel.pad %1 {low = array<i64: 0, 0>, high = array<i64: 0, 1>, value = -1.0 : f64} : (tensor<3x2xf32>) -> tensor<3x3xf32>
  // CHECK: tressel.concat %{{.*}}, %{{.*}} {axis = -1 : i64} : (tensor<3x2xf32>, tensor<3x3xf32>) -> tensor<3x5xf32>
  %3 = tressel.concat %1, %2 {axis = -1 : i64} : (tensor<3x2xf32>, tensor<3x3xf32>) -> tensor<3x5xf32>
  // CHECK: tressel.take %arg0, %arg1 {axis = 1 : i64} : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<2x4xf32>
  %4 = tressel.take %x, %ids {axis = 1 : i64} : (tensor<2x3xf32>, tensor<4xi64>) -> tensor<2x4xf32>
  return %0, %3, %4 : tensor<6x1xf32>, tensor<3x5xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: @composite
func.func @composite(%x: tensor<2x?xf32>, %s: tensor<4xf32>, %y: tensor<2x4xf32>) -> (tensor<2x?xf32>, tensor<2x4xf32>) {
  // CHECK: tressel.softmax %arg0 : (tensor<2x?xf32>) -> tensor<2x?xf32>
  %0 = tressel.softmax %x : (tensor<2x?xf32>) -> tensor<2x?xf32>
  // CHECK: tressel.layer_norm %arg2, %arg1, %arg1 {epsilon = 1.000000e-03 : f64}
  %1 = tressel.layer_norm %y, %s, %s {epsilon = 0.001 : f64} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %0, %1 : tensor<2x?xf32>, tensor<2x4xf32>
}

// CHECK-LABEL: @constants
func.func @constants() -> (tensor<2xi1>, tensor<2x2xf32>, tensor<f16>) {
  // CHECK: tressel.constant dense<[true, false]> : tensor<2xi1>
  %0 = tressel.constant dense<[true, false]> : tensor<2xi1>
  // CHECK: tressel.constant dense_resource<four> : tensor<2x2xf32>
  %1 = tressel.constant dense_resource<four> : tensor<2x2xf32>
  // CHECK: tressel.constant dense<1.500000e+00> : tensor<f16>
  %2 = tressel.constant dense<1.5> : tensor<f16>
  return %0, %1, %2 : tensor<2xi1>, tensor<2x2xf32>, tensor<f16>
}

// CHECK-LABEL: @while_with_a_bound
// CHECK: tressel.while at most 6 carries(%arg0 : tensor<f32>) -> tensor<f32>
func.func @while_with_a_bound(%x: tensor<f32>) -> tensor<f32> {
  %r = tressel.while at most 6 carries(%x : tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    %0 = tressel.less %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tressel.yield %0 : tensor<i1>
  } do {
  ^bb0(%a: tensor<f32>):
    tressel.yield %a : tensor<f32>
  }
  return %r : tensor<f32>
}

// CHECK: four: "0x040000000000803F000000400000404000008040"
{-#
  dialect_resources: {
    builtin: { four: "0x040000000000803F000000400000404000008040" }
  }
#-}
