#include "frontend/onnx/NodeImporter.h"

#include "frontend/onnx/OpTable.h"
#include "frontend/onnx/Schema.h"
#include "frontend/onnx/TensorData.h"
#include "ir/graph/TableOp.h"
#include "ir/op/Infer.h"
#include "ir/op/Num.h"
#include "onnx.pb.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Half.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tressel::onnx {

using ::onnx::AttributeProto;

const Value *GraphState::find(const std::string &name) const {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
    if (auto it = scope->find(name); it != scope->end())
      return &it->second;
  return nullptr;
}

NodeImporter::NodeImporter(GraphState &graph, const ::onnx::NodeProto &node, std::string label, mlir::Location loc)
    : graph_(graph), node_(node), label_(std::move(label)), loc_(loc), opset_(graph.model.opset(node.domain())) {}

void NodeImporter::fail(const std::string &message) const {
  graph_.model.fail("node '" + label_ + "' (" + qualifiedOp(node_) + "): " + message);
}
void NodeImporter::unsupported(const std::string &why) const { throw NodeUnsupported{why}; }

// --- Inputs ---------------------------------------------------------------------------------------------------------

int NodeImporter::numInputs() const { return node_.input_size(); }
bool NodeImporter::has(int i) const { return i < node_.input_size() && !node_.input(i).empty(); }
int NodeImporter::numOutputs() const { return node_.output_size(); }
bool NodeImporter::wants(int output) const { return output < node_.output_size() && !node_.output(output).empty(); }

const Value &NodeImporter::in(int i) {
  if (!has(i)) {
    const OpSchema *schema = findSchema(node_.op_type(), opset_);
    const bool isNamed = schema && static_cast<size_t>(i) < schema->inputs.size();
    fail("input " + std::to_string(i) + " is missing" + (isNamed ? ": '" + std::string(schema->inputs[static_cast<size_t>(i)].name) + "'" : ""));
  }
  return *graph_.find(node_.input(i)); // importNodes has checked that it is defined
}

void NodeImporter::checkInputs() const {
  const OpSchema *schema = isDefaultDomain(node_.domain()) ? findSchema(node_.op_type(), opset_) : nullptr;
  if (!schema)
    return;
  std::vector<std::optional<GivenInput>> given(static_cast<size_t>(numInputs()));
  for (int i = 0; i < numInputs(); ++i)
    if (has(i)) {
      const Value &v = *graph_.find(node_.input(i));
      given[static_cast<size_t>(i)] = GivenInput{v.type, v.symbolic};
    }
  if (std::string problem = problemWithInputs(*schema, given); !problem.empty())
    throw MalformedInput(graph_.model.name(), {qualifiedOp(node_), label_, std::move(problem)});
}

std::vector<int64_t> NodeImporter::knownInts(int i, const char *what) {
  std::vector<int64_t> numbers;
  for (Size size : knownSizes(i, what)) {
    if (!size.isNumber())
      unsupported(std::string(what) + " with " + dim::str(size) + ", which is only known when the program runs");
    numbers.push_back(size.number());
  }
  return numbers;
}

op::Sizes NodeImporter::knownSizes(int i, const char *what) {
  const Value &v = in(i);
  if (v.dtype() != i64 && v.dtype() != i32)
    fail(std::string(what) + " must be integers, not " + v.type.str());
  if (v.rank() > 1)
    fail(std::string(what) + " must be a list, not " + v.type.str());
  if (!v.host)
    unsupported(std::string(what) + " computed from the input's values");
  op::Sizes values;
  for (int64_t k = 0; k < v.type.shape.numElements(); ++k) {
    values.push_back(v.dtype() == i64 ? v.size(k) : Size(v.host->as<int32_t>()[k]));
    if (values.back().isNumber()) // as sizes, places and counts, the smallest integers mean the same as this
      values.back() = std::max<Size>(values.back(), -kMaxTensorBytes);
  }
  return values;
}

std::optional<double> NodeImporter::knownScalar(const Value &v) const {
  if (!v.host || v.symbolic || v.type.shape.numElements() != 1)
    return {};
  switch (v.dtype()) {
  case DType::f32:
    return *v.host->as<float>();
  case DType::f64:
    return *v.host->as<double>();
  case DType::f16:
    return halfToFloat(*v.host->as<uint16_t>());
  case DType::bf16:
    return bfloatToFloat(*v.host->as<uint16_t>());
  case DType::i8:
    return *v.host->as<int8_t>();
  case DType::i16:
    return *v.host->as<int16_t>();
  case DType::i32:
    return *v.host->as<int32_t>();
  case DType::i64:
    return static_cast<double>(*v.host->as<int64_t>());
  case DType::u8:
  case DType::boolean:
    return *v.host->as<uint8_t>();
  }
  return {};
}

int64_t NodeImporter::number(const Value &v, int dim) const {
  if (!v.dim(dim).isNumber())
    unsupported("dimension " + std::to_string(dim) + " of " + v.type.str() + ", whose size is only known when the program runs");
  return v.dim(dim).number();
}

// --- Attributes -----------------------------------------------------------------------------------------------------

bool NodeImporter::hasAttr(const char *name) const {
  for (const auto &attr : node_.attribute())
    if (attr.name() == name)
      return true;
  return false;
}

const AttributeProto *NodeImporter::find(const char *name, int type) {
  read_.insert(name);
  for (const auto &attr : node_.attribute()) {
    if (attr.name() != name)
      continue;
    if (!attr.ref_attr_name().empty())
      fail("attribute '" + std::string(name) + "' refers to a function's attribute outside of a function");
    // Old exporters omit `type`; then the field that is present decides.
    bool fits = attr.has_type() ? attr.type() == type
                                : (type == AttributeProto::INT      ? attr.has_i()
                                   : type == AttributeProto::FLOAT  ? attr.has_f()
                                   : type == AttributeProto::STRING ? attr.has_s()
                                   : type == AttributeProto::TENSOR ? attr.has_t()
                                : type == AttributeProto::GRAPH  ? attr.has_g()
                                                                    : true);
    if (!fits)
      fail("attribute '" + std::string(name) + "' has the wrong type");
    return &attr;
  }
  return nullptr;
}

template <typename T> static T orFail(const NodeImporter &n, const char *name, const std::optional<T> &fallback) {
  if (!fallback)
    n.fail("attribute '" + std::string(name) + "' is missing");
  return *fallback;
}

int64_t NodeImporter::intAttr(const char *name, std::optional<int64_t> fallback) {
  const auto *attr = find(name, AttributeProto::INT);
  return attr ? attr->i() : orFail(*this, name, fallback);
}
double NodeImporter::floatAttr(const char *name, std::optional<double> fallback) {
  const auto *attr = find(name, AttributeProto::FLOAT);
  return attr ? attr->f() : orFail(*this, name, fallback);
}
std::string NodeImporter::stringAttr(const char *name, std::optional<std::string> fallback) {
  const auto *attr = find(name, AttributeProto::STRING);
  return attr ? attr->s() : orFail(*this, name, fallback);
}
std::optional<std::vector<int64_t>> NodeImporter::intsAttr(const char *name) {
  const auto *attr = find(name, AttributeProto::INTS);
  if (!attr)
    return {};
  return std::vector<int64_t>(attr->ints().begin(), attr->ints().end());
}
std::optional<std::vector<double>> NodeImporter::floatsAttr(const char *name) {
  const auto *attr = find(name, AttributeProto::FLOATS);
  if (!attr)
    return {};
  return std::vector<double>(attr->floats().begin(), attr->floats().end());
}
std::vector<std::string> NodeImporter::stringsAttr(const char *name) {
  const auto *attr = find(name, AttributeProto::STRINGS);
  return attr ? std::vector<std::string>(attr->strings().begin(), attr->strings().end()) : std::vector<std::string>();
}
std::optional<op::HostTensor> NodeImporter::tensorAttr(const char *name) {
  const auto *attr = find(name, AttributeProto::TENSOR);
  if (!attr)
    return {};
  DType dtype;
  if (!fromOnnx(attr->t().data_type(), dtype))
    unsupported("a tensor with elements of type " + typeName(attr->t().data_type()));
  return tensorData(attr->t(), graph_.model.name() + ": node '" + label_ + "'",
                    graph_.model.folder());
}

const ::onnx::GraphProto &NodeImporter::graphAttr(const char *name) {
  const auto *attr = find(name, AttributeProto::GRAPH);
  if (!attr)
    fail("attribute '" + std::string(name) + "' is missing");
  return attr->g();
}

DType NodeImporter::typeAttr(const char *name) {
  int64_t number = intAttr(name);
  DType dtype;
  if (number < 0 || number > 1000 || !fromOnnx(static_cast<int>(number), dtype))
    unsupported("element type " + typeName(static_cast<int>(std::clamp<int64_t>(number, -1, 1000))));
  return dtype;
}

std::optional<std::vector<int64_t>> NodeImporter::intsAttrOrInput(const char *name, int i) {
  if (hasAttr(name))
    return intsAttr(name);
  if (has(i))
    return knownInts(i, name);
  return {};
}

std::optional<op::Sizes> NodeImporter::sizesAttrOrInput(const char *name, int i) {
  if (!hasAttr(name))
    return i >= 0 && has(i) ? std::optional(knownSizes(i, name)) : std::nullopt;
  op::Sizes sizes;
  for (int64_t n : *intsAttr(name))
    sizes.push_back(Size::clamped(n));
  return sizes;
}

void NodeImporter::checkAllRead() const {
  for (const auto &attr : node_.attribute())
    if (!read_.contains(attr.name()))
      unsupported("attribute '" + attr.name() + "'");
}

int NodeImporter::axis(int64_t value, int rank) const {
  if (value < -rank || value >= rank)
    fail("axis " + std::to_string(value) + " is outside a tensor of " + std::to_string(rank) + " dimensions");
  return static_cast<int>(value < 0 ? value + rank : value);
}

std::vector<int64_t> NodeImporter::axes(std::vector<int64_t> values, int rank) const {
  std::set<int64_t> seen;
  for (int64_t &v : values)
    if (v = axis(v, rank); !seen.insert(v).second)
      fail("axis " + std::to_string(v) + " is given twice");
  return values;
}

// --- Emission -------------------------------------------------------------------------------------------------------

mlir::Value NodeImporter::materialize(const Value &v) {
  if (*v.ir)
    return *v.ir;
  mlir::OpBuilder::InsertionGuard guard(graph_.builder);
  graph_.builder.setInsertionPointToEnd(graph_.entry);
  if (v.symbolic) {
    std::vector<Value> parts;
    for (int64_t i = 0; i < v.type.shape.numElements(); ++i) {
      const Size size = v.size(i);
      const int64_t least = dim::bounds(size).lo;
      if (size.isNumber()) {
        parts.push_back(ints({size.number()}));
        continue;
      }
      if (least <= -dim::kUnbounded)
        unsupported("a value of " + dim::str(size) + ", of which no smallest one is known");
      const int64_t from = std::min<int64_t>(least, 0); // the op gives sizes, which are not negative
      Value part = reshape(emit("dim_size", {}, {{"size", size - from}}), {1});
      parts.push_back(from ? emit("add", {part, ints({from})}) : part);
    }
    *v.ir = materialize(reshape(parts.size() == 1 ? parts[0] : emit("concat", parts), v.type.shape));
  }
  if (!*v.ir)
    *v.ir = graph::createConstant(graph_.builder, loc_, {v.type, v.host->data});
  return *v.ir;
}

Value NodeImporter::emit(std::string_view name, std::vector<Value> inputs, const NamedAttrs &attrs) {
  return emitAll(name, std::move(inputs), attrs).at(0);
}

std::vector<Value> NodeImporter::emitAll(std::string_view name, std::vector<Value> inputs, const NamedAttrs &attrs) {
  const op::OpInfo *info = op::findOp(name);
  if (!info)
    unsupported("needs op '" + std::string(name) + "'");
  op::Attrs values(info->attrs.size());
  for (const auto &[key, value] : attrs) {
    int i = info->attrIndex(key);
    if (i < 0)
      throw InternalError("the ONNX importer gives op '" + std::string(name) + "' an attribute '" + std::string(key) +
                          "', which it does not have");
    values[static_cast<size_t>(i)] = value;
  }
  if (std::string error = op::completeAttrs(*info, values); !error.empty())
    throw InternalError("the ONNX importer emits op '" + std::string(name) + "': " + error);

  std::vector<TensorType> types;
  for (const Value &v : inputs)
    types.push_back(v.type);
  op::Inferred inferred = op::inferTypes(*info, types, values);
  if (!inferred)
    fail(inferred.error);
  for (const TensorType &type : inferred.types)
    if (!fitsMemory(type))
      fail("a result of type " + type.str() + " is larger than any memory");
  if (auto folded = fold(*info, inputs, values, inferred.types[0]))
    return {*folded};

  std::vector<mlir::Value> operands;
  for (const Value &v : inputs)
    operands.push_back(materialize(v));
  mlir::Operation *op = graph::createOp(graph_.builder, loc_, *info, operands, values);
  std::vector<Value> results;
  for (size_t i = 0; i < inferred.types.size(); ++i)
    results.emplace_back(inferred.types[i], op->getResult(static_cast<unsigned>(i)));
  return results;
}

Value NodeImporter::iota(Size size, const Shape &shape) {
  constexpr int64_t mostNumbers = 1 << 17; // the most elements of a constant, as a model may declare any size
  if (!size.isNumber() || size > mostNumbers) {
    const auto axis = static_cast<int64_t>(std::ranges::find(shape, size) - shape.begin());
    return emit("iota", {}, {{"shape", op::sizesOf(shape)}, {"axis", axis}});
  }
  op::HostTensor t = op::HostTensor::allocate({i64, shape});
  std::iota(t.as<int64_t>(), t.as<int64_t>() + size.number(), 0);
  return constant(std::move(t));
}

Value NodeImporter::table(const std::vector<double> &values, const Shape &shape, DType dtype) {
  op::HostTensor t = op::HostTensor::allocate({f64, shape});
  std::copy(values.begin(), values.end(), t.as<double>());
  if (dtype == f64)
    return constant(std::move(t));
  if (dtype != f32)
    return cast(constant(std::move(t)), dtype);
  op::HostTensor narrow = op::HostTensor::allocate({f32, shape}); // a cast of a large table is not folded
  std::transform(values.begin(), values.end(), narrow.as<float>(), [](double v) { return static_cast<float>(v); });
  return constant(std::move(narrow));
}

Value NodeImporter::constant(op::HostTensor tensor) { return Value(std::move(tensor)); }

Value NodeImporter::scalar(DType dtype, double value) {
  op::HostTensor t = op::HostTensor::allocate({dtype, {}});
  switch (dtype) {
  case DType::f32:
    *t.as<float>() = static_cast<float>(value);
    break;
  case DType::f64:
    *t.as<double>() = value;
    break;
  case DType::f16:
    *t.as<uint16_t>() = halfFromDouble(value);
    break;
  case DType::bf16:
    *t.as<uint16_t>() = bfloatFromDouble(value);
    break;
  case DType::i8:
    *t.as<int8_t>() = op::num::convert<int8_t>(value);
    break;
  case DType::i16:
    *t.as<int16_t>() = op::num::convert<int16_t>(value);
    break;
  case DType::i32:
    *t.as<int32_t>() = op::num::convert<int32_t>(value);
    break;
  case DType::i64:
    *t.as<int64_t>() = op::num::convert<int64_t>(value);
    break;
  case DType::u8:
    *t.as<uint8_t>() = op::num::convert<uint8_t>(value);
    break;
  case DType::boolean:
    *t.as<uint8_t>() = value != 0;
    break;
  }
  return constant(std::move(t));
}

Value NodeImporter::ints(const std::vector<int64_t> &values) {
  op::HostTensor t = op::HostTensor::allocate({i64, {static_cast<int64_t>(values.size())}});
  std::copy(values.begin(), values.end(), t.as<int64_t>());
  return constant(std::move(t));
}

Value NodeImporter::sizes(const op::Sizes &values) {
  Value v = ints({bitsOf(values), bitsOf(values) + values.size()});
  v.symbolic = std::ranges::any_of(values, &Size::isSymbolic);
  return v;
}

void NodeImporter::out(int i, Value value) {
  if (wants(i))
    graph_.scopes.back()[node_.output(i)] = std::move(value);
}

Value NodeImporter::cast(Value v, DType to) { return v.dtype() == to ? v : emit("cast", {v}, {{"dtype", to}}); }

Value NodeImporter::reshape(Value v, const Shape &shape) {
  if (v.type.shape == shape)
    return v;
  if (v.host) { // the same bytes, whatever their size
    if (dim::distinct(dim::numElements(v.type.shape), dim::numElements(shape)))
      fail(v.type.str() + " has not as many elements as " + shape.str());
    op::HostTensor t = *v.host;
    t.type.shape = shape;
    return Value(std::move(t), v.symbolic);
  }
  return emit("reshape", {v}, {{"shape", op::sizesOf(shape)}});
}

Value NodeImporter::transpose(Value v, std::vector<int64_t> perm) {
  bool identity = true;
  for (size_t i = 0; i < perm.size(); ++i)
    identity &= perm[i] == static_cast<int64_t>(i);
  return identity ? v : emit("transpose", {v}, {{"permutation", std::move(perm)}});
}

Value NodeImporter::broadcastTo(Value v, const Shape &shape) {
  return v.type.shape == shape ? v : emit("broadcast_to", {v}, {{"shape", op::sizesOf(shape)}});
}

Value NodeImporter::sliceAxis(const Value &v, int axis, Size from, Size to, int64_t step) {
  op::Sizes starts(static_cast<size_t>(v.rank())), limits = op::sizesOf(v.type.shape);
  op::Ints steps(starts.size(), 1);
  const auto d = static_cast<size_t>(axis);
  starts[d] = from;
  limits[d] = to;
  steps[d] = step;
  return emit("slice", {v}, {{"starts", starts}, {"limits", limits}, {"strides", steps}});
}

void NodeImporter::sameType(const Value &a, const Value &b) const {
  for (const Value *v : {&a, &b}) // sizes stay i64 whatever they were converted to
    if (v->symbolic)
      return;
  if (a.dtype() != b.dtype())
    fail("operands have different element types: " + a.type.str() + " and " + b.type.str());
}

void NodeImporter::requireFloat(const Value &v) const {
  if (!isFloat(v.dtype()))
    fail("needs a floating-point operand, not " + v.type.str());
}

} // namespace tressel::onnx
