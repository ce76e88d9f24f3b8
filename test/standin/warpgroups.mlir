// Products by warpgroups and in tensor memory on the stand-in: what they compute, launched one by one and as nodes of a graph, and which cards run them.
// Numbers are up to 2,000, sums of terms of both signs: a unit in the last place of f16 is 1.
// RUN: rm -rf %t && mkdir %t
// RUN: tressel compile %s --device cuda --gpu sm_90 --gpu sm_90a -o %t/both.tsl
// RUN: tressel compile %s --device cuda --gpu sm_90a -o %t/one.tsl
// RUN: tressel inspect %t/one.tsl | FileCheck %s --check-prefix=INSPECT
// RUN: tressel run %s --random-inputs 1 --dim rows=200 --output-dir %t/host -q
// RUN: env LD_LIBRARY_PATH=%build/standin TRESSEL_STANDIN="order=late seed=3" tressel run %t/one.tsl --device cuda --random-inputs 1 --dim rows=200 --repeat 4 --expect out0=%t/host/out0.npy --rtol 1e-3 --atol 2 -q
// The code for cards of this architecture alone goes before that for all, and other cards take the latter. With map-swizzle the former is wrong.
// RUN: env LD_LIBRARY_PATH=%build/standin TRESSEL_STANDIN="arch=90" tressel run %t/both.tsl --device cuda --random-inputs 1 --dim rows=200 --expect out0=%t/host/out0.npy --rtol 1e-3 --atol 2 -q
// RUN: env LD_LIBRARY_PATH=%build/standin TRESSEL_STANDIN="arch=90 plant=map-swizzle" not tressel run %t/both.tsl --device cuda --random-inputs 1 --dim rows=200 --expect out0=%t/host/out0.npy --rtol 1e-3 --atol 2 -q
// RUN: env LD_LIBRARY_PATH=%build/standin TRESSEL_STANDIN="arch=100 plant=map-swizzle" tressel run %t/both.tsl --device cuda --random-inputs 1 --dim rows=200 --expect out0=%t/host/out0.npy --rtol 1e-3 --atol 2 -q
// RUN: tressel compile %s --device cuda --gpu sm_100a -o %t/tensor.tsl
// RUN: tressel inspect %t/tensor.tsl | FileCheck %s --check-prefix=TENSOR
// RUN: env LD_LIBRARY_PATH=%build/standin TRESSEL_STANDIN="arch=100 order=random seed=3" tressel run %t/tensor.tsl --device cuda --random-inputs 1 --dim rows=200 --repeat 4 --expect out0=%t/host/out0.npy --rtol 1e-3 --atol 2 -q
// RUN: env LD_LIBRARY_PATH=%build/standin TRESSEL_STANDIN="arch=100 plant=map-swizzle" not tressel run %t/tensor.tsl --device cuda --random-inputs 1 --dim rows=200 --expect out0=%t/host/out0.npy --rtol 1e-3 --atol 2 -q
// RUN: env LD_LIBRARY_PATH=%build/standin TRESSEL_STANDIN="arch=100" not tressel run %t/one.tsl --device cuda --random-inputs 1 --dim rows=200 2>&1 | FileCheck %s --check-prefix=OTHER
// Their tiles are among those that are measured.
// RUN: env LD_LIBRARY_PATH=%build/standin TRESSEL_STANDIN="arch=90" tressel compile %s --device cuda --gpu sm_90a --tuning %t/h100.json --tune -o %t/tuned.tsl 2>&1 | FileCheck %s --check-prefix=TUNED
// RUN: sed -e 's/"cut": "[^"]*"/"cut": "tile w128"/' %t/h100.json > %t/wide.json
// RUN: tressel compile %s --device cuda --gpu sm_90a --tuning %t/wide.json --emit ptx | FileCheck %s --check-prefix=WIDE

// TUNED: h100.json: 2 kernels measured
// WIDE: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
// INSPECT: sm_90a: PTX {{.*}} 2 kernels
// TENSOR: sm_100a: PTX {{.*}} 2 kernels
// OTHER: the program has code for sm_90a (cards of compute capability 9.0 alone), but this card (stand-in card) is a sm_100: compile it for that too (--gpu sm_100)
func.func @main(%x: tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>, %w: tensor<512x512xf16>, %v: tensor<512x512xf16>, %b: tensor<512xf16>) -> tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>> {
  %0 = tressel.matmul %x, %w : (tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>, tensor<512x512xf16>) -> tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>
  %1 = tressel.add %0, %b : (tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>, tensor<512xf16>) -> tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>
  %2 = tressel.relu %1 : (tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>) -> tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>
  %3 = tressel.matmul %2, %v : (tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>, tensor<512x512xf16>) -> tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>
  %4 = tressel.add %3, %x : (tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>, tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>) -> tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>
  return %4 : tensor<?x512xf16, #tressel.dims<"rows[1..4096]", 512>>
}
