#include "codegen/Convolution.h"

namespace tressel::codegen {

int64_t Convolution::depth() const {
  int64_t products = inChannels / groups;
  for (int64_t size : window)
    products *= size;
  return products;
}

/// y is what conv makes of x with w.
static std::optional<Convolution> convolutionOf(const BinaryRoot &root, const TensorType &x, const TensorType &w,
                                                const TensorType &y) {
  const auto rank = static_cast<size_t>(x.rank() - 2);
  auto ints = [&](std::string_view name, int64_t otherwise) {
    const int i = root.info->attrIndex(name);
    const auto *v = i < 0 ? nullptr : std::get_if<op::Ints>(&root.attrs[static_cast<size_t>(i)]);
    return v && !v->empty() ? *v : op::Ints(rank, otherwise);
  };
  const int g = root.info->attrIndex("groups");
  Convolution c;
  const int last = root.info->attrIndex("channels_last");
  c.channelsLast = last >= 0 && std::get<bool>(root.attrs[static_cast<size_t>(last)]);
  const int channels = c.channelsLast ? x.rank() - 1 : 1, space = c.channelsLast ? 1 : 2;
  c.batch = x.shape[0];
  c.groups = g < 0 ? 1 : std::get<int64_t>(root.attrs[static_cast<size_t>(g)]);
  c.strides = ints("strides", 1), c.dilations = ints("dilations", 1);
  c.padLow = ints("pad_low", 0), c.padHigh = ints("pad_high", 0);
  if (!w.shape.isStatic() || !x.shape[channels].isNumber())
    return std::nullopt;
  c.inChannels = x.shape.extent(channels), c.outChannels = w.shape.extent(0);
  for (int d = 0; d < x.rank() - 2; ++d) {
    c.in.push_back(x.shape[space + d]), c.window.push_back(w.shape.extent(2 + d));
    c.out.push_back(y.shape[space + d]);
  }
  if (llvm::any_of(c.in, [](Size size) { return dim::bounds(size).lo < 1; }))
    return std::nullopt;
  return c;
}

std::optional<Convolution> asConvolution(const BinaryRoot &root) {
  if (root.info->family != op::Family::Convolution)
    return std::nullopt;
  return convolutionOf(root, root.operands[0], root.operands[1], root.result);
}
std::optional<Convolution> asConvolutionByWeights(const BinaryRoot &root) {
  if (root.info->family != op::Family::ConvolutionByWeights)
    return std::nullopt;
  return convolutionOf(root, root.operands[0], root.result, root.operands[1]);
}
std::optional<Convolution> asConvolutionByData(const BinaryRoot &root) {
  if (root.info->family != op::Family::ConvolutionByData)
    return std::nullopt;
  std::optional<Convolution> c = convolutionOf(root, root.result, root.operands[1], root.operands[0]);
  const auto &extra = std::get<op::Ints>(root.attrs[static_cast<size_t>(root.info->attrIndex("output_padding"))]);
  for (size_t d = 0; c && d < extra.size(); ++d) {
    const int64_t beyond = extra[d] - c->padHigh[d]; // of what the last window sees
    if (beyond >= c->strides[d])
      return std::nullopt;
    c->padHigh[d] = std::max<int64_t>(0, -beyond);
  }
  return c;
}

double flopsPerImage(const Convolution &c) {
  double flops = 2.0 * static_cast<double>(c.outChannels) * static_cast<double>(c.depth());
  for (Size size : c.out)
    flops *= hinted(size);
  return flops;
}

} // namespace tressel::codegen
