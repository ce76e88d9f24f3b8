// A ring of stages in shared memory that one thread has the card fill with steps of both operands of a product, and
// what the sums become that were staged there in the end.
//
//   full[s]    the bytes of stage s are there           1 arrival, which says how many bytes
//   empty[s]   nothing reads stage s any more           as many arrivals as the ring is begun with
//
// params of such a product: batch, m, n, k; then of left and of right, whether neighbours are along the rows, and
// whether there is one for each of the batch; blocks that share a tile's depth. buffers: left, right, and their tensor
// maps. Shared memory is asked for at the launch.
#pragma once

#include "codegen/cuda/device/Async.h"
#include "codegen/cuda/device/Tile.h"

namespace tressel::device {

inline constexpr int kRowBytes = 128, kDepth = kRowBytes / 2, kStep = 16; // of the ring, of a stage, of an instruction

/// Of a matrix in shared memory, whose rows of 128 bytes lie one behind the other with the swizzle of 128 bytes: 8 rows
/// are an atom of 1024 bytes. Along the depth the stride between atoms is that of 8 rows of the matrix; transposed it
/// is that of 8 of the depth, and `leading` that from 64 neighbours to the next 64. PTX ISA, "Matrix Descriptor Format"
/// for wgmma, "Shared memory descriptor" for tcgen05: `more` is what the two differ in.
TRESSEL_INLINE uint64_t descriptorOf(const TRESSEL_SHARED char *start, int leading, uint64_t more) {
  constexpr uint64_t kAtom = 1024;
  const auto at = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(start));
  return (at & 0x3ffff) >> 4 | static_cast<uint64_t>(leading >> 4) << 16 | (kAtom >> 4) << 32 | more;
}

/// One of the two as the card copies it.
struct CopiedOperand {
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
  TRESSEL_INLINE uint64_t descriptor(const TRESSEL_SHARED char *stage, int row, int depth, uint64_t more) const {
    return transposed ? descriptorOf(stage + row * kRowBytes + depth * kRowBytes, kDepth * kRowBytes, more)
                      : descriptorOf(stage + row * kRowBytes + depth * 2, 0, more);
  }
};

/// A block's tile of the result.
template <class Tile> struct RingProduct {
  CopiedOperand left, right;
  DepthShare share;
  TileNumber tile;
  int64_t m, n, firstRow, firstColumn;
  int firstStep, steps; ///< that the block has of the depth's
  TRESSEL_SHARED char *ring;
  Mbarrier *full, *empty;

  TRESSEL_INLINE RingProduct(void *const *buffers, const int64_t *p)
      : left{buffers[2], p[4] != 0, p[5] != 0}, right{buffers[3], p[6] != 0, p[7] != 0}, share(DepthShare::of(p[8])),
        tile(tileNumber(share.tile(), ceilDiv(p[1], Tile::BM), ceilDiv(p[2], Tile::BN))), m(p[1]), n(p[2]),
        firstRow(tile.row * Tile::BM), firstColumn(tile.column * Tile::BN),
        firstStep(static_cast<int>(share.begin(ceilDiv(p[3], kDepth)))),
        steps(static_cast<int>(share.end(ceilDiv(p[3], kDepth))) - firstStep) {
    // Atoms begin at multiples of 1024 bytes, shared memory that is asked for perhaps not.
    const auto base = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(tressel_dynamic_shared));
    ring = tressel_dynamic_shared + (-base & 1023);
    full = reinterpret_cast<Mbarrier *>(ring + Tile::Stages * Tile::kStageBytes), empty = full + Tile::Stages;
  }
  TRESSEL_INLINE static int stageOf(int step) { return step % Tile::Stages; }
  TRESSEL_INLINE static int parityOf(int step) { return step / Tile::Stages % 2; }
  TRESSEL_INLINE TRESSEL_SHARED char *at(int stage) const { return ring + stage * Tile::kStageBytes; }

  /// By one thread, before all meet.
  TRESSEL_INLINE void begin(int arrivals) const {
#pragma unroll
    for (int s = 0; s < Tile::Stages; ++s) {
      tressel_mbarrier_init(full + s, 1);
      tressel_mbarrier_init(empty + s, arrivals);
    }
    tressel_mbarrier_fence();
  }
  /// By one thread: all of the block's steps.
  TRESSEL_INLINE void fill() const {
#pragma clang loop unroll(disable)
    for (int step = 0; step < steps; ++step) {
      const int s = stageOf(step), batch = static_cast<int>(tile.batch), depth = (firstStep + step) * kDepth;
      TRESSEL_SHARED char *stage = at(s);
      tressel_mbarrier_wait(empty + s, parityOf(step) ^ 1); // the first time round they are
      tressel_mbarrier_expect(full + s, Tile::kStageBytes);
      left.template copy<Tile::BM>(stage, full + s, static_cast<int>(firstRow), depth, batch);
      right.template copy<Tile::BN>(stage + Tile::kLeftBytes, full + s, static_cast<int>(firstColumn), depth, batch);
    }
  }
  /// Where the sums of a row are put once the ring is read no more.
  TRESSEL_INLINE TRESSEL_SHARED float *staged(int row) const {
    return reinterpret_cast<TRESSEL_SHARED float *>(ring) + row * Tile::kRow;
  }
  /// By all `threads`, when the sums are staged: neighbours write neighbours.
  TRESSEL_INLINE void finish(void *const *context, int threads) const {
    share.meet();
#pragma clang loop unroll(disable)
    for (int i = threadIndex() + share.rank * threads; i < Tile::BM * Tile::BN; i += share.parts * threads) {
      const int64_t row = firstRow + i / Tile::BN, column = firstColumn + i % Tile::BN;
      if (row < m && column < n)
        tressel_epilogue(context, share.total(staged(i / Tile::BN) + i % Tile::BN),
                         (tile.batch * m + row) * n + column);
    }
    share.leave();
  }
};

#define TRESSEL_RING_PRODUCT(name, ...)                                                                                \
  TRESSEL_DEVICE(name) {                                                                                               \
    product<__VA_ARGS__>(context, buffers, params);                                                                    \
    (void)status;                                                                                                      \
  }

/// The sizes of such a tile.
template <int BM_, int BN_, int Stages_> struct RingTile {
  static constexpr int BM = BM_, BN = BN_, Stages = Stages_;
  static constexpr int kLeftBytes = BM * kRowBytes, kStageBytes = (BM + BN) * kRowBytes;
  static constexpr int kRow = BN + 4; ///< of the sums in shared memory
  static_assert(BM * kRow * 4 <= Stages * kStageBytes);
};

} // namespace tressel::device
