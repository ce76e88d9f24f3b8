// f32 convolutions as one instruction-set level computes them. Plain data and function pointers: every level is a
// translation unit with flags of its own, chosen at run time (Levels.h). Image and result are plain: channels first,
// pixels dense.
#pragma once

#include <cstdint>

namespace tressel::kernels {

/// Settings of three dimensions; fewer are leading ones of size 1. How far the image is padded behind follows from the
/// result's size.
struct ConvolutionForm {
  int64_t groups = 1, inChannels = 1, outChannels = 1; ///< of all groups
  int64_t window[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
};
/// With the sizes of the image and the result: Size, or int64_t for the numbers of a call.
template <typename S> struct ConvolutionSizes : ConvolutionForm { S in[3] = {1, 1, 1}, out[3] = {1, 1, 1}; };
using ConvolutionShape = ConvolutionSizes<int64_t>;

/// Channels [first, last) of the result of one image. Unless all of a group or a depthwise convolution's, they begin at
/// a multiple of kChannelBlock inside their group.
struct ConvolutionCall {
  const ConvolutionShape &shape;
  const float *image, *weights; ///< packed weights; depthwise: as they stand
  float *result;
  int64_t first, last;
  float *scratch; ///< convolutionScratchFloats(), 64-byte aligned
};

struct ConvolutionKernels {
  void (*convolve)(const ConvolutionCall &);
};
extern const ConvolutionKernels convolutionBaseline, convolutionV3, convolutionV4;
/// For shapes that are depthwise.
extern const ConvolutionKernels depthwiseBaseline, depthwiseV3, depthwiseV4;

// What follows is local to each file: the levels must not share functions (Vector.h).

static constexpr int64_t tapsOf(const ConvolutionForm &s) { return s.window[0] * s.window[1] * s.window[2]; }
static constexpr int64_t inPlaneOf(const ConvolutionShape &s) { return s.in[0] * s.in[1] * s.in[2]; }
static constexpr int64_t outPlaneOf(const ConvolutionShape &s) { return s.out[0] * s.out[1] * s.out[2]; }
/// Products summed for one element of the result.
static constexpr int64_t depthOf(const ConvolutionForm &s) { return s.inChannels / s.groups * tapsOf(s); }
/// Each channel of the result is made of one channel of the image.
static constexpr bool isDepthwise(const ConvolutionForm &s) { return s.groups > 1 && s.inChannels == s.groups; }
/// Sums over so few channels that arranging the image costs more than arithmetic.
static constexpr bool hasFewChannels(const ConvolutionForm &s) { return s.inChannels / s.groups <= 8 && tapsOf(s) > 1; }

/// Packed weights: per group, per block of channels (the last one filled with zeros), per product, a value for each
/// channel.
constexpr int64_t kChannelBlock = 8;
static constexpr int64_t packedWeightsOf(const ConvolutionForm &s) {
  const int64_t channels = s.outChannels / s.groups;
  return s.groups * ((channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock) * depthOf(s);
}

/// Pixels of a tile at most, and how far vectors may write behind what they copy.
constexpr int64_t kMostPixels = 48, kMostLanes = 16;
/// What is arranged of the image at a time, so that it stays in L2 (L1 for depthwise): unless the window alone is
/// larger.
constexpr int64_t kArrangedFloats = 1 << 16, kArrangedDepthwiseFloats = 6 << 10;

/// Rows of the image apart by the stride form phases: phase p holds rows p, p + stride, ...
static constexpr int64_t rowPhasesOf(const ConvolutionForm &s) {
  const int64_t span = (s.window[1] - 1) * s.dilation[1] + 1;
  return s.stride[1] < span ? s.stride[1] : span;
}
/// Rows of one phase that `rows` rows of the result read.
static constexpr int64_t phaseRowsOf(const ConvolutionForm &s, int64_t rows) {
  return rows + (s.window[1] - 1) * s.dilation[1] / s.stride[1];
}
/// Floats of one channel's copy for `rows` rows of `columns` pixels (see Convolution.cpp).
static constexpr int64_t shiftedFloatsOf(const ConvolutionForm &s, int64_t rows, int64_t columns) {
  return s.window[0] * s.window[2] * rowPhasesOf(s) * phaseRowsOf(s, rows) * columns;
}
/// The same of a depthwise convolution (see Depthwise.cpp).
static constexpr int64_t columnPhasesOf(const ConvolutionForm &s) {
  const int64_t span = (s.window[2] - 1) * s.dilation[2] + 1;
  return s.stride[2] < span ? s.stride[2] : span;
}
/// Whole vectors of any level.
static constexpr int64_t phaseColumnsOf(const ConvolutionForm &s, int64_t columns) {
  return (columns + (s.window[2] - 1) * s.dilation[2] / s.stride[2] + kMostLanes - 1) / kMostLanes * kMostLanes;
}
/// Rows of the image that `rows` rows of the result read.
static constexpr int64_t inRowsOf(const ConvolutionForm &s, int64_t rows) {
  return (rows - 1) * s.stride[1] + (s.window[1] - 1) * s.dilation[1] + 1;
}
static constexpr int64_t depthwiseFloatsOf(const ConvolutionForm &s, int64_t rows, int64_t columns) {
  return s.window[0] * inRowsOf(s, rows) * columnPhasesOf(s) * phaseColumnsOf(s, columns);
}

/// Scratch memory at any level and for any sizes of the image; whole cache lines.
static constexpr int64_t convolutionScratchFloats(const ConvolutionForm &s) {
  const int64_t least = isDepthwise(s)      ? depthwiseFloatsOf(s, 1, kMostPixels)
                        : hasFewChannels(s) ? shiftedFloatsOf(s, 1, kMostPixels)
                                            : kMostPixels * tapsOf(s);
  const int64_t offsets = 2 * (depthOf(s) + 8); // of 8 bytes
  return ((kArrangedFloats > least ? kArrangedFloats : least) + offsets + 2 * kMostPixels + 15) / 16 * 16;
}

} // namespace tressel::kernels
