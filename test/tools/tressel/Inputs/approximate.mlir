func.func @main(%x: tensor<4x64xf32> {tressel.name = "x"}) -> (tensor<4x64xf32> {tressel.name = "y"}) {
  %0 = tressel.negative %x : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %1 = tressel.exp %0 : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %2 = tressel.negative %1 : (tensor<4x64xf32>) -> tensor<4x64xf32>
  return %2 : tensor<4x64xf32>
}
