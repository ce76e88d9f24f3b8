// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:2gpu-pcie3 --tressel-verify-each | FileCheck %s
// What lives on an accelerator is neither copied there nor back: only what the host gives comes, and what goes elsewhere leaves.

// CHECK-LABEL: sched.program @main
// CHECK-DAG: %x = sched.input "x" on gpu 0 : tensor<1024xf32>
// CHECK-DAG: %m = sched.state mutable "m" on gpu 0 : tensor<1024xf32>
// CHECK-DAG: %h = sched.input "h" : tensor<1024xf32>
// CHECK-DAG: %w = sched.state parameter "w" on gpu 0 : tensor<1024xf32>
// CHECK-DAG: %y = sched.output "y" on gpu 0 : tensor<1024xf32>
// CHECK-DAG: %z = sched.output "z" on gpu 0 : tensor<32x32xf32>
// CHECK-DAG: %g = sched.output "g" on gpu 1 : tensor<1024xf32>
// CHECK-NOT: sched.prepare
// CHECK: sched.step
// CHECK-NOT: .out
// CHECK: sched.launch @{{.*}}(%x, %m, %{{.*}}, %w) -> {{.*}} on %gpu0
// CHECK-NOT: .out
func.func @main(%x: tensor<1024xf32> {tressel.name = "x", tressel.home = "gpu0"}, %m: tensor<1024xf32> {tressel.state = "m", tressel.home = "gpu0"},
                %h: tensor<1024xf32> {tressel.name = "h"}, %w: tensor<1024xf32> {tressel.state = "w", tressel.home = "gpu0"})
    -> (tensor<1024xf32> {tressel.name = "y", tressel.home = "computed"}, tensor<1024xf32> {tressel.state = "m", tressel.home = "gpu0"}, tensor<32x32xf32> {tressel.name = "z", tressel.home = "computed"}, tensor<1024xf32> {tressel.name = "g", tressel.home = "gpu1"}) {
  %0 = tressel.add %x, %m {tressel.device = "gpu0"} : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %1 = tressel.mul %0, %h {tressel.device = "gpu0"} : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %2 = tressel.mul %1, %w {tressel.device = "gpu0"} : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %3 = tressel.reshape %1 {shape = array<i64: 32, 32>} : (tensor<1024xf32>) -> tensor<32x32xf32>
  %4 = tressel.relu %h : (tensor<1024xf32>) -> tensor<1024xf32>
  return %2, %0, %3, %4 : tensor<1024xf32>, tensor<1024xf32>, tensor<32x32xf32>, tensor<1024xf32>
}
