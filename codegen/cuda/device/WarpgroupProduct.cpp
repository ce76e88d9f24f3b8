// result[b, m, n] = sum over k of left[b, m, k] * right[b, k, n] on sm_90a: a block, or a cluster of them, per tile of
// the result, whose operands a warp copies to a ring (Ring.h); warpgroups multiply them.
#include "codegen/cuda/device/Ring.h"

namespace tressel::device {
namespace {

constexpr uint64_t kSwizzle128 = uint64_t(1) << 62; // of a descriptor

template <class T, int Columns>
TRESSEL_INLINE void multiply(float *sums, uint64_t a, uint64_t b, bool left, bool right) {
#define TRESSEL_CASE(type, columns)                                                                                    \
  if constexpr (__is_same(T, type) && Columns == columns)                                                              \
    return __is_same(T, Half) ? tressel_wgmma_f16_##columns(sums, a, b, left, right)                                   \
                              : tressel_wgmma_bf16_##columns(sums, a, b, left, right);
  TRESSEL_CASE(Half, 64)
  TRESSEL_CASE(Half, 128)
  TRESSEL_CASE(Half, 256)
  TRESSEL_CASE(BFloat16, 64)
  TRESSEL_CASE(BFloat16, 128)
  TRESSEL_CASE(BFloat16, 256)
#undef TRESSEL_CASE
}
template <int Columns> TRESSEL_INLINE void waitForSums(float *sums) {
  if constexpr (Columns == 64)
    tressel_wgmma_wait_64(sums);
  else if constexpr (Columns == 128)
    tressel_wgmma_wait_128(sums);
  else
    tressel_wgmma_wait_256(sums);
}

/// Groups warpgroups of 64 rows each.
template <class T_, int Groups_, int Columns_, int Stages_>
struct WarpgroupTile : RingTile<64 * Groups_, Columns_, Stages_> {
  using T = T_;
  static constexpr int kThreads = Groups_ * 4 * kWarp; ///< that multiply; a warp more copies
};

template <class Tile> TRESSEL_INLINE void product(void *const *context, void *const *buffers, const int64_t *p) {
  const RingProduct<Tile> r(buffers, p);
  if (threadIndex() == 0)
    r.begin(Tile::kThreads / kWarp);
  barrier();

  float sums[Tile::BN / 2];
  if (threadIndex() >= Tile::kThreads) {
    if (threadIndex() == Tile::kThreads)
      r.fill();
  } else {
#pragma unroll
    for (int i = 0; i < Tile::BN / 2; ++i)
      sums[i] = 0;
    const int group = threadIndex() / (4 * kWarp);
#pragma clang loop unroll(disable)
    for (int step = 0; step < r.steps; ++step) {
      const int s = r.stageOf(step);
      const TRESSEL_SHARED char *stage = r.at(s);
      tressel_mbarrier_wait(r.full + s, r.parityOf(step));
      tressel_wgmma_fence();
#pragma unroll
      for (int d = 0; d < kDepth; d += kStep)
        multiply<typename Tile::T, Tile::BN>(sums, r.left.descriptor(stage, group * 64, d, kSwizzle128),
                                             r.right.descriptor(stage + Tile::kLeftBytes, 0, d, kSwizzle128),
                                             r.left.transposed, r.right.transposed);
      tressel_wgmma_commit();
      tressel_wgmma_wait_1(); // the step before has ended
      if (step > 0 && threadIndex() % kWarp == 0)
        tressel_mbarrier_arrive(r.empty + r.stageOf(step - 1));
    }
    waitForSums<Tile::BN>(sums);
  }
  barrier(); // the ring is read no more

  if (threadIndex() < Tile::kThreads) {
    const int lane = threadIndex() % kWarp, warp = threadIndex() / kWarp;
#pragma unroll
    for (int i = 0; i < Tile::BN / 2; i += 2) {
      auto *to = r.staged(warp * 16 + lane / 4 + i / 2 % 2 * 8) + i / 4 * 8 + lane % 4 * 2;
      to[0] = sums[i], to[1] = sums[i + 1];
    }
  }
  r.finish(context, Tile::kThreads + kWarp);
}

} // namespace

#define TRESSEL_PRODUCTS(type, T)                                                                                      \
  TRESSEL_RING_PRODUCT(warpgroup_product_##type##_w256, WarpgroupTile<T, 2, 256, 4>)                                   \
  TRESSEL_RING_PRODUCT(warpgroup_product_##type##_w128, WarpgroupTile<T, 2, 128, 3>)                                   \
  TRESSEL_RING_PRODUCT(warpgroup_product_##type##_w64, WarpgroupTile<T, 1, 64, 4>)
TRESSEL_PRODUCTS(f16, Half)
TRESSEL_PRODUCTS(bf16, BFloat16)

} // namespace tressel::device
