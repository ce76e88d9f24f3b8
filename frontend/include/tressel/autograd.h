// Gradients of functions that are written as ordinary calls.
//
//   auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
//
// The function runs once, as it would without gradients. Then the reverse rules (docs/adding-an-op.md) are applied,
// from the loss back, to each op that led to it from the given Variables or tensors. In a traced function the ops of
// the gradient become part of the program; outside of one they are imperative calls. Gradients are ordinary tensors:
// the code that computes them may itself be differentiated.
//
// Functions compiled with jit() and hybridized modules run op by op inside of a function that is differentiated, unless
// the whole stands in a traced function itself. docs/gradients.md says what has no gradient.
#pragma once

#include <tressel/control.h>
#include <tressel/scope.h>
#include <tressel/tree.h>
#include <tressel/variable.h>

#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tressel {

namespace detail {
class TensorTape;

/// While one is alive, the ops of this thread are recorded on a tape. Scopes may be nested, and end in the reverse
/// order.
class GradientScope {
public:
  /// Gradients will be with respect to these. Throws Error for one that holds no floats; `op` is the caller's name.
  GradientScope(std::span<const Tensor> inputs, const char *op, const std::source_location &where);
  ~GradientScope();
  GradientScope(const GradientScope &) = delete;
  GradientScope &operator=(const GradientScope &) = delete;

  /// Stops recording.
  void end();
  /// Ends the scope. One tensor per input, of its type; zeros where `loss` does not depend on it. Throws ShapeError when
  /// `loss` is not one float, and Error when an op on the way has no gradient.
  std::vector<Tensor> gradients(const Tensor &loss);
  /// Ends the scope. The cotangents of the inputs, from those of the results, which have the results' types
  /// (ShapeError). An empty cotangent is zero, and those of results that are no floats are not read. May be called
  /// again.
  std::vector<Tensor> pullBack(std::span<const Tensor> results, std::span<const Tensor> cotangents);
  /// The tangents of the results from those of the inputs, by differentiating pullBack, which is linear in the
  /// cotangents. Empty for results that are no floats.
  std::vector<Tensor> pushForward(std::span<const Tensor> results, std::span<const Tensor> tangents);

private:
  std::unique_ptr<TensorTape> tape_;
};

/// Ops recorded while one is alive form a segment, whose values are rematerialized for gradients. A nested one belongs
/// to the outer segment.
class CheckpointScope {
public:
  CheckpointScope();
  ~CheckpointScope();
  CheckpointScope(const CheckpointScope &) = delete;
  CheckpointScope &operator=(const CheckpointScope &) = delete;
  /// Marks the segment's results, which are kept.
  void keep(std::span<const Tensor> results);

private:
  uint32_t previous_;
};

/// The values that the function `op` takes gradients with respect to. Throws Error for one that holds no floats.
std::vector<Tensor> valuesOf(std::span<const Variable> variables, const char *op, const std::source_location &where);
inline const std::vector<Tensor> &inputsOf(const std::vector<Tensor> &inputs, const char *, const std::source_location &) {
  return inputs;
}
inline std::vector<Tensor> inputsOf(const std::vector<Variable> &variables, const char *op, const std::source_location &where) {
  return valuesOf(variables, op, where);
}
/// Of those that are learned.
std::vector<Tensor> inputsOf(const std::vector<std::pair<std::string, Variable>> &parameters, const char *op,
                             const std::source_location &where);

inline std::vector<Tensor> spread(std::vector<Tensor> gradients, const std::vector<Tensor> &) { return gradients; }
inline std::vector<Tensor> spread(std::vector<Tensor> gradients, const std::vector<Variable> &) { return gradients; }
/// One per parameter, an empty one for each that is frozen.
std::vector<Tensor> spread(std::vector<Tensor> gradients,
                           const std::vector<std::pair<std::string, Variable>> &parameters);

template <typename Fn> using ResultOf = std::decay_t<decltype(std::declval<Fn &>()())>;
template <typename Fn> constexpr void checkFunction() {
  static_assert(!std::is_void_v<decltype(std::declval<Fn &>()())>,
                "a function that is differentiated returns the loss, or a tree whose first tensor it is");
}

} // namespace detail

/// What gradients are taken with respect to: tensors that the function reads, Variables, or a module's parameters
/// (net.parameters()). For Variables, it is the values before the function runs. A frozen parameter has no gradient: an
/// empty tensor takes its place, and nothing is computed for it.
template <typename T>
concept GradientInputs = std::is_same_v<T, std::vector<Tensor>> || std::is_same_v<T, std::vector<Variable>> ||
    std::is_same_v<T, std::vector<std::pair<std::string, Variable>>>;

/// The result of a function, and the gradients of the result's first tensor.
template <typename R> struct ValueAndGrad {
  R value;
  std::vector<Tensor> grads; ///< in the order of what they are with respect to
};

namespace detail {
/// value_and_grad, on behalf of the function `op`.
template <typename Fn, typename I> auto valueAndGrad(Fn &&fn, const I &inputs, const char *op, const std::source_location &where) {
  checkFunction<Fn>();
  const TrainScope train;
  GradientScope scope(inputsOf(inputs, op, where), op, where);
  ValueAndGrad<ResultOf<Fn>> out{fn(), {}};
  std::vector<Tensor> leaves = leavesOf(out.value);
  out.grads = spread(scope.gradients(leaves.empty() ? Tensor() : leaves.front()), inputs);
  return out;
}
} // namespace detail

/// fn() and the gradients of the first tensor of its result, which is one float, with respect to `inputs`, which fn
/// reads. The rest of the result is returned unchanged. `fn` runs in a TrainScope.
template <typename Fn, GradientInputs I = std::vector<Tensor>>
auto value_and_grad(Fn &&fn, const I &inputs, std::source_location where = std::source_location::current()) {
  return detail::valueAndGrad(std::forward<Fn>(fn), inputs, "value_and_grad", where);
}
/// The gradients alone.
template <typename Fn, GradientInputs I = std::vector<Tensor>>
std::vector<Tensor> grad(Fn &&fn, const I &inputs, std::source_location where = std::source_location::current()) {
  return detail::valueAndGrad(std::forward<Fn>(fn), inputs, "grad", where).grads;
}

/// The result of a function, and its vector-Jacobian products.
template <typename R> class ValueAndPullBack {
public:
  R value;
  /// The cotangents of the inputs, from a tree of cotangents like the result, of its types (ShapeError). An empty
  /// tensor is zero; those of tensors without floats are not read. May be called many times, in the trace that it was
  /// made in.
  std::vector<Tensor> pull_back(const R &cotangents) const {
    return scope_->pullBack(detail::leavesOf(value), detail::leavesOf(cotangents));
  }

  /// For the library.
  ValueAndPullBack(R value, std::shared_ptr<detail::GradientScope> scope)
      : value(std::move(value)), scope_(std::move(scope)) {}

private:
  std::shared_ptr<detail::GradientScope> scope_;
};
template <typename Fn>
auto vjp(Fn &&fn, const std::vector<Tensor> &inputs, std::source_location where = std::source_location::current()) {
  detail::checkFunction<Fn>();
  auto scope = std::make_shared<detail::GradientScope>(inputs, "vjp", where);
  const TrainScope train;
  auto value = fn();
  scope->end();
  return ValueAndPullBack<detail::ResultOf<Fn>>(std::move(value), std::move(scope));
}

/// The result of a function, and its change when the inputs move along a direction.
template <typename R> struct ValueAndTangent {
  R value;
  R tangent; ///< empty tensors where the result holds no floats
};
/// The Jacobian-vector product: `tangents` has a tensor per input, of its type (ShapeError); an empty one is zero.
template <typename Fn>
auto jvp(Fn &&fn, const std::vector<Tensor> &inputs, const std::vector<Tensor> &tangents,
         std::source_location where = std::source_location::current()) {
  detail::checkFunction<Fn>();
  detail::GradientScope scope(inputs, "jvp", where);
  const TrainScope train;
  auto value = fn();
  scope.end();
  auto tangent = detail::withLeaves(value, scope.pushForward(detail::leavesOf(value), tangents));
  return ValueAndTangent<detail::ResultOf<Fn>>{std::move(value), std::move(tangent)};
}

/// For a function that gives one tensor y: per input x the derivative of each element of y with respect to each of x,
/// of the shape of y followed by that of x. Computed one element of y after the other, so their number must be known
/// (TraceError).
std::vector<Tensor> jacobian(const std::function<Tensor()> &fn, const std::vector<Tensor> &inputs,
                             std::source_location where = std::source_location::current());

/// The second derivatives of a function that gives one float, times a vector: per input the sum over all inputs of
/// d2 fn / (d input d other) * vector of the other. Costs a few times what the gradient does, whatever the sizes.
std::vector<Tensor> hessian_vector_product(const std::function<Tensor()> &fn, const std::vector<Tensor> &inputs,
                                           const std::vector<Tensor> &vectors,
                                           std::source_location where = std::source_location::current());

/// The result of fn(inputs) with another gradient: gradient(inputs, results, cotangents) gives the inputs' cotangents,
/// empty where zero; it may itself be differentiated. Tensors that fn reads beside `inputs` get no gradient. Throws
/// TraceError in a body of control flow when a function around the body is differentiated.
std::vector<Tensor>
custom_gradient(const std::function<std::vector<Tensor>(const std::vector<Tensor> &)> &fn,
                const std::function<std::vector<Tensor>(const std::vector<Tensor> &, const std::vector<Tensor> &,
                                                        const std::vector<Tensor> &)> &gradient,
                const std::vector<Tensor> &inputs, std::source_location where = std::source_location::current());

namespace autograd {

/// fn(args...). In a compiled program for the host, the values inside of fn are not kept for gradients: a gradient
/// rematerializes them from what fn reads, which takes the time of fn once more. In a body of a loop this holds for
/// each iteration. Rematerialized values have the same bits, random numbers included. Variables that fn assigns are
/// assigned once. Outside of programs it is an ordinary call. JitOptions::memory_budget chooses such values
/// automatically.
///
///   x = autograd::checkpoint(block, x);
template <typename Fn, typename... Args> auto checkpoint(Fn &&fn, Args &&...args) {
  detail::CheckpointScope scope;
  auto result = std::invoke(std::forward<Fn>(fn), std::forward<Args>(args)...);
  const std::vector<Tensor> leaves = detail::leavesOf(result);
  scope.keep(leaves);
  return result;
}

/// While one is alive, in a TrainScope, the calls of this thread are recorded, to be differentiated once:
///
///   auto recording = autograd::record(net.parameters());
///   Tensor loss = softmax_cross_entropy(net(x), label);
///   std::vector<Tensor> grads = recording.backward(loss);
template <GradientInputs I> class Recording {
public:
  Recording(const I &inputs, std::source_location where)
      : inputs_(inputs), scope_(detail::inputsOf(inputs, "autograd::record", where), "autograd::record", where) {}
  /// Ends the recording, and gives the gradients as value_and_grad does.
  std::vector<Tensor> backward(const Tensor &loss) { return detail::spread(scope_.gradients(loss), inputs_); }

private:
  I inputs_;
  TrainScope train_;
  detail::GradientScope scope_;
};
template <GradientInputs I = std::vector<Tensor>>
Recording<I> record(const I &inputs, std::source_location where = std::source_location::current()) {
  return {inputs, where};
}

} // namespace autograd

} // namespace tressel
