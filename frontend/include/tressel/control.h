// Control flow over tensors: cond, while_loop, for_loop, scan.
//
//   Tensor y = cond(sum(x) > 0, [](Tensor x) { return sqrt(x); }, [](Tensor x) { return -x; }, x);
//   auto [n, x] = while_loop([](auto s) { return std::get<0>(s) < 10; }, step, std::tuple{tensor(int64_t(0)), x0});
//   Tensor h = for_loop(20, [&](Tensor i, Tensor h) { return tanh(matmul(w, h)); }, h0);
//   auto [last, all] = scan([&](Tensor h, Tensor x) { h = tanh(matmul(w, h) + x); return std::pair{h, h}; }, h0, xs);
//
// Outside of a trace they are C++ control flow: conditions are waited for. In a trace (jit) they become part of the
// program, which decides and repeats when it runs: a body is recorded once. Values are trees of Tensors (tree.h).
// Bodies may use tensors and Variables from outside; a Variable that a body assigns is carried from iteration to
// iteration. A tensor made in a body is good there only: return what is needed outside.
#pragma once

#include <tressel/arg.h>
#include <tressel/tree.h>

#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace tressel {

namespace detail {

/// A call with its trees taken apart into tensors.
struct ControlCall {
  using Body = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
  enum class Kind : uint8_t { Cond, While, Scan };
  Kind kind = Kind::Cond;
  Tensor condition;            ///< Cond
  Size trips;                  ///< Scan
  std::optional<int64_t> bound; ///< While: the most iterations
  std::vector<Tensor> carried; ///< Cond: the arguments
  std::vector<Tensor> slices;  ///< Scan
  std::vector<Body> bodies;    ///< Cond: both. While: condition, body. Scan: one of (index, carried, slices).
  std::source_location where;

  const char *name = "cond"; ///< in errors
};
/// The results' tensors. Checks what the bodies give.
std::vector<Tensor> runControl(const ControlCall &call);
/// The common first dimension. Throws ShapeError.
Size leadingSize(std::span<const Tensor> tensors, const std::source_location &where);
/// Throws ShapeError if it is negative.
int64_t checkedBound(int64_t bound, const std::source_location &where);
/// The condition and `count` < `bound`.
Tensor withBound(const Tensor &condition, const Tensor &count, int64_t bound, const std::source_location &where);
/// A number of iterations as a tensor. Throws ShapeError unless it is one integer.
Tensor countOf(const Arg &n, const std::source_location &where);

template <typename T> std::vector<Tensor> leavesOf(const T &tree) {
  struct Visitor {
    std::vector<Tensor> tensors;
    void tensor(const Tensor &t) { tensors.push_back(t); }
    void word(uint64_t) {}
  } visitor;
  visitTree(tree, visitor);
  return std::move(visitor.tensors);
}
template <typename T> T withLeaves(T tree, std::span<const Tensor> tensors) {
  size_t next = 0;
  auto replace = [&](const Tensor &) { return next < tensors.size() ? tensors[next++] : Tensor(); };
  mapTree(tree, replace);
  return tree;
}
/// fn(tree), or fn of the elements of a tuple.
template <typename Fn, typename T, typename... First> decltype(auto) callOn(Fn &fn, T tree, First... first) {
  if constexpr (std::is_invocable_v<Fn &, First..., T>)
    return fn(std::move(first)..., std::move(tree));
  else
    return std::apply([&](auto &...v) { return fn(std::move(first)..., std::move(v)...); }, tree);
}
template <typename Fn, typename... A> auto resultOf(Fn &fn, A &&...args) {
  if constexpr (std::is_void_v<std::invoke_result_t<Fn &, A...>>) {
    fn(std::forward<A>(args)...);
    return std::tuple<>();
  } else {
    return fn(std::forward<A>(args)...);
  }
}

} // namespace detail

/// What `true_fn(args...)` gives if the condition, one bool, is true, else what `false_fn(args...)` gives. Both results
/// have one type: the same tree of tensors of the same types (ShapeError). Only the branch that is taken runs.
template <typename TrueFn, typename FalseFn, typename... Args>
auto cond(Arg condition, TrueFn true_fn, FalseFn false_fn, const Args &...args) {
  using R = decltype(detail::resultOf(true_fn, args...));
  static_assert(std::is_same_v<R, decltype(detail::resultOf(false_fn, args...))>,
                "the branches of cond return different C++ types");
  std::optional<R> prototype;
  const std::tuple<Args...> tree(args...);
  auto body = [&](auto &fn) -> detail::ControlCall::Body {
    return [&](std::span<const Tensor> tensors) {
      R result =
          std::apply([&](const auto &...v) { return detail::resultOf(fn, v...); }, detail::withLeaves(tree, tensors));
      std::vector<Tensor> leaves = detail::leavesOf(result);
      prototype = std::move(result);
      return leaves;
    };
  };
  detail::ControlCall call{.condition = condition.as_tensor(), .carried = detail::leavesOf(tree)};
  call.bodies = {body(true_fn), body(false_fn)};
  call.where = condition.where();
  const std::vector<Tensor> results = detail::runControl(call);
  if constexpr (!std::is_void_v<std::invoke_result_t<TrueFn &, const Args &...>>)
    return detail::withLeaves(std::move(*prototype), results);
}

/// Starting with `init`, value = body(value) as long as cond_fn(value), one bool, is true. The value keeps its types
/// (ShapeError). Functions of several parameters take a tuple's elements.
template <typename CondFn, typename BodyFn, typename T>
T while_loop(CondFn cond_fn, BodyFn body, T init, std::source_location where = std::source_location::current()) {
  detail::ControlCall call{.kind = detail::ControlCall::Kind::While,
                           .carried = detail::leavesOf(init),
                           .where = where,
                           .name = "while_loop"};
  call.bodies = {[&](std::span<const Tensor> tensors) -> std::vector<Tensor> {
                   return {detail::callOn(cond_fn, detail::withLeaves(init, tensors))};
                 },
                 [&](std::span<const Tensor> tensors) {
                   return detail::leavesOf(T(detail::callOn(body, detail::withLeaves(init, tensors))));
                 }};
  return detail::withLeaves(init, detail::runControl(call));
}

struct WhileOptions {
  int64_t max_trips; ///< the loop ends after so many iterations, whether or not the condition still holds
};
/// The same, with a bound on the iterations. Gradients need it, as the residuals of the iterations are stored in memory
/// for `max_trips` of them. Throws ShapeError for a negative bound.
template <typename CondFn, typename BodyFn, typename T>
T while_loop(CondFn cond_fn, BodyFn body, T init, WhileOptions options,
             std::source_location where = std::source_location::current()) {
  detail::ControlCall call{.kind = detail::ControlCall::Kind::While, .where = where, .name = "while_loop"};
  call.bound = detail::checkedBound(options.max_trips, where);
  call.carried = detail::leavesOf(init);
  call.carried.insert(call.carried.begin(), Arg(int64_t(0), where).as_tensor());
  auto valueOf = [&](std::span<const Tensor> tensors) { return detail::withLeaves(init, tensors.subspan(1)); };
  call.bodies = {
      [&](std::span<const Tensor> tensors) -> std::vector<Tensor> {
        return {detail::withBound(detail::callOn(cond_fn, valueOf(tensors)), tensors[0], options.max_trips, where)};
      },
      [&](std::span<const Tensor> tensors) {
        std::vector<Tensor> next = detail::leavesOf(T(detail::callOn(body, valueOf(tensors))));
        next.insert(next.begin(), Arg(tensors[0], where) + 1);
        return next;
      }};
  return detail::withLeaves(init, std::span<const Tensor>(detail::runControl(call)).subspan(1));
}

/// Starting with `init`, value = body(i, value) for i = 0 .. n-1, each an i64 tensor. `n` is an integer, a Dim, or an
/// integer tensor of one element; a negative one counts as 0.
template <typename N, typename BodyFn, typename T>
requires std::convertible_to<N, Arg> T for_loop(N n, BodyFn body, T init,
                                                std::source_location where = std::source_location::current()) {
  detail::ControlCall call{
      .kind = detail::ControlCall::Kind::Scan, .carried = detail::leavesOf(init), .where = where, .name = "for_loop"};
  auto run = [&](std::span<const Tensor> tensors) {
    return detail::leavesOf(
        T(detail::callOn(body, detail::withLeaves(init, tensors.subspan(1)), Tensor(tensors.front()))));
  };
  constexpr bool isSize = std::is_integral_v<N> || std::is_same_v<N, Dim>;
  if constexpr (isSize) {
    call.trips = max(Dim(n), 0).raw();
    call.bodies = {run};
    return detail::withLeaves(init, detail::runControl(call));
  }
  // A count that is known only at run time: a while_loop that counts.
  const Tensor limit = detail::countOf(Arg(n), where);
  call.kind = detail::ControlCall::Kind::While;
  call.carried.insert(call.carried.begin(), Arg(int64_t(0), where).as_tensor());
  call.bodies = {[&](std::span<const Tensor> tensors) -> std::vector<Tensor> {
                   return {Arg(tensors[0], where) < Arg(limit, where)};
                 },
                 [&](std::span<const Tensor> tensors) {
                   std::vector<Tensor> next = run(tensors);
                   next.insert(next.begin(), Arg(tensors[0], where) + 1);
                   return next;
                 }};
  const std::vector<Tensor> results = detail::runControl(call);
  return detail::withLeaves(init, std::span(results).subspan(1));
}

/// For each slice x of `xs` along the first dimension: (carry, y) = body(carry, x). Gives the last carry, and the ys
/// stacked along a new first dimension. All tensors of `xs` have the same first size. The carry keeps its types
/// (ShapeError).
template <typename BodyFn, typename C, typename X>
auto scan(BodyFn body, C init, X xs, std::source_location where = std::source_location::current()) {
  using R = std::decay_t<decltype(body(init, xs))>;
  using Y = std::decay_t<decltype(std::get<1>(std::declval<R &>()))>;
  std::optional<Y> prototype;
  detail::ControlCall call{.kind = detail::ControlCall::Kind::Scan,
                           .carried = detail::leavesOf(init),
                           .slices = detail::leavesOf(xs),
                           .where = where,
                           .name = "scan"};
  call.trips = detail::leadingSize(call.slices, where);
  const size_t n = call.carried.size();
  call.bodies = {[&](std::span<const Tensor> tensors) {
    auto [carry, y] =
        body(detail::withLeaves(init, tensors.subspan(1, n)), detail::withLeaves(xs, tensors.subspan(1 + n)));
    std::vector<Tensor> leaves = detail::leavesOf(C(carry));
    for (Tensor &leaf : detail::leavesOf(y))
      leaves.push_back(leaf);
    prototype = std::move(y);
    return leaves;
  }};
  const std::vector<Tensor> results = detail::runControl(call);
  if (!prototype) // no iteration ran, outside of a trace: the type of y is not known
    prototype.emplace();
  return std::pair<C, Y>(detail::withLeaves(init, results),
                         detail::withLeaves(*prototype, std::span(results).subspan(n)));
}

} // namespace tressel
