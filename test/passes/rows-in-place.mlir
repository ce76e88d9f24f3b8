// RUN: sed 's/{tressel.device = .*} :/:/' %s > %t.mlir
// RUN: tressel-opt %t.mlir --tressel-pipeline --tressel-stop-after=outline-kernels --tressel-verify-each | FileCheck %s
// RUN: tressel-opt %t.mlir --tressel-pipeline --tressel-verify-each | FileCheck %s --check-prefix=SCHEDULE
// RUN: tressel-opt %s --tressel-pipeline --tressel-machine=sim:2gpu-pcie3 --tressel-verify-each | FileCheck %s --check-prefix=DEVICES

// Rows are parts of a tensor's bytes, and joined rows are computed in those of the whole: nothing is copied for it.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tressel.launch @slice
// CHECK: tressel.slice %arg0 {limits = array<i64: 128, 256>
// CHECK-NOT: tressel.launch @concat
// CHECK: tressel.concat

// SCHEDULE: %[[LOW:.*]] = sched.view %y : tensor<128x256xf32>
// SCHEDULE: %[[HIGH:.*]] = sched.view %y plus 131072 : tensor<128x256xf32>
// SCHEDULE: sched.step
// SCHEDULE-NEXT: sched.launch {{.*}} -> (%[[LOW]])
// SCHEDULE-NEXT: sched.launch {{.*}} -> (%[[HIGH]])
// SCHEDULE-NEXT: }

// Of two devices each gets its rows, and not the whole.
// DEVICES: sched.buffer in %gpu0.memory at 0 : tensor<128x256xf32>
// DEVICES: sched.step
// DEVICES-COUNT-2: sched.copy %v
// DEVICES-COUNT-2: sched.copy {{.*}} -> %v
// DEVICES-NOT: sched.launch {{.*}} on %cpu
func.func @main(%x: tensor<256x256xf32> {tressel.name = "x", tressel.pinned}, %w: tensor<256x256xf32> {tressel.state = "w"})
    -> (tensor<256x256xf32> {tressel.name = "y", tressel.pinned}) {
  %a = tressel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 128, 256>} : (tensor<256x256xf32>) -> tensor<128x256xf32>
  %b = tressel.slice %x {starts = array<i64: 128, 0>, limits = array<i64: 256, 256>} : (tensor<256x256xf32>) -> tensor<128x256xf32>
  %0 = tressel.matmul %a, %w {tressel.device = "gpu0"} : (tensor<128x256xf32>, tensor<256x256xf32>) -> tensor<128x256xf32>
  %1 = tressel.matmul %b, %w {tressel.device = "gpu1"} : (tensor<128x256xf32>, tensor<256x256xf32>) -> tensor<128x256xf32>
  %2 = tressel.concat %0, %1 {axis = 0 : i64} : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<256x256xf32>
  return %2 : tensor<256x256xf32>
}
