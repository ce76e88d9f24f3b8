#include "frontend/onnx/Weights.h"

#include "frontend/onnx/Import.h"
#include "frontend/onnx/OpTable.h"
#include "frontend/onnx/TensorData.h"
#include "onnx.pb.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace tressel::onnx {

namespace {

bool isConstant(const ::onnx::NodeProto &node) { return isDefaultDomain(node.domain()) && node.op_type() == "Constant"; }

/// The tensor of a node Constant; null for its other forms, which are numbers and lists of them.
const ::onnx::TensorProto *tensorOf(const ::onnx::NodeProto &node) {
  if (isConstant(node) && node.output_size() == 1)
    for (const auto &attr : node.attribute())
      if (attr.name() == "value" && attr.has_t())
        return &attr.t();
  return nullptr;
}

/// Calls fn with the name of each value that a node uses, also within its bodies.
template <typename Fn> void forEachUse(const ::onnx::NodeProto &node, Fn fn) {
  for (const std::string &name : node.input())
    if (!name.empty())
      fn(name);
  for (const auto &attr : node.attribute())
    if (attr.has_g()) {
      for (const auto &inner : attr.g().node())
        forEachUse(inner, fn);
      for (const auto &output : attr.g().output())
        fn(output.name());
    }
}

/// The graph with the node that gives each value.
class Producers {
public:
  explicit Producers(const ::onnx::GraphProto &graph) : graph_(graph) {
    for (int i = 0; i < graph.node_size(); ++i)
      for (const std::string &name : graph.node(i).output())
        nodeOf_.emplace(name, i);
  }
  const ::onnx::GraphProto &graph() const { return graph_; }
  std::optional<int> nodeOf(const std::string &name) const {
    const auto it = nodeOf_.find(name);
    return it == nodeOf_.end() ? std::nullopt : std::optional(it->second);
  }
  struct Needed {
    std::unordered_set<int> nodes;
    std::unordered_set<std::string> values;
  };
  /// The nodes and inputs that the outputs depend on. Names that bodies define count as uses too, so it may be a
  /// superset where a name stands for two values. Without `behindSizes`, a value of which only the size is read is not
  /// followed.
  Needed neededFor(const std::vector<std::string> &outputs, bool behindSizes = true) const {
    Needed needed;
    std::vector<std::string> open = outputs;
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (!needed.values.insert(name).second)
        continue;
      const auto node = nodeOf(name);
      if (!node || !needed.nodes.insert(*node).second)
        continue;
      const auto &producer = graph_.node(*node);
      if (behindSizes || (producer.op_type() != "Shape" && producer.op_type() != "Size"))
        forEachUse(producer, [&](const std::string &used) { open.push_back(used); });
    }
    return needed;
  }

private:
  const ::onnx::GraphProto &graph_;
  std::unordered_map<std::string, int> nodeOf_;
};

/// The role that an op gives an input, beside operand.
enum class Use : uint8_t { Operand, Statistic, Scale };

Use useOf(const ::onnx::NodeProto &node, int input) {
  if (!isDefaultDomain(node.domain()))
    return Use::Operand;
  const std::string &op = node.op_type();
  if (op == "BatchNormalization" && input >= 3)
    return Use::Statistic;
  if (input >= 1 && (op == "QuantizeLinear" || op == "DequantizeLinear" || op.starts_with("QLinear")))
    return Use::Scale;
  return Use::Operand;
}

/// Whether a node passes its input on unchanged, except for its type.
bool renames(const ::onnx::NodeProto &node) {
  return isDefaultDomain(node.domain()) && (node.op_type() == "Identity" || node.op_type() == "Cast") &&
         node.input_size() == 1;
}

/// The role of each value, by name, looking through nodes that only rename. A value that is an operand anywhere is an
/// operand.
std::unordered_map<std::string, Use> usesOf(const Producers &producers) {
  std::unordered_map<std::string, Use> uses;
  auto note = [&](const std::string &name, Use use) {
    const auto [known, isNew] = uses.emplace(name, use);
    if (!isNew && known->second != use)
      known->second = Use::Operand;
  };
  forEachNode(producers.graph(), [&](const ::onnx::NodeProto &node, const std::string &) {
    if (renames(node))
      return;
    for (int i = 0; i < node.input_size(); ++i) {
      const Use use = useOf(node, i);
      note(node.input(i), use);
      for (auto from = producers.nodeOf(node.input(i)); from && renames(producers.graph().node(*from));) {
        const std::string &source = producers.graph().node(*from).input(0);
        note(source, use);
        from = producers.nodeOf(source);
      }
    }
  });
  return uses;
}

} // namespace

std::vector<std::string> outputNames(const ModelFile &model, const std::vector<std::string> &wanted) {
  std::vector<std::string> names;
  if (wanted.empty()) {
    for (const DeclaredValue &output : model.outputs())
      names.push_back(output.name);
    return names;
  }
  const Producers producers(model.graph());
  for (const std::string &name : wanted) {
    if (!producers.nodeOf(name)) {
      std::string last; // a new head replaces the last nodes
      const auto &nodes = model.graph().node();
      for (int i = nodes.size() - 1; i >= std::max(0, nodes.size() - 8); --i)
        for (const std::string &output : nodes[i].output())
          if (!output.empty())
            last += (last.empty() ? "'" : ", '") + output + "'";
      model.fail("no node gives a value '" + name + "'; from the last node backwards they give " + last);
    }
    if (std::ranges::find(names, name) != names.end())
      model.fail("'" + name + "' is asked for twice as an output");
    names.push_back(name);
  }
  return names;
}

std::vector<size_t> inputsFor(const ModelFile &model, const std::vector<std::string> &outputs) {
  std::vector<size_t> inputs;
  const Producers producers(model.graph());
  const Producers::Needed needed = producers.neededFor(outputNames(model, outputs));
  for (size_t i = 0; i < model.inputs().size(); ++i)
    if (outputs.empty() || needed.values.contains(model.inputs()[i].name))
      inputs.push_back(i);
  return inputs;
}

std::unordered_set<int> unusedNodes(const ModelFile &model, const ImportOptions &options) {
  std::unordered_set<int> unused;
  if (options.outputs.empty() && options.weights.empty())
    return unused;
  const Producers producers(model.graph());
  for (const Weight &weight : options.weights)
    if (const auto node = producers.nodeOf(weight.name))
      unused.insert(*node);
  if (options.outputs.empty())
    return unused;
  const Producers::Needed needed = producers.neededFor(options.outputs);
  for (int i = 0; i < model.graph().node_size(); ++i)
    if (!needed.nodes.contains(i))
      unused.insert(i);
  return unused;
}

std::vector<Weight> weightsOf(const ModelFile &model, const std::vector<std::string> &outputs) {
  const Producers producers(model.graph());
  const Producers::Needed needed = producers.neededFor(outputNames(model, outputs));
  const std::unordered_map<std::string, Use> uses = usesOf(producers);
  std::vector<Weight> weights;
  auto consider = [&](const std::string &name, const ::onnx::TensorProto &tensor, bool isInitializer, int index) {
    DType dtype;
    if (!needed.values.contains(name) || !fromOnnx(tensor.data_type(), dtype) || !isFloat(dtype))
      return;
    const TensorType type = tensorType(tensor, model.name());
    const int64_t elements = type.shape.numElements();
    if (type.rank() == 0 || elements == 0 || (elements == 1 && !(isInitializer && type.rank() == 1)))
      return;
    const auto use = uses.find(name);
    if (use == uses.end() || use->second != Use::Scale)
      weights.push_back({name, type, use != uses.end() && use->second == Use::Statistic, isInitializer, index});
  };
  const ::onnx::GraphProto &graph = model.graph();
  for (int i = 0; i < graph.initializer_size(); ++i)
    consider(graph.initializer(i).name(), graph.initializer(i), true, i);
  for (int i = 0; i < graph.node_size(); ++i)
    if (const ::onnx::TensorProto *tensor = tensorOf(graph.node(i)))
      consider(graph.node(i).output(0), *tensor, false, i);
  return weights;
}

op::HostTensor valueOf(const ModelFile &model, const Weight &weight) {
  if (weight.isInitializer)
    return tensorData(model.graph().initializer(weight.index), model.name(), model.folder(),
                      model.rawData(weight.index));
  return tensorData(*tensorOf(model.graph().node(weight.index)), model.name(), model.folder());
}

std::vector<size_t> neededAsConstants(const ModelFile &model, std::span<const Weight> weights, std::span<const Unsupported> refused) {
  const Producers producers(model.graph());
  std::unordered_set<std::string> nodes;
  for (const Unsupported &node : refused)
    nodes.insert(node.node);
  std::unordered_set<std::string> given;
  for (const DeclaredValue &input : model.inputs())
    given.insert(input.name);
  std::unordered_set<std::string> found;
  forEachNode(model.graph(), [&](const ::onnx::NodeProto &node, const std::string &label) {
    if (!nodes.contains(label))
      return;
    for (const std::string &input : node.input()) {
      const Producers::Needed needed = producers.neededFor({input}, /*behindSizes=*/false);
      if (std::ranges::none_of(given, [&](const std::string &name) { return needed.values.contains(name); }))
        found.insert(needed.values.begin(), needed.values.end());
    }
  });
  std::vector<size_t> constants;
  for (size_t i = 0; i < weights.size(); ++i)
    if (found.contains(weights[i].name))
      constants.push_back(i);
  return constants;
}

} // namespace tressel::onnx
