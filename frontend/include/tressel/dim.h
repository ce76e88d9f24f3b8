// Sizes of dimensions, which may be known only when a program runs, and lists of them as ops take them.
//
//   Dim n = x.dim(0);                               // an integer, or a symbol in a trace with dynamic sizes
//   Tensor y = reshape(x, {n / 2, -1});             // arithmetic stays symbolic
//   if (n > 0) ...                                  // comparisons work where the bounds decide them
//   int64_t rows = n;                               // TraceError for a symbol: the program would fit one size only
#pragma once

#include <tressel/runtime/Dim.h>
#include <tressel/runtime/Types.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace tressel {

/// The size of a dimension. It turns into an integer by itself; a symbol throws TraceError instead, so that no program
/// is silently specialized to one size.
class Dim {
public:
  template <std::integral T>
  Dim(T size, std::source_location where = std::source_location::current())
      : size_(static_cast<int64_t>(size)), where_(where) {}

  bool is_static() const { return dim::isConstant(size_); }
  operator int64_t() const {
    if (!is_static())
      failConversion();
    return size_;
  }
  /// "4*n + 4".
  std::string str() const { return dim::str(size_); }
  /// The size as shapes and attributes hold it (runtime/Dim.h).
  int64_t raw() const { return size_; }
  const std::source_location &where() const { return where_; }

  // Integer arithmetic; / and % round down. Throws Error for a division by 0.
  friend Dim operator+(const Dim &a, const Dim &b) { return {dim::add(a.size_, b.size_), a.where_}; }
  friend Dim operator-(const Dim &a, const Dim &b) { return {dim::sub(a.size_, b.size_), a.where_}; }
  friend Dim operator*(const Dim &a, const Dim &b) { return {dim::mul(a.size_, b.size_), a.where_}; }
  friend Dim operator/(const Dim &a, const Dim &b) { return a.divide(b, false); }
  friend Dim operator%(const Dim &a, const Dim &b) { return a.divide(b, true); }
  /// std::min and std::max would compare, which throws where it depends on the size.
  friend Dim min(const Dim &a, const Dim &b) { return {dim::min(a.size_, b.size_), a.where_}; }
  friend Dim max(const Dim &a, const Dim &b) { return {dim::max(a.size_, b.size_), a.where_}; }
  // Throws TraceError where it depends on the size.
  friend bool operator==(const Dim &a, const Dim &b) { return a.isEqual(b); }
  friend bool operator<(const Dim &a, const Dim &b) { return a.isLess(b); }
  friend bool operator>(const Dim &a, const Dim &b) { return b.isLess(a); }
  friend bool operator<=(const Dim &a, const Dim &b) { return !b.isLess(a); }
  friend bool operator>=(const Dim &a, const Dim &b) { return !a.isLess(b); }

// With an integer on either side: templates, because a conversion to int64_t would do as well.
#define TRESSEL_DIM_OPERATOR(R, op)                                                                                    \
  template <std::integral T> friend R operator op(const Dim &a, T b) { return a op Dim(b, a.where_); }                 \
  template <std::integral T> friend R operator op(T a, const Dim &b) { return Dim(a, b.where_) op b; }
  TRESSEL_DIM_OPERATOR(Dim, +)
  TRESSEL_DIM_OPERATOR(Dim, -)
  TRESSEL_DIM_OPERATOR(Dim, *)
  TRESSEL_DIM_OPERATOR(Dim, /)
  TRESSEL_DIM_OPERATOR(Dim, %)
  template <std::integral T> friend Dim min(const Dim &a, T b) { return min(a, Dim(b, a.where_)); }
  template <std::integral T> friend Dim max(const Dim &a, T b) { return max(a, Dim(b, a.where_)); }
  template <std::integral T> friend Dim min(T a, const Dim &b) { return min(Dim(a, b.where_), b); }
  template <std::integral T> friend Dim max(T a, const Dim &b) { return max(Dim(a, b.where_), b); }
  TRESSEL_DIM_OPERATOR(bool, <)
  TRESSEL_DIM_OPERATOR(bool, >)
  TRESSEL_DIM_OPERATOR(bool, <=)
  TRESSEL_DIM_OPERATOR(bool, >=)
#undef TRESSEL_DIM_OPERATOR
  template <std::integral T> friend bool operator==(const Dim &a, T b) { return a.isEqual(Dim(b, a.where_)); }

private:
  [[noreturn]] void failConversion() const;
  Dim divide(const Dim &by, bool rest) const;
  bool isEqual(const Dim &other) const;
  bool isLess(const Dim &other) const;
  int64_t size_;
  std::source_location where_;
};

/// A list of sizes or other integers: {x.dim(0), -1}, a vector, a Shape.
class Sizes {
public:
  Sizes() = default;
  Sizes(std::initializer_list<Dim> list) {
    for (const Dim &d : list)
      values_.push_back(d.raw());
  }
  Sizes(std::vector<int64_t> list) : values_(std::move(list)) {}
  Sizes(const std::vector<Dim> &list) {
    for (const Dim &d : list)
      values_.push_back(d.raw());
  }
  Sizes(const Shape &shape) : values_(shape.begin(), shape.end()) {}

  bool empty() const { return values_.empty(); }
  size_t size() const { return values_.size(); }
  const std::vector<int64_t> &values() const & { return values_; }
  std::vector<int64_t> &&values() && { return std::move(values_); }

private:
  std::vector<int64_t> values_;
};

} // namespace tressel
