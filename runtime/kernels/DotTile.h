// The innermost loop of products with too few columns to fill a vector, or with a right side that is dense along the
// depth: vectors are along the depth on both sides, and a tile of sums stays in registers until the end of the depth.
#pragma once

#include "PartialVector.h"

namespace tressel::kernels {
namespace {

/// Computes c[r][j] (+)= sum over k of a[r * aRow + k] * b[j * bColumn + k].
struct DotTile {
  const float *a;
  int64_t aRow;
  const float *b;
  int64_t bColumn;
  int64_t depth;
  float *c;
  int64_t cRow;
  bool add; ///< add to the values that are there
};

typedef float FourFloats __attribute__((vector_size(16)));

/// Sums up the lanes of each of four vectors.
#if defined(__AVX512F__)
[[gnu::always_inline]] inline FourFloats addLanes(Vector a, Vector b, Vector c, Vector d) {
  const __m512 ab = _mm512_unpacklo_ps(a, b) + _mm512_unpackhi_ps(a, b),
               cd = _mm512_unpacklo_ps(c, d) + _mm512_unpackhi_ps(c, d);
  const __m512 all = _mm512_shuffle_ps(ab, cd, 0x44) + _mm512_shuffle_ps(ab, cd, 0xee);
  const __m256 half = _mm512_castps512_ps256(all) + _mm512_extractf32x8_ps(all, 1);
  return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
}
#elif defined(__AVX2__)
[[gnu::always_inline]] inline FourFloats addLanes(Vector a, Vector b, Vector c, Vector d) {
  const __m256 ab = _mm256_unpacklo_ps(a, b) + _mm256_unpackhi_ps(a, b),
               cd = _mm256_unpacklo_ps(c, d) + _mm256_unpackhi_ps(c, d);
  const __m256 all = _mm256_shuffle_ps(ab, cd, 0x44) + _mm256_shuffle_ps(ab, cd, 0xee);
  return _mm256_castps256_ps128(all) + _mm256_extractf128_ps(all, 1);
}
#else
[[gnu::always_inline]] inline FourFloats addLanes(Vector a, Vector b, Vector c, Vector d) {
  FourFloats sums;
  const Vector all[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    sums[i] = (all[i][0] + all[i][2]) + (all[i][1] + all[i][3]);
  return sums;
}
#endif

constexpr int kMostDotColumns = 4, kMostDotRows = kRegisters == 32 ? 6 : 2;

template <int R, int C> void multiplyDots(const DotTile &t) {
  // Independent sums, enough to hide the latency of a multiply-add; the same number for all heights above two rows.
  constexpr int kSets = C > 2 && R > 2 ? 1 : 2;
  Vector sum[kSets][R][C] = {};
  const float *a = t.a, *b = t.b;
  const int64_t aRow = t.aRow, bColumn = t.bColumn, depth = t.depth;
  auto step = [&](int set, auto loadAt) __attribute__((always_inline)) {
    Vector right[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c)
      right[c] = loadAt(b + c * bColumn);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vector left = loadAt(a + r * aRow);
#pragma GCC unroll 8
      for (int c = 0; c < C; ++c)
        sum[set][r][c] += left * right[c];
    }
  };
  int64_t k = 0;
  for (; k + kSets * kLanes <= depth; k += kSets * kLanes)
#pragma GCC unroll 2
    for (int set = 0; set < kSets; ++set)
      step(
          set, [&](const float *from) __attribute__((always_inline)) { return load(from + k + set * kLanes); });
  for (; k < depth; k += kLanes) {
    const Lanes lanes = lanesBetween(0, depth - k);
    step(
        0, [&](const float *from) __attribute__((always_inline)) { return load(from + k, lanes); });
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    Vector all[4] = {};
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c)
      all[c] = kSets == 1 ? sum[0][r][c] : sum[0][r][c] + sum[kSets - 1][r][c];
    const FourFloats sums = addLanes(all[0], all[1], all[2], all[3]);
    float *to = t.c + r * t.cRow;
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c)
      to[c] = t.add ? to[c] + sums[c] : sums[c];
  }
}

using DotTileFn = void (*)(const DotTile &);

/// Tiles of all sizes, by rows and columns.
struct DotTiles {
  DotTileFn of[kMostDotRows + 1][kMostDotColumns + 1] = {};
  template <int R, int C> constexpr void fill() {
    of[R][C] = multiplyDots<R, C>;
    if constexpr (C < kMostDotColumns)
      fill<R, C + 1>();
    else if constexpr (R < kMostDotRows)
      fill<R + 1, 1>();
  }
  constexpr DotTiles() { fill<1, 1>(); }
};
constexpr DotTiles kDotTiles;

} // namespace
} // namespace tressel::kernels
