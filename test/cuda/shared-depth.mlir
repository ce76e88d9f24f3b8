// A product of few tiles and a large depth: blocks of a cluster have parts of the depth of each tile, where the architecture has clusters. What follows is part of the kernel.
// RUN: sed -e 's/TYPE/f32/g' %s > %t.f32.mlir
// RUN: tressel compile %t.f32.mlir --device cuda --gpu sm_90 --emit ptx | FileCheck %s
// RUN: tressel compile %t.f32.mlir --device cuda --gpu sm_120 --emit ptx | FileCheck %s
// RUN: tressel compile %t.f32.mlir --device cuda --gpu sm_80 --emit ptx | FileCheck %s --check-prefix=ALONE
// RUN: sed -e 's/TYPE/bf16/g' %s > %t.bf16.mlir
// RUN: tressel compile %t.bf16.mlir --device cuda --gpu sm_90a --emit ptx | FileCheck %s --check-prefix=WARPGROUPS
// A package for both has both forms, whatever comes first.
// RUN: tressel compile %t.f32.mlir --device cuda --gpu sm_90 --gpu sm_80 -o %t.tsl
// RUN: strings -n 60 %t.tsl | FileCheck %s --check-prefix=PARAMS
// RUN: tressel run %t.f32.mlir --random-inputs 1 --output-dir %t.host -q
// RUN: tressel run %t.f32.mlir --device sim:h100 --gpu sm_90 --random-inputs 1 --expect y=%t.host/y.npy --atol 2e-3 -q
// On a card, with the same results each time, command by command and as a graph; and on one without clusters.
// RUN: env LD_LIBRARY_PATH=%build/standin TRESSEL_STANDIN="order=random seed=5" tressel run %t.tsl --device cuda --random-inputs 1 --expect y=%t.host/y.npy --atol 2e-3 --output-dir %t.card -q
// RUN: env LD_LIBRARY_PATH=%build/standin TRESSEL_STANDIN="order=late seed=8" tressel run %t.tsl --device cuda --random-inputs 1 --repeat 3 --output-dir %t.again -q
// RUN: cmp %t.card/y.npy %t.again/y.npy
// RUN: env LD_LIBRARY_PATH=%build/standin TRESSEL_STANDIN="arch=80" tressel run %t.tsl --device cuda --random-inputs 1 --expect y=%t.host/y.npy --atol 2e-3 -q

// In the other types, and by warpgroups, for cards of compute capability 9.0.
// RUN: sed -e 's/TYPE/f16/g' %s > %t.f16.mlir
// RUN: tressel run %t.bf16.mlir --random-inputs 1 --output-dir %t.bf16 -q
// RUN: tressel run %t.f16.mlir --random-inputs 1 --output-dir %t.f16 -q
// RUN: tressel run %t.bf16.mlir --device sim:h100 --gpu sm_90 --random-inputs 1 --expect y=%t.bf16/y.npy --rtol 1e-2 --atol 1e-2 -q
// RUN: tressel run %t.f16.mlir --device sim:h100 --gpu sm_90 --random-inputs 1 --expect y=%t.f16/y.npy --rtol 2e-3 --atol 1e-2 -q
// RUN: tressel compile %t.bf16.mlir --device cuda --gpu sm_90a --gpu sm_90 -o %t.own.tsl
// RUN: env LD_LIBRARY_PATH=%build/standin tressel run %t.own.tsl --device cuda --random-inputs 1 --expect y=%t.bf16/y.npy --rtol 1e-2 --atol 1e-2 -q

// CHECK: .entry matmul_add_relu
// CHECK: barrier.cluster.arrive.aligned
// CHECK: barrier.cluster.wait.aligned
// CHECK: mapa.shared::cluster
// CHECK: ld.shared::cluster.b32
// CHECK: barrier.cluster.arrive.aligned
// CHECK-NOT: .entry
// ALONE: .entry matmul_add_relu
// ALONE-NOT: cluster
// WARPGROUPS: .entry matmul_add_relu
// WARPGROUPS: wgmma.mma_async
// WARPGROUPS: ld.shared::cluster.b32
// PARAMS: "arch":"sm_90","shared":0,"maps":[],"cluster":8,"portable":{"threads":
func.func @main(%x: tensor<64x16384xTYPE> {tressel.name = "x"}, %w: tensor<16384x64xTYPE> {tressel.name = "w"}, %b: tensor<64xTYPE> {tressel.name = "b"}) -> (tensor<64x64xf32> {tressel.name = "y"}) {
  %0 = tressel.matmul %x, %w : (tensor<64x16384xTYPE>, tensor<16384x64xTYPE>) -> tensor<64x64xTYPE>
  %1 = tressel.add %0, %b : (tensor<64x64xTYPE>, tensor<64xTYPE>) -> tensor<64x64xTYPE>
  %2 = tressel.relu %1 : (tensor<64x64xTYPE>) -> tensor<64x64xTYPE>
  %3 = tressel.cast %2 {dtype = f32} : (tensor<64x64xTYPE>) -> tensor<64x64xf32>
  return %3 : tensor<64x64xf32>
}
