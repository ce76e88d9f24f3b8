func.func @main(%x: tensor<32x64xf32> {tressel.name = "x"}, %w: tensor<64x96xf32> {tressel.name = "w"})
    -> (tensor<32x96xf32> {tressel.name = "y"}) {
  %0 = tressel.matmul %x, %w : (tensor<32x64xf32>, tensor<64x96xf32>) -> tensor<32x96xf32>
  return %0 : tensor<32x96xf32>
}
