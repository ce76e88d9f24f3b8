// A tile of a matrix product by one block. Operands come through shared memory in steps of their depth; while one step
// is computed, the next one's elements are on their way in registers. Everything that depends on how an operand lies is
// in its `load`, so that products and convolutions share this code.
//
// Operands are symmetric: each gives elements (row, depth), where the rows of the right one are the result's columns.
#pragma once

#include "codegen/cuda/device/Gpu.h"

namespace tressel::device {

/// Element (r, d) is base[r * row + d * depth]; outside of [rows, depths] it is 0.
template <class T_> struct Strided {
  using T = T_;
  static constexpr int V = 16 / sizeof(T);
  const T *base;
  int64_t row, depth, rows, depths;
  bool alongDepth; ///< neighbours in memory, or else loaded by one thread, are along the depth, else along rows
  bool whole;      ///< V neighbours lie dense, aligned, and all inside or all outside

  /// Elements (r, d ..< d + V), or (r ..< r + V, d).
  TRESSEL_INLINE Pack<T, V> load(int64_t r, int64_t d) const {
    Pack<T, V> v = {};
    if (r >= rows || d >= depths)
      return v;
    const T *p = base + r * row + d * depth;
    if (whole)
      return *reinterpret_cast<const Pack<T, V> *>(p);
    const int64_t left = alongDepth ? depths - d : rows - r, step = alongDepth ? depth : row;
#pragma unroll
    for (int i = 0; i < V; ++i)
      if (i < left)
        v.e[i] = p[i * step];
    return v;
  }
};

/// By multiply-adds in f32. A warp computes 4 x 8 threads' elements, a thread TM x TN of them in groups of 4 x 4. SK
/// groups of warps share the depth.
template <int BM_, int BN_, int BK_, int TM, int TN, int SK_> struct FmaTile {
  using T = float;
  static constexpr int BM = BM_, BN = BN_, BK = BK_, SK = SK_, V = 4;
  static constexpr int WM = 4 * TM, WN = 8 * TN, kWarps = (BM / WM) * (BN / WN), kThreads = kWarps * SK * kWarp;
  static constexpr int kLeftRow = BM + 4, kRightRow = BN + 4;
  static constexpr int kRightAt = BK * kLeftRow * 4, kBytes = BK * (kLeftRow + kRightRow) * 4;
  static constexpr int kBands = TM / 4, kUnroll = BK / SK < 16 ? BK / SK : 16;
  static_assert(TM % 4 == 0 && TN % 4 == 0 && BK % SK == 0);
  float sum[TM][TN];

  TRESSEL_INLINE void clear() {
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
      for (int j = 0; j < TN; ++j)
        sum[i][j] = 0;
  }
  template <bool Right>
  static TRESSEL_INLINE void store(TRESSEL_SHARED char *buffer, int r, int d, const Pack<float, V> &v,
                                   bool alongDepth) {
    constexpr int row = Right ? kRightRow : kLeftRow;
    auto *to = reinterpret_cast<TRESSEL_SHARED float *>(buffer + (Right ? kRightAt : 0)) + d * row + r;
    if (alongDepth)
#pragma unroll
      for (int i = 0; i < V; ++i)
        to[i * row] = v.e[i];
    else
      *reinterpret_cast<TRESSEL_SHARED Float4 *>(to) = Float4{v.e[0], v.e[1], v.e[2], v.e[3]};
  }
  TRESSEL_INLINE void compute(const TRESSEL_SHARED char *buffer, bool, bool) {
    const int lane = threadIndex() % kWarp, warp = threadIndex() / kWarp % kWarps,
              group = threadIndex() / kWarp / kWarps;
    const auto *left = reinterpret_cast<const TRESSEL_SHARED float *>(buffer) + warp / (BN / WN) * WM + lane / 8 * 4;
    const auto *right =
        reinterpret_cast<const TRESSEL_SHARED float *>(buffer + kRightAt) + warp % (BN / WN) * WN + lane % 8 * 4;
#pragma clang loop unroll_count(kUnroll) // of more, the assembler would keep too many operands at once
    for (int step = 0; step < BK / SK; ++step) {
      const int d = group * (BK / SK) + step;
      Float4 a[TM / 4], b[TN / 4];
#pragma unroll
      for (int i = 0; i < TM / 4; ++i)
        a[i] = *reinterpret_cast<const TRESSEL_SHARED Float4 *>(left + d * kLeftRow + i * 16);
#pragma unroll
      for (int j = 0; j < TN / 4; ++j)
        b[j] = *reinterpret_cast<const TRESSEL_SHARED Float4 *>(right + d * kRightRow + j * 32);
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j)
          sum[i][j] += a[i / 4][i % 4] * b[j / 4][j % 4];
    }
  }
  /// fn(row within the band's 16 of the warp, column of the tile, two neighbouring sums) for all of a band.
  template <class Fn> TRESSEL_INLINE void band(int b, Fn fn) const {
    const int lane = threadIndex() % kWarp, warp = threadIndex() / kWarp % kWarps;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < TN; j += 2)
        fn(lane / 8 * 4 + i, warp % (BN / WN) * WN + j / 4 * 32 + lane % 8 * 4 + j % 4, sum[b * 4 + i][j],
           sum[b * 4 + i][j + 1]);
  }
};

/// By the warps' matrix instructions: 16-bit floats, summed in f32. A warp computes WM x WN elements.
template <class T_, int BM_, int BN_, int BK_, int WM_, int WN_, int SK_> struct MmaTile {
  using T = T_;
  static constexpr int BM = BM_, BN = BN_, BK = BK_, WM = WM_, WN = WN_, SK = SK_, V = 8;
  static constexpr int kWarps = (BM / WM) * (BN / WN), kThreads = kWarps * SK * kWarp;
  // An operand lies as it came, [rows][BK] or [BK][rows], with 16 bytes more per row: the 8 rows of a matrix then are
  // in different banks.
  static constexpr int most(int a, int b) { return a > b ? a : b; }
  static constexpr int bytesOf(int rows) { return 2 * most(rows * (BK + 8), BK * (rows + 8)); }
  static constexpr int kRightAt = bytesOf(BM), kBytes = bytesOf(BM) + bytesOf(BN);
  static constexpr int MI = WM / 16, NI = WN / 8, kBands = MI;
  static_assert(BK % (16 * SK) == 0 && NI % 2 == 0);
  float sum[MI][NI][4];

  TRESSEL_INLINE void clear() {
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
      for (int j = 0; j < NI; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          sum[i][j][e] = 0;
  }
  template <bool Right>
  static TRESSEL_INLINE void store(TRESSEL_SHARED char *buffer, int r, int d, const Pack<T, V> &v, bool alongDepth) {
    constexpr int rows = Right ? BN : BM;
    const int at = alongDepth ? r * (BK + 8) + d : d * (rows + 8) + r;
    *reinterpret_cast<TRESSEL_SHARED Word4 *>(buffer + (Right ? kRightAt : 0) + at * 2) = __builtin_bit_cast(Word4, v);
  }
  /// 16 rows and 16 of the depth: four matrices, those of 8 rows one after the other, then the next 8 of the depth; for
  /// the right operand the other way round, as its registers want.
  template <bool Right>
  static TRESSEL_INLINE void matrices(uint32_t *r, const TRESSEL_SHARED char *buffer, int row, int d, bool alongDepth) {
    constexpr int rows = Right ? BN : BM;
    const int lane = threadIndex() % kWarp, matrix = lane / 8, line = lane % 8;
    const int rowHalf = (Right ? matrix / 2 : matrix % 2) * 8, depthHalf = (Right ? matrix % 2 : matrix / 2) * 8;
    if (alongDepth)
      tressel_ldmatrix(r, buffer + ((row + rowHalf + line) * (BK + 8) + d + depthHalf) * 2);
    else
      tressel_ldmatrix_trans(r, buffer + ((d + depthHalf + line) * (rows + 8) + row + rowHalf) * 2);
  }
  TRESSEL_INLINE void compute(const TRESSEL_SHARED char *buffer, bool leftAlongDepth, bool rightAlongDepth) {
    const int warp = threadIndex() / kWarp % kWarps, group = threadIndex() / kWarp / kWarps;
    const int row = warp / (BN / WN) * WM, column = warp % (BN / WN) * WN;
#pragma clang loop unroll(disable) // registers: so that two blocks fit on a multiprocessor
    for (int step = 0; step < BK / 16 / SK; ++step) {
      const int d = (group * (BK / 16 / SK) + step) * 16;
      uint32_t a[MI][4], b[NI / 2][4];
#pragma unroll
      for (int i = 0; i < MI; ++i)
        matrices<false>(a[i], buffer, row + i * 16, d, leftAlongDepth);
#pragma unroll
      for (int j = 0; j < NI / 2; ++j)
        matrices<true>(b[j], buffer + kRightAt, column + j * 16, d, rightAlongDepth);
#pragma unroll
      for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int j = 0; j < NI; ++j)
          if constexpr (__is_same(T, Half))
            tressel_mma_f16(sum[i][j], a[i], &b[j / 2][j % 2 * 2]);
          else
            tressel_mma_bf16(sum[i][j], a[i], &b[j / 2][j % 2 * 2]);
    }
  }
  template <class Fn> TRESSEL_INLINE void band(int b, Fn fn) const {
    const int lane = threadIndex() % kWarp, warp = threadIndex() / kWarp % kWarps;
#pragma unroll
    for (int j = 0; j < NI; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        fn(lane / 4 + half * 8, warp % (BN / WN) * WN + j * 8 + lane % 4 * 2, sum[b][j][half * 2],
           sum[b][j][half * 2 + 1]);
  }
};

constexpr int poolBytes(int tileBytes, int stageBytes) { return tileBytes > stageBytes ? tileBytes : stageBytes; }
/// Rows of the result are staged at once as they fit into static shared memory.
template <class Tile> inline constexpr int kStages = Tile::BM *(Tile::BN + 4) * 4 > (48 << 10) ? 2 : 1;
template <class Tile>
inline constexpr int kPoolBytes = poolBytes(2 * Tile::kBytes, Tile::BM / kStages<Tile> * (Tile::BN + 4) * 4);

/// What is on its way of one operand: `Rows` x Tile::BK elements, dealt to the threads.
template <class Tile, class Operand, int Rows, bool Right> struct Fetch {
  static constexpr int V = Tile::V, kPacks = Rows * Tile::BK / V,
                       kSlots = (kPacks + Tile::kThreads - 1) / Tile::kThreads;
  Pack<typename Tile::T, V> slot[kSlots];

  template <class Fn> TRESSEL_INLINE void each(bool alongDepth, Fn fn) {
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
      const int pack = threadIndex() + s * Tile::kThreads;
      if (kPacks % Tile::kThreads != 0 && pack >= kPacks)
        return;
      if (alongDepth)
        fn(slot[s], pack / (Tile::BK / V), pack % (Tile::BK / V) * V);
      else
        fn(slot[s], pack % (Rows / V) * V, pack / (Rows / V));
    }
  }
  TRESSEL_INLINE void load(const Operand &from, int64_t firstRow, int64_t firstDepth) {
    each(from.alongDepth, [&](auto &v, int r, int d) { v = from.load(firstRow + r, firstDepth + d); });
  }
  TRESSEL_INLINE void store(TRESSEL_SHARED char *buffer, bool alongDepth) {
    each(alongDepth, [&](auto &v, int r, int d) { Tile::template store<Right>(buffer, r, d, v, alongDepth); });
  }
};

/// The tile that begins at (firstRow, firstColumn), of whose depth the block has its share. Result: `rows`, `columns`,
/// and index(row, column).
template <class Tile, class Left, class Right, class Result>
TRESSEL_INLINE void multiplyTile(void *const *context, const Left &left, const Right &right, const Result &result,
                                 int64_t firstRow, int64_t firstColumn, int64_t depth, DepthShare share,
                                 TRESSEL_SHARED char *pool) {
  constexpr int kThreads = Tile::kThreads;
  Tile tile;
  tile.clear();
  Fetch<Tile, Left, Tile::BM, false> a;
  Fetch<Tile, Right, Tile::BN, true> b;
  const int64_t steps = ceilDiv(depth, Tile::BK), begin = share.begin(steps) * Tile::BK,
                end = share.end(steps) * Tile::BK;
  a.load(left, firstRow, begin);
  b.load(right, firstColumn, begin);
  a.store(pool, left.alongDepth);
  b.store(pool, right.alongDepth);
  barrier();
  int buffer = 0;
#pragma clang loop unroll(disable)
  for (int64_t next = begin + Tile::BK;; next += Tile::BK) {
    const bool more = next < end;
    if (more) {
      a.load(left, firstRow, next);
      b.load(right, firstColumn, next);
    }
    tile.compute(pool + buffer, left.alongDepth, right.alongDepth);
    if (!more)
      break;
    buffer = Tile::kBytes - buffer;
    a.store(pool + buffer, left.alongDepth);
    b.store(pool + buffer, right.alongDepth);
    barrier();
  }

  // The sums go through shared memory, so that the epilogue is in the code only a few times and neighbouring threads
  // write neighbouring elements.
  constexpr int kRow = Tile::BN + 4, kStageRows = Tile::BM / kStages<Tile>, kBands = Tile::kBands / kStages<Tile>;
  auto *staged = reinterpret_cast<TRESSEL_SHARED float *>(pool);
  const int warpRow = threadIndex() / kWarp % Tile::kWarps / (Tile::BN / Tile::WN);
  const int group = threadIndex() / kWarp / Tile::kWarps;
#pragma unroll
  for (int stage = 0; stage < kStages<Tile>; ++stage) {
#pragma unroll
    for (int g = 0; g < Tile::SK; ++g) {
      barrier();
      if (Tile::SK == 1 || group == g)
#pragma unroll
        for (int band = 0; band < kBands; ++band)
          tile.band(stage * kBands + band, [&](int row, int column, float x, float y) {
            auto *to = staged + ((warpRow * kBands + band) * 16 + row) * kRow + column;
            to[0] = g ? to[0] + x : x;
            to[1] = g ? to[1] + y : y;
          });
    }
    share.meet();
    static_assert(kThreads % Tile::BN == 0);
    constexpr int kAtOnce = kThreads / Tile::BN;
    const int c = threadIndex() % Tile::BN;
    if (firstColumn + c < result.columns)
      for (int r = threadIndex() / Tile::BN + share.rank * kAtOnce; r < kStageRows; r += share.parts * kAtOnce) {
        const int64_t row = firstRow + r / (kBands * 16) * Tile::WM + stage * kBands * 16 + r % (kBands * 16);
        if (row < result.rows)
          tressel_epilogue(context, share.total(staged + r * kRow + c), result.index(row, firstColumn + c));
      }
    share.leave();
  }
}

/// Which tile a block does: those that share rows or columns run at about the same time, so that these stay in the
/// cache.
struct TileNumber {
  int64_t batch, row, column;
};
TRESSEL_INLINE TileNumber tileNumber(int64_t block, int64_t tileRows, int64_t tileColumns) {
  constexpr int64_t kGroup = 8;
  const int64_t tiles = tileRows * tileColumns, tile = block % tiles;
  const int64_t group = tile / (kGroup * tileColumns), inGroup = tile % (kGroup * tileColumns);
  const int64_t rows = least(kGroup, tileRows - group * kGroup);
  return {block / tiles, group * kGroup + inGroup % rows, inGroup / rows};
}

} // namespace tressel::device
