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

/// One f32 matrix product per batch entry, with element strides, so that transposed operands need no copy. A unit of
/// work is a block of `rows` rows of the result, the batch outermost.
///
/// S is Size, or int64_t for the numbers of a call.
template <typename S> struct Matmul {
  S batch = 1, m = 1, n = 1, k = 1;
  std::array<S, 3> a{}; ///< strides of batch, m, k
  std::array<S, 3> b{}; ///< strides of batch, k, n
  S rows = 1;           ///< per unit; divides m when there is a batch, so that units are contiguous
  S units() const { return rows == m ? batch : batch * dim::ceilDiv(m, rows); }
};

/// f32 convolution. A unit of work is one of `blocks` equal ranges of the features of `images` neighbours, which divide
/// a batch of known size; ranges count fastest. By its data, images and features are those of the result, which has the
/// sizes of the image. By its weights, a unit is a range over all images.
///
/// S is Size, or int64_t for the numbers of a call.
template <typename S> struct Conv {
  S batch = 1;
  int64_t groups = 1, inChannels = 1, outChannels = 1, blocks = 1;
  std::vector<S> in;
  std::vector<int64_t> window;
  std::vector<S> out;
  std::vector<int64_t> strides, dilations, padLow, padHigh;
  bool channelsLast = false; ///< of image and result; weights are [features, channels, window...] either way
  int64_t images = 1;
  S units() const { return (images == 1 ? batch : S(dim::ceilDiv(batch, images))) * blocks; }
  /// Whether a unit writes neighbouring elements.
  bool areUnitsDense() const { return blocks == 1 || (images == 1 && !channelsLast); }
};

/// oneDNN takes matrices of which one dimension is dense; a dimension of size 1 may be called dense.
template <typename S> void callUnitSizesDense(Matmul<S> &m) {
  auto fix = [](S &stride, S size, S value) {
    if (size == 1)
      stride = value;
  };
  fix(m.a[2], m.k, 1), fix(m.a[1], m.m, dim::max(m.k * m.a[2], 1));
  fix(m.b[2], m.n, 1), fix(m.b[1], m.k, dim::max(m.n * m.b[2], 1));
}

enum class Kind { Matmul, PackMatmul, Conv, PackConv, ConvByWeights, ConvByData };

template <typename S> struct ParamsOf {
  Kind kind = Kind::Matmul;
  Matmul<S> matmul;
  Conv<S> conv;
  int32_t left = 0, right = 1; ///< operands: rows or image, columns or weights
  int32_t packed = -1;         ///< the operand that holds the packed right side, -1: it is read as it is
  S unit = 0;                  ///< elements of the result that one unit writes
};
/// The numbers of a call.
using Numbers = ParamsOf<int64_t>;

struct Params : ParamsOf<Size> {
  /// The symbols in the sizes, in the order in which KernelArgs::scalars gives their values.
  std::vector<Size> symbols;

  /// With numbers for the symbols; unit sizes are called dense.
  Numbers at(const dim::Values &values) const;
  /// With typical sizes: what needs are asked for, and how packed operands are laid out.
  Numbers typical() const;
  static Params of(const Numbers &numbers);
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
  bool isDirect = true; ///< of a convolution: by code made for it, not as a product over copies of the image
  Needs needs;
};
Query query(const Params &params);

/// Makes the provider "onednn" known to the runtime. Safe to call again.
void registerKernels();

} // namespace tressel::onednn
