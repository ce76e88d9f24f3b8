func.func @main(%a: tensor<4000000x4000000xf32> {tressel.name = "a"}, %b: tensor<4000000x4000000xf32> {tressel.name = "b"}) -> (tensor<4000000x4000000xf32> {tressel.name = "y"}) {
  %0 = tressel.matmul %a, %b : (tensor<4000000x4000000xf32>, tensor<4000000x4000000xf32>) -> tensor<4000000x4000000xf32>
  return %0 : tensor<4000000x4000000xf32>
}
