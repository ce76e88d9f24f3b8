// Convolutions of channels-last images with vectors across channels: depthwise ones with one result channel per image
// channel, and groups of few channels with as many results. Lanes are adjacent channels, of one or several groups. A
// tile is adjacent pixels of a line of the result, whose taps are at constant distances. Pixels near an edge are
// computed one at a time, with only the taps that are inside the image.
#pragma once

#include "ImplicitTile.h"

namespace tressel::kernels {
namespace {

/// A pixel of the result, and its advance to the next line.
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

/// The pixels [from, to) of `count` for which a range of `width` columns is within a line of `size`. The range of the
/// first pixel begins at `column`; each further one is `stride` behind.
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
  int64_t count[3], imageStep[3], bStep[2];
  Sums sums;
  const float *next; ///< pixels to prefetch for the next line of the result; null: none
  int64_t groupChannels;
  int64_t panels, bPanel; ///< number of adjacent panels, and the distance between their weights
  int64_t before, behind; ///< columns of windows before the line's first pixel, and behind its last
};

/// Whether one tile with a masked last vector serves whole vectors as well: always, or where each pixel is used five
/// times.
#if defined(__AVX512F__)
constexpr bool kMasksAreFree = true;
#else
constexpr bool kMasksAreFree = false;
#endif
#if defined(__AVX2__)
constexpr bool kMasksAreCheap = true;
#else
constexpr bool kMasksAreCheap = false;
#endif

/// Zeros for taps outside the image, where multiplying by zero costs less than branching.
constexpr float kOutside[kMostTileVectors * kLanes] = {};

/// For windows whose columns are adjacent pixels: each pixel of the image is loaded once for all columns. Columns
/// outside the image are zeros in windows of 3. In windows of 5 they are skipped, since more multiplications by zero
/// would cost more than the branches.
template <int R, int C, bool Masked, int Window>
[[gnu::always_inline]] inline void convolveWindow(Vector (&sum)[R][C], const float *a, int64_t pixelStep,
                                                  const float *b, Lanes last, int64_t before, int64_t behind) {
  constexpr int kColumns = R + Window - 1;
  constexpr bool kHasZeros = Window == 3;
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) {
    Vector right[Window];
#pragma GCC unroll 8
    for (int w = 0; w < Window; ++w)
      right[w] = load(b + (w * C + c) * kLanes);
    auto multiply = [&](int i, const float *from) __attribute__((always_inline)) {
      const Vector x = Masked && c == C - 1 ? load(from, last) : load(from);
#pragma GCC unroll 8
      for (int w = 0; w < Window; ++w)
        if (i - w >= 0 && i - w < R)
          sum[i - w][c] += x * right[w];
    };
    auto pixel = [&](int i) __attribute__((always_inline)) { return a + i * pixelStep + c * kLanes; };
#pragma GCC unroll 16
    for (int i = Window - 1; i < R; ++i)
      multiply(i, pixel(i));
#pragma GCC unroll 8
    for (int i = least(Window - 1, R) - 1; i >= 0; --i) {
      if (!kHasZeros && i < before)
        break;
      multiply(i, i < before ? kOutside : pixel(i));
    }
#pragma GCC unroll 8
    for (int i = R; i < kColumns; ++i) {
      const bool outside = kColumns - i <= behind || (i < Window - 1 && i < before);
      if (!kHasZeros && outside)
        continue;
      multiply(i, outside ? kOutside : pixel(i));
    }
  }
}

/// Masked: lanes of the last vector that are no channels are not read. Window: see convolveWindow; 0 for any width.
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
          convolveWindow<R, C, Masked, Window>(sum, a, pixelStep, b, last, t.before, t.behind);
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

/// Each lane adds up one channel of its group after the other.
template <int R, int C> void convolveGroupwise(const ChannelwiseTile &t) {
  Vector sum[R][C] = {};
  const int64_t pixelStep = t.pixelStep, channels = t.groupChannels;
  const Lanes last = t.sums.last;
  LaneNumbers first; // first channel of each lane's group
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

/// The taps of a dimension that are inside the image, for a window that begins at `first`.
struct Taps {
  int64_t from, count;
  Taps(int64_t first, int64_t dilation, int64_t window, int64_t size) {
    from = first >= 0 ? 0 : dilation == 1 ? -first : ceilDiv(-first, dilation);
    const int64_t to =
        size <= first ? 0 : least(window, dilation == 1 ? size - first : ceilDiv(size - first, dilation));
    count = most(0, to - from);
  }
};

/// `count` adjacent panels with adjacent weights. A panel is as many vectors of channels as a tile holds.
struct ChannelPanels {
  const float *b;  ///< weights of the first panel, `vectors` for each product
  int64_t channel; ///< first channel
  int64_t vectors, count;
  Lanes last; ///< of a panel's last vector; not all lanes only if `count` is 1
};

/// A convolution over runs of panels.
struct Channelwise {
  const ConvolutionShape &s;
  const float *images; ///< at channel 0, like what follows
  const ChannelPanels *runs;
  int64_t numRuns;
  bool isSpan;                                     ///< a run has several panels
  int64_t groupChannels = s.inChannels / s.groups; ///< products per tap

  bool shares = sharesColumns();

  /// Computes rows of the result from `firstRow` on; `c` is the address of the first one.
  void convolve(int64_t firstRow, int64_t rows, float *c) const {
    const int64_t reach = (s.window[2] - 1) * s.dilation[2] + 1;
    int64_t vectors = 1; // of the widest panel, so that all panels have the same tiles of pixels
    for (int64_t i = 0; i < numRuns; ++i)
      vectors = most(vectors, runs[i].vectors);
    ChannelwiseTile tile{}; // reused: copying it would stall on the fields just stored
    tile.pixelStep = s.stride[2] * s.inChannels, tile.groupChannels = groupChannels;
    const int64_t step[3] = {s.in[1] * s.in[2] * s.inChannels, s.in[2] * s.inChannels, s.inChannels};
    for (int d = 0; d < 3; ++d)
      tile.imageStep[d] = s.dilation[d] * step[d];
    tile.sums.cRow = s.outChannels, tile.sums.add = false;
    Pixel pixel(s, firstRow);
    while (rows > 0) {
      // With one panel, a tile walks down whole lines one after the other, so that rows they share stay in L1, also
      // where strides leave few shared rows. With several panels, each tile visits all of them, so that memory is read
      // sequentially.
      const int64_t count = least(rows, s.out[2] - pixel.at[2]),
                    lines = most(1, !isSpan && count == s.out[2] ? rows / count : 1);
      const Inside whole(pixel.at[2] * s.stride[2] - s.pad[2], s.stride[2], reach, s.in[2], count);
      // Tiles whose windows cross an edge skip what is outside (`shares`), else those pixels are tiles of their own.
      const Inside inside = shares ? Inside{0, count} : whole;
      auto convolveTiles = [&](int64_t offset, int64_t pixels) {
        const Columns columns(*this, pixel.at[2] + offset, pixels);
        tile.count[2] = columns.taps.count, tile.before = columns.before, tile.behind = columns.behind;
        Pixel first = pixel;
        for (int64_t line = 0; line < lines; ++line, first.nextLine(s)) {
          const Line at(*this, first, step, tile.count);
          for (int64_t i = 0; i < numRuns; ++i)
            convolveTile(tile, at, columns, runs[i], c + (line * count + offset) * s.outChannels, pixels);
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
  /// Whether windows and their columns are adjacent pixels, so that a tile loads each pixel once.
  bool sharesColumns() const {
    return groupChannels == 1 && s.stride[2] == 1 && s.dilation[2] == 1 && (s.window[2] == 3 || s.window[2] == 5) &&
           s.pad[2] < s.window[2] && s.out[2] - s.pad[2] <= s.in[2] && s.in[2] >= s.window[2] &&
           ((s.window[2] == 3 ? kMasksAreFree : kMasksAreCheap) || runs[numRuns - 1].last == kAllLanes);
  }

  /// Pixels from `column` of the result on: a single one, or several whose columns are all inside or are skipped.
  struct Columns {
    Taps taps;
    int64_t image;              ///< column of the first pixel's first tap
    int64_t before, behind = 0; ///< columns outside the image
    Columns(const Channelwise &a, int64_t column, int64_t pixels)
        : Columns(a, column * a.s.stride[2] - a.s.pad[2], pixels, a.s) {}
    Columns(const Channelwise &a, int64_t first, int64_t pixels, const ConvolutionShape &s)
        : taps(first, s.dilation[2], s.window[2], s.in[2]), image(first), before(most(0, -first)) {
      if (a.shares)
        taps.from = 0, behind = most(0, first + pixels + s.window[2] - 1 - s.in[2]);
      else
        image = taps.count > 0 ? first + taps.from * s.dilation[2] : 0;
    }
  };
  /// A line of the result: the rows of its windows that are inside the image. Writes their number to `count`.
  struct Line {
    const float *image; ///< at column 0 of the first of these rows
    int64_t firstTap[2] = {};
    Line(const Channelwise &a, const Pixel &pixel, const int64_t *step, int64_t *count)
        : image(a.images + pixel.image * inPlaneOf(a.s) * a.s.inChannels) {
      for (int d = 0; d < 2; ++d) {
        const int64_t first = pixel.at[d] * a.s.stride[d] - a.s.pad[d];
        const Taps taps(first, a.s.dilation[d], a.s.window[d], a.s.in[d]);
        count[d] = taps.count;
        if (taps.count > 0)
          image += (first + taps.from * a.s.dilation[d]) * step[d], firstTap[d] = taps.from;
      }
    }
  };

  void convolveTile(ChannelwiseTile &tile, const Line &line, const Columns &columns, const ChannelPanels &run, float *c,
                    int64_t pixels) const {
    const int64_t vectors = run.vectors, products = groupChannels * vectors * kLanes;
    tile.bStep[1] = s.window[2] * products, tile.bStep[0] = s.window[1] * tile.bStep[1];
    tile.image = line.image + columns.image * s.inChannels + run.channel;
    tile.b = run.b + line.firstTap[0] * tile.bStep[0] + line.firstTap[1] * tile.bStep[1] + columns.taps.from * products;
    tile.panels = run.count, tile.bPanel = products * tapsOf(s);
    tile.sums.c = c + run.channel, tile.sums.last = run.last;
    tile.next = isSpan ? nullptr : tile.image + tile.count[1] * tile.imageStep[1];
    // Only the usual widths of windows have specialized tiles, to bound the size of the code.
    const auto &tiles = groupChannels > 1            ? kGroupwiseTiles
                        : shares && s.window[2] == 3 ? kChannelwiseTiles<kMasksAreFree, 3>
                        : shares                     ? kChannelwiseTiles<kMasksAreCheap, 5>
                        : run.last != kAllLanes      ? kChannelwiseTiles<true, 0>
                                                     : kChannelwiseTiles<kMasksAreFree, 0>;
    tiles.of[vectors][pixels](tile);
  }
};

} // namespace
} // namespace tressel::kernels
