// The innermost loop of products: a tile of R rows and C vectors of the result, kept in registers over the whole depth.
#pragma once

#include "Product.h"
#include "Vector.h"

namespace tressel::kernels {
namespace {

template <int R, int C>
[[gnu::always_inline]] inline void step(Vector (&sum)[R][C], const float *a, int64_t aRow, const float *b) {
  Vector right[C];
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c)
    right[c] = load(b + c * kLanes);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const Vector left = broadcast(a[r * aRow]);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c)
      sum[r][c] += left * right[c];
  }
}

/// Number of independent sums for a single row, enough to hide the latency of a multiply-add. Several rows always use
/// one sum each, so that results do not depend on how rows are divided into tiles.
constexpr int setsOf(int rows, int columns) { return rows > 1 ? 1 : columns >= 4 ? 2 : 4; }

/// Prefetches into L1 if the data is needed soon, else into L2.
template <int R, int C, bool Soon, int kSets = setsOf(R, C)> void multiplyTile(const Tile &t) {
  Vector sums[kSets][R][C] = {};
  auto &sum = sums[0];
  const float *a = t.a, *b = t.b;
  const char *ahead = reinterpret_cast<const char *>(t.ahead);
  const int64_t aRow = t.aRow, bRow = t.bRow, lines = t.aheadLines;
  int64_t k = t.depth;
  for (; k >= 4; k -= 4) {
    for (int64_t i = 0; i < lines; ++i, ahead += 64)
      __builtin_prefetch(ahead, 0, Soon ? 3 : 2);
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u)
      step<R, C>(sums[u % kSets], a + u, aRow, b + u * bRow);
    a += 4, b += 4 * bRow;
  }
  for (; k > 0; --k, ++a, b += bRow)
    step<R, C>(sum, a, aRow, b);
#pragma GCC unroll 4
  for (int set = 1; set < kSets; ++set)
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c)
        sum[r][c] += sums[set][r][c];
  float *to = t.c;
  const int64_t cRow = t.cRow;
  if (t.add) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c)
        store(to + r * cRow + c * kLanes, load(to + r * cRow + c * kLanes) + sum[r][c]);
  } else {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c)
        store(to + r * cRow + c * kLanes, sum[r][c]);
  }
}

/// Most rows of a tile with `columns` vectors: sums, one row of the right side and one value of the left side fit the
/// registers, and there are enough sums to hide the latency of a multiply-add.
constexpr int rowsOfTile(int columns) {
#if defined(__AVX512F__)
  constexpr int rows[] = {0, 14, 12, 8, 6};
#elif defined(__AVX2__)
  constexpr int rows[] = {0, 12, 6};
#else
  constexpr int rows[] = {0, 8, 4};
#endif
  return rows[columns];
}
constexpr int kMostRows = 14;
#if defined(__AVX512F__)
constexpr int kMostColumns = 4;
#else
constexpr int kMostColumns = 2;
#endif

/// Tiles of all sizes, by whether prefetched data is needed soon, by columns and rows.
struct Tiles {
  TileFn of[2][kMostColumns + 1][kMostRows + 1] = {};
  TileFn leftOver[kMostColumns + 1] = {}; ///< a single row, summed in the same order as the rows of larger tiles
  template <int C, int R> constexpr void fill() {
    of[0][C][R] = multiplyTile<R, C, false>;
    of[1][C][R] = multiplyTile<R, C, true>;
    if constexpr (R == 1)
      leftOver[C] = multiplyTile<1, C, false, 1>;
    if constexpr (R < rowsOfTile(C))
      fill<C, R + 1>();
    else if constexpr (C < kMostColumns)
      fill<C + 1, 1>();
  }
  constexpr Tiles() { fill<1, 1>(); }
};
constexpr Tiles kTiles;

} // namespace
} // namespace tressel::kernels
