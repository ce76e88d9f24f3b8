// Two products on two accelerators.
func.func @main(%a: tensor<1024x1024xf32> {tressel.name = "a", tressel.pinned}, %w: tensor<1024x1024xf32> {tressel.state = "w"})
    -> (tensor<1024x1024xf32> {tressel.name = "y", tressel.pinned}, tensor<1024x1024xf32> {tressel.name = "z", tressel.pinned}) {

  %0 = tressel.matmul %a, %w {tressel.device = "gpu0"} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %1 = tressel.to %a {device = "gpu1"} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %2 = tressel.matmul %1, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %0, %2 : tensor<1024x1024xf32>, tensor<1024x1024xf32>
}
