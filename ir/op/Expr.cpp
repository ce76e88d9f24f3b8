#include "ir/op/Expr.h"

#include "ir/op/Exprs.h"
#include "tressel/runtime/Error.h"

#include <algorithm>

namespace tressel::op::expr {

std::vector<Expr> Expr::apply(const OpInfo &op, std::vector<Expr> operands, Attrs attrs) {
  while (!operands.empty() && !operands.back())
    operands.pop_back();
  std::vector<TensorType> types;
  for (const Expr &e : operands)
    types.push_back(e.type());
  std::string error = completeAttrs(op, attrs);
  Inferred inferred;
  if (error.empty()) {
    inferred = op.infer(op, types, attrs);
    error = inferred.error;
  }
  if (!error.empty())
    throw WrongOp(error);
  Expr e;
  e.node = std::make_shared<Node>();
  e.node->types = std::move(inferred.types);
  e.node->op = &op;
  e.node->operands = std::move(operands);
  e.node->attrs = std::move(attrs);
  std::vector<Expr> results(e.node->types.size(), e);
  for (size_t i = 0; i < results.size(); ++i)
    results[i].result = i;
  return results;
}

Expr Expr::scalar(double value, DType type) {
  Expr e;
  e.node = std::make_shared<Node>();
  e.node->types = {{type, {}}};
  e.node->constant = value;
  return e;
}

Expr Expr::number(Size size, DType type) {
  if (!size.isNumber())
    return dim_size(size, type);
  const int64_t whole = size.number();
  constexpr int64_t exact = int64_t(1) << 53;
  if (type == DType::i64 && (whole < -exact || whole > exact))
    return table({whole}, {});
  return scalar(static_cast<double>(whole), type);
}

Expr Expr::table(const Ints &values, const Shape &shape) {
  Expr e;
  e.node = std::make_shared<Node>();
  e.node->types = {{DType::i64, shape}};
  e.node->table = HostTensor::allocate(e.type());
  std::copy(values.begin(), values.end(), e.node->table->as<int64_t>());
  return e;
}

Expr Expr::table(const std::vector<double> &values, const Shape &shape, DType type) {
  Expr e;
  e.node = std::make_shared<Node>();
  e.node->types = {{type, shape}};
  e.node->table = HostTensor::allocate(e.type());
  if (type == DType::f64)
    std::copy(values.begin(), values.end(), e.node->table->as<double>());
  else
    std::transform(values.begin(), values.end(), e.node->table->as<float>(),
                   [](double v) { return static_cast<float>(v); });
  return e;
}

Expr operator+(const Expr &a, const Expr &b) { return add(a, b); }
Expr operator-(const Expr &a, const Expr &b) { return sub(a, b); }
Expr operator*(const Expr &a, const Expr &b) { return mul(a, b); }
Expr operator/(const Expr &a, const Expr &b) { return div(a, b); }

Expr wide(const Expr &x) { return x.dtype() == DType::f32 || x.dtype() == DType::f64 ? x : cast(x, DType::f32); }
Expr wide(const Expr &x, DType result) { 
  const DType type = result == DType::f64 ? DType::f64 : DType::f32;
  return x.dtype() == type ? x : cast(x, type);
}

Expr reduceLoss(const Expr &elements, std::string_view reduction) {
  return reduction == "mean" ? mean(elements) : reduction == "sum" ? sum(elements) : elements;
}

Expr checkedLabels(const Expr &labels, const Expr &counts, Size classes) {
  Expr ids = cast(labels, DType::i64), zero = Expr::scalar(0, DType::i64);
  // Replaces negative labels, which would index from the end, by an index out of range, so that the launch fails.
  Expr place = where(less(ids, zero), dim_size(classes), ids);
  return take(iota({classes}, 0, DType::i64), where(counts, place, zero), 0);
}

Decomposition::Decomposition(const OpInfo &op, Emitter &emitter, std::span<const Emitter::Ref> refs, const Attrs &attrs)
    : Fragment(emitter), op(op), attrs(attrs) {
  for (Emitter::Ref ref : refs)
    inputs.push_back(take(ref));
}

const TensorType &Decomposition::resultType(int i) {
  if (resultTypes.empty()) {
    std::vector<TensorType> types;
    for (const Expr &e : inputs)
      types.push_back(e.type());
    Inferred inferred = op.infer(op, types, attrs);
    if (!inferred)
      throw InternalError("decomposing a wrong op: " + inferred.error);
    resultTypes = std::move(inferred.types);
  }
  return resultTypes[static_cast<size_t>(i)];
}

const Expr &Decomposition::input(int i) const {
  static const Expr absent;
  return static_cast<size_t>(i) < inputs.size() ? inputs[static_cast<size_t>(i)] : absent;
}

Expr Fragment::take(Emitter::Ref ref) const {
  Expr e;
  if (!ref)
    return e;
  e.node = std::make_shared<Expr::Node>();
  e.node->types = {emitter.typeOf(ref)};
  e.node->values = {ref};
  return e;
}

Emitter::Ref Fragment::emit(const Expr &expr) {
  Expr::Node &node = *expr.node;
  if (!node.values.empty())
    return node.values[expr.result];
  if (node.table) {
    node.values = {emitter.constant(*node.table)};
    return node.values[0];
  }
  if (!node.op) {
    node.values = {emitter.constant(node.constant, expr.type().dtype)};
    return node.values[0];
  }
  // Omits conversions to the type that a value already has, so that fragments may convert unconditionally.
  if (node.op->isIdentity && node.operands.size() == 1) {
    TensorType from = node.operands[0].type();
    if (node.op->isIdentity(*node.op, {&from, 1}, node.types, node.attrs)) {
      node.values = {emit(node.operands[0])};
      return node.values[0];
    }
  }
  std::vector<Emitter::Ref> operands;
  for (const Expr &e : node.operands)
    operands.push_back(emit(e));
  node.values = emitter.emit(*node.op, operands, node.attrs);
  return node.values[expr.result];
}

std::vector<Emitter::Ref> Decomposition::finish(const std::vector<Expr> &results) {
  std::vector<Emitter::Ref> refs;
  for (const Expr &result : results)
    refs.push_back(emit(result));
  return refs;
}

} // namespace tressel::op::expr
