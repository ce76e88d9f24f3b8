// RUN: tressel-opt %s --tressel-insert-waits --tressel-verify-schedule -split-input-file | FileCheck %s

tressel.kernel @exp_0(%a: tensor<16xf32>) -> tensor<16xf32> attributes {provider = "generated"} {
  %0 = tressel.exp %a : (tensor<16xf32>) -> tensor<16xf32>
  tressel.yield %0 : tensor<16xf32>
}
tressel.kernel @add_0(%a: tensor<16xf32>, %b: tensor<16xf32>) -> tensor<16xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  tressel.yield %0 : tensor<16xf32>
}

// %c lies on the bytes of %a, so its writer waits for the reader of %a (war), and needs no wait for the writer of %a, which
// the reader waited for. The last command needs only the later of two events of one stream.
// CHECK-LABEL: sched.program @main
// CHECK: %0 = sched.launch @exp_0(%x) -> (%a) on %s0
// CHECK-NEXT: %1 = sched.launch @exp_0(%a) -> (%b) on %s1 after %0 data
// CHECK-NEXT: %2 = sched.launch @exp_0(%x) -> (%c) on %s2 after %1 war
// CHECK-NEXT: %3 = sched.launch @exp_0(%x) -> (%d) on %s2
// CHECK-NEXT: %4 = sched.launch @add_0(%c, %d) -> (%e) on %s0 after %3 data
// CHECK-NEXT: %5 = sched.launch @add_0(%b, %e) -> (%y) on %s0
sched.program @main {
  %s0 = sched.stream compute on cpu 0
  %s1 = sched.stream compute on cpu 0
  %s2 = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0 size 256
  %x = sched.input "x" : tensor<16xf32>
  %y = sched.output "y" : tensor<16xf32>
  %a = sched.buffer in %memory at 0 : tensor<16xf32>
  %b = sched.buffer in %memory at 64 : tensor<16xf32>
  %c = sched.buffer in %memory at 0 : tensor<16xf32>
  %d = sched.buffer in %memory at 128 : tensor<16xf32>
  %e = sched.buffer in %memory at 192 : tensor<16xf32>
  sched.step {
    %0 = sched.launch @exp_0(%x) -> (%a) on %s0
    %1 = sched.launch @exp_0(%a) -> (%b) on %s1
    %2 = sched.launch @exp_0(%x) -> (%c) on %s2
    %3 = sched.launch @exp_0(%x) -> (%d) on %s2
    %4 = sched.launch @add_0(%c, %d) -> (%e) on %s0
    %5 = sched.launch @add_0(%b, %e) -> (%y) on %s0
  }
}

// -----

// One stream needs no waits; waits from before are dropped.
// CHECK-LABEL: sched.program @main
// CHECK: sched.copy %x -> %a on %s0{{$}}
// CHECK-NEXT: sched.copy %a -> %y on %s0{{$}}
sched.program @main {
  %s0 = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0 size 64
  %x = sched.input "x" : tensor<16xf32>
  %y = sched.output "y" : tensor<16xf32>
  %a = sched.buffer in %memory at 0 : tensor<16xf32>
  sched.step {
    %0 = sched.copy %x -> %a on %s0
    %1 = sched.copy %a -> %y on %s0 after %0 data
  }
}

// -----

// Parts of one buffer are apart: only the halves that meet are ordered.
// CHECK-LABEL: sched.program @main
// CHECK: %0 = sched.copy %x -> %low on %s0{{$}}
// CHECK-NEXT: %1 = sched.copy %x -> %high on %s1{{$}}
// CHECK-NEXT: %2 = sched.copy %high -> %y on %s0 after %1 data
// CHECK-NEXT: %3 = sched.copy %whole -> %z on %s1 after %0 data
sched.program @main {
  %s0 = sched.stream compute on cpu 0
  %s1 = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0 size 128
  %x = sched.input "x" : tensor<16xf32>
  %y = sched.output "y" : tensor<16xf32>
  %z = sched.output "z" : tensor<32xf32>
  %whole = sched.buffer in %memory at 0 : tensor<32xf32>
  %low = sched.view %whole : tensor<16xf32>
  %high = sched.view %whole plus 64 : tensor<16xf32>
  sched.step {
    %0 = sched.copy %x -> %low on %s0
    %1 = sched.copy %x -> %high on %s1
    %2 = sched.copy %high -> %y on %s0
    %3 = sched.copy %whole -> %z on %s1
  }
}

// -----

// Of bytes whose number is not known, but not what is kept for them, nobody behind them has to wait.
// CHECK-LABEL: sched.program @main
// CHECK: %0 = sched.copy %x -> %a on %s0{{$}}
// CHECK-NEXT: %1 = sched.copy %y -> %b on %s1{{$}}
sched.program @main {
  %s0 = sched.stream compute on cpu 0
  %s1 = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0 size 128
  %x = sched.input "x" : tensor<16xf32>
  %y = sched.input "y" : tensor<?x2xi8, #tressel.dims<"n[2..26]", 2>>
  %a = sched.buffer in %memory at 64 : tensor<16xf32>
  %b = sched.buffer in %memory at 0 : tensor<?x2xi8, #tressel.dims<"n[2..26]", 2>>
  sched.step {
    %0 = sched.copy %x -> %a on %s0
    %1 = sched.copy %y -> %b on %s1
  }
}

// -----

// The same where many numbers of bytes are kept: such a place ends where its bytes can end.
// CHECK-LABEL: sched.program @main
// CHECK: %0 = sched.copy %y -> %b on %s0{{$}}
// CHECK-NEXT: %1 = sched.copy %x -> %a on %s1{{$}}
// CHECK-NEXT: %2 = sched.copy %x -> %last on %s1 after %0 war
sched.program @main {
  %s0 = sched.stream compute on cpu 0
  %s1 = sched.stream compute on cpu 0
  %memory = sched.arena device on cpu 0 size 512
  %x = sched.input "x" : tensor<16xf32>
  %y = sched.input "y" : tensor<?x2xi8, #tressel.dims<"n[2..200]", 2>>
  %b = sched.buffer in %memory at 0 : tensor<?x2xi8, #tressel.dims<"n[2..200]", 2>>
  %a = sched.buffer in %memory at 448 : tensor<16xf32>
  %last = sched.buffer in %memory at 384 : tensor<16xf32>
  sched.step {
    %0 = sched.copy %y -> %b on %s0
    %1 = sched.copy %x -> %a on %s1
    %2 = sched.copy %x -> %last on %s1
  }
}
