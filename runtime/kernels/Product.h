// f32 matrix products, per instruction-set level. Plain data and function pointers only: each level is a translation
// unit with its own compiler flags, chosen at run time (Levels.h).
#pragma once

#include "Element.h"
#include "SplitProduct.h"

#include <cstdint>

namespace tressel::kernels {

/// The right side of a product, k x n, divided into panels of a few vectors of columns; a panel holds its k rows
/// consecutively. Panels have nearly equal widths; only the last vector of the last panel may be padded, with zeros.
/// The level chooses the widths, so packed memory is only valid in the process that wrote it.
struct RightSide {
  int64_t n = 1, k = 1;
  int64_t rows = 1; ///< expected rows of the left side, which determine the panels' width
};

/// Whether there are so few columns that vectors of `lanes` along the depth are faster than vectors across columns, as
/// measured: the depth must outweigh summing up the lanes at its end.
constexpr bool goesAlongDepth(const RightSide &right, int64_t lanes) {
  return right.n <= lanes * 3 / 2 && right.k >= 12 * right.n;
}

/// Upper bound of the floats of a packed right side, for any level.
constexpr int64_t packedFloats(int64_t n, int64_t k) { return (n + 15) / 16 * 16 * k; }

/// c = a * b for `rows` rows and the panels of part `part` of `parts` nearly equal parts. Strides are in floats.
struct Product {
  int64_t rows = 1;
  RightSide right;
  const float *a = nullptr;
  int64_t aRow = 0, aDepth = 0;
  const float *b = nullptr; ///< not packed; null: use `packed`
  int64_t bDepth = 0, bColumn = 0;
  const float *packed = nullptr;
  float *c = nullptr;
  int64_t cRow = 0; ///< columns are dense
  int64_t part = 0, parts = 1;
  /// If not 0, only the panels of the first `columns` columns and the first `depth` rows of the right side are used.
  /// Further columns of the last panel used are computed too.
  int64_t columns = 0, depth = 0;
  float *scratch = nullptr;            ///< productScratchFloats(), 64-byte aligned
  const SplitKernels *split = nullptr; ///< null: without tiles
  /// determines how sums are made, so that results do not depend on how work is divided among threads
  int64_t unitRows = 0;
  char *splitScratch = nullptr; ///< splitScratchBytes(), 64-byte aligned
};

/// The same with operands and result in 16 bits. Sums are f32 until they are complete.
struct HalfProduct {
  Element element = Element::F16;
  int64_t rows = 1;
  RightSide right;
  const uint16_t *a = nullptr;
  int64_t aRow = 0, aDepth = 0;
  const uint16_t *b = nullptr; ///< not packed; null: use `packed`
  int64_t bDepth = 0, bColumn = 0;
  const void *packed = nullptr; ///< of elements of `packedAs`
  Element packedAs = Element::F32;
  uint16_t *c = nullptr;
  int64_t cRow = 0;
  int64_t part = 0, parts = 1;
  float *scratch = nullptr;            ///< halfProductScratchFloats(), 64-byte aligned
  const SplitKernels *split = nullptr; ///< null: without tiles
  /// determines how sums are made, so that results do not depend on how work is divided among threads
  int64_t unitRows = 0;
  char *splitScratch = nullptr; ///< splitScratchBytes(), 64-byte aligned
};

/// Arguments of a tile of rows and vectors: c[r][...] (+)= sum over k of a[r * aRow + k] * b[k * bRow + ...].
struct Tile {
  const float *a;
  int64_t aRow;
  const float *b;
  int64_t bRow;
  int64_t depth;
  float *c;
  int64_t cRow;
  bool add;           ///< add to the values that are there
  const float *ahead; ///< prefetched
  int64_t aheadLines; ///< cache lines to prefetch per four steps of the depth
};
using TileFn = void (*)(const Tile &);

struct ProductKernels {
  /// Packs all panels of b, which has these strides, to `to`.
  void (*pack)(const RightSide &shape, const float *b, int64_t bDepth, int64_t bColumn, float *to);
  void (*multiply)(const Product &);
  /// Packs 16-bit elements, converted to f32 or unchanged.
  void (*packHalves)(const RightSide &shape, Element element, const uint16_t *b, int64_t bDepth, int64_t bColumn,
                     Element packedAs, void *to);
  void (*multiplyHalves)(const HalfProduct &);
  /// The function for a tile of this size, for other files of the level: tiles are most of the code, so they are
  /// shared.
  TileFn (*tile)(int64_t vectors, int64_t rows);
};
extern const ProductKernels productBaseline, productV3, productV4;

/// Block sizes: rows of the left side, and depth of both sides, that stay in L2 while the other side streams; most
/// columns of a panel.
constexpr int64_t kRowsOfBlock = 128, kDepthOfBlock = 1024, kMostColumnsOfPanel = 64;
/// Scratch memory of any level: a block of the left side if it is not dense along the depth, and a panel of the right
/// side if it is not packed.
constexpr int64_t productScratchFloats(int64_t k, bool leftDense, bool packed) {
  return (k < kDepthOfBlock ? k : kDepthOfBlock) *
         ((leftDense ? 0 : kRowsOfBlock) + (packed ? 0 : kMostColumnsOfPanel));
}
/// Columns whose f32 sums are in scratch memory for 16-bit results. Scratch memory of any level: a panel of the right
/// side, sums, and a block of the left side.
constexpr int64_t kColumnsOfSums = 512;
constexpr int64_t halfProductScratchFloats(int64_t rows, int64_t k) {
  const int64_t depth = k < kDepthOfBlock ? k : kDepthOfBlock, height = rows < kRowsOfBlock ? rows : kRowsOfBlock;
  return depth * kMostColumnsOfPanel + height * (kColumnsOfSums + depth);
}

} // namespace tressel::kernels
