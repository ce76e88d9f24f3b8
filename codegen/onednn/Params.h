// What a oneDNN kernel is asked to do: written by the compiler into KernelDesc::params as JSON, read by the factory.
#pragma once

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
  int64_t units() const { return batch * ((m + rows - 1) / rows); }
};

/// f32 convolution, channels first. A unit of work is one image, or one of `blocks` equal ranges of its features.
struct Conv {
  int64_t batch = 1, groups = 1, inChannels = 1, outChannels = 1, blocks = 1;
  std::vector<int64_t> in, window, out, strides, dilations, padLow, padHigh;
  int64_t units() const { return batch * blocks; }
};

enum class Kind { Matmul, PackMatmul, Conv, PackConv };

struct Params {
  Kind kind = Kind::Matmul;
  Matmul matmul;
  Conv conv;
  int32_t left = 0, right = 1; ///< operands: rows or image, columns or weights
  int32_t packed = -1;         ///< the operand that holds the packed right side, -1: it is read as it is
  int64_t unit = 0;            ///< elements of the result that one unit writes

  std::string toJson() const;
  /// Throws InputError when the text is not of this form.
  static Params fromJson(const std::string &text);
};

/// Sizes that only the library knows.
struct Needs {
  int64_t packedBytes = 0;  ///< of the right side, packed
  int64_t scratchBytes = 0; ///< per worker
};
/// Asks the library; remembered per description, so asking again is cheap. Nothing (supported == false) if it cannot do it.
struct Query {
  bool supported = false;
  Needs needs;
};
Query query(const Params &params);

/// Makes the provider "onednn" known to the runtime. Safe to call again.
void registerKernels();

} // namespace tressel::onednn
