// RUN: tressel-opt %s -split-input-file -verify-diagnostics

func.func @differ(%x: tensor<?x3xf32, #tressel.dims<"n", 3>>, %y: tensor<?x3xf32, #tressel.dims<"m", 3>>) {
  // expected-error @+1 {{add: (C1) shapes do not broadcast: f32[n, 3] x f32[m, 3]}}
  %0 = tressel.add %x, %y : (tensor<?x3xf32, #tressel.dims<"n", 3>>, tensor<?x3xf32, #tressel.dims<"m", 3>>) -> tensor<?x3xf32, #tressel.dims<"n", 3>>
  return
}

// -----

func.func @bounds(%x: tensor<?x3xf32, #tressel.dims<"n[1..4]", 3>>, %y: tensor<5x3xf32>) {
  // expected-error @+1 {{add: (C1) shapes do not broadcast: f32[n, 3] x f32[5, 3]}}
  %0 = tressel.add %x, %y : (tensor<?x3xf32, #tressel.dims<"n[1..4]", 3>>, tensor<5x3xf32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @result(%x: tensor<?x3xf32, #tressel.dims<"n", 3>>) {
  // expected-error @+1 {{the result is f32[n, 3]}}
  %0 = tressel.exp %x : (tensor<?x3xf32, #tressel.dims<"n", 3>>) -> tensor<?x3xf32, #tressel.dims<"n + 1", 3>>
  return
}

// -----

func.func @undecided(%x: tensor<?x3xf32, #tressel.dims<"n", 3>>) {
  // expected-error @+1 {{reshape: (C2)}}
  %0 = tressel.reshape %x {shape = array<i64: -1, 2>} : (tensor<?x3xf32, #tressel.dims<"n", 3>>) -> tensor<?x2xf32, #tressel.dims<"n", 2>>
  return
}

// -----

// expected-error @+1 {{'n[5..2]' is no size}}
func.func @syntax(%x: tensor<?x3xf32, #tressel.dims<"n[5..2]", 3>>) {
  return
}

// -----

// What would be the handle of a size if it were no plain number.
func.func @handle(%x: tensor<4xf32>) {
  // expected-error @+1 {{slice: attribute 'limits' cannot be array<i64: -9223372036854775807>}}
  %0 = tressel.slice %x {starts = array<i64: 0>, limits = array<i64: -9223372036854775807>} : (tensor<4xf32>) -> tensor<0xf32>
  return
}

// -----

func.func @handle_of_scan(%x: tensor<4xf32>) {
  // expected-error @+1 {{the size is out of range}}
  %0 = tressel.scan -9223372036854775807 carries (%x : tensor<4xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    tressel.yield %h : tensor<4xf32>
  } : tensor<4xf32>
  return
}
