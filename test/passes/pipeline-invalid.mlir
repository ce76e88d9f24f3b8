// RUN: tressel-opt %s --tressel-pipeline -split-input-file -verify-diagnostics

// expected-error @+1 {{there is nothing to compile: the module needs a func.func @main}}
module {
}

// -----

// expected-error @+1 {{argument 0 of @main has the type 'tensor<?x4xf32>', whose size is not known; give each dimension a size}}
func.func @main(%x: tensor<?x4xf32> {tressel.name = "x"}) -> (tensor<?x4xf32> {tressel.name = "y"}) {
  return %x : tensor<?x4xf32>
}

// -----

// expected-error @+1 {{argument 0 of @main has the type 'i32', which is no tensor of a type that Tressel has}}
func.func @main(%x: i32 {tressel.name = "x"}) {
  return
}

// -----

// expected-error @+1 {{the state "w" is given two next values}}
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.state = "w"}, tensor<4xf32> {tressel.state = "w"}) {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @+1 {{the next value of the state "w" has the type 'tensor<4xf32>', but the state is 'tensor<8xf32>'}}
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}, %w: tensor<8xf32> {tressel.state = "w"}) -> (tensor<4xf32> {tressel.state = "w"}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{a second output "y"}}
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}, tensor<4xf32> {tressel.name = "y"}) {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}
