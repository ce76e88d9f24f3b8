// f32 convolutions of channels-last images as one instruction-set level computes them: products whose left side, a row
// of all that a window sees for each pixel of the result, is never stored. Plain data and function pointers: every
// level is a translation unit with flags of its own, chosen at run time (Levels.h).
#pragma once

#include "Convolution.h"
#include "Element.h"
#include "SplitProduct.h"

namespace tressel::kernels {

/// Rows are pixels of the result, those of all images behind one another; columns are channels of the result. Image,
/// result and weights that are not packed are of `element`s.
struct ImplicitProduct {
  const ConvolutionShape &shape; ///< of one image
  Element element = Element::F32;
  int64_t typicalRows = 1;       ///< decides the panels' width, as RightSide::rows
  const void *image = nullptr;   ///< of the batch
  const void *weights = nullptr; ///< as they stand (channels of the result outermost), or
  const float *packed = nullptr; ///< packed
  void *result = nullptr;        ///< of the batch
  int64_t firstRow = 0, rows = 0;
  int64_t part = 0, parts = 1;         ///< those panels that are part `part` of `parts` nearly equal ones
  float *scratch = nullptr;            ///< implicitScratchFloats(), 64-byte aligned
  const SplitKernels *split = nullptr; ///< null: without tiles
  int64_t unitRows = 0;         ///< what decides about them, so that results do not depend on who computes how much
  char *splitScratch = nullptr; ///< splitScratchBytes(), 64-byte aligned
};

struct ImplicitProductKernels {
  /// All weights to `to`, packedImplicitFloats().
  void (*pack)(const ConvolutionForm &shape, Element element, int64_t typicalRows, const void *weights, float *to);
  void (*multiply)(const ImplicitProduct &);
};
extern const ImplicitProductKernels implicitProductBaseline, implicitProductV3, implicitProductV4;

// What follows is local to each file: the levels must not share functions (Vector.h).

/// Depth of a panel that stays in L2.
constexpr int64_t kImplicitDepth = 1024;

/// Depthwise with a channel of the result for each of the image: a vector holds neighbours of both. All channels are
/// then like columns of one group whose depth is the taps.
static constexpr bool isChannelwise(const ConvolutionForm &s) { return isDepthwise(s) && s.outChannels == s.groups; }
static constexpr int64_t columnGroupsOf(const ConvolutionForm &s) { return isChannelwise(s) ? 1 : s.groups; }

/// Groups of a few channels, some of which fill a vector of `lanes`: then too, if that can permute its lanes.
static constexpr bool isGroupwise(const ConvolutionForm &s, int64_t lanes) {
  const int64_t channels = s.inChannels / s.groups;
  return lanes >= 8 && s.groups > 1 && channels > 1 && channels < lanes && lanes % channels == 0 &&
         s.outChannels == s.inChannels && depthOf(s) <= kImplicitDepth;
}

/// Floats that packed weights take at most, whatever the level.
static constexpr int64_t packedImplicitFloats(const ConvolutionForm &s) {
  const int64_t groups = columnGroupsOf(s);
  return groups * ((s.outChannels / groups + 15) / 16 * 16) * depthOf(s);
}

/// Neighbouring pixels of an image with few channels are one run of memory: the taps of a row of the window are then
/// one piece of the depth.
static constexpr bool joinsTaps(const ConvolutionForm &s) {
  return s.groups == 1 && s.inChannels <= 16 && s.window[2] > 1 && s.dilation[2] == 1;
}
/// The depth consists of pieces; each is a run of memory for each pixel of the result.
static constexpr int64_t pieceOf(const ConvolutionForm &s) {
  return s.inChannels / s.groups * (joinsTaps(s) ? s.window[2] : 1);
}
static constexpr int64_t piecesOf(const ConvolutionForm &s) { return depthOf(s) / pieceOf(s); }
/// What stands for a piece outside the image, whatever its group.
static constexpr int64_t zerosOf(const ConvolutionForm &s) {
  const int64_t piece = pieceOf(s);
  return ((piece > s.inChannels ? piece : s.inChannels) + 15) / 16 * 16;
}

/// Where pieces begin, for as many rows and pieces as are passed over at a time;
/// copies of pieces that reach over the image's edge.
constexpr int64_t kPieceStarts = 16384, kEdgeFloats = 65536, kImplicitColumns = 64;
/// Stored in 16 bits, so many rows have their part of the image widened at a time. Their sums are f32: of one panel if
/// the depth is one block, else of all channels.
constexpr int64_t kWidenedImageFloats = 1 << 17, kWidenedRows = 512;
static constexpr int64_t widenedRowsOf(const ConvolutionForm &s) {
  const int64_t rows = kWidenedImageFloats / (depthOf(s) < kImplicitDepth ? depthOf(s) : kImplicitDepth);
  return rows < kWidenedRows ? rows : kWidenedRows;
}
static constexpr int64_t implicitSumsOf(const ConvolutionForm &s) {
  return widenedRowsOf(s) * (depthOf(s) <= kImplicitDepth ? kImplicitColumns : packedImplicitFloats(s) / depthOf(s));
}
/// What they take more where tiles cut the depth into blocks and vectors do not: behind what both take.
static constexpr int64_t splitSumsOf(const ConvolutionForm &s) {
  const bool more = depthOf(s) > kSplitDepthOfBlock && depthOf(s) <= kImplicitDepth;
  const int64_t columns = packedImplicitFloats(s) / depthOf(s);
  return more && columns > kImplicitColumns ? widenedRowsOf(s) * (columns - kImplicitColumns) : 0;
}
/// Whether tiles may multiply packed weights: not where vectors are channels of the image too, whatever the level.
static constexpr bool maySplit(const ConvolutionForm &s) {
  return !isChannelwise(s) && !isGroupwise(s, 8) && !isGroupwise(s, 16) && depthOf(s) >= kLeastSplitDepth &&
         s.outChannels / s.groups >= kLeastSplitColumns;
}
/// Scratch memory of any level: starts, zeros, copies, and a panel if weights are not packed.
static constexpr int64_t implicitScratchFloats(const ConvolutionForm &s, bool packed) {
  const int64_t piece = pieceOf(s), depth = piece < kImplicitDepth ? kImplicitDepth : piece;
  const int64_t edges = !joinsTaps(s) ? 0 : depth < kEdgeFloats ? kEdgeFloats : (depth + 15) / 16 * 16;
  const int64_t whole = isChannelwise(s) && depthOf(s) > kImplicitDepth ? depthOf(s) : kImplicitDepth;
  return 2 * kPieceStarts + zerosOf(s) + edges + (packed ? 0 : whole * kImplicitColumns);
}
/// The same for 16 bits: also starts of what is widened, that, sums, and all weights if they are not packed.
static constexpr int64_t halfImplicitScratchFloats(const ConvolutionForm &s, bool packed) {
  return implicitScratchFloats(s, true) + 2 * kPieceStarts + kWidenedImageFloats + implicitSumsOf(s) +
         (packed ? 0 : packedImplicitFloats(s));
}

} // namespace tressel::kernels
