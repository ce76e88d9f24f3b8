#include "frontend/tensor/Fail.h"

#include <tressel/nn/basic.h>

#include <cmath>

namespace tressel::nn {
namespace detail {

void failNoFunction(const std::string &name, const std::source_location &where) {
  tressel::detail::fail<Error>("the function '" + name + "' of a Sequential is null", tressel::detail::toLoc(where),
                               "add", "leave it out");
}

void needRank(const Tensor &x, int atLeast, const char *layer) {
  if (x.rank() < atLeast)
    tressel::detail::fail<ShapeError>(
        std::string(layer) + " needs an input of at least " + std::to_string(atLeast) + " dimensions, not " +
            x.type().str(),
        tressel::detail::toLoc(tressel::detail::callerOf(std::source_location::current())), layer);
}

Tensor besideChannels(const Tensor &x, const Tensor &vector) {
  std::vector<int64_t> shape(static_cast<size_t>(x.rank() - 1), 1);
  shape[0] = -1;
  return reshape(vector, shape);
}

} // namespace detail
using detail::needRank;
using detail::parameterType;

// --- Dense and embeddings ---
Dense::Dense(int64_t units, Activation activation, DenseOptions options)
    : units_(units), activation_(activation), weight_(parameter("weight", std::move(options.weight_init))) {
  if (units < 1)
    throw Error("Dense: the number of units must be at least 1, not " + std::to_string(units));
  if (options.bias)
    bias_ = parameter("bias", std::move(options.bias_init));
}

Tensor Dense::forward(Tensor x) const {
  needRank(x, 1, "Dense");
  const DType dtype = parameterType(x);
  Tensor y = matmul(x, weight_.need({x.dim(-1), units_}, dtype));
  if (bias_)
    y = y + bias_->need({units_}, dtype);
  return activation_ ? activation_(std::move(y)) : y;
}

Embedding::Embedding(int64_t count, int64_t width, Initializer weight_init)
    : weight_(parameter("weight", {count, width}, std::move(weight_init))) {
  if (count < 1 || width < 1)
    throw Error("Embedding: count and width must be at least 1");
}
Tensor Embedding::forward(Tensor x) const { return take(weight_, x, 0); }

PositionalEmbedding::PositionalEmbedding(int64_t max_length, Initializer weight_init)
    : max_length_(max_length), weight_(parameter("weight", std::move(weight_init))) {
  if (max_length < 1)
    throw Error("PositionalEmbedding: the number of positions must be at least 1");
}
Tensor PositionalEmbedding::rowsFor(const Tensor &x) const {
  needRank(x, 2, "PositionalEmbedding");
  const int64_t length = x.dim(-2), width = x.dim(-1);
  if (length > max_length_)
    tressel::detail::fail<ShapeError>(
        "there are rows for " + std::to_string(max_length_) + " positions, but the input " + x.type().str() + " has " +
            std::to_string(length),
        tressel::detail::toLoc(tressel::detail::callerOf(std::source_location::current())), "PositionalEmbedding");
  return weight_.need({max_length_, width}, parameterType(x)).value();
}
Tensor PositionalEmbedding::forward(Tensor x) const {
  const Tensor rows = rowsFor(x);
  return x + (x.dim(-2) == max_length_ ? rows : slice(rows, {0, 0}, {x.dim(-2), x.dim(-1)}));
}
Tensor PositionalEmbedding::forward_at(Tensor x, Tensor first) const {
  return x + dynamic_slice(rowsFor(x), stack({first, zeros({}, i64)}), {x.dim(-2), x.dim(-1)});
}

Tensor sinusoidal_positions(int64_t length, int64_t width, DType dtype) {
  if (length < 0 || width < 1 || !isFloat(dtype))
    throw ShapeError(
        "sinusoidal_positions: the length must not be negative, the width at least 1, and the type a float");
  std::vector<double> values(static_cast<size_t>(length * width));
  for (int64_t p = 0; p < length; ++p)
    for (int64_t c = 0; c < width; ++c) {
      const double angle =
          static_cast<double>(p) * std::pow(10000.0, -static_cast<double>(c / 2 * 2) / static_cast<double>(width));
      values[static_cast<size_t>(p * width + c)] = c % 2 ? std::cos(angle) : std::sin(angle);
    }
  return cast(from_span(values, {length, width}), dtype);
}

// --- Dropout ---
Dropout::Dropout(double rate, std::vector<int64_t> broadcast_axes)
    : rate_(rate), axes_(std::move(broadcast_axes)),
      key_(state(
          "key", {}, [](const Shape &, DType, uint64_t seed) { return tensor(static_cast<int64_t>(seed >> 1)); },
          i64)) {
  if (!(rate >= 0 && rate < 1))
    throw Error("Dropout: the rate must be in [0, 1), not " + std::to_string(rate));
}
Tensor Dropout::forward(Tensor x) const {
  if (!training() || rate_ == 0)
    return x;
  std::vector<Size> shape(x.type().shape.begin(), x.type().shape.end());
  for (int64_t axis : axes_) {
    if (axis < 0 || axis >= x.rank())
      tressel::detail::fail<ShapeError>(
          "there is no dimension " + std::to_string(axis) + " in " + x.type().str(),
          tressel::detail::toLoc(tressel::detail::callerOf(std::source_location::current())), "Dropout");
    shape[static_cast<size_t>(axis)] = 1;
  }
  Tensor key = key_.need({}, i64).value();
  key_.assign(key + 1);
  return where(random_uniform(key, shape) < rate_, 0.0, x * (1 / (1 - rate_)));
}

// --- Shapes and functions ---
Tensor Flatten::forward(Tensor x) const {
  needRank(x, 1, "Flatten");
  return flatten(x, start_);
}

PRelu::PRelu(bool per_channel, double first)
    : perChannel_(per_channel), slope_(parameter("slope", init::constant(first))) {}
Tensor PRelu::forward(Tensor x) const {
  if (perChannel_)
    needRank(x, 2, "PRelu");
  const Tensor slope = slope_.need({perChannel_ ? int64_t(x.dim(1)) : 1}, parameterType(x)).value();
  return where(x > 0, x, x * (perChannel_ ? detail::besideChannels(x, slope) : slope));
}
Tensor LeakyRelu::forward(Tensor x) const { return leaky_relu(x, slope_); }
Tensor Elu::forward(Tensor x) const { return elu(x, alpha_); }
Tensor Softmax::forward(Tensor x) const { return softmax(x, axis_); }

Lambda::Lambda(std::function<Tensor(Tensor)> fn) : fn_(std::move(fn)) {
  if (!fn_)
    throw Error("Lambda: there is no function, or it was moved from");
}

Sequential::Sequential(const Sequential &o)
    : Module(o), layers_(detail::cloning() && o.layers_ ? std::make_shared<std::vector<detail::AnyLayer>>(*o.layers_)
                                                        : o.layers_) {}

Tensor Sequential::forward(Tensor x) const {
  const std::source_location where = tressel::detail::callerOf(std::source_location::current());
  for (const detail::AnyLayer &layer : layers(where))
    x = layer(Arg(std::move(x), where));
  return x;
}

} // namespace tressel::nn
