// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:%S/Inputs/small-memory.json -split-input-file -verify-diagnostics

// Three tensors of 4096 bytes fit, four do not: an op that needs more alone is refused with its bytes.
func.func @main(%x: tensor<32x32xf32> {tressel.name = "x"}, %y: tensor<32x32xf32> {tressel.name = "y"}, %z: tensor<32x32xf32> {tressel.name = "z"})
    -> (tensor<32x32xf32> {tressel.name = "r"}) {
  // expected-error @+1 {{'concat' needs 24576 bytes of gpu0 at once, which has 13000: 12288 for its result, 4096 for the input 'x', 4096 for the input 'y', 4096 for the input 'z'}}
  %0 = tressel.concat %x, %y, %z {axis = 0 : i64, tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<96x32xf32>
  %1 = tressel.slice %0 {starts = array<i64: 5, 0>, limits = array<i64: 37, 32>} : (tensor<96x32xf32>) -> tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}

// -----

// Who holds the rest: parameters by name, values by op and line.
func.func @main(%x: tensor<32x32xf32> {tressel.name = "x"}, %w: tensor<64x32xf32> {tressel.state = "fc.w"}) -> (tensor<64x32xf32> {tressel.name = "r"}) {
  %0 = tressel.matmul %x, %x {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("model.cpp":7:3)
  // expected-error @+1 {{'matmul' needs 20480 bytes of gpu0 at once, which has 13000: 8192 for its result, 8192 for the parameter 'fc.w', 4096 for the result of 'matmul' (model.cpp:7)}}
  %1 = tressel.matmul %w, %0 {tressel.device = "gpu0"} : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32>
  return %1 : tensor<64x32xf32>
}

// -----

// Nothing is left for the step: what is made of parameters ahead of it is refused in the same way.
func.func @main(%a: tensor<64x64xf32> {tressel.state = "a"}) -> (tensor<64x64xf32> {tressel.name = "r"}) {
  // expected-error @+1 {{'matmul' needs 32768 bytes of gpu0 at once, which has 13000}}
  %0 = tressel.matmul %a, %a {tressel.device = "gpu0"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
