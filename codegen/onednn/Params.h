// What a oneDNN kernel is asked to do: written by the compiler into KernelDesc::params as JSON, read by the factory.
// Sizes may be symbolic (tressel/runtime/Dim.h); the kernel then makes what it needs from oneDNN when a size is first
// met.
#pragma once

#include "tressel/runtime/Dim.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tressel::onednn {

/// One f32 matrix product per batch entry, with element strides, so that transposed operands need no copy. A unit of work is
/// a block of `rows` rows of the result, the batch outermost.
struct Matmul {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  std::array<int64_t, 3> a{}; ///< strides of batch, m, k
  std::array<int64_t, 3> b{}; ///< strides of batch, k, n
  int64_t rows = 1;           ///< per unit; divides m when there is a batch, so that units are contiguous
  int64_t units() const { return rows == m ? batch : dim::mul(batch, dim::ceilDiv(m, rows)); }
  /// oneDNN takes matrices of which one dimension is dense; a dimension of size 1 may be called dense.
  void callUnitSizesDense();
};

/// f32 convolution. A unit of work is one image, or one of `blocks` equal ranges of its features (one, if its channels
/// are last).
struct Conv {
  int64_t batch = 1, groups = 1, inChannels = 1, outChannels = 1, blocks = 1;
  std::vector<int64_t> in, window, out, strides, dilations, padLow, padHigh;
  bool channelsLast = false; ///< of image and result; weights are [features, channels, window...] either way
  int64_t units() const { return dim::mul(batch, blocks); }
};

enum class Kind { Matmul, PackMatmul, Conv, PackConv };

struct Params {
  Kind kind = Kind::Matmul;
  Matmul matmul;
  Conv conv;
  int32_t left = 0, right = 1; ///< operands: rows or image, columns or weights
  int32_t packed = -1;         ///< the operand that holds the packed right side, -1: it is read as it is
  int64_t unit = 0;            ///< elements of the result that one unit writes
  /// The symbols in the sizes, in the order in which KernelArgs::scalars gives their values.
  std::vector<int64_t> symbols;

  /// With numbers for the symbols.
  Params at(const dim::Values &values) const;
  /// With typical sizes: what needs are asked for, and how packed operands are laid out.
  Params typical() const;
  std::string toJson() const;
  /// Throws InputError when the text is not of this form.
  static Params fromJson(const std::string &text);
};

/// Sizes that only the library knows.
struct Needs {
  int64_t packedBytes = 0;  ///< of the right side, packed
  int64_t scratchBytes = 0; ///< per worker
};
/// Asks the library, for typical sizes where they are symbolic (such a kernel brings its own scratch memory).
/// Remembered per description, so asking again is cheap. Nothing (supported == false) if it cannot do it.
struct Query {
  bool supported = false;
  Needs needs;
};
Query query(const Params &params);

/// Makes the provider "onednn" known to the runtime. Safe to call again.
void registerKernels();

} // namespace tressel::onednn
