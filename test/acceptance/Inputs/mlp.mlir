func.func @main(%x: tensor<4x16xf32> {tressel.name = "x"}, %w: tensor<16x8xf32> {tressel.name = "w"})
    -> (tensor<4x8xf32> {tressel.name = "y"}) {
  %0 = tressel.matmul %x, %w : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %1 = tressel.softmax %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
