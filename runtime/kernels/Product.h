// f32 matrix products as one instruction-set level computes them. Plain data and function pointers: every level is a
// translation unit with flags of its own, chosen at run time (Levels.h).
#pragma once

#include "Element.h"
#include "SplitProduct.h"

#include <cstdint>

namespace tressel::kernels {

/// The right side of a product, k x n, cut into panels of a few vectors of columns, each k rows one behind the other.
/// Panels are nearly equal in width; only the last vector of the last one may be padded, with zeros. Which widths they
/// have is the level's choice, so packed memory is for the process that wrote it.
struct RightSide {
  int64_t n = 1, k = 1;
  int64_t rows = 1; ///< that a product with it typically has: decides the panels' width
};

/// Whether the columns are so few that vectors of `lanes` along the depth do more than vectors across the columns, as
/// measured: the depth must be worth adding up the lanes at its end.
constexpr bool goesAlongDepth(const RightSide &right, int64_t lanes) {
  return right.n <= lanes * 3 / 2 && right.k >= 12 * right.n;
}

/// Floats that a packed side takes at most, whatever the level.
constexpr int64_t packedFloats(int64_t n, int64_t k) { return (n + 15) / 16 * 16 * k; }

/// c = a * b for `rows` rows and those panels that are part `part` of `parts` nearly equal ones. Strides in floats.
struct Product {
  int64_t rows = 1;
  RightSide right;
  const float *a = nullptr;
  int64_t aRow = 0, aDepth = 0;
  const float *b = nullptr; ///< as it stands; null: `packed` holds it
  int64_t bDepth = 0, bColumn = 0;
  const float *packed = nullptr;
  float *c = nullptr;
  int64_t cRow = 0; ///< columns are dense
  int64_t part = 0, parts = 1;
  /// Of the right side, only what begins it counts if these are not 0: the panels of so many columns, so many rows.
  /// What a panel holds behind these columns is computed too.
  int64_t columns = 0, depth = 0;
  float *scratch = nullptr;            ///< productScratchFloats(), 64-byte aligned
  const SplitKernels *split = nullptr; ///< null: without tiles
  int64_t unitRows = 0;         ///< what decides how sums are made, so that results do not depend on who computes how much
  char *splitScratch = nullptr; ///< splitScratchBytes(), 64-byte aligned
};

/// The same of operands and a result that are stored in 16 bits. Sums stay f32 until they are complete.
struct HalfProduct {
  Element element = Element::F16;
  int64_t rows = 1;
  RightSide right;
  const uint16_t *a = nullptr;
  int64_t aRow = 0, aDepth = 0;
  const uint16_t *b = nullptr; ///< as it stands; null: `packed` holds it
  int64_t bDepth = 0, bColumn = 0;
  const void *packed = nullptr; ///< of elements of `packedAs`
  Element packedAs = Element::F32;
  uint16_t *c = nullptr;
  int64_t cRow = 0;
  int64_t part = 0, parts = 1;
  float *scratch = nullptr;            ///< halfProductScratchFloats(), 64-byte aligned
  const SplitKernels *split = nullptr; ///< null: without tiles
  int64_t unitRows = 0;         ///< what decides how sums are made, so that results do not depend on who computes how much
  char *splitScratch = nullptr; ///< splitScratchBytes(), 64-byte aligned
};

/// Of a tile of rows and vectors of the result: c[r][...] (+)= sum over k of a[r * aRow + k] * b[k * bRow + ...].
struct Tile {
  const float *a;
  int64_t aRow;
  const float *b;
  int64_t bRow;
  int64_t depth;
  float *c;
  int64_t cRow;
  bool add;           ///< to what is there
  const float *ahead; ///< fetched meanwhile
  int64_t aheadLines; ///< cache lines of it per four steps of the depth
};
using TileFn = void (*)(const Tile &);

struct ProductKernels {
  /// All panels of b, whose strides are given, to `to`.
  void (*pack)(const RightSide &shape, const float *b, int64_t bDepth, int64_t bColumn, float *to);
  void (*multiply)(const Product &);
  /// Packed as f32, or as they are.
  void (*packHalves)(const RightSide &shape, Element element, const uint16_t *b, int64_t bDepth, int64_t bColumn,
                     Element packedAs, void *to);
  void (*multiplyHalves)(const HalfProduct &);
  /// What multiplies a tile of so many vectors and rows, for the other files of the level: the tiles are most of its
  /// code.
  TileFn (*tile)(int64_t vectors, int64_t rows);
};
extern const ProductKernels productBaseline, productV3, productV4;

/// Blocks of a product: rows of the left side and depth of both that stay in L2 while the other side passes.
constexpr int64_t kRowsOfBlock = 128, kDepthOfBlock = 1024, kMostColumnsOfPanel = 64;
/// Scratch memory of any level: a block of the left side if its depth is not dense, a panel of the right side if it is
/// not packed.
constexpr int64_t productScratchFloats(int64_t k, bool leftDense, bool packed) {
  return (k < kDepthOfBlock ? k : kDepthOfBlock) *
         ((leftDense ? 0 : kRowsOfBlock) + (packed ? 0 : kMostColumnsOfPanel));
}
/// Columns of sums that 16 bits wait for. Scratch memory of any level: a panel of the right side, sums, a block of the
/// left side.
constexpr int64_t kColumnsOfSums = 512;
constexpr int64_t halfProductScratchFloats(int64_t rows, int64_t k) {
  const int64_t depth = k < kDepthOfBlock ? k : kDepthOfBlock, height = rows < kRowsOfBlock ? rows : kRowsOfBlock;
  return depth * kMostColumnsOfPanel + height * (kColumnsOfSums + depth);
}

} // namespace tressel::kernels
