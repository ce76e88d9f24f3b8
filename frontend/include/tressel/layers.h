// The layers. All are modules (module.h): handles whose copies share parameters.
#pragma once

#include <tressel/module.h>
#include <tressel/ops.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tressel::nn {

/// A function of one tensor: relu, tanh, sigmoid, gelu, silu, ...; null for none.
using Activation = Tensor (*)(Arg);

/// One size for both dimensions, or {height, width}.
struct Size2 {
  Size2(int64_t both) : height(both), width(both) {}
  Size2(int64_t h, int64_t w) : height(h), width(w) {}
  int64_t height, width;
};

struct DenseOptions {
  bool bias = true;
  Initializer weight_init = init::xavier_uniform();
  Initializer bias_init = init::zeros();
};
/// activation(x @ weight + bias) over the last dimension; weight is [in, units].
class Dense : public Module<Dense> {
public:
  static constexpr bool kLibrary = true;
  explicit Dense(int64_t units, Activation activation = nullptr, DenseOptions options = {});
  Tensor forward(Tensor x) const;

private:
  int64_t units_;
  Activation activation_;
  Parameter weight_;
  std::optional<Parameter> bias_;
};

struct Conv2dOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  Activation activation = nullptr;
  Initializer weight_init = init::he_uniform();
  Initializer bias_init = init::zeros();
};
/// x is [batch, in, height, width], weight [channels, in / groups, kernel height, kernel width].
class Conv2d : public Module<Conv2d> {
public:
  static constexpr bool kLibrary = true;
  Conv2d(int64_t channels, Size2 kernel, Conv2dOptions options = {});
  Tensor forward(Tensor x) const;

private:
  int64_t channels_;
  Size2 kernel_;
  Conv2dOptions options_;
  Parameter weight_;
  std::optional<Parameter> bias_;
};

struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
  Activation activation = nullptr;
  Initializer weight_init = init::he_uniform();
  Initializer bias_init = init::zeros();
};
/// x is [batch, in, length], weight [channels, in / groups, kernel].
class Conv1d : public Module<Conv1d> {
public:
  static constexpr bool kLibrary = true;
  Conv1d(int64_t channels, int64_t kernel, Conv1dOptions options = {});
  Tensor forward(Tensor x) const;

private:
  int64_t channels_, kernel_;
  Conv1dOptions options_;
  Parameter weight_;
  std::optional<Parameter> bias_;
};

/// Pooling over windows; without a stride, windows do not overlap. x is [batch, channels, spatial...].
class MaxPool1d : public Module<MaxPool1d> {
public:
  static constexpr bool kLibrary = true;
  explicit MaxPool1d(int64_t window, int64_t stride = 0, int64_t padding = 0);
  Tensor forward(Tensor x) const;

private:
  int64_t window_, stride_, padding_;
};
class AvgPool1d : public Module<AvgPool1d> {
public:
  static constexpr bool kLibrary = true;
  explicit AvgPool1d(int64_t window, int64_t stride = 0, int64_t padding = 0);
  Tensor forward(Tensor x) const;

private:
  int64_t window_, stride_, padding_;
};
class MaxPool2d : public Module<MaxPool2d> {
public:
  static constexpr bool kLibrary = true;
  explicit MaxPool2d(Size2 window, Size2 stride = 0, Size2 padding = 0);
  Tensor forward(Tensor x) const;

private:
  Size2 window_, stride_, padding_;
};
class AvgPool2d : public Module<AvgPool2d> {
public:
  static constexpr bool kLibrary = true;
  explicit AvgPool2d(Size2 window, Size2 stride = 0, Size2 padding = 0);
  Tensor forward(Tensor x) const;

private:
  Size2 window_, stride_, padding_;
};
/// The mean, or the largest element, over all spatial dimensions: [batch, channels, ...] to [batch, channels].
class GlobalAvgPool : public Module<GlobalAvgPool> {
public:
  static constexpr bool kLibrary = true;
  Tensor forward(Tensor x) const;
};
class GlobalMaxPool : public Module<GlobalMaxPool> {
public:
  static constexpr bool kLibrary = true;
  Tensor forward(Tensor x) const;
};

/// [batch, ...] to [batch, everything else].
class Flatten : public Module<Flatten> {
public:
  static constexpr bool kLibrary = true;
  Tensor forward(Tensor x) const;
};

/// Normalizes the last dimension; parameters "scale" and "bias".
class LayerNorm : public Module<LayerNorm> {
public:
  static constexpr bool kLibrary = true;
  explicit LayerNorm(double epsilon = 1e-5);
  Tensor forward(Tensor x) const;

private:
  double epsilon_;
  Parameter scale_, bias_;
};

/// In training each element is dropped with probability `rate`, and the others grow by 1 / (1 - rate); else x itself.
/// The numbers depend on the seed of initialize(), on the module's path, on how often it was called in training and on
/// the element's index, and are the same op by op and compiled.
class Dropout : public Module<Dropout> {
public:
  static constexpr bool kLibrary = true;
  explicit Dropout(double rate);
  Tensor forward(Tensor x) const;

private:
  double rate_;
  Parameter key_; ///< seed of the next call's numbers
};

namespace detail {
/// Any layer, copied with its module.
class AnyLayer {
public:
  template <typename L> explicit AnyLayer(L layer) : held_(std::make_unique<Held<L>>(std::move(layer))) {}
  AnyLayer(const AnyLayer &o) : held_(o.held_->copy()) {}
  AnyLayer(AnyLayer &&) noexcept = default;
  AnyLayer &operator=(AnyLayer o) noexcept {
    std::swap(held_, o.held_);
    return *this;
  }
  Tensor operator()(Arg x) const { return held_->call(std::move(x)); }

private:
  struct Base {
    virtual ~Base() = default;
    virtual Tensor call(Arg x) const = 0;
    virtual std::unique_ptr<Base> copy() const = 0;
  };
  template <typename L> struct Held final : Base {
    explicit Held(L l) : layer(std::move(l)) {}
    Tensor call(Arg x) const override { return layer(std::move(x)); }
    std::unique_ptr<Base> copy() const override { return std::make_unique<Held>(layer); }
    L layer;
  };
  std::unique_ptr<Base> held_;
};

template <typename L>
concept LayerLike = std::is_invocable_r_v<Tensor, const L &, Arg>;
template <typename L>
concept HasNode = requires(const L &l) {
  l.node();
};
} // namespace detail

/// Layers and functions of one tensor, one after the other. Children are named by their position: "0", "1", ...
class Sequential : public Module<Sequential> {
public:
  static constexpr bool kLibrary = true;
  Sequential() = default;
  template <typename... L>
  requires(sizeof...(L) > 0 && (detail::LayerLike<std::decay_t<L>> && ...) &&
           !(sizeof...(L) == 1 && (std::is_same_v<std::decay_t<L>, Sequential> && ...))) Sequential(L &&...layers) {
    (add(std::forward<L>(layers)), ...);
  }
  template <typename L> void add(L &&layer) {
    using Layer = std::decay_t<L>;
    if constexpr (detail::HasNode<Layer>)
      node()->addChild(std::to_string(layers_.size()), layer.node());
    layers_.emplace_back(Layer(std::forward<L>(layer)));
  }
  size_t size() const { return layers_.size(); }
  Tensor forward(Tensor x) const;

private:
  std::vector<detail::AnyLayer> layers_;
};

} // namespace tressel::nn
