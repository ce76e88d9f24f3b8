// RUN: tressel-opt %s --tressel-assign-layouts --tressel-simplify -split-input-file | FileCheck %s
// RUN: tressel-opt %s --tressel-pipeline --tressel-disable-pass=assign-layouts --tressel-stop-after=form-clusters -split-input-file | FileCheck %s --check-prefix=OFF

// OFF-NOT: channels_last = true

// A block of a residual network: transposes at its borders only; what each channel is scaled by is a reshaped vector, and
// the mean over space takes its axes where they now are.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[X:.*]] = tressel.transpose %arg0 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<8x64x28x28xf32>) -> tensor<8x28x28x64xf32>
// CHECK-DAG: %[[S:.*]] = tressel.reshape %arg2 {{.*}} -> tensor<1x1x1x64xf32>
// CHECK: %[[C:.*]] = tressel.conv %[[X]], %arg1 {channels_last = true, pad_high = array<i64: 1, 1>, pad_low = array<i64: 1, 1>} : (tensor<8x28x28x64xf32>, tensor<64x64x3x3xf32>) -> tensor<8x28x28x64xf32>
// CHECK-NEXT: %[[M:.*]] = tressel.mul %[[C]], %[[S]]
// CHECK-NEXT: %[[R:.*]] = tressel.relu %[[M]]
// CHECK-NEXT: %[[D:.*]] = tressel.conv %[[R]], %arg1 {channels_last = true
// CHECK-NEXT: %[[A:.*]] = tressel.add %[[D]], %[[X]]
// CHECK-NEXT: %[[P:.*]] = tressel.max_pool %[[A]] {channels_last = true, window = array<i64: 2, 2>} : (tensor<8x28x28x64xf32>) -> tensor<8x14x14x64xf32>
// CHECK-NEXT: %[[G:.*]] = tressel.mean %[[P]] {axis = array<i64: 1, 2>} : (tensor<8x14x14x64xf32>) -> tensor<8x64xf32>
// CHECK-NEXT: return %[[G]]
func.func @main(%x: tensor<8x64x28x28xf32> {tressel.name = "x"}, %w: tensor<64x64x3x3xf32> {tressel.state = "w"},
                %s: tensor<64x1x1xf32> {tressel.state = "s"}) -> (tensor<8x64xf32> {tressel.name = "y"}) {
  %0 = tressel.conv %x, %w {pad_high = array<i64: 1, 1>, pad_low = array<i64: 1, 1>} : (tensor<8x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x28x28xf32>
  %1 = tressel.mul %0, %s : (tensor<8x64x28x28xf32>, tensor<64x1x1xf32>) -> tensor<8x64x28x28xf32>
  %2 = tressel.relu %1 : (tensor<8x64x28x28xf32>) -> tensor<8x64x28x28xf32>
  %3 = tressel.conv %2, %w {pad_high = array<i64: 1, 1>, pad_low = array<i64: 1, 1>} : (tensor<8x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x28x28xf32>
  %4 = tressel.add %3, %x : (tensor<8x64x28x28xf32>, tensor<8x64x28x28xf32>) -> tensor<8x64x28x28xf32>
  %5 = tressel.max_pool %4 {window = array<i64: 2, 2>} : (tensor<8x64x28x28xf32>) -> tensor<8x64x14x14xf32>
  %6 = tressel.mean %5 {axis = array<i64: 2, 3>} : (tensor<8x64x14x14xf32>) -> tensor<8x64xf32>
  return %6 : tensor<8x64xf32>
}

// -----

// Concatenation along channels and padding follow, and so do symbolic sizes.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = tressel.transpose %arg0
// CHECK-NEXT: %[[C:.*]] = tressel.conv %[[X]], %arg1 {channels_last = true} : (tensor<?x?x30x64xf32, #tressel.dims<"n", "h[8..64]", 30, 64>>
// CHECK-NEXT: %[[J:.*]] = tressel.concat %[[C]], %[[X]] {axis = 3 : i64}
// CHECK-NEXT: %[[P:.*]] = tressel.pad %[[J]] {high = array<i64: 0, 1, 1, 0>, low = array<i64: 0, 1, 1, 0>}
// CHECK-NEXT: %[[D:.*]] = tressel.conv %[[P]], %arg2 {channels_last = true}
// CHECK-NEXT: tressel.transpose %[[D]] {permutation = array<i64: 0, 3, 1, 2>}
// CHECK-NEXT: return
func.func @main(%x: tensor<?x64x?x30xf32, #tressel.dims<"n", 64, "h[8..64]", 30>> {tressel.name = "x"}, %v: tensor<64x64x1x1xf32> {tressel.state = "v"},
                %w: tensor<64x128x3x3xf32> {tressel.state = "w"}) -> (tensor<?x64x?x30xf32, #tressel.dims<"n", 64, "h[8..64]", 30>> {tressel.name = "y"}) {
  %0 = tressel.conv %x, %v : (tensor<?x64x?x30xf32, #tressel.dims<"n", 64, "h[8..64]", 30>>, tensor<64x64x1x1xf32>) -> tensor<?x64x?x30xf32, #tressel.dims<"n", 64, "h[8..64]", 30>>
  %1 = tressel.concat %0, %x {axis = 1 : i64} : (tensor<?x64x?x30xf32, #tressel.dims<"n", 64, "h[8..64]", 30>>, tensor<?x64x?x30xf32, #tressel.dims<"n", 64, "h[8..64]", 30>>) -> tensor<?x128x?x30xf32, #tressel.dims<"n", 128, "h[8..64]", 30>>
  %2 = tressel.pad %1 {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>} : (tensor<?x128x?x30xf32, #tressel.dims<"n", 128, "h[8..64]", 30>>) -> tensor<?x128x?x32xf32, #tressel.dims<"n", 128, "h[8..64] + 2", 32>>
  %3 = tressel.conv %2, %w : (tensor<?x128x?x32xf32, #tressel.dims<"n", 128, "h[8..64] + 2", 32>>, tensor<64x128x3x3xf32>) -> tensor<?x64x?x30xf32, #tressel.dims<"n", 64, "h[8..64]", 30>>
  return %3 : tensor<?x64x?x30xf32, #tressel.dims<"n", 64, "h[8..64]", 30>>
}

// -----

// A slice of channels: turned afterwards, when there is less of it.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = tressel.transpose %arg0
// CHECK: %[[C:.*]] = tressel.conv %[[X]], %arg1 {channels_last = true,
// CHECK-NEXT: %[[L:.*]] = tressel.slice %[[C]] {limits = array<i64: 8, 28, 28, 48>, starts = array<i64: 0, 0, 0, 16>}
// CHECK-NEXT: tressel.transpose %[[L]]
// CHECK-NEXT: return
func.func @main(%x: tensor<8x64x28x28xf32> {tressel.name = "x"}, %w: tensor<64x64x3x3xf32> {tressel.state = "w"}) -> (tensor<8x32x28x28xf32> {tressel.name = "y"}) {
  %0 = tressel.conv %x, %w {pad_high = array<i64: 1, 1>, pad_low = array<i64: 1, 1>} : (tensor<8x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x28x28xf32>
  %1 = tressel.slice %0 {starts = array<i64: 0, 16, 0, 0>, limits = array<i64: 8, 48, 28, 28>} : (tensor<8x64x28x28xf32>) -> tensor<8x32x28x28xf32>
  return %1 : tensor<8x32x28x28xf32>
}

// -----

// Too little arithmetic for the transposes: it stays.
// CHECK-LABEL: func.func @main
// CHECK-NOT: transpose
// CHECK: tressel.conv
// CHECK-NOT: channels_last
func.func @main(%x: tensor<8x16x28x28xf32> {tressel.name = "x"}, %w: tensor<16x16x1x1xf32> {tressel.state = "w"}) -> (tensor<8x16x28x28xf32> {tressel.name = "y"}) {
  %0 = tressel.conv %x, %w : (tensor<8x16x28x28xf32>, tensor<16x16x1x1xf32>) -> tensor<8x16x28x28xf32>
  %1 = tressel.relu %0 : (tensor<8x16x28x28xf32>) -> tensor<8x16x28x28xf32>
  return %1 : tensor<8x16x28x28xf32>
}

// -----

// A network written with channels last around convolutions that are not: all transposes go, even where channels last
// alone would not be worth one.
// CHECK-LABEL: func.func @main
// CHECK-NOT: transpose
// CHECK: %[[C:.*]] = tressel.conv %arg0, %arg1 {channels_last = true} : (tensor<8x28x28x16xf32>
// CHECK-NEXT: %[[R:.*]] = tressel.relu %[[C]] : (tensor<8x28x28x16xf32>
// CHECK-NEXT: %[[D:.*]] = tressel.conv %[[R]], %arg1 {channels_last = true}
// CHECK-NEXT: return %[[D]]
func.func @main(%x: tensor<8x28x28x16xf32> {tressel.name = "x"}, %w: tensor<16x16x1x1xf32> {tressel.state = "w"}) -> (tensor<8x28x28x16xf32> {tressel.name = "y"}) {
  %0 = tressel.transpose %x {permutation = array<i64: 0, 3, 1, 2>} : (tensor<8x28x28x16xf32>) -> tensor<8x16x28x28xf32>
  %1 = tressel.conv %0, %w : (tensor<8x16x28x28xf32>, tensor<16x16x1x1xf32>) -> tensor<8x16x28x28xf32>
  %2 = tressel.transpose %1 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<8x16x28x28xf32>) -> tensor<8x28x28x16xf32>
  %3 = tressel.relu %2 : (tensor<8x28x28x16xf32>) -> tensor<8x28x28x16xf32>
  %4 = tressel.transpose %3 {permutation = array<i64: 0, 3, 1, 2>} : (tensor<8x28x28x16xf32>) -> tensor<8x16x28x28xf32>
  %5 = tressel.conv %4, %w : (tensor<8x16x28x28xf32>, tensor<16x16x1x1xf32>) -> tensor<8x16x28x28xf32>
  %6 = tressel.transpose %5 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<8x16x28x28xf32>) -> tensor<8x28x28x16xf32>
  return %6 : tensor<8x28x28x16xf32>
}

// -----

// The convolution of few channels stays as it is, and so does what needs the elements in their order: borders lie between.
// CHECK-LABEL: func.func @main
// CHECK: %[[C:.*]] = tressel.conv %arg0, %arg1 :
// CHECK: %[[T:.*]] = tressel.transpose {{.*}} {permutation = array<i64: 0, 2, 3, 1>}
// CHECK: %[[D:.*]] = tressel.conv {{.*}}, %arg2 {channels_last = true}
// CHECK: %[[B:.*]] = tressel.transpose {{.*}} {permutation = array<i64: 0, 3, 1, 2>}
// CHECK: tressel.reshape %[[B]] {{.*}} -> tensor<8x43264xf32>
func.func @main(%x: tensor<8x3x30x30xf32> {tressel.name = "x"}, %v: tensor<64x3x3x3xf32> {tressel.state = "v"},
                %w: tensor<64x64x3x3xf32> {tressel.state = "w"}) -> (tensor<8x43264xf32> {tressel.name = "y"}) {
  %0 = tressel.conv %x, %v : (tensor<8x3x30x30xf32>, tensor<64x3x3x3xf32>) -> tensor<8x64x28x28xf32>
  %1 = tressel.relu %0 : (tensor<8x64x28x28xf32>) -> tensor<8x64x28x28xf32>
  %2 = tressel.conv %1, %w : (tensor<8x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x26x26xf32>
  %3 = tressel.reshape %2 {shape = array<i64: 8, 43264>} : (tensor<8x64x26x26xf32>) -> tensor<8x43264xf32>
  return %3 : tensor<8x43264xf32>
}

// -----

// Pooled to one pixel, the result has the same bytes in either order.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-1: tressel.transpose
// CHECK-NOT: tressel.transpose
// CHECK: tressel.mean {{.*}} {axis = array<i64: 1, 2>, keepdims = true} : (tensor<8x26x26x64xf32>) -> tensor<8x1x1x64xf32>
// CHECK-NEXT: tressel.reshape {{.*}} -> tensor<8x64xf32>
func.func @main(%x: tensor<8x64x28x28xf32> {tressel.name = "x"}, %w: tensor<64x64x3x3xf32> {tressel.state = "w"}) -> (tensor<8x64xf32> {tressel.name = "y"}) {
  %0 = tressel.conv %x, %w : (tensor<8x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x26x26xf32>
  %1 = tressel.mean %0 {axis = array<i64: 2, 3>, keepdims = true} : (tensor<8x64x26x26xf32>) -> tensor<8x64x1x1xf32>
  %2 = tressel.reshape %1 {shape = array<i64: 8, 64>} : (tensor<8x64x1x1xf32>) -> tensor<8x64xf32>
  return %2 : tensor<8x64xf32>
}

// -----

// Squeeze and excite: what has one pixel could stay, but a view would part it from what scales by it.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: tressel.transpose
// CHECK-NOT: tressel.reshape
// CHECK: tressel.mean {{.*}} -> tensor<8x1x1x64xf32>
// CHECK-NEXT: tressel.conv {{.*}} {channels_last = true} : (tensor<8x1x1x64xf32>
// CHECK-NEXT: tressel.sigmoid {{.*}} -> tensor<8x1x1x64xf32>
// CHECK-NEXT: tressel.mul
// CHECK-NEXT: tressel.conv
func.func @main(%x: tensor<8x64x28x28xf32> {tressel.name = "x"}, %w: tensor<64x64x3x3xf32> {tressel.state = "w"}, %v: tensor<64x64x1x1xf32> {tressel.state = "v"},
                %u: tensor<8x64x26x26xf32> {tressel.name = "u"}) -> (tensor<8x64xf32> {tressel.name = "y"}) {
  %0 = tressel.conv %x, %w : (tensor<8x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x26x26xf32>
  %1 = tressel.add %0, %u : (tensor<8x64x26x26xf32>, tensor<8x64x26x26xf32>) -> tensor<8x64x26x26xf32>
  %2 = tressel.mean %1 {axis = array<i64: 2, 3>, keepdims = true} : (tensor<8x64x26x26xf32>) -> tensor<8x64x1x1xf32>
  %3 = tressel.conv %2, %v : (tensor<8x64x1x1xf32>, tensor<64x64x1x1xf32>) -> tensor<8x64x1x1xf32>
  %4 = tressel.sigmoid %3 : (tensor<8x64x1x1xf32>) -> tensor<8x64x1x1xf32>
  %5 = tressel.mul %1, %4 : (tensor<8x64x26x26xf32>, tensor<8x64x1x1xf32>) -> tensor<8x64x26x26xf32>
  %6 = tressel.conv %5, %w : (tensor<8x64x26x26xf32>, tensor<64x64x3x3xf32>) -> tensor<8x64x24x24xf32>
  %7 = tressel.mean %6 {axis = array<i64: 2, 3>} : (tensor<8x64x24x24xf32>) -> tensor<8x64xf32>
  return %7 : tensor<8x64xf32>
}
