// Winograd convolutions at one level. For some tiles at a time: transforms their part of the image into 36 matrices
// (tiles x channels), multiplies each with its matrix of weights, panel by panel, and transforms the sums of a panel
// into pixels.
#include "Winograd.h"
#include "MicroKernel.h"
#include "PartialVector.h"

namespace tressel::kernels {
namespace {

constexpr int kIn = static_cast<int>(kWinogradIn), kOut = static_cast<int>(kWinogradOut);
static_assert(kMostColumns * kLanes <= kWinogradColumns && kWinogradRound % kLanes == 0);

/// Divides the channels of the result into panels.
struct Panels {
  int64_t vectors, count;
  explicit Panels(const WinogradShape &s) : vectors(ceilDiv(s.outChannels, kLanes)), count(ceilDiv(vectors, kMostColumns)) {}
  int64_t begin(int64_t panel) const { return part(vectors, count, panel); } // in vectors
};

// --- Transforms of six, in place of the article's B, A and G ---------------------------------------------------------

[[gnu::always_inline]] inline void transformImage(const Vector (&d)[kIn], Vector (&to)[kIn]) {
  to[0] = 4 * d[0] - 5 * d[2] + d[4];
  to[1] = (d[3] + d[4]) - 4 * (d[1] + d[2]);
  to[2] = (d[4] - d[3]) + 4 * (d[1] - d[2]);
  to[3] = (d[4] - d[2]) + 2 * (d[3] - d[1]);
  to[4] = (d[4] - d[2]) - 2 * (d[3] - d[1]);
  to[5] = 4 * d[1] - 5 * d[3] + d[5];
}
[[gnu::always_inline]] inline void transformResult(const Vector (&m)[kIn], Vector (&to)[kOut]) {
  const Vector sum = m[1] + m[2], difference = m[1] - m[2], sum2 = m[3] + m[4], difference2 = m[3] - m[4];
  to[0] = m[0] + sum + sum2;
  to[1] = difference + 2 * difference2;
  to[2] = sum + 4 * sum2;
  to[3] = difference + 8 * difference2 + m[5];
}
void transformWeights(const float (&g)[3], float (&to)[kIn]) {
  to[0] = g[0] / 4;
  to[1] = -(g[0] + g[1] + g[2]) / 6;
  to[2] = -(g[0] - g[1] + g[2]) / 6;
  to[3] = g[0] / 24 + g[1] / 12 + g[2] / 6;
  to[4] = g[0] / 24 - g[1] / 12 + g[2] / 6;
  to[5] = g[2];
}

/// Packs weights by panel, then by point: rows of input channels, as wide as the panel.
void pack(const WinogradShape &s, const float *weights, float *to) {
  const Panels panels(s);
  for (int64_t p = 0; p < panels.count; ++p) {
    const int64_t first = panels.begin(p) * kLanes, width = (panels.begin(p + 1) - panels.begin(p)) * kLanes;
    for (int64_t c = 0; c < width; ++c)
      for (int64_t k = 0; k < s.inChannels; ++k) {
        float rows[3][kIn] = {}, all[kIn][kIn] = {};
        if (first + c < s.outChannels) {
          const float *w = weights + ((first + c) * s.inChannels + k) * 9;
          for (int y = 0; y < 3; ++y)
            transformWeights({w[y * 3], w[y * 3 + 1], w[y * 3 + 2]}, rows[y]);
          for (int x = 0; x < kIn; ++x) {
            float column[kIn];
            transformWeights({rows[0][x], rows[1][x], rows[2][x]}, column);
            for (int y = 0; y < kIn; ++y)
              all[y][x] = column[y];
          }
        }
        for (int point = 0; point < kWinogradPoints; ++point)
          to[(point * s.inChannels + k) * width + c] = all[point / kIn][point % kIn];
      }
    to += kWinogradPoints * s.inChannels * width;
  }
}

// --- Tiles -----------------------------------------------------------------------------------------------------------

class Convolution {
public:
  explicit Convolution(const WinogradCall &call)
      : call(call), s(call.shape), panels(s), depth(winogradRounded(s.inChannels)), columns(winogradTilesOf(s.out[1])),
        bands(winogradTilesOf(s.out[0])), left(call.scratch),
        sums(call.scratch + kWinogradPoints * winogradTilesAtOnce(s.inChannels) * depth) {}

  void run() const {
    const int64_t from = call.first * columns, count = (call.last - call.first) * columns,
                  blocks = ceilDiv(count, winogradTilesAtOnce(s.inChannels));
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t first = from + part(count, blocks, block), tiles = from + part(count, blocks, block + 1) - first;
      for (int64_t t = 0; t < tiles; ++t)
        takeTile(first + t, t, tiles);
      const float *weights = call.packed;
      for (int64_t p = 0; p < panels.count; ++p) {
        const int64_t vectors = panels.begin(p + 1) - panels.begin(p);
        multiply(weights, vectors, tiles);
        weights += kWinogradPoints * s.inChannels * vectors * kLanes;
        for (int64_t t = 0; t < tiles; ++t)
          giveTile(first + t, t, tiles, panels.begin(p), vectors);
      }
    }
  }

private:
  /// Position of a tile's result.
  struct Place {
    int64_t image, y, x;
  };
  Place placeOf(int64_t tile) const {
    const int64_t band = tile / columns;
    return {band / bands, band % bands * kOut, tile % columns * kOut};
  }

  /// Transforms a tile's part of the image to row t of the 36 matrices.
  void takeTile(int64_t tile, int64_t t, int64_t tiles) const {
    const Place at = placeOf(tile);
    const int64_t channels = s.inChannels, line = s.in[1] * channels, y0 = at.y - s.pad[0], x0 = at.x - s.pad[1];
    const float *const image = call.images + at.image * s.in[0] * line + y0 * line + x0 * channels;
    float *const to = left + t * depth;
    const int64_t step = tiles * depth;
    for (int64_t c = 0; c < channels; c += kLanes) {
      const Lanes lanes = lanesBetween(0, channels - c);
      Vector rows[kIn][kIn]; // after the transform along x
      for (int y = 0; y < kIn; ++y) {
        Vector pixels[kIn];
        const bool isInside = y0 + y >= 0 && y0 + y < s.in[0];
#pragma GCC unroll 6
        for (int x = 0; x < kIn; ++x)
          pixels[x] = isInside && x0 + x >= 0 && x0 + x < s.in[1] ? load(image + y * line + x * channels + c, lanes) : Vector{};
        transformImage(pixels, rows[y]);
      }
#pragma GCC unroll 6
      for (int x = 0; x < kIn; ++x) {
        const Vector column[kIn] = {rows[0][x], rows[1][x], rows[2][x], rows[3][x], rows[4][x], rows[5][x]};
        Vector points[kIn];
        transformImage(column, points);
#pragma GCC unroll 6
        for (int y = 0; y < kIn; ++y)
          store(to + (y * kIn + x) * step + c, points[y]); // rows have a whole number of vectors
      }
    }
  }

  /// The 36 products of one panel.
  void multiply(const float *weights, int64_t vectors, int64_t tiles) const {
    const int64_t width = vectors * kLanes, parts = ceilDiv(tiles, rowsOfTile(static_cast<int>(vectors)));
    // Each tile of sums prefetches its share of the next point's weights.
    const int64_t lines = ceilDiv(s.inChannels * width, 16), share = ceilDiv(lines, parts),
                  perStep = ceilDiv(share, most(s.inChannels / 4, 1));
    for (int64_t point = 0; point < kWinogradPoints; ++point, weights += s.inChannels * width)
      for (int64_t i = 0; i < parts; ++i) {
        const int64_t first = part(tiles, parts, i), rows = part(tiles, parts, i + 1) - first;
        TRESSEL_AT_LEVEL(product)
            .tile(vectors, rows)({left + (point * tiles + first) * depth, depth, weights, width, s.inChannels,
                                  sums + (point * tiles + first) * width, width, false,
                                  weights + s.inChannels * width + i * share * 16, perStep});
      }
  }

  /// Transforms the sums of a tile to pixels, for the channels of one panel.
  void giveTile(int64_t tile, int64_t t, int64_t tiles, int64_t firstVector, int64_t vectors) const {
    const Place at = placeOf(tile);
    const int64_t width = vectors * kLanes, step = tiles * width, line = s.out[1] * s.outChannels,
                  rows = least(kOut, s.out[0] - at.y), count = least(kOut, s.out[1] - at.x);
    float *const result = call.result + (at.image * s.out[0] + at.y) * line + at.x * s.outChannels;
    for (int64_t v = 0; v < vectors; ++v) {
      const int64_t channel = (firstVector + v) * kLanes;
      const Lanes lanes = lanesBetween(0, s.outChannels - channel);
      const float *const from = sums + t * width + v * kLanes;
      Vector half[kIn][kOut]; // after the transform along x
      for (int y = 0; y < kIn; ++y) {
        Vector points[kIn];
#pragma GCC unroll 6
        for (int x = 0; x < kIn; ++x)
          points[x] = load(from + (y * kIn + x) * step);
        transformResult(points, half[y]);
      }
      for (int64_t x = 0; x < count; ++x) {
        const Vector column[kIn] = {half[0][x], half[1][x], half[2][x], half[3][x], half[4][x], half[5][x]};
        Vector pixels[kOut];
        transformResult(column, pixels);
        for (int64_t y = 0; y < rows; ++y)
          store(result + y * line + x * s.outChannels + channel, pixels[y], lanes);
      }
    }
  }

  const WinogradCall &call;
  const WinogradShape &s;
  const Panels panels;
  const int64_t depth, columns, bands;
  float *const left;  ///< [point][tile][channel of the image]
  float *const sums;  ///< [point][tile][column of a panel]
};

void convolve(const WinogradCall &call) { Convolution(call).run(); }

} // namespace

extern const WinogradKernels TRESSEL_AT_LEVEL(winograd);
const WinogradKernels TRESSEL_AT_LEVEL(winograd){pack, convolve};

} // namespace tressel::kernels
