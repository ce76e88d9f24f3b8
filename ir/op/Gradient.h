// Reverse rules: compute the cotangents of an op's operands from those of its results. A rule is written as expressions
// of other ops, so that it works with any Emitter and is differentiable itself.
#pragma once

#include "ir/op/Expr.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <unordered_set>

namespace tressel::op::expr {

/// The result of a rule: a cotangent per operand, empty for zero; missing ones at the end are zero.
class Cotangents {
public:
  Cotangents(Expr only) : values{std::move(only)} {}
  Cotangents(std::initializer_list<Expr> values) : values(values) {}
  Cotangents(std::vector<Expr> values) : values(std::move(values)) {}
  std::vector<Expr> values;
};

/// One application of a reverse rule. Emits only ops that the wanted cotangents need.
class ReverseRule : Fragment {
public:
  ReverseRule(Emitter &emitter, const GradientCall &call);
  /// Empty for an optional operand that is absent.
  const Expr &operand(int i) const;
  std::vector<Expr> operandsFrom(int i) const { return {operands.begin() + i, operands.end()}; }
  const Expr &result(int i) const { return results[static_cast<size_t>(i)]; }
  /// Empty where it is zero.
  const Expr &cotangent(int i) const { return cotangents[static_cast<size_t>(i)]; }
  /// The cotangents, converted to the operands' shapes and element types.
  std::vector<Emitter::Ref> finish(const Cotangents &made);

private:
  const GradientCall &call;
  std::vector<Expr> operands, results, cotangents;
};

/// Undoes a broadcast of `like` to x's shape: sums x over the broadcast dimensions, in like's element type.
Expr sumLike(const Expr &x, const TensorType &like);
/// Restores the reduced dimensions of a reduction's result, or of its cotangent, with size 1, so that it broadcasts to
/// x.
Expr unreduced(const Expr &reduced, const Expr &x, const Ints *axis);
/// Zeros of a type, for example as the target of a scatter.
Expr zeros(const TensorType &type);
/// The number of elements of x along `axis`, as a scalar of x's accumulator type.
Expr countAlong(const Expr &x, const Ints *axis);
/// Matrices transposed: the last two dimensions exchanged.
Expr transposed(const Expr &matrices);

/// The inverse of a slice: x at starts + i * strides (not negative, positive) in a tensor of zeros of these sizes.
Expr unslice(const Expr &x, const Sizes &sizes, const Sizes &starts, const Ints &strides);
/// Indices of an op along `axis` with their other dimensions broadcast to x's, as i64.
Expr broadcastIndices(const Expr &indices, const Expr &x, int64_t axis);

// Rules of single ops that are longer than a few lines.
Expr sliceGradient(const Expr &dy, const Expr &x, const Sizes &starts, const Ints &strides);
Cotangents convGradient(const Expr &dy, const Expr &x, const Expr &w, const Ints &strides, const Ints &padLow,
                        const Ints &padHigh, const Ints &dilations, int64_t groups, bool channelsLast);
Cotangents convByWeightsGradient(const Expr &d, const Expr &x, const Expr &dy, const Ints &window, const Ints &strides,
                                 const Ints &padLow, const Ints &padHigh, const Ints &dilations, int64_t groups);
/// Gradient of max_pool, or of sum_pool if y is empty.
Expr poolGradient(const Expr &dy, const Expr &x, const Expr &y, const Ints &window, const Ints &strides, const Ints &padLow,
                  const Ints &dilations, bool channelsLast);

/// Gradient for the three results of batch_norm_train. Two sums over the batch, of dy and of dy times the normalized x,
/// are the cotangents of bias and scale, and all that x's cotangent needs; they do not depend on each other.
Cotangents batchNormGradient(const Expr &dy, const Expr &dMean, const Expr &dVariance, const Expr &x, const Expr &scale,
                             double epsilon);

/// Gradient of prod, exact also where elements are zero.
Expr prodGradient(const Expr &dy, const Expr &x, const Ints *axis);
/// Gradient of cumprod, exact also where elements are zero.
Expr cumprodGradient(const Expr &dy, const Expr &x, int64_t axis, bool reverse, bool exclusive);
/// Gradient of cummax and cummin: each result's cotangent goes to the element that it was taken from.
Expr extremumScanGradient(const Expr &dy, const Expr &x, const Expr &y, int64_t axis, bool reverse);

/// Thrown for a call without a reverse rule.
struct NoGradient : Error {
  explicit NoGradient(const std::string &what, const std::string &hint = {})
      : Error({.message = what + " cannot be differentiated", .hint = hint}) {}
};

} // namespace tressel::op::expr

namespace tressel::op {

/// The reverse rule of an elementwise op, derived from its scalar program (Slope.h): the cotangent times the slope, as
/// elementwise ops. Where a select masks an operand the product is zero, even for an infinite cotangent.
std::vector<Emitter::Ref> gradientOfElementwise(const OpInfo &, Emitter &, const GradientCall &);

/// The operands' cotangents of any call: by the op's rule, or, if it has none for these attributes, through its
/// decomposition, whose ops are then emitted again. Null where a cotangent is zero or not wanted. Throws NoGradient if
/// there is neither.
std::vector<Emitter::Ref> pullBack(const OpInfo &op, Emitter &emitter, const GradientCall &call);

/// Forwards ops to an emitter and records them for a backward pass. No two results have the same Ref.
class Tape : public Emitter {
public:
  /// Ops are differentiated with respect to `inputs`.
  Tape(Emitter &emitter, std::span<const Ref> inputs) : emitter_(emitter), active_(inputs.begin(), inputs.end()) {}

  std::vector<Ref> emit(const OpInfo &op, std::span<const Ref> inputs, const Attrs &attrs) override;
  Ref constant(double value, DType type) override { return emitter_.constant(value, type); }
  Ref constant(const HostTensor &value) override { return emitter_.constant(value); }
  TensorType typeOf(Ref value) override { return emitter_.typeOf(value); }

  /// Records a call whose results exist already. The attributes are complete. For `origin` see enter().
  void note(const OpInfo &op, std::span<const Ref> operands, std::span<const Ref> results, const Attrs &attrs,
            const void *origin = nullptr);
  /// Computes the operands' cotangents of a call; null where one is zero or not wanted.
  using PullBack = std::function<std::vector<Ref>(const GradientCall &)>;
  /// Records a call that is no op with a rule.
  void note(PullBack pull, std::span<const Ref> operands, std::span<const Ref> results, const void *origin = nullptr);

  /// Whether a value depends on the inputs and is differentiable.
  bool isActive(Ref value) { return active_.contains(value) && isFloat(emitter_.typeOf(value).dtype); }

  /// The cotangents of `inputs`, from those of `results` (null for zero); null where one is zero. Ops that it emits are
  /// not recorded.
  std::vector<Ref> backward(std::span<const Ref> results, std::span<const Ref> cotangents, std::span<const Ref> inputs);

  /// Whether the tape has only conversions and calls of this op with these attributes, at least one of the latter.
  bool isOnly(const OpInfo &op, const Attrs &attrs) const;

protected:
  /// Computes the cotangents of an op's operands; subclasses add ops that pullBack does not know.
  virtual std::vector<Ref> pull(const OpInfo &op, const GradientCall &call) { return pullBack(op, emitter_, call); }
  /// Called before the cotangents of the call with this origin are computed.
  virtual void enter(const void *) {}

private:
  struct Call {
    const OpInfo *op; ///< null for a call with a `pull`
    std::vector<Ref> operands, results;
    Attrs attrs;
    PullBack pull;
    const void *origin;
  };
  bool anyIsActive(std::span<const Ref> values) {
    return std::any_of(values.begin(), values.end(), [&](Ref value) { return isActive(value); });
  }

  Emitter &emitter_;
  std::unordered_set<Ref> active_; ///< values that depend on the inputs
  std::vector<Call> calls_;        ///< recorded calls with an active operand
};

} // namespace tressel::op
