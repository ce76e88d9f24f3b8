// Expressions for decompositions of composites: `exp(x - max(x, {axis}, true))`. The functions, one per op, are
// generated (Exprs.h). Ops are emitted once a decomposition is finished, in post-order, so that their order does not
// depend on the order in which the C++ compiler evaluates arguments.
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

/// A decomposition uses an op with operands that the op rejects.
struct WrongOp : InternalError {
  explicit WrongOp(const std::string &why) : InternalError("a decomposition built a wrong op: " + why), why(why) {}
  std::string why;
};

/// An empty Expr is an optional operand that is absent.
class Expr {
public:
  Expr() = default;
  explicit operator bool() const { return node != nullptr; }
  const TensorType &type() const { return node->types[result]; }
  int rank() const { return type().rank(); }
  Size size(int dim) const { return type().shape[dim]; }
  Sizes sizes() const { return {type().shape.begin(), type().shape.end()}; }
  DType dtype() const { return type().dtype; }

  /// Throws WrongOp if the op rejects the operands. That is a bug in the decomposition, except where types are inferred
  /// through it. Empty operands at the end are dropped.
  static std::vector<Expr> apply(const OpInfo &op, std::vector<Expr> operands, Attrs attrs);
  static Expr scalar(double value, DType type);
  /// A size as a scalar: a constant, or for a symbolic size the op `dim_size`.
  static Expr number(Size size, DType type = DType::i64);
  /// Constant tensors with these values: of i64, and of f32 or f64.
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
    std::vector<Emitter::Ref> values; ///< set once emitted
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

/// The attribute `axis` of a reduction, as an argument of another one.
inline OptionalInts optional(const Ints *values) { return values ? OptionalInts(*values) : OptionalInts(); }
/// The element type of results that are floats: x's, or f32.
inline DType floatType(const Expr &x) { return isFloat(x.dtype()) ? x.dtype() : DType::f32; }
/// Converts x to the type for accurate sums: f64 for f64, else f32.
Expr wide(const Expr &x);
/// Converts x to the type in which results of type `result` are computed: f64 for f64, else f32.
Expr wide(const Expr &x, DType result);
/// Reduces the elements of a loss by "mean" or "sum"; "none" returns them.
Expr reduceLoss(const Expr &elements, std::string_view reduction);
/// Labels as i64. A label where `counts` is true must be a valid class: if not, the launch fails.
Expr checkedLabels(const Expr &labels, const Expr &counts, Size classes);

/// Base of the code that runs a record's fragment: wraps an emitter's values as expressions, and emits the result.
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
  /// The inferred type. A decomposition through which the op's types are inferred (`inferDecomposition`) must not ask
  /// for it.
  const TensorType &resultType(int i);
  std::vector<Emitter::Ref> finish(const Expr &result) { return {emit(result)}; }
  std::vector<Emitter::Ref> finish(const std::vector<Expr> &results);

private:
  const OpInfo &op;
  const Attrs &attrs;
  std::vector<Expr> inputs;
  std::vector<TensorType> resultTypes; ///< filled at first use
};

} // namespace tressel::op::expr
