// RUN: tressel-opt %s --tressel-place-clusters --tressel-machine=sim:h100 -split-input-file | FileCheck %s
// RUN: tressel-opt %s --tressel-place-clusters --tressel-machine=sim:2gpu-pcie3 -split-input-file | FileCheck %s --check-prefix=TWO
// RUN: tressel-opt %s --tressel-resolve-devices -split-input-file | FileCheck %s --check-prefix=ALONE

// States that may lie anywhere stay on the one accelerator whose kernels compute their next values; what the host
// computes, or nothing, stays there.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tressel.home = "gpu0", tressel.state = "w"
// CHECK-SAME: %{{.*}}: tensor<1024xf32> {tressel.state = "h"}
// CHECK-SAME: %{{.*}}: tensor<1024xf32> {tressel.state = "kept"}
// CHECK-SAME: -> (tensor<1024xf32> {tressel.home = "gpu0", tressel.state = "w"}, tensor<1024xf32> {tressel.state = "h"})
// TWO-NOT: tressel.home
// ALONE-NOT: tressel.home
tressel.kernel @there(%a: tensor<1024xf32>) -> tensor<1024xf32> attributes {params = "{}", provider = "cuda", target = #tressel.target<gpu>} {
  %0 = tressel.exp %a : (tensor<1024xf32>) -> tensor<1024xf32>
  tressel.yield %0 : tensor<1024xf32>
}
tressel.kernel @here(%a: tensor<1024xf32>, %b: tensor<1024xf32>) -> tensor<1024xf32> attributes {provider = "generated"} {
  %0 = tressel.add %a, %b : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  tressel.yield %0 : tensor<1024xf32>
}
func.func @main(%w: tensor<1024xf32> {tressel.state = "w", tressel.home = "computed"},
                %h: tensor<1024xf32> {tressel.state = "h", tressel.home = "computed"},
                %kept: tensor<1024xf32> {tressel.state = "kept", tressel.home = "computed"})
    -> (tensor<1024xf32> {tressel.state = "w", tressel.home = "computed"}, tensor<1024xf32> {tressel.state = "h", tressel.home = "computed"}) {
  %0 = tressel.launch @there(%w) : (tensor<1024xf32>) -> tensor<1024xf32>
  %1 = tressel.launch @here(%h, %kept) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %0, %1 : tensor<1024xf32>, tensor<1024xf32>
}
