// Reverse rules: from the cotangents of an op's results to those of its operands. A rule is written over expressions of
// other ops, so that it runs wherever ops can be put (Emitter), and is itself differentiable.
#pragma once

#include "ir/op/Expr.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <unordered_set>

namespace tressel::op::expr {

/// What a rule returns: a cotangent per operand, empty where it is zero; missing ones at the end are.
class Cotangents {
public:
  Cotangents(Expr only) : values{std::move(only)} {}
  Cotangents(std::initializer_list<Expr> values) : values(values) {}
  Cotangents(std::vector<Expr> values) : values(std::move(values)) {}
  std::vector<Expr> values;
};

/// One run of a reverse rule. Only what the wanted cotangents need is emitted.
class ReverseRule : Fragment {
public:
  ReverseRule(Emitter &emitter, const GradientCall &call);
  /// Empty for an optional operand that is absent.
  const Expr &operand(int i) const;
  std::vector<Expr> operandsFrom(int i) const { return {operands.begin() + i, operands.end()}; }
  const Expr &result(int i) const { return results[static_cast<size_t>(i)]; }
  /// Empty where it is zero.
  const Expr &cotangent(int i) const { return cotangents[static_cast<size_t>(i)]; }
  /// The cotangents in the operands' shapes and element types, per operand.
  std::vector<Emitter::Ref> finish(const Cotangents &made);

private:
  const GradientCall &call;
  std::vector<Expr> operands, results, cotangents;
};

/// x summed over the dimensions that `like` was broadcast along to get x's shape, in like's element type.
Expr sumLike(const Expr &x, const TensorType &like);
/// A cotangent of a reduction's result, with dimensions of size 1 where x was reduced, so that it broadcasts to x. The
/// same holds for its result.
Expr unreduced(const Expr &reduced, const Expr &x, const Ints *axis);
/// Zeros of a type: what a rule scatters into.
Expr zeros(const TensorType &type);
/// The number of elements of x along `axis`, as a scalar of the type that x is accumulated in.
Expr countAlong(const Expr &x, const Ints *axis);
/// Matrices transposed: the last two dimensions exchanged.
Expr transposed(const Expr &matrices);

/// What a slice reads, put back: x at starts + i * strides (not negative, positive) of a tensor of zeros of these sizes.
Expr unslice(const Expr &x, const Sizes &sizes, const Sizes &starts, const Ints &strides);
/// Indices of an op along `axis` with their other dimensions broadcast to x's, as i64.
Expr broadcastIndices(const Expr &indices, const Expr &x, int64_t axis);

// The rules of single ops that are more than a few lines.
Expr sliceGradient(const Expr &dy, const Expr &x, const Sizes &starts, const Ints &strides);
Cotangents convGradient(const Expr &dy, const Expr &x, const Expr &w, const Ints &strides, const Ints &padLow,
                        const Ints &padHigh, const Ints &dilations, int64_t groups, bool channelsLast);
Cotangents convByWeightsGradient(const Expr &d, const Expr &x, const Expr &dy, const Ints &window, const Ints &strides,
                                 const Ints &padLow, const Ints &padHigh, const Ints &dilations, int64_t groups);
/// Of max_pool and, with an empty y, of sum_pool.
Expr poolGradient(const Expr &dy, const Expr &x, const Expr &y, const Ints &window, const Ints &strides, const Ints &padLow,
                  const Ints &dilations, bool channelsLast);

/// Of batch_norm_train's three results. Two sums over the batch, of dy and of dy times the normalized x, are the
/// cotangents of bias and scale and all that x's wants: neither waits for the other.
Cotangents batchNormGradient(const Expr &dy, const Expr &dMean, const Expr &dVariance, const Expr &x, const Expr &scale,
                             double epsilon);

/// Of prod: exact also where elements are zero.
Expr prodGradient(const Expr &dy, const Expr &x, const Ints *axis);
/// Of cumprod: exact also where elements are zero.
Expr cumprodGradient(const Expr &dy, const Expr &x, int64_t axis, bool reverse, bool exclusive);
/// Of cummax and cummin: each result's cotangent goes to the element that it is.
Expr extremumScanGradient(const Expr &dy, const Expr &x, const Expr &y, int64_t axis, bool reverse);

/// A call has no reverse rule.
struct NoGradient : Error {
  explicit NoGradient(const std::string &what, const std::string &hint = {})
      : Error({.message = what + " cannot be differentiated", .hint = hint}) {}
};

} // namespace tressel::op::expr

namespace tressel::op {

/// The rule that an elementwise op's scalar program implies (Slope.h): the cotangent times the slope, as elementwise ops.
/// What a condition masks stays masked, also where the cotangent is infinite.
std::vector<Emitter::Ref> gradientOfElementwise(const OpInfo &, Emitter &, const GradientCall &);

/// The operands' cotangents of any call: by the op's rule, or, where it has none for these attributes, through its
/// decomposition, whose ops are then emitted again; null where one is zero or not wanted. Throws NoGradient for a call
/// that has neither.
std::vector<Emitter::Ref> pullBack(const OpInfo &op, Emitter &emitter, const GradientCall &call);

/// Passes ops on to an emitter and remembers them, to go back over them. Two results never have one Ref.
class Tape : public Emitter {
public:
  /// Ops are differentiated with respect to `inputs`.
  Tape(Emitter &emitter, std::span<const Ref> inputs) : emitter_(emitter), active_(inputs.begin(), inputs.end()) {}

  std::vector<Ref> emit(const OpInfo &op, std::span<const Ref> inputs, const Attrs &attrs) override;
  Ref constant(double value, DType type) override { return emitter_.constant(value, type); }
  Ref constant(const HostTensor &value) override { return emitter_.constant(value); }
  TensorType typeOf(Ref value) override { return emitter_.typeOf(value); }

  /// Remembers a call whose results exist. The attributes are complete. See enter() for `origin`.
  void note(const OpInfo &op, std::span<const Ref> operands, std::span<const Ref> results, const Attrs &attrs,
            const void *origin = nullptr);
  /// What gives the operands' cotangents of a call, null where one is zero or not wanted.
  using PullBack = std::function<std::vector<Ref>(const GradientCall &)>;
  /// Remembers a call of something else than an op with a rule.
  void note(PullBack pull, std::span<const Ref> operands, std::span<const Ref> results, const void *origin = nullptr);

  /// Whether a value depends on the inputs, and is one that has a cotangent.
  bool isActive(Ref value) { return active_.contains(value) && isFloat(emitter_.typeOf(value).dtype); }

  /// The cotangents of `inputs`, given those of `results` (null where zero); null where one is zero. What it emits is
  /// not remembered.
  std::vector<Ref> backward(std::span<const Ref> results, std::span<const Ref> cotangents, std::span<const Ref> inputs);

  /// Whether all that is remembered are such calls, at least one, and conversions.
  bool isOnly(const OpInfo &op, const Attrs &attrs) const;

protected:
  /// pullBack, or what else is known of an op.
  virtual std::vector<Ref> pull(const OpInfo &op, const GradientCall &call) { return pullBack(op, emitter_, call); }
  /// What follows comes of the call that was noted with this origin.
  virtual void enter(const void *) {}

private:
  struct Call {
    const OpInfo *op; ///< null where there is a `pull`
    std::vector<Ref> operands, results;
    Attrs attrs;
    PullBack pull;
    const void *origin;
  };
  bool anyIsActive(std::span<const Ref> values) {
    return std::any_of(values.begin(), values.end(), [&](Ref value) { return isActive(value); });
  }

  Emitter &emitter_;
  std::unordered_set<Ref> active_; ///< depend on the inputs
  std::vector<Call> calls_;        ///< those of them that have an active operand
};

} // namespace tressel::op
