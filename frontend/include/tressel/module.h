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
//   net.hybridize();               // from now on: recorded once per kind of call, compiled, cached
//
// A module is a handle: copies share parameters, children and programs; clone() copies them. const is shallow. One that
// was moved from throws Error, whatever is asked of it, and so does building a module that would be part of itself.
//
// The class in Module<> is the deriving one: `struct B : nn::Module<A>` does not compile ("inaccessible default
// constructor"), as it would run A's forward. A template between the two passes itself, and lets only D make it:
//   template <typename D> class Layer : public nn::Module<D> { friend D; Layer() : nn::Module<D>(this) {} };
//
// Parameters are named by their path ("head.weight"), and their initial values depend on the seed and that path alone.
// Building modules is for one thread at a time; calling a compiled one is not.
#pragma once

#include <tressel/init.h>
#include <tressel/io.h>
#include <tressel/jit.h>
#include <tressel/machine.h>
#include <tressel/variable.h>

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

namespace tressel::nn {

class ModuleHandle;

namespace detail {
struct Node;
struct ParameterImpl;
/// While one is alive, copying a module copies its contents.
class CloneScope {
public:
  CloneScope();
  ~CloneScope();
  CloneScope(const CloneScope &) = delete;
  CloneScope &operator=(const CloneScope &) = delete;
};
/// Whether this thread has one.
bool cloning();
/// The node itself, or its copy in a CloneScope.
std::shared_ptr<Node> share(const std::shared_ptr<Node> &node);
std::shared_ptr<tressel::detail::VariableImpl> share(const std::shared_ptr<tressel::detail::VariableImpl> &variable);
} // namespace detail

/// The purpose of a module's Variable.
enum class Role : uint8_t {
  Parameter, ///< learned; in files of weights
  Buffer,    ///< not learned, but in files of weights: a running mean
  State,     ///< not learned, in files of the whole state only: a counter, the key of random numbers
};

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
  /// Replaces the value, by any type and shape: compiled programs that use it are made anew.
  void reset(const Tensor &value) const;
  /// Sets the type of values that are still to be made.
  void fix_type(DType dtype) const;

private:
  friend struct detail::Node;
  explicit Parameter(std::shared_ptr<detail::ParameterImpl> impl);
  detail::ParameterImpl &parameter() const;
};

using NamedParameters = std::vector<std::pair<std::string, Variable>>;

namespace detail {

/// Stands in for a module that was replaced: calls the new one's forward.
struct Replacement {
  std::shared_ptr<Node> node;
  /// std::function<R(const std::source_location &, const P &...)>, one for each number of arguments that forward takes.
  std::vector<std::any> forwards;
};

/// The state that all handles of a module share.
struct Node final : tressel::detail::ScopeOwner, std::enable_shared_from_this<Node> {
  struct Child {
    std::string name;
    std::shared_ptr<Node> node;
    std::shared_ptr<Node> declared;           ///< the original child, if it was replaced
    std::shared_ptr<Replacement> replacement; ///< of `declared`
  };
  struct Held {
    std::string name;
    Role role;
    Parameter parameter;
  };
  std::vector<Child> children;
  std::vector<Held> held;
  std::string type; ///< the class
  std::string path; ///< with a '.' at the end, where `rootSeed` was given
  std::optional<uint64_t> rootSeed;
  bool frozen = false;
  bool isGroup = false; ///< only groups its children, and is never called, so it cannot be replaced
  std::shared_ptr<tressel::detail::JitCore> hybrid;
  /// Counts changes that invalidate the programs in which the module was recorded.
  std::shared_ptr<std::atomic<uint64_t>> structure = std::make_shared<std::atomic<uint64_t>>(0);
  std::weak_ptr<Replacement> replacedBy;
  std::atomic<bool> replaced{false};

  explicit Node(std::string typeName);
  ~Node() override;
  std::string typeName() const override { return type; }
  std::string nameOf(const ScopeOwner &child) const override;

  /// Throws Error when the name is taken, there is no child (its handle was moved from), or the child has this node
  /// below it.
  void addChild(const std::string &name, std::shared_ptr<Node> child, const std::source_location &where);
  /// Whether `node` is this one or below.
  bool holds(const Node &node) const;
  Parameter addParameter(const std::string &name, std::optional<Shape> shape, DType dtype, Initializer init, Role role);
  void collect(const std::string &prefix, NamedParameters &out, std::span<const Role> roles) const;
  /// Null when there is none. "" is the module itself.
  std::shared_ptr<Node> find(const std::string &path);
  void replace(const std::string &path, std::shared_ptr<Replacement> replacement, const std::source_location &where);
  /// Sets seeds and first values of everything below, or only of what has neither. Paths begin with `path`.
  void seed(uint64_t seed, const std::string &path = "", bool onlyMissing = false);
  void hybridize(JitOptions options);
  void changed() const;
  /// The module to call instead of this one; null if it was not replaced, or if the replacement itself calls it.
  std::shared_ptr<Replacement> substitute() const;
};

/// While a replacement runs, it can call the module that it replaced.
class ReplacementScope {
public:
  explicit ReplacementScope(const Node &replaced);
  ~ReplacementScope();
  ReplacementScope(const ReplacementScope &) = delete;
  ReplacementScope &operator=(const ReplacementScope &) = delete;
};

[[noreturn]] void failNotHybrid(const char *what, const std::source_location &where);
[[noreturn]] void failReplacement(const Node &node, const Replacement &replacement, const std::source_location &where);
/// Tells this thread's recorder, if any, of a call of the module, or of its result.
void noteCall(const Node &node);
void noteResult(const Node &node, std::vector<Tensor> results);
/// A class's name as users write it.
std::string readableName(const std::type_info &type);

/// Runs `forward` on tensors that have a type only, to find the shapes of parameters.
void inferParameters(std::span<const TensorSpec> inputs, tressel::detail::TraceBody &body,
                     const std::source_location &where);
/// The same under a given recorder of the library's, for the function `op`.
void inferUnder(tressel::detail::InferRecorder &recorder, std::span<const TensorSpec> inputs,
                tressel::detail::TraceBody &body, const char *op, const std::source_location &where);
std::string summarize(Node &node, std::span<const TensorSpec> inputs, tressel::detail::TraceBody &body,
                      const std::source_location &where);

/// The tensors of a tree, in order.
template <typename T> std::vector<Tensor> tensorsOf(const T &tree) {
  struct Collect {
    std::vector<Tensor> tensors;
    void tensor(const Tensor &t) { tensors.push_back(t); }
    void word(uint64_t) {}
  } collect;
  tressel::detail::visitTree(tree, collect);
  return std::move(collect.tensors);
}

/// The class's own `static std::string type_name()`, or the name in the source.
template <typename D> std::string typeNameOf() {
  if constexpr (requires { D::type_name(); })
    return D::type_name();
  else
    return readableName(typeid(D));
}

template <typename D> std::shared_ptr<Node> nodeOf() { return std::make_shared<Node>(typeNameOf<D>()); }

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
    tressel::detail::LocationScope scope(where_, IsLibrary<D>, module_.node().get());
    noteCall(*module_.node());
    std::tuple<P...> args = args_;
    size_t next = 0;
    auto take = [&](const Tensor &) -> Tensor { return ::tressel::detail::inputAt(inputs, next++); };
    tressel::detail::mapTree(args, take);
    ::tressel::detail::checkInputsUsed(inputs, next);
    auto result = std::make_shared<R>(std::apply([&](const auto &...a) { return module_.forward(a...); }, args));
    std::vector<Tensor> tensors = tensorsOf(std::as_const(*result));
    noteResult(*module_.node(), tensors);
    if (prototype)
      *prototype = result;
    return tensors;
  }

  size_t argumentOf(bool tensor, size_t index) const override {
    return tressel::detail::argumentOf(args_, tensor, index);
  }

private:
  const D &module_;
  std::source_location where_;
  std::tuple<const P &...> args_;
};

/// A call with the first arguments of those that a forward declares.
template <typename R, typename Parameters, typename Indices> struct ForwardCall;
template <typename R, typename Parameters, size_t... I> struct ForwardCall<R, Parameters, std::index_sequence<I...>> {
  template <size_t N> using Type = std::tuple_element_t<N, Parameters>;
  using Function = std::function<R(const std::source_location &, const Type<I> &...)>;
  template <typename... P> static R call(const Function &fn, const std::source_location &where, const P &...args) {
    return fn(where, Type<I>(args)...);
  }
  template <typename L> static void collect(const L &module, std::vector<std::any> &forwards) {
    if constexpr (requires(const Type<I> &...args) { module.forward(args...); })
      forwards.push_back(Function([module](const std::source_location &where, const Type<I> &...args) {
        return module.call_at(where, args...);
      }));
  }
};
/// A module's forward with every number of arguments that it can be called with.
template <typename L> void collectForwards(const L &module, std::vector<std::any> &forwards) {
  using S = tressel::detail::Signature<decltype(&L::forward)>;
  using Parameters = typename S::Parameters;
  [&]<size_t... N>(std::index_sequence<N...>) {
    (ForwardCall<typename S::Result, Parameters, std::make_index_sequence<N + 1>>::collect(module, forwards), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Parameters>>());
}

template <typename D, typename R, typename Parameters> struct BodyFor;
template <typename D, typename R, typename... P> struct BodyFor<D, R, std::tuple<P...>> {
  using Type = ForwardBody<D, R, P...>;
};

} // namespace detail

/// Any module, whatever its class: its place in a tree of modules and what it holds. `net["encoder.0"]` is one.
class ModuleHandle {
public:
  explicit ModuleHandle(std::shared_ptr<detail::Node> node) : node_(std::move(node)) {}
  ModuleHandle(const ModuleHandle &o) : node_(detail::share(o.node_)) {}
  ModuleHandle(ModuleHandle &&) noexcept = default;
  ModuleHandle &operator=(const ModuleHandle &) = default;
  ModuleHandle &operator=(ModuleHandle &&) noexcept = default;
  /// Virtual so that deriving classes are no aggregates: `Net{}` then runs their own constructor, which alone may call
  /// that of Module<Net>.
  virtual ~ModuleHandle() = default;

  /// The class, without namespaces of the library: "Dense".
  const std::string &type_name() const { return get().type; }
  /// Those declared in it, by name, in order.
  std::vector<std::pair<std::string, ModuleHandle>> children() const;
  /// The module at a path as parameters have it: "encoder.0.head". Throws Error that lists the children when there is
  /// none.
  ModuleHandle operator[](const std::string &path) const;
  bool contains(const std::string &path) const { return get().find(path) != nullptr; }
  /// Calls fn with every module of the tree and its path, parents first, this one ("") to begin with.
  void apply(const std::function<void(const std::string &path, const ModuleHandle &module)> &fn) const;

  /// The parameters, by path, in the order of declaration.
  NamedParameters parameters() const;
  /// Variables that are not trained but belong to the weights: running statistics.
  NamedParameters buffers() const;
  /// All other Variables that a call may change: the keys of random numbers.
  NamedParameters states() const;
  /// Elements of all parameters that have a value.
  int64_t parameter_count() const;

  /// Parameters of this module and below are no longer trained (or are again), and normalization uses its running
  /// statistics unchanged, in training too.
  void freeze(bool frozen = true) const;
  bool frozen() const { return get().frozen; }
  /// Converts all parameters to a float type, and those that have no value yet get it in that type. Buffers and states
  /// keep theirs.
  void to(DType dtype, std::source_location where = std::source_location::current()) const;

  /// Ops of this module, and of those below that are not placed themselves, are computed on the device (machine.h) in
  /// compiled programs. Their Variables move there for good (Variable::on), also those that have no value yet. Programs
  /// with the module are compiled anew. Throws Error when the machine has no such device and a Variable has a value.
  void on(Device device, std::source_location where = std::source_location::current()) const;

  /// The module's Variables are on several accelerators at once (Variable::on); its ops are placed by the compiler, or
  /// run on all of these in a program with a mesh. A list of one device is no exception: on(gpu(0)) computes on gpu0,
  /// on({gpu(0)}) leaves placement to the compiler.
  void on(const std::vector<Device> &devices, std::source_location where = std::source_location::current()) const;

  /// Ops of this module, and of those below that have no other stage, belong to this stage of a pipeline (StageScope).
  /// With `devices`, those that compute the stage, its Variables move there, as by on(). Programs with the module are
  /// compiled anew.
  void stage(int number, const std::vector<Device> &devices = {},
             std::source_location where = std::source_location::current()) const;

  /// Puts another module at the path. Calls of the old one through this tree, also as a member, are calls of the new
  /// one from now on. The new one may hold the old one and call it. Both must have the same arguments and results.
  /// Compiled programs are made anew. Throws Error when there is no such path, and when the new module contains the
  /// place that it is put into.
  template <typename L>
  void replace(const std::string &path, const L &module,
               std::source_location where = std::source_location::current()) const;

  /// Reads parameters and buffers by name. With `strict` (the default), names that are missing, unexpected or of
  /// another type throw one InputError that lists all of them; otherwise the report does.
  LoadReport load_weights(const std::string &path, const LoadOptions &options = {},
                          std::source_location where = std::source_location::current()) const;
  void save_weights(const std::string &path, std::source_location where = std::source_location::current()) const;
  /// Parameters, buffers, states, and the process's random state, so that training resumes as if it had not stopped.
  /// Loading needs the same network, and otherwise throws one InputError with all differences.
  void save_state(const std::string &path, std::source_location where = std::source_location::current()) const;
  void load_state(const std::string &path, std::source_location where = std::source_location::current()) const;

  /// For the library. Null in a handle that was moved from.
  const std::shared_ptr<detail::Node> &node() const { return node_; }

protected:
  detail::Node &get(const std::source_location &where = {}) const {
    if (!node_) [[unlikely]]
      tressel::detail::failMoved("module", where);
    return *node_;
  }
  std::shared_ptr<detail::Node> node_;
};

/// D is the deriving class, with `forward(trees...) const`.
template <typename D> class Module : public ModuleHandle {
public:
  /// Calls forward, or the compiled program of a hybridized module. Ops inside a layer of the library belong to the
  /// caller's line.
  template <typename S = D>
  requires requires(const S &m, Tensor t) { m.forward(t); }
  auto operator()(Arg x) const { return call_at(x.where(), x.as_tensor()); }
  /// The same for a tensor as it is: no copy of the handle is made.
  template <typename S = D>
  requires requires(const S &m, Tensor t) { m.forward(t); }
  auto operator()(const Tensor &x, std::source_location where = std::source_location::current()) const {
    return call_at(where, x);
  }
  /// Other arguments than one tensor: trees.
  template <typename... A>
  requires(sizeof...(A) != 1 || !(std::is_convertible_v<A, Arg> && ...)) auto operator()(const A &...args) const {
    return call_at(std::source_location(), args...);
  }
  /// The same, on behalf of the line `where`.
  template <typename... A> auto call_at(const std::source_location &where, const A &...args) const {
    using R = decltype(self().forward(args...));
    return invoke<R>(where, args...);
  }

  /// Gives all parameters their first values; shapes are found by running forward on types alone. Throws Error if the
  /// shape of a parameter depends on a named size.
  void initialize(const std::vector<TensorSpec> &inputs, uint64_t seed,
                  std::source_location where = std::source_location::current()) const {
    have(where).seed(seed);
    withBody(where, [&](auto &body, const auto &) { detail::inferParameters(inputs, body, where); });
  }
  /// The first call makes the values; it must not be compiled.
  void initialize(uint64_t seed, std::source_location where = std::source_location::current()) const {
    have(where).seed(seed);
  }
  /// A table of all modules: path, class, type of the result for such inputs, and number of parameters. The module must
  /// be initialized.
  std::string summary(const std::vector<TensorSpec> &inputs,
                      std::source_location where = std::source_location::current()) const {
    std::string table;
    withBody(where, [&](auto &body, const auto &) { table = detail::summarize(*node_, inputs, body, where); });
    return table;
  }

  /// From now on calls are recorded, compiled and cached. Can be repeated with other options.
  void hybridize(JitOptions options = {}, std::source_location where = std::source_location::current()) const {
    have(where).hybridize(std::move(options));
  }
  /// Compiles ahead of the first call, for all sizes of named dimensions: net.compile({{f32, {"batch", 784}}}). The
  /// module must be hybridized and initialized.
  void compile(const std::vector<TensorSpec> &inputs,
               std::source_location where = std::source_location::current()) const {
    withBody(where, [&](auto &body, const auto &defaults) {
      tressel::detail::CallArgs call;
      std::apply([&](const auto &...args) { (tressel::detail::visitTree(args, call), ...); }, defaults);
      hybrid("compile", where).compile(inputs, call.words(), body, where);
    });
  }
  /// Of a hybridized module.
  JitStats stats(std::source_location where = std::source_location::current()) const {
    return hybrid("stats", where).stats();
  }
  /// Writes a package that runs without the compiler, parameters included. Hybridizing first is not needed.
  void export_package(const std::string &path, const ExportOptions &options,
                      std::source_location where = std::source_location::current()) const {
    PackageBuilder package;
    export_into(package, "main", options, where);
    package.write(path, where);
  }
  /// Adds it to a package under that name, which is written later.
  void export_into(PackageBuilder &package, const std::string &name, const ExportOptions &options,
                   std::source_location where = std::source_location::current()) const {
    withBody(where, [&](auto &body, const auto &) {
      tressel::detail::JitCore({}).exportInto(package, name, options, body, where);
    });
  }

  /// A module of its own with equal values, not hybridized.
  D clone(std::source_location where = std::source_location::current()) const {
    have(where);
    detail::CloneScope scope;
    return self();
  }

protected:
  /// For a template between this class and the one that it is for: see the top of this file.
  template <typename Between> explicit Module(const Between *) : Module() {
    static_assert(std::is_base_of_v<Between, D>, "the class in nn::Module<> is the one that derives from it: write "
                                                 "`struct Net : nn::Module<Net>`");
  }

  /// Declares a child; names are unique in a module and hold no '.'.
  template <typename L>
  L child(const std::string &name, L layer, std::source_location where = std::source_location::current()) {
    have(where).addChild(name, layer.node(), where);
    return layer;
  }
  /// Declares a parameter whose shape forward finds out (Parameter::need).
  Parameter parameter(const std::string &name, Initializer init) {
    return have({}).addParameter(name, {}, f32, std::move(init), Role::Parameter);
  }
  Parameter parameter(const std::string &name, const Shape &shape, Initializer init, DType dtype = f32) {
    return have({}).addParameter(name, shape, dtype, std::move(init), Role::Parameter);
  }
  /// Declares a Variable that is part of the weights but not learned: a running mean.
  Parameter buffer(const std::string &name, Initializer init) {
    return have({}).addParameter(name, {}, f32, std::move(init), Role::Buffer);
  }
  Parameter buffer(const std::string &name, const Shape &shape, Initializer init, DType dtype = f32) {
    return have({}).addParameter(name, shape, dtype, std::move(init), Role::Buffer);
  }
  /// Declares a Variable that is neither: a counter.
  Parameter state(const std::string &name, const Shape &shape, Initializer init, DType dtype = f32) {
    return have({}).addParameter(name, shape, dtype, std::move(init), Role::State);
  }

private:
  friend D; // and no other class: its forward is what is called
  // Compilers print the line with its comment.
  Module() : ModuleHandle(detail::nodeOf<D>()) {} // the class in nn::Module<> is the one that derives from it

  const D &self() const { return static_cast<const D &>(*this); }
  detail::Node &have(const std::source_location &where) const {
    if (!node_) [[unlikely]]
      tressel::detail::failMoved(detail::typeNameOf<D>(), where);
    return *node_;
  }

  /// Calls fn with the body that records forward, over arguments without tensors, and with these.
  template <typename Fn> void withBody(const std::source_location &where, Fn fn) const {
    have(where);
    using S = tressel::detail::Signature<decltype(&D::forward)>;
    typename S::Parameters defaults;
    if constexpr (requires { self().placeholders(); }) // lists are as long as the model says
      defaults = self().placeholders();
    typename detail::BodyFor<D, typename S::Result, typename S::Parameters>::Type body(self(), where, defaults);
    fn(body, defaults);
  }

  tressel::detail::JitCore &hybrid(const char *what, const std::source_location &where) const {
    if (!have(where).hybrid)
      detail::failNotHybrid(what, where);
    return *node_->hybrid;
  }

  template <typename R, typename... P> R invoke(std::source_location where, const P &...args) const {
    if (have(where).replaced.load(std::memory_order_relaxed)) [[unlikely]]
      if (auto replacement = node_->substitute())
        return invokeReplacement<R>(*replacement, where, args...);
    if (!node_->hybrid || tressel::detail::runsOpByOp()) {
      tressel::detail::LocationScope scope(where.line() ? where : tressel::detail::callerOf(where),
                                           detail::IsLibrary<D>, node_.get());
      if (!tressel::detail::tracing())
        return self().forward(args...);
      detail::noteCall(*node_);
      R result = self().forward(args...);
      detail::noteResult(*node_, detail::tensorsOf(std::as_const(result)));
      return result;
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

  template <typename R, typename... P>
  R invokeReplacement(const detail::Replacement &replacement, const std::source_location &where,
                      const P &...args) const {
    detail::ReplacementScope scope(*node_);
    if constexpr (requires { &D::forward; }) { // not overloaded
      using Declared = typename tressel::detail::Signature<decltype(&D::forward)>::Parameters;
      using Call = detail::ForwardCall<R, Declared, std::make_index_sequence<sizeof...(P)>>;
      for (const std::any &forward : replacement.forwards)
        if (const auto *fn = std::any_cast<typename Call::Function>(&forward))
          return Call::call(*fn, where, args...);
    }
    detail::failReplacement(*node_, replacement, where);
  }
};

template <typename L>
void ModuleHandle::replace(const std::string &path, const L &module, std::source_location where) const {
  auto replacement = std::make_shared<detail::Replacement>();
  replacement->node = module.node();
  detail::collectForwards(module, replacement->forwards);
  get(where).replace(path, std::move(replacement), where);
}

} // namespace tressel::nn
