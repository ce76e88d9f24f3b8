#include "frontend/tensor/Fail.h"

#include <tressel/nn/conv.h>

#include <string_view>

namespace tressel::nn {
namespace {

using detail::needRank;
using Ints = std::vector<int64_t>;

/// A stride of 0 means the window's size.
template <int N> Ints stridesOf(const PerAxis<N> &stride, const PerAxis<N> &window) {
  Ints strides = stride.vector();
  for (size_t i = 0; i < N; ++i)
    if (!strides[i])
      strides[i] = window.values[i];
  return strides;
}

template <int N> bool allAtLeast(const PerAxis<N> &sizes, int64_t least) {
  for (int64_t v : sizes.values)
    if (v < least)
      return false;
  return true;
}

Axes spatialAxes(const Tensor &x) {
  Ints axes;
  for (int i = 2; i < x.rank(); ++i)
    axes.push_back(i);
  return axes;
}

} // namespace

template <int N> Padding<N>::Padding(const char *name) : PerAxis<N>(0), same(std::string_view(name) == "same") {
  if (!same && std::string_view(name) != "valid")
    throw Error("there is no padding \"" + std::string(name) + "\": it is a number, \"same\" or \"valid\"");
}

/// The checks that all convolutions share, whatever their options are called.
template <int N, typename Options>
static void checkConvolution(const std::string &name, int64_t channels, const PerAxis<N> &kernel,
                             const Options &options) {
  if (channels < 1 || options.groups < 1 || !allAtLeast(kernel, 1) || !allAtLeast(options.stride, 1) ||
      !allAtLeast(options.dilation, 1) || !allAtLeast<N>(options.padding, 0))
    throw Error(name +
                ": channels, kernel sizes, strides, dilations and groups must be at least 1, paddings at least 0");
  if (channels % options.groups)
    throw Error(name + ": " + std::to_string(channels) + " channels do not split into " +
                std::to_string(options.groups) + " groups");
}

template <int N>
Conv<N>::Conv(int64_t channels, PerAxis<N> kernel, ConvOptions<N> options)
    : channels_(channels), kernel_(kernel), options_(std::move(options)),
      weight_(this->parameter("weight", options_.weight_init)) {
  const std::string name = type_name();
  checkConvolution(name, channels, kernel, options_);
  if (options_.padding.same && options_.stride.vector() != Ints(N, 1))
    throw Error(name + ": padding \"same\" needs a stride of 1");
  if (options_.bias)
    bias_ = this->parameter("bias", options_.bias_init);
}

template <int N> Tensor Conv<N>::forward(Tensor x) const {
  needRank(x, N + 2, type_name().c_str());
  const DType dtype = detail::parameterType(x);
  Shape shape{channels_, x.dim(1) / options_.groups};
  Ints low = options_.padding.vector(), high = low;
  for (size_t i = 0; i < N; ++i) {
    shape.push_back(kernel_.values[i]);
    if (options_.padding.same) {
      const int64_t zeros = options_.dilation.values[i] * (kernel_.values[i] - 1);
      low[i] = zeros / 2;
      high[i] = zeros - low[i];
    }
  }
  Tensor y = conv(x, weight_.need(shape, dtype), options_.stride.vector(), low, high, options_.dilation.vector(),
                  options_.groups);
  if (bias_)
    y = y + detail::besideChannels(y, bias_->need({channels_}, dtype).value());
  return options_.activation ? options_.activation(std::move(y)) : y;
}

template <int N>
ConvTranspose<N>::ConvTranspose(int64_t channels, PerAxis<N> kernel, ConvTransposeOptions<N> options)
    : channels_(channels), kernel_(kernel), options_(std::move(options)),
      weight_(this->parameter("weight", options_.weight_init)) {
  checkConvolution(type_name(), channels, kernel, options_);
  for (size_t i = 0; i < N; ++i)
    if (options_.output_padding.values[i] < 0 || options_.output_padding.values[i] >= options_.stride.values[i])
      throw Error(type_name() + ": output_padding must be at least 0 and less than the stride");
  if (options_.bias)
    bias_ = this->parameter("bias", options_.bias_init);
}

template <int N> Tensor ConvTranspose<N>::forward(Tensor x) const {
  needRank(x, N + 2, type_name().c_str());
  const DType dtype = detail::parameterType(x);
  Shape shape{x.dim(1), channels_ / options_.groups};
  for (int64_t size : kernel_.values)
    shape.push_back(size);
  const Ints cut = options_.padding.vector();
  Tensor y = conv_transpose(x, weight_.need(shape, dtype), options_.stride.vector(), cut, cut,
                            options_.output_padding.vector(), options_.dilation.vector(), options_.groups);
  if (bias_)
    y = y + detail::besideChannels(y, bias_->need({channels_}, dtype).value());
  return options_.activation ? options_.activation(std::move(y)) : y;
}

template <int N> Tensor MaxPool<N>::forward(Tensor x) const {
  return max_pool(x, window_.vector(), stridesOf(stride_, window_), padding_.vector(), padding_.vector(),
                  dilation_.vector());
}

template <int N> Tensor AvgPool<N>::forward(Tensor x) const {
  return avg_pool(x, window_.vector(), stridesOf(stride_, window_), padding_.vector(), padding_.vector(), {},
                  options_.count_padding);
}

/// Column j holds 1 / length in the rows of window j.
static Tensor averagingMatrix(int64_t in, int64_t out, DType dtype) {
  std::vector<double> values(static_cast<size_t>(in * out));
  for (int64_t j = 0; j < out; ++j) {
    const int64_t begin = j * in / out, end = ((j + 1) * in + out - 1) / out;
    for (int64_t i = begin; i < end; ++i)
      values[static_cast<size_t>(i * out + j)] = 1.0 / static_cast<double>(end - begin);
  }
  return cast(from_span(values, {in, out}), dtype);
}

template <int N> Tensor AdaptiveAvgPool<N>::forward(Tensor x) const {
  needRank(x, N + 2, type_name().c_str());
  Ints window;
  bool even = true;
  for (int i = 0; i < N; ++i) {
    const int64_t in = x.dim(i + 2), out = out_.values[static_cast<size_t>(i)];
    if (out < 1 || in < 1)
      tressel::detail::fail<ShapeError>(
          "the sizes before and after must be at least 1: " + x.type().str() + " to " + std::to_string(out),
          tressel::detail::toLoc(tressel::detail::callerOf(std::source_location::current())), type_name());
    even &= in % out == 0;
    window.push_back(in / out);
  }
  if (even)
    return avg_pool(x, window, window);
  // One dimension at a time: the mean over a box is the mean of the means over its lines.
  const DType dtype = detail::parameterType(x), wide = dtype == f64 ? f64 : f32;
  Tensor y = cast(x, wide);
  const int last = x.rank() - 1;
  for (int i = 0; i < N; ++i) {
    Ints swap;
    for (int d = 0; d <= last; ++d)
      swap.push_back(d == i + 2 ? last : d == last ? i + 2 : d);
    y = transpose(matmul(transpose(y, swap), averagingMatrix(y.dim(i + 2), out_.values[static_cast<size_t>(i)], wide)),
                  swap);
  }
  return cast(y, dtype);
}

Tensor GlobalAvgPool::forward(Tensor x) const {
  needRank(x, 3, "GlobalAvgPool");
  return mean(x, spatialAxes(x));
}
Tensor GlobalMaxPool::forward(Tensor x) const {
  needRank(x, 3, "GlobalMaxPool");
  return max(x, spatialAxes(x));
}

template struct Padding<1>;
template struct Padding<2>;
template struct Padding<3>;
template class Conv<1>;
template class Conv<2>;
template class Conv<3>;
template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;
template class MaxPool<1>;
template class MaxPool<2>;
template class MaxPool<3>;
template class AvgPool<1>;
template class AvgPool<2>;
template class AvgPool<3>;
template class AdaptiveAvgPool<1>;
template class AdaptiveAvgPool<2>;
template class AdaptiveAvgPool<3>;

} // namespace tressel::nn
