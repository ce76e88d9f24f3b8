#include "ir/op/Expr.h"

#include "ir/op/Exprs.h"
#include "tressel/runtime/Error.h"

namespace tressel::op::expr {

Expr Expr::apply(const OpInfo &op, std::vector<Expr> operands, Attrs attrs) {
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
    throw InternalError("a decomposition built a wrong op: " + error);
  Expr e;
  e.node = std::make_shared<Node>();
  e.node->type = inferred.types.front();
  e.node->op = &op;
  e.node->operands = std::move(operands);
  e.node->attrs = std::move(attrs);
  return e;
}

Expr Expr::scalar(double value, DType type) {
  Expr e;
  e.node = std::make_shared<Node>();
  e.node->type = {type, {}};
  e.node->constant = value;
  return e;
}

Expr operator+(const Expr &a, const Expr &b) { return add(a, b); }
Expr operator-(const Expr &a, const Expr &b) { return sub(a, b); }
Expr operator*(const Expr &a, const Expr &b) { return mul(a, b); }
Expr operator/(const Expr &a, const Expr &b) { return div(a, b); }

Expr wide(const Expr &x) {
  return x.dtype() == DType::f32 || x.dtype() == DType::f64 ? x : cast(x, DType::f32);
}

Decomposition::Decomposition(const OpInfo &op, Emitter &emitter, std::span<const Emitter::Ref> refs, const Attrs &attrs)
    : emitter(emitter) {
  std::vector<TensorType> types;
  for (Emitter::Ref ref : refs) {
    Expr e;
    e.node = std::make_shared<Expr::Node>();
    e.node->type = emitter.typeOf(ref);
    e.node->value = ref;
    types.push_back(e.node->type);
    inputs.push_back(std::move(e));
  }
  Inferred inferred = op.infer(op, types, attrs);
  if (!inferred)
    throw InternalError("decomposing a wrong op: " + inferred.error);
  resultTypes = std::move(inferred.types);
}

Emitter::Ref Decomposition::emit(Expr::Node &node) {
  if (node.value)
    return node.value;
  if (!node.op)
    return node.value = emitter.constant(node.constant, node.type.dtype);
  // A conversion to the type a value already has is left out, so that fragments may convert without asking.
  if (node.op->isIdentity && node.operands.size() == 1) {
    TensorType from = node.operands[0].type();
    if (node.op->isIdentity(*node.op, {&from, 1}, {&node.type, 1}, node.attrs))
      return node.value = emit(*node.operands[0].node);
  }
  std::vector<Emitter::Ref> operands;
  for (const Expr &e : node.operands)
    operands.push_back(emit(*e.node));
  return node.value = emitter.emit(*node.op, operands, node.attrs).front();
}

std::vector<Emitter::Ref> Decomposition::finish(const Expr &result) { return {emit(*result.node)}; }

} // namespace tressel::op::expr
