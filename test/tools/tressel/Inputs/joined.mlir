func.func @main(%a: tensor<1000000xf32> {tressel.name = "a"}, %b: tensor<1000000xf32> {tressel.name = "b"}, %c: tensor<1000000xf32> {tressel.name = "c"}) -> (tensor<3000000xf32> {tressel.name = "y"}) {
  %y = tressel.concat %a, %b, %c {axis = 0 : i64} : (tensor<1000000xf32>, tensor<1000000xf32>, tensor<1000000xf32>) -> tensor<3000000xf32>
  return %y : tensor<3000000xf32>
}
