// RUN: tressel-opt %s --tressel-split-reductions -split-input-file | FileCheck %s
// RUN: tressel-opt %s --tressel-split-reductions="split-dimensions=1 min-units=256 min-elements=65536" -split-input-file | FileCheck %s --check-prefix=CUT

// The first step's results are units of work.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[PARTS:.*]] = tressel.sum %arg0 {axis = array<i64: 1>, keepdims = true} : (tensor<1024x512xf32>) -> tensor<1024x1xf32>
// CHECK-NEXT: %[[ALL:.*]] = tressel.sum %[[PARTS]] : (tensor<1024x1xf32>) -> tensor<f32>
// CHECK-NEXT: return %[[ALL]]
func.func @main(%x: tensor<1024x512xf32> {tressel.name = "x"}) -> (tensor<f32> {tressel.name = "y"}) {
  %0 = tressel.sum %x : (tensor<1024x512xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// As many outer dimensions as it takes; the others keep their places. Symbolic sizes may be large.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[PARTS:.*]] = tressel.max %arg0 {axis = array<i64: 3>, keepdims = true}
// CHECK-NEXT: tressel.max %[[PARTS]] {axis = array<i64: 0, 1, 3>, keepdims = true}
// CHECK-NEXT: tressel.mean %arg1 {axis = array<i64: 1>, keepdims = true} : (tensor<?x512xf32, #tressel.dims<"n", 512>>) -> tensor<?x1xf32, #tressel.dims<"n", 1>>
// CHECK-NEXT: tressel.mean
// CHECK-NEXT: return
func.func @main(%x: tensor<3x16x2x8192xf32> {tressel.name = "x"}, %z: tensor<?x512xf32, #tressel.dims<"n", 512>> {tressel.name = "z"})
    -> (tensor<1x1x2x1xf32> {tressel.name = "y"}, tensor<f32> {tressel.name = "m"}) {
  %0 = tressel.max %x {axis = array<i64: 0, 1, 3>, keepdims = true} : (tensor<3x16x2x8192xf32>) -> tensor<1x1x2x1xf32>
  %1 = tressel.mean %z : (tensor<?x512xf32, #tressel.dims<"n", 512>>) -> tensor<f32>
  return %0, %1 : tensor<1x1x2x1xf32>, tensor<f32>
}

// -----

// Enough results, too little work, one dimension, and a type that would be rounded.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-4: tressel.sum
// CHECK-NOT: tressel.sum
func.func @main(%a: tensor<32x64x64xf32> {tressel.name = "a"}, %b: tensor<64x64xf32> {tressel.name = "b"},
                %c: tensor<1000000xf32> {tressel.name = "c"}, %d: tensor<1024x512xf16> {tressel.name = "d"})
    -> (tensor<32xf32> {tressel.name = "w"}, tensor<f32> {tressel.name = "x"}, tensor<f32> {tressel.name = "y"}, tensor<f16> {tressel.name = "z"}) {
  %0 = tressel.sum %a {axis = array<i64: 1, 2>} : (tensor<32x64x64xf32>) -> tensor<32xf32>
  %1 = tressel.sum %b : (tensor<64x64xf32>) -> tensor<f32>
  %2 = tressel.sum %c : (tensor<1000000xf32>) -> tensor<f32>
  %3 = tressel.sum %d : (tensor<1024x512xf16>) -> tensor<f16>
  return %0, %1, %2, %3 : tensor<32xf32>, tensor<f32>, tensor<f32>, tensor<f16>
}

// -----

// A single dimension becomes two where that is asked for, and the parts are equal.
// CUT-LABEL: func.func @main(%arg0: tensor<3x100000xf32> {tressel.name = "cut"}
// CUT: %[[X:.*]] = tressel.reshape %arg0 {shape = array<i64: 3, 100, 1000>}
// CUT: %[[PART:.*]] = tressel.mean %[[X]] {axis = array<i64: 2>} : (tensor<3x100x1000xf32>) -> tensor<3x100xf32>
// CUT: tressel.mean %[[PART]] {axis = array<i64: 1>, keepdims = true} : (tensor<3x100xf32>) -> tensor<3x1xf32>
// CHECK-LABEL: func.func @main(%arg0: tensor<3x100000xf32> {tressel.name = "cut"}
// CHECK-NEXT: tressel.mean %arg0
func.func @main(%x: tensor<3x100000xf32> {tressel.name = "cut"}) -> (tensor<3x1xf32> {tressel.name = "y"}) {
  %0 = tressel.mean %x {axis = array<i64: 1>, keepdims = true} : (tensor<3x100000xf32>) -> tensor<3x1xf32>
  return %0 : tensor<3x1xf32>
}
