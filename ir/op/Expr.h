// Expressions that composites' decompositions are written in: `exp(x - max(x, {axis}, true))`. The functions, one per
// op, are generated (Exprs.h). Nothing is emitted until a decomposition is finished, then in post-order, so that the
// order of the ops does not depend on the order in which the compiler evaluates arguments.
#pragma once

#include "ir/op/OpInfo.h"
#include "tressel/runtime/Error.h"

#include <initializer_list>
#include <optional>

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

template <typename T> Attr toAttr(const std::optional<T> &value) { return value ? Attr(*value) : Attr(); }

/// The operands of an op in a decomposition do not suit it.
struct WrongOp : InternalError {
  explicit WrongOp(const std::string &why) : InternalError("a decomposition built a wrong op: " + why), why(why) {}
  std::string why;
};

/// An empty one stands for an optional operand that is absent.
class Expr {
public:
  Expr() = default;
  explicit operator bool() const { return node != nullptr; }
  const TensorType &type() const { return node->types[result]; }
  int rank() const { return type().rank(); }
  Size size(int dim) const { return type().shape[dim]; }
  Sizes sizes() const { return {type().shape.begin(), type().shape.end()}; }
  DType dtype() const { return type().dtype; }

  /// Throws WrongOp when the op does not accept the operands: a bug in the decomposition, but where types are inferred
  /// from it.
  /// Empty operands at the end are left out.
  static std::vector<Expr> apply(const OpInfo &op, std::vector<Expr> operands, Attrs attrs);
  static Expr scalar(double value, DType type);
  /// A size as a scalar: a constant, or for a symbolic one what `dim_size` gives.
  static Expr number(Size size, DType type = DType::i64);
  /// Constant tensors of a shape that holds the values: i64, and f32 or f64.
  static Expr table(const Ints &values, const Shape &shape);
  static Expr table(const std::vector<double> &values, const Shape &shape, DType type);

private:
  friend class Fragment;
  struct Node {
    std::vector<TensorType> types; ///< of the results
    const OpInfo *op = nullptr;    ///< null: an input (values set) or a constant
    std::vector<Expr> operands;
    Attrs attrs;
    double constant = 0;
    std::optional<HostTensor> table;
    std::vector<Emitter::Ref> values; ///< once emitted
  };
  std::shared_ptr<Node> node;
  size_t result = 0;
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

/// The attribute `axis` of a reduction, handed on.
inline OptionalInts optional(const Ints *values) { return values ? OptionalInts(*values) : OptionalInts(); }
/// The element type of results that are floats: x's, or f32.
inline DType floatType(const Expr &x) { return isFloat(x.dtype()) ? x.dtype() : DType::f32; }
/// Converted to the type sums are best computed in: f32 for all but f64.
Expr wide(const Expr &x);
/// x in the type in which results of `result` are computed: f64 for f64, else f32.
Expr wide(const Expr &x, DType result);
/// A loss of all elements: their mean, their sum, or, for "none", they themselves.
Expr reduceLoss(const Expr &elements, std::string_view reduction);
/// Labels as i64, of which those that count must be classes: another one fails the launch.
Expr checkedLabels(const Expr &labels, const Expr &counts, Size classes);

/// What runs a fragment of a record: takes values of an emitter as expressions, and emits what it makes of them.
class Fragment {
protected:
  explicit Fragment(Emitter &emitter) : emitter(emitter) {}
  /// Empty for a null ref.
  Expr take(Emitter::Ref ref) const;
  Emitter::Ref emit(const Expr &expr);
  Emitter &emitter;
};

/// One run of a decomposition.
class Decomposition : Fragment {
public:
  Decomposition(const OpInfo &op, Emitter &emitter, std::span<const Emitter::Ref> inputs, const Attrs &attrs);
  /// Empty for an optional operand that is absent.
  const Expr &input(int i) const;
  std::vector<Expr> inputsFrom(int i) const { return {inputs.begin() + i, inputs.end()}; }
  /// As inferred; not to be asked by a decomposition that the op's types are inferred from (`inferDecomposition`).
  const TensorType &resultType(int i);
  std::vector<Emitter::Ref> finish(const Expr &result) { return {emit(result)}; }
  std::vector<Emitter::Ref> finish(const std::vector<Expr> &results);

private:
  const OpInfo &op;
  const Attrs &attrs;
  std::vector<Expr> inputs;
  std::vector<TensorType> resultTypes; ///< empty until asked for
};

} // namespace tressel::op::expr
