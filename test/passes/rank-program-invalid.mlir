// RUN: tressel-opt %s --tressel-pipeline -split-input-file -verify-diagnostics
// expected-error @below {{is the program of one rank of a mesh (data=2), which runs on an accelerator, and there is none: name a machine with some, as sim:dgx-h100}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x", tressel.sharding = "data"}) -> (tensor<f32> {tressel.name = "y"})
    attributes {tressel.mesh = "data=2", tressel.rank_program} {
  %0 = tressel.sum %x : (tensor<8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
