func.func @main(%x: tensor<2x3xf32> {tressel.name = "x"}, %y: tensor<3xf32> {tressel.name = "a/b"})
    -> (tensor<2x3xf32> {tressel.name = "sum/0"}) {
  %0 = tressel.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
