// Parameters of an attention kernel: written by the compiler, read by the library's factory.
#pragma once

#include "Fields.h"
#include "tressel/runtime/Dim.h"

namespace tressel::kernels {

/// softmax(scale * q k^T + mask) v for `heads` heads, of which `shared` consecutive ones share one of k and v. All
/// operands are dense f32: q [heads, queries, size], k [heads / shared, keys, size], v [heads / shared, keys, width].
/// Sizes may be symbolic. A unit of work is a block of `rows` queries of one head (the last block may be smaller);
/// units of a head are consecutive.
///
/// S is Size, or int64_t for the numbers of a call.
template <typename S> struct AttentionSizes {
  S heads = 1, queries = 1, keys = 1, size = 1, width = 1;
  S rows = 1;
  int64_t shared = 1;
  bool causal = false;
  double scale = 1;
  int32_t q = 0, k = 1, v = 2; ///< numbers of operands
  /// Number of the mask operand, or -1: dense [maskHeads, queries or 1, keys], of f32 that is added, or of bool where
  /// false hides a key. Head h uses matrix h / maskShared % maskHeads.
  int32_t mask = -1;
  bool maskHides = false; ///< the mask is bool
  S maskHeads = 1, maskShared = 1;
  S maskRow = 0; ///< elements from query to query: keys, or 0 if all queries share one row

  S blocks() const { return rows == queries ? S(1) : dim::ceilDiv(queries, rows); }
  S units() const { return heads * blocks(); }
};

struct AttentionParams : AttentionSizes<Size> {
  std::vector<Size> symbols; ///< symbols of the sizes, in the order of their values in KernelArgs::scalars

  /// Scratch bytes per worker; may be symbolic.
  Size scratchBytes() const;
  /// Replaces the symbols by numbers, given in their order.
  AttentionSizes<int64_t> at(const int64_t *scalars) const;

  std::string text() const;
  /// Throws InputError for invalid fields.
  static AttentionParams parse(const Fields &fields);
};

} // namespace tressel::kernels
