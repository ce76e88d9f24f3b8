// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:2gpu-pcie3 --tressel-verify-each -split-input-file | FileCheck %s
// The next value of a state that is joined of rows: each part is written to the state's own bytes, where nothing needs
// the old ones any more. The other accelerator's part comes there at once.

// CHECK-LABEL: sched.program @main
// CHECK: %w = sched.state mutable "w" on gpu 0
// CHECK: [[BOTTOM:%v[0-9]+]] = sched.view %w plus 524288 : tensor<512x256xf32>
// CHECK: sched.step
// CHECK-DAG: sched.launch @{{.*}}(%v{{[0-9]+}}, %x) -> (%v{{[0-9]+}}) on %gpu0
// CHECK-DAG: sched.copy %t{{[0-9]+}} -> [[BOTTOM]] on %gpu1.out
// CHECK-NOT: sched.copy
func.func @main(%w: tensor<1024x256xf32> {tressel.state = "w", tressel.home = "gpu0"}, %x: tensor<512x256xf32> {tressel.name = "x", tressel.home = "gpu0"},
                %y: tensor<512x256xf32> {tressel.name = "y", tressel.home = "gpu1"}) -> (tensor<1024x256xf32> {tressel.state = "w", tressel.home = "gpu0"}) {
  %top = tressel.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 512, 256>, strides = array<i64: 1, 1>} : (tensor<1024x256xf32>) -> tensor<512x256xf32>
  %0 = tressel.sub %top, %x {tressel.device = "gpu0"} : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32>
  %1 = tressel.exp %y {tressel.device = "gpu1"} : (tensor<512x256xf32>) -> tensor<512x256xf32>
  %2 = tressel.concat %0, %1 {axis = 0 : i64} : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<1024x256xf32>
  return %2 : tensor<1024x256xf32>
}

// -----

// The halves change places: each is read after the other has been written, so both are joined elsewhere first.
// CHECK-LABEL: sched.program @main
// CHECK: sched.step
// CHECK: sched.copy %t{{[0-9]+}} -> %w on
func.func @main(%w: tensor<1024x256xf32> {tressel.state = "w", tressel.home = "gpu0"}) -> (tensor<1024x256xf32> {tressel.state = "w", tressel.home = "gpu0"}) {
  %top = tressel.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 512, 256>, strides = array<i64: 1, 1>} : (tensor<1024x256xf32>) -> tensor<512x256xf32>
  %bottom = tressel.slice %w {starts = array<i64: 512, 0>, limits = array<i64: 1024, 256>, strides = array<i64: 1, 1>} : (tensor<1024x256xf32>) -> tensor<512x256xf32>
  %0 = tressel.exp %bottom {tressel.device = "gpu0"} : (tensor<512x256xf32>) -> tensor<512x256xf32>
  %1 = tressel.exp %top {tressel.device = "gpu0"} : (tensor<512x256xf32>) -> tensor<512x256xf32>
  %2 = tressel.concat %0, %1 {axis = 0 : i64} : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<1024x256xf32>
  return %2 : tensor<1024x256xf32>
}

// -----

// A step that fails leaves its states as they were. So what may fail comes ahead of what makes a state's next value,
// although nothing but an output waits for it: the value is then written to the state's own memory.
// CHECK-LABEL: sched.program @main
// CHECK: sched.step
// CHECK-DAG: sched.launch @take{{.*}} on %gpu0
// CHECK-DAG: sched.launch @{{.*}} -> (%w) on %gpu0
// CHECK-NOT: -> %w on
func.func @main(%w: tensor<1024x1024xf32> {tressel.state = "w", tressel.home = "gpu0"}, %x: tensor<1024x1024xf32> {tressel.name = "x", tressel.home = "gpu0"},
                %table: tensor<64xf32> {tressel.name = "table", tressel.home = "gpu0"}, %at: tensor<8xi64> {tressel.name = "at", tressel.home = "gpu0"})
    -> (tensor<8xf32> {tressel.name = "y", tressel.home = "computed"}, tensor<1024x1024xf32> {tressel.state = "w", tressel.home = "gpu0"}, tensor<4xf32> {tressel.name = "z", tressel.home = "gpu1"}) {
  %0 = tressel.matmul %x, %w {tressel.device = "gpu0"} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %1 = tressel.matmul %0, %x {tressel.device = "gpu0"} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %2 = tressel.sub %w, %1 {tressel.device = "gpu0"} : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %3 = tressel.take %table, %at {axis = 0 : i64, tressel.device = "gpu0"} : (tensor<64xf32>, tensor<8xi64>) -> tensor<8xf32>
  %4 = tressel.slice %table {starts = array<i64: 0>, limits = array<i64: 4>, strides = array<i64: 1>} : (tensor<64xf32>) -> tensor<4xf32>
  %5 = tressel.exp %4 {tressel.device = "gpu1"} : (tensor<4xf32>) -> tensor<4xf32>
  return %3, %2, %5 : tensor<8xf32>, tensor<1024x1024xf32>, tensor<4xf32>
}
