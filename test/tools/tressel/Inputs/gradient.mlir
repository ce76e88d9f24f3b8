func.func @main(%x: tensor<4096x64xf32> {tressel.name = "x"}, %w: tensor<64x512xf32> {tressel.state = "w"}) -> (tensor<64x512xf32> {tressel.state = "w"}) {
  %0 = tressel.matmul %x, %w : (tensor<4096x64xf32>, tensor<64x512xf32>) -> tensor<4096x512xf32>
  %1 = tressel.transpose %x : (tensor<4096x64xf32>) -> tensor<64x4096xf32>
  %2 = tressel.matmul %1, %0 : (tensor<64x4096xf32>, tensor<4096x512xf32>) -> tensor<64x512xf32>
  %3 = tressel.sub %w, %2 : (tensor<64x512xf32>, tensor<64x512xf32>) -> tensor<64x512xf32>
  return %3 : tensor<64x512xf32>
}
