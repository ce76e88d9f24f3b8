// Instructions of single architectures: mbarriers, copies of tensors by the card's own engine (TMA), products of
// warpgroups (wgmma, sm_90a), products in tensor memory (tcgen05, sm_100a).
// Defined when a kernel is linked (library/AsyncIntrinsics.cpp).
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

/// So many columns of tensor memory, of 128 lanes of 32 bits each; where they begin is written to shared memory. With
/// the other two: a whole warp, and nothing is asked for after `relinquish`.
void tressel_tensor_allocate(TRESSEL_SHARED uint32_t *to, int columns);
void tressel_tensor_relinquish();
void tressel_tensor_free(uint32_t address, int columns);
/// Between what tensor memory is used for, and what orders threads: before they meet, and behind it.
void tressel_tensor_fence_before();
void tressel_tensor_fence_after();
/// Tensor memory (+)= left (128 x 16) * right (16 x columns), whose descriptors these are; `form`: "Instruction
/// descriptor". One thread. It is done when a barrier that was committed to behind it has ended its phase.
void tressel_tensor_multiply(uint32_t sums, uint64_t left, uint64_t right, uint32_t form, bool adds);
void tressel_tensor_commit(Mbarrier *barrier);
/// 32 columns of the warp's 32 lanes: each thread has a lane.
void tressel_tensor_load(float *values, uint32_t address);
}

} // namespace tressel::device
