func.func @main(%x: tensor<2xf32> {tressel.name = "x"})
    -> (tensor<2xf32> {tressel.name = "y"}, tensor<2xf32> {tressel.name = "z"}) {
  %0 = tressel.negative %x : (tensor<2xf32>) -> tensor<2xf32>
  %1 = tressel.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
