#include "frontend/Random.h"
#include "frontend/Record.h"

#include <tressel/module.h>
#include <tressel/random.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace tressel::nn {
namespace detail {

struct ParameterImpl : tressel::detail::VariableImpl {
  Initializer init;
  DType dtype = f32;
  std::optional<Shape> shape;
  std::optional<uint64_t> seed;

  /// Outside of any trace, whatever is being recorded.
  void fill(const Shape &wanted) {
    tressel::detail::RecorderScope outside(nullptr);
    Tensor first = init(wanted, dtype, *seed);
    value = std::move(first);
    version.fetch_add(1, std::memory_order_release);
    tressel::detail::variableEpoch.fetch_add(1, std::memory_order_release);
  }
};

namespace {
/// What was copied so far, by what it was copied from.
struct CloneMap {
  std::unordered_map<const void *, std::shared_ptr<void>> copies;
};
thread_local CloneMap *cloneMap = nullptr;

std::shared_ptr<ParameterImpl> copyOf(const std::shared_ptr<ParameterImpl> &p) {
  auto &copy = cloneMap->copies[p.get()];
  if (!copy) {
    auto made = std::make_shared<ParameterImpl>();
    made->value = p->value; // tensors are values: sharing the elements is not visible
    made->name = p->name;
    made->init = p->init;
    made->dtype = p->dtype;
    made->shape = p->shape;
    made->seed = p->seed;
    copy = made;
  }
  return std::static_pointer_cast<ParameterImpl>(copy);
}
} // namespace

CloneScope::CloneScope() {
  if (cloneMap)
    throw InternalError("a module is cloned while another is");
  cloneMap = new CloneMap;
}
CloneScope::~CloneScope() { delete std::exchange(cloneMap, nullptr); }

std::shared_ptr<tressel::detail::VariableImpl> share(const std::shared_ptr<tressel::detail::VariableImpl> &variable) {
  return cloneMap ? copyOf(std::static_pointer_cast<ParameterImpl>(variable)) : variable;
}

std::shared_ptr<Node> share(const std::shared_ptr<Node> &node) {
  if (!cloneMap)
    return node;
  auto &slot = cloneMap->copies[node.get()];
  if (!slot) {
    auto made = std::make_shared<Node>();
    slot = made; // before the children: a node may be reached twice
    for (const auto &[name, child] : node->children)
      made->children.emplace_back(name, share(child));
    made->parameters = std::vector<std::pair<std::string, Parameter>>(node->parameters);
    made->states = std::vector<std::pair<std::string, Parameter>>(node->states);
    return made;
  }
  return std::static_pointer_cast<Node>(slot);
}

Node::Node() = default;
Node::~Node() = default;

std::shared_ptr<Node> Node::addChild(const std::string &name, std::shared_ptr<Node> child) {
  auto taken = [&](const auto &entry) { return entry.first == name; };
  if (name.empty() || std::ranges::any_of(children, taken) || std::ranges::any_of(parameters, taken))
    throw Error("a module's child needs a name of its own, and '" + name + "' is not");
  children.emplace_back(name, child);
  return child;
}

Parameter Node::addParameter(const std::string &name, std::optional<Shape> shape, DType dtype, Initializer init,
                             bool isState) {
  auto taken = [&](const auto &entry) { return entry.first == name; };
  if (name.empty() || std::ranges::any_of(parameters, taken) || std::ranges::any_of(states, taken))
    throw Error("a module's parameter needs a name of its own, and '" + name + "' is not");
  auto impl = std::make_shared<ParameterImpl>();
  impl->name = name;
  impl->init = std::move(init);
  impl->dtype = dtype;
  impl->shape = std::move(shape);
  Parameter parameter(impl);
  (isState ? states : parameters).emplace_back(name, parameter);
  return parameter;
}

void Node::collect(const std::string &prefix, NamedParameters &out, bool wantStates) const {
  for (const auto &[name, parameter] : wantStates ? states : parameters)
    out.emplace_back(prefix + name, parameter);
  for (const auto &[name, child] : children)
    child->collect(prefix + name + ".", out, wantStates);
}

void Node::seed(uint64_t seed) const {
  for (bool wantStates : {false, true}) {
    NamedParameters all;
    collect("", all, wantStates);
    for (auto &[path, variable] : all) {
      auto &impl = static_cast<ParameterImpl &>(*variable.impl());
      impl.name = path;
      impl.seed = tressel::detail::mixSeed(seed, path);
      if (!impl.shape && impl.value.defined())
        impl.value = Tensor(); // the next call finds its shape anew
      if (impl.shape)
        impl.fill(*impl.shape);
    }
  }
}

void Node::hybridize(JitOptions options) {
  if (options.name == "jit")
    options.name = "module";
  hybrid = std::make_shared<tressel::detail::JitCore>(std::move(options));
}

void inferParameters(std::span<const TensorSpec> inputs, tressel::detail::TraceBody &body) {
  tressel::detail::InferRecorder recorder;
  std::vector<Tensor> tensors;
  for (const TensorSpec &spec : inputs)
    tensors.push_back(recorder.input(spec.type(/*named=*/1), {}));
  tressel::detail::RecorderScope scope(&recorder);
  body.run(tensors, nullptr);
}

} // namespace detail

Parameter::Parameter(std::shared_ptr<detail::ParameterImpl> impl) { impl_ = std::move(impl); }

const Parameter &Parameter::need(const Shape &shape, DType dtype) const {
  if (impl_->value.defined())
    return *this;
  auto &impl = static_cast<detail::ParameterImpl &>(*impl_);
  const auto *scope = tressel::detail::LocationScope::current();
  const SourceLoc where = scope ? tressel::detail::toLoc(scope->where()) : SourceLoc{};
  if (!impl.seed)
    tressel::detail::fail<Error>("the parameter '" + impl.name + "' has no value", where, "",
                                 "call initialize() on the module first");
  const tressel::detail::Recorder *recorder = tressel::detail::Recorder::current();
  if (recorder && !recorder->mayCreateParameters())
    tressel::detail::fail<TraceError>(
        "the parameter '" + impl.name + "' has no value yet, and a compiled function cannot make one", where, "",
        "initialize the module with its input types, or call it once before hybridize()");
  impl.dtype = dtype;
  impl.fill(shape);
  return *this;
}

namespace init {
namespace {

struct Fans {
  double in = 1, out = 1;
};
Fans fansOf(const Shape &shape) {
  if (shape.rank() < 2)
    return {static_cast<double>(shape.numElements()), static_cast<double>(shape.numElements())};
  if (shape.rank() == 2)
    return {static_cast<double>(shape[0]), static_cast<double>(shape[1])};
  double window = 1;
  for (int i = 2; i < shape.rank(); ++i)
    window *= static_cast<double>(shape[i]);
  return {static_cast<double>(shape[1]) * window, static_cast<double>(shape[0]) * window};
}

/// Random values whose deviation depends on the shape.
template <typename Deviation> Initializer scaled(bool isNormal, Deviation deviation) {
  return [=](const Shape &shape, DType dtype, uint64_t seed) {
    const double d = deviation(fansOf(shape));
    const double bound = d * std::sqrt(3.0); // the uniform distribution of that deviation
    return isNormal ? normal(d)(shape, dtype, seed) : rng::uniform(shape, seed, -bound, bound, dtype);
  };
}

double glorot(const Fans &fans) { return std::sqrt(2 / std::max(1.0, fans.in + fans.out)); }
double he(const Fans &fans) { return std::sqrt(2 / std::max(1.0, fans.in)); }

} // namespace

Initializer constant(double value) {
  return [value](const Shape &shape, DType dtype, uint64_t) {
    return tressel::detail::filled(shape, value, dtype, {}, "init");
  };
}
Initializer zeros() { return constant(0); }
Initializer ones() { return constant(1); }
Initializer normal(double deviation) {
  return [deviation](const Shape &shape, DType dtype, uint64_t seed) {
    return rng::normal(shape, seed, 0, deviation, dtype);
  };
}
Initializer uniform(double low, double high) {
  return [=](const Shape &shape, DType dtype, uint64_t seed) { return rng::uniform(shape, seed, low, high, dtype); };
}
Initializer xavier_uniform() { return scaled(false, glorot); }
Initializer xavier_normal() { return scaled(true, glorot); }
Initializer he_uniform() { return scaled(false, he); }
Initializer he_normal() { return scaled(true, he); }

} // namespace init
} // namespace tressel::nn
