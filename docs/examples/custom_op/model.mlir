func.func @main(%x: tensor<2x3xf32> {tressel.name = "x"}, %i: tensor<8xi32> {tressel.name = "i"})
    -> (tensor<2x3xf32> {tressel.name = "y"}, tensor<4xi64> {tressel.name = "counts"}) {
  %0 = tressel.acme.cube %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = tressel.add %0, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = tressel.acme.histogram %i {bins = 4 : i64} : (tensor<8xi32>) -> tensor<4xi64>
  return %1, %2 : tensor<2x3xf32>, tensor<4xi64>
}
