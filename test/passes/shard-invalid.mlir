// RUN: tressel-opt %s --tressel-shard --tressel-machine=sim:2gpu-pcie3 -split-input-file -verify-diagnostics

// expected-error @below {{is for a mesh of 4 accelerators (data=4), but the machine '2gpu-pcie3' has 2}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=4"} {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{has the mesh "data", but the size of 'data' is no number from 1 to 4096; a mesh is written like "data=2, model=4"}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data"} {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{two axes are called 'a'}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "a=1, a=2"} {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{the input 'x' is to be cut as "data, -", which names 2 dimensions of a tensor that has 1}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x", tressel.sharding = "data, -"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=2"} {
  return %x : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8x8xf32> {tressel.name = "x"}) -> (tensor<8x8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=2"} {
  // expected-error @below {{what is given to 'shard' is to be cut as "data, data", which names the axis 'data' twice, which can cut one dimension once}}
  %0 = tressel.shard %x {axes = "data, data"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

func.func @main(%x: tensor<8x8xf32> {tressel.name = "x"}) -> (tensor<8x8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=2"} {
  // expected-error @below {{names the axis 'model', which the mesh (data=2) does not have}}
  %0 = tressel.shard %x {axes = "-, model"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

func.func @main(%x: tensor<8x8xf32> {tressel.name = "x"}) -> (tensor<8x8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=2"} {
  // expected-error @below {{names no axis for dimension 1, which is not cut where it is -}}
  %0 = tressel.shard %x {axes = "-, data+"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
