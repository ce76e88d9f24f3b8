// The innermost loop of convolutions: a tile of R channels by C vectors of pixels, kept in registers over a range of
// products.
#pragma once

#include "Convolution.h"
#include "PartialVector.h"

namespace tressel::kernels {
namespace {

/// Where the pixels of a product are read from: a panel with consecutive products; planes of the image, which are also
/// copied to a panel on the way; or offsets, one per product.
enum Source { FromPanel, FromPlanes, FromOffsets };

struct PixelTile {
  const float *weights;   ///< kChannelBlock per product
  const float *pixels;    ///< the first plane, or the base of the offsets
  float *panel;           ///< panel to read (FromPanel) or to write (FromPlanes)
  const int64_t *offsets; ///< for FromOffsets
  int64_t planeStep;
  int64_t depth;
  float *result;
  int64_t channelStep; ///< distance between channels of the result
  Lanes last;          ///< lanes of the last vector that are pixels
  bool add;            ///< add to the values that are there
  const char *ahead;   ///< prefetched into L2: every aheadStep bytes, once per product
  int64_t aheadStep;
};

template <int R, int C, Source S> void convolveTile(const PixelTile &t) {
  Vector sum[R][C] = {};
  const float *weights = t.weights, *pixels = t.pixels;
  float *panel = t.panel;
  const int64_t *offsets = t.offsets;
  const char *ahead = t.ahead;
  const int64_t aheadStep = t.aheadStep, planeStep = t.planeStep, channelStep = t.channelStep, depth = t.depth;
  float *const result = t.result;
  const Lanes last = t.last;
  const bool add = t.add;
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c)
      __builtin_prefetch(result + r * channelStep + c * kLanes, 1);
  for (int64_t k = 0; k < depth; ++k) {
    __builtin_prefetch(ahead, 0, 2);
    ahead += aheadStep;
    Vector x[C];
    if constexpr (S == FromPlanes) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c)
        x[c] = c < C - 1 ? load(pixels + c * kLanes) : load(pixels + c * kLanes, last);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) {
        store(panel + c * kLanes, x[c]);
        __builtin_prefetch(pixels + (C + c) * kLanes, 0, 2); // of the next tile
      }
      pixels += planeStep;
    } else {
      const float *from = S == FromPanel ? panel : pixels + offsets[k];
      if constexpr (S == FromPanel)
        for (int c = 0; c < C; ++c)
          __builtin_prefetch(panel + (8 * C + c) * kLanes);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c)
        x[c] = load(from + c * kLanes);
    }
    if constexpr (S != FromOffsets) // offsets have no panel
      panel += C * kLanes;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vector w = broadcast(weights[r]);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c)
        sum[r][c] += w * x[c];
    }
    weights += kChannelBlock;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    float *to = result + r * channelStep;
#pragma GCC unroll 4
    for (int c = 0; c < C - 1; ++c, to += kLanes)
      store(to, add ? load(to) + sum[r][c] : sum[r][c]);
    store(to, add ? load(to, last) + sum[r][C - 1] : sum[r][C - 1], last);
  }
}

/// Tiles of up to kFewPixels pixels for a block of channels: lanes are the channels of a block.
constexpr int kFewPixels = 3;
typedef float ChannelVector __attribute__((vector_size(kChannelBlock * sizeof(float)), aligned(4), may_alias));

/// `t` reads a panel of one vector of pixels.
template <int P> void convolveFew(const PixelTile &t, int64_t channels) {
  constexpr int kChains = 4; // independent sums, to hide the latency of a multiply-add
  ChannelVector sum[P][kChains] = {};
  const float *weights = t.weights, *panel = t.panel;
  int64_t k = 0;
  for (; k + kChains <= t.depth; k += kChains)
#pragma GCC unroll 4
    for (int i = 0; i < kChains; ++i, weights += kChannelBlock, panel += kLanes)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p)
        sum[p][i] += *reinterpret_cast<const ChannelVector *>(weights) * panel[p];
  for (; k < t.depth; ++k, weights += kChannelBlock, panel += kLanes)
    for (int p = 0; p < P; ++p)
      sum[p][0] += *reinterpret_cast<const ChannelVector *>(weights) * panel[p];
  for (int p = 0; p < P; ++p) {
    const ChannelVector total = (sum[p][0] + sum[p][1]) + (sum[p][2] + sum[p][3]);
    for (int64_t c = 0; c < channels; ++c) {
      float &to = t.result[c * t.channelStep + p];
      to = t.add ? to + total[c] : total[c];
    }
  }
}
constexpr void (*kFewPixelsTile[kFewPixels + 1])(const PixelTile &, int64_t) = {nullptr, convolveFew<1>, convolveFew<2>,
                                                                                convolveFew<3>};

using PixelTileFn = void (*)(const PixelTile &);

constexpr int kMostTileVectors = 3, kMostTileChannels = kRegisters == 32 ? 8 : 4;
static_assert(kMostTileVectors * kLanes <= kMostPixels && kLanes <= kMostLanes &&
              kChannelBlock % kMostTileChannels == 0);

/// Tiles of all sizes, by source, vectors, and channels.
struct PixelTiles {
  PixelTileFn of[3][kMostTileVectors + 1][kMostTileChannels + 1] = {};
  template <int R, int C> constexpr void fill() {
    of[FromPanel][C][R] = convolveTile<R, C, FromPanel>;
    of[FromPlanes][C][R] = convolveTile<R, C, FromPlanes>;
    of[FromOffsets][C][R] = convolveTile<R, C, FromOffsets>;
    if constexpr (R < kMostTileChannels)
      fill<R + 1, C>();
    else if constexpr (C < kMostTileVectors)
      fill<1, C + 1>();
  }
  constexpr PixelTiles() { fill<1, 1>(); }
};
constexpr PixelTiles kPixelTiles;

} // namespace
} // namespace tressel::kernels
