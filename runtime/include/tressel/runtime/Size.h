// A size: a number, or an exact integer expression over symbols whose values are known only when a program runs.
//
//   Size n = dim::symbol("n", 1, 512);
//   dim::str((n + 1) * 4)                         // "4*n + 4"
//   dim::floorDiv(n * 784, 28) == n * 28          // canonical: equal expressions are equal sizes
//   Size rows = batch;                            // any number is a size
//   int64_t count = rows.number();                // not the other way round: throws InternalError for an expression
//
// A size takes eight bytes, and arithmetic on numbers costs an overflow check. Expressions are interned: made once,
// immutable, never freed; every function may be called from any thread. A size converts into no integer by itself, so an
// expression is never computed with as if it were a number; an integer converts into the size that it is, never into an
// expression.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

namespace tressel {

/// Integers that count: neither bool nor characters.
template <class T>
concept SizeNumber = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;

class Size {
public:
  /// 0.
  constexpr Size() = default;
  /// A number, from kLeast to the most that 64 bits hold. Throws Error for others.
  template <SizeNumber T> constexpr Size(T number) : bits_(checked(number)) {}
  static constexpr int64_t kLeast = std::numeric_limits<int64_t>::min() + (int64_t(1) << 32);

  /// The same, with kLeast for what is below: of an index, which lies before the beginning anyhow.
  static constexpr Size clamped(int64_t number) { return fromChecked(number < kLeast ? kLeast : number); }

  /// Neither an expression nor kDynamic.
  constexpr bool isNumber() const { return bits_ >= kLeast; }
  constexpr bool isSymbolic() const { return !isNumber() && bits_ != kUnknown; }
  /// Throws InternalError if it is none.
  constexpr int64_t number() const {
    if (!isNumber()) [[unlikely]]
      failNumber();
    return bits_;
  }
  /// Whether it is not the number 0.
  constexpr explicit operator bool() const { return bits_ != 0; }
  /// As `number`.
  template <typename T>
  requires(std::floating_point<T> || SizeNumber<T>)
  constexpr explicit operator T() const {
    return static_cast<T>(number());
  }
  constexpr int64_t numberOr(int64_t other) const { return isNumber() ? bits_ : other; }

  /// Equal sizes, and only those, have equal bits within a process: for hashes, and for memory that holds integers. An
  /// expression has other bits in another process: files hold its text (dim::spell).
  constexpr int64_t bits() const { return bits_; }
  /// The size that has these bits. Throws Error if no size of this process has.
  static constexpr Size fromBits(int64_t bits) {
    if (bits < kLeast) [[unlikely]]
      checkBits(bits);
    return fromChecked(bits);
  }
  /// A size of which nothing is known: kDynamic.
  static constexpr Size unknown() { return fromChecked(kUnknown); }

  // The same expression: whether two sizes may have the same value is asked in Dim.h.
  friend constexpr bool operator==(Size a, Size b) = default;

  // Throws Error when a number or a coefficient leaves 64 bits. kDynamic absorbs everything.
  friend constexpr Size operator+(Size a, Size b) {
    int64_t sum = 0;
    if (bothNumbers(a, b) && !__builtin_add_overflow(a.bits_, b.bits_, &sum) && sum >= kLeast) [[likely]]
      return fromChecked(sum);
    return add(a, b);
  }
  friend constexpr Size operator-(Size a, Size b) {
    int64_t difference = 0;
    if (bothNumbers(a, b) && !__builtin_sub_overflow(a.bits_, b.bits_, &difference) && difference >= kLeast) [[likely]]
      return fromChecked(difference);
    return add(a, multiply(b, fromChecked(-1)));
  }
  friend constexpr Size operator*(Size a, Size b) {
    int64_t product = 0;
    if (bothNumbers(a, b) && !__builtin_mul_overflow(a.bits_, b.bits_, &product) && product >= kLeast) [[likely]]
      return fromChecked(product);
    return multiply(a, b);
  }
  friend constexpr Size operator-(Size a) { return fromChecked(0) - a; }
  /// Rounded towards minus infinity, and what is left. Throws Error if `b` is the number 0.
  friend constexpr Size operator/(Size a, Size b) {
    if (a.bits_ >= 0 && b.bits_ > 0) [[likely]]
      return fromChecked(a.bits_ / b.bits_);
    return divide(a, b);
  }
  friend constexpr Size operator%(Size a, Size b) { return a - b * (a / b); }

  /// Of numbers, and of expressions where their bounds decide; InternalError where it depends on the symbols: code that
  /// meets such sizes asks dim::less.
  friend constexpr bool operator<(Size a, Size b) {
    if (bothNumbers(a, b)) [[likely]]
      return a.bits_ < b.bits_;
    return isLess(a, b);
  }
  friend constexpr bool operator>(Size a, Size b) { return b < a; }
  friend constexpr bool operator<=(Size a, Size b) { return !(b < a); }
  friend constexpr bool operator>=(Size a, Size b) { return !(a < b); }

  constexpr Size &operator/=(Size b) { return *this = *this / b; }
  constexpr Size &operator+=(Size b) { return *this = *this + b; }
  constexpr Size &operator-=(Size b) { return *this = *this - b; }
  constexpr Size &operator*=(Size b) { return *this = *this * b; }

private:
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::min();

  static constexpr Size fromChecked(int64_t bits) {
    Size size;
    size.bits_ = bits;
    return size;
  }
  template <SizeNumber T> static constexpr int64_t checked(T number) {
    if (!std::in_range<int64_t>(number) || static_cast<int64_t>(number) < kLeast) [[unlikely]]
      failRange();
    return static_cast<int64_t>(number);
  }
  static constexpr bool bothNumbers(Size a, Size b) { return a.isNumber() && b.isNumber(); }
  // types/Dim.cpp
  static Size add(Size a, Size b);
  static Size multiply(Size a, Size b);
  static Size divide(Size a, Size b);
  static bool isLess(Size a, Size b);
  static void checkBits(int64_t bits);
  [[noreturn]] void failNumber() const;
  [[noreturn]] static void failRange();

  int64_t bits_ = 0;
};

/// A dimension of whose size nothing is known.
inline constexpr Size kDynamic = Size::unknown();

static_assert(sizeof(Size) == sizeof(int64_t));
/// The bits of sizes that stand behind one another: integers, where all are numbers.
inline const int64_t *bitsOf(std::span<const Size> sizes) { return reinterpret_cast<const int64_t *>(sizes.data()); }

} // namespace tressel
