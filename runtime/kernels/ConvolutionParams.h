// Parameters of a convolution kernel: written by the compiler, read by the library's factory.
#pragma once

#include "Convolution.h"
#include "Fields.h"
#include "ImplicitProduct.h"
#include "tressel/runtime/Dim.h"

#include <string>
#include <vector>

namespace tressel::kernels {

/// One to three spatial dimensions, f32. With channels last, and unless depthwise, also f16 and bf16, with sums in f32
/// and weights packed as f32. Sizes of batch and space may be symbolic.
///
/// Channels first: a unit of work is one of `blocks` equal ranges of the result channels of one image; units are dense,
/// with the batch outermost. A range is a whole number of groups or, with a single group, of channel blocks
/// (kChannelBlock); if depthwise, any number of channels.
///
/// Channels last: a unit is `rows` pixels of the results of all images together (the last unit may be smaller), for one
/// of `blocks` nearly equal ranges of the channels. Pixels vary fastest.
///
/// S is Size, or int64_t for the numbers of a call.
template <typename S> struct ConvolutionCallSizes {
  bool channelsLast = false;
  Element element = Element::F32;
  S batch = 1, rows = 1;               ///< channels last: rows per unit
  int64_t blocks = 1, typicalRows = 1; ///< expected rows of the result, which decide the layout of packed weights
  ConvolutionSizes<S> shape;
  int32_t image = 0, weights = 1; ///< numbers of operands
  int32_t packed = -1;            ///< number of the operand with packed weights; -1: weights are not packed

  S units() const { return (channelsLast ? rowBlocks() : batch) * blocks; }
  /// Channels last: pixels of the results of all images; and the number of units over these.
  S pixels() const { return batch * shape.out[0] * (shape.out[1] * shape.out[2]); }
  S rowBlocks() const { return rows == pixels() ? S(1) : dim::ceilDiv(pixels(), rows); }
  int64_t blockChannels() const { return shape.outChannels / blocks; }
  /// Depthwise weights with channels first are not packed.
  bool wantsPacked() const { return channelsLast || !isDepthwise(shape); }
};

struct ConvolutionParams : ConvolutionCallSizes<Size> {
  std::vector<Size> symbols; ///< symbols of the sizes, in the order of their values in KernelArgs::scalars

  int64_t packedBytes() const { return 4 * (channelsLast ? packedImplicitFloats(shape) : packedWeightsOf(shape)); }
  /// Scratch bytes per worker, for any size: those of vectors, then those of tiles.
  int64_t scratchBytes() const { return plainScratchBytes() + splitBytes(); }
  int64_t plainScratchBytes() const;
  int64_t splitBytes() const;
  int64_t splitSumsBytes() const; ///< sums at the begin of the tiles' part
  /// Replaces the symbols by numbers, given in their order.
  ConvolutionCallSizes<int64_t> at(const int64_t *scalars) const;

  /// "unit" is for the epilogue's generator: elements of the result that a unit writes, if these are adjacent, else 0.
  std::string text() const;
  /// The kernel that packs the weights: operand 0 into result 1.
  std::string packText() const;
  /// Throws InputError for invalid fields.
  static ConvolutionParams parse(const Fields &fields, bool isPack);
};

} // namespace tressel::kernels
