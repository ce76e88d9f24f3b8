// Which candidates are convolutions, and of what sizes: read from the family of an op (Convolution in ir/ops/Base.td).
#pragma once

#include "codegen/MatrixProduct.h"

namespace tressel::codegen {

/// Sizes of batch and space may be symbolic, and those of space are at least 1. Operand 0 is the
/// image, operand 1 the weights. Lists have an entry per dimension of space.
struct Convolution {
  Size batch = 1;
  int64_t groups = 1, inChannels = 1, outChannels = 1;
  bool channelsLast = false; ///< of image and result: [batch, space..., channels], else [batch, channels, space...]
  std::vector<Size> in, out;
  std::vector<int64_t> window, strides, dilations, padLow, padHigh;
  /// Products summed for one element of the result.
  int64_t depth() const;
};
std::optional<Convolution> asConvolution(const BinaryRoot &root);
/// The convolution that a root is the derivative of by its weights: operand 0 is the image, operand 1 what was made of
/// it, channels first.
std::optional<Convolution> asConvolutionByWeights(const BinaryRoot &root);
/// The convolution that a root is the transpose of, and so the derivative of by its data: operand 0 is what was made of
/// the image, operand 1 the weights; the result has the sizes of the image. Windows may end ahead of what is padded, by
/// less than a stride.
std::optional<Convolution> asConvolutionByData(const BinaryRoot &root);

/// Typically.
double flopsPerImage(const Convolution &c);

} // namespace tressel::codegen
