// RUN: tressel-opt %s --tressel-place-clusters --tressel-machine=sim:2gpu-pcie3 -split-input-file | FileCheck %s
// RUN: tressel-opt %s --tressel-place-clusters -split-input-file | FileCheck %s --check-prefix=ALONE

// Long work goes to an accelerator, two independent ones to two; an annotation stays; short work on the host's data stays there. Test
// PlacementTest has the sums.
// CHECK-LABEL: func.func @main
// CHECK: tressel.launch @long_0({{.*}}) {tressel.device = "gpu0"}
// CHECK: tressel.launch @long_0({{.*}}) {tressel.device = "gpu1"}
// CHECK: tressel.launch @short_0({{.*}}) {tressel.device = "cpu"}
// CHECK: tressel.launch @short_0({{.*}}) {tressel.device = "gpu1"}
// ALONE-NOT: tressel.device = "gpu0"
tressel.kernel @long_0(%a: tensor<1024xf32>) -> tensor<1024xf32> attributes {provider = "generated", flops = 1000000000000 : i64, bytes = 8192 : i64} {
  %0 = tressel.exp %a : (tensor<1024xf32>) -> tensor<1024xf32>
  tressel.yield %0 : tensor<1024xf32>
}
tressel.kernel @short_0(%a: tensor<1024xf32>) -> tensor<1024xf32> attributes {provider = "generated", flops = 1024 : i64, bytes = 8192 : i64} {
  %0 = tressel.exp %a : (tensor<1024xf32>) -> tensor<1024xf32>
  tressel.yield %0 : tensor<1024xf32>
}
func.func @main(%x: tensor<1024xf32> {tressel.name = "x"}, %y: tensor<1024xf32> {tressel.name = "y"})
    -> (tensor<1024xf32> {tressel.name = "a"}, tensor<1024xf32> {tressel.name = "b"}, tensor<1024xf32> {tressel.name = "c"}, tensor<1024xf32> {tressel.name = "d"}) {
  %0 = tressel.launch @long_0(%x) : (tensor<1024xf32>) -> tensor<1024xf32>
  %1 = tressel.launch @long_0(%y) : (tensor<1024xf32>) -> tensor<1024xf32>
  %2 = tressel.launch @short_0(%x) : (tensor<1024xf32>) -> tensor<1024xf32>
  %3 = tressel.launch @short_0(%y) {tressel.device = "gpu1"} : (tensor<1024xf32>) -> tensor<1024xf32>
  return %0, %1, %2, %3 : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}
