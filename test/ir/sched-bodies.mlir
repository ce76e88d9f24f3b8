// RUN: tressel-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// Branches and loops of schedules: syntax, and the rules by number (ir/sched/Sched.td).

// CHECK-LABEL: sched.program @all
sched.program @all {
  %cpu = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0
  %x = sched.input "x" : tensor<10x16xf32>
  %row = sched.view %x : tensor<16xf32>
  %y = sched.output "y" : tensor<10x16xf32>
  %part = sched.view %y : tensor<16xf32>
  %flag = sched.buffer in %memory : tensor<i1>
  %i = sched.buffer in %memory : tensor<i64>
  sched.step {
    // CHECK: sched.loop 10 times index %i moving %row, %part on %cpu {
    %0 = sched.loop 10 times index %i moving %row, %part on %cpu {
      %1 = sched.copy %row -> %part on %cpu
    }
    // CHECK: sched.fill true -> %flag on %cpu after %0 data
    %2 = sched.fill true -> %flag on %cpu after %0 data
    // CHECK: sched.while %flag on %cpu {
    // CHECK: } do {
    %3 = sched.while %flag on %cpu {
      %4 = sched.fill false -> %flag on %cpu
    } do {
    }
    // CHECK: sched.branch %flag on %cpu {
    // CHECK: } else {
    %5 = sched.branch %flag on %cpu {
    } else {
    }
  }
}

// -----

sched.program @flag_1 {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<2xi1>
  sched.step {
    // expected-error @+1 {{(rule 1) the flag must be one bool, not 'tensor<2xi1>'}}
    %0 = sched.branch %x on %cpu {
    } else {
    }
  }
}

// -----

sched.program @loop_1 {
  %cpu = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0
  %i = sched.buffer in %memory : tensor<i32>
  sched.step {
    // expected-error @+1 {{(rule 1) the index must be one i64}}
    %0 = sched.loop 2 times index %i on %cpu {
    }
  }
}

// -----

sched.program @loop_2 {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<16xf32>
  sched.step {
    // expected-error @+1 {{(rule 2) moves a buffer that is no view}}
    %0 = sched.loop 2 times moving %x on %cpu {
    }
  }
}

// -----

sched.program @loop_2_out {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<2x16xf32>
  %v = sched.view %x : tensor<16xf32>
  sched.step {
    // expected-error @+1 {{(rule 2) moves a buffer to byte 192 of the 128 bytes that it is a part of}}
    %0 = sched.loop 3 times moving %v on %cpu {
    }
  }
}

// -----

sched.program @waits_outside {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<4xf32>
  %y = sched.output "y" : tensor<4xf32>
  sched.step {
    %0 = sched.copy %x -> %y on %cpu
    %1 = sched.loop 2 times on %cpu {
      // expected-error @+1 {{waits for a command of another body}}
      %2 = sched.copy %x -> %y on %cpu after %0 war
    }
  }
}

// -----

sched.program @writes_input {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<4xf32>
  sched.step {
    %1 = sched.loop 2 times on %cpu {
      // expected-error @+1 {{(rule 3) of a program: writes an input}}
      %2 = sched.copy %x -> %x on %cpu
    }
  }
}
