// What a kernel of convolutions is asked to do: written by the compiler, read by the library's factory.
#pragma once

#include "Convolution.h"
#include "Fields.h"
#include "ImplicitProduct.h"
#include "tressel/runtime/Dim.h"

#include <string>
#include <vector>

namespace tressel::kernels {

/// One to three dimensions of space, f32; channels last and not depthwise also f16 and bf16, with sums of f32 and
/// packed weights of f32. Sizes of batch and space may be symbolic.
///
/// Channels first, a unit of work is one of `blocks` equal ranges of the channels of one image's result: dense, the
/// batch outermost. A block is a whole number of groups, of channel blocks (kChannelBlock) of the only group, or, if
/// depthwise, anything.
///
/// Channels last, a unit is `rows` pixels of the result, those of all images behind one another (the last unit may be
/// smaller), of one of `blocks` nearly equal ranges of the channels: pixels count fastest.
///
/// S is Size, or int64_t for the numbers of a call.
template <typename S> struct ConvolutionCallSizes {
  bool channelsLast = false;
  Element element = Element::F32;
  S batch = 1, rows = 1;               ///< channels last: rows of a unit
  int64_t blocks = 1, typicalRows = 1; ///< of the result, typically: the packed weights' form
  ConvolutionSizes<S> shape;
  int32_t image = 0, weights = 1;    ///< operands
  int32_t packed = -1;               ///< the operand that holds the weights packed; -1: they are read as they are

  S units() const { return (channelsLast ? rowBlocks() : batch) * blocks; }
  /// Channels last: pixels of the results of all images, and units of them.
  S pixels() const { return batch * shape.out[0] * (shape.out[1] * shape.out[2]); }
  S rowBlocks() const { return rows == pixels() ? S(1) : dim::ceilDiv(pixels(), rows); }
  int64_t blockChannels() const { return shape.outChannels / blocks; }
  /// Depthwise weights are read as they stand.
  bool wantsPacked() const { return channelsLast || !isDepthwise(shape); }
};

struct ConvolutionParams : ConvolutionCallSizes<Size> {
  std::vector<Size> symbols; ///< in the sizes, in the order in which KernelArgs::scalars gives their values

  int64_t packedBytes() const { return 4 * (channelsLast ? packedImplicitFloats(shape) : packedWeightsOf(shape)); }
  /// Scratch memory of a worker, for any size; what is behind the first is for tiles.
  int64_t scratchBytes() const { return plainScratchBytes() + splitBytes(); }
  int64_t plainScratchBytes() const;
  int64_t splitBytes() const;
  int64_t splitSumsBytes() const; ///< what begins them
  /// With numbers for the symbols, in their order.
  ConvolutionCallSizes<int64_t> at(const int64_t *scalars) const;

  /// "unit" (elements of the result that one unit writes, when they are neighbours; else 0) is for the epilogue's
  /// generator.
  std::string text() const;
  /// The kernel that packs the weights: operand 0 into result 1.
  std::string packText() const;
  /// Throws InputError.
  static ConvolutionParams parse(const Fields &fields, bool isPack);
};

} // namespace tressel::kernels
