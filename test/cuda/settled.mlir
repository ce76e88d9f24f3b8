// What is annotated for the host, and what stays there, gets kernels of the host; the rest kernels of the GPU.
// RUN: tressel compile %s --device cuda --gpu sm_90 --emit schedule | FileCheck %s

// CHECK-DAG: tressel.kernel @{{.*}}exp{{.*}}provider = "generated"
// CHECK-DAG: tressel.kernel @add_{{.*}}provider = "cuda"
// CHECK: sched.launch @{{.*}}exp{{.*}} on %cpu
// CHECK: sched.copy {{.*}} on %gpu0.in {{.*}}sched.graph = 0
// CHECK: sched.launch @add_{{.*}} on %gpu0 {{.*}}sched.graph = 0
func.func @main(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = tressel.exp %x {tressel.device = "cpu"} : (tensor<1024xf32>) -> tensor<1024xf32>
  %1 = tressel.add %0, %y : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %1 : tensor<1024xf32>
}
