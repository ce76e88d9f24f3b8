// The tree of modules: paths, contents, changes, and the summary table.
#include "frontend/io/Parameters.h"
#include "frontend/tensor/Convert.h"
#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Machine.h"
#include "frontend/tensor/Make.h"
#include "frontend/trace/Recorder.h"

#include <tressel/checkpoint.h>
#include <tressel/module.h>

#include <algorithm>
#include <array>
#include <cxxabi.h>
#include <map>
#include <set>

namespace tressel::nn {
namespace detail {

std::string readableName(const std::type_info &type) {
  int status = 0;
  std::unique_ptr<char, void (*)(void *)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 ? text.get() : type.name();
  for (std::string_view prefix : {"(anonymous namespace)::", "tressel::nn::"})
    for (size_t at; (at = name.find(prefix)) != std::string::npos;)
      name.erase(at, prefix.size());
  return name;
}

Node::Node(std::string typeName) : type(std::move(typeName)) {}
Node::~Node() = default;

std::string Node::nameOf(const ScopeOwner &child) const {
  for (const Child &c : children)
    if (c.node.get() == &child || c.declared.get() == &child)
      return c.name;
  return {};
}

bool Node::holds(const Node &node) const {
  std::set<const Node *> seen; // shared modules are visited once
  auto look = [&](auto &self, const Node &at) -> bool {
    return &at == &node || (seen.insert(&at).second && std::ranges::any_of(at.children, [&](const Child &child) {
                              return self(self, *child.node);
                            }));
  };
  return look(look, *this);
}

/// Throws: adding `part` below `whole` would make a cycle, as `whole` is `part` or below it.
[[noreturn]] static void failCircle(const Node &part, const Node &whole, const char *op,
                                    const std::source_location &where) {
  tressel::detail::fail<Error>(
      &part == &whole ? "a " + whole.type + " would be part of itself"
                      : "a " + part.type + " that holds the " + whole.type + " would be part of it",
      tressel::detail::toLoc(where), op, "clone() gives a module of its own; repeat calls in forward, not modules");
}

void Node::addChild(const std::string &name, std::shared_ptr<Node> child, const std::source_location &where) {
  const SourceLoc at = tressel::detail::toLoc(where);
  auto taken = [&](const auto &entry) { return entry.name == name; };
  if (name.empty() || name.find('.') != std::string::npos || std::ranges::any_of(children, taken) ||
      std::ranges::any_of(held, taken))
    tressel::detail::fail<Error>("a module's child needs a name of its own without '.', and '" + name + "' is not", at);
  if (!child)
    tressel::detail::failMoved("module, to be the child '" + name + "' of a " + type + ",", where);
  if (child->holds(*this))
    failCircle(*child, *this, "child", where);
  children.push_back({name, std::move(child), nullptr, nullptr});
}

void Node::collect(const std::string &prefix, NamedParameters &out, std::span<const Role> roles) const {
  for (const Held &h : held)
    if (std::ranges::find(roles, h.role) != roles.end())
      out.emplace_back(prefix + h.name, h.parameter);
  for (const Child &child : children)
    child.node->collect(prefix + child.name + ".", out, roles);
}

std::shared_ptr<Node> Node::find(const std::string &path) {
  if (path.empty())
    return shared_from_this();
  const size_t dot = path.find('.');
  for (const Child &child : children)
    if (child.name == path.substr(0, dot))
      return dot == std::string::npos ? child.node : child.node->find(path.substr(dot + 1));
  return nullptr;
}

void Node::changed() const {
  structure->fetch_add(1, std::memory_order_release);
  tressel::detail::structureEpoch.fetch_add(1, std::memory_order_release);
}

void Node::replace(const std::string &path, std::shared_ptr<Replacement> replacement,
                   const std::source_location &where) {
  if (!replacement->node)
    tressel::detail::failMoved("module, to be put at '" + path + "',", where);
  const size_t dot = path.rfind('.');
  const std::shared_ptr<Node> parent = dot == std::string::npos ? shared_from_this() : find(path.substr(0, dot));
  const std::string name = dot == std::string::npos ? path : path.substr(dot + 1);
  auto at = parent ? std::ranges::find(parent->children, name, &Child::name) : children.end();
  if (!parent || at == parent->children.end())
    tressel::detail::fail<Error>("there is no module '" + path + "' to replace in a " + type,
                                 tressel::detail::toLoc(where), "replace");
  if (at->node->isGroup)
    tressel::detail::fail<Error>("'" + path + "' in a " + type + " is a group of weights, which nothing calls",
                                 tressel::detail::toLoc(where), "replace",
                                 "call another module instead, on values from before (onnx::LoadOptions::outputs)");
  if (replacement->node->holds(*parent))
    failCircle(*replacement->node, *parent, "replace", where);
  const std::shared_ptr<Node> declared = at->declared ? at->declared : at->node;
  for (const std::shared_ptr<Node> &node : {parent, declared, at->node})
    node->changed();
  *at = {name, replacement->node, declared, replacement};
  declared->replacedBy = replacement;
  declared->replaced = true;
  if (parent->rootSeed)
    replacement->node->seed(*parent->rootSeed, parent->path + name + ".", /*onlyMissing=*/true);
}

namespace {
/// Modules whose replacements run in this thread.
thread_local std::vector<const Node *> replacedHere;
} // namespace

ReplacementScope::ReplacementScope(const Node &replaced) { replacedHere.push_back(&replaced); }
ReplacementScope::~ReplacementScope() { replacedHere.pop_back(); }

std::shared_ptr<Replacement> Node::substitute() const {
  if (std::ranges::find(replacedHere, this) != replacedHere.end())
    return nullptr;
  return replacedBy.lock();
}

void failNotHybrid(const char *what, const std::source_location &where) {
  tressel::detail::fail<Error>("needs a hybridized module", tressel::detail::toLoc(where), what,
                               "call hybridize() first");
}

void failReplacement(const Node &node, const Replacement &replacement, const std::source_location &where) {
  tressel::detail::fail<Error>("a " + node.type + " was replaced by a " + replacement.node->type +
                                   " whose forward has other arguments or results",
                               tressel::detail::toLoc(tressel::detail::callerOf(where)), "replace",
                               "give the new module the same forward");
}

void noteCall(const Node &node) {
  if (tressel::detail::Recorder *recorder = tressel::detail::Recorder::current())
    recorder->dependOn(node.structure);
}

void noteResult(const Node &node, std::vector<Tensor> results) {
  if (tressel::detail::Recorder *recorder = tressel::detail::Recorder::current())
    recorder->leaveModule(node, results);
}

namespace {

/// Records the result of every module.
class SummaryRecorder final : public tressel::detail::InferRecorder {
public:
  void leaveModule(const tressel::detail::ScopeOwner &module, std::span<const Tensor> tensors) override {
    std::string &text = results[&module];
    text.clear();
    for (const Tensor &t : tensors)
      text += (text.empty() ? "" : ", ") + (t.defined() ? t.type().str() : std::string("-"));
  }
  std::map<const tressel::detail::ScopeOwner *, std::string> results;
};

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string table(const std::vector<std::array<std::string, 4>> &rows) {
  std::array<size_t, 4> widths{};
  for (const auto &row : rows)
    for (size_t i = 0; i < 4; ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto &row : rows) {
    for (size_t i = 0; i < 3; ++i)
      text += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    text += std::string(widths[3] - row[3].size(), ' ') + row[3];
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

} // namespace

std::string summarize(Node &node, std::span<const TensorSpec> inputs, tressel::detail::TraceBody &body,
                      const std::source_location &where) {
  SummaryRecorder recorder;
  inferUnder(recorder, inputs, body, "summary", where);
  std::vector<std::array<std::string, 4>> rows{{"path", "class", "result", "parameters"}};
  int64_t total = 0, frozen = 0;
  std::set<const void *> counted; // a shared Variable counts once
  ModuleHandle(node.shared_from_this()).apply([&](const std::string &path, const ModuleHandle &module) {
    int64_t own = 0;
    for (const Node::Held &h : module.node()->held) {
      if (h.role != Role::Parameter || !h.parameter.defined() || !counted.insert(h.parameter.impl().get()).second)
        continue;
      own += h.parameter.shape().numElements();
      frozen += h.parameter.frozen() ? h.parameter.shape().numElements() : 0;
    }
    total += own;
    const auto result = recorder.results.find(module.node().get());
    rows.push_back({path, module.type_name(), result == recorder.results.end() ? "not called" : result->second,
                    own ? grouped(own) : ""});
  });
  return table(rows) + grouped(total) + " parameters" + (frozen ? ", " + grouped(frozen) + " of them frozen" : "") +
         "\n";
}

} // namespace detail

std::vector<std::pair<std::string, ModuleHandle>> ModuleHandle::children() const {
  std::vector<std::pair<std::string, ModuleHandle>> all;
  for (const detail::Node::Child &child : get().children)
    all.emplace_back(child.name, ModuleHandle(child.node));
  return all;
}

ModuleHandle ModuleHandle::operator[](const std::string &path) const {
  if (std::shared_ptr<detail::Node> found = get().find(path))
    return ModuleHandle(std::move(found));
  std::string names;
  for (const detail::Node::Child &child : node_->children)
    names += (names.empty() ? "" : ", ") + child.name;
  throw Error({"there is no module '" + path + "' in a " + type_name(),
               {},
               {},
               names.empty() ? "it has no children" : "its children are " + names});
}

void ModuleHandle::apply(const std::function<void(const std::string &, const ModuleHandle &)> &fn) const {
  auto visit = [&](auto &self, const std::string &path, const std::shared_ptr<detail::Node> &node) -> void {
    fn(path, ModuleHandle(node));
    for (const detail::Node::Child &child : std::vector(node->children)) // fn may replace some
      self(self, path.empty() ? child.name : path + "." + child.name, child.node);
  };
  get();
  visit(visit, "", node_);
}

static NamedParameters collect(const detail::Node &node, std::initializer_list<Role> roles) {
  NamedParameters all;
  node.collect("", all, std::span(roles.begin(), roles.size()));
  return all;
}
NamedParameters ModuleHandle::parameters() const { return collect(get(), {Role::Parameter}); }
NamedParameters ModuleHandle::buffers() const { return collect(get(), {Role::Buffer}); }
NamedParameters ModuleHandle::states() const { return collect(get(), {Role::State}); }

int64_t ModuleHandle::parameter_count() const {
  int64_t count = 0;
  std::set<const void *> counted;
  for (const auto &[path, variable] : parameters())
    if (variable.defined() && counted.insert(variable.impl().get()).second)
      count += variable.shape().numElements();
  return count;
}

/// Applies `place` to this module and those below, except those that have a device or a stage of their own.
template <typename Place>
static void moveHeld(const detail::Node &node, const Place &device, const std::source_location &where,
                     uint32_t detail::Node::*own) {
  for (const detail::Node::Held &h : node.held)
    h.parameter.on(device, where);
  for (const detail::Node::Child &child : node.children)
    if (!((*child.node).*own))
      moveHeld(*child.node, device, where, own);
}

void ModuleHandle::on(Device device, std::source_location where) const {
  tressel::detail::refOf(device); // throws if there is no such device
  moveHeld(get(where), device, where, &detail::Node::placed);
  get().placed = static_cast<uint32_t>(device.index + 2);
  get().stage = 0;
  node_->changed();
}

void ModuleHandle::on(const std::vector<Device> &devices, std::source_location where) const {
  moveHeld(get(where), devices, where, &detail::Node::placed);
  get().placed = 0;
  node_->changed();
}

void ModuleHandle::stage(int number, const std::vector<Device> &devices, std::source_location where) const {
  tressel::detail::checkStage(number, where);
  if (std::ranges::find(devices, cpu()) != devices.end())
    tressel::detail::fail<Error>("stage " + std::to_string(number) + " of a module is to be computed by cpu",
                                 tressel::detail::toLoc(where), "stage",
                                 "stages are computed by accelerators: name those, or none");
  if (devices.size() == 1)
    moveHeld(get(where), devices.front(), where, &detail::Node::stage);
  else if (!devices.empty())
    moveHeld(get(where), devices, where, &detail::Node::stage);
  get().stage = static_cast<uint32_t>(number + 1);
  get().placed = 0;
  node_->changed();
}

void ModuleHandle::freeze(bool frozen) const {
  apply([frozen](const std::string &, const ModuleHandle &module) {
    module.node()->frozen = frozen;
    for (const detail::Node::Held &h : module.node()->held)
      if (h.role == Role::Parameter)
        h.parameter.impl()->frozen = frozen;
    module.node()->changed();
  });
}

void ModuleHandle::to(DType dtype, std::source_location where) const {
  get(where);
  if (!isFloat(dtype))
    throw Error(
        {"parameters are floats and cannot become " + std::string(nameOf(dtype)), tressel::detail::toLoc(where), "to"});
  if (tressel::detail::tracing())
    tressel::detail::fail<TraceError>("parameters cannot change their type in a trace", tressel::detail::toLoc(where),
                                      "to");
  apply([&](const std::string &, const ModuleHandle &module) {
    for (const detail::Node::Held &h : module.node()->held) {
      if (h.role != Role::Parameter)
        continue;
      if (!h.parameter.defined()) {
        h.parameter.fix_type(dtype);
      } else if (h.parameter.dtype() != dtype) {
        const Tensor old = h.parameter.value(where);
        Tensor converted = tressel::detail::allocateTensor({dtype, old.type().shape}, tressel::detail::toLoc(where));
        tressel::detail::convertElements(converted.impl()->storage->data(), dtype, old.data(where), old.dtype(),
                                         old.size());
        h.parameter.reset(converted);
      }
    }
    module.node()->changed();
  });
}

static NamedParameters weights(const detail::Node &node) { return collect(node, {Role::Parameter, Role::Buffer}); }

LoadReport ModuleHandle::load_weights(const std::string &path, const LoadOptions &options,
                                      std::source_location where) const {
  return io::loadParameters(weights(get(where)), path, options, "load_weights", where);
}
void ModuleHandle::save_weights(const std::string &path, std::source_location where) const {
  io::saveParameters(weights(get(where)), path, "save_weights", where);
}

void ModuleHandle::save_state(const std::string &path, std::source_location where) const {
  get(where);
  tressel::save_state(path, {{"", *this}}, where);
}
void ModuleHandle::load_state(const std::string &path, std::source_location where) const {
  get(where);
  tressel::load_state(path, {{"", *this}}, where);
}

} // namespace tressel::nn
