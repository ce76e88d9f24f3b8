// RUN: tressel-opt %s --tressel-resolve-devices --tressel-machine=sim:2gpu-pcie3 -split-input-file -verify-diagnostics
// RUN: not tressel-opt %s --tressel-resolve-devices -split-input-file 2>&1 | FileCheck %s

// CHECK: error: is to be computed on gpu2, which this machine does not have; choose one that has it
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  // expected-error @+1 {{is to be computed on gpu2, which the machine '2gpu-pcie3' does not have; it has cpu, gpu0, gpu1}}
  %0 = tressel.exp %x {tressel.device = "gpu2"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  // expected-error @+1 {{names the device "tpu"; devices are "cpu", "gpu0", "gpu1" and so on}}
  %0 = tressel.to %x {device = "tpu"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  // expected-error @+1 {{but a program has one host, cpu}}
  %0 = tressel.exp %x {tressel.device = "cpu1"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  %r = tressel.scan 3 carries(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<4xf32>):
    // expected-error @+1 {{is to be computed on gpu0, but stands in a body of 'scan' (for_loop), which is computed as a whole on cpu; name the device around the whole 'scan' (for_loop)}}
    %0 = tressel.add %a, %a {tressel.device = "gpu0"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  // expected-error @+1 {{moves its operand to "gpu1", but is annotated with "gpu0"; leave the annotation tressel.device out}}
  %0 = tressel.to %x {device = "gpu1", tressel.device = "gpu0"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  %r = tressel.scan 3 carries(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<4xf32>):
    // expected-error @+1 {{moves its operand to "cpu", but is annotated with "gpu0"}}
    %0 = tressel.to %a {device = "cpu", tressel.device = "gpu0"} : (tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  // expected-error @+1 {{has the attribute "tressel.devce", which means nothing on an op; known are tressel.device, tressel.segment, tressel.kept}}
  %0 = tressel.exp %x {tressel.devce = "gpu0"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{argument 0 has the attribute "tressel.device", which means nothing there; known are tressel.name, tressel.state, tressel.pinned}}
func.func @main(%x: tensor<4xf32> {tressel.name = "x", tressel.device = "gpu0"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  return %x : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}) {
  // expected-error @+1 {{names the device "gpu00"; devices are "cpu", "gpu0", "gpu1" and so on}}
  %0 = tressel.exp %x {tressel.device = "gpu00"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
