// Dense, embeddings, dropout, activations, and modules in a row. All layers are modules (module.h): handles whose
// copies share parameters.
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

/// A function of one tensor: relu, tanh, sigmoid, gelu, silu, ...; null for none. Wrap ops with further parameters in a
/// lambda.
using Activation = Tensor (*)(Arg);

struct DenseOptions {
  bool bias = true;
  Initializer weight_init = init::xavier_uniform();
  Initializer bias_init = init::zeros();
};
/// activation(x @ weight + bias) over the last dimension: [..., in] to [..., units]. Parameters: weight [in, units],
/// bias [units], of x's type if that is a float, else f32.
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

/// Row x of a table: integers [...] to [..., width]. Parameter: weight [count, width]. An index out of range fails when
/// the op runs.
class Embedding : public Module<Embedding> {
public:
  static constexpr bool kLibrary = true;
  Embedding(int64_t count, int64_t width, Initializer weight_init = init::normal());
  Tensor forward(Tensor x) const;

private:
  Parameter weight_;
};

/// Adds a learned row for each position: [..., length, width] with at most `max_length` positions. Parameter: weight
/// [max_length, width].
class PositionalEmbedding : public Module<PositionalEmbedding> {
public:
  static constexpr bool kLibrary = true;
  explicit PositionalEmbedding(int64_t max_length, Initializer weight_init = init::normal(0.02));
  Tensor forward(Tensor x) const;
  /// For positions from `first` on, an i64 scalar; first + length is at most `max_length`.
  Tensor forward_at(Tensor x, Tensor first) const;

private:
  Tensor rowsFor(const Tensor &x) const;
  int64_t max_length_;
  Parameter weight_;
};
/// The fixed table of Vaswani et al. 2017, [length, width]: sines in the even columns, cosines in the odd ones, with
/// wave lengths from 2 pi to 10000 * 2 pi.
Tensor sinusoidal_positions(int64_t length, int64_t width, DType dtype = f32);

/// In training each element is dropped with probability `rate`, and the others are multiplied by 1 / (1 - rate);
/// otherwise x itself. The random numbers depend on the seed of initialize(), the module's path, the number of calls in
/// training and the element's index, and are the same op by op and compiled. State: key.
class Dropout : public Module<Dropout> {
public:
  static constexpr bool kLibrary = true;
  /// 0 <= rate < 1. `broadcast_axes`: dimensions along which whole lines are dropped together, counted from the front.
  explicit Dropout(double rate, std::vector<int64_t> broadcast_axes = {});
  Tensor forward(Tensor x) const;

private:
  double rate_;
  std::vector<int64_t> axes_;
  Parameter key_; ///< seed of the next call's numbers
};

/// [batch, ...] to [batch, everything else]; `start_axis` is the first dimension that is merged.
class Flatten : public Module<Flatten> {
public:
  static constexpr bool kLibrary = true;
  explicit Flatten(int64_t start_axis = 1) : start_(start_axis) {}
  Tensor forward(Tensor x) const;

private:
  int64_t start_;
};

/// A function of one tensor as a module, where one is needed: for replace(), or a name of its own in a tree.
class Lambda : public Module<Lambda> {
public:
  static constexpr bool kLibrary = true;
  /// Throws Error when there is no function.
  explicit Lambda(std::function<Tensor(Tensor)> fn);
  Tensor forward(Tensor x) const { return fn_(std::move(x)); }

private:
  std::function<Tensor(Tensor)> fn_;
};

namespace detail {
struct ClassName {
  char text[16];
  template <size_t N> constexpr ClassName(const char (&name)[N]) : text{} {
    for (size_t i = 0; i < N; ++i)
      text[i] = name[i];
  }
};
/// An activation as a module.
template <Activation Function, ClassName Name>
class ActivationModule : public Module<ActivationModule<Function, Name>> {
public:
  static constexpr bool kLibrary = true;
  static std::string type_name() { return Name.text; }
  Tensor forward(Tensor x) const { return Function(std::move(x)); }
};
} // namespace detail

/// These functions as modules, for a place in a tree of modules; Sequential takes the functions too.
using Relu = detail::ActivationModule<relu, "Relu">;
using Relu6 = detail::ActivationModule<relu6, "Relu6">;
using Gelu = detail::ActivationModule<gelu, "Gelu">;
using GeluTanh = detail::ActivationModule<gelu_tanh, "GeluTanh">;
using Silu = detail::ActivationModule<silu, "Silu">;
using Mish = detail::ActivationModule<mish, "Mish">;
using HardSwish = detail::ActivationModule<hard_swish, "HardSwish">;
using Selu = detail::ActivationModule<selu, "Selu">;
using Softplus = detail::ActivationModule<softplus, "Softplus">;
using Sigmoid = detail::ActivationModule<sigmoid, "Sigmoid">;
using Tanh = detail::ActivationModule<tanh, "Tanh">;

/// x where it is positive, slope * x elsewhere, with one learned slope, or one per channel (dimension 1). Parameter:
/// slope.
class PRelu : public Module<PRelu> {
public:
  static constexpr bool kLibrary = true;
  explicit PRelu(bool per_channel = false, double first = 0.25);
  Tensor forward(Tensor x) const;

private:
  bool perChannel_;
  Parameter slope_;
};
class LeakyRelu : public Module<LeakyRelu> {
public:
  static constexpr bool kLibrary = true;
  explicit LeakyRelu(double slope = 0.01) : slope_(slope) {}
  Tensor forward(Tensor x) const;

private:
  double slope_;
};
class Elu : public Module<Elu> {
public:
  static constexpr bool kLibrary = true;
  explicit Elu(double alpha = 1) : alpha_(alpha) {}
  Tensor forward(Tensor x) const;

private:
  double alpha_;
};
class Softmax : public Module<Softmax> {
public:
  static constexpr bool kLibrary = true;
  explicit Softmax(int64_t axis = -1) : axis_(axis) {}
  Tensor forward(Tensor x) const;

private:
  int64_t axis_;
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

[[noreturn]] void failNoFunction(const std::string &name, const std::source_location &where);
/// Throws ShapeError for fewer dimensions.
void needRank(const Tensor &x, int atLeast, const char *layer);
/// The type of parameters beside x: its own if that is a float.
inline DType parameterType(const Tensor &x) { return isFloat(x.dtype()) ? x.dtype() : f32; }
/// A vector with one element per channel, beside x with its channels in dimension 1.
Tensor besideChannels(const Tensor &x, const Tensor &vector);
} // namespace detail

/// Layers and functions of one tensor, one after the other. Children are named by their position: "0", "1", ...
class Sequential : public Module<Sequential> {
public:
  static constexpr bool kLibrary = true;
  Sequential() : layers_(std::make_shared<std::vector<detail::AnyLayer>>()) {}
  Sequential(const Sequential &o);
  Sequential(Sequential &&) noexcept = default;
  Sequential &operator=(const Sequential &) = default;
  Sequential &operator=(Sequential &&) noexcept = default;
  template <typename... L>
  requires(sizeof...(L) > 0 && (detail::LayerLike<std::decay_t<L>> && ...) &&
           !(sizeof...(L) == 1 && (std::is_same_v<std::decay_t<L>, Sequential> && ...))) Sequential(L &&...layers)
      : Sequential() {
    (add(std::forward<L>(layers), std::source_location()), ...);
  }
  /// At the end. Copies of this handle have it too. Throws Error for this module itself, one that holds it, and null.
  template <typename L> void add(L &&layer, std::source_location where = std::source_location::current()) {
    using Layer = std::decay_t<L>;
    const std::string name = std::to_string(layers(where).size());
    if constexpr (detail::HasNode<Layer>)
      node()->addChild(name, layer.node(), where);
    else if constexpr (std::is_pointer_v<Layer>)
      if (!layer)
        detail::failNoFunction(name, where);
    layers_->emplace_back(Layer(std::forward<L>(layer)));
    node()->changed();
  }
  void add(Activation function, std::source_location where = std::source_location::current()) {
    add<Activation>(std::move(function), where);
  }
  size_t size(std::source_location where = std::source_location::current()) const { return layers(where).size(); }
  Tensor forward(Tensor x) const;

private:
  std::vector<detail::AnyLayer> &layers(const std::source_location &where) const {
    if (!layers_) [[unlikely]]
      tressel::detail::failMoved("Sequential", where);
    return *layers_;
  }
  std::shared_ptr<std::vector<detail::AnyLayer>> layers_;
};

} // namespace tressel::nn
