// Evaluation at import: small known values, and sizes as expressions over symbols.
#include "frontend/onnx/NodeImporter.h"
#include "ir/op/Infer.h"
#include "ir/op/Sym.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>

namespace tressel::onnx {

/// Values up to this size are computed at import: shapes and the arithmetic on them, not weights.
static constexpr int64_t kFoldBytes = 4096;

static Value sizesValue(op::HostTensor sizes) {
  const int64_t *bits = sizes.as<int64_t>();
  const bool symbolic =
      std::any_of(bits, bits + sizes.type.shape.numElements(), [](int64_t b) { return b < Size::kLeast; });
  return Value(std::move(sizes), symbolic);
}
/// Whether all elements are sizes. A model's own number may be below Size::kLeast, which is none.
static bool holdsSizes(const Value &v) {
  const int64_t *numbers = v.host->as<int64_t>();
  return v.symbolic ||
         std::all_of(numbers, numbers + v.type.shape.numElements(), [](int64_t n) { return n >= Size::kLeast; });
}

/// One step of a scalar program on sizes; nothing if that is no expression, or not decided by the bounds.
static std::optional<Size> scalarOfSizes(const op::ScalarNode &node, const std::optional<Size> (&args)[3]) {
  using enum op::ScalarOp;
  switch (node.op) { // cases that one operand decides
  case Const:
    return tressel::Size::clamped(node.i);
  case And:
  case Or: {
    const tressel::Size decides = node.op == Or ? 1 : 0;
    if (node.dtype != DType::boolean)
      return {};
    if (args[0] == decides || args[1] == decides)
      return decides;
    return args[0] && args[1] ? std::optional(1 - decides) : std::nullopt;
  }
  case Select:
    if (args[0])
      return *args[0] ? args[1] : args[2];
    return args[1] == args[2] ? args[1] : std::nullopt;
  default:
    break;
  }
  for (int k = 0; k < 3; ++k)
    if (node.args[k] >= 0 && !args[k])
      return {};
  const tressel::Size a = args[0].value_or(0), b = args[1].value_or(0);
  auto truth = [](bool holds) { return tressel::Size(holds ? 1 : 0); };
  auto decided = [](std::optional<bool> v) { return v ? std::optional<tressel::Size>(*v ? 1 : 0) : std::nullopt; };
  auto opposite = [](std::optional<bool> v) { return v ? std::optional<tressel::Size>(*v ? 0 : 1) : std::nullopt; };
  switch (node.op) {
  case Cast:
    return node.dtype != DType::boolean ? std::optional(a)
           : dim::distinct(a, 0)        ? std::optional<tressel::Size>(1)
           : a == 0                     ? std::optional<tressel::Size>(0)
                                        : std::nullopt;
  case Add:
    return a + b;
  case Sub:
    return a - b;
  case Mul:
    return a * b;
  case Div:
  case Rem: // for non-negative operands rounding down is truncation
    if (dim::bounds(a).lo < 0 || dim::bounds(b).lo <= 0)
      return {};
    return node.op == Div ? dim::floorDiv(a, b) : dim::mod(a, b);
  case Min:
    return dim::min(a, b);
  case Max:
    return dim::max(a, b);
  case Neg:
    return -a;
  case Abs:
    return dim::max(a, -a);
  case Sign:
    if (dim::bounds(a).lo > 0 || dim::bounds(a).hi < 0)
      return dim::bounds(a).lo > 0 ? 1 : -1;
    return a == 0 ? std::optional<tressel::Size>(0) : std::nullopt;
  case Not:
    return node.dtype == DType::boolean ? std::optional(truth(a == 0)) : std::nullopt;
  case Xor:
    return node.dtype == DType::boolean ? std::optional(truth(a != b)) : std::nullopt;
  case Eq:
  case Ne:
    if (!dim::equal(a, b) && !dim::distinct(a, b))
      return {};
    return truth(dim::equal(a, b) == (node.op == Eq));
  case Lt:
    return decided(dim::less(a, b));
  case Gt:
    return decided(dim::less(b, a));
  case Ge:
    return opposite(dim::less(a, b));
  case Le:
    return opposite(dim::less(b, a));
  default:
    return {};
  }
}

/// An elementwise op on sizes, by its scalar program. Nothing if the result is no size expression, or depends on a
/// comparison that bounds do not decide: then the program computes it at run time.
std::optional<Value> NodeImporter::computeSizes(const op::OpInfo &info, const std::vector<Value> &operands,
                                                const op::Attrs &attrs, const TensorType &result) const {
  std::vector<TensorType> types;
  for (const Value &v : operands) {
    types.push_back(v.type);
    const bool fits = v.type.shape == result.shape || v.type.shape.numElements() == 1;
    const bool isSize = v.dtype() == DType::i64 && holdsSizes(v);
    if (!fits || (!isSize && v.dtype() != DType::boolean))
      return {};
  }
  const op::ScalarProgram program = op::recordElementwise(info, types, result, attrs);
  // Conversion to a narrower integer keeps the symbolic sizes, as 32 bits cannot hold an expression.
  if (operands.size() == 1 && isInteger(result.dtype) &&
      std::ranges::all_of(program.nodes, [](const op::ScalarNode &n) {
        return n.op == op::ScalarOp::Operand || n.op == op::ScalarOp::Cast;
      }))
    return sizesValue(*operands[0].host);
  if (result.dtype != DType::i64 && result.dtype != DType::boolean)
    return {};
  op::HostTensor out = op::HostTensor::allocate(result);
  std::vector<std::optional<Size>> values(program.nodes.size()); // nothing: unknown, which the final result may not use
  for (int64_t e = 0; e < result.shape.numElements(); ++e) {
    for (size_t i = 0; i < program.nodes.size(); ++i) {
      const op::ScalarNode &node = program.nodes[i];
      if (node.dtype != DType::i64 && node.dtype != DType::boolean)
        return {};
      if (node.op == op::ScalarOp::Operand) {
        const Value &v = operands[static_cast<size_t>(node.i)];
        const int64_t at = v.type.shape.numElements() == 1 ? 0 : e;
        values[i] = v.dtype() == DType::boolean ? Size(v.host->as<uint8_t>()[at]) : v.size(at);
        continue;
      }
      std::optional<Size> args[3];
      for (int k = 0; k < 3; ++k)
        if (node.args[k] >= 0)
          args[k] = values[static_cast<size_t>(node.args[k])];
      values[i] = scalarOfSizes(node, args);
    }
    if (!values[static_cast<size_t>(program.result)])
      return {};
    const Size value = *values[static_cast<size_t>(program.result)];
    if (value == kDynamic)
      return {};
    if (result.dtype == DType::boolean)
      out.as<uint8_t>()[e] = value != 0;
    else
      out.as<int64_t>()[e] = value.bits();
  }
  return result.dtype == DType::boolean ? Value(std::move(out)) : sizesValue(std::move(out));
}

/// The sum, product or extreme of a list of sizes.
static std::optional<Value> reduceSizes(const op::OpInfo &info, const std::vector<Value> &operands,
                                        const TensorType &result) {
  if (operands.size() != 1 || operands[0].rank() != 1 || operands[0].dtype() != DType::i64 || info.isMean ||
      result.dtype != DType::i64 || result.shape.numElements() != 1)
    return {};
  const Value &sizes = operands[0];
  Size value = sizes.size(0); // a list that holds symbols is not empty
  for (int64_t i = 1; i < sizes.dim(0).number(); ++i)
    switch (info.combine) {
    case op::Combine::Sum:
      value += sizes.size(i);
      break;
    case op::Combine::Prod:
      value *= sizes.size(i);
      break;
    case op::Combine::Max:
      value = dim::max(value, sizes.size(i));
      break;
    case op::Combine::Min:
      value = dim::min(value, sizes.size(i));
      break;
    default:
      return {};
    }
  if (value == kDynamic) // the expression exceeds 64 bits
    return {};
  op::HostTensor out = op::HostTensor::allocate(result);
  *out.as<int64_t>() = value.bits();
  return sizesValue(std::move(out));
}

std::optional<Value> NodeImporter::fold(const op::OpInfo &info, const std::vector<Value> &inputs,
                                        const op::Attrs &attrs, const TensorType &result) const {
  if (!info.evaluate || info.numResults != 1 || !result.shape.isStatic() || op::isSymbolic(attrs) ||
      result.bytes() > kFoldBytes)
    return {};
  std::vector<op::HostTensor> operands;
  for (const Value &v : inputs) {
    if (!v.host || v.type.bytes() > kFoldBytes)
      return {};
    operands.push_back(*v.host);
  }
  // Movement ops treat symbolic sizes like numbers; arithmetic makes expressions of them.
  const bool symbolic = std::ranges::any_of(inputs, &Value::symbolic);
  if (symbolic) {
    if (info.elementwise)
      return computeSizes(info, inputs, attrs, result);
    if (info.family == op::Family::Reduction)
      return reduceSizes(info, inputs, result);
    if (info.family != op::Family::Shape && info.family != op::Family::Indexing)
      return {};
  }
  std::vector<op::HostTensor> results{op::HostTensor::allocate(result)};
  try {
    info.evaluate(info, operands, attrs, results);
  } catch (const RuntimeError &e) { // an index that is outside of its dimension
    fail(e.message());
  }
  return symbolic && results[0].type.dtype == i64 ? sizesValue(results[0]) : Value(results[0]);
}

} // namespace tressel::onnx
