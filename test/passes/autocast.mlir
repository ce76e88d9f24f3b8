// RUN: tressel-opt %s --tressel-autocast=type=bf16 | FileCheck %s
// RUN: tressel-opt %s --tressel-autocast=type=f16 | FileCheck %s --check-prefix=HALF
// RUN: tressel-opt %s --tressel-autocast | FileCheck %s --check-prefix=NONE
// RUN: not tressel-opt %s --tressel-autocast=type=i8 2>&1 | FileCheck %s --check-prefix=OTHER

// Products of f32 are computed in the type, those in bodies too; what was widened from it is taken as it was; everything else stays.
// OTHER: products cannot be computed in 'i8'; the types of half the width are f16 and bf16
// NONE-NOT: bf16
// HALF: tressel.matmul {{.*}} -> tensor<8x2xf16>

// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = tressel.cast %arg0 {dtype = bf16}
// CHECK: %[[W:.*]] = tressel.cast %arg1 {dtype = bf16}
// CHECK: %[[P:.*]] = tressel.matmul %[[X]], %[[W]] : (tensor<8x4xbf16>, tensor<4x2xbf16>) -> tensor<8x2xbf16>
// CHECK: %[[F:.*]] = tressel.cast %[[P]] {dtype = f32}
// CHECK: tressel.softmax %[[F]]{{.*}} : (tensor<8x2xf32>) -> tensor<8x2xf32>
// CHECK: %[[V:.*]] = tressel.cast %arg2 {dtype = bf16}
// CHECK: tressel.matmul %[[P]], %[[V]] : (tensor<8x2xbf16>, tensor<2x4xbf16>) -> tensor<8x4xbf16>
// CHECK: tressel.matmul %arg3, %arg3 : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
// CHECK: tressel.cond
// CHECK: tressel.matmul {{.*}} -> tensor<8x4xbf16>
func.func @main(%x: tensor<8x4xf32> {tressel.name = "x"}, %w: tensor<4x2xf32> {tressel.name = "w"}, %v: tensor<2x4xf32> {tressel.name = "v"},
                %d: tensor<4x4xf64> {tressel.name = "d"}, %c: tensor<i1> {tressel.name = "c"})
    -> (tensor<8x2xf32> {tressel.name = "a"}, tensor<8x4xf32> {tressel.name = "b"}, tensor<4x4xf64> {tressel.name = "e"}, tensor<8x4xf32> {tressel.name = "f"}) {
  %0 = tressel.matmul %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %1 = tressel.softmax %0 : (tensor<8x2xf32>) -> tensor<8x2xf32>
  %2 = tressel.matmul %0, %v : (tensor<8x2xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %3 = tressel.matmul %d, %d : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %4 = tressel.cond %c : tensor<i1> with(%1, %v : tensor<8x2xf32>, tensor<2x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x2xf32>, %b: tensor<2x4xf32>):
    %5 = tressel.matmul %a, %b : (tensor<8x2xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
    tressel.yield %5 : tensor<8x4xf32>
  } else {
  ^bb0(%a: tensor<8x2xf32>, %b: tensor<2x4xf32>):
    %5 = tressel.matmul %a, %b : (tensor<8x2xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
    tressel.yield %5 : tensor<8x4xf32>
  }
  return %1, %2, %3, %4 : tensor<8x2xf32>, tensor<8x4xf32>, tensor<4x4xf64>, tensor<8x4xf32>
}
