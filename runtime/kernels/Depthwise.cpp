// Depthwise convolutions at one level: each channel of the result depends on one plane of the image. For a few rows of
// the result, the rows of the plane are copied with padding, and with columns sorted by phase of the stride, so that
// every tap is a contiguous vector of the copy. Tiles of rows by vectors stay in registers over all taps.
#include "Convolution.h"
#include "DepthwiseAcross.h"
#include "PartialVector.h"

namespace tressel::kernels {
namespace {

bool within(int64_t i, int64_t size) { return static_cast<uint64_t>(i) < static_cast<uint64_t>(size); }

/// A block of the result: some rows and columns at one depth.
struct Band {
  int64_t depth, row, column, rows, columns;
};

/// Layout of a row of the copy: phase p holds columns p, p + stride, ... of the image.
struct Copy {
  int64_t phases, phaseColumns, row;
  Copy(const ConvolutionShape &s, int64_t columns)
      : phases(columnPhasesOf(s)), phaseColumns(phaseColumnsOf(s, columns)), row(phases * phaseColumns) {}
};

/// Copies what a band reads at one depth of a plane, with zeros outside of the plane.
void copySlice(const ConvolutionShape &s, const float *slice, const Band &band, int64_t inRows, const Copy &copy,
               float *to) {
  const int64_t stride = s.stride[2], firstRow = band.row * s.stride[1] - s.pad[1];
  // Rows of the copy that are inside the image.
  const int64_t begin = slice ? least(inRows, most(0, -firstRow)) : inRows,
                end = most(begin, least(inRows, s.in[1] - firstRow));
  for (int64_t phase = 0; phase < copy.phases; ++phase) {
    const int64_t shift = band.column * stride - s.pad[2] + phase; // column of the first pixel
    const int64_t first = ceilDiv(most(0, -shift), stride),
                  last = s.in[2] > shift ? ceilDiv(s.in[2] - shift, stride) : 0;
    for (int64_t i = 0; i < copy.phaseColumns; i += kLanes, to += kLanes) {
      const Lanes lanes = lanesBetween(first - i, last - i);
      const int64_t fromEnd = lanes ? end : begin;
      float *at = to;
      for (int64_t r = 0; r < begin; ++r, at += copy.row)
        store(at, Vector{});
      const float *from = fromEnd > begin ? slice + (firstRow + begin) * s.in[2] + shift + i * stride : nullptr;
      if (stride == 1)
        for (int64_t r = begin; r < fromEnd; ++r, at += copy.row, from += s.in[2])
          store(at, load(from, lanes));
      else
        for (int64_t r = begin; r < fromEnd; ++r, at += copy.row, from += s.in[2])
          store(at, load(from, stride, lanes));
      for (int64_t r = fromEnd; r < inRows; ++r, at += copy.row)
        store(at, Vector{});
    }
  }
}

void copyPlane(const ConvolutionShape &s, const float *plane, const Band &band, int64_t inRows, const Copy &copy,
               float *to) {
  for (int64_t d = 0; d < s.window[0]; ++d, to += inRows * copy.row) {
    const int64_t depth = band.depth * s.stride[0] - s.pad[0] + d * s.dilation[0];
    copySlice(s, within(depth, s.in[0]) ? plane + depth * s.in[1] * s.in[2] : nullptr, band, inRows, copy, to);
  }
}

struct DepthwiseTile {
  const float *pixels, *weights;
  const int64_t *offsets;
  int64_t taps, rowStep; ///< distance between rows of the copy
  float *result;
  int64_t resultStep;
  Lanes last;
};

template <int R, int C> void convolveRows(const DepthwiseTile &t) {
  Vector sum[R][C] = {};
  const int64_t taps = t.taps, rowStep = t.rowStep;
  for (int64_t k = 0; k < taps; ++k) {
    const float *at = t.pixels + t.offsets[k];
    const Vector w = broadcast(t.weights[k]);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c)
        sum[r][c] += w * load(at + r * rowStep + c * kLanes);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    float *to = t.result + r * t.resultStep;
#pragma GCC unroll 4
    for (int c = 0; c < C - 1; ++c)
      store(to + c * kLanes, sum[r][c]);
    store(to + (C - 1) * kLanes, sum[r][C - 1], t.last);
  }
}

/// Largest number of rows of a tile, by its vectors: enough sums to hide the latency of a multiply-add.
constexpr int kMostVectors = 4, kMostRows = 8, kRowsOfTile[kMostVectors + 1] = {0, 8, 4, 3, 2};
using TileFn = void (*)(const DepthwiseTile &);

/// Tiles of all sizes, by vectors and rows.
struct Tiles {
  TileFn of[kMostVectors + 1][kMostRows + 1] = {};
  template <int R, int C> constexpr void fill() {
    of[C][R] = convolveRows<R, C>;
    if constexpr (R < kRowsOfTile[C])
      fill<R + 1, C>();
    else if constexpr (C < kMostVectors)
      fill<1, C + 1>();
  }
  constexpr Tiles() { fill<1, 1>(); }
};
constexpr Tiles kTiles;

void convolveBand(const ConvolutionShape &s, const Band &band, DepthwiseTile tile, float *result) {
  const int64_t vectors = ceilDiv(band.columns, kLanes), tiles = ceilDiv(vectors, kMostVectors);
  const float *pixels = tile.pixels;
  const int64_t rowStep = tile.rowStep;
  tile.rowStep = rowStep * s.stride[1], tile.resultStep = s.out[2];
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t v = part(vectors, tiles, t), count = part(vectors, tiles, t + 1) - v;
    tile.last = lanesBetween(0, band.columns - (v + count - 1) * kLanes);
    const int64_t parts = ceilDiv(band.rows, kRowsOfTile[count]);
    for (int64_t p = 0; p < parts; ++p) {
      const int64_t row = part(band.rows, parts, p);
      tile.pixels = pixels + row * tile.rowStep + v * kLanes;
      tile.result = result + row * s.out[2] + v * kLanes;
      kTiles.of[count][part(band.rows, parts, p + 1) - row](tile);
    }
  }
}

void convolve(const ConvolutionCall &call) {
  const ConvolutionShape &s = call.shape;
  if (servesAcross(s) && call.last - call.first >= kLanes / 2)
    return convolveAcross(call);
  const int64_t taps = tapsOf(s), multiplier = s.outChannels / s.groups;
  Band size{1, 0, 0, 1, s.out[2]};
  if (depthwiseFloatsOf(s, 1, s.out[2]) > kArrangedDepthwiseFloats)
    size.columns =
        least(s.out[2], most(1, kArrangedDepthwiseFloats / depthwiseFloatsOf(s, 1, kMostPixels)) * kMostPixels);
  while (size.rows < s.out[1] && depthwiseFloatsOf(s, size.rows + 1, size.columns) <= kArrangedDepthwiseFloats)
    ++size.rows;
  const Copy copy(s, size.columns);
  const int64_t inRows = inRowsOf(s, size.rows);
  auto *offsets = reinterpret_cast<int64_t *>(call.scratch);
  float *pixels = call.scratch + (2 * taps + 15) / 16 * 16;
  for (int64_t d = 0, tap = 0; d < s.window[0]; ++d)
    for (int64_t h = 0; h < s.window[1]; ++h)
      for (int64_t w = 0; w < s.window[2]; ++w, ++tap) {
        const int64_t column = w * s.dilation[2];
        offsets[tap] = (d * inRows + h * s.dilation[1]) * copy.row + column % s.stride[2] * copy.phaseColumns +
                       column / s.stride[2];
      }
  // Several small planes at a time, so that data is not loaded right after it was stored.
  const int64_t perPlane = depthwiseFloatsOf(s, size.rows, size.columns),
                planes = most(1, kArrangedDepthwiseFloats / perPlane), endGroup = ceilDiv(call.last, multiplier);
  for (int64_t group = call.first / multiplier; group < endGroup; group += planes) {
    const int64_t count = least(planes, endGroup - group), first = most(call.first, group * multiplier),
                  last = least(call.last, (group + count) * multiplier);
    Band band = size;
    for (band.depth = 0; band.depth < s.out[0]; ++band.depth)
      for (band.row = 0; band.row < s.out[1]; band.row += size.rows)
        for (band.column = 0; band.column < s.out[2]; band.column += size.columns) {
          band.rows = least(size.rows, s.out[1] - band.row);
          band.columns = least(size.columns, s.out[2] - band.column);
          for (int64_t i = 0; i < count; ++i)
            copyPlane(s, call.image + (group + i) * inPlaneOf(s), band, inRows, copy, pixels + i * perPlane);
          const int64_t at = (band.depth * s.out[1] + band.row) * s.out[2] + band.column;
          for (int64_t channel = first; channel < last; ++channel) {
            const float *plane = pixels + (channel / multiplier - group) * perPlane;
            convolveBand(s, band, {plane, call.weights + channel * taps, offsets, taps, copy.row, nullptr, 0, 0},
                         call.result + channel * outPlaneOf(s) + at);
          }
        }
  }
}

} // namespace

extern const ConvolutionKernels TRESSEL_AT_LEVEL(depthwise);
const ConvolutionKernels TRESSEL_AT_LEVEL(depthwise){convolve};

} // namespace tressel::kernels
