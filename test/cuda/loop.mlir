// A loop whose steps accelerators can compute is computed there as a whole; with a known number of iterations it is part of a graph. With a step that only the host can
// compute, and with effects, it stays on the host.
// RUN: tressel compile %s --device cuda --gpu sm_90 --emit schedule | FileCheck %s
// RUN: tressel explain %s --device cuda --gpu sm_90 | FileCheck %s --check-prefix=EXPLAIN

// CHECK: sched.loop 8 times moving {{.*}} on %gpu0 {{.*}}sched.graph = 0
// CHECK-NEXT: sched.launch @{{.*}} on %gpu0
// CHECK: sched.loop 8 times on %cpu
// EXPLAIN: graph 0: 8 kernels, 13 copies
// EXPLAIN: scan ({{.*}}): gpu0
// EXPLAIN: scan ({{.*}}): cpu: it has effects, or no accelerator has kernels for all of its bodies
func.func @main(%h: tensor<32x256xf32> {tressel.name = "h"}, %xs: tensor<8x32x256xf32> {tressel.name = "xs"},
                %w: tensor<256x256xf32> {tressel.name = "w"})
    -> (tensor<8x32x256xf32> {tressel.name = "all"}, tensor<32x256xf32> {tressel.name = "printed"}) {
  %last, %all = tressel.scan 8 carries(%h : tensor<32x256xf32>) slices(%xs : tensor<8x32x256xf32>) with(%w : tensor<256x256xf32>) -> tensor<32x256xf32>, tensor<8x32x256xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<32x256xf32>, %x: tensor<32x256xf32>, %v: tensor<256x256xf32>):
    %0 = tressel.matmul %a, %v : (tensor<32x256xf32>, tensor<256x256xf32>) -> tensor<32x256xf32>
    %1 = tressel.add %0, %x : (tensor<32x256xf32>, tensor<32x256xf32>) -> tensor<32x256xf32>
    %2 = tressel.tanh %1 : (tensor<32x256xf32>) -> tensor<32x256xf32>
    tressel.yield %2, %2 : tensor<32x256xf32>, tensor<32x256xf32>
  }
  %seen = tressel.scan 8 carries(%last : tensor<32x256xf32>) -> tensor<32x256xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<32x256xf32>):
    %0 = tressel.exp %a {tressel.device = "cpu"} : (tensor<32x256xf32>) -> tensor<32x256xf32>
    tressel.yield %0 : tensor<32x256xf32>
  }
  return %all, %seen : tensor<8x32x256xf32>, tensor<32x256xf32>
}
