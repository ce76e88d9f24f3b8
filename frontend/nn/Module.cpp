// Parameters and their first values, and copies of modules.
#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Random.h"
#include "frontend/tensor/Spread.h"
#include "frontend/trace/Recorder.h"

#include <tressel/module.h>

#include <algorithm>
#include <unordered_map>

namespace tressel::nn {
namespace detail {

struct ParameterImpl : tressel::detail::VariableImpl {
  Initializer init;
  DType dtype = f32;
  bool fixedType = false; ///< set by ModuleHandle::to
  std::optional<Shape> shape;
  std::optional<uint64_t> seed;

  /// Computed outside of any trace, also while one is recorded.
  void fill(const Shape &wanted) {
    tressel::detail::RecorderScope outside(nullptr);
    set(init(wanted, dtype, *seed));
  }
};

namespace {
/// Copies made so far, by the original.
struct CloneMap {
  std::unordered_map<const void *, std::shared_ptr<void>> copies;
};
thread_local CloneMap *cloneMap = nullptr;

std::shared_ptr<ParameterImpl> copyOf(const std::shared_ptr<ParameterImpl> &p) {
  auto &copy = cloneMap->copies[p.get()];
  if (!copy) {
    auto made = std::make_shared<ParameterImpl>();
    made->value = p->get({}); // tensors are values: sharing the elements is not visible
    made->home = p->home;
    if (p->spread)
      made->spread = std::make_shared<tressel::detail::Spread>(p->spread->homes);
    made->sharding = p->sharding;
    made->name = p->name;
    made->init = p->init;
    made->dtype = p->dtype;
    made->fixedType = p->fixedType;
    made->frozen = p->frozen.load();
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

bool cloning() { return cloneMap != nullptr; }

std::shared_ptr<tressel::detail::VariableImpl> share(const std::shared_ptr<tressel::detail::VariableImpl> &variable) {
  return cloneMap && variable ? copyOf(std::static_pointer_cast<ParameterImpl>(variable)) : variable;
}

std::shared_ptr<Node> share(const std::shared_ptr<Node> &node) {
  if (!cloneMap || !node)
    return node;
  auto &slot = cloneMap->copies[node.get()];
  if (slot)
    return std::static_pointer_cast<Node>(slot);
  auto made = std::make_shared<Node>(node->type);
  slot = made; // before the children: a shared node may be reached twice
  made->path = node->path;
  made->rootSeed = node->rootSeed;
  made->frozen = node->frozen;
  made->isGroup = node->isGroup;
  made->placed = node->placed;
  made->stage = node->stage;
  made->held = std::vector<Node::Held>(node->held);
  for (const Node::Child &child : node->children) {
    Node::Child copy{child.name, share(child.node), nullptr, nullptr};
    if (child.replacement) {
      copy.declared = share(child.declared);
      copy.replacement = std::make_shared<Replacement>(*child.replacement);
      copy.replacement->node = copy.node;
      copy.declared->replacedBy = copy.replacement;
      copy.declared->replaced = true;
    }
    made->children.push_back(std::move(copy));
  }
  return made;
}

void Node::seed(uint64_t seed, const std::string &newPath, bool onlyMissing) {
  rootSeed = seed;
  path = newPath;
  for (const Held &h : held) {
    auto &impl = static_cast<ParameterImpl &>(*h.parameter.impl());
    if (onlyMissing && (impl.seed || impl.value.defined()))
      continue;
    impl.name = path + h.name;
    impl.seed = tressel::detail::mixSeed(seed, impl.name);
    if (!impl.shape && impl.value.defined())
      impl.value = Tensor(); // the next call finds its shape anew
    if (impl.shape)
      impl.fill(*impl.shape);
  }
  for (const Child &child : children)
    child.node->seed(seed, path + child.name + ".", onlyMissing);
}

Parameter Node::addParameter(const std::string &name, std::optional<Shape> shape, DType dtype, Initializer init,
                             Role role) {
  auto taken = [&](const auto &entry) { return entry.name == name; };
  if (name.empty() || name.find('.') != std::string::npos || std::ranges::any_of(held, taken) ||
      std::ranges::any_of(children, taken))
    throw Error("a module's parameter needs a name of its own without '.', and '" + name + "' is not");
  if (!init)
    throw Error({.message = "the parameter '" + name + "' has no initializer, or one that was moved from",
                 .hint = "nn::init has some, and any function of shape, type and seed will do"});
  auto impl = std::make_shared<ParameterImpl>();
  impl->name = name;
  impl->init = std::move(init);
  impl->dtype = dtype;
  impl->shape = std::move(shape);
  Parameter parameter(impl);
  held.push_back({name, role, parameter});
  return parameter;
}

void Node::hybridize(JitOptions options) {
  if (options.name == "jit")
    options.name = "module";
  hybrid = std::make_shared<tressel::detail::JitCore>(std::move(options));
}

void inferParameters(std::span<const TensorSpec> inputs, tressel::detail::TraceBody &body,
                     const std::source_location &where) {
  tressel::detail::InferRecorder recorder;
  inferUnder(recorder, inputs, body, "initialize", where);
}

void inferUnder(tressel::detail::InferRecorder &recorder, std::span<const TensorSpec> inputs,
                tressel::detail::TraceBody &body, const char *op, const std::source_location &where) {
  std::vector<Tensor> tensors;
  for (const TensorType &type : tressel::detail::typesOf(inputs, op, where))
    tensors.push_back(recorder.input(type, {}));
  tressel::detail::RecorderScope scope(&recorder);
  body.run(tensors, nullptr);
}

} // namespace detail

Parameter::Parameter(std::shared_ptr<detail::ParameterImpl> impl) { impl_ = std::move(impl); }

detail::ParameterImpl &Parameter::parameter() const {
  if (!impl_) [[unlikely]]
    tressel::detail::failMoved("Parameter", tressel::detail::callerOf(std::source_location()));
  return static_cast<detail::ParameterImpl &>(*impl_);
}

const Parameter &Parameter::need(const Shape &shape, DType dtype) const {
  detail::ParameterImpl &impl = parameter();
  if (impl.value.defined())
    return *this;
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
  if (!shape.isStatic())
    tressel::detail::fail<ShapeError>("the parameter '" + impl.name + "' would have the shape " + shape.str() +
                                          ", but parameters have fixed sizes",
                                      where, "", "initialize the module with a number for that dimension");
  if (!impl.fixedType)
    impl.dtype = dtype;
  impl.fill(shape);
  return *this;
}

void Parameter::reset(const Tensor &value) const {
  detail::ParameterImpl &impl = parameter();
  impl.dtype = value.dtype();
  impl.fixedType = true;
  if (impl.shape)
    impl.shape = value.type().shape;
  impl.set(value);
  tressel::detail::structureEpoch.fetch_add(1, std::memory_order_release);
}

void Parameter::fix_type(DType dtype) const {
  detail::ParameterImpl &impl = parameter();
  impl.dtype = dtype;
  impl.fixedType = true;
}

} // namespace tressel::nn
