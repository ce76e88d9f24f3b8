// RUN: tressel-opt %s --tressel-simplify -split-input-file | FileCheck %s
// RUN: tressel-opt %s --tressel-simplify -split-input-file -mlir-print-debuginfo | FileCheck %s --check-prefix=LOC

// Folding, algebra, duplicates, dead code in one.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]] = tressel.relu %arg0
// CHECK-NEXT: %[[S:.*]] = tressel.add %[[R]], %[[R]]
// CHECK-NEXT: return %[[S]]
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  %half = tressel.constant dense<0.5> : tensor<f32>
  %one = tressel.add %half, %half : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %0 = tressel.mul %x, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = tressel.relu %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = tressel.relu %1 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = tressel.relu %x : (tensor<4xf32>) -> tensor<4xf32>
  %4 = tressel.add %2, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %dead = tressel.exp %4 : (tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// Merged ops keep the lines of both.
// LOC-LABEL: func.func @main
// LOC: tressel.exp %arg0 {{.*}} loc(#[[BOTH:.*]])
// LOC-DAG: #[[A:.*]] = loc("first.cpp":1:0)
// LOC-DAG: #[[B:.*]] = loc("second.cpp":2:0)
// LOC-DAG: #[[BOTH]] = loc(fused[#[[A]], #[[B]]])
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  %0 = tressel.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("first.cpp":1:0)
  %1 = tressel.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("second.cpp":2:0)
  %2 = tressel.mul %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// A constant that is large stays what it was made of, and so does a random draw.
// CHECK-LABEL: func.func @main() -> (tensor<64x64xf32> {tressel.name = "large"}
// CHECK: tressel.broadcast_to
func.func @main() -> (tensor<64x64xf32> {tressel.name = "large"}) {
  %row = tressel.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0,
                                 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0,
                                 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0,
                                 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]> : tensor<64xf32>
  %0 = tressel.broadcast_to %row {shape = array<i64: 64, 64>} : (tensor<64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
