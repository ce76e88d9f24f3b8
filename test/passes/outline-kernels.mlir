// RUN: tressel-opt %s --tressel-outline-kernels -mlir-print-debuginfo -split-input-file | FileCheck %s

// Two equal clusters of different lines become one kernel; one with another attribute its own. Lines stay with launches.
// CHECK: tressel.kernel @pack_0(tensor<4xf32>) -> tensor<16xui8> attributes {{{.*}}params = "{}", provider = "library", target = #tressel.target<host_library>}
// CHECK: tressel.kernel @exp_relu_0(
// CHECK: tressel.kernel @exp_relu_1({{.*}} range = 2 : i64}
// CHECK-NOT: tressel.kernel
// CHECK-LABEL: func.func @main
// CHECK: tressel.launch @pack_0(%arg0)
// CHECK: %[[A:.*]] = tressel.launch @exp_relu_0(%arg0) : {{.*}} loc(#[[FIRST:.*]])
// CHECK: %[[B:.*]] = tressel.launch @exp_relu_0(%[[A]]) : {{.*}} loc(#[[SECOND:.*]])
// CHECK: tressel.launch @exp_relu_1(%[[B]])
// CHECK-DAG: #[[FIRST]] = loc("model.cpp":1:0)
// CHECK-DAG: #[[SECOND]] = loc("model.cpp":2:0)
func.func @main(%x: tensor<4xf32> {tressel.name = "x"}) -> (tensor<4xf32> {tressel.name = "y"}, tensor<16xui8> {tressel.name = "p"}) {
  %p = tressel.pack %x provider "library" params "{}" : tensor<4xf32> -> tensor<16xui8>
  %0 = tressel.cluster(%x) {provider = "generated"} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = tressel.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    %2 = tressel.relu %1 : (tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %2 : tensor<4xf32>
  } loc("model.cpp":1:0)
  %3 = tressel.cluster(%0) {provider = "generated"} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %4 = tressel.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    %5 = tressel.relu %4 : (tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %5 : tensor<4xf32>
  } loc("model.cpp":2:0)
  %6 = tressel.cluster(%3) {provider = "generated", range = 2 : i64} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %7 = tressel.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    %8 = tressel.relu %7 : (tensor<4xf32>) -> tensor<4xf32>
    tressel.yield %8 : tensor<4xf32>
  }
  return %6, %p : tensor<4xf32>, tensor<16xui8>
}

// -----

// Of an operand that is read in packed form the packed bytes count: 64 in, 128 packed, 64 out.
// CHECK: tressel.kernel @matmul_0({{.*}}bytes = 256 : i64
func.func @main(%x: tensor<4x4xf32> {tressel.name = "x"}, %w: tensor<4x4xf32> {tressel.state = "w"}) -> (tensor<4x4xf32> {tressel.name = "y"}) {
  %p = tressel.pack %w provider "library" params "{}" : tensor<4x4xf32> -> tensor<128xui8>
  %0 = tressel.cluster(%x, %w, %p) {packs = 1 : i64, params = "{}", provider = "library", target = #tressel.target<host_library>} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<128xui8>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %c: tensor<128xui8>):
    %1 = tressel.matmul %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    tressel.yield %1 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

// -----

// A row that a compute unit keeps is read once, and written: 2 * 2 * 4096 * 4 bytes.
// CHECK: tressel.kernel @mean_sub_square_mean_mul_0{{.*}} attributes {bytes = 65536 : i64,
func.func @main(%x: tensor<2x4096xf32> {tressel.name = "x"}) -> (tensor<2x4096xf32> {tressel.name = "y"}) {
  %y = tressel.cluster(%x) {provider = "generated"} : (tensor<2x4096xf32>) -> tensor<2x4096xf32> {
  ^bb0(%a: tensor<2x4096xf32>):
    %1 = tressel.mean %a {axis = array<i64: 1>, keepdims = true} : (tensor<2x4096xf32>) -> tensor<2x1xf32>
    %2 = tressel.sub %a, %1 : (tensor<2x4096xf32>, tensor<2x1xf32>) -> tensor<2x4096xf32>
    %3 = tressel.square %2 : (tensor<2x4096xf32>) -> tensor<2x4096xf32>
    %4 = tressel.mean %3 {axis = array<i64: 1>, keepdims = true} : (tensor<2x4096xf32>) -> tensor<2x1xf32>
    %5 = tressel.mul %2, %4 : (tensor<2x4096xf32>, tensor<2x1xf32>) -> tensor<2x4096xf32>
    tressel.yield %5 : tensor<2x4096xf32>
  }
  return %y : tensor<2x4096xf32>
}

// -----

// One of 4 MB is read for the mean, for the variance, and for what is made of both: 4 * 2 * 1048576 * 4 bytes.
// CHECK: tressel.kernel @mean_sub_square_mean_mul_0{{.*}} attributes {bytes = 33554432 : i64,
func.func @main(%x: tensor<2x1048576xf32> {tressel.name = "x"}) -> (tensor<2x1048576xf32> {tressel.name = "y"}) {
  %y = tressel.cluster(%x) {provider = "generated"} : (tensor<2x1048576xf32>) -> tensor<2x1048576xf32> {
  ^bb0(%a: tensor<2x1048576xf32>):
    %1 = tressel.mean %a {axis = array<i64: 1>, keepdims = true} : (tensor<2x1048576xf32>) -> tensor<2x1xf32>
    %2 = tressel.sub %a, %1 : (tensor<2x1048576xf32>, tensor<2x1xf32>) -> tensor<2x1048576xf32>
    %3 = tressel.square %2 : (tensor<2x1048576xf32>) -> tensor<2x1048576xf32>
    %4 = tressel.mean %3 {axis = array<i64: 1>, keepdims = true} : (tensor<2x1048576xf32>) -> tensor<2x1xf32>
    %5 = tressel.mul %2, %4 : (tensor<2x1048576xf32>, tensor<2x1xf32>) -> tensor<2x1048576xf32>
    tressel.yield %5 : tensor<2x1048576xf32>
  }
  return %y : tensor<2x1048576xf32>
}
