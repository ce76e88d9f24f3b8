// Products on the tile registers of CPUs that have them (AMX), which multiply bf16. An f32 is exactly the sum of three
// bf16, and the six largest of the nine products of the parts of two numbers are added up in f32. The omitted ones are
// below 2^-23 of a product, so sums are about as exact as those of f32 multiply-adds, at up to twice the speed. (Henry,
// Tang and Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations, 2019.)
// An f16 is the sum of two bf16, whose four products are exact.
//
// Tiles cannot represent infinities split into parts, nor numbers below 2^-126. So splitting a side also computes the
// magnitudes of its numbers, and mayMultiply() decides for each row whether its sums are as exact as f32's; other rows
// are multiplied in f32. Thus a row's result does not depend on other rows.
#pragma once

#include "Element.h"

#include <cstdint>

namespace tressel::kernels {

/// The largest magnitude of some numbers, without NaNs, as its bits, which have the same order.
using Magnitude = uint32_t;
/// The least and the largest magnitude of a panel's columns, without columns of zeros.
struct Magnitudes {
  Magnitude least = ~Magnitude(0), most = 0;
};

/// A block of the left side: `rows` rows of `pieces` pieces of `run` numbers, at the pointers `starts` as in
/// ImplicitTile; or, if `starts` is null, rows of one piece at a constant distance.
struct SplitLeft {
  const float *const *starts;
  int64_t startStep, offset;
  int64_t rows, pieces, run;
  int parts; ///< parts of each number
  const float *first = nullptr;
  int64_t rowStep = 0;
};

/// A panel of the right side: `depth` consecutive rows of `width` columns: 16, 32, 48 or 64.
struct SplitRight {
  const float *panel;
  int64_t depth, width;
  int parts; ///< parts of each number
};

/// c (+)= left * right, for one panel.
struct SplitProduct {
  const SplitLeft &left;
  const SplitRight &right;
  const char *splitLeft, *splitRight; ///< the two sides, split
  Magnitudes magnitudes;              ///< of the right side
  int64_t columns;
  float *c;
  int64_t cRow;
  bool add;                    ///< add to the values that are there
  const char *ahead = nullptr; ///< prefetched into L2
  int64_t aheadBytes = 0;
};

struct SplitKernels {
  /// `to` has splitLeftBytes(), and begins with the magnitudes of the rows
  void (*splitLeft)(const SplitLeft &, char *to);
  Magnitudes (*splitRight)(const SplitRight &, char *to);
  /// Rows whose sums on tiles would be less exact than in f32 are multiplied in f32, one by one.
  void (*multiply)(const SplitProduct &);
};

// The rest is local to each translation unit: levels must not share functions (Vector.h).

/// Rows and columns of a tile of sums; depth of the tiles that are multiplied.
constexpr int64_t kSplitTile = 16, kSplitDepth = 32;

/// Number of bf16 parts of a number of the type.
static constexpr int partsOf(Element element) { return element == Element::F32 ? 3 : element == Element::F16 ? 2 : 1; }
/// Upper bound of the bytes of a split side: three tiles of 1 KB for each tile of rows (or columns) and step of the
/// depth.
static constexpr int64_t splitBytes(int64_t rows, int64_t depth) {
  return (rows + kSplitTile - 1) / kSplitTile * ((depth + kSplitDepth - 1) / kSplitDepth) * 3072;
}
static constexpr int64_t splitLeftBytes(int64_t rows, int64_t depth) {
  return (rows * 4 + 63) / 64 * 64 + splitBytes(rows, depth);
}
/// Depth of a block, and rows of the left side, that stay in L2 together with a panel of the right side.
constexpr int64_t kSplitDepthOfBlock = 512;
static constexpr int64_t splitRowsOf(int64_t depth) {
  const int64_t steps = (depth + kSplitDepth - 1) / kSplitDepth;
  return 256 / steps * kSplitTile;
}
/// Scratch memory: a block of the left side, a panel of up to 64 columns.
static constexpr int64_t splitScratchBytes(int64_t rows, int64_t depth) {
  depth = depth < kSplitDepthOfBlock ? depth : kSplitDepthOfBlock;
  return splitLeftBytes(rows < splitRowsOf(depth) ? rows : splitRowsOf(depth), depth) + splitBytes(64, depth);
}
/// Sides with fewer rows, columns or products are not split.
constexpr int64_t kLeastSplitRows = 64, kLeastSplitColumns = 48, kLeastSplitDepth = 32;
/// Whether tiles save more time than splitting takes, in nanoseconds as measured: splitting 32 numbers takes 5 (15 if
/// they are gathered from short pieces, 10 if they must be packed first), and tiles save 0.15 per product of these.
static constexpr bool isWorthSplitting(int64_t rows, int64_t columns, bool shortPieces, bool packed) {
  return rows >= kLeastSplitRows && columns >= kLeastSplitColumns &&
         (shortPieces ? 15 : 5) * rows + (packed ? 5 : 10) * columns < rows * columns / 7;
}

/// Whether sums of products of a row with columns of these magnitudes are as exact as f32's. Parts and products below
/// 2^-126 count as 0, which must be small relative to the largest product of each sum; and no sum of rounded parts may
/// become infinite, for any depth.
static constexpr bool mayMultiply(Magnitude row, const Magnitudes &columns) {
  constexpr int64_t most = 90;
  auto exponent = [](Magnitude magnitude) { return static_cast<int64_t>(magnitude >> 23) - 127; };
  const int64_t l = exponent(row), least = exponent(columns.least), largest = exponent(columns.most);
  if (columns.most == 0 || row == 0)
    return (columns.most == 0 || largest <= most) && (row == 0 || l <= most);
  return l >= -most && l <= most && least >= -most && largest <= most && l + least >= -most && l + largest <= most;
}

/// Speed relative to the peak of f32 multiply-adds, as measured, for a product of this many rows and columns at a time.
static constexpr double splitShare(double rows, double columns, bool shortPieces, bool packed) {
  return 1 / (0.6 + (shortPieces ? 51 : 17) / columns + (packed ? 17 : 34) / rows);
}

} // namespace tressel::kernels
