// nn::Module: a function of tensors with parameters, children and a compiled form.
//
//   struct Net : nn::Module<Net> {
//     nn::Conv2d conv = child("conv", nn::Conv2d(32, 3));
//     nn::Dense head = child("head", nn::Dense(10));
//     nn::Parameter scale = parameter("scale", {1}, nn::init::ones());
//     Tensor forward(Tensor x) const { return head(reshape(relu(conv(x)), {x.dim(0), -1})) * scale; }
//   };
//   Net net;
//   net.initialize({{f32, {64, 1, 28, 28}}}, /*seed=*/1);   // shapes are inferred: every parameter has its value now
//   Tensor y = net(x);                                      // op by op
//   net.hybridize();                                        // from now on: recorded once per kind of call, compiled,
//   cached
//
// A module is a handle: copies share parameters, children and programs; clone() copies them. const is shallow.
// Parameters are named by their path ("head.weight"), and their initial values depend on the seed and that path alone.
// Building modules is for one thread at a time; calling a compiled one is not.
#pragma once

#include <tressel/io.h>
#include <tressel/jit.h>
#include <tressel/variable.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tressel::nn {

/// Makes a parameter's first value.
using Initializer = std::function<Tensor(const Shape &shape, DType dtype, uint64_t seed)>;

/// Fans: a matrix [in, out] has fan in `in`; a window [out, in, size...] has in times the window's elements.
namespace init {
Initializer zeros();
Initializer ones();
Initializer constant(double value);
Initializer normal(double deviation = 1);
Initializer uniform(double low, double high);
/// Glorot and Bengio 2010: variance 2 / (fan in + fan out).
Initializer xavier_uniform();
Initializer xavier_normal();
/// He et al. 2015: variance 2 / fan in.
Initializer he_uniform();
Initializer he_normal();
} // namespace init

namespace detail {
struct Node;
struct ParameterImpl;
/// While one lives, copying a module copies what it holds.
class CloneScope {
public:
  CloneScope();
  ~CloneScope();
  CloneScope(const CloneScope &) = delete;
  CloneScope &operator=(const CloneScope &) = delete;
};
/// The node itself, or its copy in a CloneScope.
std::shared_ptr<Node> share(const std::shared_ptr<Node> &node);
std::shared_ptr<tressel::detail::VariableImpl> share(const std::shared_ptr<tressel::detail::VariableImpl> &variable);
} // namespace detail

/// A module's Variable, which gets its value when the module is initialized or first called.
class Parameter : public Variable {
public:
  Parameter(const Parameter &o) : Variable(o) { impl_ = detail::share(o.impl_); }
  Parameter(Parameter &&) noexcept = default;
  Parameter &operator=(const Parameter &) = default;
  Parameter &operator=(Parameter &&) noexcept = default;

  /// For layers: a first value of this shape, unless there is one. Throws TraceError in a trace, and Error when the
  /// module was not initialized with a seed.
  const Parameter &need(const Shape &shape, DType dtype = f32) const;

private:
  friend struct detail::Node;
  explicit Parameter(std::shared_ptr<detail::ParameterImpl> impl);
};

using NamedParameters = std::vector<std::pair<std::string, Variable>>;

namespace detail {

/// What all handles of one module share.
struct Node {
  std::vector<std::pair<std::string, std::shared_ptr<Node>>> children;
  std::vector<std::pair<std::string, Parameter>> parameters;
  std::vector<std::pair<std::string, Parameter>> states; ///< kept with the module, but not learned
  std::shared_ptr<tressel::detail::JitCore> hybrid;

  Node();
  ~Node();
  std::shared_ptr<Node> addChild(const std::string &name, std::shared_ptr<Node> child);
  Parameter addParameter(const std::string &name, std::optional<Shape> shape, DType dtype, Initializer init,
                         bool isState);
  void collect(const std::string &prefix, NamedParameters &out, bool states) const;
  void seed(uint64_t seed) const;
  void hybridize(JitOptions options);
};

/// Runs `forward` on tensors that have a type only, so that parameters find their shapes.
void inferParameters(std::span<const TensorSpec> inputs, tressel::detail::TraceBody &body);

template <typename D>
concept IsLibrary = requires {
  requires D::kLibrary;
};

/// A module's forward with its arguments, to be recorded.
template <typename D, typename R, typename... P> class ForwardBody final : public tressel::detail::TraceBody {
public:
  ForwardBody(const D &module, const std::source_location &where, std::tuple<const P &...> args)
      : module_(module), where_(where), args_(args) {}
  std::vector<Tensor> run(std::span<const Tensor> inputs, std::shared_ptr<void> *prototype) override {
    tressel::detail::LocationScope scope(where_, IsLibrary<D>);
    std::tuple<P...> args = args_;
    size_t next = 0;
    auto take = [&](const Tensor &) -> Tensor { return ::tressel::detail::inputAt(inputs, next++); };
    tressel::detail::mapTree(args, take);
    auto result = std::make_shared<R>(std::apply([&](const auto &...a) { return module_.forward(a...); }, args));
    struct Collect {
      std::vector<Tensor> tensors;
      void tensor(const Tensor &t) { tensors.push_back(t); }
      void word(uint64_t) {}
    } collect;
    tressel::detail::visitTree(std::as_const(*result), collect);
    if (prototype)
      *prototype = result;
    return std::move(collect.tensors);
  }

private:
  const D &module_;
  std::source_location where_;
  std::tuple<const P &...> args_;
};

template <typename D, typename R, typename Parameters> struct BodyFor;
template <typename D, typename R, typename... P> struct BodyFor<D, R, std::tuple<P...>> {
  using Type = ForwardBody<D, R, P...>;
};

} // namespace detail

/// D is the deriving class, with `forward(trees...) const`.
template <typename D> class Module {
public:
  Module() : node_(std::make_shared<detail::Node>()) {}
  Module(const Module &o) : node_(detail::share(o.node_)) {}
  Module &operator=(const Module &) = default;

  /// Calls forward, or the compiled program of a hybridized module. Ops inside a layer of the library belong to the
  /// caller's line.
  Tensor operator()(Arg x) const { return invoke<Tensor>(x.where(), x.as_tensor()); }
  /// Other arguments than one tensor: trees.
  template <typename... A>
  requires(sizeof...(A) != 1 || !(std::is_convertible_v<A, Arg> && ...)) auto operator()(const A &...args) const {
    using R = decltype(self().forward(args...));
    return invoke<R>(std::source_location(), args...);
  }

  /// The parameters, by path, in the order of declaration.
  NamedParameters parameters() const {
    NamedParameters all;
    node_->collect("", all, false);
    return all;
  }

  /// Gives all parameters their first values: shapes are found by running forward on types alone. A named size counts
  /// as 1 here: parameters may not depend on it.
  void initialize(const std::vector<TensorSpec> &inputs, uint64_t seed,
                  std::source_location where = std::source_location::current()) const {
    node_->seed(seed);
    withBody(where, [&](auto &body) { detail::inferParameters(inputs, body); });
  }
  /// Values are made by the first call, which must not be compiled.
  void initialize(uint64_t seed) const { node_->seed(seed); }

  /// From now on calls are recorded, compiled and cached. Can be repeated with other options.
  void hybridize(JitOptions options = {}) const { node_->hybridize(std::move(options)); }
  /// Compiles ahead of the first call; the module must be hybridized and initialized.
  void compile(const std::vector<TensorSpec> &inputs,
               std::source_location where = std::source_location::current()) const {
    withBody(where, [&](auto &body) { hybrid("compile").compile(inputs, {}, body, where); });
  }
  /// Of a hybridized module.
  JitStats stats() const { return hybrid("stats").stats(); }
  /// Writes a package that runs without the compiler, parameters included. Hybridizing first is not needed.
  void export_package(const std::string &path, const ExportOptions &options,
                      std::source_location where = std::source_location::current()) const {
    withBody(where, [&](auto &body) { tressel::detail::JitCore({}).exportPackage(path, options, body, where); });
  }

  /// Reads parameters by name. With `strict` (the default) names that are missing, unexpected or of another type throw
  /// InputError that lists all of them; else the report does.
  LoadReport load_weights(const std::string &path, const LoadOptions &options = {},
                          std::source_location where = std::source_location::current()) const {
    return load_parameters(parameters(), path, options, where);
  }
  void save_weights(const std::string &path, std::source_location where = std::source_location::current()) const {
    save_parameters(parameters(), path, where);
  }

  /// A module of its own with equal values, not hybridized.
  D clone() const {
    detail::CloneScope scope;
    return self();
  }

  const std::shared_ptr<detail::Node> &node() const { return node_; }

protected:
  /// Declares a child; names are unique in a module.
  template <typename L> L child(const std::string &name, L layer) {
    node_->addChild(name, layer.node());
    return layer;
  }
  /// Declares a parameter whose shape forward finds out (Parameter::need).
  Parameter parameter(const std::string &name, Initializer init) {
    return node_->addParameter(name, {}, f32, std::move(init), false);
  }
  Parameter parameter(const std::string &name, const Shape &shape, Initializer init, DType dtype = f32) {
    return node_->addParameter(name, shape, dtype, std::move(init), false);
  }
  /// Declares a Variable that is kept with the module but is not a parameter: a counter, a running mean.
  Parameter state(const std::string &name, const Shape &shape, Initializer init, DType dtype = f32) {
    return node_->addParameter(name, shape, dtype, std::move(init), true);
  }

private:
  const D &self() const { return static_cast<const D &>(*this); }

  /// Calls fn with the body that records forward, over arguments without tensors.
  template <typename Fn> void withBody(const std::source_location &where, Fn fn) const {
    using S = tressel::detail::Signature<decltype(&D::forward)>;
    typename S::Parameters defaults;
    typename detail::BodyFor<D, typename S::Result, typename S::Parameters>::Type body(self(), where, defaults);
    fn(body);
  }

  tressel::detail::JitCore &hybrid(const char *what) const {
    if (!node_->hybrid)
      throw Error(std::string(what) + "() needs a hybridized module: call hybridize() first");
    return *node_->hybrid;
  }

  template <typename R, typename... P> R invoke(std::source_location where, const P &...args) const {
    if (!node_->hybrid || tressel::detail::tracing() || tressel::detail::jitDisabled()) {
      tressel::detail::LocationScope scope(where.line() ? where : tressel::detail::callerOf(where),
                                           detail::IsLibrary<D>);
      return self().forward(args...);
    }
    tressel::detail::CallArgs call;
    (tressel::detail::visitTree(args, call), ...);
    detail::ForwardBody<D, R, P...> body(self(), where, std::tie(args...));
    if constexpr (std::is_same_v<R, Tensor>) {
      return node_->hybrid->callOne(call, body, where);
    } else {
      std::vector<Tensor> results;
      auto prototype = node_->hybrid->call(call, body, results, where);
      R out = *static_cast<const R *>(prototype.get());
      size_t next = 0;
      auto take = [&](const Tensor &) -> Tensor { return std::move(results[next++]); };
      tressel::detail::mapTree(out, take);
      return out;
    }
  }

  std::shared_ptr<detail::Node> node_;
};

} // namespace tressel::nn
