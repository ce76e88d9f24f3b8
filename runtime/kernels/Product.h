// f32 matrix products as one instruction-set level computes them. Plain data and function pointers: every level is a
// translation unit with flags of its own, chosen at run time (Levels.h).
#pragma once

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
  /// Of the right side, only what begins it counts if these are not 0: the panels of so many columns, so many rows. What a
  /// panel holds behind these columns is computed too.
  int64_t columns = 0, depth = 0;
  float *scratch = nullptr; ///< productScratchFloats(), 64-byte aligned
};

struct ProductKernels {
  /// All panels of b, whose strides are given, to `to`.
  void (*pack)(const RightSide &shape, const float *b, int64_t bDepth, int64_t bColumn, float *to);
  void (*multiply)(const Product &);
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

} // namespace tressel::kernels
