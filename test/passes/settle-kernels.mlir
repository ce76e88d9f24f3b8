// RUN: tressel-opt %s --tressel-settle-kernels -split-input-file | FileCheck %s

// A kernel for GPUs that the host launches becomes one of the host; accelerators keep theirs, which wants its operands aligned.
// CHECK: tressel.kernel @add_0_host(%{{.*}}) -> tensor<1024xf32> attributes {provider = "generated", range = 1024 : i64
// CHECK: tressel.kernel @add_0({{.*}}target = #tressel.target<gpu>, tressel.aligned}
// CHECK-LABEL: func.func @main
// CHECK: tressel.launch @add_0_host(%arg0, %arg1) :
// CHECK: tressel.launch @add_0(%arg0, %0) {tressel.device = "gpu0"}
tressel.kernel @add_0(%a: tensor<1024xf32>, %b: tensor<1024xf32>) -> tensor<1024xf32>
    attributes {params = "{}", provider = "cuda", range = 8 : i64, target = #tressel.target<gpu>} {
  %0 = tressel.add %a, %b : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  tressel.yield %0 : tensor<1024xf32>
}
func.func @main(%x: tensor<1024xf32> {tressel.name = "x"}, %y: tensor<1024xf32> {tressel.name = "y"}) -> (tensor<1024xf32> {tressel.name = "z"}) {
  %0 = tressel.launch @add_0(%x, %y) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %1 = tressel.launch @add_0(%x, %0) {tressel.device = "gpu0"} : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %1 : tensor<1024xf32>
}

// -----

// Where the host alone launches it, the kernel itself is changed; those of the host stay as they are.
// CHECK: tressel.kernel @exp_0({{.*}}provider = "generated"
// CHECK-NOT: _host
// CHECK: tressel.kernel @relu_0({{.*}}attributes {provider = "generated"}
tressel.kernel @exp_0(%a: tensor<64xf32>) -> tensor<64xf32>
    attributes {params = "{}", provider = "cuda", range = 2 : i64, target = #tressel.target<gpu>} {
  %0 = tressel.exp %a : (tensor<64xf32>) -> tensor<64xf32>
  tressel.yield %0 : tensor<64xf32>
}
tressel.kernel @relu_0(%a: tensor<64xf32>) -> tensor<64xf32> attributes {provider = "generated"} {
  %0 = tressel.relu %a : (tensor<64xf32>) -> tensor<64xf32>
  tressel.yield %0 : tensor<64xf32>
}
func.func @main(%x: tensor<64xf32> {tressel.name = "x"}) -> (tensor<64xf32> {tressel.name = "z"}) {
  %0 = tressel.launch @exp_0(%x) {tressel.device = "cpu"} : (tensor<64xf32>) -> tensor<64xf32>
  %1 = tressel.launch @relu_0(%0) : (tensor<64xf32>) -> tensor<64xf32>
  return %1 : tensor<64xf32>
}

// -----

// What accelerators take as one kernel and no provider of the host does becomes several, where nothing is exchanged between them.
// CHECK-NOT: target = #tressel.target<gpu>
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = tressel.launch @both_0_part(%arg0) {tressel.device = "cpu"} : (tensor<64xf32>) -> tensor<64xf32>
// CHECK: %[[B:.*]] = tressel.launch @both_0_part_0(%arg1, %arg2) {tressel.device = "cpu"} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
// CHECK: return %[[B]], %[[A]]
tressel.kernel @both_0(%a: tensor<64xf32>, %b: tensor<16xf32>, %c: tensor<16xf32>) -> (tensor<64xf32>, tensor<16xf32>)
    attributes {params = "{}", provider = "cuda", range = 2 : i64, target = #tressel.target<gpu>} {
  %0 = tressel.sort %a : (tensor<64xf32>) -> tensor<64xf32>
  %1 = tressel.add %b, %c : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  tressel.yield %0, %1 : tensor<64xf32>, tensor<16xf32>
}
func.func @main(%x: tensor<64xf32> {tressel.name = "x"}, %y: tensor<16xf32> {tressel.name = "y"}, %z: tensor<16xf32> {tressel.name = "z"})
    -> (tensor<16xf32> {tressel.name = "u"}, tensor<64xf32> {tressel.name = "v"}) {
  %0:2 = tressel.launch @both_0(%x, %y, %z) {tressel.device = "cpu"} : (tensor<64xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<64xf32>, tensor<16xf32>)
  return %0#1, %0#0 : tensor<16xf32>, tensor<64xf32>
}
