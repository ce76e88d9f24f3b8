// A program of symbolic sizes as a schedule: slots behind each other, units of work and offsets as expressions, and
// nothing of a call's size in prepare.
// RUN: tressel-opt %s --tressel-pipeline --tressel-verify-each | FileCheck %s

// CHECK: sched.program @main peak "512*n[1..512]"
// CHECK: sched.arena device on cpu 0 size "512*n[1..512]"
// CHECK: sched.input "x" : tensor<?x64xf32, #tressel.dims<"n[1..512]", 64>>
// CHECK: sched.prepare
// CHECK: sched.launch @transpose
// CHECK: sched.step
func.func @main(%x: tensor<?x64xf32, #tressel.dims<"n[1..512]", 64>> {tressel.name = "x"}, %w: tensor<64x64xf32> {tressel.state = "w"})
    -> (tensor<?x64xf32, #tressel.dims<"n[1..512]", 64>> {tressel.name = "y"}) {
  %t = tressel.transpose %w : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %0 = tressel.matmul %x, %t : (tensor<?x64xf32, #tressel.dims<"n[1..512]", 64>>, tensor<64x64xf32>) -> tensor<?x64xf32, #tressel.dims<"n[1..512]", 64>>
  %1 = tressel.softmax %0 : (tensor<?x64xf32, #tressel.dims<"n[1..512]", 64>>) -> tensor<?x64xf32, #tressel.dims<"n[1..512]", 64>>
  %2 = tressel.matmul %1, %t : (tensor<?x64xf32, #tressel.dims<"n[1..512]", 64>>, tensor<64x64xf32>) -> tensor<?x64xf32, #tressel.dims<"n[1..512]", 64>>
  return %2 : tensor<?x64xf32, #tressel.dims<"n[1..512]", 64>>
}
