// Expressions that composites' decompositions are written in: `exp(x - max(x, {axis}, true))`. The functions, one per op,
// are generated (Exprs.h). Nothing is emitted until a decomposition is finished, then in post-order, so that the order of
// the ops does not depend on the order in which the compiler evaluates arguments.
#pragma once

#include "ir/op/OpInfo.h"

#include <initializer_list>

namespace tressel::op::expr {

/// A list of integers that may be absent: {} is absent.
class OptionalInts {
public:
  OptionalInts() = default;
  OptionalInts(std::initializer_list<int64_t> values) : value(Ints(values)) {}
  OptionalInts(Ints values) : value(std::move(values)) {}
  Attr attr() const { return value; }

private:
  Attr value;
};

class Expr {
public:
  const TensorType &type() const { return node->type; }
  int rank() const { return type().rank(); }
  int64_t size(int dim) const { return type().shape[dim]; }
  DType dtype() const { return type().dtype; }

  /// Throws InternalError when the op does not accept the operands: a bug in the decomposition.
  static Expr apply(const OpInfo &op, std::vector<Expr> operands, Attrs attrs);
  static Expr scalar(double value, DType type);

private:
  friend class Decomposition;
  struct Node {
    TensorType type;
    const OpInfo *op = nullptr; ///< null: an input (value set) or a constant
    std::vector<Expr> operands;
    Attrs attrs;
    double constant = 0;
    Emitter::Ref value = nullptr;
  };
  std::shared_ptr<Node> node;
};

Expr operator+(const Expr &a, const Expr &b);
Expr operator-(const Expr &a, const Expr &b);
Expr operator*(const Expr &a, const Expr &b);
Expr operator/(const Expr &a, const Expr &b);
inline Expr operator+(const Expr &a, double b) { return a + Expr::scalar(b, a.dtype()); }
inline Expr operator-(const Expr &a, double b) { return a - Expr::scalar(b, a.dtype()); }
inline Expr operator*(const Expr &a, double b) { return a * Expr::scalar(b, a.dtype()); }
inline Expr operator/(const Expr &a, double b) { return a / Expr::scalar(b, a.dtype()); }
inline Expr operator-(double a, const Expr &b) { return Expr::scalar(a, b.dtype()) - b; }

/// Converted to the type sums are best computed in: f32 for all but f64.
Expr wide(const Expr &x);

/// One run of a decomposition.
class Decomposition {
public:
  Decomposition(const OpInfo &op, Emitter &emitter, std::span<const Emitter::Ref> inputs, const Attrs &attrs);
  const Expr &input(int i) const { return inputs[static_cast<size_t>(i)]; }
  const TensorType &resultType(int i) const { return resultTypes[static_cast<size_t>(i)]; }
  std::vector<Emitter::Ref> finish(const Expr &result);

private:
  Emitter::Ref emit(Expr::Node &node);
  Emitter &emitter;
  std::vector<Expr> inputs;
  std::vector<TensorType> resultTypes;
};

} // namespace tressel::op::expr
