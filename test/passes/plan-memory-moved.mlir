// RUN: tressel-opt %s --tressel-plan-memory | FileCheck %s

// A loop writes another row of %rows in each iteration. Nothing reads them, and the bytes are the loop's all the same: no other
// buffer of its body may have them.

// CHECK: sched.program @main peak 256 at_least 256
// CHECK: sched.buffer in %memory at 0 : tensor<6x8xf32>
// CHECK: sched.buffer in %memory at 192 : tensor<8xf32>
sched.program @main {
  %cpu = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0
  %x = sched.input "x" : tensor<8xf32>
  %y = sched.output "y" : tensor<8xf32>
  %rows = sched.buffer in %memory : tensor<6x8xf32>
  %row = sched.view %rows : tensor<8xf32>
  %kept = sched.buffer in %memory : tensor<8xf32>
  sched.step {
    %0 = sched.loop 6 times moving %row on %cpu {
      %1 = sched.copy %x -> %row on %cpu
      %2 = sched.copy %x -> %kept on %cpu
      %3 = sched.copy %kept -> %y on %cpu
    }
  }
}
