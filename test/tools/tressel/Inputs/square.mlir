func.func @main(%x: tensor<64xf32> {tressel.name = "x"}) -> (tensor<64xf32> {tressel.name = "y"}) {
  %two = tressel.constant dense<2.0> : tensor<f32>
  %y = tressel.pow %x, %two : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  return %y : tensor<64xf32>
}
