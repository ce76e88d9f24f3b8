// Gradients of functions that are written as ordinary calls.
//
//   auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
//
// The function runs once, as it would without gradients. Then each op that led from the given Variables or tensors to
// the loss is gone back over by its reverse rule (docs/adding-an-op.md). In a traced function the ops of the gradient become part of
// the program; outside of one they are imperative calls. Gradients are ordinary tensors: what computes them may itself
// be differentiated.
#pragma once

#include <tressel/control.h>
#include <tressel/scope.h>
#include <tressel/tree.h>
#include <tressel/variable.h>

#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tressel {

namespace detail {
class TensorTape;

/// While one lives, the ops of this thread are remembered. Scopes may be nested, and end in the reverse order.
class GradientScope {
public:
  /// Gradients will be with respect to these.
  GradientScope(std::span<const Tensor> inputs, const std::source_location &where);
  ~GradientScope();
  GradientScope(const GradientScope &) = delete;
  GradientScope &operator=(const GradientScope &) = delete;

  /// Ends the scope. One tensor per input, of its type; zeros where `loss` does not depend on it. Throws ShapeError when
  /// `loss` is not one float, and Error when an op on the way has no gradient.
  std::vector<Tensor> gradients(const Tensor &loss);

private:
  std::unique_ptr<TensorTape> tape_;
};

/// The values that gradients are taken with respect to. Throws Error for one that holds no floats.
std::vector<Tensor> valuesOf(std::span<const Variable> variables, const std::source_location &where);

} // namespace detail

/// The result of a function, and the gradients of its first tensor.
template <typename R> struct ValueAndGrad {
  R value;
  std::vector<Tensor> grads; ///< in the order of what they are with respect to
};

/// fn() and the gradients of the first tensor of its result, one float, with respect to `inputs`, which fn reads. The
/// rest of the result is carried along. `fn` runs in a TrainScope.
///
/// Functions compiled with jit() and hybridized modules run op by op inside of `fn`, unless the whole stands in a traced
/// function itself; there cond, while_loop and scan throw TraceError.
template <typename Fn>
auto value_and_grad(Fn &&fn, const std::vector<Tensor> &inputs, std::source_location where = std::source_location::current()) {
  static_assert(!std::is_void_v<decltype(fn())>, "the function of value_and_grad returns the loss, or a tree whose first tensor it is");
  const TrainScope train;
  detail::GradientScope scope(inputs, where);
  ValueAndGrad<std::decay_t<decltype(fn())>> out{fn(), {}};
  std::vector<Tensor> leaves = detail::leavesOf(out.value);
  out.grads = scope.gradients(leaves.empty() ? Tensor() : leaves.front());
  return out;
}
/// With respect to Variables: to the values that they have before `fn` runs.
template <typename Fn>
auto value_and_grad(Fn &&fn, const std::vector<Variable> &variables, std::source_location where = std::source_location::current()) {
  return value_and_grad(std::forward<Fn>(fn), detail::valuesOf(variables, where), where);
}
/// With respect to a module's parameters: net.parameters().
template <typename Fn>
auto value_and_grad(Fn &&fn, const std::vector<std::pair<std::string, Variable>> &parameters,
                    std::source_location where = std::source_location::current()) {
  std::vector<Variable> variables;
  for (const auto &[path, variable] : parameters)
    variables.push_back(variable);
  return value_and_grad(std::forward<Fn>(fn), variables, where);
}

} // namespace tressel
