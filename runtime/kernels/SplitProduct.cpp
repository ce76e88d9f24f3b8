// Compiled for CPUs with AMX only, beside the kernels for AVX-512 (see SplitProduct.h); and a second time with emulated
// tiles, for tests (EmulatedTiles.cpp).
#include "SplitProduct.h"
#include "PartialVector.h"
#if !defined(TRESSEL_TILES)
#include "AmxTiles.h"
#define TRESSEL_TILES AmxTiles
#endif

namespace tressel::kernels {
namespace {

using Tiles = TRESSEL_TILES;

// --- Splitting -------------------------------------------------------------------------------------------------------

/// Rounds to the upper 16 bits, half away from 0. Only the upper bits of the result are valid.
[[gnu::always_inline]] inline __m512i rounded(__m512 x) {
  return _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
}
[[gnu::always_inline]] inline __m512i upper(__m512i bits) {
  return _mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xffff0000)));
}
[[gnu::always_inline]] inline __m512 rest(__m512 x, __m512i part) {
  return _mm512_sub_ps(x, _mm512_castsi512_ps(part));
}

/// Updates the largest magnitude. NaNs are ignored: tiles preserve them.
[[gnu::always_inline]] inline __m512 larger(__m512 largest, __m512 x) {
  constexpr int kMostMagnitude = 0b1011; // selects the larger magnitude, without a sign
  return _mm512_range_ps(largest, x, kMostMagnitude);
}
Magnitude magnitudeOf(__m512 largest) {
  return static_cast<Magnitude>(_mm512_reduce_max_epi32(_mm512_castps_si512(largest)));
}

/// Joins the upper halves of a and b: those of a, then those of b; or alternating.
struct Behind {
  static __m512i join(__m512i a, __m512i b) {
    alignas(64) static constexpr uint16_t odd[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                                     33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    return _mm512_permutex2var_epi16(a, _mm512_load_si512(odd), b);
  }
};
struct InTurn {
  static __m512i join(__m512i a, __m512i b) { return _mm512_or_si512(_mm512_srli_epi32(a, 16), upper(b)); }
};

/// Splits 32 numbers to a line in each of several tiles, which are 1 KB apart. The first part is rounded, so that the
/// omitted products have no common sign; the other parts are truncated.
template <typename Order, int Parts> [[gnu::always_inline]] inline void split(__m512 a, __m512 b, char *to) {
  const __m512i firstA = rounded(a), firstB = rounded(b);
  _mm512_store_si512(to, Order::join(firstA, firstB));
  if constexpr (Parts == 1)
    return;
  a = rest(a, upper(firstA)), b = rest(b, upper(firstB));
  const __m512i secondA = _mm512_castps_si512(a), secondB = _mm512_castps_si512(b);
  _mm512_store_si512(to + 1024, Order::join(secondA, secondB));
  if constexpr (Parts == 2)
    return;
  a = rest(a, upper(secondA)), b = rest(b, upper(secondB));
  _mm512_store_si512(to + 2048, Order::join(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}

/// Divides rows into tiles.
struct RowTiles {
  int64_t rows, count;
  explicit RowTiles(int64_t rows) : rows(rows), count(ceilDiv(rows, kSplitTile)) {}
  int64_t begin(int64_t tile) const { return part(rows, count, tile); }
  int64_t height(int64_t tile) const { return begin(tile + 1) - begin(tile); }
};

/// Splits `count` numbers of one row, from `from`, into the steps that begin at `to`.
template <int Parts>
[[gnu::always_inline]] inline __m512 splitRun(__m512 largest, const float *from, int64_t count, char *to) {
  int64_t k = 0;
  for (; k + kSplitDepth <= count; k += kSplitDepth, to += Parts * 1024) {
    const __m512 a = _mm512_loadu_ps(from + k), b = _mm512_loadu_ps(from + k + kLanes);
    largest = larger(larger(largest, a), b);
    split<Behind, Parts>(a, b, to);
  }
  if (k < count) {
    const __m512 a = __m512(load(from + k, lanesBetween(0, count - k))),
                 b = __m512(load(from + k + kLanes, lanesBetween(0, count - k - kLanes)));
    largest = larger(larger(largest, a), b);
    split<Behind, Parts>(a, b, to);
  }
  return largest;
}

template <int Parts> void splitLeftInto(const SplitLeft &l, char *to) {
  constexpr int64_t kStep = Parts * 1024;
  const RowTiles tiles(l.rows);
  const int64_t depth = l.pieces * l.run, steps = ceilDiv(depth, kSplitDepth);
  auto *magnitudes = reinterpret_cast<Magnitude *>(to);
  char *const tilesTo = to + splitLeftBytes(l.rows, 0);
  auto splitRow = [&](int64_t row, char *line) __attribute__((always_inline)) {
    const __m512 none = _mm512_setzero_ps();
    if (!l.starts)
      return splitRun<Parts>(none, l.first + row * l.rowStep, l.run, line);
    __m512 largest = none;
    const float *const *start = l.starts + row;
    if (l.pieces == 1 || l.run % kSplitDepth == 0) {
      for (int64_t piece = 0; piece < l.pieces; ++piece, start += l.startStep, line += l.run / kSplitDepth * kStep)
        largest = splitRun<Parts>(largest, *start + l.offset, l.run, line);
      return largest;
    }
    // Pieces end within a step of the depth, so the numbers of a step are first gathered in a buffer.
    alignas(64) float aside[2 * kSplitDepth + kLanes];
    int64_t held = 0;
    for (int64_t piece = 0; piece < l.pieces; ++piece, start += l.startStep)
      for (int64_t k = 0; k < l.run; k += kLanes) {
        const int64_t count = least(kLanes, l.run - k);
        store(aside + held, load(*start + l.offset + k, lanesBetween(0, count)));
        held += count;
        if (held < kSplitDepth)
          continue;
        largest = splitRun<Parts>(largest, aside, kSplitDepth, line), line += kStep;
        store(aside, load(aside + kSplitDepth)), held -= kSplitDepth;
      }
    return held > 0 ? splitRun<Parts>(largest, aside, held, line) : largest;
  };
  for (int64_t tile = 0; tile < tiles.count; ++tile)
    for (int64_t r = 0; r < tiles.height(tile); ++r)
      *magnitudes++ = magnitudeOf(splitRow(tiles.begin(tile) + r, tilesTo + tile * steps * kStep + r * 64));
}

void splitLeft(const SplitLeft &l, char *to) {
  (l.parts == 3 ? splitLeftInto<3> : l.parts == 2 ? splitLeftInto<2> : splitLeftInto<1>)(l, to);
}

template <int Parts> Magnitudes splitRightInto(const SplitRight &p, char *to) {
  const int64_t steps = ceilDiv(p.depth, kSplitDepth), width = p.width;
  __m512 ofColumns[4] = {};
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t column = 0; column < width; column += kSplitTile) {
      const float *from = p.panel + step * kSplitDepth * width + column;
      char *line = to + (column / kSplitTile * steps + step) * Parts * 1024;
      const int64_t count = least(kSplitDepth, p.depth - step * kSplitDepth);
      __m512 largest[2] = {ofColumns[column / kSplitTile], _mm512_setzero_ps()};
      auto splitRows = [&](__m512 a, __m512 b) __attribute__((always_inline)) {
        largest[0] = larger(largest[0], a), largest[1] = larger(largest[1], b);
        split<InTurn, Parts>(a, b, line);
        from += 2 * width, line += 64;
      };
      int64_t k = 0;
      for (; k + 2 <= count; k += 2)
        splitRows(_mm512_loadu_ps(from), _mm512_loadu_ps(from + width));
      for (; k < kSplitDepth; k += 2)
        splitRows(k < count ? _mm512_loadu_ps(from) : _mm512_setzero_ps(), _mm512_setzero_ps());
      ofColumns[column / kSplitTile] = larger(largest[0], largest[1]);
    }
  Magnitudes result;
  for (int64_t t = 0; t < width / kSplitTile; ++t) {
    const __m512i bits = _mm512_castps_si512(ofColumns[t]);
    const Magnitude smallest = _mm512_mask_reduce_min_epu32(_mm512_test_epi32_mask(bits, bits), bits);
    result.least = smallest < result.least ? smallest : result.least;
    const Magnitude largest = magnitudeOf(ofColumns[t]);
    result.most = largest > result.most ? largest : result.most;
  }
  return result;
}

Magnitudes splitRight(const SplitRight &p, char *to) {
  return (p.parts == 3 ? splitRightInto<3> : p.parts == 2 ? splitRightInto<2> : splitRightInto<1>)(p, to);
}

// --- Multiplying -----------------------------------------------------------------------------------------------------

/// Shapes of the eight tiles, as the CPU reads them: four of sums, two of the left side, two of the right side.
struct alignas(64) Shapes {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
void setShapes(int64_t upperRows, int64_t lowerRows) {
  Shapes shapes;
  shapes.rows[0] = shapes.rows[1] = shapes.rows[4] = static_cast<uint8_t>(upperRows);
  shapes.rows[2] = shapes.rows[3] = shapes.rows[5] = static_cast<uint8_t>(lowerRows);
  Tiles::configure(&shapes);
}

template <int Tile> [[gnu::always_inline]] inline void loadSums(float *c, int64_t cRow, bool add) {
  if (add)
    Tiles::load<Tile>(c, cRow * 4);
  else
    Tiles::zero<Tile>();
}

/// Prefetches per step, spread over its products of parts: many at once would occupy the fill buffers through which its
/// own tiles are loaded.
constexpr int64_t kFetches[] = {0, 1, 4, 6};

/// Sums of up to 2 x 2 tiles, from the smallest products of parts to the largest. Prefetches `lines` lines with each of
/// them.
template <int Parts, int Rows, int Columns>
[[gnu::always_inline]] inline void multiplyTiles(const char *left, const char *right, int64_t steps, const char *ahead,
                                                 int64_t lines) {
  constexpr int64_t kStep = Parts * 1024;
  const int64_t other = steps * kStep; // distance to the second tile of rows or columns
  auto loadLeft = [&](int part) __attribute__((always_inline)) {
    Tiles::load<4>(left + part * 1024, 64);
    if constexpr (Rows > 1)
      Tiles::load<5>(left + other + part * 1024, 64);
  };
  auto loadRight = [&](int part) __attribute__((always_inline)) {
    Tiles::load<6>(right + part * 1024, 64);
    if constexpr (Columns > 1)
      Tiles::load<7>(right + other + part * 1024, 64);
  };
  auto multiply = []() __attribute__((always_inline)) {
    Tiles::multiply<0, 4, 6>();
    if constexpr (Columns > 1)
      Tiles::multiply<1, 4, 7>();
    if constexpr (Rows > 1)
      Tiles::multiply<2, 5, 6>();
    if constexpr (Rows > 1 && Columns > 1)
      Tiles::multiply<3, 5, 7>();
  };
  auto fetch = [&]() __attribute__((always_inline)) {
    for (int64_t i = 0; i < lines; ++i, ahead += 64)
      __builtin_prefetch(ahead, 0, 2);
  };
  for (int64_t step = 0; step < steps; ++step, left += kStep, right += kStep) {
    if constexpr (Parts == 1) {
      loadLeft(0), loadRight(0), multiply(), fetch();
    } else if constexpr (Parts == 2) {
      loadLeft(1), loadRight(1), multiply(), fetch();
      loadRight(0), multiply(), fetch();
      loadLeft(0), multiply(), fetch();
      loadRight(1), multiply(), fetch();
    } else {
      loadLeft(2), loadRight(0), multiply(), fetch();
      loadLeft(1), multiply(), fetch();
      loadRight(1), multiply(), fetch();
      loadLeft(0), multiply(), fetch();
      loadRight(0), multiply(), fetch();
      loadRight(2), multiply(), fetch();
    }
  }
}

template <int Parts, int Rows, int Columns>
void multiplyBlock(const char *left, const char *right, int64_t steps, float *c, int64_t cRow, int64_t rows, bool add,
                   const char *ahead, int64_t lines) {
  float *const below = c + rows * cRow;
  loadSums<0>(c, cRow, add);
  if constexpr (Columns > 1)
    loadSums<1>(c + kSplitTile, cRow, add);
  if constexpr (Rows > 1)
    loadSums<2>(below, cRow, add);
  if constexpr (Rows > 1 && Columns > 1)
    loadSums<3>(below + kSplitTile, cRow, add);
  multiplyTiles<Parts, Rows, Columns>(left, right, steps, ahead, lines);
  Tiles::store<0>(c, cRow * 4);
  if constexpr (Columns > 1)
    Tiles::store<1>(c + kSplitTile, cRow * 4);
  if constexpr (Rows > 1)
    Tiles::store<2>(below, cRow * 4);
  if constexpr (Rows > 1 && Columns > 1)
    Tiles::store<3>(below + kSplitTile, cRow * 4);
}
using BlockFn = void (*)(const char *, const char *, int64_t, float *, int64_t, int64_t, bool, const char *, int64_t);
template <int Parts> struct Blocks {
  static constexpr BlockFn of[2][2] = {{multiplyBlock<Parts, 1, 1>, multiplyBlock<Parts, 1, 2>},
                                       {multiplyBlock<Parts, 2, 1>, multiplyBlock<Parts, 2, 2>}};
};
constexpr const BlockFn (*kBlocks[])[2] = {Blocks<1>::of, Blocks<2>::of, Blocks<3>::of};

/// Multiplies one row in f32.
[[gnu::noinline]] void multiplyRow(const SplitProduct &p, int64_t row) {
  const SplitLeft &l = p.left;
  const int64_t width = p.right.width, vectors = width / kLanes;
  Vector sums[4] = {};
  const float *b = p.right.panel;
  for (int64_t piece = 0; piece < l.pieces; ++piece) {
    const float *a = l.starts ? l.starts[piece * l.startStep + row] + l.offset : l.first + row * l.rowStep;
    for (int64_t k = 0; k < l.run; ++k, b += width)
      for (int64_t v = 0; v < vectors; ++v)
        sums[v] += broadcast(a[k]) * load(b + v * kLanes);
  }
  float *c = p.c + row * p.cRow;
  for (int64_t v = 0; v < vectors; ++v, c += kLanes) {
    const Lanes lanes = lanesBetween(0, p.columns - v * kLanes);
    store(c, p.add ? load(c, lanes) + sums[v] : sums[v], lanes);
  }
}

void multiply(const SplitProduct &p) {
  const int64_t rows = p.left.rows, depth = p.right.depth;
  const int parts = p.right.parts;
  const RowTiles tiles(rows);
  const auto *magnitudes = reinterpret_cast<const Magnitude *>(p.splitLeft);
  const char *const splitTiles = p.splitLeft + splitLeftBytes(rows, 0);
  const int64_t fetches = kFetches[parts], steps = ceilDiv(depth, kSplitDepth),
                columnTiles = ceilDiv(p.columns, kSplitTile);
  const int64_t blocks = ceilDiv(tiles.count, 2) * ceilDiv(columnTiles, 2),
                lines = ceilDiv(p.aheadBytes, 64 * fetches * blocks * steps);
  const char *ahead = p.ahead;
  int64_t upperRows = 0, lowerRows = 0;
  for (int64_t tile = 0; tile < tiles.count; tile += 2) {
    const int64_t height = tiles.height(tile), lower = tile + 1 < tiles.count ? tiles.height(tile + 1) : 0;
    const int64_t begin = tiles.begin(tile), count = height + lower;
    uint32_t onTiles = 0; // one bit per row
    for (int64_t r = 0; r < count; ++r)
      onTiles |= uint32_t(mayMultiply(magnitudes[begin + r], p.magnitudes)) << r;
    const bool all = onTiles == (uint64_t(1) << count) - 1;
    if (height != upperRows || lower > lowerRows || (lower && lower != lowerRows))
      setShapes(upperRows = height, lowerRows = lower ? lower : kSplitTile);
    for (int64_t column = 0; onTiles && column < columnTiles; column += 2, ahead += lines * steps * fetches * 64) {
      const int64_t wide = least(2, columnTiles - column),
                    columns = least(wide * kSplitTile, p.columns - column * kSplitTile);
      const BlockFn block = kBlocks[parts - 1][lower > 0][wide - 1];
      const char *left = splitTiles + tile * steps * parts * 1024,
                 *right = p.splitRight + column * steps * parts * 1024;
      float *c = p.c + begin * p.cRow + column * kSplitTile;
      if (all && columns == wide * kSplitTile) {
        block(left, right, steps, c, p.cRow, height, p.add, ahead, lines);
        continue;
      }
      // Uses a buffer if columns are missing or some rows are not multiplied on tiles; loads the present values into it
      // first.
      alignas(64) float aside[4 * kSplitTile * kSplitTile];
      auto forAll = [&](auto fn) __attribute__((always_inline)) {
        for (int64_t r = 0; r < count; ++r)
          for (int64_t i = 0; i < columns; i += kLanes)
            fn(r, c + r * p.cRow + i, aside + r * 2 * kSplitTile + i, lanesBetween(0, columns - i));
      };
      if (p.add)
        forAll([](int64_t, float *there, float *here, Lanes lanes) { store(here, load(there, lanes)); });
      block(left, right, steps, aside, 2 * kSplitTile, height, p.add, ahead, lines);
      forAll([&](int64_t r, float *there, float *here, Lanes lanes) {
        if (onTiles >> r & 1)
          store(there, load(here), lanes);
      });
    }
    if (!all)
      for (int64_t r = 0; r < count; ++r)
        if (!(onTiles >> r & 1))
          multiplyRow(p, begin + r);
  }
  Tiles::release();
}

} // namespace

extern const SplitKernels TRESSEL_AT_LEVEL(splitKernels);
const SplitKernels TRESSEL_AT_LEVEL(splitKernels){splitLeft, splitRight, multiply};

} // namespace tressel::kernels
