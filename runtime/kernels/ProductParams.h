// Parameters of a matrix product kernel: written by the compiler, read by the library's factory.
#pragma once

#include "Fields.h"
#include "tressel/runtime/Dim.h"

#include <array>

namespace tressel::kernels {

/// One product per batch entry: result[b, m, n] = sum over k of left[b, m, k] * right[b, k, n]. Sizes and strides (in
/// elements) may be symbolic. Strides are arbitrary: transposed operands need no copy, and an operand that all batch
/// entries share has stride 0. The result is dense. Operands and result have the same element type; sums are f32.
///
/// A unit of work is a block of `rows` rows (the last one may be smaller) of one of `parts` nearly equal ranges of
/// columns, of one batch entry: rows vary fastest, then ranges, then the batch.
///
/// S is Size, or int64_t for the numbers of a call.
template <typename S> struct ProductSizes {
  Element element = Element::F32;
  S batch = 1, m = 1, n = 1, k = 1;
  std::array<S, 3> a{}; ///< strides of batch, m, k
  std::array<S, 3> b{}; ///< strides of batch, k, n
  S rows = 1;
  int64_t parts = 1;
  int64_t typicalRows = 1;     ///< expected m, which determines the layout of the packed side
  int32_t left = 0, right = 1; ///< numbers of operands
  int32_t packed = -1; ///< number of the operand with the packed right side (without a batch); -1: it is not packed
  Element packedAs = Element::F32; ///< element type of the packed side: f32, or `element`

  S rowBlocks() const { return rows == m ? S(1) : dim::ceilDiv(m, rows); }
  S units() const { return batch * (parts * rowBlocks()); }
};

struct ProductParams : ProductSizes<Size> {
  std::vector<Size> symbols; ///< symbols of the sizes, in the order of their values in KernelArgs::scalars

  /// Scratch bytes per worker, for the largest sizes: those of vectors, then those of tiles.
  int64_t scratchBytes() const { return plainScratchBytes() + splitBytes(); }
  int64_t plainScratchBytes() const;
  int64_t splitBytes() const;
  int64_t packedBytes() const; ///< only for numeric sizes
  /// Replaces the symbols by numbers, given in their order.
  ProductSizes<int64_t> at(const int64_t *scalars) const;

  /// "unit" is for the epilogue's generator: elements of the result that a unit writes, if these are adjacent, else 0.
  std::string text() const;
  /// The kernel that packs the right side: operand 0 into result 1. The sizes of the right side must be numbers.
  std::string packText() const;
  /// Throws InputError for invalid fields.
  static ProductParams parse(const Fields &fields, bool isPack);
};

} // namespace tressel::kernels
