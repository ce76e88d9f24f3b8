// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:%S/Inputs/small-memory-slow-links.json --tressel-disable-pass=split-producers,stage-copies --tressel-verify-each
// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:%S/Inputs/small-memory-slow-links.json --tressel-disable-pass=split-producers,stage-copies --tressel-stop-after=fit-memory | FileCheck %s

// What takes less to compute than to spill and to prefetch is rematerialized, from what is there.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tressel.ordered
// CHECK: %[[X:.*]] = tressel.to %arg0 {device = "gpu0"}
// CHECK: tressel.launch @exp_0(%[[X]])
// CHECK: tressel.launch @matmul
// CHECK: tressel.launch @matmul
// CHECK: tressel.launch @exp_0
// CHECK-NOT: tressel.to {{.*}} {device = "cpu"}
// CHECK: tressel.launch @matmul
// CHECK: tressel.to {{.*}} {device = "cpu"}
// CHECK-NOT: tressel.to {{.*}} {device = "cpu"}
// CHECK: return
func.func @main(%x: tensor<32x32xf32> {tressel.name = "x"}) -> (tensor<32x32xf32> {tressel.name = "y"}) {
  %a = tressel.exp %x {tressel.device = "gpu0"} : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %b = tressel.matmul %a, %x {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = tressel.matmul %b, %x {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %d = tressel.matmul %c, %b {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %e = tressel.matmul %d, %x {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %f = tressel.matmul %e, %a {tressel.device = "gpu0"} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %f : tensor<32x32xf32>
}
