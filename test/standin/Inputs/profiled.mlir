func.func @main(%x: tensor<64x64xf32> {tressel.name = "x"}, %w: tensor<64x64xf32> {tressel.name = "w"})
    -> (tensor<64x64xf32> {tressel.name = "y"}) {
  %0 = tressel.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = tressel.tanh %0 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}
