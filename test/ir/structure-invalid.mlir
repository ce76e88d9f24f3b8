// RUN: tressel-opt %s -split-input-file -verify-diagnostics
// Rules of the structural ops, by number (ir/graph/Structure.td).

func.func @cluster_1(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(rule 1) needs one block argument per input, of its type}}
  %0 = tressel.cluster(%x) {provider = "generated"} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<8xf32>):
    %1 = tressel.slice %a {starts = array<i64: 0>, limits = array<i64: 4>} : (tensor<8xf32>) -> tensor<4xf32>
    tressel.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @cluster_2(%x: tensor<4xf32>) -> tensor<8xf32> {
  %0 = tressel.cluster(%x) {provider = "generated"} : (tensor<4xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @+1 {{(rule 2) must yield the results' types}}
    tressel.yield %a : tensor<4xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @cluster_2_no_yield(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tressel.cluster(%x) {provider = "generated"} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @+1 {{block with no terminator}}
    %1 = tressel.relu %a : (tensor<4xf32>) -> tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @cluster_3(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(rule 3) range must be positive, it is 0}}
  %0 = tressel.cluster(%x) {provider = "generated", range = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    tressel.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @cluster_3_grain(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(rule 3) grain must be positive, it is -1}}
  %0 = tressel.cluster(%x) {provider = "generated", grain = -1 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    tressel.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @cluster_4(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(rule 4) root_ops must leave at least one of the body's 1 ops to the epilogue}}
  %0 = tressel.cluster(%x) {provider = "generated", root_ops = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = tressel.relu %a : (tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @cluster_5(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(rule 5) the root's value must have the shape and width of the first result, whose buffer holds it}}
  %0 = tressel.cluster(%x) {provider = "library", target = #tressel.target<host_library>, params = "{}", root_ops = 1 : i64} : (tensor<4x4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %1 = tressel.matmul %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = tressel.sum %1 {axis = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
    tressel.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @cluster_6(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(rule 6) a kernel of 'onednn' for the target host_library needs params}}
  %0 = tressel.cluster(%x) {provider = "onednn", target = #tressel.target<host_library>} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    tressel.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @cluster_7(%x: tensor<4xf32>) {
  // expected-error @+1 {{(rule 7) computes nothing: it has no result}}
  tressel.cluster(%x) {provider = "generated"} : (tensor<4xf32>) -> () {
  ^bb0(%a: tensor<4xf32>):
    tressel.yield
  }
  return
}

// -----

func.func @pack_1(%x: tensor<4xf32>) -> tensor<?xui8> {
  // expected-error @+1 {{(rule 1) the packed form must be a static tensor<Nxui8>}}
  %0 = tressel.pack %x provider "library" params "{}" : tensor<4xf32> -> tensor<?xui8>
  return %0 : tensor<?xui8>
}

// -----

func.func @pack_2(%x: tensor<4xf32>) -> tensor<16xui8> {
  // expected-error @+1 {{(rule 2) params must not be empty}}
  %0 = tressel.pack %x provider "library" params "" : tensor<4xf32> -> tensor<16xui8>
  return %0 : tensor<16xui8>
}

// -----

// expected-error @+1 {{(rule 4) root_ops must leave at least one of the body's 1 ops to the epilogue}}
tressel.kernel @kernel_1(%a: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated", root_ops = 7 : i64} {
  %0 = tressel.relu %a : (tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{(rule 2) without a body it must be a library's pack: one input, one tensor<Nxui8> result}}
tressel.kernel @kernel_2(tensor<4xf32>) -> tensor<16xf32> attributes {provider = "library", target = #tressel.target<host_library>, params = "{}"}

// -----

func.func @launch_1(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{(rule 1) @nobody is not a tressel.kernel of this module}}
  %0 = tressel.launch @nobody(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

tressel.kernel @k(%a: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated"} {
  %0 = tressel.relu %a : (tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}
func.func @launch_2(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{(rule 2) has the type '(tensor<8xf32>) -> tensor<8xf32>' but the kernel is '(tensor<4xf32>) -> tensor<4xf32>'}}
  %0 = tressel.launch @k(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
