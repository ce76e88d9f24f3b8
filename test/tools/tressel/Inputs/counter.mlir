// Adds its input to a state, and gives the sum.
func.func @main(%x: tensor<2xf32> {tressel.name = "x"}, %s: tensor<2xf32> {tressel.state = "sum"})
    -> (tensor<2xf32> {tressel.name = "y"}, tensor<2xf32> {tressel.state = "sum"}) {
  %0 = tressel.add %x, %s : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %0 : tensor<2xf32>, tensor<2xf32>
}
