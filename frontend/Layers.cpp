#include <tressel/layers.h>

namespace tressel::nn {
namespace {

Tensor activate(Activation activation, Tensor y) { return activation ? activation(std::move(y)) : y; }

/// A bias of one element per channel, beside x of `rank` dimensions with the channels second.
Tensor addChannels(const Tensor &x, const Parameter &bias, int64_t channels) {
  std::vector<int64_t> shape(static_cast<size_t>(x.rank() - 1), 1);
  shape[0] = channels;
  return x + reshape(bias.need({channels}), shape);
}

void needRank(const Tensor &x, int atLeast, const char *layer) {
  if (x.rank() >= atLeast)
    return;
  throw ShapeError(
      Error::Details{.message = std::string(layer) + " needs an input of at least " + std::to_string(atLeast) +
                                " dimensions, not " + x.type().str(),
                     .where = tressel::detail::toLoc(tressel::detail::callerOf(std::source_location::current())),
                     .op = layer});
}

using Ints = std::vector<int64_t>;
Ints ints(Size2 s) { return {s.height, s.width}; }
/// A stride of 0 means the window's size.
Ints stridesOf(int64_t stride, int64_t window) { return {stride ? stride : window}; }
Ints stridesOf(Size2 stride, Size2 window) {
  return {stride.height ? stride.height : window.height, stride.width ? stride.width : window.width};
}

} // namespace

// --- Dense
// ---------------------------------------------------------------------------------------------------------------
Dense::Dense(int64_t units, Activation activation, DenseOptions options)
    : units_(units), activation_(activation), weight_(parameter("weight", std::move(options.weight_init))) {
  if (units < 1)
    throw Error("Dense: the number of units must be at least 1, not " + std::to_string(units));
  if (options.bias)
    bias_ = parameter("bias", {units}, std::move(options.bias_init));
}

Tensor Dense::forward(Tensor x) const {
  needRank(x, 1, "Dense");
  const DType dtype = isFloat(x.dtype()) ? x.dtype() : f32;
  Tensor y = matmul(x, weight_.need({x.dim(-1), units_}, dtype));
  if (bias_)
    y = y + *bias_;
  return activate(activation_, std::move(y));
}

// --- Convolutions
// --------------------------------------------------------------------------------------------------------
Conv2d::Conv2d(int64_t channels, Size2 kernel, Conv2dOptions options)
    : channels_(channels), kernel_(kernel), options_(std::move(options)),
      weight_(parameter("weight", options_.weight_init)) {
  if (channels < 1 || kernel.height < 1 || kernel.width < 1 || options_.groups < 1)
    throw Error("Conv2d: channels, kernel sizes and groups must be at least 1");
  if (options_.bias)
    bias_ = parameter("bias", {channels}, options_.bias_init);
}

Tensor Conv2d::forward(Tensor x) const {
  needRank(x, 4, "Conv2d");
  const Parameter &w = weight_.need({channels_, x.dim(1) / options_.groups, kernel_.height, kernel_.width});
  Tensor y = conv(x, w, ints(options_.stride), ints(options_.padding), ints(options_.padding), ints(options_.dilation),
                  options_.groups);
  if (bias_)
    y = addChannels(y, *bias_, channels_);
  return activate(options_.activation, std::move(y));
}

Conv1d::Conv1d(int64_t channels, int64_t kernel, Conv1dOptions options)
    : channels_(channels), kernel_(kernel), options_(std::move(options)),
      weight_(parameter("weight", options_.weight_init)) {
  if (channels < 1 || kernel < 1 || options_.groups < 1)
    throw Error("Conv1d: channels, kernel size and groups must be at least 1");
  if (options_.bias)
    bias_ = parameter("bias", {channels}, options_.bias_init);
}

Tensor Conv1d::forward(Tensor x) const {
  needRank(x, 3, "Conv1d");
  const Parameter &w = weight_.need({channels_, x.dim(1) / options_.groups, kernel_});
  Tensor y =
      conv(x, w, {options_.stride}, {options_.padding}, {options_.padding}, {options_.dilation}, options_.groups);
  if (bias_)
    y = addChannels(y, *bias_, channels_);
  return activate(options_.activation, std::move(y));
}

// --- Pooling
// -------------------------------------------------------------------------------------------------------------
MaxPool1d::MaxPool1d(int64_t window, int64_t stride, int64_t padding)
    : window_(window), stride_(stride), padding_(padding) {}
Tensor MaxPool1d::forward(Tensor x) const {
  return max_pool(x, {window_}, stridesOf(stride_, window_), {padding_}, {padding_});
}

AvgPool1d::AvgPool1d(int64_t window, int64_t stride, int64_t padding)
    : window_(window), stride_(stride), padding_(padding) {}
Tensor AvgPool1d::forward(Tensor x) const {
  return avg_pool(x, {window_}, stridesOf(stride_, window_), {padding_}, {padding_});
}

MaxPool2d::MaxPool2d(Size2 window, Size2 stride, Size2 padding) : window_(window), stride_(stride), padding_(padding) {}
Tensor MaxPool2d::forward(Tensor x) const {
  return max_pool(x, ints(window_), stridesOf(stride_, window_), ints(padding_), ints(padding_));
}

AvgPool2d::AvgPool2d(Size2 window, Size2 stride, Size2 padding) : window_(window), stride_(stride), padding_(padding) {}
Tensor AvgPool2d::forward(Tensor x) const {
  return avg_pool(x, ints(window_), stridesOf(stride_, window_), ints(padding_), ints(padding_));
}

static Axes spatialAxes(const Tensor &x) {
  Ints axes;
  for (int i = 2; i < x.rank(); ++i)
    axes.push_back(i);
  return axes;
}
Tensor GlobalAvgPool::forward(Tensor x) const {
  needRank(x, 3, "GlobalAvgPool");
  return mean(x, spatialAxes(x));
}
Tensor GlobalMaxPool::forward(Tensor x) const {
  needRank(x, 3, "GlobalMaxPool");
  return max(x, spatialAxes(x));
}

// --- The rest
// ------------------------------------------------------------------------------------------------------------
Tensor Flatten::forward(Tensor x) const {
  needRank(x, 1, "Flatten");
  return reshape(x, {x.dim(0), x.dim(0) ? x.size() / x.dim(0) : 0});
}

LayerNorm::LayerNorm(double epsilon)
    : epsilon_(epsilon), scale_(parameter("scale", init::ones())), bias_(parameter("bias", init::zeros())) {}
Tensor LayerNorm::forward(Tensor x) const {
  needRank(x, 1, "LayerNorm");
  const Shape shape{x.dim(-1)};
  return layer_norm(x, scale_.need(shape, x.dtype()), bias_.need(shape, x.dtype()), epsilon_);
}

Dropout::Dropout(double rate)
    : rate_(rate),
      key_(state(
          "key", {}, [](const Shape &, DType, uint64_t seed) { return tensor(static_cast<int64_t>(seed >> 1)); },
          i64)) {
  if (!(rate >= 0 && rate < 1))
    throw Error("Dropout: the rate must be in [0, 1), not " + std::to_string(rate));
}
Tensor Dropout::forward(Tensor x) const {
  if (!training() || rate_ == 0)
    return x;
  Tensor key = key_.need({}, i64).value();
  key_.assign(key + 1);
  Tensor random = random_uniform(key, Ints(x.shape().begin(), x.shape().end()));
  return where(random < rate_, 0.0, x * (1 / (1 - rate_)));
}

Tensor Sequential::forward(Tensor x) const {
  for (const detail::AnyLayer &layer : layers_)
    x = layer(Arg(std::move(x), tressel::detail::callerOf(std::source_location::current())));
  return x;
}

} // namespace tressel::nn
