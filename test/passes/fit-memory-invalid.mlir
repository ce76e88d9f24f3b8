// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:%S/Inputs/small-memory.json -verify-diagnostics

// Three tensors of 4096 bytes fit, four do not: an op that needs more alone is refused with its bytes.
func.func @main(%x: tensor<32x32xf32> {tressel.name = "x"}, %y: tensor<32x32xf32> {tressel.name = "y"}, %z: tensor<32x32xf32> {tressel.name = "z"})
    -> (tensor<32x32xf32> {tressel.name = "r"}) {
  // expected-error @+1 {{reads and writes 24576 bytes, but the memory of gpu0 has 13000}}
  %0 = tressel.concat %x, %y, %z {axis = 0 : i64, tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<96x32xf32>
  %1 = tressel.slice %0 {starts = array<i64: 5, 0>, limits = array<i64: 37, 32>} : (tensor<96x32xf32>) -> tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}
