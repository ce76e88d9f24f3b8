// onnx::Model: a model whose weights are parameters.
#include "frontend/io/Parameters.h"
#include "frontend/onnx/Import.h"
#include "frontend/tensor/Fail.h"
#include "frontend/trace/Replay.h"
#include "ir/graph/Graph.h"
#include "tressel/onnx.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Shutdown.h"

#include <tressel/ops.h>

#include <algorithm>
#include <list>
#include <mutex>

namespace tressel::onnx {

using tressel::detail::fail;
using tressel::detail::Replay;
using tressel::detail::toLoc;

namespace {

/// Imported programs that are kept: an import costs milliseconds, and a program is small.
constexpr size_t kMostPrograms = 64;

/// A context for one import.
class ImportContext {
public:
  ImportContext() : context_(registry(), mlir::MLIRContext::Threading::DISABLED) { context_.loadAllAvailableDialects(); }
  operator mlir::MLIRContext &() { return context_; }

private:
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    graph::registerDialects(registry);
    return registry;
  }
  const runtime::StaticsUse use_;
  mlir::MLIRContext context_;
};

/// A copy of the file's value in memory of its own, as programs update weights in place.
nn::Initializer copyOf(op::HostTensor value) {
  return [value = std::move(value)](const Shape &, DType dtype, uint64_t) {
    const Tensor tensor = tressel::detail::fromBytes(value.data.get(), value.type, std::source_location::current());
    return tensor.dtype() == dtype ? tensor : cast(tensor, dtype);
  };
}

std::string describe(const Input &input) {
  DeclaredValue declared{input.name, input.dtype, {}};
  for (size_t i = 0; i < input.shape.sizes.size(); ++i)
    declared.dims.push_back({input.shape.sizes[i], input.shape.names[i]});
  return declared.type();
}

} // namespace

/// Shared by all copies of a model.
struct Model::Impl {
  Impl(const std::string &path, const LoadOptions &options)
      : file(std::make_shared<const ModelFile>(ModelFile::load(path))), outputs(outputNames(*file, options.outputs)) {
    request.outputs = options.outputs;
    used = inputsFor(*file, options.outputs);
    for (size_t i : used) {
      const DeclaredValue &declared = file->inputs()[i];
      Input input{declared.name, declared.dtype, {}};
      for (const DeclaredDim &dim : declared.dims) {
        input.shape.sizes.push_back(dim.size);
        input.shape.names.push_back(dim.name);
      }
      inputs.push_back(std::move(input));
    }
    request.weights = weightsOf(*file, options.outputs);
    for (const std::string &pattern : options.constants)
      if (std::ranges::none_of(request.weights, [&](const Weight &weight) { return io::matches(pattern, weight.name); }))
        file->fail("no weight has a name like '" + pattern + "', which is to be a constant");
    std::erase_if(request.weights, [&](const Weight &weight) {
      return std::ranges::any_of(options.constants, [&](const std::string &pattern) { return io::matches(pattern, weight.name); });
    });
    for (bool keepDynamic : {false, true})
      settleWeights(keepDynamic);
  }

  /// Makes constants of the weights whose value nodes must know. Other errors for open sizes are left to the sizes of a
  /// call, unless no sizes can fix them.
  void settleWeights(bool keepDynamic) {
    ImportOptions options = request;
    options.keepDynamic = keepDynamic;
    for (;;)
      try {
        ImportContext context;
        import(*file, context, options);
        break;
      } catch (const UnsupportedError &error) {
        const std::vector<size_t> constants = neededAsConstants(*file, options.weights, error.list);
        if (constants.empty() && !keepDynamic)
          throw;
        if (constants.empty())
          break;
        for (auto i = constants.rbegin(); i != constants.rend(); ++i)
          options.weights.erase(options.weights.begin() + static_cast<ptrdiff_t>(*i));
      } catch (const InputError &) {
        break;
      }
    request.weights = std::move(options.weights);
  }

  /// The sizes of open dimensions, by name. Throws ShapeError.
  std::map<std::string, Size> bind(std::span<const Tensor> tensors, const std::source_location &where) const;
  std::shared_ptr<const Replay> programFor(std::span<const Tensor> tensors, const std::source_location &where);

  std::shared_ptr<const ModelFile> file;
  ImportOptions request;
  std::vector<size_t> used; ///< which of the file's inputs this model has
  std::vector<Input> inputs;
  std::vector<std::string> outputs;

  struct Program {
    std::vector<TensorType> types;
    std::shared_ptr<const Replay> replay;
  };
  std::mutex mutex;
  std::list<Program> programs; ///< the latest first; under the mutex
};

std::map<std::string, Size> Model::Impl::bind(std::span<const Tensor> tensors, const std::source_location &where) const {
  std::map<std::string, Size> sizes;
  std::map<std::string, std::string> boundBy;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input &input = inputs[i];
    const Tensor &t = tensors[i];
    auto refuse = [&](const std::string &why, const char *hint) {
      fail<ShapeError>("input '" + input.name + "' of " + file->name() + " is " + describe(input) + ", and " +
                           (t.defined() ? t.type().str() : "an empty tensor") + " was given" + why,
                       toLoc(where), "", hint);
    };
    if (!t.defined() || t.dtype() != input.dtype)
      refuse("", t.defined() ? "convert it with cast() first" : "assign it a value first");
    if (t.rank() != static_cast<int>(input.shape.sizes.size()))
      refuse("", "reshape() it first");
    for (int d = 0; d < t.rank(); ++d) {
      const Size declared = input.shape.sizes[static_cast<size_t>(d)], given = t.type().shape[d];
      if (declared != kDynamic) {
        if (!dim::equal(declared, given))
          refuse("", "export the model with that dimension open (dynamic) to call it with other sizes");
        continue;
      }
      if (given == 0)
        refuse(": sizes are at least 1", "");
      const std::string &name = input.shape.names[static_cast<size_t>(d)];
      const auto [at, isNew] = sizes.try_emplace(name, given);
      if (!isNew && !dim::equal(at->second, given))
        refuse(", but '" + name + "' is " + dim::str(at->second) + " in input '" + boundBy[name] + "'", "");
      boundBy.try_emplace(name, input.name);
    }
  }
  return sizes;
}

std::shared_ptr<const Replay> Model::Impl::programFor(std::span<const Tensor> tensors, const std::source_location &where) {
  ImportOptions options = request;
  options.sizes = bind(tensors, where);
  std::vector<TensorType> types;
  for (const Tensor &t : tensors)
    types.push_back(t.type());
  const std::lock_guard lock(mutex);
  const auto known = std::ranges::find(programs, types, &Program::types);
  if (known != programs.end()) {
    programs.splice(programs.begin(), programs, known);
    return programs.front().replay;
  }
  std::shared_ptr<const Replay> replay;
  try {
    ImportContext context;
    Imported imported = import(*file, context, options);
    replay = std::make_shared<const Replay>(imported.module->lookupSymbol<mlir::func::FuncOp>("main"));
  } catch (const UnsupportedError &error) {
    // needed as constants with these sizes only
    const std::vector<size_t> constants = neededAsConstants(*file, request.weights, error.list);
    std::string names;
    for (size_t i : constants)
      names += (names.empty() ? "" : ", ") + ("'" + request.weights[i].name + "'");
    fail<InputError>(error.message(), toLoc(where), "",
                     names.empty() ? "" : "values of weights must be known there: make constants of " + names + " (onnx::LoadOptions::constants)");
  } catch (const InputError &error) {
    fail<ShapeError>(error.message(), toLoc(where));
  }
  programs.push_front({std::move(types), replay});
  if (programs.size() > kMostPrograms)
    programs.pop_back();
  return replay;
}

Model::Model(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) { addWeights(); }

/// The node that holds a weight, and the weight's name there; creates the groups along the path. Null if the name gives
/// no path of its own.
static std::pair<nn::detail::Node *, std::string> placeFor(nn::detail::Node &root, const std::string &name) {
  auto isHeld = [](const nn::detail::Node &node, const std::string &part) {
    return std::ranges::find(node.held, part, &nn::detail::Node::Held::name) != node.held.end();
  };
  std::vector<std::string> parts{""};
  for (char c : name)
    if (c == '.')
      parts.emplace_back();
    else
      parts.back().push_back(c);
  constexpr size_t kDeepest = 32; // deeper than any real network; walks over modules recurse
  if (std::ranges::find(parts, "") != parts.end() || parts.size() > kDeepest)
    return {};
  nn::detail::Node *node = &root;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    if (isHeld(*node, parts[i]))
      return {};
    const auto child = std::ranges::find(node->children, parts[i], &nn::detail::Node::Child::name);
    if (child != node->children.end()) {
      node = child->node.get();
      continue;
    }
    auto group = std::make_shared<nn::detail::Node>("group");
    group->isGroup = true;
    node->addChild(parts[i], group, {});
    node = group.get();
  }
  if (isHeld(*node, parts.back()) || std::ranges::find(node->children, parts.back(), &nn::detail::Node::Child::name) != node->children.end())
    return {};
  return {node, parts.back()};
}

void Model::addWeights() {
  for (const Weight &weight : impl_->request.weights) {
    auto [node, name] = placeFor(*node_, weight.name);
    for (int k = 1; !node; ++k) {
      std::string flat = weight.name.empty() ? "weight" : weight.name;
      std::ranges::replace(flat, '.', '_');
      std::tie(node, name) = placeFor(*node_, k == 1 ? flat : flat + "_" + std::to_string(k));
    }
    const nn::Initializer init = copyOf(valueOf(*impl_->file, weight));
    nn::Parameter parameter = node->addParameter(name, weight.type.shape, weight.type.dtype, init,
                                                 weight.isStatistic ? nn::Role::Buffer : nn::Role::Parameter);
    parameter.reset(init(weight.type.shape, weight.type.dtype, 0));
    weights_.push_back(std::move(parameter));
  }
}

const std::vector<Input> &Model::inputs() const { return (void)get(), impl_->inputs; }
const std::vector<std::string> &Model::outputs() const { return (void)get(), impl_->outputs; }

Tensor Model::operator()(const Arg &x) const {
  get(x.where());
  if (impl_->inputs.size() != 1 || impl_->outputs.size() != 1)
    fail<Error>(impl_->file->name() + " has " + std::to_string(impl_->inputs.size()) + " inputs and " + std::to_string(impl_->outputs.size()) +
                    " outputs, and is called as if it had one of each",
                toLoc(x.where()), "", "pass a std::vector<Tensor>, and take one");
  return call_at(x.where(), std::vector<Tensor>{x.as_tensor()}).front();
}

/// A recorded program depends on groups not being frozen or moved, as it does for modules that are called.
static void noteGroups(const nn::detail::Node &node) {
  for (const nn::detail::Node::Child &child : node.children) {
    nn::detail::noteCall(*child.node);
    noteGroups(*child.node);
  }
}

std::vector<Tensor> Model::forward(const std::vector<Tensor> &inputs) const {
  get();
  if (tressel::detail::tracing())
    noteGroups(*node_);
  const std::source_location where = tressel::detail::callerOf({});
  if (inputs.size() != impl_->inputs.size())
    fail<ShapeError>(impl_->file->name() + " has " + std::to_string(impl_->inputs.size()) + " inputs, and " + std::to_string(inputs.size()) +
                         " tensors were given",
                     toLoc(where));
  const std::shared_ptr<const Replay> program = impl_->programFor(inputs, where);
  std::vector<Tensor> arguments(impl_->file->inputs().size());
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments[impl_->used[i]] = inputs[i];
  for (size_t i = 0; i < weights_.size(); ++i) {
    const TensorType &type = impl_->request.weights[i].type;
    Tensor value = weights_[i].value(where);
    if (value.type().shape != type.shape)
      fail<ShapeError>("the weight '" + impl_->request.weights[i].name + "' of " + impl_->file->name() + " is " + type.str() + ", and has become " +
                           value.type().str(),
                       toLoc(where));
    arguments.push_back(value.dtype() == type.dtype ? std::move(value) : cast(Arg(value, where), type.dtype));
  }
  return (*program)(arguments, where);
}

std::tuple<std::vector<Tensor>> Model::placeholders() const { return {std::vector<Tensor>(inputs().size())}; }

Model load(const std::string &path, const LoadOptions &options) { return Model(std::make_shared<Model::Impl>(path, options)); }

} // namespace tressel::onnx
