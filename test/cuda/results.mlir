// A product whose own value is wanted as well as what follows it is one kernel.
// RUN: tressel compile %s --device cuda --gpu sm_90 --emit schedule --disable-pass split-producers | FileCheck %s
// RUN: rm -rf %t && tressel run %s --random-inputs 1 --output-dir %t
// RUN: tressel run %s --random-inputs 1 --device sim:h100 --gpu sm_90 --expect out0=%t/out0.npy --expect out1=%t/out1.npy --rtol 1e-4 --atol 1e-3

// CHECK: tressel.kernel @matmul_add_gelu{{.*}}(tensor<2048x64xf32>, tensor<2048x64xf32>){{.*}}provider = "cuda.kernels"
func.func @main(%x: tensor<2048x256xf32>, %w: tensor<256x64xf32>, %b: tensor<64xf32>) -> (tensor<2048x64xf32>, tensor<2048x64xf32>) {
  %0 = tressel.matmul %x, %w : (tensor<2048x256xf32>, tensor<256x64xf32>) -> tensor<2048x64xf32>
  %1 = tressel.add %0, %b : (tensor<2048x64xf32>, tensor<64xf32>) -> tensor<2048x64xf32>
  %2 = tressel.gelu %1 : (tensor<2048x64xf32>) -> tensor<2048x64xf32>
  return %0, %2 : tensor<2048x64xf32>, tensor<2048x64xf32>
}
