// Products on the tile registers of CPUs that have them (AMX), which multiply bf16: each f32 is the sum of three bf16,
// exactly, and the six largest of the nine products of their parts are added up in f32. What is left out is below 2^-23
// of a product: sums are about as exact as those of f32's multiply-adds, at up to twice their speed. (Henry, Tang and
// Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations, 2019.) An f16
// is the sum of two bf16, whose four products are exact.
//
// Tiles know neither infinities that have parts nor numbers below 2^-126, so both sides tell how large their numbers
// are while they are split, and mayMultiply() says for each row whether its sums are like f32's; rows where they are
// not are multiplied as f32. So a row's result does not depend on the rows beside it.
#pragma once

#include "Element.h"

#include <cstdint>

namespace tressel::kernels {

/// The largest magnitude among some numbers, NaNs aside: its bits, which order as it does.
using Magnitude = uint32_t;
/// Of the columns of a panel that hold more than zeros, the smallest and the largest one.
struct Magnitudes {
  Magnitude least = ~Magnitude(0), most = 0;
};

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

/// A panel of the right side: `depth` rows of `width` columns one behind the other, 16, 32, 48 or 64.
struct SplitRight {
  const float *panel;
  int64_t depth, width;
  int parts; ///< of each number
};

/// c (+)= left * right, of one panel.
struct SplitProduct {
  const SplitLeft &left;
  const SplitRight &right;
  const char *splitLeft, *splitRight; ///< the same, split
  Magnitudes magnitudes;              ///< of the right side
  int64_t columns;
  float *c;
  int64_t cRow;
  bool add;                    ///< to what is there
  const char *ahead = nullptr; ///< fetched into L2 meanwhile
  int64_t aheadBytes = 0;
};

struct SplitKernels {
  void (*splitLeft)(const SplitLeft &, char *to); ///< splitLeftBytes(); begins with the magnitudes of the rows
  Magnitudes (*splitRight)(const SplitRight &, char *to);
  /// Rows of which the tiles' sums would be less exact than f32's are multiplied as f32, each by itself.
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
static constexpr int64_t splitLeftBytes(int64_t rows, int64_t depth) {
  return (rows * 4 + 63) / 64 * 64 + splitBytes(rows, depth);
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
  return splitLeftBytes(rows < splitRowsOf(depth) ? rows : splitRowsOf(depth), depth) + splitBytes(64, depth);
}
/// Sides with fewer rows, columns or products are not split.
constexpr int64_t kLeastSplitRows = 64, kLeastSplitColumns = 48, kLeastSplitDepth = 32;
/// Whether tiles save more than splitting costs, in nanoseconds as measured: 32 numbers take 5 (15 if they are put
/// together from short pieces, 10 if they are packed first), and tiles are 0.15 faster for each product with them.
static constexpr bool isWorthSplitting(int64_t rows, int64_t columns, bool shortPieces, bool packed) {
  return rows >= kLeastSplitRows && columns >= kLeastSplitColumns &&
         (shortPieces ? 15 : 5) * rows + (packed ? 5 : 10) * columns < rows * columns / 7;
}

/// Whether sums of products of a row and of columns of such magnitudes are like f32's. Parts and products below 2^-126
/// count as 0, which must be little beside the largest product of each sum; no sum of parts, which are rounded, may
/// become infinite, whatever the depth.
static constexpr bool mayMultiply(Magnitude row, const Magnitudes &columns) {
  constexpr int64_t most = 90;
  auto exponent = [](Magnitude magnitude) { return static_cast<int64_t>(magnitude >> 23) - 127; };
  const int64_t l = exponent(row), least = exponent(columns.least), largest = exponent(columns.most);
  if (columns.most == 0 || row == 0)
    return (columns.most == 0 || largest <= most) && (row == 0 || l <= most);
  return l >= -most && l <= most && least >= -most && largest <= most && l + least >= -most && l + largest <= most;
}

/// Share of the peak of f32's multiply-adds, as measured: of a product of so many rows and columns at a time.
static constexpr double splitShare(double rows, double columns, bool shortPieces, bool packed) {
  return 1 / (0.6 + (shortPieces ? 51 : 17) / columns + (packed ? 17 : 34) / rows);
}

} // namespace tressel::kernels
