// Parameters of a Winograd convolution kernel: written by the compiler, read by the library's factory.
#pragma once

#include "Fields.h"
#include "Winograd.h"
#include "tressel/runtime/Dim.h"

#include <string>
#include <vector>

namespace tressel::kernels {

/// f32, channels last. Sizes of batch, `in` and `out` may be symbolic. A unit of work is a band of four rows of an image.
template <typename S> struct WinogradCallSizes { ///< S is Size, or int64_t for the numbers of a call
  S batch = 1;
  WinogradSizes<S> shape;
  int32_t image = 0, packed = 1; ///< numbers of operands

  S units() const { return batch * dim::ceilDiv(shape.out[0], kWinogradOut); }
};

struct WinogradParams : WinogradCallSizes<Size> {
  std::vector<Size> symbols; ///< symbols of the sizes, in the order of their values in KernelArgs::scalars

  /// Whether units are contiguous without gap or overlap: only the last image may have a band of fewer rows.
  bool hasEvenUnits() const { return batch == 1 || dim::mod(shape.out[0], kWinogradOut) == 0; }
  int64_t packedBytes() const { return 4 * winogradPackedFloats(shape.inChannels, shape.outChannels); }
  int64_t scratchBytes() const { return 4 * winogradScratchFloats(shape.inChannels); }
  /// Replaces the symbols by numbers, given in their order.
  WinogradCallSizes<int64_t> at(const int64_t *scalars) const;

  /// "unit" is for the epilogue's generator: elements of the result that a unit writes if units are even, else 0.
  std::string text() const;
  /// The kernel that packs the weights: operand 0 into result 1.
  std::string packText() const;
  /// Throws InputError for invalid fields.
  static WinogradParams parse(const Fields &fields, bool isPack);
};

} // namespace tressel::kernels
