// f32 convolutions, per instruction-set level. Plain data and function pointers only: each level is a translation unit
// with its own compiler flags, chosen at run time (Levels.h). Image and result have channels first and dense pixels.
#pragma once

#include <cstdint>

namespace tressel::kernels {

/// Settings of three spatial dimensions; with fewer, the leading ones have size 1. The padding at the end follows from
/// the size of the result.
struct ConvolutionForm {
  int64_t groups = 1, inChannels = 1, outChannels = 1; ///< over all groups
  int64_t window[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
};
/// With the sizes of image and result: Size, or int64_t for the numbers of a call.
template <typename S> struct ConvolutionSizes : ConvolutionForm { S in[3] = {1, 1, 1}, out[3] = {1, 1, 1}; };
using ConvolutionShape = ConvolutionSizes<int64_t>;

/// Computes channels [first, last) of the result of one image. Unless these are all of a group, or the convolution is
/// depthwise, they begin at a multiple of kChannelBlock within their group.
struct ConvolutionCall {
  const ConvolutionShape &shape;
  const float *image, *weights; ///< packed weights; depthwise: not packed
  float *result;
  int64_t first, last;
  float *scratch; ///< convolutionScratchFloats(), 64-byte aligned
};

struct ConvolutionKernels {
  void (*convolve)(const ConvolutionCall &);
};
extern const ConvolutionKernels convolutionBaseline, convolutionV3, convolutionV4;
/// For depthwise shapes.
extern const ConvolutionKernels depthwiseBaseline, depthwiseV3, depthwiseV4;

// The rest is local to each translation unit: levels must not share functions (Vector.h).

static constexpr int64_t tapsOf(const ConvolutionForm &s) { return s.window[0] * s.window[1] * s.window[2]; }
static constexpr int64_t inPlaneOf(const ConvolutionShape &s) { return s.in[0] * s.in[1] * s.in[2]; }
static constexpr int64_t outPlaneOf(const ConvolutionShape &s) { return s.out[0] * s.out[1] * s.out[2]; }
/// Number of products summed for one element of the result.
static constexpr int64_t depthOf(const ConvolutionForm &s) { return s.inChannels / s.groups * tapsOf(s); }
/// Whether each channel of the result depends on one channel of the image.
static constexpr bool isDepthwise(const ConvolutionForm &s) { return s.groups > 1 && s.inChannels == s.groups; }
/// Whether there are so few channels that arranging the image would cost more than the arithmetic.
static constexpr bool hasFewChannels(const ConvolutionForm &s) { return s.inChannels / s.groups <= 8 && tapsOf(s) > 1; }

/// Layout of packed weights: per group, per block of channels (the last one padded with zeros), per product, one value
/// for each channel.
constexpr int64_t kChannelBlock = 8;
static constexpr int64_t packedWeightsOf(const ConvolutionForm &s) {
  const int64_t channels = s.outChannels / s.groups;
  return s.groups * ((channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock) * depthOf(s);
}

/// Largest number of pixels of a tile; lanes by which vector stores may exceed a copied range.
constexpr int64_t kMostPixels = 48, kMostLanes = 16;
/// Floats of the image that are arranged at a time, so that they stay in L2 (L1 if depthwise), unless one window is
/// larger.
constexpr int64_t kArrangedFloats = 1 << 16, kArrangedDepthwiseFloats = 6 << 10;

/// Rows of the image form phases by stride: phase p holds rows p, p + stride, ...
static constexpr int64_t rowPhasesOf(const ConvolutionForm &s) {
  const int64_t span = (s.window[1] - 1) * s.dilation[1] + 1;
  return s.stride[1] < span ? s.stride[1] : span;
}
/// Rows of one phase that are read for `rows` rows of the result.
static constexpr int64_t phaseRowsOf(const ConvolutionForm &s, int64_t rows) {
  return rows + (s.window[1] - 1) * s.dilation[1] / s.stride[1];
}
/// Floats of one channel's shifted copies for `rows` rows of `columns` pixels (see Convolution.cpp).
static constexpr int64_t shiftedFloatsOf(const ConvolutionForm &s, int64_t rows, int64_t columns) {
  return s.window[0] * s.window[2] * rowPhasesOf(s) * phaseRowsOf(s, rows) * columns;
}
/// Phases of columns for a depthwise convolution (see Depthwise.cpp).
static constexpr int64_t columnPhasesOf(const ConvolutionForm &s) {
  const int64_t span = (s.window[2] - 1) * s.dilation[2] + 1;
  return s.stride[2] < span ? s.stride[2] : span;
}
/// Rounded up to whole vectors of any level.
static constexpr int64_t phaseColumnsOf(const ConvolutionForm &s, int64_t columns) {
  return (columns + (s.window[2] - 1) * s.dilation[2] / s.stride[2] + kMostLanes - 1) / kMostLanes * kMostLanes;
}
/// Rows of the image that are read for `rows` rows of the result.
static constexpr int64_t inRowsOf(const ConvolutionForm &s, int64_t rows) {
  return (rows - 1) * s.stride[1] + (s.window[1] - 1) * s.dilation[1] + 1;
}
static constexpr int64_t depthwiseFloatsOf(const ConvolutionForm &s, int64_t rows, int64_t columns) {
  return s.window[0] * inRowsOf(s, rows) * columnPhasesOf(s) * phaseColumnsOf(s, columns);
}

/// Scratch memory for any level and any sizes of the image, in whole cache lines.
static constexpr int64_t convolutionScratchFloats(const ConvolutionForm &s) {
  const int64_t least = isDepthwise(s)      ? depthwiseFloatsOf(s, 1, kMostPixels)
                        : hasFewChannels(s) ? shiftedFloatsOf(s, 1, kMostPixels)
                                            : kMostPixels * tapsOf(s);
  const int64_t offsets = 2 * (depthOf(s) + 8); // each of 8 bytes
  return ((kArrangedFloats > least ? kArrangedFloats : least) + offsets + 2 * kMostPixels + 15) / 16 * 16;
}

} // namespace tressel::kernels
