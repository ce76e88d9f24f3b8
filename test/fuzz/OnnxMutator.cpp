// Models that still are models: nodes get other ops, inputs, attributes, values, and bodies; sizes and types change.
#include "frontend/onnx/OpTable.h"
#include "test/fuzz/Target.h"

#include "onnx.pb.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <random>
#include <vector>

namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;

class ModelMutator {
public:
  explicit ModelMutator(unsigned seed) : random_(seed) {}

  void change(onnx::ModelProto &model) {
    std::vector<GraphProto *> graphs;
    collect(*model.mutable_graph(), graphs, 0);
    GraphProto &graph = *graphs[below(graphs.size())];
    switch (below(10)) {
    case 0:
      if (model.opset_import_size())
        model.mutable_opset_import(index(model.opset_import_size()))->set_version(below(2) ? int(below(30)) : number());
      break;
    case 1:
      changeDeclared(below(2) ? graph.mutable_input() : graph.mutable_output());
      break;
    case 2:
      if (graph.initializer_size())
        changeTensor(*graph.mutable_initializer(index(graph.initializer_size())));
      break;
    default:
      changeNode(graph);
    }
  }

private:
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  int index(int size) { return static_cast<int>(below(static_cast<size_t>(size))); }
  int64_t number() {
    constexpr int64_t numbers[] = {0, 1, -1, 2, -2, 3, 4, 5, 7, 16, 100, 1 << 20, std::numeric_limits<int32_t>::max(),
                                   int64_t(1) << 40, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    return numbers[below(std::size(numbers))];
  }

  void collect(GraphProto &graph, std::vector<GraphProto *> &all, int depth) {
    all.push_back(&graph);
    if (depth < 8)
      for (NodeProto &node : *graph.mutable_node())
        for (AttributeProto &a : *node.mutable_attribute())
          if (a.has_g())
            collect(*a.mutable_g(), all, depth + 1);
  }

  void changeTensor(onnx::TensorProto &tensor) {
    switch (below(5)) {
    case 0:
      tensor.set_data_type(static_cast<int>(below(24)));
      break;
    case 1:
      if (tensor.dims_size())
        tensor.set_dims(index(tensor.dims_size()), number());
      break;
    case 2:
      tensor.add_dims(number());
      break;
    case 3:
      if (tensor.int64_data_size())
        tensor.set_int64_data(index(tensor.int64_data_size()), number());
      else if (tensor.raw_data().size() >= 8) {
        int64_t n = number();
        std::string &raw = *tensor.mutable_raw_data();
        std::copy_n(reinterpret_cast<char *>(&n), 8, raw.begin() + static_cast<ptrdiff_t>(below(raw.size() - 7)));
      }
      break;
    case 4:
      if (tensor.dims_size() > 1)
        tensor.mutable_dims()->SwapElements(0, index(tensor.dims_size()));
      break;
    }
  }

  void changeDeclared(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> *values) {
    if (values->empty())
      return;
    onnx::ValueInfoProto &value = *values->Mutable(index(values->size()));
    auto &type = *value.mutable_type()->mutable_tensor_type();
    switch (below(5)) {
    case 0:
      type.set_elem_type(static_cast<int>(below(24)));
      break;
    case 1:
      type.mutable_shape()->add_dim()->set_dim_value(number());
      break;
    case 2:
      if (type.shape().dim_size())
        type.mutable_shape()->mutable_dim()->RemoveLast();
      break;
    default:
      if (type.shape().dim_size()) {
        auto &dim = *type.mutable_shape()->mutable_dim(index(type.shape().dim_size()));
        if (below(2))
          dim.set_dim_param(below(2) ? "n" : "m");
        else
          dim.set_dim_value(number());
      }
    }
  }

  void changeAttribute(NodeProto &node) {
    if (!node.attribute_size())
      return;
    AttributeProto &a = *node.mutable_attribute(index(node.attribute_size()));
    switch (a.type()) {
    case AttributeProto::INT:
      a.set_i(number());
      break;
    case AttributeProto::FLOAT: {
      constexpr float floats[] = {0, -1, 1e-30f, 1e38f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
      a.set_f(floats[below(std::size(floats))]);
      break;
    }
    case AttributeProto::INTS:
      if (below(3) == 0)
        a.add_ints(number());
      else if (a.ints_size() && below(2))
        a.set_ints(index(a.ints_size()), number());
      else if (a.ints_size())
        a.mutable_ints()->RemoveLast();
      break;
    case AttributeProto::STRING: {
      constexpr const char *words[] = {"", "linear", "nearest", "SAME_UPPER", "SAME_LOWER", "VALID", "constant", "reflect", "edge",
                                       "none", "add", "mul", "bidirectional", "reverse", "Tanh", "...ij,jk->ik", "ii->i"};
      a.set_s(words[below(std::size(words))]);
      break;
    }
    case AttributeProto::TENSOR:
      changeTensor(*a.mutable_t());
      break;
    default:
      a.set_type(static_cast<AttributeProto::AttributeType>(below(15)));
    }
  }

  /// A name that is in scope somewhere in the graph: mostly defined before, sometimes not.
  std::string someValue(const GraphProto &graph) {
    std::vector<std::string> names{""};
    for (const auto &v : graph.input())
      names.push_back(v.name());
    for (const auto &v : graph.initializer())
      names.push_back(v.name());
    for (const auto &n : graph.node())
      for (const auto &v : n.output())
        names.push_back(v);
    return names[below(names.size())];
  }

  /// All that are imported, and some that are not.
  static const std::vector<std::string_view> &ops() {
    static const auto all = [] {
      using namespace tressel::onnx;
      std::vector<std::string_view> names{"NonZero", "Unique", "Bernoulli", "SequenceEmpty"};
      for (auto family : {elementwiseOps, shapeOps, reductionOps, linearOps, windowOps, normOps, attentionOps, lossOps, resizeOps, recurrentOps,
                          signalOps, quantizeOps, selectOps, controlOps})
        for (const OpEntry &entry : family())
          names.push_back(entry.type);
      return names;
    }();
    return all;
  }

  void changeNode(GraphProto &graph) {
    if (!graph.node_size())
      return;
    NodeProto &node = *graph.mutable_node(index(graph.node_size()));
    switch (below(9)) {
    case 0:
      node.set_op_type(std::string(ops()[below(ops().size())]));
      break;
    case 1:
    case 2:
      changeAttribute(node);
      break;
    case 3:
      if (node.input_size())
        node.set_input(index(node.input_size()), someValue(graph));
      break;
    case 4:
      if (below(2))
        node.add_input(someValue(graph));
      else if (node.input_size())
        node.mutable_input()->RemoveLast();
      break;
    case 5: { // once more, behind itself
      NodeProto again = node;
      for (std::string &name : *again.mutable_output())
        if (!name.empty())
          name += "'";
      *graph.add_node() = again;
      break;
    }
    case 6:
      if (node.output_size() > 1 && below(2))
        node.mutable_output()->RemoveLast();
      else
        node.add_output("extra" + std::to_string(below(3)));
      break;
    case 7:
      if (graph.output_size())
        graph.mutable_output(index(graph.output_size()))->set_name(someValue(graph));
      break;
    case 8: // an attribute of another node
      if (const NodeProto &other = graph.node(index(graph.node_size())); other.attribute_size()) {
        AttributeProto copy = other.attribute(index(other.attribute_size()));
        *node.add_attribute() = copy;
      } else if (node.attribute_size()) {
        node.mutable_attribute()->RemoveLast();
      }
      break;
    }
  }

  std::mt19937 random_;
};

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  onnx::ModelProto model;
  if (seed % 4 == 0 || !model.ParseFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, maxSize);
  ModelMutator(seed / 4).change(model);
  if (model.ByteSizeLong() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  model.SerializeToArray(data, static_cast<int>(maxSize));
  return model.ByteSizeLong();
}
