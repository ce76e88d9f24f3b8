// The interface of an op's importer: the node's inputs and attributes, checked as they are read, and ops of the graph
// dialect to emit. Values that are known at import are computed at import.
#pragma once

#include "frontend/onnx/ModelFile.h"
#include "ir/graph/Graph.h"
#include "ir/op/OpInfo.h"

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace onnx {
class AttributeProto;
class GraphProto;
} // namespace onnx

namespace tressel::onnx {

/// A tensor during the import. `host` is set when its value is known; `ir` is made from that when an op first needs it
/// as an operand, once for all copies.
struct Value {
  TensorType type;
  std::shared_ptr<mlir::Value> ir;
  std::optional<op::HostTensor> host;
  /// The elements are symbolic sizes, by their bits (Size::bits), so the type is i64 whatever it was converted to.
  /// Never set for a model's own numbers: exporters write the smallest integers for "to the end".
  bool symbolic = false;

  Value() = default;
  Value(const TensorType &type, mlir::Value ir) : type(type), ir(std::make_shared<mlir::Value>(ir)) {}
  explicit Value(op::HostTensor known, bool symbolic = false)
      : type(known.type), ir(std::make_shared<mlir::Value>()), host(std::move(known)), symbolic(symbolic) {}

  int rank() const { return type.rank(); }
  Size dim(int i) const { return type.shape[i]; }
  /// Element i of a known list of 64-bit integers.
  Size size(int64_t i) const {
    return symbolic ? Size::fromBits(host->as<int64_t>()[i]) : Size::clamped(host->as<int64_t>()[i]);
  }
  DType dtype() const { return type.dtype; }
};

/// Thrown by NodeImporter::unsupported, caught where all of them are collected.
struct NodeUnsupported {
  std::string why;
  bool listed = false; ///< the cause is a node of a body, which is listed already
};

using NamedAttrs = std::vector<std::pair<std::string_view, op::Attr>>;

/// State shared by all nodes of one import.
struct GraphState {
  GraphState(const ModelFile &model, mlir::MLIRContext *context) : model(model), builder(context) {}

  const ModelFile &model;
  mlir::OpBuilder builder;
  /// The program's block. Constants are made at its end even while a body is open; the body's op is added after them.
  /// So they dominate all uses of all copies of a Value, which share one constant.
  mlir::Block *entry = nullptr;
  /// Values by name: the graph's, then those of open bodies, innermost last. A deque, as references to values must
  /// survive the import of bodies.
  std::deque<std::unordered_map<std::string, Value>> scopes{1};
  std::vector<Unsupported> unsupported;
  std::string where;     ///< prefix of the names of a body's nodes: "If_3.then_branch/"
  unsigned line = 0;     ///< number of the graph's node that is being imported
  std::unordered_set<int> passedOver; ///< nodes of the graph by number that are not imported
  int openBodies = 0;                 ///< bodies that are being built
  int64_t bodyNodes = 0;              ///< nodes imported within bodies, counted at each import
  int64_t mostBodyNodes = 0;          ///< the limit of bodyNodes; set when the graph begins
  std::optional<Unsupported> exhausted; ///< set when bodyNodes exceeds the limit: nothing more is imported
  /// If set, malformed inputs are collected here, and other errors of a node are ignored.
  std::vector<Malformed> *malformed = nullptr;

  /// Null if nothing of that name is defined.
  const Value *find(const std::string &name) const;
};

/// Imports the nodes of a graph in order. A node that is not supported is listed and leaves its outputs undefined, and
/// so do those that depend on it: everything unsupported is found in one go.
void importNodes(GraphState &state, const ::onnx::GraphProto &graph);

class NodeImporter {
public:
  /// `label` names the node in messages.
  NodeImporter(GraphState &graph, const ::onnx::NodeProto &node, std::string label, mlir::Location loc);

  int64_t opset() const { return opset_; }
  const ::onnx::NodeProto &node() const { return node_; }

  /// Throws MalformedInput if the op does not accept an input's element type or number of dimensions (Schema.h).
  void checkInputs() const;

  // Inputs. An absent optional input has an empty name.
  int numInputs() const;
  bool has(int i) const;
  /// Input number i; the model is at fault if it is absent.
  const Value &in(int i);
  /// The value of an integer input that must be known at import (shapes), as a list. May hold symbolic sizes.
  op::Sizes knownSizes(int i, const char *what);
  /// The same for numbers (axes): unsupported if one is a symbol.
  std::vector<int64_t> knownInts(int i, const char *what);
  std::optional<double> knownScalar(const Value &v) const;
  /// The size of a dimension for importers that compute with it as a number: unsupported if it is a symbol.
  int64_t number(const Value &v, int dim) const;
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
  const ::onnx::GraphProto &graphAttr(const char *name);
  /// An ints attribute of older versions or input number i of newer ones.
  std::optional<std::vector<int64_t>> intsAttrOrInput(const char *name, int i);
  std::optional<op::Sizes> sizesAttrOrInput(const char *name, int i);
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
  /// 0, 1, ... size - 1 as i64, reshaped to `shape`.
  Value iota(Size size, const Shape &shape);
  /// A constant of these values.
  Value table(const std::vector<double> &values, const Shape &shape, DType dtype);
  /// Of rank 0 and type `dtype`; an integer type takes the nearest number that it has, as `cast` does.
  Value scalar(DType dtype, double value);
  Value ints(const std::vector<int64_t> &values);
  /// The same of sizes, which may be symbols.
  Value sizes(const op::Sizes &values);
  /// The operand in the IR.
  mlir::Value materialize(const Value &v);
  void out(int i, Value value);

  // Bodies (Bodies.cpp).
  /// Imports the body in attribute `name` here, where its nodes see the outer names, and gives its outputs. The model
  /// is at fault if the body takes another number of arguments.
  std::vector<Value> importBody(const char *name, std::vector<Value> arguments);
  /// Emits a body: from its arguments to its results.
  using BodyFn = std::function<std::vector<Value>(const std::vector<Value> &)>;
  /// The results of one of two bodies without arguments. Unsupported if they differ in type.
  std::vector<Value> emitCond(const Value &flag, const BodyFn &then, const BodyFn &otherwise);
  /// `body` as long as `condition` gives true; both take the carried values. Unsupported if a carried value changes its
  /// type.
  std::vector<Value> emitWhile(std::vector<Value> carried, const BodyFn &condition, const BodyFn &body);
  /// A scan of `trips` iterations (a number or a symbolic size). `body` takes the iteration's number, the carried
  /// values, and slice i of each of `slices` along their first dimension; it gives the next carried values, then what
  /// is stacked along a new first dimension. Returns the last carried values and the stacks.
  std::vector<Value> emitScan(Size trips, std::vector<Value> carried, const std::vector<Value> &slices,
                              const BodyFn &body);
  /// Runs `emission` here. If something in it is unsupported, emits nothing and returns nothing. `refusal` keeps the
  /// reasons if it is empty.
  struct Refusal {
    std::optional<NodeUnsupported> why;
    std::vector<Unsupported> list;
  };
  std::optional<std::vector<Value>> attempt(Refusal &refusal, const std::function<std::vector<Value>()> &emission);
  [[noreturn]] void refuse(Refusal refusal);

  // What several importers need.
  Value cast(Value v, DType to);
  Value reshape(Value v, const Shape &shape);
  Value transpose(Value v, std::vector<int64_t> perm);
  Value broadcastTo(Value v, const Shape &shape);
  /// [from, to) of one dimension, in steps.
  Value sliceAxis(const Value &v, int axis, Size from, Size to, int64_t step = 1);
  void sameType(const Value &a, const Value &b) const;
  void requireFloat(const Value &v) const;

private:
  struct Recorded;
  Recorded record(const std::vector<TensorType> &arguments, const BodyFn &fn);
  Value fit(Value v, const TensorType &type);
  std::vector<Value> sameCarried(const std::vector<Value> &carried, std::vector<Value> results);
  std::vector<Value> addControl(std::vector<Recorded> bodies,
                                llvm::function_ref<mlir::Operation *(mlir::OpBuilder &)> create);
  const ::onnx::AttributeProto *find(const char *name, int type);
  std::optional<Value> computeSizes(const op::OpInfo &info, const std::vector<Value> &operands,
                                    const op::Attrs &attrs, const TensorType &result) const;
  std::optional<Value> fold(const op::OpInfo &info, const std::vector<Value> &inputs, const op::Attrs &attrs,
                            const TensorType &result) const;

  GraphState &graph_;
  const ::onnx::NodeProto &node_;
  std::string label_;
  mlir::Location loc_;
  int64_t opset_;
  std::set<std::string> read_;
};

} // namespace tressel::onnx
