func.func @main(%x: tensor<64x784xf32>, %w: tensor<784x256xf32> {tressel.state = "w"}, %b: tensor<256xf32> {tressel.state = "b"})
    -> tensor<64x256xf32> {
  %0 = tressel.matmul %x, %w : (tensor<64x784xf32>, tensor<784x256xf32>) -> tensor<64x256xf32>
  %1 = tressel.add %0, %b : (tensor<64x256xf32>, tensor<256xf32>) -> tensor<64x256xf32>
  %2 = tressel.relu %1 : (tensor<64x256xf32>) -> tensor<64x256xf32>
  return %2 : tensor<64x256xf32>
}
