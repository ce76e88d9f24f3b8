// RUN: tressel-opt %s --tressel-plan-memory -split-input-file | FileCheck %s
// RUN: tressel-opt %s --tressel-plan-memory=in-place=false -split-input-file | FileCheck %s --check-prefix=APART

// A bitcode kernel that writes into an operand (its record's `overwrites`) gets that operand's bytes if nobody reads them later.

tressel.kernel @exp_0(%a: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {provider = "generated"} {
  %0 = tressel.exp %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
  tressel.yield %0 : tensor<8x8xf32>
}
tressel.kernel @put_0(%a: tensor<8x8xf32>, %i: tensor<8x2xi64>, %v: tensor<8x2xf32>) -> tensor<8x8xf32>
    attributes {provider = "bitcode", params = "put_along_axis_f32"} {
  %0 = tressel.put_along_axis %a, %i, %v {axis = 1 : i64} : (tensor<8x8xf32>, tensor<8x2xi64>, tensor<8x2xf32>) -> tensor<8x8xf32>
  tressel.yield %0 : tensor<8x8xf32>
}

// CHECK: sched.program @main peak 256 at_least 256
// CHECK-DAG: %a = sched.buffer in %memory at [[A:[0-9]+]] : tensor<8x8xf32>
// CHECK-DAG: %b = sched.buffer in %memory at [[A]] : tensor<8x8xf32>
// APART: sched.program @main peak 512
sched.program @main {
  %cpu = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0
  %x = sched.input "x" : tensor<8x8xf32>
  %i = sched.input "i" : tensor<8x2xi64>
  %v = sched.input "v" : tensor<8x2xf32>
  %y = sched.output "y" : tensor<8x8xf32>
  %a = sched.buffer in %memory : tensor<8x8xf32>
  %b = sched.buffer in %memory : tensor<8x8xf32>
  sched.step {
    %0 = sched.launch @exp_0(%x) -> (%a) on %cpu
    %1 = sched.launch @put_0(%a, %i, %v) -> (%b) on %cpu
    %2 = sched.launch @exp_0(%b) -> (%y) on %cpu
  }
}

// -----

tressel.kernel @exp_0(%a: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {provider = "generated"} {
  %0 = tressel.exp %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
  tressel.yield %0 : tensor<8x8xf32>
}
tressel.kernel @put_0(%a: tensor<8x8xf32>, %i: tensor<8x2xi64>, %v: tensor<8x2xf32>) -> tensor<8x8xf32>
    attributes {provider = "bitcode", params = "put_along_axis_f32"} {
  %0 = tressel.put_along_axis %a, %i, %v {axis = 1 : i64} : (tensor<8x8xf32>, tensor<8x2xi64>, tensor<8x2xf32>) -> tensor<8x8xf32>
  tressel.yield %0 : tensor<8x8xf32>
}
tressel.kernel @add_0(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  tressel.yield %0 : tensor<8x8xf32>
}

// Here the operand is read again.
// CHECK: sched.program @main peak 512 at_least 512
sched.program @main {
  %cpu = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0
  %x = sched.input "x" : tensor<8x8xf32>
  %i = sched.input "i" : tensor<8x2xi64>
  %v = sched.input "v" : tensor<8x2xf32>
  %y = sched.output "y" : tensor<8x8xf32>
  %a = sched.buffer in %memory : tensor<8x8xf32>
  %b = sched.buffer in %memory : tensor<8x8xf32>
  sched.step {
    %0 = sched.launch @exp_0(%x) -> (%a) on %cpu
    %1 = sched.launch @put_0(%a, %i, %v) -> (%b) on %cpu
    %2 = sched.launch @add_0(%a, %b) -> (%y) on %cpu
  }
}
