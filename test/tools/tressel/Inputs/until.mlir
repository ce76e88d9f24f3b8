// A loop whose end is computed, in one side of a branch.
func.func @main(%x: tensor<f32> {tressel.name = "x"}, %p: tensor<i1> {tressel.name = "p"})
    -> (tensor<f32> {tressel.name = "r"}) {
  %r = tressel.cond %p : tensor<i1> with(%x : tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    %q = tressel.while carries(%a : tensor<f32>) -> tensor<f32> {
    ^bb0(%v: tensor<f32>):
      %l = tressel.constant dense<100.0> : tensor<f32>
      %f = tressel.less %v, %l : (tensor<f32>, tensor<f32>) -> tensor<i1>
      tressel.yield %f : tensor<i1>
    } do {
    ^bb0(%v: tensor<f32>):
      %n = tressel.constant dense<1.0> : tensor<f32>
      %s = tressel.add %v, %n : (tensor<f32>, tensor<f32>) -> tensor<f32>
      tressel.yield %s : tensor<f32>
    }
    tressel.yield %q : tensor<f32>
  } else {
  ^bb0(%a: tensor<f32>):
    tressel.yield %a : tensor<f32>
  }
  return %r : tensor<f32>
}
