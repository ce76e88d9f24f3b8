// result[b, m, n] = sum over k of left[b, m, k] * right[b, k, n] on sm_100a: a block per tile of the result, whose
// operands one thread copies to a ring (Ring.h); another one has the card multiply them, with sums in tensor memory,
// from where four warps take them in the end.
#include "codegen/cuda/device/Ring.h"

namespace tressel::device {
namespace {

// Of a descriptor: the constant that bits 46 to 48 are, and the swizzle of 128 bytes.
constexpr uint64_t kDescriptor = uint64_t(1) << 46 | uint64_t(2) << 61;
constexpr int kRows = 128, kTakers = kRows, kCopies = kTakers, kMultiplies = kTakers + kWarp,
              kThreads = kTakers + 2 * kWarp;

template <class T_, int Columns_, int Stages_> struct TensorTile : RingTile<kRows, Columns_, Stages_> { using T = T_; };

template <class Tile> TRESSEL_INLINE void product(void *const *context, void *const *buffers, const int64_t *p) {
  const RingProduct<Tile> r(buffers, p);
  Mbarrier *done = r.empty + Tile::Stages; // 1 arrival: the sums are there
  auto *place = reinterpret_cast<TRESSEL_SHARED uint32_t *>(done + 1);
  const int warp = threadIndex() / kWarp;
  if (threadIndex() == 0) {
    tressel_mbarrier_init(done, 1);
    r.begin(1);
  }
  if (warp == kMultiplies / kWarp) {
    tressel_tensor_allocate(place, Tile::BN);
    tressel_tensor_relinquish();
  }
  tressel_tensor_fence_before();
  barrier();
  tressel_tensor_fence_after();
  const uint32_t sums = *place;

  if (threadIndex() == kCopies) {
    r.fill();
  } else if (threadIndex() == kMultiplies) {
    // "Instruction descriptor" of kind f16: sums in f32, types, which operands are transposed, columns, rows.
    constexpr uint32_t kType = __is_same(typename Tile::T, BFloat16);
    const uint32_t form = 1u << 4 | kType << 7 | kType << 10 | static_cast<uint32_t>(r.left.transposed) << 15 |
                          static_cast<uint32_t>(r.right.transposed) << 16 | Tile::BN / 8u << 17 | kRows / 16u << 24;
#pragma clang loop unroll(disable)
    for (int step = 0; step < r.steps; ++step) {
      const int s = r.stageOf(step);
      const TRESSEL_SHARED char *stage = r.at(s);
      tressel_mbarrier_wait(r.full + s, r.parityOf(step));
      tressel_tensor_fence_after();
#pragma unroll
      for (int d = 0; d < kDepth; d += kStep)
        tressel_tensor_multiply(sums, r.left.descriptor(stage, 0, d, kDescriptor),
                                r.right.descriptor(stage + Tile::kLeftBytes, 0, d, kDescriptor), form,
                                step > 0 || d > 0);
      tressel_tensor_commit(r.empty + s); // when they have ended
    }
    tressel_tensor_commit(done);
  }

  if (threadIndex() < kTakers) {
    tressel_mbarrier_wait(done, 0);
    tressel_tensor_fence_after();
    // The ring is read no more: all products have ended.
    TRESSEL_SHARED float *to = r.staged(threadIndex());
#pragma clang loop unroll(disable)
    for (int column = 0; column < Tile::BN; column += 32) {
      float values[32];
      tressel_tensor_load(values, sums + (static_cast<uint32_t>(warp * kWarp) << 16) + static_cast<uint32_t>(column));
#pragma unroll
      for (int i = 0; i < 32; i += 4)
        *reinterpret_cast<TRESSEL_SHARED Float4 *>(to + column + i) =
            Float4{values[i], values[i + 1], values[i + 2], values[i + 3]};
    }
    tressel_tensor_fence_before();
  }
  barrier();
  if (warp == kMultiplies / kWarp) {
    tressel_tensor_fence_after();
    tressel_tensor_free(sums, Tile::BN);
  }
  r.finish(context, kThreads);
}

} // namespace

#define TRESSEL_PRODUCTS(type, T)                                                                                      \
  TRESSEL_RING_PRODUCT(tensor_product_##type##_t256, TensorTile<T, 256, 4>)                                            \
  TRESSEL_RING_PRODUCT(tensor_product_##type##_t128, TensorTile<T, 128, 3>)
TRESSEL_PRODUCTS(f16, Half)
TRESSEL_PRODUCTS(bf16, BFloat16)

} // namespace tressel::device
