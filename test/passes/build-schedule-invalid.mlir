// RUN: tressel-opt %s --tressel-build-schedule -split-input-file -verify-diagnostics

func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  // expected-error @+1 {{cannot be scheduled: run form-clusters and outline-kernels first}}
  %0 = tressel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{argument 0 needs tressel.name or tressel.state}}
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32> {tressel.name = "y"}) {
  return %x : tensor<4xf32>
}
