// RUN: not tressel-opt %s --tressel-differentiate --split-input-file 2>&1 | FileCheck %s
// RUN: not tressel-opt %s --tressel-differentiate=wrt=z --split-input-file 2>&1 | FileCheck %s --check-prefix=NAME

// NAME: no argument is called 'z'

// CHECK: :[[#@LINE+1]]:{{.*}}a gradient is that of one float, not of 'tensor<4xf32>', the first result
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  return %x : tensor<4xf32>
}

// -----

// CHECK: a while loop that may run any number of times cannot be differentiated
func.func @main(%x: tensor<f32> {tressel.name = "x"}) -> (tensor<f32> {tressel.name = "y"}) {
  %r = tressel.while carries(%x : tensor<f32>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    %0 = tressel.less %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    tressel.yield %0 : tensor<i1>
  } do {
  ^bb0(%a: tensor<f32>):
    tressel.yield %a : tensor<f32>
  }
  return %r : tensor<f32>
}
