// Instructions of sm_90a: mbarriers, copies of tensors by the card's own engine (TMA), products of warpgroups (wgmma).
// Defined when a kernel is linked (library/WarpgroupIntrinsics.cpp).
#pragma once

#include "codegen/cuda/device/Gpu.h"

namespace tressel::device {

typedef TRESSEL_SHARED uint64_t Mbarrier;

extern "C" {
/// Shared memory that the launch asks for.
extern TRESSEL_SHARED __attribute__((aligned(16))) char tressel_dynamic_shared[];

/// A phase of the barrier ends with so many arrivals and when the bytes that are expected are there.
void tressel_mbarrier_init(Mbarrier *barrier, int arrivals);
/// Before asynchronous copies use it.
void tressel_mbarrier_fence();
void tressel_mbarrier_arrive(Mbarrier *barrier);
/// Arrives; the phase waits for so many bytes besides.
void tressel_mbarrier_expect(Mbarrier *barrier, int bytes);
/// Until the phase of a parity has ended; the first has parity 0.
void tressel_mbarrier_wait(Mbarrier *barrier, int parity);

/// The box of a tensor map that begins at the coordinates; zeros where it leaves the tensor. One thread.
void tressel_copy_2d(TRESSEL_SHARED char *to, Mbarrier *barrier, const void *map, int x, int y);
void tressel_copy_3d(TRESSEL_SHARED char *to, Mbarrier *barrier, const void *map, int x, int y, int z);

/// Before the first product, and when the sums' registers were written.
void tressel_wgmma_fence();
void tressel_wgmma_commit();
/// All but the last group of products have ended; or all, and the sums are there.
void tressel_wgmma_wait_1();
void tressel_wgmma_wait_64(float *sums);
void tressel_wgmma_wait_128(float *sums);
void tressel_wgmma_wait_256(float *sums);
/// sums (64 x columns) += left (64 x 16) * right (16 x columns), whose descriptors these are; transposed: neighbours
/// are rows of the left one, columns of the right one, instead of being along the depth. PTX: wgmma.mma_async.m64nNk16.
#define TRESSEL_WGMMA(type, columns)                                                                                   \
  void tressel_wgmma_##type##_##columns(float *sums, uint64_t left, uint64_t right, int leftTransposed,                \
                                        int rightTransposed);
TRESSEL_WGMMA(f16, 64)
TRESSEL_WGMMA(f16, 128)
TRESSEL_WGMMA(f16, 256)
TRESSEL_WGMMA(bf16, 64)
TRESSEL_WGMMA(bf16, 128)
TRESSEL_WGMMA(bf16, 256)
}

/// Of a matrix in shared memory, whose rows of 128 bytes lie one behind the other with the swizzle of 128 bytes: 8 rows
/// are an atom of 1024 bytes. Along the depth the offset between atoms is that of 8 rows of the matrix; transposed it
/// is that of 8 of the depth, and `leading` that from 64 neighbours to the next 64. PTX ISA, "Matrix Descriptor
/// Format".
TRESSEL_INLINE uint64_t descriptorOf(const TRESSEL_SHARED char *start, int leading) {
  constexpr uint64_t kSwizzle128 = 1, kAtom = 1024;
  const auto at = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(start));
  return (at & 0x3ffff) >> 4 | static_cast<uint64_t>(leading >> 4) << 16 | (kAtom >> 4) << 32 | kSwizzle128 << 62;
}

} // namespace tressel::device
