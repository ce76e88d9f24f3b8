// What a kernel of matrix products is asked to do: written by the compiler, read by the library's factory.
#pragma once

#include "Fields.h"
#include "tressel/runtime/Dim.h"

#include <array>

namespace tressel::kernels {

/// One product per batch entry: result[b, m, n] = sum over k of left[b, m, k] * right[b, k, n]. Sizes and strides (of
/// elements) may be symbolic. Strides are anything: transposed operands need no copy, an operand that all entries of
/// the batch share has stride 0. The result is dense. Operands and result are of one type; sums are f32.
///
/// A unit of work is a block of `rows` rows (the last one may be smaller) of one of `parts` nearly equal ranges of the
/// columns, of one entry of the batch: rows count fastest, then ranges, then the batch.
///
/// S is Size, or int64_t for the numbers of a call.
template <typename S> struct ProductSizes {
  Element element = Element::F32;
  S batch = 1, m = 1, n = 1, k = 1;
  std::array<S, 3> a{}; ///< of batch, m, k
  std::array<S, 3> b{}; ///< of batch, k, n
  S rows = 1;
  int64_t parts = 1;
  int64_t typicalRows = 1;     ///< m as it is expected: the form of the packed side
  int32_t left = 0, right = 1; ///< operands
  int32_t packed = -1; ///< the operand that holds the right side packed (without a batch), -1: it is read as it is
  Element packedAs = Element::F32; ///< the type of what is packed: f32, or `element`

  S rowBlocks() const { return rows == m ? S(1) : dim::ceilDiv(m, rows); }
  S units() const { return batch * (parts * rowBlocks()); }
};

struct ProductParams : ProductSizes<Size> {
  std::vector<Size> symbols; ///< in the sizes, in the order in which KernelArgs::scalars gives their values

  /// Scratch memory of a worker, for the largest sizes; what is behind the first is for tiles.
  int64_t scratchBytes() const { return plainScratchBytes() + splitBytes(); }
  int64_t plainScratchBytes() const;
  int64_t splitBytes() const;
  int64_t packedBytes() const; ///< for numbers
  /// With numbers for the symbols, in their order.
  ProductSizes<int64_t> at(const int64_t *scalars) const;

  /// "unit" (elements of the result that one unit writes, when they are neighbours; else 0) is for the epilogue's
  /// generator.
  std::string text() const;
  /// The kernel that packs the right side: operand 0 into result 1. The sizes of the right side must be numbers.
  std::string packText() const;
  /// Throws InputError.
  static ProductParams parse(const Fields &fields, bool isPack);
};

} // namespace tressel::kernels
