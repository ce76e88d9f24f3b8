// Depthwise convolutions of channels-last images with a channel of the result for each of the image, and those of
// narrow groups with as many: vectors are neighbouring channels of both, of some groups. Tiles are neighbouring pixels
// of a line of the result, whose taps stand at equal distances; of pixels near the edge, one at a time, only the taps
// that exist are summed.
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
  Inside(int64_t from, int64_t to) : from(from), to(to) {}
  Inside(int64_t column, int64_t stride, int64_t width, int64_t size, int64_t count)
      : from(column >= 0 ? 0 : least(count, ceilDiv(-column, stride))),
        to(most(from, size < width + column ? 0 : least(count, (size - width - column) / stride + 1))) {}
};

struct ChannelwiseTile {
  const float *image; ///< at the first tap of the first pixel
  int64_t pixelStep;
  const float *b; ///< at the first tap
  int64_t count[3], imageStep[3], bStep[2], firstTap[2];
  Sums sums;
  const float *next; ///< pixels that the next line of the result needs, if they are to be fetched
  int64_t groupChannels;
  int64_t panels = 1, bPanel = 0; ///< so many panels that are neighbours, and how far apart their weights are
  int64_t before = 0,
          behind = 0; ///< columns of the windows that lie before the line's first pixel, and behind its last
};

/// What lies outside the image, where that costs less than to leave it out.
constexpr float kOutside[kMostTileVectors * kLanes] = {};

/// Columns of a window that are neighbours, as the pixels are: each pixel of the image is read once for all of them.
/// Columns outside the image are zeros.
template <int R, int C, int Window>
[[gnu::always_inline]] inline void convolveWindow(Vector (&sum)[R][C], const float *a, int64_t pixelStep,
                                                  const float *b, int64_t before, int64_t behind) {
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) {
    Vector right[Window];
#pragma GCC unroll 8
    for (int w = 0; w < Window; ++w)
      right[w] = load(b + (w * C + c) * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < R + Window - 1; ++i) {
      const float *from = a + i * pixelStep + c * kLanes;
      if (i < Window - 1) // compared once, where the compiler sees that it may be so
        from = i < before ? kOutside : from;
      if (i >= R)
        from = R + Window - 1 - i <= behind ? kOutside : from;
      const Vector x = load(from);
#pragma GCC unroll 8
      for (int w = 0; w < Window; ++w)
        if (i - w >= 0 && i - w < R)
          sum[i - w][c] += x * right[w];
    }
  }
}

/// Whether a tile that masks its last vector serves whole vectors as well.
#if defined(__AVX512F__)
constexpr bool kMaskedLoadsAreFree = true;
#else
constexpr bool kMaskedLoadsAreFree = false;
#endif

/// Masked: lanes of the last vector that are no channels are not read. Window: see convolveWindow; 0 for any.
template <int R, int C, bool Masked, int Window> void convolveChannelwise(const ChannelwiseTile &t) {
  const int64_t pixelStep = t.pixelStep, columns = t.count[2], columnStep = t.imageStep[2];
  const Lanes last = t.sums.last;
  const float *image = t.image, *weights = t.b;
  Sums sums = t.sums;
  if (t.next) {
    fetchSums<R, C>(sums);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c)
        __builtin_prefetch(t.next + r * pixelStep + c * kLanes);
  }
  for (int64_t panel = t.panels; panel > 0; --panel) {
    Vector sum[R][C] = {};
    for (int64_t d = 0; d < t.count[0]; ++d)
      for (int64_t h = 0; h < t.count[1]; ++h) {
        const float *a = image + d * t.imageStep[0] + h * t.imageStep[1],
                    *b = weights + d * t.bStep[0] + h * t.bStep[1];
        if constexpr (Window > 0) {
          convolveWindow<R, C, Window>(sum, a, pixelStep, b, t.before, t.behind);
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
    storeSums<R, C>(sums, sum);
    image += C * kLanes, weights += t.bPanel, sums.c += C * kLanes;
  }
}

#if defined(__AVX2__)
typedef int LaneNumbers __attribute__((vector_size(kLanes * sizeof(int))));
[[gnu::always_inline]] inline Vector permute(Vector v, LaneNumbers lanes) {
#if defined(__AVX512F__)
  return Vector(_mm512_permutexvar_ps(__m512i(lanes), __m512(v)));
#else
  return Vector(_mm256_permutevar8x32_ps(__m256(v), __m256i(lanes)));
#endif
}

/// Each lane takes one channel of its group after the other.
template <int R, int C> void convolveGroupwise(const ChannelwiseTile &t) {
  Vector sum[R][C] = {};
  const int64_t pixelStep = t.pixelStep, channels = t.groupChannels;
  const Lanes last = t.sums.last;
  LaneNumbers first; // channel of each lane's group
  for (int i = 0; i < kLanes; ++i)
    first[i] = static_cast<int>(i / channels * channels);
  fetchSums<R, C>(t.sums);
  for (int64_t d = 0; d < t.count[0]; ++d)
    for (int64_t h = 0; h < t.count[1]; ++h) {
      const float *a = t.image + d * t.imageStep[0] + h * t.imageStep[1], *b = t.b + d * t.bStep[0] + h * t.bStep[1];
      for (int64_t w = 0; w < t.count[2]; ++w, a += t.imageStep[2]) {
        LaneNumbers lanes = first;
        for (int64_t j = 0; j < channels; ++j, b += C * kLanes, lanes += 1) {
#pragma GCC unroll 4
          for (int c = 0; c < C; ++c) {
            const Vector right = load(b + c * kLanes);
#pragma GCC unroll 16
            for (int r = 0; r < R; ++r) {
              const float *from = a + r * pixelStep + c * kLanes;
              sum[r][c] += permute(c == C - 1 ? load(from, last) : load(from), lanes) * right;
            }
          }
        }
      }
    }
  storeSums<R, C>(t.sums, sum);
}
#else
template <int R, int C> void convolveGroupwise(const ChannelwiseTile &) {} // isGroupwise() nowhere
#endif

using ChannelwiseTileFn = void (*)(const ChannelwiseTile &);
template <bool Masked, int Window> struct ChannelwiseTileOf {
  template <int R, int C> static constexpr ChannelwiseTileFn function() {
    return convolveChannelwise<R, C, Masked, Window>;
  }
};
template <bool Masked, int Window>
constexpr auto kChannelwiseTiles = TilesOfAllSizes<ChannelwiseTileFn>::make<ChannelwiseTileOf<Masked, Window>>();

struct GroupwiseTileOf {
  template <int R, int C> static constexpr ChannelwiseTileFn function() { return convolveGroupwise<R, C>; }
};
constexpr auto kGroupwiseTiles = TilesOfAllSizes<ChannelwiseTileFn>::make<GroupwiseTileOf>();

/// Those taps of a dimension, from the first one's place on, that lie inside the image.
struct Taps {
  int64_t from, count;
  Taps(int64_t first, int64_t dilation, int64_t window, int64_t size) {
    from = first >= 0 ? 0 : dilation == 1 ? -first : ceilDiv(-first, dilation);
    const int64_t to =
        size <= first ? 0 : least(window, dilation == 1 ? size - first : ceilDiv(size - first, dilation));
    count = most(0, to - from);
  }
};

/// `count` panels that are neighbours, and whose weights are. A panel is the vectors of channels that a tile holds at
/// once.
struct ChannelPanels {
  const float *b;  ///< of the first one, `vectors` for each product
  int64_t channel; ///< its first one
  int64_t vectors, count;
  Lanes last; ///< of a panel's last vector; some lanes only where `count` is 1
};

/// Some panels, one behind the other in the image.
struct Channelwise {
  const ConvolutionShape &s;
  const float *images; ///< at channel 0, as all that follows
  const ChannelPanels *runs;
  int64_t numRuns;
  bool isSpan;                                     ///< of several panels
  int64_t groupChannels = s.inChannels / s.groups; ///< products of a tap

  /// Rows of the result from `firstRow` on; `c` is where the first one goes.
  void convolve(int64_t firstRow, int64_t rows, float *c) const {
    const int64_t reach = (s.window[2] - 1) * s.dilation[2] + 1;
    int64_t vectors = 1; // of the widest panel, so that pixels are cut alike for all of them
    for (int64_t i = 0; i < numRuns; ++i)
      vectors = most(vectors, runs[i].vectors);
    Pixel pixel(s, firstRow);
    while (rows > 0) {
      // One panel: whole lines, of which a tile passes over one after the other: what they share stays in L1, also
      // where pixels are so far apart that only few of them do. Several panels: all of them for each tile, so that
      // memory is read as it stands.
      const int64_t count = least(rows, s.out[2] - pixel.at[2]),
                    lines = most(1, !isSpan && count == s.out[2] ? rows / count : 1);
      const Inside whole(pixel.at[2] * s.stride[2] - s.pad[2], s.stride[2], reach, s.in[2], count);
      // Windows that reach over the edges have zeros there, or are tiles of their own.
      const Inside inside = sharesColumns() ? Inside{0, count} : whole;
      auto convolveTiles = [&](int64_t offset, int64_t pixels) {
        Pixel first = pixel;
        for (int64_t line = 0; line < lines; ++line, first.nextLine(s)) {
          const ChannelwiseTile tile = lineOf(first, c + line * count * s.outChannels);
          for (int64_t i = 0; i < numRuns; ++i)
            convolveTile(tile, runs[i], pixel.at[2], offset, pixels);
        }
      };
      for (int64_t i = 0; i < inside.from; ++i)
        convolveTiles(i, 1);
      const int64_t middle = inside.to - inside.from, tiles = ceilDiv(middle, kRowsOfTile[vectors]);
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t first = part(middle, tiles, t);
        convolveTiles(inside.from + first, part(middle, tiles, t + 1) - first);
      }
      for (int64_t i = inside.to; i < count; ++i)
        convolveTiles(i, 1);
      for (int64_t line = 0; line < lines; ++line)
        pixel.nextLine(s);
      rows -= lines * count, c += lines * count * s.outChannels;
    }
  }

private:
  /// Columns of windows are neighbours, and so are windows: a tile reads each pixel once.
  bool sharesColumns() const {
    return groupChannels == 1 && s.stride[2] == 1 && s.dilation[2] == 1 && (s.window[2] == 3 || s.window[2] == 5) &&
           s.pad[2] < s.window[2] && s.out[2] - s.pad[2] <= s.in[2] && s.in[2] >= s.window[2] &&
           runs[numRuns - 1].last == kAllLanes;
  }

  /// What all tiles of a line have in common, but for the panel; as if they began at its first column.
  ChannelwiseTile lineOf(const Pixel &pixel, float *c) const {
    const int64_t step[2] = {s.in[1] * s.in[2] * s.inChannels, s.in[2] * s.inChannels};
    ChannelwiseTile tile{images + pixel.image * inPlaneOf(s) * s.inChannels, s.stride[2] * s.inChannels};
    for (int d = 0; d < 2; ++d) {
      const int64_t first = pixel.at[d] * s.stride[d] - s.pad[d];
      const Taps taps(first, s.dilation[d], s.window[d], s.in[d]);
      tile.count[d] = taps.count, tile.imageStep[d] = s.dilation[d] * step[d];
      if (taps.count > 0)
        tile.image += (first + taps.from * s.dilation[d]) * step[d], tile.firstTap[d] = taps.from;
    }
    tile.imageStep[2] = s.dilation[2] * s.inChannels;
    tile.sums = {c, s.outChannels, kAllLanes, false}, tile.groupChannels = groupChannels;
    return tile;
  }

  /// Pixels from `offset` behind column `column` of the result on: one, or some all of whose columns exist or are
  /// zeros.
  void convolveTile(const ChannelwiseTile &line, const ChannelPanels &run, int64_t column, int64_t offset,
                    int64_t pixels) const {
    ChannelwiseTile tile = line;
    const int64_t vectors = run.vectors, products = groupChannels * vectors * kLanes,
                  first = (column + offset) * s.stride[2] - s.pad[2];
    tile.bStep[1] = s.window[2] * products, tile.bStep[0] = s.window[1] * tile.bStep[1];
    tile.image += run.channel, tile.b = run.b + tile.firstTap[0] * tile.bStep[0] + tile.firstTap[1] * tile.bStep[1];
    tile.panels = run.count, tile.bPanel = products * tapsOf(s);
    tile.sums.c += offset * s.outChannels + run.channel, tile.sums.last = run.last;
    if (sharesColumns()) {
      tile.before = most(0, -first), tile.behind = most(0, first + pixels + s.window[2] - 1 - s.in[2]);
      tile.image += first * s.inChannels;
    } else {
      const Taps taps(first, s.dilation[2], s.window[2], s.in[2]);
      tile.count[2] = taps.count;
      if (taps.count > 0)
        tile.image += (first + taps.from * s.dilation[2]) * s.inChannels, tile.b += taps.from * products;
    }
    tile.next = isSpan ? nullptr : tile.image + tile.count[1] * tile.imageStep[1];
    // Windows of the usual widths have tiles of their own where all channels exist: more would be much code.
    const auto &tiles = groupChannels > 1       ? kGroupwiseTiles
                        : run.last != kAllLanes ? kChannelwiseTiles<true, 0>
                        : !sharesColumns()      ? kChannelwiseTiles<kMaskedLoadsAreFree, 0>
                        : s.window[2] == 3      ? kChannelwiseTiles<false, 3>
                                                : kChannelwiseTiles<false, 5>;
    tiles.of[vectors][pixels](tile);
  }
};

} // namespace
} // namespace tressel::kernels
