// RUN: tressel-opt %s -split-input-file -verify-diagnostics
// Rules of the sched dialect, by number (ir/sched/Sched.td).

// expected-error @+1 {{(rule 1) needs a step}}
sched.program @program_1 {
}

// -----

sched.program @program_1_order {
  sched.step {
  }
  // expected-error @+1 {{(rule 1) of a program: declarations come first, then prepare, then step}}
  %cpu = sched.stream compute on cpu 0
}

// -----

sched.program @program_2 {
  %a = sched.input "x" : tensor<4xf32>
  // expected-error @+1 {{(rule 2) of a program: a second input "x"}}
  %b = sched.input "x" : tensor<4xf32>
  sched.step {
  }
}

// -----

sched.program @program_3_input {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<4xf32>
  %c = sched.constant dense<0.0> : tensor<4xf32>
  sched.step {
    // expected-error @+1 {{(rule 3) of a program: writes an input}}
    %0 = sched.copy %c -> %x on %cpu
  }
}

// -----

sched.program @program_3_view_of_constant {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<2xf32>
  %c = sched.constant dense<0.0> : tensor<4xf32>
  %v = sched.view %c plus 8 : tensor<2xf32>
  sched.step {
    // expected-error @+1 {{(rule 3) of a program: writes a constant}}
    %0 = sched.copy %x -> %v on %cpu
  }
}

// -----

sched.program @program_3_derived {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<4xf32>
  %d = sched.state derived "d" : tensor<4xf32>
  sched.step {
    // expected-error @+1 {{(rule 3) of a program: writes a derived state, outside prepare}}
    %0 = sched.copy %x -> %d on %cpu
  }
}

// -----

sched.program @program_3_parameter {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<4xf32>
  %w = sched.state parameter "w" : tensor<4xf32>
  sched.step {
    // expected-error @+1 {{(rule 3) of a program: writes a parameter}}
    %0 = sched.copy %x -> %w on %cpu
  }
}

// -----

sched.program @program_3_prepare {
  %cpu = sched.stream compute on cpu 0
  %w = sched.state parameter "w" : tensor<4xf32>
  %y = sched.output "y" : tensor<4xf32>
  sched.prepare {
    // expected-error @+1 {{(rule 3) of a program: writes an output, in prepare}}
    %0 = sched.copy %w -> %y on %cpu
  }
  sched.step {
  }
}

// -----

sched.program @buffer_1 {
  %memory = sched.arena device on cpu 0 size 256
  // expected-error @+1 {{(rule 1) lies at 8, which is no multiple of 64}}
  %a = sched.buffer in %memory at 8 : tensor<4xf32>
  sched.step {
  }
}

// -----

sched.program @buffer_2 {
  %memory = sched.arena device on cpu 0 size 128
  // expected-error @+1 {{(rule 2) ends at 144, outside its arena}}
  %a = sched.buffer in %memory at 128 : tensor<4xf32>
  sched.step {
  }
}

// -----

sched.program @buffer_type {
  %memory = sched.arena device on cpu 0
  // expected-error @+1 {{needs a tensor of known sizes and a type that Tressel has, not 'tensor<?xf32>'}}
  %a = sched.buffer in %memory : tensor<?xf32>
  sched.step {
  }
}

// -----

sched.program @view_1 {
  %x = sched.input "x" : tensor<4xf32>
  // expected-error @+1 {{(rule 1) reaches beyond its base}}
  %v = sched.view %x plus 8 : tensor<4xf32>
  sched.step {
  }
}

// -----

sched.program @launch_1 {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<4xf32>
  %y = sched.output "y" : tensor<4xf32>
  sched.step {
    // expected-error @+1 {{(rule 1) @nobody is not a tressel.kernel of this module}}
    %0 = sched.launch @nobody(%x) -> (%y) on %cpu
  }
}

// -----

tressel.kernel @relu_0(%a: tensor<4xf32>) -> tensor<4xf32> attributes {provider = "generated"} {
  %0 = tressel.relu %a : (tensor<4xf32>) -> tensor<4xf32>
  tressel.yield %0 : tensor<4xf32>
}
sched.program @launch_2 {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<8xf32>
  %y = sched.output "y" : tensor<4xf32>
  sched.step {
    // expected-error @+1 {{(rule 2) has buffers of '(tensor<8xf32>) -> tensor<4xf32>' but the kernel is '(tensor<4xf32>) -> tensor<4xf32>'}}
    %0 = sched.launch @relu_0(%x) -> (%y) on %cpu
  }
}

// -----

sched.program @copy_1 {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<8xf32>
  %y = sched.output "y" : tensor<4xf32>
  sched.step {
    // expected-error @+1 {{(rule 1) copies 32 bytes to 16}}
    %0 = sched.copy %x -> %y on %cpu
  }
}

// -----

sched.program @fill_1 {
  %cpu = sched.stream compute on cpu 0
  %y = sched.output "y" : tensor<4xf32>
  sched.step {
    // expected-error @+1 {{(rule 1) the value must have the buffer's element type}}
    %0 = sched.fill 0 : i32 -> %y on %cpu
  }
}

// -----

sched.program @after {
  %cpu = sched.stream compute on cpu 0
  %x = sched.input "x" : tensor<4xf32>
  %y = sched.output "y" : tensor<4xf32>
  sched.step {
    %0 = sched.copy %x -> %y on %cpu
    // expected-error @+1 {{expected a reason to wait (data, war, pace or rank), found 'because'}}
    %1 = sched.copy %x -> %y on %cpu after %0 because
  }
}

// -----

sched.program @parts {
  %g0 = sched.stream compute on gpu 0
  %g1 = sched.stream compute on gpu 1
  %pair = sched.group %g0, %g1
  %m0 = sched.arena device on gpu 0 size 64
  %a0 = sched.buffer in %m0 at 0 : tensor<16xf32>
  sched.step {
    %0 = sched.collective all_reduce "one" of %pair(%a0) -> %a0 on %g0
    // expected-error @+1 {{(rule 4) of a program: another "one" is of another kind, group or root}}
    %1 = sched.collective all_reduce by max "one" of %pair(%a0) -> %a0 on %g1
  }
}

// -----

sched.program @nameless {
  %cpu = sched.stream compute on cpu 0
  sched.step {
    // expected-error @+1 {{(rule 1) calls a function without a name}}
    %0 = sched.host_call "" () -> () on %cpu
  }
}

// -----

// expected-error @+1 {{a mesh has axes of different names, which are identifiers, not "data"}}
sched.program @axes ranks #sched.mesh<data = 4, data = 2> {
  sched.step {
  }
}

// -----

// expected-error @+1 {{the size of axis "data" must be a positive number or a symbol, not 0}}
sched.program @no_ranks ranks #sched.mesh<data = 0> {
  sched.step {
  }
}

// -----

sched.program @group_1 ranks #sched.mesh<data = 4> {
  %g0 = sched.stream compute on gpu 0
  %g1 = sched.stream compute on gpu 1
  // expected-error @+1 {{(rule 1) over axes of the mesh has one stream, that of this rank, not 2}}
  %group = sched.group %g0, %g1 over ["data"]
  sched.step {
  }
}

// -----

sched.program @program_5 ranks #sched.mesh<data = 4> {
  %g0 = sched.stream compute on gpu 0
  // expected-error @+1 {{(rule 5) of a program: "tensor" is no axis of the program's mesh, or stands twice}}
  %group = sched.group %g0 over ["tensor"]
  sched.step {
  }
}
