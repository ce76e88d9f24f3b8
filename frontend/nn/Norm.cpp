#include "frontend/tensor/Fail.h"

#include <tressel/nn/norm.h>

namespace tressel::nn {
namespace {

using detail::besideChannels;
using detail::needRank;
using detail::parameterType;

DType wideType(const Tensor &x) { return x.dtype() == f64 ? f64 : f32; }

/// The values of scale and bias, or 1 and 0 without them.
std::pair<Tensor, Tensor> affine(const std::optional<Parameter> &scale, const std::optional<Parameter> &bias,
                                 const Shape &shape, DType dtype) {
  if (scale)
    return {scale->need(shape, dtype).value(), bias->need(shape, dtype).value()};
  const std::vector<int64_t> sizes(shape.begin(), shape.end());
  return {full(sizes, 1, dtype), full(sizes, 0, dtype)};
}

} // namespace

BatchNorm::BatchNorm(BatchNormOptions options)
    : options_(options), mean_(buffer("running_mean", init::zeros())), variance_(buffer("running_var", init::ones())) {
  if (options_.affine) {
    scale_ = parameter("scale", init::ones());
    bias_ = parameter("bias", init::zeros());
  }
}

Tensor BatchNorm::normalizeBatch(const Tensor &x, const Tensor &scale, const Tensor &bias) const {
  Dim count = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (i != 1)
      count = count * x.dim(i);
  if (count.is_static() && count < 2)
    tressel::detail::fail<ShapeError>(
        "a batch " + x.type().str() + " has one element per channel, which has no variance",
        tressel::detail::toLoc(tressel::detail::callerOf(std::source_location::current())), "BatchNorm",
        "train with larger batches, or freeze() the module");
  const auto [y, centre, variance] = batch_norm_train(x, scale, bias, options_.epsilon);
  const double share = options_.momentum;
  // max with 1: a batch of dynamic size may have one element, whose variance is then 0.
  const Tensor unbiased =
      count.is_static() ? variance * (static_cast<double>(int64_t(count)) / static_cast<double>(int64_t(count) - 1))
                        : variance * (cast(count, x.dtype()) / cast(max(count - 1, 1), x.dtype()));
  const auto move = [share](const Parameter &running, const Tensor &now) { // the running statistic keeps its type
    running.assign(running.value() * (1 - share) + cast(now * share, running.dtype()));
  };
  move(mean_, centre);
  move(variance_, unbiased);
  return y;
}

Tensor BatchNorm::forward(Tensor x) const {
  needRank(x, 2, "BatchNorm");
  const DType dtype = parameterType(x), wide = wideType(x);
  const Shape channels{x.dim(1)};
  mean_.need(channels, wide);
  variance_.need(channels, wide);
  Tensor y = cast(x, wide);
  if (training() && !frozen()) {
    const auto [scale, bias] = affine(scale_, bias_, channels, dtype);
    return cast(normalizeBatch(y, cast(scale, wide), cast(bias, wide)), dtype);
  }
  const Tensor factor = rsqrt(cast(variance_, wide) + options_.epsilon);
  y = (y - besideChannels(y, cast(mean_, wide))) * besideChannels(y, factor);
  if (scale_)
    y = y * besideChannels(y, cast(scale_->need(channels, dtype), wide)) +
        besideChannels(y, cast(bias_->need(channels, dtype), wide));
  return cast(y, dtype);
}

LayerNorm::LayerNorm(double epsilon) : LayerNorm(LayerNormOptions{.epsilon = epsilon}) {}
LayerNorm::LayerNorm(LayerNormOptions options) : options_(options) {
  if (options_.axes < 1)
    throw Error("LayerNorm: at least one dimension is normalized");
  if (options_.affine) {
    scale_ = parameter("scale", init::ones());
    bias_ = parameter("bias", init::zeros());
  }
}
Tensor LayerNorm::forward(Tensor x) const {
  needRank(x, options_.axes, "LayerNorm");
  Shape shape;
  for (int i = -options_.axes; i < 0; ++i)
    shape.push_back(x.dim(i));
  const DType dtype = parameterType(x);
  const auto [scale, bias] = affine(scale_, bias_, shape, dtype);
  return layer_norm(cast(x, dtype), scale, bias, options_.epsilon);
}

RMSNorm::RMSNorm(double epsilon) : epsilon_(epsilon), scale_(parameter("scale", init::ones())) {}
Tensor RMSNorm::forward(Tensor x) const {
  needRank(x, 1, "RMSNorm");
  const DType dtype = parameterType(x);
  return rms_norm(cast(x, dtype), scale_.need({x.dim(-1)}, dtype), epsilon_);
}

GroupNorm::GroupNorm(int64_t groups, GroupNormOptions options) : groups_(groups), options_(options) {
  if (groups < 1)
    throw Error("GroupNorm: there must be at least 1 group");
  if (options_.affine) {
    scale_ = parameter("scale", init::ones());
    bias_ = parameter("bias", init::zeros());
  }
}
Tensor GroupNorm::forward(Tensor x) const {
  needRank(x, 2, "GroupNorm");
  const DType dtype = parameterType(x);
  const auto [scale, bias] = affine(scale_, bias_, {x.dim(1)}, dtype);
  return group_norm(cast(x, dtype), scale, bias, groups_, options_.epsilon);
}

InstanceNorm::InstanceNorm(GroupNormOptions options) : options_(options) {
  if (options_.affine) {
    scale_ = parameter("scale", init::ones());
    bias_ = parameter("bias", init::zeros());
  }
}
Tensor InstanceNorm::forward(Tensor x) const {
  needRank(x, 3, "InstanceNorm");
  const DType dtype = parameterType(x);
  const auto [scale, bias] = affine(scale_, bias_, {x.dim(1)}, dtype);
  return instance_norm(cast(x, dtype), scale, bias, options_.epsilon);
}

} // namespace tressel::nn
