func.func @main(%x: tensor<200000xf32> {tressel.name = "x"}) -> (tensor<200000xf32> {tressel.name = "y"}) {
  %0 = tressel.exp %x : (tensor<200000xf32>) -> tensor<200000xf32>
  return %0 : tensor<200000xf32>
}
