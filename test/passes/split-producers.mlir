// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:%S/Inputs/slow-links.json --tressel-stop-after=split-producers --tressel-verify-each | FileCheck %s
// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:%S/Inputs/slow-links.json --tressel-verify-each | FileCheck %s --check-prefix=SCHEDULE
// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:%S/Inputs/slow-links.json --tressel-disable-pass=split-producers | FileCheck %s --check-prefix=WHOLE

// Copies take as long as the product: its operand comes, it is computed, and its result leaves in blocks of rows. The sum over rows
// needs all of them.
// CHECK: tressel.kernel @matmul_relu_0_4_rows(%arg0: tensor<4x64xf32>, %arg1: tensor<64x64xf32>) -> tensor<4x64xf32>
// CHECK-SAME: flops = 33024
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = tressel.slice %arg0 {limits = array<i64: 4, 64>, starts = array<i64: 0, 0>}
// CHECK: tressel.to %[[S]] {device = "gpu0"}
// CHECK-COUNT-16: tressel.launch @matmul_relu_0_4_rows
// CHECK: tressel.concat {{.*}} {tressel.device = "cpu"}
// CHECK: tressel.launch @sum_0(

// The result's rows are copied into the output, from which the sum reads them.
// SCHEDULE: %[[V:.*]] = sched.view %y plus 1024 : tensor<4x64xf32>
// SCHEDULE: sched.copy {{.*}} -> %[[V]] on %gpu0.out
// SCHEDULE: sched.launch @sum_0(%y) -> (%s) on %cpu

// WHOLE: sched.launch @matmul_relu_0(
func.func @main(%a: tensor<64x64xf32> {tressel.name = "a", tressel.pinned}, %w: tensor<64x64xf32> {tressel.state = "w"})
    -> (tensor<64x64xf32> {tressel.name = "y", tressel.pinned}, tensor<64xf32> {tressel.name = "s"}) {
  %0 = tressel.matmul %a, %w {tressel.device = "gpu0"} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = tressel.relu %0 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = tressel.sum %1 {axis = array<i64: 0>, tressel.device = "cpu"} : (tensor<64x64xf32>) -> tensor<64xf32>
  return %1, %2 : tensor<64x64xf32>, tensor<64xf32>
}
