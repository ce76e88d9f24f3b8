// Depthwise convolutions of channels-last images with a channel of the result for each of the image: vectors are
// neighbouring channels of both. Tiles are neighbouring pixels of a line of the result, whose taps stand at equal
// distances; of pixels near the edge, one at a time, only the taps that exist are summed.
#pragma once

#include "ImplicitTile.h"

namespace tressel::kernels {
namespace {

/// A pixel of the result, and how it moves on.
struct Pixel {
  int64_t image, at[3];
  Pixel(const ConvolutionShape &s, int64_t row)
      : image(row / outPlaneOf(s)), at{row / (s.out[1] * s.out[2]) % s.out[0], row / s.out[2] % s.out[1],
                                       row % s.out[2]} {}
  void nextLine(const ConvolutionShape &s) {
    at[2] = 0;
    if (++at[1] == s.out[1]) {
      at[1] = 0;
      if (++at[0] == s.out[0])
        at[0] = 0, ++image;
    }
  }
};

/// Pixels [from, to) of `count` whose piece of `width` columns, the first one's at `column`, lies in a line of `size`.
struct Inside {
  int64_t from, to;
  Inside(int64_t column, int64_t stride, int64_t width, int64_t size, int64_t count)
      : from(column >= 0 ? 0 : least(count, ceilDiv(-column, stride))),
        to(most(from, size < width + column ? 0 : least(count, (size - width - column) / stride + 1))) {}
};

struct ChannelwiseTile {
  const float *image; ///< at the first tap of the first pixel
  int64_t pixelStep;
  const float *b; ///< at the first tap
  int64_t count[3], imageStep[3], bStep[2];
  Sums sums;
  const float *next; ///< pixels that the next line of the result needs
};

/// Columns of a window that are neighbours, as the pixels are: each pixel of the image is read once for all of them.
template <int R, int C, int Window>
[[gnu::always_inline]] inline void convolveWindow(Vector (&sum)[R][C], const float *a, int64_t pixelStep,
                                                  const float *b) {
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) {
    Vector right[Window];
#pragma GCC unroll 8
    for (int w = 0; w < Window; ++w)
      right[w] = load(b + (w * C + c) * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < R + Window - 1; ++i) {
      const Vector x = load(a + i * pixelStep + c * kLanes);
#pragma GCC unroll 8
      for (int w = 0; w < Window; ++w)
        if (i - w >= 0 && i - w < R)
          sum[i - w][c] += x * right[w];
    }
  }
}

/// Masked: lanes of the last vector that are no channels are not read. Window: see convolveWindow; 0 for any.
template <int R, int C, bool Masked, int Window> void convolveChannelwise(const ChannelwiseTile &t) {
  Vector sum[R][C] = {};
  const int64_t pixelStep = t.pixelStep, columns = t.count[2], columnStep = t.imageStep[2];
  const Lanes last = t.sums.last;
  fetchSums<R, C>(t.sums);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c)
      __builtin_prefetch(t.next + r * pixelStep + c * kLanes);
  for (int64_t d = 0; d < t.count[0]; ++d)
    for (int64_t h = 0; h < t.count[1]; ++h) {
      const float *a = t.image + d * t.imageStep[0] + h * t.imageStep[1], *b = t.b + d * t.bStep[0] + h * t.bStep[1];
      if constexpr (Window > 0) {
        convolveWindow<R, C, Window>(sum, a, pixelStep, b);
        continue;
      }
      for (int64_t w = 0; w < columns; ++w, a += columnStep, b += C * kLanes) {
        Vector right[C];
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c)
          right[c] = load(b + c * kLanes);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
          for (int c = 0; c < C; ++c) {
            const float *from = a + r * pixelStep + c * kLanes;
            sum[r][c] += (Masked && c == C - 1 ? load(from, last) : load(from)) * right[c];
          }
      }
    }
  storeSums<R, C>(t.sums, sum);
}

using ChannelwiseTileFn = void (*)(const ChannelwiseTile &);
template <bool Masked, int Window> struct ChannelwiseTileOf {
  template <int R, int C> static constexpr ChannelwiseTileFn function() {
    return convolveChannelwise<R, C, Masked, Window>;
  }
};
template <bool Masked, int Window>
constexpr auto kChannelwiseTiles = TilesOfAllSizes<ChannelwiseTileFn>::make<ChannelwiseTileOf<Masked, Window>>();

/// Some vectors of channels.
struct Channelwise {
  const ConvolutionShape &s;
  const float *images; ///< at the first channel
  const float *b;      ///< `vectors` for each tap
  int64_t vectors;
  Lanes last;

  /// Rows of the result from `firstRow` on; `c` is where the first one goes.
  void convolve(int64_t firstRow, int64_t rows, float *c) const {
    const int64_t reach = (s.window[2] - 1) * s.dilation[2] + 1;
    Pixel pixel(s, firstRow);
    for (int64_t left = rows; left > 0; pixel.nextLine(s)) {
      const int64_t count = least(left, s.out[2] - pixel.at[2]);
      const Inside inside(pixel.at[2] * s.stride[2] - s.pad[2], s.stride[2], reach, s.in[2], count);
      for (int64_t i = 0; i < inside.from; ++i)
        convolveTile(pixel, i, 1, c);
      const int64_t middle = inside.to - inside.from, tiles = ceilDiv(middle, kRowsOfTile[vectors]);
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t first = part(middle, tiles, t);
        convolveTile(pixel, inside.from + first, part(middle, tiles, t + 1) - first, c);
      }
      for (int64_t i = inside.to; i < count; ++i)
        convolveTile(pixel, i, 1, c);
      left -= count, c += count * s.outChannels;
    }
  }

private:
  /// Pixels of the line from `offset` behind `pixel` on: one, or some all of whose columns exist.
  void convolveTile(const Pixel &pixel, int64_t offset, int64_t pixels, float *c) const {
    const int64_t step[3] = {s.in[1] * s.in[2] * s.inChannels, s.in[2] * s.inChannels, s.inChannels},
                  bStep[3] = {s.window[1] * s.window[2] * vectors * kLanes, s.window[2] * vectors * kLanes,
                              vectors * kLanes};
    ChannelwiseTile tile{images + pixel.image * inPlaneOf(s) * s.inChannels, s.stride[2] * s.inChannels, b};
    for (int d = 0; d < 3; ++d) {
      const int64_t first = (pixel.at[d] + (d == 2 ? offset : 0)) * s.stride[d] - s.pad[d];
      const int64_t from = first >= 0 ? 0 : ceilDiv(-first, s.dilation[d]),
                    to = s.in[d] <= first ? 0 : least(s.window[d], ceilDiv(s.in[d] - first, s.dilation[d]));
      tile.count[d] = most(0, to - from), tile.imageStep[d] = s.dilation[d] * step[d];
      if (to <= from)
        continue; // nothing is read
      tile.image += (first + from * s.dilation[d]) * step[d];
      tile.b += from * bStep[d];
    }
    tile.bStep[0] = bStep[0], tile.bStep[1] = bStep[1];
    tile.sums = {c + offset * s.outChannels, s.outChannels, last, false};
    tile.next = tile.image + tile.count[1] * tile.imageStep[1];
    // Windows of the usual widths have tiles of their own where all channels exist: more would be much code.
    const bool neighbours = pixels > 1 && last == kAllLanes && tile.imageStep[2] == tile.pixelStep;
    const auto &tiles = last != kAllLanes                  ? kChannelwiseTiles<true, 0>
                        : neighbours && tile.count[2] == 3 ? kChannelwiseTiles<false, 3>
                        : neighbours && tile.count[2] == 5 ? kChannelwiseTiles<false, 5>
                                                           : kChannelwiseTiles<false, 0>;
    tiles.of[vectors][pixels](tile);
  }
};

} // namespace
} // namespace tressel::kernels
