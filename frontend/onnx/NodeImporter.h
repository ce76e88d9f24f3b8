// What the function that imports an op works with: the node's inputs and attributes, checked as they are read, and a
// way to emit ops of the graph dialect that computes at import what is known at import.
#pragma once

#include "frontend/onnx/Model.h"
#include "ir/graph/Graph.h"
#include "ir/op/OpInfo.h"

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace onnx {
class AttributeProto;
} // namespace onnx

namespace tressel::onnx {

/// A tensor while importing. `host` is set when its value is known; `ir` is then made from it when an op first needs it
/// as an operand, once for all copies.
struct Value {
  TensorType type;
  std::shared_ptr<mlir::Value> ir;
  std::optional<op::HostTensor> host;

  Value() = default;
  Value(const TensorType &type, mlir::Value ir) : type(type), ir(std::make_shared<mlir::Value>(ir)) {}
  explicit Value(op::HostTensor known)
      : type(known.type), ir(std::make_shared<mlir::Value>()), host(std::move(known)) {}

  int rank() const { return type.rank(); }
  int64_t dim(int i) const { return type.shape[i]; }
  DType dtype() const { return type.dtype; }
};

/// Thrown by NodeImporter::unsupported, caught where all of them are collected.
struct NodeUnsupported {
  std::string why;
};

using NamedAttrs = std::vector<std::pair<std::string_view, op::Attr>>;

/// State shared by all nodes of one import.
struct GraphState {
  const Model &model;
  mlir::OpBuilder builder;
  std::unordered_map<std::string, Value> values;
};

class NodeImporter {
public:
  NodeImporter(GraphState &graph, const ::onnx::NodeProto &node, int index, mlir::Location loc);

  int64_t opset() const { return opset_; }
  const ::onnx::NodeProto &node() const { return node_; }

  // Inputs. An absent optional input has an empty name.
  int numInputs() const;
  bool has(int i) const;
  /// Input number i; the model is at fault if it is absent.
  const Value &in(int i);
  /// The value of an integer input that must be known at import (axes, shapes), as a list.
  std::vector<int64_t> knownInts(int i, const char *what);
  std::optional<double> knownScalar(const Value &v) const;
  int numOutputs() const;
  bool wants(int output) const;

  // Attributes. Reading one with another type than the model gives is the model's fault. What an importer did not read
  // is reported as unsupported, so that no attribute is ever ignored by mistake.
  bool hasAttr(const char *name) const;
  int64_t intAttr(const char *name, std::optional<int64_t> fallback = {});
  double floatAttr(const char *name, std::optional<double> fallback = {});
  std::string stringAttr(const char *name, std::optional<std::string> fallback = {});
  std::optional<std::vector<int64_t>> intsAttr(const char *name);
  std::optional<std::vector<double>> floatsAttr(const char *name);
  /// Empty when absent.
  std::vector<std::string> stringsAttr(const char *name);
  std::optional<op::HostTensor> tensorAttr(const char *name);
  /// An element type of the format.
  DType typeAttr(const char *name);
  void ignoreAttr(const char *name) { read_.insert(name); }
  /// An ints attribute of older versions or input number i of newer ones.
  std::optional<std::vector<int64_t>> intsAttrOrInput(const char *name, int i);
  /// Throws if an attribute of the node was not read.
  void checkAllRead() const;

  [[noreturn]] void fail(const std::string &message) const;
  [[noreturn]] void unsupported(const std::string &why) const;
  /// In [0, rank), counting from the end when negative.
  int axis(int64_t value, int rank) const;
  std::vector<int64_t> axes(std::vector<int64_t> values, int rank) const;

  // Emission.
  /// One result of op `name`; attributes not given have their defaults.
  Value emit(std::string_view name, std::vector<Value> inputs, const NamedAttrs &attrs = {});
  /// All results of an op that has several.
  std::vector<Value> emitAll(std::string_view name, std::vector<Value> inputs, const NamedAttrs &attrs = {});
  Value constant(op::HostTensor tensor);
  /// 0, 1, ... size - 1 as i64, in a shape that holds them.
  Value iota(int64_t size, const Shape &shape);
  /// Known numbers.
  Value table(const std::vector<double> &values, const Shape &shape, DType dtype);
  /// Of rank 0 and type `dtype`; `value` must be representable when it is an integer type.
  Value scalar(DType dtype, double value);
  Value ints(const std::vector<int64_t> &values);
  /// The operand in the IR.
  mlir::Value materialize(const Value &v);
  void out(int i, Value value);

  // What several importers need.
  Value cast(Value v, DType to);
  Value reshape(Value v, const Shape &shape);
  Value transpose(Value v, std::vector<int64_t> perm);
  Value broadcastTo(Value v, const Shape &shape);
  /// [from, to) of one dimension, in steps.
  Value sliceAxis(const Value &v, int axis, int64_t from, int64_t to, int64_t step = 1);
  void sameType(const Value &a, const Value &b) const;
  void requireFloat(const Value &v) const;

private:
  const ::onnx::AttributeProto *find(const char *name, int type);
  std::optional<Value> computeSizes(const op::OpInfo &info, std::span<const op::HostTensor> operands,
                                    const op::Attrs &attrs, const TensorType &result) const;
  std::optional<Value> fold(const op::OpInfo &info, const std::vector<Value> &inputs, const op::Attrs &attrs,
                            const TensorType &result) const;

  GraphState &graph_;
  const ::onnx::NodeProto &node_;
  int index_;
  mlir::Location loc_;
  int64_t opset_;
  std::set<std::string> read_;
};

} // namespace tressel::onnx
