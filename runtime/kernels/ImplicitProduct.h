// f32 convolutions of channels-last images, per instruction-set level, as products whose left side is never stored: a
// row per pixel of the result, with all values of the pixel's window. Plain data and function pointers only: each level
// is a translation unit with its own compiler flags, chosen at run time (Levels.h).
#pragma once

#include "Convolution.h"
#include "Element.h"
#include "SplitProduct.h"

namespace tressel::kernels {

/// Rows are the pixels of the results of all images; columns are channels of the result. Image, result and weights that
/// are not packed have elements of type `element`.
struct ImplicitProduct {
  const ConvolutionShape &shape; ///< of one image
  Element element = Element::F32;
  int64_t typicalRows = 1;       ///< determines the panels' width, like RightSide::rows
  const void *image = nullptr;   ///< of the batch
  const void *weights = nullptr; ///< not packed (channels of the result outermost), or
  const float *packed = nullptr; ///< packed
  void *result = nullptr;        ///< of the batch
  int64_t firstRow = 0, rows = 0;
  int64_t part = 0, parts = 1;         ///< computes panels of part `part` of `parts` nearly equal parts
  float *scratch = nullptr;            ///< implicitScratchFloats(), 64-byte aligned
  const SplitKernels *split = nullptr; ///< null: without tiles
  /// determines whether tiles are used, so that results do not depend on how work is divided among threads
  int64_t unitRows = 0;
  char *splitScratch = nullptr; ///< splitScratchBytes(), 64-byte aligned
};

struct ImplicitProductKernels {
  /// Packs all weights to `to`, packedImplicitFloats() floats.
  void (*pack)(const ConvolutionForm &shape, Element element, int64_t typicalRows, const void *weights, float *to);
  void (*multiply)(const ImplicitProduct &);
};
extern const ImplicitProductKernels implicitProductBaseline, implicitProductV3, implicitProductV4;

// The rest is local to each translation unit: levels must not share functions (Vector.h).

/// Largest depth of a panel that stays in L2.
constexpr int64_t kImplicitDepth = 1024;

/// Depthwise with one result channel per image channel: lanes are adjacent channels of both. All channels are treated
/// as columns of one group whose depth is the taps.
static constexpr bool isChannelwise(const ConvolutionForm &s) { return isDepthwise(s) && s.outChannels == s.groups; }
static constexpr int64_t columnGroupsOf(const ConvolutionForm &s) { return isChannelwise(s) ? 1 : s.groups; }

/// Groups of few channels that together fill a vector of `lanes`: lanes are channels of both here too, if the level can
/// permute lanes.
static constexpr bool isGroupwise(const ConvolutionForm &s, int64_t lanes) {
  const int64_t channels = s.inChannels / s.groups;
  return lanes >= 8 && s.groups > 1 && channels > 1 && channels < lanes && lanes % channels == 0 &&
         s.outChannels == s.inChannels && depthOf(s) <= kImplicitDepth;
}

/// Upper bound of the floats of packed weights, for any level.
static constexpr int64_t packedImplicitFloats(const ConvolutionForm &s) {
  const int64_t groups = columnGroupsOf(s);
  return groups * ((s.outChannels / groups + 15) / 16 * 16) * depthOf(s);
}

/// Whether adjacent pixels of an image with few channels are treated as one run of memory: then all taps of a row of
/// the window are one piece of the depth.
static constexpr bool joinsTaps(const ConvolutionForm &s) {
  return s.groups == 1 && s.inChannels <= 16 && s.window[2] > 1 && s.dilation[2] == 1;
}
/// Length of a piece. The depth consists of pieces; each is a contiguous run of memory for every pixel of the result.
static constexpr int64_t pieceOf(const ConvolutionForm &s) {
  return s.inChannels / s.groups * (joinsTaps(s) ? s.window[2] : 1);
}
static constexpr int64_t piecesOf(const ConvolutionForm &s) { return depthOf(s) / pieceOf(s); }
/// Zeros that replace a piece outside the image, in any group.
static constexpr int64_t zerosOf(const ConvolutionForm &s) {
  const int64_t piece = pieceOf(s);
  return ((piece > s.inChannels ? piece : s.inChannels) + 15) / 16 * 16;
}

/// Pointers to pieces for the rows and pieces processed at a time; copies of pieces that cross an edge of the image;
/// columns of a panel.
constexpr int64_t kPieceStarts = 16384, kEdgeFloats = 65536, kImplicitColumns = 64;
/// With 16-bit elements: floats of the image that are widened at a time, and the most rows. Sums are f32: of one panel
/// if the depth is one block, else of all channels.
constexpr int64_t kWidenedImageFloats = 1 << 17, kWidenedRows = 512;
static constexpr int64_t widenedRowsOf(const ConvolutionForm &s) {
  const int64_t rows = kWidenedImageFloats / (depthOf(s) < kImplicitDepth ? depthOf(s) : kImplicitDepth);
  return rows < kWidenedRows ? rows : kWidenedRows;
}
static constexpr int64_t implicitSumsOf(const ConvolutionForm &s) {
  return widenedRowsOf(s) * (depthOf(s) <= kImplicitDepth ? kImplicitColumns : packedImplicitFloats(s) / depthOf(s));
}
/// Additional sums if tiles divide the depth into several blocks where vectors have one; they follow behind those of
/// both.
static constexpr int64_t splitSumsOf(const ConvolutionForm &s) {
  const bool more = depthOf(s) > kSplitDepthOfBlock && depthOf(s) <= kImplicitDepth;
  const int64_t columns = packedImplicitFloats(s) / depthOf(s);
  return more && columns > kImplicitColumns ? widenedRowsOf(s) * (columns - kImplicitColumns) : 0;
}
/// Whether tiles may multiply packed weights: not where lanes are channels of the image at some level.
static constexpr bool maySplit(const ConvolutionForm &s) {
  return !isChannelwise(s) && !isGroupwise(s, 8) && !isGroupwise(s, 16) && depthOf(s) >= kLeastSplitDepth &&
         s.outChannels / s.groups >= kLeastSplitColumns;
}
/// Scratch memory of any level: pointers to pieces, zeros, copies at edges, and a panel if weights are not packed.
static constexpr int64_t implicitScratchFloats(const ConvolutionForm &s, bool packed) {
  const int64_t piece = pieceOf(s), depth = piece < kImplicitDepth ? kImplicitDepth : piece;
  const int64_t edges = !joinsTaps(s) ? 0 : depth < kEdgeFloats ? kEdgeFloats : (depth + 15) / 16 * 16;
  const int64_t whole = isChannelwise(s) && depthOf(s) > kImplicitDepth ? depthOf(s) : kImplicitDepth;
  return 2 * kPieceStarts + zerosOf(s) + edges + (packed ? 0 : whole * kImplicitColumns);
}
/// The same for 16-bit elements: also the widened pieces and pointers to them, sums, and all weights if they are not
/// packed.
static constexpr int64_t halfImplicitScratchFloats(const ConvolutionForm &s, bool packed) {
  return implicitScratchFloats(s, true) + 2 * kPieceStarts + kWidenedImageFloats + implicitSumsOf(s) +
         (packed ? 0 : packedImplicitFloats(s));
}

} // namespace tressel::kernels
