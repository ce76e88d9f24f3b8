// RUN: tressel-opt %s --tressel-pipeline --tressel-verify-each | FileCheck %s
// RUN: tressel-opt %s --tressel-pipeline --tressel-stop-after=outline-kernels | FileCheck %s --check-prefix=OUTLINED
// RUN: tressel-opt %s --tressel-pipeline --tressel-disable-pass=simplify | FileCheck %s --check-prefix=PLAIN
// RUN: tressel-opt %s --tressel-pipeline --tressel-pass-timing -o /dev/null 2>&1 | FileCheck %s --check-prefix=TIMES
// RUN: not tressel-opt %s --tressel-pipeline --tressel-disable-pass=plan-memory 2>&1 | FileCheck %s --check-prefix=NEEDED
// RUN: not tressel-opt %s --tressel-pipeline --tressel-disable-pass=polish 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: sched.program @main peak 2048 at_least 2048 {
// CHECK: sched.prepare {
// CHECK-NEXT: sched.launch @pack_0(%w) -> (%derived.0) on %cpu
// CHECK: sched.step {
// CHECK-NEXT: %0 = sched.launch @matmul_add_relu_0(%x, %w, %derived.0, %b) -> (%t0) on %cpu
// CHECK-NEXT: %1 = sched.launch @max_sub_exp_sum_div_0(%t0) -> (%y) on %cpu

// OUTLINED-LABEL: func.func @main
// OUTLINED: tressel.launch @matmul_add_relu_0
// OUTLINED: tressel.launch @max_sub_exp_sum_div_0

// Without simplify, relu of relu is computed as written.
// PLAIN: sched.launch @matmul_add_relu_relu_0

// TIMES: seconds  share  pass
// TIMES: form-clusters
// TIMES: verify-schedule
// TIMES: total

// NEEDED: error: the pass 'plan-memory' cannot be disabled: what follows needs it
// UNKNOWN: error: there is no pass 'polish' to disable; the passes are resolve-devices, simplify, decompose-composites
func.func @main(%x: tensor<16x64xf32> {tressel.name = "x"}, %w: tensor<64x32xf32> {tressel.state = "w"},
                %b: tensor<32xf32> {tressel.state = "b"}) -> (tensor<16x32xf32> {tressel.name = "y"}) {
  %0 = tressel.matmul %x, %w : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %1 = tressel.add %0, %b : (tensor<16x32xf32>, tensor<32xf32>) -> tensor<16x32xf32>
  %2 = tressel.relu %1 : (tensor<16x32xf32>) -> tensor<16x32xf32>
  %3 = tressel.relu %2 : (tensor<16x32xf32>) -> tensor<16x32xf32>
  %4 = tressel.softmax %3 : (tensor<16x32xf32>) -> tensor<16x32xf32>
  return %4 : tensor<16x32xf32>
}
