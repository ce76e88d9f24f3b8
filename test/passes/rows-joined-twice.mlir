// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:%S/Inputs/slow-links.json --tressel-verify-each | FileCheck %s

// Both products are cut into rows, which are joined, and so are the two wholes: all rows are computed, or arrive, in the output. What is made of
// parameters ahead of the step is not cut: its rows would have no place in what the step joins.
// CHECK: %[[V:v[0-9]+]] = sched.view %y plus
// CHECK: sched.prepare
// CHECK-NOT: _rows
// CHECK: sched.step
// CHECK: sched.launch @matmul_{{[0-9]}}_{{[0-9]+}}_rows
// CHECK: sched.copy {{.*}} -> %{{.*}} on %gpu0.out
func.func @main(%x: tensor<128x64xf32> {tressel.name = "x", tressel.pinned}, %w: tensor<64x64xf32> {tressel.state = "w"})
    -> (tensor<128x64xf32> {tressel.name = "y", tressel.pinned}, tensor<64x64xf32> {tressel.name = "z", tressel.pinned}) {
  %a = tressel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 64, 64>} : (tensor<128x64xf32>) -> tensor<64x64xf32>
  %b = tressel.slice %x {starts = array<i64: 64, 0>, limits = array<i64: 128, 64>} : (tensor<128x64xf32>) -> tensor<64x64xf32>
  %p = tressel.matmul %a, %w {tressel.device = "gpu0"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q = tressel.matmul %b, %w {tressel.device = "gpu0"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = tressel.concat %p, %q {axis = 0 : i64, tressel.device = "cpu"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
  %s = tressel.softmax %w {axis = 1 : i64, tressel.device = "gpu0"} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y, %s : tensor<128x64xf32>, tensor<64x64xf32>
}
