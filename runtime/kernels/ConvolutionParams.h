// What a kernel of convolutions is asked to do: written by the compiler, read by the library's factory.
#pragma once

#include "Convolution.h"
#include "Fields.h"
#include "tressel/runtime/Dim.h"

#include <string>
#include <vector>

namespace tressel::kernels {

/// f32, channels first, one to three dimensions of space. Sizes of batch and space may be symbolic.
///
/// A unit of work is one of `blocks` equal ranges of the channels of one image's result: dense, the batch outermost. A
/// block is a whole number of groups, of channel blocks (kChannelBlock) of the only group, or, if depthwise, anything.
struct ConvolutionParams {
  int64_t batch = 1, blocks = 1;
  ConvolutionShape shape;         ///< `in` and `out` may be symbolic
  int32_t image = 0, weights = 1; ///< operands
  int32_t packed = -1;            ///< the operand that holds the weights packed; -1: they are read as they are
  std::vector<int64_t> symbols;   ///< in the sizes, in the order in which KernelArgs::scalars gives their values

  int64_t units() const { return dim::mul(batch, blocks); }
  int64_t blockChannels() const { return shape.outChannels / blocks; }
  /// Depthwise weights are read as they stand.
  bool wantsPacked() const { return !isDepthwise(shape); }
  int64_t packedBytes() const { return 4 * packedWeightsOf(shape); }
  /// Scratch memory of a worker, for any size.
  int64_t scratchBytes() const;
  /// With numbers for the symbols, in their order.
  ConvolutionParams at(const int64_t *scalars) const;

  /// "unit" (elements of the result that one unit writes) is for the epilogue's generator.
  std::string text() const;
  /// The kernel that packs the weights: operand 0 into result 1.
  std::string packText() const;
  /// Throws InputError.
  static ConvolutionParams parse(const Fields &fields, bool isPack);
};

} // namespace tressel::kernels
