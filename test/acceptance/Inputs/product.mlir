// Large enough for a built-in kernel; the right side is packed once.
func.func @main(%x: tensor<96x300xf32> {tressel.name = "x"}) -> (tensor<96x200xf32> {tressel.name = "y"}) {
  %i = tressel.iota {axis = 0 : i64, dtype = f32, shape = array<i64: 300, 200>} : () -> tensor<300x200xf32>
  %j = tressel.iota {axis = 1 : i64, dtype = f32, shape = array<i64: 300, 200>} : () -> tensor<300x200xf32>
  %s = tressel.add %i, %j : (tensor<300x200xf32>, tensor<300x200xf32>) -> tensor<300x200xf32>
  %w = tressel.cos %s : (tensor<300x200xf32>) -> tensor<300x200xf32>
  %p = tressel.matmul %x, %w : (tensor<96x300xf32>, tensor<300x200xf32>) -> tensor<96x200xf32>
  %y = tressel.relu %p : (tensor<96x200xf32>) -> tensor<96x200xf32>
  return %y : tensor<96x200xf32>
}
