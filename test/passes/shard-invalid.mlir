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

// -----

// expected-error @below {{has the pipeline {axis = "micro", size = 2 : i64}, but it names no axis of the mesh, which is "data=2"; a pipeline is written like {axis = "micro", size = 4 : i64, order = "1f1b"}}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "data=2", tressel.pipeline = {axis = "micro", size = 2 : i64}} {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{it names no axis of the mesh, which is missing}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.pipeline = {axis = "micro"}} {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{its size is no number from 1 to 4096}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "micro=2", tressel.pipeline = {axis = "micro", size = 0 : i64}} {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{'stages' means nothing there}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "micro=2", tressel.pipeline = {axis = "micro", stages = 2 : i64}} {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{has a pipeline in the order "2f2b"; orders are "1f1b" ("interleaved" is the same), "zero-bubble" and "gpipe"}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "micro=2", tressel.pipeline = {axis = "micro", order = "2f2b"}} {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{is for a mesh of 3 accelerators (micro=2, 3 in a row), but the machine '2gpu-pcie3' has 2}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "micro=2", tressel.pipeline = {axis = "micro", size = 3 : i64}} {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{the program is that of one rank, which has no stages}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "micro=2", tressel.rank_program, tressel.pipeline = {axis = "micro"}} {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{argument 0 is to lie on the accelerators in parts along 'micro' (cut as "micro"), whose parts one accelerator has one after the other; leave that axis out}}
func.func @main(%x: tensor<8xf32> {tressel.name = "x", tressel.home = "ranks", tressel.sharding = "micro"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "micro=2", tressel.pipeline = {axis = "micro"}} {
  %0 = tressel.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32> {tressel.name = "x"}) -> (tensor<8xf32> {tressel.name = "y"}) attributes {tressel.mesh = "micro=2", tressel.pipeline = {axis = "micro"}} {
  // expected-error @below {{is to be computed by stage -1 : i64, which is no number from 0 on}}
  %0 = tressel.exp %x {tressel.stage = -1 : i64} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
