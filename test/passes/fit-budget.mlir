// RUN: tressel-opt %s --tressel-form-clusters --tressel-outline-kernels --tressel-fit-budget="bytes=65536" -split-input-file | FileCheck %s
// RUN: tressel-opt %s --tressel-form-clusters --tressel-outline-kernels --tressel-fit-budget="share=1" -split-input-file | FileCheck %s --check-prefix=WHOLE
// RUN: tressel-opt %s --tressel-form-clusters --tressel-outline-kernels --tressel-fit-budget="bytes=49152" -split-input-file | FileCheck %s --check-prefix=TIGHT
// RUN: not tressel-opt %s --tressel-form-clusters --tressel-outline-kernels --tressel-fit-budget="bytes=100" -split-input-file 2>&1 | FileCheck %s --check-prefix=LEAST

// Four tensors of 16 KiB: of what is read later, one is computed again. The budget is met by what takes least time.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tressel.ordered
// CHECK: %[[A:.*]] = tressel.launch @random_uniform_0(%arg0)
// CHECK: %[[B:.*]] = tressel.launch @matmul_0(%[[A]], %arg1)
// CHECK: %[[AGAIN:.*]] = tressel.launch @matmul_0(%[[A]], %arg1)
// CHECK-NEXT: tressel.launch @matmul_0(%{{.*}}, %[[AGAIN]])
// TIGHT: %[[AGAIN:.*]] = tressel.launch @random_uniform_0(%arg0)
// TIGHT: %[[AGAIN:.*]] = tressel.launch @random_uniform_0(%arg0)
// WHOLE-LABEL: func.func @main
// WHOLE: tressel.launch @random_uniform
// WHOLE-NOT: tressel.launch @random_uniform
// LEAST: error: the memory budget of 100 bytes cannot be met: the program's intermediate values take {{[0-9]+}} bytes, and 49152 at least, computing again what can be; allow that many, or a smaller batch
func.func @main(%seed: tensor<i64> {tressel.name = "seed"}, %w: tensor<64x64xf32> {tressel.name = "w"}) -> (tensor<64x64xf32> {tressel.name = "y"}) {
  %a = tressel.random_uniform %seed {shape = array<i64: 64, 64>} : (tensor<i64>) -> tensor<64x64xf32>
  %b = tressel.matmul %a, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = tressel.matmul %b, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = tressel.matmul %c, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = tressel.matmul %d, %c : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %f = tressel.matmul %e, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = tressel.matmul %f, %a : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %g : tensor<64x64xf32>
}

// -----

// What a part of the program makes on its way is dropped behind it, whatever room there is.
// WHOLE-LABEL: func.func @main
// WHOLE: %[[H:.*]] = tressel.launch @matmul_{{.*}}(%arg0, %arg1)
// WHOLE: %[[Y:.*]] = tressel.launch @matmul_{{.*}}(%[[H]], %arg1) {tressel.dropped = array<i64: 0>, tressel.segments = array<i64: 1>}
// WHOLE: %[[AGAIN:.*]] = tressel.launch @matmul_{{.*}}(%arg0, %arg1)
// WHOLE-NEXT: tressel.launch @matmul_{{.*}}(%{{.*}}, %[[AGAIN]])
// CHECK-LABEL: func.func @main
// LEAST: and {{[0-9]+}} at least
func.func @main(%x: tensor<64x64xf32> {tressel.name = "x"}, %w: tensor<64x64xf32> {tressel.name = "w"}) -> (tensor<64x64xf32> {tressel.name = "y"}) {
  %h = tressel.matmul %x, %w {tressel.segment = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = tressel.matmul %h, %w {tressel.segment = 1 : i64, tressel.kept} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = tressel.matmul %y, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = tressel.matmul %z, %h : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %g : tensor<64x64xf32>
}
