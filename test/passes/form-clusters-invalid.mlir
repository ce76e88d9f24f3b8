// RUN: tressel-opt %s --tressel-form-clusters -split-input-file -verify-diagnostics

// A composite that nobody claims is still there: the passes were run in another order.
func.func @main(%x: tensor<4x4xf32> {tressel.name = "x"}) -> (tensor<4x4xf32> {tressel.name = "y"}) {
  // expected-error @+1 {{no kernel can run 'softmax' on (tensor<4x4xf32>); try another element type, or write it in other ops}}
  %0 = tressel.softmax %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// expected-error @+1 {{only one function is compiled, @main; inline or remove @helper}}
func.func @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  return %x : tensor<4xf32>
}
