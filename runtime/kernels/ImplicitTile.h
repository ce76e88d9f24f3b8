// The innermost loop of convolutions of channels-last images: a tile of R pixels by C vectors of result channels, kept
// in registers over a block of the depth.
#pragma once

#include "PartialVector.h"

namespace tressel::kernels {
namespace {

/// The destination of a tile's sums.
struct Sums {
  float *c;
  int64_t cRow;
  Lanes last; ///< lanes of the last vector
  bool add;   ///< add to the values that are there
};
template <int R, int C> [[gnu::always_inline]] inline void fetchSums(const Sums &t) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c)
      __builtin_prefetch(t.c + r * t.cRow + c * kLanes, 1);
}
template <int R, int C> [[gnu::always_inline]] inline void storeSums(const Sums &t, const Vector (&sum)[R][C]) {
  const Lanes last = t.last;
  const bool add = t.add;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    float *to = t.c + r * t.cRow;
#pragma GCC unroll 4
    for (int c = 0; c < C - 1; ++c, to += kLanes)
      store(to, add ? load(to) + sum[r][c] : sum[r][c]);
    store(to, add ? load(to, last) + sum[r][C - 1] : sum[r][C - 1], last);
  }
}

struct ImplicitTile {
  const float *const *starts; ///< of the first piece, one per pixel; those of the next piece are startStep further on
  int64_t startStep;
  int64_t offset;      ///< from each start to the data to read
  int64_t pieces, run; ///< the depth: number of pieces, and products per piece
  const float *b;      ///< C vectors per product
  Sums sums;
  const char *ahead;  ///< prefetched
  int64_t aheadLines; ///< cache lines to prefetch per four products
};

template <int R, int C>
[[gnu::always_inline]] inline void multiplyStep(Vector (&sum)[R][C], const float *const (&a)[R], int64_t k,
                                                const float *b) {
  Vector right[C];
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c)
    right[c] = load(b + c * kLanes);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const Vector left = broadcast(a[r][k]);
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c)
      sum[r][c] += left * right[c];
  }
}

template <int R, int C> void multiplyImplicit(const ImplicitTile &t) {
  Vector sum[R][C] = {};
  const float *const *starts = t.starts, *b = t.b;
  const char *ahead = t.ahead;
  const int64_t run = t.run, lines = t.aheadLines;
  for (int64_t piece = t.pieces; piece > 0; --piece, starts += t.startStep) {
    const float *a[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
      a[r] = starts[r] + t.offset;
    int64_t k = 0;
    for (; k + 4 <= run; k += 4, b += 4 * C * kLanes) {
      for (int64_t i = 0; i < lines; ++i, ahead += 64)
        __builtin_prefetch(ahead);
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u)
        multiplyStep<R, C>(sum, a, k + u, b + u * C * kLanes);
    }
    for (; k < run; ++k, b += C * kLanes)
      multiplyStep<R, C>(sum, a, k, b);
  }
  storeSums<R, C>(t.sums, sum);
}

/// Largest tiles: vectors, and rows by vectors. Sums, a row of the right side and a value of the left side fit the
/// vector registers; a pointer per row fits the others.
#if defined(__AVX512F__)
constexpr int kMostTileVectors = 4, kRowsOfTile[] = {0, 10, 10, 8, 6};
#elif defined(__AVX2__)
constexpr int kMostTileVectors = 2, kRowsOfTile[] = {0, 10, 6};
#else
constexpr int kMostTileVectors = 2, kRowsOfTile[] = {0, 8, 4};
#endif
constexpr int kMostTileRows = 10;

/// A function per tile size, by vectors and rows, instantiated as Tile::function<R, C>().
template <typename Function> struct TilesOfAllSizes {
  Function of[kMostTileVectors + 1][kMostTileRows + 1] = {};
  template <typename Tile, int C, int R> constexpr void fill() {
    of[C][R] = Tile::template function<R, C>();
    if constexpr (R < kRowsOfTile[C])
      fill<Tile, C, R + 1>();
    else if constexpr (C < kMostTileVectors)
      fill<Tile, C + 1, 1>();
  }
  template <typename Tile> static constexpr TilesOfAllSizes make() {
    TilesOfAllSizes tiles;
    tiles.template fill<Tile, 1, 1>();
    return tiles;
  }
};

using ImplicitTileFn = void (*)(const ImplicitTile &);
struct ImplicitTileOf {
  template <int R, int C> static constexpr ImplicitTileFn function() { return multiplyImplicit<R, C>; }
};
constexpr auto kImplicitTiles = TilesOfAllSizes<ImplicitTileFn>::make<ImplicitTileOf>();

} // namespace
} // namespace tressel::kernels
