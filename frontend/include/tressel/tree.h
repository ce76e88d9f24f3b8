// Trees of tensors: the arguments and results of a jitted function. A tree is a Tensor, or a vector, array, pair,
// tuple, optional, string-keyed map or plain aggregate of trees. Integers, enums and Static values in it are part of
// the program's key.
#pragma once

#include <tressel/tensor.h>

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace tressel {

/// A value that is baked into the compiled program: each distinct value has a program of its own. T needs std::hash and
/// ==.
template <typename T> struct Static {
  T value{};
  Static() = default;
  Static(T v) : value(std::move(v)) {}
  operator const T &() const { return value; }
  bool operator==(const Static &) const = default;
};

namespace detail {

template <typename T, template <typename...> class C> struct IsInstance : std::false_type {};
template <typename... A, template <typename...> class C> struct IsInstance<C<A...>, C> : std::true_type {};
template <typename T> struct IsArray : std::false_type {};
template <typename T, size_t N> struct IsArray<std::array<T, N>> : std::true_type {};
template <typename T> struct IsStringMap : std::false_type {};
template <typename T, typename... A> struct IsStringMap<std::map<std::string, T, A...>> : std::true_type {};

/// Converts to anything, to count the fields of an aggregate.
struct AnyField {
  template <typename T> operator T() const;
};
template <typename T, typename... Fields> constexpr size_t countFields() {
  if constexpr (sizeof...(Fields) > 12)
    return 13;
  else if constexpr (requires { T{std::declval<Fields>()..., AnyField()}; })
    return countFields<T, Fields..., AnyField>();
  else
    return sizeof...(Fields);
}

/// Calls fn with references to all fields of an aggregate.
template <typename T, typename Fn> decltype(auto) withFields(T &value, Fn &&fn) {
  constexpr size_t n = countFields<std::remove_const_t<T>>();
  static_assert(n <= 12, "an aggregate of a tree has at most 12 fields: nest them, or use a vector or map");
  if constexpr (n == 0) {
    return fn();
  } else if constexpr (n == 1) {
    auto &[a] = value;
    return fn(a);
  } else if constexpr (n == 2) {
    auto &[a, b] = value;
    return fn(a, b);
  } else if constexpr (n == 3) {
    auto &[a, b, c] = value;
    return fn(a, b, c);
  } else if constexpr (n == 4) {
    auto &[a, b, c, d] = value;
    return fn(a, b, c, d);
  } else if constexpr (n == 5) {
    auto &[a, b, c, d, e] = value;
    return fn(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto &[a, b, c, d, e, f] = value;
    return fn(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto &[a, b, c, d, e, f, g] = value;
    return fn(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto &[a, b, c, d, e, f, g, h] = value;
    return fn(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto &[a, b, c, d, e, f, g, h, i] = value;
    return fn(a, b, c, d, e, f, g, h, i);
  } else if constexpr (n == 10) {
    auto &[a, b, c, d, e, f, g, h, i, j] = value;
    return fn(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (n == 11) {
    auto &[a, b, c, d, e, f, g, h, i, j, k] = value;
    return fn(a, b, c, d, e, f, g, h, i, j, k);
  } else {
    auto &[a, b, c, d, e, f, g, h, i, j, k, l] = value;
    return fn(a, b, c, d, e, f, g, h, i, j, k, l);
  }
}

/// Walks a tree in order. The visitor has tensor(const Tensor &) and word(uint64_t): structure and static values.
template <typename T, typename Visitor> void visitTree(const T &value, Visitor &visitor) {
  if constexpr (std::is_same_v<T, Tensor>) {
    visitor.tensor(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    static_assert(!std::is_floating_point_v<T>,
                  "a floating-point argument would compile the function anew for each value: take a Tensor instead (a "
                  "number may be passed for it), or Static<float> if that is meant");
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    visitor.word(static_cast<uint64_t>(value));
  } else if constexpr (IsInstance<T, Static>::value) {
    visitor.word(std::hash<std::remove_cvref_t<decltype(value.value)>>()(value.value));
  } else if constexpr (IsInstance<T, std::vector>::value) {
    visitor.word(value.size());
    for (const auto &v : value)
      visitTree(v, visitor);
  } else if constexpr (IsInstance<T, std::optional>::value) {
    visitor.word(value.has_value());
    if (value)
      visitTree(*value, visitor);
  } else if constexpr (IsStringMap<T>::value) {
    visitor.word(value.size());
    for (const auto &[key, v] : value) {
      visitor.word(std::hash<std::string>()(key));
      visitTree(v, visitor);
    }
  } else if constexpr (IsArray<T>::value) {
    for (const auto &v : value)
      visitTree(v, visitor);
  } else if constexpr (IsInstance<T, std::tuple>::value || IsInstance<T, std::pair>::value) {
    std::apply([&](const auto &...v) { (visitTree(v, visitor), ...); }, value);
  } else {
    static_assert(std::is_aggregate_v<T>, "a tree holds Tensors, integers, enums, Static values, and vectors, arrays, "
                                          "tuples, optionals, string maps and aggregates of them");
    withFields(value, [&](const auto &...v) { (visitTree(v, visitor), ...); });
  }
}

/// Replaces every tensor by fn(tensor), in the same order.
template <typename T, typename Fn> void mapTree(T &value, Fn &fn) {
  if constexpr (std::is_same_v<T, Tensor>) {
    value = fn(value);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || IsInstance<T, Static>::value) {
  } else if constexpr (IsInstance<T, std::vector>::value || IsArray<T>::value) {
    for (auto &v : value)
      mapTree(v, fn);
  } else if constexpr (IsInstance<T, std::optional>::value) {
    if (value)
      mapTree(*value, fn);
  } else if constexpr (IsStringMap<T>::value) {
    for (auto &[key, v] : value)
      mapTree(v, fn);
  } else if constexpr (IsInstance<T, std::tuple>::value || IsInstance<T, std::pair>::value) {
    std::apply([&](auto &...v) { (mapTree(v, fn), ...); }, value);
  } else {
    withFields(value, [&](auto &...v) { (mapTree(v, fn), ...); });
  }
}

} // namespace detail
} // namespace tressel
