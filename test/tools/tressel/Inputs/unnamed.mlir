func.func @main(%x: tensor<4x64xf32>, %y: tensor<64xf32>) -> tensor<4x64xf32> {
  %0 = tressel.exp %x : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %1 = tressel.add %0, %y : (tensor<4x64xf32>, tensor<64xf32>) -> tensor<4x64xf32>
  return %1 : tensor<4x64xf32>
}
