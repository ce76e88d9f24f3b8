// Normalization. Statistics are computed in f32 for f16 and bf16.
#pragma once

#include <tressel/nn/basic.h>

namespace tressel::nn {

struct BatchNormOptions {
  double epsilon = 1e-5;
  /// The share of the newest batch in the running statistics: running = (1 - momentum) * running + momentum * batch.
  double momentum = 0.1;
  bool affine = true; ///< with scale and bias
};
/// Each channel (dimension 1) normalized over all other dimensions, times scale, plus bias: [batch, channels, ...]. In
/// training with the batch's mean and variance, which also move the running ones; otherwise, and when frozen, with the
/// running ones. Parameters: scale, bias [channels]. Buffers: running_mean, running_var [channels], in f32 unless x is
/// f64; running_var takes the batch's variance over n - 1 elements, as elsewhere.
class BatchNorm : public Module<BatchNorm> {
public:
  static constexpr bool kLibrary = true;
  explicit BatchNorm(BatchNormOptions options = {});
  Tensor forward(Tensor x) const;

private:
  Tensor normalizeBatch(const Tensor &x, const Tensor &scale, const Tensor &bias) const;
  BatchNormOptions options_;
  std::optional<Parameter> scale_, bias_;
  Parameter mean_, variance_;
};

struct LayerNormOptions {
  double epsilon = 1e-5;
  int axes = 1; ///< how many last dimensions are normalized together
  bool affine = true;
};
/// The last dimensions normalized together. Parameters: scale, bias, of those dimensions' shape.
class LayerNorm : public Module<LayerNorm> {
public:
  static constexpr bool kLibrary = true;
  explicit LayerNorm(double epsilon = 1e-5);
  explicit LayerNorm(LayerNormOptions options);
  Tensor forward(Tensor x) const;

private:
  LayerNormOptions options_;
  std::optional<Parameter> scale_, bias_;
};

/// x / sqrt(mean(x^2) + epsilon) * scale over the last dimension. Parameter: scale.
class RMSNorm : public Module<RMSNorm> {
public:
  static constexpr bool kLibrary = true;
  explicit RMSNorm(double epsilon = 1e-6);
  Tensor forward(Tensor x) const;

private:
  double epsilon_;
  Parameter scale_;
};

struct GroupNormOptions {
  double epsilon = 1e-5;
  bool affine = true;
};
/// Channels (dimension 1) in `groups` groups; each group of each example normalized together. Parameters: scale, bias
/// [channels].
class GroupNorm : public Module<GroupNorm> {
public:
  static constexpr bool kLibrary = true;
  explicit GroupNorm(int64_t groups, GroupNormOptions options = {});
  Tensor forward(Tensor x) const;

private:
  int64_t groups_;
  GroupNormOptions options_;
  std::optional<Parameter> scale_, bias_;
};

/// Each channel of each example normalized alone. Parameters, if affine: scale, bias [channels].
class InstanceNorm : public Module<InstanceNorm> {
public:
  static constexpr bool kLibrary = true;
  explicit InstanceNorm(GroupNormOptions options = {.affine = false});
  Tensor forward(Tensor x) const;

private:
  GroupNormOptions options_;
  std::optional<Parameter> scale_, bias_;
};

} // namespace tressel::nn
