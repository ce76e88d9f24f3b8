func.func @main(%x: tensor<75x257xf32> {tressel.name = "x"}, %w: tensor<257x32xf32> {tressel.state = "w"}) -> (tensor<75x32xf32> {tressel.name = "y"}) {
  %a = tressel.sin %x : (tensor<75x257xf32>) -> tensor<75x257xf32>
  %y = tressel.matmul %a, %w : (tensor<75x257xf32>, tensor<257x32xf32>) -> tensor<75x32xf32>
  return %y : tensor<75x32xf32>
}
