func.func @main(%x: tensor<64x1000xf32> {tressel.name = "x"}) -> (tensor<64xf32> {tressel.name = "y"}) {
  %0 = tressel.sum %x {axis = array<i64: 1>} : (tensor<64x1000xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
