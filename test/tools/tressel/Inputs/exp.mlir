func.func @main(%x: tensor<64x64xf32> {tressel.name = "x"}) -> (tensor<64x64xf32> {tressel.name = "y"}) {
  %0 = tressel.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = tressel.add %0, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}
