// f32 convolutions of 3 x 3 windows by Winograd's minimal filtering F(4 x 4, 3 x 3), per instruction-set level: a
// quarter of the multiplications, with errors of up to some 1e-4 of the largest result. Images and results have
// channels last. Source: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015 (points 0, 1, -1,
// 2, -2, infinity).
#pragma once

#include <cstdint>

namespace tressel::kernels {

/// Stride and dilation 1, one group; spatial sizes are height and width.
template <typename S> struct WinogradSizes { ///< Size, or int64_t for the numbers of a call
  int64_t inChannels = 1, outChannels = 1;
  S in[2] = {1, 1}, out[2] = {1, 1};
  int64_t pad[2] = {0, 0};
};
using WinogradShape = WinogradSizes<int64_t>;

/// Computes bands [first, last) of the result: a band is four rows of an image; the last band of each image may have
/// fewer.
struct WinogradCall {
  const WinogradShape &shape;
  const float *images, *packed; ///< all images; weights packed by the same level
  float *result;
  int64_t first, last;
  float *scratch; ///< winogradScratchFloats(), 64-byte aligned
};

struct WinogradKernels {
  /// Packs weights [outChannels][inChannels][3][3] to `to`, winogradPackedFloats() floats.
  void (*pack)(const WinogradShape &, const float *weights, float *to);
  void (*convolve)(const WinogradCall &);
};
extern const WinogradKernels winogradBaseline, winogradV3, winogradV4;

// The rest is local to each translation unit: levels must not share functions (Vector.h).

/// Rows and columns of the result that a tile computes, and of the image that it reads.
static constexpr int64_t kWinogradOut = 4, kWinogradIn = 6, kWinogradPoints = kWinogradIn * kWinogradIn;
/// Most columns of a panel of weights, and the multiple to which channels are rounded up: a whole number of vectors at
/// any level.
static constexpr int64_t kWinogradColumns = 64, kWinogradRound = 16;

static constexpr int64_t winogradRounded(int64_t channels) {
  return (channels + kWinogradRound - 1) / kWinogradRound * kWinogradRound;
}
static constexpr int64_t winogradPackedFloats(int64_t inChannels, int64_t outChannels) {
  return kWinogradPoints * inChannels * winogradRounded(outChannels);
}
/// Tiles processed together: both sides of their products take 1 MB, and weights are read once for all of them.
static constexpr int64_t winogradTilesAtOnce(int64_t inChannels) {
  const int64_t fits = (int64_t(1) << 18) / (kWinogradPoints * (winogradRounded(inChannels) + kWinogradColumns)) / 6 * 6;
  return fits < 6 ? 6 : fits > 48 ? 48 : fits;
}
static constexpr int64_t winogradScratchFloats(int64_t inChannels) {
  return kWinogradPoints * winogradTilesAtOnce(inChannels) * (winogradRounded(inChannels) + kWinogradColumns);
}
static constexpr int64_t winogradTilesOf(int64_t size) { return (size + kWinogradOut - 1) / kWinogradOut; }

} // namespace tressel::kernels
