// Element types, shapes and tensor types: the vocabulary every layer shares.
#pragma once

#include "tressel/runtime/Size.h"

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace tressel {

/// Element types. The numeric values are part of the package format: append, never reorder.
enum class DType : uint8_t { f32, f64, f16, bf16, i8, i16, i32, i64, u8, boolean };
inline constexpr int kNumDTypes = 10;

inline constexpr DType f32 = DType::f32, f64 = DType::f64, f16 = DType::f16, bf16 = DType::bf16,
                       i8 = DType::i8, i16 = DType::i16, i32 = DType::i32, i64 = DType::i64,
                       u8 = DType::u8, bool_ = DType::boolean;

/// Bytes of one element; bool is one byte holding 0 or 1.
constexpr int64_t sizeOf(DType type) {
  constexpr int64_t sizes[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 1};
  return sizes[static_cast<int>(type)];
}
/// "f32", ..., "u8", "bool".
constexpr std::string_view nameOf(DType type) {
  constexpr std::string_view names[] = {"f32", "f64", "f16", "bf16", "i8",
                                        "i16", "i32", "i64", "u8",   "bool"};
  return names[static_cast<int>(type)];
}
constexpr bool isFloat(DType t) { return t <= DType::bf16; }
constexpr bool isInteger(DType t) { return t >= DType::i8 && t <= DType::u8; }
constexpr bool isSigned(DType t) { return t != DType::u8 && t != DType::boolean; }

/// Tensors have at most this many dimensions, so shapes never allocate.
inline constexpr int kMaxRank = 8;

/// Sizes of the dimensions of a tensor, outermost first. Trivially copyable.
class Shape {
public:
  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<Size> dims) {
    for (Size d : dims)
      push_back(d);
  }
  constexpr explicit Shape(std::span<const Size> dims) {
    for (Size d : dims)
      push_back(d);
  }
  constexpr explicit Shape(std::span<const int64_t> dims) {
    for (int64_t d : dims)
      push_back(d);
  }

  constexpr int rank() const { return rank_; }
  constexpr size_t size() const { return static_cast<size_t>(rank_); }
  constexpr bool empty() const { return rank_ == 0; }
  constexpr Size operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  constexpr Size &operator[](int i) { return dims_[static_cast<size_t>(i)]; }
  constexpr const Size *begin() const { return dims_.data(); }
  constexpr const Size *end() const { return dims_.data() + rank_; }
  constexpr Size *begin() { return dims_.data(); }
  constexpr Size *end() { return dims_.data() + rank_; }
  constexpr Size back() const { return dims_[static_cast<size_t>(rank_ - 1)]; }
  /// The caller checks against kMaxRank first: a rank beyond it is the user's error, not an assertion.
  constexpr void push_back(Size d) {
    assert(rank_ < kMaxRank);
    dims_[static_cast<size_t>(rank_++)] = d;
  }
  constexpr void pop_back() { --rank_; }
  constexpr operator std::span<const Size>() const { return {dims_.data(), size()}; }

  constexpr bool isStatic() const {
    for (Size d : *this)
      if (!d.isNumber() || d.number() < 0)
        return false;
    return true;
  }
  /// The size of dimension `i`, which is a number (see Size::number).
  constexpr int64_t extent(int i) const { return (*this)[i].number(); }
  /// Product of the sizes; 1 for a scalar. Only for static shapes. What is more than any memory holds counts as 2^59,
  /// so that bytes do not overflow either: code that takes shapes from elsewhere refuses that.
  constexpr int64_t numElements() const {
    constexpr int64_t most = int64_t(1) << 59;
    int64_t n = 1;
    for (Size d : *this) {
      if (d == 0)
        return 0;
      if (__builtin_mul_overflow(n, d.number(), &n) || n > most)
        n = most;
    }
    return n;
  }
  constexpr bool operator==(const Shape &o) const {
    if (rank_ != o.rank_)
      return false;
    for (int i = 0; i < rank_; ++i)
      if ((*this)[i] != o[i])
        return false;
    return true;
  }
  /// "[64, 784]", "[n, 784]"; a dimension of which nothing is known prints as "?".
  std::string str() const;

private:
  std::array<Size, kMaxRank> dims_{};
  int32_t rank_ = 0;
};

/// Element type and shape.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;

  constexpr int rank() const { return shape.rank(); }
  /// Bytes of a dense row-major tensor of this (static) type.
  constexpr int64_t bytes() const { return shape.numElements() * sizeOf(dtype); }
  constexpr bool operator==(const TensorType &) const = default;
  /// "f32[64, 784]".
  std::string str() const;
};

/// Parses "f32", "float32", "int64", "bool" and the like; false if unknown.
bool parseDType(std::string_view text, DType &out);

} // namespace tressel
