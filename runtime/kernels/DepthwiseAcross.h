// Two-dimensional depthwise convolutions with vectors across channels: as many planes as there are lanes are transposed
// into one padded plane of vectors, convolved, and the result is transposed back. So rows may be shorter than a vector.
#pragma once

#include "Convolution.h"
#include "PartialVector.h"
#include "Transpose.h"

namespace tressel::kernels {
namespace {

/// Sizes of one band of rows, in vectors.
struct AcrossBand {
  int64_t rows, inRows, inColumns; ///< of the result; of the padded image that it reads
  AcrossBand(const ConvolutionShape &s, int64_t rows)
      : rows(rows), inRows(inRowsOf(s, rows)),
        inColumns((s.out[2] - 1) * s.stride[2] + (s.window[2] - 1) * s.dilation[2] + 1) {}
  int64_t floats(const ConvolutionShape &s) const {
    return (inRows * inColumns + (rows * s.out[2] + tapsOf(s) + 2 * kLanes)) * kLanes;
  }
};

/// Used where rows fill less than half of a vector; for longer rows the transposes cost more than they save. At least
/// one row must fit into the scratch memory.
bool servesAcross(const ConvolutionShape &s) {
  return s.outChannels == s.groups && s.out[2] <= kLanes / 2 && s.window[0] == 1 && s.in[0] == 1 && s.out[0] == 1 &&
         AcrossBand(s, 1).floats(s) <= kArrangedFloats;
}

/// Transposes `count` values of each of `channels` rows, `step` apart, to vectors across the rows, stored at the
/// positions given by `place`.
template <typename Place> void turnOver(const float *from, int64_t step, int64_t channels, int64_t count, Place place) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t some = least(kLanes, count - i);
    const Lanes lanes = lanesBetween(0, some);
    Vector block[kLanes];
#pragma GCC unroll 16
    for (int c = 0; c < kLanes; ++c)
      block[c] = c < channels ? load(from + c * step + i, lanes) : Vector{};
    transpose(block);
    for (int64_t k = 0; k < some; ++k)
      if (float *to = place(i + k))
        store(to, block[k]);
  }
}

/// Transposes `count` vectors across channels back to a row per channel.
void turnBack(const float *from, int64_t count, float *to, int64_t step, int64_t channels) {
  for (int64_t i = 0; i < count; i += kLanes) {
    Vector block[kLanes];
#pragma GCC unroll 16
    for (int k = 0; k < kLanes; ++k) // may write beyond the last one, into scratch memory
      block[k] = load(from + (i + k) * kLanes);
    transpose(block);
    const Lanes lanes = lanesBetween(0, count - i);
#pragma GCC unroll 16
    for (int c = 0; c < kLanes; ++c)
      if (c < channels)
        store(to + c * step + i, block[c], lanes);
  }
}

/// Computes P adjacent pixels of a row.
template <int P>
void convolvePixels(const float *pixels, int64_t pixelStep, const float *weights, const int64_t *offsets, int64_t taps,
                    float *result) {
  Vector sum[P] = {};
  for (int64_t t = 0; t < taps; ++t) {
    const Vector w = load(weights + t * kLanes);
    const float *at = pixels + offsets[t];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p)
      sum[p] += w * load(at + p * pixelStep);
  }
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p)
    store(result + p * kLanes, sum[p]);
}
constexpr int kMostPixelsAcross = 8;
constexpr void (*kConvolvePixels[kMostPixelsAcross + 1])(const float *, int64_t, const float *, const int64_t *,
                                                         int64_t, float *) = {
    nullptr,           convolvePixels<1>, convolvePixels<2>, convolvePixels<3>, convolvePixels<4>,
    convolvePixels<5>, convolvePixels<6>, convolvePixels<7>, convolvePixels<8>};

/// Convolves `channels` channels, at most one per lane. `offsets` are those of the taps.
void convolveChannels(const ConvolutionShape &s, const AcrossBand &size, const float *image, const float *weights,
                      float *result, int64_t channels, const int64_t *offsets, float *scratch) {
  const int64_t taps = tapsOf(s), columns = s.out[2], inColumns = size.inColumns,
                parts = ceilDiv(columns, kMostPixelsAcross);
  float *turnedWeights = scratch, *padded = turnedWeights + taps * kLanes,
        *sums = padded + size.inRows * inColumns * kLanes;
  turnOver(weights, taps, channels, taps, [&](int64_t tap) { return turnedWeights + tap * kLanes; });
  for (int64_t row = 0; row < s.out[1]; row += size.rows) {
    const int64_t rows = least(size.rows, s.out[1] - row), firstRow = row * s.stride[1] - s.pad[1];
    const int64_t begin = most(0, firstRow), end = most(begin, least(s.in[1], firstRow + inRowsOf(s, rows)));
    for (int64_t i = 0; i < size.inRows * inColumns; ++i)
      store(padded + i * kLanes, Vector{});
    int64_t inColumn = 0, inRow = begin - firstRow; // of the next pixel to copy
    turnOver(image + begin * s.in[2], inPlaneOf(s), channels, (end - begin) * s.in[2], [&](int64_t) {
      const int64_t column = inColumn + s.pad[2];
      float *to = column < inColumns ? padded + (inRow * inColumns + column) * kLanes : nullptr;
      if (++inColumn == s.in[2])
        inColumn = 0, ++inRow;
      return to;
    });
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t p = 0; p < parts; ++p) {
        const int64_t column = part(columns, parts, p);
        kConvolvePixels[part(columns, parts, p + 1) - column](
            padded + (r * s.stride[1] * inColumns + column * s.stride[2]) * kLanes, s.stride[2] * kLanes, turnedWeights,
            offsets, taps, sums + (r * columns + column) * kLanes);
      }
    turnBack(sums, rows * columns, result + row * columns, outPlaneOf(s), channels);
  }
}

void convolveAcross(const ConvolutionCall &call) {
  const ConvolutionShape &s = call.shape;
  int64_t rows = 1;
  while (rows < s.out[1] && AcrossBand(s, rows + 1).floats(s) <= kArrangedFloats)
    ++rows;
  const int64_t bands = ceilDiv(s.out[1], rows), taps = tapsOf(s);
  const AcrossBand size(s, ceilDiv(s.out[1], bands));
  auto *offsets = reinterpret_cast<int64_t *>(call.scratch);
  float *scratch = call.scratch + (2 * taps + 15) / 16 * 16;
  for (int64_t h = 0, tap = 0; h < s.window[1]; ++h)
    for (int64_t w = 0; w < s.window[2]; ++w, ++tap)
      offsets[tap] = (h * s.dilation[1] * size.inColumns + w * s.dilation[2]) * kLanes;
  for (int64_t c = call.first; c < call.last; c += kLanes)
    convolveChannels(s, size, call.image + c * inPlaneOf(s), call.weights + c * taps, call.result + c * outPlaneOf(s),
                     least(kLanes, call.last - c), offsets, scratch);
}

} // namespace
} // namespace tressel::kernels
