// What a kernel of attention is asked to do: written by the compiler, read by the library's factory.
#pragma once

#include "Fields.h"
#include "tressel/runtime/Dim.h"

namespace tressel::kernels {

/// softmax(scale * q k^T) v for `heads` heads, of which `shared` neighbours share one of k and v. All operands are dense
/// f32: q [heads, queries, size], k [heads / shared, keys, size], v [heads / shared, keys, width]. Sizes may be symbolic.
/// A unit of work is a block of `rows` queries of one head (the last one may be smaller), those of a head together.
struct AttentionParams {
  int64_t heads = 1, shared = 1, queries = 1, keys = 1, size = 1, width = 1;
  int64_t rows = 1;
  bool causal = false;
  double scale = 1;
  int32_t q = 0, k = 1, v = 2; ///< operands
  std::vector<int64_t> symbols; ///< in the sizes, in the order in which KernelArgs::scalars gives their values

  int64_t blocks() const { return rows == queries ? 1 : dim::ceilDiv(queries, rows); }
  int64_t units() const { return dim::mul(heads, blocks()); }
  /// Of a worker; may be symbolic.
  int64_t scratchBytes() const;
  /// With numbers for the symbols, in their order.
  AttentionParams at(const int64_t *scalars) const;

  std::string text() const;
  /// Throws InputError.
  static AttentionParams parse(const Fields &fields);
};

} // namespace tressel::kernels
