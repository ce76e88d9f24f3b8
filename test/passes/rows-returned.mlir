// RUN: tressel-opt %s --tressel-pipeline --tressel-verify-each | FileCheck %s

// Some of a result's rows are returned: the whole does not fit into the output, so they are copied.
// CHECK: %[[T:.*]] = sched.buffer in %memory at 0 : tensor<64x64xf32>
// CHECK: %[[V:.*]] = sched.view %[[T]] plus 8192 : tensor<32x64xf32>
// CHECK: sched.copy %[[V]] -> %y on %cpu
func.func @main(%x: tensor<64x64xf32> {tressel.name = "x"}, %w: tensor<64x64xf32> {tressel.state = "w"}) -> (tensor<32x64xf32> {tressel.name = "y"}) {
  %0 = tressel.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = tressel.slice %0 {starts = array<i64: 32, 0>, limits = array<i64: 64, 64>} : (tensor<64x64xf32>) -> tensor<32x64xf32>
  return %1 : tensor<32x64xf32>
}
