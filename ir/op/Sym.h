// Symbolic scalars: running a scalar fragment on them records a ScalarProgram.
#pragma once

#include "ir/op/OpInfo.h"

#include <concepts>

namespace tressel::op {

/// Builds a program; equal nodes are merged.
class ScalarRecorder {
public:
  int32_t add(const ScalarNode &node);
  int32_t constant(DType type, double value, int64_t integer);
  DType dtype(int32_t node) const { return program.nodes[static_cast<size_t>(node)].dtype; }
  ScalarProgram program;
};

struct TypeTag {
  DType dtype;
};

template <class L>
concept SymLiteral = std::integral<L> || std::floating_point<L>;

/// A literal as an integer; 0 for a fraction, which no caller requests as an integer.
template <SymLiteral L> int64_t wholeOf(L value) {
  if constexpr (std::floating_point<L>)
    return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : 0;
  else
    return static_cast<int64_t>(value);
}

/// A node of a program that is being recorded. Both operands of an operator have one type; a literal takes that of the
/// other.
class Sym {
public:
  Sym(ScalarRecorder *recorder, int32_t node) : recorder(recorder), node(node) {}
  DType dtype() const { return recorder->dtype(node); }
  template <SymLiteral L> Sym literal(L value) const {
    return {recorder, recorder->constant(dtype(), static_cast<double>(value), wholeOf(value))};
  }
  Sym unary(ScalarOp op, DType result) const { return {recorder, recorder->add({op, result, {node, -1, -1}})}; }
  Sym unary(ScalarOp op) const { return unary(op, dtype()); }
  Sym binary(ScalarOp op, Sym b, DType result) const {
    return {recorder, recorder->add({op, result, {node, b.node, -1}})};
  }
  Sym to(DType type) const { return type == dtype() ? *this : unary(ScalarOp::Cast, type); }

  ScalarRecorder *recorder;
  int32_t node;
};

#define TRESSEL_SYM_BINARY(function, op, result)                                                                       \
  inline Sym function(Sym a, Sym b) { return a.binary(ScalarOp::op, b, result); }                                      \
  template <SymLiteral L> Sym function(Sym a, L b) { return function(a, a.literal(b)); }                                  \
  template <SymLiteral L> Sym function(L a, Sym b) { return function(b.literal(a), b); }
TRESSEL_SYM_BINARY(operator+, Add, a.dtype())
TRESSEL_SYM_BINARY(operator-, Sub, a.dtype())
TRESSEL_SYM_BINARY(operator*, Mul, a.dtype())
TRESSEL_SYM_BINARY(operator/, Div, a.dtype())
TRESSEL_SYM_BINARY(operator%, Rem, a.dtype())
TRESSEL_SYM_BINARY(operator&, And, a.dtype())
TRESSEL_SYM_BINARY(operator|, Or, a.dtype())
TRESSEL_SYM_BINARY(operator^, Xor, a.dtype())
TRESSEL_SYM_BINARY(operator<<, Shl, a.dtype())
TRESSEL_SYM_BINARY(operator>>, Shr, a.dtype())
TRESSEL_SYM_BINARY(operator&&, And, DType::boolean)
TRESSEL_SYM_BINARY(operator||, Or, DType::boolean)
TRESSEL_SYM_BINARY(operator==, Eq, DType::boolean)
TRESSEL_SYM_BINARY(operator!=, Ne, DType::boolean)
TRESSEL_SYM_BINARY(operator<, Lt, DType::boolean)
TRESSEL_SYM_BINARY(operator<=, Le, DType::boolean)
TRESSEL_SYM_BINARY(operator>, Gt, DType::boolean)
TRESSEL_SYM_BINARY(operator>=, Ge, DType::boolean)
TRESSEL_SYM_BINARY(pow, Pow, a.dtype())
TRESSEL_SYM_BINARY(min, Min, a.dtype())
TRESSEL_SYM_BINARY(max, Max, a.dtype())
TRESSEL_SYM_BINARY(atan2, Atan2, a.dtype())
#undef TRESSEL_SYM_BINARY

#define TRESSEL_SYM_UNARY(function, op)                                                                                \
  inline Sym function(Sym x) { return x.unary(ScalarOp::op); }
TRESSEL_SYM_UNARY(operator-, Neg)
TRESSEL_SYM_UNARY(operator!, Not)
TRESSEL_SYM_UNARY(operator~, Not)
TRESSEL_SYM_UNARY(abs, Abs)
TRESSEL_SYM_UNARY(sign, Sign)
TRESSEL_SYM_UNARY(floor, Floor)
TRESSEL_SYM_UNARY(ceil, Ceil)
TRESSEL_SYM_UNARY(round, Round)
TRESSEL_SYM_UNARY(trunc, Trunc)
TRESSEL_SYM_UNARY(sqrt, Sqrt)
TRESSEL_SYM_UNARY(rsqrt, Rsqrt)
TRESSEL_SYM_UNARY(exp, Exp)
TRESSEL_SYM_UNARY(expm1, Expm1)
TRESSEL_SYM_UNARY(log, Log)
TRESSEL_SYM_UNARY(log1p, Log1p)
TRESSEL_SYM_UNARY(sin, Sin)
TRESSEL_SYM_UNARY(cos, Cos)
TRESSEL_SYM_UNARY(tan, Tan)
TRESSEL_SYM_UNARY(asin, Asin)
TRESSEL_SYM_UNARY(acos, Acos)
TRESSEL_SYM_UNARY(atan, Atan)
TRESSEL_SYM_UNARY(sinh, Sinh)
TRESSEL_SYM_UNARY(cosh, Cosh)
TRESSEL_SYM_UNARY(tanh, Tanh)
TRESSEL_SYM_UNARY(erf, Erf)
TRESSEL_SYM_UNARY(sigmoid, Logistic)
#undef TRESSEL_SYM_UNARY
inline Sym isnan(Sym x) { return x.unary(ScalarOp::IsNan, DType::boolean); }

inline Sym cast(Sym x, TypeTag type) { return x.to(type.dtype); }
template <SymLiteral L> Sym like(Sym x, L value) { return x.literal(value); }
inline Sym select(Sym condition, Sym a, Sym b) {
  return {a.recorder, a.recorder->add({ScalarOp::Select, a.dtype(), {condition.node, a.node, b.node}})};
}
template <SymLiteral L> Sym select(Sym condition, Sym a, L b) { return select(condition, a, a.literal(b)); }
template <SymLiteral L> Sym select(Sym condition, L a, Sym b) { return select(condition, b.literal(a), b); }
/// The largest integer not above a / b. Integer division computes it. For floats the quotient is computed exactly,
/// since a rounded quotient (of 1 and 0.1, for example) may be above the true one.
inline Sym floorQuotient(Sym a, Sym b, TypeTag type) {
  if (!isFloat(type.dtype))
    return a / b;
  Sym size = abs(a) % abs(b), quotient = (a - select(a < 0, -size, size)) / b;
  Sym below = select(size != 0 && (a < 0) != (b < 0), quotient - 1, quotient);
  return select(b == 0, a / b, select(below == 0, a / b * 0, round(below))); // a zero has the quotient's sign
}

/// What a fragment may use besides its operands.
class SymContext {
public:
  SymContext(ScalarRecorder *recorder, DType compute, const Shape &shape)
      : result{compute}, recorder(recorder), shape(shape) {}
  /// The element's index in dimension `dim` of the result, i64.
  Sym index(int64_t dim) const;
  /// Its row-major index, i64.
  Sym linearIndex() const;
  int64_t rank() const { return shape.rank(); }
  /// The result's size in dimension `dim`, i64.
  Sym size(int64_t dim) const { return sizeOf(shape[static_cast<int>(dim)]); }
  /// A size that an attribute gives, i64.
  Sym sizeOf(Size size) const;
  Sym lift(Sym value) const { return value; }
  template <SymLiteral L> Sym lift(L value) const {
    // A fraction is converted to an integer or bool result as `cast` does; it must not be truncated here.
    DType type = std::floating_point<L> && !isFloat(result.dtype) ? DType::f64 : result.dtype;
    return {recorder, recorder->constant(type, static_cast<double>(value), wholeOf(value))};
  }

  TypeTag result; ///< what the op computes in
  TypeTag f32{DType::f32}, f64{DType::f64}, i64{DType::i64}, boolean{DType::boolean};

private:
  ScalarRecorder *recorder;
  const Shape &shape;
};

/// The complete scalar program of an elementwise op on operands of these types, conversions of operands and result
/// included.
ScalarProgram recordElementwise(const OpInfo &op, std::span<const TensorType> operands, const TensorType &result,
                                const Attrs &attrs);

} // namespace tressel::op
