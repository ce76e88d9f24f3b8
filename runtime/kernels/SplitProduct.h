// Products on the tile registers of CPUs that have them (AMX), which multiply bf16: each f32 is the sum of three bf16,
// exactly, and the six largest of the nine products of their parts are added up in f32. What is left out is below 2^-24
// of a product, so sums are as exact as those of f32's multiply-adds, at up to twice their speed. (Henry, Tang and
// Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations, 2019.) An f16
// is the sum of two bf16, whose four products are exact.
//
// Tiles know neither infinities that have parts nor numbers below 2^-126, so both sides tell how large their numbers
// are while they are split, and mayMultiply() says whether sums stay exact; where not, f32's own kernels are taken.
#pragma once

#include "Element.h"

#include <cstdint>

namespace tressel::kernels {

/// The largest magnitude among some numbers: its bits, which order as it does. Infinities and NaNs are larger than all.
using Magnitude = uint32_t;

/// A block of the left side: `rows` rows of `pieces` pieces of `run` numbers, found as ImplicitTile finds them; or, if
/// there are no starts, rows of one piece at equal distances.
struct SplitLeft {
  const float *const *starts;
  int64_t startStep, offset;
  int64_t rows, pieces, run;
  int parts; ///< of each number
  const float *first = nullptr;
  int64_t rowStep = 0;
};

/// c (+)= left * right, of one panel.
struct SplitProduct {
  const char *left, *right; ///< split
  int parts;                ///< of each number
  int64_t rows, depth, columns;
  float *c;
  int64_t cRow;
  bool add;                    ///< to what is there
  const char *ahead = nullptr; ///< fetched into L2 meanwhile
  int64_t aheadBytes = 0;
};

struct SplitKernels {
  Magnitude (*splitLeft)(const SplitLeft &, char *to);
  /// A panel: `depth` rows of `width` columns one behind the other, a whole number of 16.
  Magnitude (*splitRight)(const float *panel, int64_t depth, int64_t width, int parts, char *to);
  void (*multiply)(const SplitProduct &);
};

// What follows is local to each file: the levels must not share functions (Vector.h).

/// Rows and columns of a tile of sums; depth of the tiles that are multiplied.
constexpr int64_t kSplitTile = 16, kSplitDepth = 32;

/// Parts that hold a number of the type.
static constexpr int partsOf(Element element) { return element == Element::F32 ? 3 : element == Element::F16 ? 2 : 1; }
/// Bytes of a split side at most: three tiles of 1 KB for each tile of rows (or columns) and step of the depth.
static constexpr int64_t splitBytes(int64_t rows, int64_t depth) {
  return (rows + kSplitTile - 1) / kSplitTile * ((depth + kSplitDepth - 1) / kSplitDepth) * 3072;
}
/// Of the depth at a time, and rows of the left side, which stay in L2 with a panel of the right side.
constexpr int64_t kSplitDepthOfBlock = 512;
static constexpr int64_t splitRowsOf(int64_t depth) {
  const int64_t steps = (depth + kSplitDepth - 1) / kSplitDepth;
  return 256 / steps * kSplitTile;
}
/// Scratch memory: a block of the left side, a panel of up to 64 columns.
static constexpr int64_t splitScratchBytes(int64_t rows, int64_t depth) {
  depth = depth < kSplitDepthOfBlock ? depth : kSplitDepthOfBlock;
  return splitBytes(rows < splitRowsOf(depth) ? rows : splitRowsOf(depth), depth) + splitBytes(64, depth);
}
/// Sides with fewer rows, columns or products are not split.
constexpr int64_t kLeastSplitRows = 64, kLeastSplitColumns = 48, kLeastSplitDepth = 32;
/// Whether tiles save more than splitting costs, in nanoseconds as measured: 32 numbers take 5 (15 if they are put
/// together from short pieces, 10 if they are packed first), and tiles are 0.15 faster for each product with them.
static constexpr bool isWorthSplitting(int64_t rows, int64_t columns, bool shortPieces, bool packed) {
  return rows >= kLeastSplitRows && columns >= kLeastSplitColumns &&
         (shortPieces ? 15 : 5) * rows + (packed ? 5 : 10) * columns < rows * columns / 7;
}

/// Whether sums of products of such numbers are as exact as f32's. Parts are rounded, so the largest numbers could
/// become infinite; parts and products below 2^-126 count as 0, which must be little beside the largest product.
static constexpr bool mayMultiply(Magnitude left, Magnitude right) {
  constexpr Magnitude largest = 0x7f000000;
  constexpr int64_t exponent = 1 << 23, bias = 127, least = -90;
  if (left >= largest || right >= largest)
    return false;
  if (left == 0 || right == 0)
    return true;
  const int64_t l = left / exponent - bias, r = right / exponent - bias;
  return l >= least && r >= least && l + r >= least;
}

/// Share of the peak of f32's multiply-adds, as measured: of a product of so many rows and columns at a time.
static constexpr double splitShare(double rows, double columns, bool shortPieces, bool packed) {
  return 1 / (0.6 + (shortPieces ? 51 : 17) / columns + (packed ? 17 : 34) / rows);
}

} // namespace tressel::kernels
