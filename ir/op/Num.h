// Typed numbers, the scalars with which the reference interpreter runs an op's scalar fragment. Integers keep their
// width and wrap around, and never go through double. A float is rounded to its own type after every operation.
// Transcendental functions are computed in double and rounded once, so they are correctly rounded except in rare ties:
// a reference for vectorized forms. Arithmetic in f32 flushes subnormal operands and results to zero (docs/numbers.md),
// unless the thread's KeepSubnormals says otherwise; ops that only select numbers or change signs do not.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tressel::op {

/// One of the compute types: float, double, int8_t to int64_t, uint8_t, bool. 16-bit floats compute as float.
template <class T> struct Num {
  T v{};
  constexpr Num() = default;
  constexpr explicit Num(T value) : v(value) {}
};

/// A scope in which f32 arithmetic of this thread keeps subnormal numbers or, with false, flushes them.
class KeepSubnormals {
public:
  explicit KeepSubnormals(bool keep) : before_(current_) { current_ = keep; }
  ~KeepSubnormals() { current_ = before_; }
  KeepSubnormals(const KeepSubnormals &) = delete;
  KeepSubnormals &operator=(const KeepSubnormals &) = delete;
  static bool active() { return current_; }

private:
  static thread_local constinit bool current_; // OpInfo.cpp
  const bool before_;
};

/// A literal in a fragment takes the type of the number beside it.
template <class L>
concept Literal = std::is_arithmetic_v<L>;

namespace num {

template <class T> inline constexpr bool isInt = std::is_integral_v<T> && !std::is_same_v<T, bool>;

/// Float to integer truncates; outside the range it saturates and NaN becomes 0, which avoids undefined behaviour.
template <class To, class From> constexpr To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (x != x)
      return 0;
    // The limits as floats: min is exact, max rounds up to a power of two, hence >=.
    if (x <= static_cast<From>(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
    if (x >= static_cast<From>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x); // integers wrap around
  }
}

/// Flushes a subnormal f32 to zero, as arithmetic does with operands and results. Other types are unchanged.
template <class T> constexpr T flushed(T x) {
  if constexpr (std::is_same_v<T, float>)
    if (std::fabs(x) < std::numeric_limits<float>::min() && !KeepSubnormals::active())
      return std::copysign(0.0f, x);
  return x;
}

template <class T> constexpr T wrapAdd(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
template <class T> constexpr T wrapSub(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); }
template <class T> constexpr T wrapMul(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }

template <class T> constexpr T add(T a, T b) {
  if constexpr (isInt<T>)
    return wrapAdd(a, b);
  else
    return static_cast<T>(a + b);
}
template <class T> constexpr T sub(T a, T b) {
  if constexpr (isInt<T>)
    return wrapSub(a, b);
  else
    return static_cast<T>(a - b);
}
template <class T> constexpr T mul(T a, T b) {
  if constexpr (isInt<T>)
    return wrapMul(a, b);
  else
    return static_cast<T>(a * b);
}
/// Integers round towards minus infinity; division by zero gives 0; the smallest divided by -1 wraps around.
template <class T> constexpr T div(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a / b;
  } else if constexpr (std::is_same_v<T, bool>) {
    return a && b;
  } else {
    if (b == 0)
      return 0;
    if (std::is_signed_v<T> && b == static_cast<T>(-1))
      return wrapSub<T>(0, a);
    const T quotient = static_cast<T>(a / b), rest = static_cast<T>(a % b);
    return static_cast<T>(rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient);
  }
}
/// The result has the sign of b. Floats: exact, without rounding a quotient. Integers: 0 for a division by zero.
template <class T> T rem(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const T rest = std::fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0))
      return rest + b;
    return rest == 0 ? std::copysign(rest, b) : rest;
  } else if constexpr (std::is_same_v<T, bool>) {
    return false;
  } else {
    if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1)))
      return 0;
    const T rest = static_cast<T>(a % b);
    return static_cast<T>(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
  }
}
/// Integers: exact modulo the width. A negative exponent rounds the fraction towards zero.
template <class T> T pow(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return a || !b;
  } else {
    if (b < 0)
      return a == 1 ? T(1) : a == static_cast<T>(-1) ? (b & 1 ? static_cast<T>(-1) : T(1)) : T(0);
    T power = 1;
    for (uint64_t n = static_cast<uint64_t>(b); n; n >>= 1, a = wrapMul(a, a))
      if (n & 1)
        power = wrapMul(power, a);
    return power;
  }
}
/// NaN if either is.
template <class T> constexpr T min(T a, T b) { return a != a ? a : b != b ? b : b < a ? b : a; }
template <class T> constexpr T max(T a, T b) { return a != a ? a : b != b ? b : a < b ? b : a; }

/// Functions of reals. Their integer instances only exist so that fragments compile for every type: such ops compute in
/// floats, as their record's `compute` says.
template <class T, class F> T real(T x, F f) { return flushed(convert<T>(f(static_cast<double>(flushed(x))))); }

} // namespace num

// --- Operators. Both operands have one type, or one of them is a literal. ---------------------------------------------
#define TRESSEL_NUM_BINARY(name, R, expression)                                                                        \
  template <class T> constexpr Num<R> name(Num<T> a_, Num<T> b_) {                                                     \
    const T a = num::flushed(a_.v), b = num::flushed(b_.v);                                                            \
    return Num<R>(num::flushed<R>(expression));                                                                        \
  }                                                                                                                    \
  template <class T, Literal L> constexpr Num<R> name(Num<T> a, L b) { return name(a, Num<T>(num::convert<T>(b))); }   \
  template <class T, Literal L> constexpr Num<R> name(L a, Num<T> b) { return name(Num<T>(num::convert<T>(a)), b); }

TRESSEL_NUM_BINARY(operator+, T, num::add(a, b))
TRESSEL_NUM_BINARY(operator-, T, num::sub(a, b))
TRESSEL_NUM_BINARY(operator*, T, num::mul(a, b))
TRESSEL_NUM_BINARY(operator/, T, num::div(a, b))
TRESSEL_NUM_BINARY(operator%, T, num::rem(a, b))
TRESSEL_NUM_BINARY(operator==, bool, a == b)
TRESSEL_NUM_BINARY(operator!=, bool, a != b)
TRESSEL_NUM_BINARY(operator<, bool, a < b)
TRESSEL_NUM_BINARY(operator<=, bool, a <= b)
TRESSEL_NUM_BINARY(operator>, bool, a > b)
TRESSEL_NUM_BINARY(operator>=, bool, a >= b)
TRESSEL_NUM_BINARY(pow, T, num::pow(a, b))
TRESSEL_NUM_BINARY(min, T, num::min(a, b))
TRESSEL_NUM_BINARY(max, T, num::max(a, b))
TRESSEL_NUM_BINARY(atan2, T, num::convert<T>(std::atan2(static_cast<double>(a), static_cast<double>(b))))
#undef TRESSEL_NUM_BINARY

/// Operands are nonzero or not; ops convert theirs to bool first.
template <class T> constexpr Num<bool> operator&&(Num<T> a, Num<T> b) { return Num<bool>((a != T(0)).v && (b != T(0)).v); }
template <class T> constexpr Num<bool> operator||(Num<T> a, Num<T> b) { return Num<bool>((a != T(0)).v || (b != T(0)).v); }
template <class T> constexpr Num<bool> operator!(Num<T> a) { return a == T(0); }

/// Bitwise operations; the right shift fills with zeros.
#define TRESSEL_NUM_BITS(name, expression)                                                                             \
  template <class T> constexpr Num<T> name(Num<T> a_, Num<T> b_) {                                                     \
    if constexpr (!std::is_integral_v<T>)                                                                              \
      return Num<T>(); /* instantiated, never evaluated: such ops refuse floats */                                     \
    else {                                                                                                             \
    using U = std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, int, T>>;                               \
    const U a = static_cast<U>(a_.v), b = static_cast<U>(b_.v);                                                        \
    [[maybe_unused]] constexpr U width = std::numeric_limits<U>::digits;                                               \
    return Num<T>(static_cast<T>(expression));                                                                         \
    }                                                                                                                  \
  }                                                                                                                    \
  template <class T, Literal L> constexpr Num<T> name(Num<T> a, L b) { return name(a, Num<T>(static_cast<T>(b))); }
TRESSEL_NUM_BITS(operator&, a & b)
TRESSEL_NUM_BITS(operator|, a | b)
TRESSEL_NUM_BITS(operator^, a ^ b)
TRESSEL_NUM_BITS(operator<<, b < width ? a << b : U(0))
TRESSEL_NUM_BITS(operator>>, b < width ? a >> b : U(0))
#undef TRESSEL_NUM_BITS

template <class T> constexpr Num<T> operator~(Num<T> x) {
  if constexpr (std::is_same_v<T, bool>)
    return Num<T>(!x.v);
  else if constexpr (std::is_integral_v<T>)
    return Num<T>(static_cast<T>(~x.v));
  else
    return x; // as above
}

template <class T> constexpr Num<T> operator-(Num<T> x) {
  if constexpr (num::isInt<T>)
    return Num<T>(num::wrapSub<T>(0, x.v));
  else
    return Num<T>(static_cast<T>(-x.v)); // keeps the sign of zero
}

// --- Functions of one number --------------------------------------------------------------------------------------------
template <class T> Num<T> abs(Num<T> x) {
  if constexpr (std::is_floating_point_v<T>)
    return Num<T>(std::fabs(x.v));
  else if constexpr (std::is_signed_v<T>)
    return x.v < 0 ? -x : x;
  else
    return x;
}
template <class T> constexpr Num<T> sign(Num<T> x_) {
  const Num<T> x(num::flushed(x_.v));
  return x.v != x.v ? x : Num<T>(static_cast<T>((x.v > T(0)) - (x.v < T(0))));
}
template <class T> constexpr Num<bool> isnan(Num<T> x) { return Num<bool>(x.v != x.v); }

/// Rounds to an integer value; integers are unchanged.
#define TRESSEL_NUM_ROUND(name, function)                                                                              \
  template <class T> Num<T> name(Num<T> x) {                                                                           \
    if constexpr (std::is_floating_point_v<T>)                                                                         \
      return Num<T>(function(num::flushed(x.v)));                                                                      \
    else                                                                                                               \
      return x;                                                                                                        \
  }
TRESSEL_NUM_ROUND(floor, std::floor)
TRESSEL_NUM_ROUND(ceil, std::ceil)
TRESSEL_NUM_ROUND(round, std::nearbyint) // halves to the even one
TRESSEL_NUM_ROUND(trunc, std::trunc)
#undef TRESSEL_NUM_ROUND

#define TRESSEL_NUM_REAL(name, expression)                                                                             \
  template <class T> Num<T> name(Num<T> x) {                                                                           \
    return Num<T>(num::real(x.v, [](double v) { return expression; }));                                                \
  }
TRESSEL_NUM_REAL(sqrt, std::sqrt(v))
TRESSEL_NUM_REAL(rsqrt, 1 / std::sqrt(v))
TRESSEL_NUM_REAL(exp, std::exp(v))
TRESSEL_NUM_REAL(expm1, std::expm1(v))
TRESSEL_NUM_REAL(log, std::log(v))
TRESSEL_NUM_REAL(log1p, std::log1p(v))
TRESSEL_NUM_REAL(sin, std::sin(v))
TRESSEL_NUM_REAL(cos, std::cos(v))
TRESSEL_NUM_REAL(tan, std::tan(v))
TRESSEL_NUM_REAL(asin, std::asin(v))
TRESSEL_NUM_REAL(acos, std::acos(v))
TRESSEL_NUM_REAL(atan, std::atan(v))
TRESSEL_NUM_REAL(sinh, std::sinh(v))
TRESSEL_NUM_REAL(cosh, std::cosh(v))
TRESSEL_NUM_REAL(tanh, std::tanh(v))
TRESSEL_NUM_REAL(erf, std::erf(v))
TRESSEL_NUM_REAL(sigmoid, 1 / (1 + std::exp(-v)))
#undef TRESSEL_NUM_REAL

// --- Choice and conversion -----------------------------------------------------------------------------------------------
template <class T> constexpr Num<T> select(Num<bool> c, Num<T> a, Num<T> b) { return c.v ? a : b; }
template <class T, Literal L> constexpr Num<T> select(Num<bool> c, Num<T> a, L b) { return c.v ? a : Num<T>(num::convert<T>(b)); }
template <class T, Literal L> constexpr Num<T> select(Num<bool> c, L a, Num<T> b) { return c.v ? Num<T>(num::convert<T>(a)) : b; }

/// Names a type in `cast(x, cx.f32)`.
template <class T> struct NumTag {};
/// The largest integer not above a / b, without rounding errors for floats; a / b where b is zero.
template <class T> Num<T> floorQuotient(Num<T> a_, Num<T> b_, NumTag<T>) {
  if constexpr (std::is_floating_point_v<T>) {
    const T a = num::flushed(a_.v), b = num::flushed(b_.v);
    if (b == 0)
      return Num<T>(a / b);
    const T rest = std::fmod(a, b), quotient = (a - rest) / b,
            below = rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient;
    return below == 0 ? Num<T>(std::copysign(T(0), a / b)) : round(Num<T>(below));
  } else {
    return a_ / b_;
  }
}
template <class From, class To> constexpr Num<To> cast(Num<From> x, NumTag<To>) {
  if constexpr (std::is_same_v<From, To>)
    return x;
  else
    return Num<To>(num::flushed(num::convert<To>(num::flushed(x.v))));
}
/// The literal, as a number of x's type.
template <class T, Literal L> constexpr Num<T> like(Num<T>, L value) { return Num<T>(num::convert<T>(value)); }

} // namespace tressel::op
