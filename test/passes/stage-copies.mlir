// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:2gpu-pcie3 --tressel-stop-after=stage-copies --tressel-verify-each | FileCheck %s
// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:2gpu-pcie3 --tressel-verify-each | FileCheck %s --check-prefix=SCHEDULE
// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:2gpu-pcie3 --tressel-disable-pass=stage-copies | FileCheck %s --check-prefix=DIRECT

// The operand is copied into pinned memory once for both devices. One result is the caller's pageable memory: it is copied there from
// where it arrives, which is also what the host computes with. The other result is pinned, and comes directly.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = tressel.to %arg0 {device = "cpu"}
// CHECK-DAG: tressel.to %[[X]] {device = "gpu0"}
// CHECK-DAG: tressel.to %[[X]] {device = "gpu1"}
// CHECK: %[[Y:.*]] = tressel.to %{{.*}} {device = "cpu"}
// CHECK: %[[BACK:.*]] = tressel.to %[[Y]] {device = "cpu"}
// CHECK: tressel.launch @sum_0(%[[Y]])
// CHECK: return %[[BACK]], %{{.*}}, %{{.*}}

// In rows: a part of the operand is on its way to a device while the host copies the next.
// SCHEDULE: sched.input "x" : tensor<2048x2048xf32>
// SCHEDULE: sched.copy %[[V:v[0-9]+]] -> %[[T:t[0-9]+]] on %cpu
// SCHEDULE: sched.copy %[[T]] -> {{.*}} on %gpu{{[01]}}.in
// SCHEDULE: sched.copy %v{{[0-9]+}} -> %t{{[0-9]+}} on %cpu
// SCHEDULE: sched.copy {{.*}} -> %v{{[0-9]+}} on %cpu

// DIRECT-NOT: sched.copy {{.*}} on %cpu{{$}}
func.func @main(%x: tensor<2048x2048xf32> {tressel.name = "x"}, %v: tensor<2048x2048xf32> {tressel.state = "v"}, %w: tensor<2048x2048xf32> {tressel.state = "w"})
    -> (tensor<2048x2048xf32> {tressel.name = "y"}, tensor<2048x2048xf32> {tressel.name = "z", tressel.pinned}, tensor<2048xf32> {tressel.name = "s"}) {
  %0 = tressel.matmul %x, %v {tressel.device = "gpu0"} : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %1 = tressel.matmul %x, %w {tressel.device = "gpu1"} : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %2 = tressel.sum %0 {axis = array<i64: 0>, tressel.device = "cpu"} : (tensor<2048x2048xf32>) -> tensor<2048xf32>
  return %0, %1, %2 : tensor<2048x2048xf32>, tensor<2048x2048xf32>, tensor<2048xf32>
}
