// result[b, m, n] = sum over k of left[b, m, k] * right[b, k, n] on sm_90a: a block per tile of the result. One thread
// has the card copy steps of both operands' depth to a ring in shared memory; warpgroups multiply them.
//
//   full[s]    the bytes of stage s are there           1 arrival, which says how many bytes
//   empty[s]   no warp reads stage s any more           1 arrival of each warp
//
// params: batch, m, n, k; then of left and of right, whether neighbours are along the rows, and whether there is one
// for each of the batch. buffers: left, right, and their tensor maps. Shared memory is asked for at the launch.
#include "codegen/cuda/device/Tile.h"
#include "codegen/cuda/device/Warpgroup.h"

namespace tressel::device {
namespace {

constexpr int kRowBytes = 128, kDepth = kRowBytes / 2, kStep = 16; // of the ring, of a stage, of an instruction

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

/// Stages of a step of 64 along the depth, for Groups warpgroups of 64 rows each.
template <class T_, int Groups_, int Columns_, int Stages_> struct WarpgroupTile {
  using T = T_;
  static constexpr int Groups = Groups_, BM = 64 * Groups, BN = Columns_, Stages = Stages_;
  static constexpr int kThreads = Groups * 4 * kWarp; ///< that multiply; a warp more copies
  static constexpr int kLeftBytes = BM * kRowBytes, kStageBytes = (BM + BN) * kRowBytes;
  static constexpr int kRow = BN + 4; ///< of the sums in shared memory
  static_assert(BM * kRow * 4 <= Stages * kStageBytes);
};

struct Operand {
  const void *map;
  bool transposed, batched;

  /// `rows` of it and 64 of the depth, to a place in the ring.
  template <int Rows>
  TRESSEL_INLINE void copy(TRESSEL_SHARED char *to, Mbarrier *barrier, int row, int depth, int batch) const {
    auto box = [&](TRESSEL_SHARED char *at, int x, int y) {
      if (batched)
        tressel_copy_3d(at, barrier, map, x, y, batch);
      else
        tressel_copy_2d(at, barrier, map, x, y);
    };
    if (!transposed)
      return box(to, depth, row);
#pragma unroll
    for (int i = 0; i < Rows / kDepth; ++i) // a row of the ring holds 64
      box(to + i * kDepth * kRowBytes, row + i * kDepth, depth);
  }
  /// Of rows from `row` on, a multiple of 64, and 16 of the depth.
  TRESSEL_INLINE uint64_t descriptor(const TRESSEL_SHARED char *stage, int row, int depth) const {
    return transposed ? descriptorOf(stage + row * kRowBytes + depth * kRowBytes, kDepth * kRowBytes)
                      : descriptorOf(stage + row * kRowBytes + depth * 2, 0);
  }
};

template <class Tile> TRESSEL_INLINE void product(void *const *context, void *const *buffers, const int64_t *p) {
  constexpr int Stages = Tile::Stages;
  const int64_t m = p[1], n = p[2];
  const Operand left{buffers[2], p[4] != 0, p[5] != 0}, right{buffers[3], p[6] != 0, p[7] != 0};
  const TileNumber tile = tileNumber(blockIndex(), ceilDiv(m, Tile::BM), ceilDiv(n, Tile::BN));
  const int64_t firstRow = tile.row * Tile::BM, firstColumn = tile.column * Tile::BN;
  const int steps = static_cast<int>(ceilDiv(p[3], kDepth));

  // Atoms begin at multiples of 1024 bytes, shared memory that is asked for perhaps not.
  const auto base = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(tressel_dynamic_shared));
  TRESSEL_SHARED char *ring = tressel_dynamic_shared + (-base & 1023);
  auto *full = reinterpret_cast<Mbarrier *>(ring + Stages * Tile::kStageBytes), *empty = full + Stages;
  if (threadIndex() == 0) {
#pragma unroll
    for (int s = 0; s < Stages; ++s) {
      tressel_mbarrier_init(full + s, 1);
      tressel_mbarrier_init(empty + s, Tile::kThreads / kWarp);
    }
    tressel_mbarrier_fence();
  }
  barrier();

  float sums[Tile::BN / 2];
  if (threadIndex() >= Tile::kThreads) {
    if (threadIndex() == Tile::kThreads)
#pragma clang loop unroll(disable)
      for (int step = 0; step < steps; ++step) {
        const int s = step % Stages;
        TRESSEL_SHARED char *stage = ring + s * Tile::kStageBytes;
        tressel_mbarrier_wait(empty + s, step / Stages % 2 ^ 1); // the first time round they are
        tressel_mbarrier_expect(full + s, Tile::kStageBytes);
        left.template copy<Tile::BM>(stage, full + s, static_cast<int>(firstRow), step * kDepth,
                                     static_cast<int>(tile.batch));
        right.template copy<Tile::BN>(stage + Tile::kLeftBytes, full + s, static_cast<int>(firstColumn), step * kDepth,
                                      static_cast<int>(tile.batch));
      }
  } else {
#pragma unroll
    for (int i = 0; i < Tile::BN / 2; ++i)
      sums[i] = 0;
    const int group = threadIndex() / (4 * kWarp);
#pragma clang loop unroll(disable)
    for (int step = 0; step < steps; ++step) {
      const int s = step % Stages;
      const TRESSEL_SHARED char *stage = ring + s * Tile::kStageBytes;
      tressel_mbarrier_wait(full + s, step / Stages % 2);
      tressel_wgmma_fence();
#pragma unroll
      for (int d = 0; d < kDepth; d += kStep)
        multiply<typename Tile::T, Tile::BN>(sums, left.descriptor(stage, group * 64, d),
                                             right.descriptor(stage + Tile::kLeftBytes, 0, d), left.transposed,
                                             right.transposed);
      tressel_wgmma_commit();
      tressel_wgmma_wait_1(); // the step before has ended
      if (step > 0 && threadIndex() % kWarp == 0)
        tressel_mbarrier_arrive(empty + (step - 1) % Stages);
    }
    waitForSums<Tile::BN>(sums);
  }
  barrier(); // the ring is read no more

  auto *staged = reinterpret_cast<TRESSEL_SHARED float *>(ring);
  if (threadIndex() < Tile::kThreads) {
    const int lane = threadIndex() % kWarp, warp = threadIndex() / kWarp;
#pragma unroll
    for (int i = 0; i < Tile::BN / 2; i += 2) {
      auto *to = staged + (warp * 16 + lane / 4 + i / 2 % 2 * 8) * Tile::kRow + i / 4 * 8 + lane % 4 * 2;
      to[0] = sums[i], to[1] = sums[i + 1];
    }
  }
  barrier();
  // All threads, the copying warp too, as neighbours write neighbours.
  constexpr int kAll = Tile::kThreads + kWarp;
#pragma clang loop unroll(disable)
  for (int i = threadIndex(); i < Tile::BM * Tile::BN; i += kAll) {
    const int64_t row = firstRow + i / Tile::BN, column = firstColumn + i % Tile::BN;
    if (row < m && column < n)
      tressel_epilogue(context, staged[i / Tile::BN * Tile::kRow + i % Tile::BN], (tile.batch * m + row) * n + column);
  }
}

} // namespace

#define TRESSEL_PRODUCT(name, ...)                                                                                     \
  TRESSEL_DEVICE(name) {                                                                                               \
    product<__VA_ARGS__>(context, buffers, params);                                                                    \
    (void)status;                                                                                                      \
  }
#define TRESSEL_PRODUCTS(type, T)                                                                                      \
  TRESSEL_PRODUCT(warpgroup_product_##type##_w256, WarpgroupTile<T, 2, 256, 4>)                                        \
  TRESSEL_PRODUCT(warpgroup_product_##type##_w128, WarpgroupTile<T, 2, 128, 3>)                                        \
  TRESSEL_PRODUCT(warpgroup_product_##type##_w64, WarpgroupTile<T, 1, 64, 4>)
TRESSEL_PRODUCTS(f16, Half)
TRESSEL_PRODUCTS(bf16, BFloat16)

} // namespace tressel::device
