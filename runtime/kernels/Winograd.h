// f32 convolutions of 3 x 3 windows by Winograd's minimal filtering F(4 x 4, 3 x 3), as one instruction-set level computes them: a quarter
// of the multiplications, and results that differ by up to some 1e-4 of the largest. Images and results have their channels last.
// Source: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015 (points 0, 1, -1, 2, -2, infinity).
#pragma once

#include <cstdint>

namespace tressel::kernels {

/// Stride and dilation 1, one group. Sizes of height and width.
template <typename S> struct WinogradSizes { ///< Size, or int64_t for the numbers of a call
  int64_t inChannels = 1, outChannels = 1;
  S in[2] = {1, 1}, out[2] = {1, 1};
  int64_t pad[2] = {0, 0};
};
using WinogradShape = WinogradSizes<int64_t>;

/// Bands [first, last) of the result: four rows of an image, the last band of each image fewer.
struct WinogradCall {
  const WinogradShape &shape;
  const float *images, *packed; ///< all images; weights packed by the same level
  float *result;
  int64_t first, last;
  float *scratch; ///< winogradScratchFloats(), 64-byte aligned
};

struct WinogradKernels {
  /// From [outChannels][inChannels][3][3]. `to` has winogradPackedFloats().
  void (*pack)(const WinogradShape &, const float *weights, float *to);
  void (*convolve)(const WinogradCall &);
};
extern const WinogradKernels winogradBaseline, winogradV3, winogradV4;

// What follows is local to each file: the levels must not share functions (Vector.h).

/// Rows and columns of the result that a tile gives, and of the image that it takes.
static constexpr int64_t kWinogradOut = 4, kWinogradIn = 6, kWinogradPoints = kWinogradIn * kWinogradIn;
/// Columns of a panel of weights at most, and what channels are rounded up to: a whole number of any level's vectors.
static constexpr int64_t kWinogradColumns = 64, kWinogradRound = 16;

static constexpr int64_t winogradRounded(int64_t channels) {
  return (channels + kWinogradRound - 1) / kWinogradRound * kWinogradRound;
}
static constexpr int64_t winogradPackedFloats(int64_t inChannels, int64_t outChannels) {
  return kWinogradPoints * inChannels * winogradRounded(outChannels);
}
/// Tiles at once: both sides of their products take 1 MB, and weights are read once for all of them.
static constexpr int64_t winogradTilesAtOnce(int64_t inChannels) {
  const int64_t fits = (int64_t(1) << 18) / (kWinogradPoints * (winogradRounded(inChannels) + kWinogradColumns)) / 6 * 6;
  return fits < 6 ? 6 : fits > 48 ? 48 : fits;
}
static constexpr int64_t winogradScratchFloats(int64_t inChannels) {
  return kWinogradPoints * winogradTilesAtOnce(inChannels) * (winogradRounded(inChannels) + kWinogradColumns);
}
static constexpr int64_t winogradTilesOf(int64_t size) { return (size + kWinogradOut - 1) / kWinogradOut; }

} // namespace tressel::kernels
