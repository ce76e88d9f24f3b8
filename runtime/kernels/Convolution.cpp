// Convolutions at one level, as a product of weights (channels by products) and pixels (products by pixels) whose right
// side is never stored as a whole. For a range of pixels and channels of the image, the data that products read is
// arranged so that tiles read whole vectors, and all blocks of channels use it while it is in L2. There are two
// arrangements:
//
//   panels   for each tile, its pixels for one product after the other
//   shifted  for a few rows of the result, one copy of the image's rows per column of the window, shifted by it and
//            with only the pixels on the stride: all products of that column are vectors of the same copy. Less to
//            copy than panels, but with less regular reads; used where few channels make copying dominate
#include "ConvolutionTile.h"

namespace tressel::kernels {
namespace {

constexpr int64_t kDepthOfChunk = 576;

/// Calls `body` for all taps in the order of the products.
template <typename Body> void forEachTap(const ConvolutionShape &s, Body body) {
  int64_t tap = 0;
  for (int64_t d = 0; d < s.window[0]; ++d)
    for (int64_t h = 0; h < s.window[1]; ++h)
      for (int64_t w = 0; w < s.window[2]; ++w)
        body(tap++, d, h, w);
}

/// Whether 0 <= i < size.
bool within(int64_t i, int64_t size) { return static_cast<uint64_t>(i) < static_cast<uint64_t>(size); }
int64_t ceilDivSigned(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

/// The pixels [from, to) of a row of the result for which pixel * stride + shift is within a row of the image.
struct Inside {
  int64_t from, to;
  Inside(int64_t shift, int64_t stride, int64_t size)
      : from(stride == 1 ? -shift : ceilDivSigned(-shift, stride)),
        to(stride == 1 ? size - shift : ceilDivSigned(size - shift, stride)) {}
};

// --- Panels ----------------------------------------------------------------------------------------------------------

/// The lanes of a vector that are in one row of the result.
struct RowPart {
  int64_t depth, row; ///< row of the image at the first tap; then offset of that row
  int64_t column;     ///< column of the result at lane 0
  int from, to;
};
/// The lanes that one load provides.
struct Segment {
  int64_t offset;
  Lanes lanes;
};

/// One vector per channel, each gathered from a plane of the image. Segments [count, N) are empty.
template <int N, bool Dense>
void gather(const Segment *from, const float *plane, int64_t planeStep, int64_t stride, int64_t channels, float *to,
            int64_t toStep) {
  Segment segments[N];
  for (int i = 0; i < N; ++i)
    segments[i] = from[i];
  auto read = [&](const Segment &s) {
    return Dense ? load(plane + s.offset, s.lanes) : load(plane + s.offset, stride, s.lanes);
  };
  for (int64_t i = 0; i < channels; ++i, plane += planeStep, to += toStep) {
    Vector v = read(segments[0]);
#pragma GCC unroll 16
    for (int n = 1; n < N; ++n)
      v = join(v, read(segments[n]));
    store(to, v);
  }
}
template <bool Dense>
void gather(int count, const Segment *segments, const float *plane, int64_t planeStep, int64_t stride, int64_t channels,
            float *to, int64_t toStep) {
  const auto fn = count <= 1   ? gather<1, Dense>
                  : count == 2 ? gather<2, Dense>
                  : count <= 4 ? gather<4, Dense>
                               : gather<kLanes, Dense>;
  fn(segments, plane, planeStep, stride, channels, to, toStep);
}

/// Arranges pixels [pixel, pixel + kLanes) of a panel of `width` pixels, for `channels` channels.
void arrangeVector(const ConvolutionShape &s, const float *image, int64_t pixel, int64_t channels, float *to,
                   int64_t width) {
  const int64_t columns = s.out[2], end = least(pixel + kLanes, outPlaneOf(s)), taps = tapsOf(s), plane = inPlaneOf(s),
                stride = s.stride[2];
  RowPart parts[kLanes];
  int count = 0;
  int64_t row = pixel / columns, column = pixel % columns, depth = row / s.out[1];
  row %= s.out[1];
  for (int64_t p = pixel; p < end;) {
    const int64_t size = least(columns - column, end - p), lane = p - pixel;
    parts[count++] = {depth * s.stride[0] - s.pad[0], row * s.stride[1] - s.pad[1], column - lane,
                      static_cast<int>(lane), static_cast<int>(lane + size)};
    p += size, column = 0;
    if (++row == s.out[1])
      row = 0, ++depth;
  }
  for (int64_t d = 0; d < s.window[0]; ++d)
    for (int64_t h = 0; h < s.window[1]; ++h) {
      RowPart rows[kLanes]; // those inside the image
      int numRows = 0;
      for (int i = 0; i < count; ++i) {
        const int64_t inDepth = parts[i].depth + d * s.dilation[0], inRow = parts[i].row + h * s.dilation[1];
        if (within(inDepth, s.in[0]) && within(inRow, s.in[1])) {
          rows[numRows] = parts[i];
          rows[numRows++].row = (inDepth * s.in[1] + inRow) * s.in[2] + parts[i].column * stride;
        }
      }
      for (int64_t w = 0; w < s.window[2]; ++w, to += width) {
        const int64_t shift = w * s.dilation[2] - s.pad[2];
        const Inside inside(shift, stride, s.in[2]);
        Segment segments[kLanes];
        int n = 0;
        for (int i = 0; i < numRows; ++i) {
          const RowPart &part = rows[i];
          const Lanes lanes =
              lanesBetween(most(part.from, inside.from - part.column), least(part.to, inside.to - part.column));
          segments[n] = {part.row + shift, lanes};
          n += lanes != 0;
        }
        const int size = n <= 2 ? 2 : n <= 4 ? 4 : kLanes;
        for (int i = n; i < size; ++i)
          segments[i] = {};
        if (stride == 1)
          gather<true>(n, segments, image, plane, 1, channels, to, taps * width);
        else
          gather<false>(n, segments, image, plane, stride, channels, to, taps * width);
      }
    }
}

// --- Shifted copies --------------------------------------------------------------------------------------------------

/// Copies `count` pixels of a row that are `stride` apart; those outside of `inside` become 0.
void copyRow(const float *from, int64_t stride, int64_t count, Inside inside, float *to) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const Lanes lanes = lanesBetween(inside.from - i, inside.to - i);
    store(to + i, stride != 1 ? load(from + i * stride, stride, lanes) : load(from + i, lanes));
  }
}

/// A block of the result: some rows and columns at one depth.
struct Band {
  int64_t depth, row, column, rows, columns;
};

/// Makes the shifted copies of one channel. Rows are written in order, as each may exceed its end by up to a vector.
void copyShifted(const ConvolutionShape &s, const float *image, const Band &band, int64_t phaseRows, float *to) {
  const int64_t phases = rowPhasesOf(s);
  for (int64_t d = 0; d < s.window[0]; ++d)
    for (int64_t w = 0; w < s.window[2]; ++w) {
      const int64_t depth = band.depth * s.stride[0] - s.pad[0] + d * s.dilation[0],
                    shift = band.column * s.stride[2] - s.pad[2] + w * s.dilation[2];
      const Inside inside(shift, s.stride[2], s.in[2]);
      for (int64_t phase = 0; phase < phases; ++phase)
        for (int64_t r = 0; r < phaseRows; ++r, to += band.columns) {
          const int64_t row = (band.row + r) * s.stride[1] + phase - s.pad[1];
          if (within(depth, s.in[0]) && within(row, s.in[1])) {
            copyRow(image + (depth * s.in[1] + row) * s.in[2] + shift, s.stride[2], band.columns, inside, to);
            continue;
          }
          for (int64_t i = 0; i < band.columns; i += kLanes)
            store(to + i, Vector{});
        }
    }
}

// --- Both ------------------------------------------------------------------------------------------------------------

/// Divides consecutive vectors of pixels into tiles. A last vector of few pixels becomes a tile of its own.
struct Tiling {
  int64_t pixels, vectors, tiles;
  bool endsInFew;
  Tiling(int64_t pixels, bool mayEndInFew)
      : pixels(pixels), vectors(ceilDiv(pixels, kLanes)),
        endsInFew(mayEndInFew && vectors > 1 && pixels - (vectors - 1) * kLanes <= kFewPixels) {
    tiles = ceilDiv(vectors - endsInFew, kMostTileVectors) + endsInFew;
  }
  int64_t begin(int64_t tile) const {
    if (!endsInFew)
      return part(vectors, tiles, tile);
    return tile == tiles ? vectors : part(vectors - 1, tiles - 1, tile);
  }
};

/// Channels of the result, and products, for which the arranged data is used.
struct Pass {
  const float *weights; ///< of the group's first channel
  float *result;        ///< of the group's first channel, at the first pixel
  int64_t channelStep;  ///< distance between channels of the result
  int64_t groupDepth;   ///< number of products of the group
  int64_t first, last;  ///< channels of the group
  int64_t k, depth;     ///< range of the products
  Source source;        ///< FromPlanes: the first block of channels writes the panels
  const float *pixels;
  float *panels;
  const int64_t *offsets;
  int64_t planeStep;
};

/// Computes tiles [firstTile, endTile), whose panels are consecutive.
void convolveTiles(const Pass &p, const Tiling &tiling, int64_t firstTile, int64_t endTile) {
  const int64_t first = tiling.begin(firstTile), aheadStep = 4 * kChannelBlock / (endTile - firstTile);
  for (int64_t block = p.first; block < p.last; block += kChannelBlock) {
    const float *weights = p.weights + block * p.groupDepth + p.k * kChannelBlock;
    const float *next = block + kChannelBlock < p.last
                            ? weights + kChannelBlock * p.groupDepth
                            : p.weights + p.first * p.groupDepth + (p.k + p.depth) * kChannelBlock;
    for (int64_t channel = block; channel < least(block + kChannelBlock, p.last); channel += kMostTileChannels) {
      const Source source = p.source == FromPlanes && channel > p.first ? FromPanel : p.source;
      for (int64_t t = firstTile; t < endTile; ++t) {
        const int64_t v = tiling.begin(t), vectors = tiling.begin(t + 1) - v, pixel = v * kLanes;
        const int64_t channels = least(kMostTileChannels, p.last - channel), left = tiling.pixels - pixel;
        const PixelTile tile{weights + (channel - block),
                             p.pixels + pixel,
                             p.panels ? p.panels + (v - first) * kLanes * p.depth : nullptr,
                             p.offsets,
                             p.planeStep,
                             p.depth,
                             p.result + channel * p.channelStep + pixel,
                             p.channelStep,
                             lanesBetween(0, left - (vectors - 1) * kLanes),
                             p.k > 0,
                             reinterpret_cast<const char *>(next) + (t - firstTile) * aheadStep * p.depth,
                             aheadStep};
        const bool makesPanels = p.source == FromPlanes && block == p.first;
        if (!tiling.endsInFew || left > kFewPixels || makesPanels)
          kPixelTiles.of[source][vectors][channels](tile);
        else if (channel == block) // computes the whole block
          kFewPixelsTile[left](tile, least(kChannelBlock, p.last - block));
      }
    }
  }
}

/// Channels of the image per chunk, in nearly equal chunks.
int64_t chunkOf(int64_t channels, int64_t mostAtOnce) {
  return ceilDiv(channels, ceilDiv(channels, most(1, mostAtOnce)));
}

void convolvePanels(const ConvolutionShape &s, const float *image, Pass pass, float *scratch) {
  const int64_t taps = tapsOf(s), channels = s.inChannels / s.groups, plane = inPlaneOf(s);
  bool samePlane = taps == 1; // result pixels are at the same positions in the image's plane
  for (int d = 0; d < 3; ++d)
    samePlane = samePlane && s.stride[d] == 1 && s.pad[d] == 0 && s.in[d] == s.out[d];
  const int64_t chunk = chunkOf(channels, kDepthOfChunk / taps);
  const Tiling tiling(outPlaneOf(s), /*mayEndInFew=*/true);
  const int64_t bands = ceilDiv(tiling.tiles, most(1, kArrangedFloats / (kMostTileVectors * kLanes * chunk * taps)));
  pass.source = samePlane ? FromPlanes : FromPanel, pass.panels = scratch, pass.planeStep = plane;
  for (int64_t band = 0; band < bands; ++band) {
    const int64_t tile = part(tiling.tiles, bands, band), endTile = part(tiling.tiles, bands, band + 1);
    for (int64_t c = 0; c < channels; c += chunk) {
      const int64_t count = least(chunk, channels - c);
      pass.k = c * taps, pass.depth = count * taps, pass.pixels = image + c * plane;
      float *to = scratch;
      for (int64_t t = tile; t < endTile && !samePlane; ++t) {
        const int64_t v = tiling.begin(t), vectors = tiling.begin(t + 1) - v;
        for (int64_t i = 0; i < vectors; ++i)
          arrangeVector(s, pass.pixels, (v + i) * kLanes, count, to + i * kLanes, vectors * kLanes);
        to += vectors * kLanes * pass.depth;
      }
      convolveTiles(pass, tiling, tile, endTile);
    }
  }
}

void convolveShifted(const ConvolutionShape &s, const float *image, Pass pass, float *scratch) {
  const int64_t taps = tapsOf(s), channels = s.inChannels / s.groups, plane = inPlaneOf(s);
  // Whole rows of the result, or a part of one row; as many as fit together with all channels.
  const int64_t perColumn = shiftedFloatsOf(s, 1, 1), fitting = most(1, kArrangedFloats / (channels * perColumn));
  Band size{1, 0, 0, 1, s.out[2]};
  if (s.out[2] > fitting)
    size.columns = least(s.out[2], most(fitting / kMostPixels, 1) * kMostPixels);
  while (size.columns == s.out[2] && size.rows < s.out[1] &&
         channels * shiftedFloatsOf(s, size.rows + 1, size.columns) <= kArrangedFloats)
    ++size.rows;
  const int64_t perChannel = shiftedFloatsOf(s, size.rows, size.columns), phaseRows = phaseRowsOf(s, size.rows);
  const int64_t chunk = chunkOf(channels, kArrangedFloats / perChannel);
  auto *offsets = reinterpret_cast<int64_t *>(scratch);
  float *copies = scratch + (2 * chunk * taps + 15) / 16 * 16;
  for (int64_t c = 0; c < chunk; ++c)
    forEachTap(s, [&](int64_t tap, int64_t d, int64_t h, int64_t w) {
      const int64_t row = h * s.dilation[1], phase = row % s.stride[1];
      offsets[c * taps + tap] =
          c * perChannel +
          (((d * s.window[2] + w) * rowPhasesOf(s) + phase) * phaseRows + row / s.stride[1]) * size.columns;
    });
  float *const result = pass.result;
  pass.source = FromOffsets, pass.pixels = copies, pass.offsets = offsets;
  Band band = size;
  for (band.depth = 0; band.depth < s.out[0]; ++band.depth)
    for (band.row = 0; band.row < s.out[1]; band.row += size.rows)
      for (band.column = 0; band.column < s.out[2]; band.column += size.columns) {
        const int64_t rows = least(size.rows, s.out[1] - band.row),
                      columns = least(size.columns, s.out[2] - band.column);
        // several rows are whole ones, so they are contiguous
        const Tiling tiling(rows * columns, /*mayEndInFew=*/false);
        pass.result = result + (band.depth * s.out[1] + band.row) * s.out[2] + band.column;
        for (int64_t c = 0; c < channels; c += chunk) {
          const int64_t count = least(chunk, channels - c);
          for (int64_t i = 0; i < count; ++i)
            copyShifted(s, image + (c + i) * plane, band, phaseRows, copies + i * perChannel);
          pass.k = c * taps, pass.depth = count * taps;
          convolveTiles(pass, tiling, 0, tiling.tiles);
        }
      }
}

void convolve(const ConvolutionCall &call) {
  const ConvolutionShape &s = call.shape;
  const int64_t channels = s.outChannels / s.groups, groupWeights = packedWeightsOf(s) / s.groups,
                groupPlanes = s.inChannels / s.groups * inPlaneOf(s);
  for (int64_t group = call.first / channels; group * channels < call.last; ++group) {
    const int64_t first = group * channels;
    Pass pass{};
    pass.weights = call.weights + group * groupWeights;
    pass.result = call.result + first * outPlaneOf(s), pass.channelStep = outPlaneOf(s);
    pass.groupDepth = depthOf(s);
    pass.first = most(0, call.first - first), pass.last = least(channels, call.last - first);
    (hasFewChannels(s) ? convolveShifted : convolvePanels)(s, call.image + group * groupPlanes, pass, call.scratch);
  }
}

} // namespace

extern const ConvolutionKernels TRESSEL_AT_LEVEL(convolution);
const ConvolutionKernels TRESSEL_AT_LEVEL(convolution){convolve};

} // namespace tressel::kernels
