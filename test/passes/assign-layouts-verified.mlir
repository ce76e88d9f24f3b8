// RUN: tressel-opt %s --tressel-pipeline --tressel-verify-each --tressel-stop-after=form-clusters | FileCheck %s
// RUN: tressel-opt %s --tressel-pipeline --tressel-verify-each -o /dev/null

// The interpreter finds no difference before and after: convolutions with groups, strides and pads, a pool that rounds up,
// a residual, a mean.
// CHECK-COUNT-3: channels_last = true
func.func @main(%x: tensor<2x16x9x9xf32> {tressel.name = "x"}, %v: tensor<16x1x3x3xf32> {tressel.state = "v"},
                %w: tensor<32x16x1x1xf32> {tressel.state = "w"}, %u: tensor<32x32x3x3xf32> {tressel.state = "u"},
                %s: tensor<32x1x1xf32> {tressel.state = "s"}) -> (tensor<2x32xf32> {tressel.name = "y"}) {
  %0 = tressel.conv %x, %v {groups = 16 : i64, pad_high = array<i64: 1, 1>, pad_low = array<i64: 1, 1>} : (tensor<2x16x9x9xf32>, tensor<16x1x3x3xf32>) -> tensor<2x16x9x9xf32>
  %1 = tressel.relu6 %0 : (tensor<2x16x9x9xf32>) -> tensor<2x16x9x9xf32>
  %2 = tressel.conv %1, %w : (tensor<2x16x9x9xf32>, tensor<32x16x1x1xf32>) -> tensor<2x32x9x9xf32>
  %3 = tressel.add %2, %s : (tensor<2x32x9x9xf32>, tensor<32x1x1xf32>) -> tensor<2x32x9x9xf32>
  %4 = tressel.conv %3, %u {pad_high = array<i64: 1, 1>, pad_low = array<i64: 1, 1>} : (tensor<2x32x9x9xf32>, tensor<32x32x3x3xf32>) -> tensor<2x32x9x9xf32>
  %5 = tressel.add %4, %3 : (tensor<2x32x9x9xf32>, tensor<2x32x9x9xf32>) -> tensor<2x32x9x9xf32>
  %6 = tressel.max_pool %5 {window = array<i64: 2, 2>, ceil_mode = true} : (tensor<2x32x9x9xf32>) -> tensor<2x32x5x5xf32>
  %7 = tressel.mean %6 {axis = array<i64: 2, 3>} : (tensor<2x32x5x5xf32>) -> tensor<2x32xf32>
  return %7 : tensor<2x32xf32>
}
