// For sm_90a and sm_100a products of 16-bit floats are those of warpgroups, or in tensor memory, which a ring of copies feeds, where their operands suit tensor maps; what follows is part of the kernel.
// RUN: tressel compile %s --device cuda --gpu sm_90a --emit ptx | FileCheck %s
// RUN: tressel compile %s --device cuda --gpu sm_100a --emit ptx | FileCheck %s --check-prefix=TENSOR
// RUN: tressel compile %s --device cuda --gpu sm_90 --emit ptx | FileCheck %s --check-prefix=PLAIN
// RUN: sed -e 's/512/508/g' %s > %t.narrow.mlir
// RUN: tressel compile %t.narrow.mlir --device cuda --gpu sm_90a --emit ptx | FileCheck %s --check-prefix=NARROW
// The emulator has none of these instructions.
// RUN: not tressel run %s --device sim:h100 --gpu sm_90a --random-inputs 1 2>&1 | FileCheck %s --check-prefix=EMULATE

// CHECK: .target sm_90a
// CHECK: .extern .shared .align 16 .b8 matmul_add_relu_0_tressel_dynamic_shared[]
// CHECK: .entry matmul_add_relu_0
// CHECK: .param .align 64 .b8 {{.*}}[128]
// CHECK: .maxntid 160
// CHECK: mbarrier.init.shared.b64
// CHECK: fence.mbarrier_init.release.cluster
// CHECK: mbarrier.try_wait.parity.shared.b64
// CHECK: mbarrier.arrive.expect_tx.shared.b64
// CHECK: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// CHECK: wgmma.fence.sync.aligned
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, adds, 1, 1, 0, 1;
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK-NOT: .entry
// TENSOR: .target sm_100a
// TENSOR: tcgen05.alloc.cta_group::1.sync.aligned
// TENSOR-DAG: cp.async.bulk.tensor.2d
// TENSOR-DAG: tcgen05.mma.cta_group::1.kind::f16
// TENSOR-DAG: tcgen05.commit.cta_group::1.mbarrier::arrive::one
// TENSOR: tcgen05.ld.sync.aligned.32x32b.x32.b32
// TENSOR-NEXT: tcgen05.wait::ld.sync.aligned
// TENSOR: tcgen05.dealloc
// PLAIN: .target sm_90
// PLAIN-NOT: wgmma
// PLAIN: mma.sync.aligned.m16n8k16
// NARROW: .target sm_90a
// NARROW-NOT: wgmma
// NARROW: mma.sync.aligned.m16n8k16
// EMULATE: error: kernel 'matmul_add_relu_0' has instructions of sm_90a alone (wgmma, tcgen05, TMA), which are not emulated
// EMULATE-SAME: emulate the kernels for sm_90 (--gpu sm_90)
func.func @main(%x: tensor<384x512xbf16>, %w: tensor<512x512xbf16>, %b: tensor<512xbf16>) -> tensor<384x512xbf16> {
  %0 = tressel.matmul %x, %w : (tensor<384x512xbf16>, tensor<512x512xbf16>) -> tensor<384x512xbf16>
  %1 = tressel.add %0, %b : (tensor<384x512xbf16>, tensor<512xbf16>) -> tensor<384x512xbf16>
  %2 = tressel.relu %1 : (tensor<384x512xbf16>) -> tensor<384x512xbf16>
  return %2 : tensor<384x512xbf16>
}
