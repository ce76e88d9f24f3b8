// Products of 16-bit floats use the matrix instructions of warps, those of f32 multiply-adds; what follows is part of the kernel.
// RUN: sed -e 's/TYPE/bf16/g' %s > %t.bf16.mlir
// RUN: tressel compile %t.bf16.mlir --device cuda --gpu sm_90 --emit ptx | FileCheck %s --check-prefix=BF16
// RUN: sed -e 's/TYPE/f16/g' %s > %t.f16.mlir
// RUN: tressel compile %t.f16.mlir --device cuda --gpu sm_80 --emit ptx | FileCheck %s --check-prefix=F16
// RUN: sed -e 's/TYPE/f32/g' %s > %t.f32.mlir
// RUN: tressel compile %t.f32.mlir --device cuda --gpu sm_90 --emit ptx | FileCheck %s --check-prefix=F32

// BF16: .entry matmul_add_relu_0
// BF16: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// BF16-NOT: .entry
// F16: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// F32: .entry matmul_add_relu_0
// F32-NOT: mma.sync
// F32: fma.rn.ftz.f32
// F32-NOT: .entry
func.func @main(%x: tensor<512x1024xTYPE>, %w: tensor<1024x512xTYPE>, %b: tensor<512xTYPE>) -> tensor<512x512xTYPE> {
  %0 = tressel.matmul %x, %w : (tensor<512x1024xTYPE>, tensor<1024x512xTYPE>) -> tensor<512x512xTYPE>
  %1 = tressel.add %0, %b : (tensor<512x512xTYPE>, tensor<512xTYPE>) -> tensor<512x512xTYPE>
  %2 = tressel.relu %1 : (tensor<512x512xTYPE>) -> tensor<512x512xTYPE>
  return %2 : tensor<512x512xTYPE>
}
