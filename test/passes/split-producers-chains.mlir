// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:2gpu-pcie3 --tressel-stop-after=split-producers --tressel-verify-each | FileCheck %s
// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:2gpu-pcie3 --tressel-verify-each | FileCheck %s --check-prefix=SCHEDULE

// Two batches through two stages on two devices. The second device waits for the first batch, and the first has nothing to
// do with the last: cutting one product of a chain helps nobody while the next one waits for all of its rows. So chains
// are cut as a whole, and each block goes its own way: nothing is joined before the results.
// CHECK-LABEL: func.func @main
// CHECK: tressel.launch @matmul_0_[[ROWS:[0-9]+]]_rows({{.*}}) {tressel.device = "gpu0"}
// CHECK: tressel.to {{.*}} {device = "gpu1"} : (tensor<[[ROWS]]x2048xf32>)
// CHECK: tressel.launch @matmul_0_[[ROWS]]_rows({{.*}}) {tressel.device = "gpu1"}
// CHECK-NOT: tressel.concat {{.*}} {tressel.device = "gpu

// A block goes on when it is done, not the whole: in the middle of the first product.
// SCHEDULE: sched.launch @matmul_0_[[ROWS:[0-9]+]]_rows({{.*}}) -> ({{.*}}) on %gpu0
// SCHEDULE: sched.copy {{.*}} on %gpu0.out
// SCHEDULE: sched.launch @matmul_0_[[ROWS]]_rows({{.*}}) -> ({{.*}}) on %gpu0
// SCHEDULE: sched.launch @matmul_0_[[ROWS]]_rows({{.*}}) -> ({{.*}}) on %gpu1
// SCHEDULE: sched.launch @matmul_0_[[ROWS]]_rows({{.*}}) -> ({{.*}}) on %gpu0
func.func @main(%a: tensor<2048x2048xf32> {tressel.name = "a", tressel.pinned}, %b: tensor<2048x2048xf32> {tressel.name = "b", tressel.pinned},
                %v: tensor<2048x2048xf32> {tressel.state = "v"}, %w: tensor<2048x2048xf32> {tressel.state = "w"})
    -> (tensor<2048x2048xf32> {tressel.name = "y", tressel.pinned}, tensor<2048x2048xf32> {tressel.name = "z", tressel.pinned}) {
  %0 = tressel.matmul %a, %v {tressel.device = "gpu0"} : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %1 = tressel.matmul %0, %w {tressel.device = "gpu1"} : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %2 = tressel.matmul %b, %v {tressel.device = "gpu0"} : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %3 = tressel.matmul %2, %w {tressel.device = "gpu1"} : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %1, %3 : tensor<2048x2048xf32>, tensor<2048x2048xf32>
}
