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

/// The size of a dimension. Converts to an integer implicitly; a symbol throws TraceError instead, so that no program
/// is silently specialized to one size.
class Dim {
public:
  /// A number below Size::kLeast, which is no size, is clamped to that: such an index is out of range anyway.
  template <std::integral T>
  Dim(T size, std::source_location where = std::source_location::current())
      : size_(Size::clamped(static_cast<int64_t>(size))), where_(where) {}
  Dim(Size size, std::source_location where = std::source_location::current()) : size_(size), where_(where) {}

  bool is_static() const { return size_.isNumber(); }
  operator int64_t() const {
    if (!is_static())
      failConversion();
    return size_.number();
  }
  /// The number as a size, so that a Shape takes it; TraceError for a symbol likewise.
  operator Size() const { return int64_t(*this); }
  /// "4*n + 4".
  std::string str() const { return dim::str(size_); }
  /// The size as shapes and attributes hold it.
  Size raw() const { return size_; }
  const std::source_location &where() const { return where_; }

  // Integer arithmetic; / and % round down. Throws Error for a division by 0.
  friend Dim operator+(const Dim &a, const Dim &b) { return {a.size_ + b.size_, a.where_}; }
  friend Dim operator-(const Dim &a, const Dim &b) { return {a.size_ - b.size_, a.where_}; }
  friend Dim operator*(const Dim &a, const Dim &b) { return {a.size_ * b.size_, a.where_}; }
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

// With an integer on either side. Templates, as otherwise the conversion to int64_t would be ambiguous.
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
  Size size_;
  std::source_location where_;
};

/// The sizes of a tensor. In a trace a size may be a symbol. Indexing gives a Dim, as x.dim(i) does, and ops take the
/// list as it is (`reshape(y, x.shape())`). Converting it to numbers, to a Shape, or comparing it throws TraceError,
/// and the function is then recorded for each size by itself.
class TensorShape {
public:
  TensorShape(const Shape &shape, std::source_location where) : shape_(shape), where_(where) {}

  int rank() const { return shape_.rank(); }
  size_t size() const { return shape_.size(); }
  bool empty() const { return shape_.empty(); }
  Dim operator[](int i) const { return {shape_[i], where_}; }
  Dim back() const { return {shape_.back(), where_}; }
  int64_t numElements() const { return Dim(dim::numElements(shape_), where_); }
  bool isStatic() const { return shape_.isStatic(); }
  std::string str() const { return shape_.str(); }
  /// As shapes and attributes hold it, symbols included.
  const Shape &raw() const { return shape_; }
  operator Shape() const {
    for (Size size : shape_)
      (void)int64_t(Dim(size, where_));
    return shape_;
  }

  /// Holds a copy of the shape, as begin and end may come from two calls of shape().
  class Iterator {
  public:
    using value_type = Dim;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Shape &shape, std::source_location where, int i) : shape_(shape), where_(where), i_(i) {}
    Dim operator*() const { return {shape_[i_], where_}; }
    Iterator &operator++() {
      ++i_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++i_;
      return before;
    }
    bool operator==(const Iterator &o) const { return i_ == o.i_; }

  private:
    Shape shape_;
    std::source_location where_;
    int i_ = 0;
  };
  Iterator begin() const { return {shape_, where_, 0}; }
  Iterator end() const { return {shape_, where_, rank()}; }

  friend bool operator==(const TensorShape &a, const TensorShape &b) { return a.isEqual(b.shape_); }
  friend bool operator==(const TensorShape &a, const Shape &b) { return a.isEqual(b); }

private:
  bool isEqual(const Shape &o) const {
    bool equal = rank() == o.rank();
    for (int i = 0; equal && i < rank(); ++i)
      equal = (*this)[i] == Dim(o[i], where_);
    return equal;
  }
  Shape shape_;
  std::source_location where_;
};

/// A list of sizes or other integers: {x.dim(0), -1}, a vector, a Shape.
class Sizes {
public:
  Sizes() = default;
  Sizes(std::initializer_list<Dim> list) { append(list); }
  Sizes(const std::vector<int64_t> &list) {
    for (int64_t n : list)
      values_.push_back(Size::clamped(n));
  }
  Sizes(std::vector<Size> list) : values_(std::move(list)) {}
  Sizes(const std::vector<Dim> &list) { append(list); }
  Sizes(const Shape &shape) : values_(shape.begin(), shape.end()) {}
  Sizes(const TensorShape &shape) { append(shape); }

  bool empty() const { return values_.empty(); }
  size_t size() const { return values_.size(); }
  const std::vector<Size> &values() const & { return values_; }
  std::vector<Size> &&values() && { return std::move(values_); }
  /// For a parameter that takes no symbols: throws TraceError for one.
  std::vector<int64_t> numbers() const {
    std::vector<int64_t> out;
    for (Size size : values_)
      out.push_back(Dim(size, where_));
    return out;
  }

private:
  void append(const auto &dims) {
    for (const Dim &d : dims) {
      if (!d.is_static())
        where_ = d.where();
      values_.push_back(d.raw());
    }
  }
  std::vector<Size> values_;
  std::source_location where_; ///< of the last symbol
};

} // namespace tressel
