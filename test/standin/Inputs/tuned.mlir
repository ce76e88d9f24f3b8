func.func @main(%x: tensor<128x256xf32> {tressel.name = "x"}, %w: tensor<256x256xf32> {tressel.name = "w"}) -> (tensor<128x256xf32> {tressel.name = "y"}) {
  %0 = tressel.softmax %x {axis = -1 : i64} : (tensor<128x256xf32>) -> tensor<128x256xf32>
  %1 = tressel.matmul %0, %w : (tensor<128x256xf32>, tensor<256x256xf32>) -> tensor<128x256xf32>
  return %1 : tensor<128x256xf32>
}
