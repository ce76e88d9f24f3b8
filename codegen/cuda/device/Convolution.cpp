// Convolutions as products of the weights and the image's windows, which are never written out: the tile's loads find
// the elements. Up to three dimensions of space (fewer: leading ones of size 1).
//
// Channels first, the result is [batch, channels, space]: rows are channels, columns places. Channels last: the other
// way round. The depth is a channel of the group and a place of the window, the faster of them that which is dense in
// the image or, channels first, in the weights.
//
// params: 0 batch, 1 groups, 2 channels in and 3 out of one group; then for each of three dimensions: 4 size in, 7
// window, 10 size out, 13 stride, 16 dilation, 19 padding before; 22 whether numbers of places fit into 32 bits; 23
// elements of the image are loaded 16 bytes at a time (channels last); 24 the same of the weights (channels first); 25
// whether the elements of one image fit into 32 bits.
#include "codegen/cuda/device/Tile.h"

namespace tressel::device {
namespace {

struct Sizes {
  int64_t batch, groups, in, out, size[3], window[3], places[3], stride[3], dilation[3], pad[3];
  bool narrow, imageWhole, weightsWhole, narrowImage;

  TRESSEL_INLINE explicit Sizes(const int64_t *p)
      : batch(p[0]), groups(p[1]), in(p[2]), out(p[3]), narrow(p[22] != 0), imageWhole(p[23] != 0),
        weightsWhole(p[24] != 0), narrowImage(p[25] != 0) {
#pragma unroll
    for (int d = 0; d < 3; ++d) {
      size[d] = p[4 + d], window[d] = p[7 + d], places[d] = p[10 + d];
      stride[d] = p[13 + d], dilation[d] = p[16 + d], pad[d] = p[19 + d];
    }
  }
  TRESSEL_INLINE int64_t windowSize() const { return window[0] * window[1] * window[2]; }
  TRESSEL_INLINE int64_t depth() const { return in * windowSize(); }
  TRESSEL_INLINE int64_t placesPerImage() const { return places[0] * places[1] * places[2]; }
  TRESSEL_INLINE int64_t rows() const { return batch * placesPerImage(); }
};

/// The image's windows: row r is place r of all images.
template <class T_, bool ChannelsLast> struct Windows {
  using T = T_;
  static constexpr int V = 16 / sizeof(T);
  static constexpr bool alongDepth = ChannelsLast;
  const T *base; ///< of the group
  Sizes s;

  /// Where the window of a place begins, which may be outside, and the image.
  struct Corner {
    int64_t image; ///< its first element
    int at[3];
  };
  TRESSEL_INLINE Corner corner(int64_t row) const {
    Corner c;
    int64_t rest = row;
#pragma unroll
    for (int d = 2; d >= 0; --d) {
      const int64_t next = divide(rest, s.places[d], s.narrow);
      c.at[d] = static_cast<int>((rest - next * s.places[d]) * s.stride[d] - s.pad[d]);
      rest = next;
    }
    c.image = rest * s.groups * s.in * s.size[0] * s.size[1] * s.size[2];
    return c;
  }
  /// Channel and place of the window at a depth.
  struct Tap {
    int64_t channel; ///< the elements before it
    int at[3];
  };
  TRESSEL_INLINE Tap tap(int64_t d) const {
    Tap t;
    int64_t rest = d;
    if (ChannelsLast) {
      const int64_t place = divide(d, s.in, true);
      t.channel = d - place * s.in;
      rest = place;
    }
#pragma unroll
    for (int i = 2; i >= 0; --i) {
      const int64_t next = divide(rest, s.window[i], true);
      t.at[i] = static_cast<int>((rest - next * s.window[i]) * s.dilation[i]);
      rest = next;
    }
    if (!ChannelsLast)
      t.channel = rest * s.size[0] * s.size[1] * s.size[2];
    return t;
  }
  /// Whether the element is within the image, and then where from `base` on. (A null pointer for the others let threads read it on a card, where
  /// some of a warp were within and some were not.)
  TRESSEL_INLINE bool find(const Corner &c, const Tap &t, int64_t &element) const {
    bool inside = true;
    int x[3];
#pragma unroll
    for (int d = 0; d < 3; ++d) {
      x[d] = c.at[d] + t.at[d];
      inside &= static_cast<uint64_t>(x[d]) < static_cast<uint64_t>(s.size[d]); // a negative one is large
    }
    if (!inside)
      return false;
    const int64_t step = ChannelsLast ? s.groups * s.in : 1;
    const int64_t at = s.narrowImage
                           ? ((x[0] * static_cast<int>(s.size[1]) + x[1]) * static_cast<int>(s.size[2]) + x[2]) *
                                 static_cast<int>(step)
                           : ((x[0] * s.size[1] + x[1]) * s.size[2] + x[2]) * step;
    element = c.image + t.channel + at;
    return true;
  }
  TRESSEL_INLINE Pack<T, V> load(int64_t r, int64_t d) const {
    Pack<T, V> v = {};
    const int64_t rows = s.rows(), depth = s.depth();
    if (r >= rows || d >= depth)
      return v;
    if (ChannelsLast) {
      const Corner c = corner(r);
      if (s.imageWhole) { // V channels of one place
        if (int64_t at; find(c, tap(d), at))
          v = *reinterpret_cast<const Pack<T, V> *>(base + at);
        return v;
      }
#pragma unroll
      for (int i = 0; i < V; ++i)
        if (d + i < depth)
          if (int64_t at; find(c, tap(d + i), at))
            v.e[i] = base[at];
      return v;
    }
    const Tap t = tap(d);
#pragma unroll
    for (int i = 0; i < V; ++i)
      if (r + i < rows)
        if (int64_t at; find(corner(r + i), t, at))
          v.e[i] = base[at];
    return v;
  }
};

/// The weights [out, in, window...] of a group: row r is channel r of the result.
template <class T_, bool ChannelsLast> struct Weights {
  using T = T_;
  static constexpr int V = 16 / sizeof(T);
  static constexpr bool alongDepth = true;
  const T *base;
  Sizes s;

  TRESSEL_INLINE Pack<T, V> load(int64_t r, int64_t d) const {
    Pack<T, V> v = {};
    const int64_t depth = s.depth();
    if (r >= s.out || d >= depth)
      return v;
    const T *row = base + r * depth;
    if (!ChannelsLast && s.weightsWhole)
      return *reinterpret_cast<const Pack<T, V> *>(row + d);
#pragma unroll
    for (int i = 0; i < V; ++i)
      if (d + i < depth) {
        int64_t at = d + i;
        if (ChannelsLast) {
          const int64_t place = divide(at, s.in, true);
          at = (at - place * s.in) * s.windowSize() + place;
        }
        v.e[i] = row[at];
      }
    return v;
  }
};

/// Rows are channels of a group.
struct ChannelsFirstResult {
  int64_t rows, columns, places, channels, first;
  bool narrow;
  TRESSEL_INLINE int64_t index(int64_t row, int64_t column) const {
    const int64_t image = divide(column, places, narrow);
    return (image * channels + first + row) * places + column - image * places;
  }
};
/// Columns are channels of a group.
struct ChannelsLastResult {
  int64_t rows, columns, channels, first;
  TRESSEL_INLINE int64_t index(int64_t row, int64_t column) const { return row * channels + first + column; }
};

template <class Tile, bool ChannelsLast>
TRESSEL_INLINE void convolve(void *const *context, void *const *buffers, const int64_t *params,
                             TRESSEL_SHARED char *pool) {
  using T = typename Tile::T;
  const Sizes s(params);
  const int64_t rows = ChannelsLast ? s.rows() : s.out, columns = ChannelsLast ? s.out : s.rows();
  const TileNumber tile = tileNumber(blockIndex(), ceilDiv(rows, Tile::BM), ceilDiv(columns, Tile::BN));
  const int64_t group = tile.batch, row = tile.row * Tile::BM, column = tile.column * Tile::BN;
  const int64_t image = ChannelsLast ? group * s.in : group * s.in * s.size[0] * s.size[1] * s.size[2];
  const Windows<T, ChannelsLast> windows{static_cast<const T *>(buffers[0]) + image, s};
  const Weights<T, ChannelsLast> weights{static_cast<const T *>(buffers[1]) + group * s.out * s.depth(), s};
  if constexpr (ChannelsLast) {
    multiplyTile<Tile>(context, windows, weights, ChannelsLastResult{rows, columns, s.groups * s.out, group * s.out},
                       row, column, s.depth(), DepthShare::of(1), pool);
  } else {
    const int64_t places = s.placesPerImage();
    multiplyTile<Tile>(context, weights, windows,
                       ChannelsFirstResult{rows, columns, places, s.groups * s.out, group * s.out, s.narrow}, row,
                       column, s.depth(), DepthShare::of(1), pool);
  }
}

} // namespace

#define TRESSEL_CONVOLUTION(name, last, ...)                                                                           \
  TRESSEL_DEVICE(name) {                                                                                               \
    using Tile = __VA_ARGS__;                                                                                          \
    TRESSEL_SHARED_POOL(pool, kPoolBytes<Tile>);                                                                       \
    convolve<Tile, last>(context, buffers, params, pool);                                                              \
    (void)status;                                                                                                      \
  }
#define TRESSEL_CONVOLUTIONS(order, last)                                                                              \
  TRESSEL_CONVOLUTION(convolution_##order##_f16_128, last, MmaTile<Half, 128, 128, 32, 64, 32, 1>)                     \
  TRESSEL_CONVOLUTION(convolution_##order##_f16_64, last, MmaTile<Half, 64, 64, 32, 32, 32, 1>)                        \
  TRESSEL_CONVOLUTION(convolution_##order##_f16_32, last, MmaTile<Half, 32, 32, 64, 32, 32, 4>)                        \
  TRESSEL_CONVOLUTION(convolution_##order##_bf16_128, last, MmaTile<BFloat16, 128, 128, 32, 64, 32, 1>)                \
  TRESSEL_CONVOLUTION(convolution_##order##_bf16_64, last, MmaTile<BFloat16, 64, 64, 32, 32, 32, 1>)                   \
  TRESSEL_CONVOLUTION(convolution_##order##_bf16_32, last, MmaTile<BFloat16, 32, 32, 64, 32, 32, 4>)                   \
  TRESSEL_CONVOLUTION(convolution_##order##_f32_128, last, FmaTile<128, 128, 16, 8, 8, 1>)                             \
  TRESSEL_CONVOLUTION(convolution_##order##_f32_64, last, FmaTile<64, 64, 16, 8, 4, 1>)                                \
  TRESSEL_CONVOLUTION(convolution_##order##_f32_32, last, FmaTile<32, 32, 32, 4, 4, 4>)
TRESSEL_CONVOLUTIONS(first, false)
TRESSEL_CONVOLUTIONS(last, true)

} // namespace tressel::device
