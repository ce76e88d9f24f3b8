// RUN: tressel-opt %s --tressel-form-clusters -split-input-file | FileCheck %s
// The model providers bid here: "library" for a contraction, "generated" for loops over one domain.

// A library's root takes the elementwise ops after it; a parameter is packed for it, and stays an operand for the body.
// CHECK-LABEL: func.func @main(%arg0: tensor<64x64xf32> {tressel.name = "epilogue"}
// CHECK: %[[PACK:.*]] = tressel.pack %arg1 provider "library" params "{{.*}}" : tensor<64x32xf32> -> tensor<8192xui8>
// CHECK: %[[R:.*]] = tressel.cluster(%arg0, %arg1, %[[PACK]], %arg2) {packs = 1 : i64, {{.*}}provider = "library", range = 64 : i64, root_ops = 1 : i64, target = #tressel.target<host_library>, tressel.runner_up = {generated = {{[0-9.E-]+}} : f64}}
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<64x64xf32>, %[[W:.*]]: tensor<64x32xf32>, %{{.*}}: tensor<8192xui8>, %[[B:.*]]: tensor<32xf32>):
// CHECK-NEXT: %[[MM:.*]] = tressel.matmul %[[X]], %[[W]]
// CHECK-NEXT: %[[SUM:.*]] = tressel.add %[[MM]], %[[B]]
// CHECK-NEXT: %[[RELU:.*]] = tressel.relu %[[SUM]]
// CHECK-NEXT: tressel.yield %[[RELU]]
// CHECK: return %[[R]]
func.func @main(%x: tensor<64x64xf32> {tressel.name = "epilogue"}, %w: tensor<64x32xf32> {tressel.state = "w"},
                %b: tensor<32xf32> {tressel.state = "b"}) -> (tensor<64x32xf32> {tressel.name = "y"}) {
  %0 = tressel.matmul %x, %w : (tensor<64x64xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
  %1 = tressel.add %0, %b : (tensor<64x32xf32>, tensor<32xf32>) -> tensor<64x32xf32>
  %2 = tressel.relu %1 : (tensor<64x32xf32>) -> tensor<64x32xf32>
  return %2 : tensor<64x32xf32>
}

// -----

// Row reductions and the elementwise ops around them are one kernel.
// CHECK-LABEL: func.func @main(%arg0: tensor<8x64xf32> {tressel.name = "rows"}
// CHECK: tressel.cluster(%arg0) {provider = "generated", range = 8 : i64}
// CHECK: tressel.max
// CHECK: tressel.sub
// CHECK: tressel.exp
// CHECK: tressel.sum
// CHECK: tressel.div
// CHECK-NOT: tressel.cluster
// CHECK: return
func.func @main(%x: tensor<8x64xf32> {tressel.name = "rows"}) -> (tensor<8x64xf32> {tressel.name = "y"}) {
  %0 = tressel.max %x {axis = array<i64: 1>, keepdims = true} : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %1 = tressel.sub %x, %0 : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  %2 = tressel.exp %1 : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %3 = tressel.sum %2 {axis = array<i64: 1>, keepdims = true} : (tensor<8x64xf32>) -> tensor<8x1xf32>
  %4 = tressel.div %2, %3 : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
  return %4 : tensor<8x64xf32>
}

// -----

// Convex: exp and add may not share a kernel, because matmul stands on the path between them. Here add becomes the
// epilogue of the matmul, and exp stays alone.
// CHECK-LABEL: func.func @main(%arg0: tensor<64x64xf32> {tressel.name = "convex"}
// CHECK: %[[E:.*]] = tressel.cluster(%arg0)
// CHECK: tressel.exp
// CHECK: tressel.cluster(%[[E]], %arg1,
// CHECK: tressel.matmul
// CHECK-NEXT: tressel.add
func.func @main(%x: tensor<64x64xf32> {tressel.name = "convex"}, %w: tensor<64x64xf32> {tressel.state = "w"})
    -> (tensor<64x64xf32> {tressel.name = "y"}) {
  %0 = tressel.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = tressel.matmul %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = tressel.add %0, %1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}

// -----

// exp has two users that cannot share a kernel with it both: it is computed once.
// CHECK-LABEL: func.func @main(%arg0: tensor<64x64xf32> {tressel.name = "once"}
// CHECK-COUNT-1: tressel.exp
// CHECK-NOT: tressel.exp
func.func @main(%x: tensor<64x64xf32> {tressel.name = "once"})
    -> (tensor<64x64xf32> {tressel.name = "y"}, tensor<64x64xf32> {tressel.name = "z"}) {
  %0 = tressel.exp %x : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = tressel.matmul %0, %0 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = tressel.negative %0 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %1, %2 : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// A broadcast is repeated in each kernel that uses it; a constant of one value too.
// CHECK-LABEL: func.func @main(%arg0: tensor<64xf32> {tressel.name = "cheap"}
// CHECK: tressel.cluster(%arg1, %arg0)
// CHECK: tressel.matmul
// CHECK: tressel.broadcast_to
// CHECK: tressel.add
// CHECK: tressel.cluster(%{{.*}}, %arg0)
// CHECK: tressel.matmul
// CHECK: tressel.broadcast_to
// CHECK: tressel.mul
// CHECK: tressel.constant dense<2.0
// CHECK: tressel.mul
// CHECK-NOT: tressel.cluster
func.func @main(%x: tensor<64xf32> {tressel.name = "cheap"}, %a: tensor<64x64xf32> {tressel.name = "a"})
    -> (tensor<64x64xf32> {tressel.name = "y"}, tensor<64x64xf32> {tressel.name = "z"}) {
  %two = tressel.constant dense<2.0> : tensor<f32>
  %b = tressel.broadcast_to %x {shape = array<i64: 64, 64>} : (tensor<64xf32>) -> tensor<64x64xf32>
  %1 = tressel.matmul %a, %a : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = tressel.add %1, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = tressel.matmul %2, %2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = tressel.mul %3, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %5 = tressel.mul %4, %two : (tensor<64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
  return %2, %5 : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// Views stay outside: they cost nothing.
// CHECK-LABEL: func.func @main(%arg0: tensor<4x256xf32> {tressel.name = "views"}
// CHECK: %[[V:.*]] = tressel.reshape %arg0
// CHECK: %[[C:.*]] = tressel.cluster(%[[V]])
// CHECK: tressel.reshape %[[C]]
func.func @main(%x: tensor<4x256xf32> {tressel.name = "views"}) -> (tensor<4x256xf32> {tressel.name = "y"}) {
  %v = tressel.reshape %x {shape = array<i64: 1024>} : (tensor<4x256xf32>) -> tensor<1024xf32>
  %1 = tressel.exp %v : (tensor<1024xf32>) -> tensor<1024xf32>
  %u = tressel.reshape %1 {shape = array<i64: 4, 256>} : (tensor<1024xf32>) -> tensor<4x256xf32>
  return %u : tensor<4x256xf32>
}

// -----

// Joining very many tensors is slow to compile and to run in one kernel: 64 of them are joined first.
// CHECK-LABEL: func.func @main(%arg0: tensor<3xf32> {tressel.name = "wide"}
// CHECK: tressel.concat {{.*}} -> tensor<192xf32>
// CHECK: tressel.concat {{.*}} : (tensor<192xf32>, tensor<3xf32>) -> tensor<195xf32>
// CHECK: return
func.func @main(%x: tensor<3xf32> {tressel.name = "wide"}) -> (tensor<195xf32> {tressel.name = "y"}) {
  %0 = tressel.concat %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x {axis = 0 : i64} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<195xf32>
  return %0 : tensor<195xf32>
}

// -----

// Small next values of states that nothing else reads are one kernel, though they exchange no values; what another op
// reads is not, nor what is large.
// CHECK-LABEL: func.func @main(%arg0: tensor<64xf32> {tressel.name = "updates"}
// CHECK: tressel.cluster(%arg0, %arg1, %arg2)
// CHECK: tressel.mul
// CHECK: tressel.add
// CHECK: tressel.yield %{{.*}}, %{{.*}} : tensor<64xf32>, tensor<64xf32>
// CHECK: tressel.cluster(%arg0, %arg3)
// CHECK: tressel.cluster(%arg4)
// CHECK: return
func.func @main(%g: tensor<64xf32> {tressel.name = "updates"}, %a: tensor<64xf32> {tressel.state = "a"}, %b: tensor<64xf32> {tressel.state = "b"},
                %c: tensor<64xf32> {tressel.state = "c"}, %d: tensor<1048576xf32> {tressel.state = "d"})
    -> (tensor<64xf32> {tressel.name = "y"}, tensor<64xf32> {tressel.state = "a"}, tensor<64xf32> {tressel.state = "b"},
        tensor<64xf32> {tressel.state = "c"}, tensor<1048576xf32> {tressel.state = "d"}) {
  %0 = tressel.mul %g, %a : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = tressel.add %g, %b : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %2 = tressel.sub %g, %c : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %3 = tressel.sum %2 {axis = array<i64: 0>, keepdims = true} : (tensor<64xf32>) -> tensor<1xf32>
  %4 = tressel.mul %2, %3 : (tensor<64xf32>, tensor<1xf32>) -> tensor<64xf32>
  %5 = tressel.exp %d : (tensor<1048576xf32>) -> tensor<1048576xf32>
  return %4, %0, %1, %2, %5 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<1048576xf32>
}
