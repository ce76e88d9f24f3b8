// Floating-point arithmetic. MXCSR is as the instruction needs it: rounding, and for .ftz the flushing of subnormal
// numbers.
#pragma once

#include "test/standin/ptx/Lanes.h"
#include "test/standin/ptx/SmallFloat.h"

#include <cmath>

namespace tressel::standin::ptx::PTX_EXECUTE {

/// A NaN is 0x7fffffff, whatever it was made of.
inline float canonical(float a) {
  // By its bits: to a compiler one NaN is as good as another.
  const auto bits = std::bit_cast<int32_t>(a);
  return std::bit_cast<float>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : bits);
}
inline double canonical(double a) { return a; } // doubles keep theirs

inline float flushed(float a) {
  const auto bits = std::bit_cast<uint32_t>(a);
  return std::bit_cast<float>(bits & 0x7f800000 ? bits : bits & 0x80000000);
}

inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

/// min and max: the other operand if one is a NaN (or that, if it is to be passed on), and -0 is less than 0.
template <bool Max, bool PassNan, class T> inline T extreme(T a, T b) {
  using U = Bits<T>;
  constexpr U kNan = sizeof(T) == 4 ? U(0x7fffffff) : U(0x7fffffffffffffff);
  // If one is a NaN, this is b.
  T r = Max ? (a > b ? a : b) : (a < b ? a : b);
  // Equal numbers differ at most in the sign of zero.
  const U x = std::bit_cast<U>(a), y = std::bit_cast<U>(b);
  const T zero = std::bit_cast<T>(Max ? U(x & y) : U(x | y));
  r = a == b ? zero : r;
  if (PassNan)
    r = a != a ? a : r;
  else
    r = b != b ? a : r;
  const U result = std::bit_cast<U>(r);
  return std::bit_cast<T>(r != r ? kNan : result);
}

template <class T> inline T saturate(T a) {
  const T low = a > T(0) ? a : T(0); // of a NaN, 0
  return low < T(1) ? low : T(1);
}

template <class T> void addComparisons(const Table &add, const char *type) {
  add("setp.eq", type, compare<T, decltype([](T a, T b) { return a == b; })>);
  add("setp.ne", type, compare<T, decltype([](T a, T b) { return (a < b) | (a > b); })>);
  add("setp.lt", type, compare<T, decltype([](T a, T b) { return a < b; })>);
  add("setp.le", type, compare<T, decltype([](T a, T b) { return a <= b; })>);
  add("setp.gt", type, compare<T, decltype([](T a, T b) { return a > b; })>);
  add("setp.ge", type, compare<T, decltype([](T a, T b) { return a >= b; })>);
  add("setp.equ", type, compare<T, decltype([](T a, T b) { return !((a < b) | (a > b)); })>);
  add("setp.neu", type, compare<T, decltype([](T a, T b) { return a != b; })>);
  add("setp.ltu", type, compare<T, decltype([](T a, T b) { return !(a >= b); })>);
  add("setp.leu", type, compare<T, decltype([](T a, T b) { return !(a > b); })>);
  add("setp.gtu", type, compare<T, decltype([](T a, T b) { return !(a <= b); })>);
  add("setp.geu", type, compare<T, decltype([](T a, T b) { return !(a < b); })>);
  add("setp.num", type, compare<T, decltype([](T a, T b) { return (a == a) & (b == b); })>);
  add("setp.nan", type, compare<T, decltype([](T a, T b) { return (a != a) | (b != b); })>);
}

template <class T> void addFloats(const Table &add, const char *type) {
  using U = Bits<T>;
  constexpr U kSign = U(1) << (8 * sizeof(T) - 1);
  add("add", type, binary<T, T, T, decltype([](T a, T b) { return canonical(a + b); })>);
  add("sub", type, binary<T, T, T, decltype([](T a, T b) { return canonical(a - b); })>);
  add("mul", type, binary<T, T, T, decltype([](T a, T b) { return canonical(a * b); })>);
  add("div", type, binary<T, T, T, decltype([](T a, T b) { return canonical(a / b); })>);
  add("fma", type, ternary<T, T, T, T, decltype([](T a, T b, T c) { return canonical(fused(a, b, c)); })>);
  add("rcp", type, unary<T, T, decltype([](T a) { return canonical(T(1) / a); })>);
  add("sqrt", type, unary<T, T, decltype([](T a) {
                            if constexpr (sizeof(T) == 4)
                              return canonical(__builtin_sqrtf(a));
                            else
                              return __builtin_sqrt(a);
                          })>);
  add("rsqrt", type,
      unary<T, T, decltype([](T a) { return canonical(static_cast<T>(1.0 / std::sqrt(static_cast<double>(a)))); })>);
  add("min", type, binary<T, T, T, decltype([](T a, T b) { return extreme<false, false>(a, b); })>);
  add("max", type, binary<T, T, T, decltype([](T a, T b) { return extreme<true, false>(a, b); })>);
  add("min.nan", type, binary<T, T, T, decltype([](T a, T b) { return extreme<false, true>(a, b); })>);
  add("max.nan", type, binary<T, T, T, decltype([](T a, T b) { return extreme<true, true>(a, b); })>);
  add("neg", type, unary<U, U, decltype([](U a) { return a ^ kSign; })>);
  add("abs", type, unary<U, U, decltype([](U a) { return a & ~kSign; })>);
  // The sign of the first, the rest of the second.
  add("copysign", type, binary<U, U, U, decltype([](U a, U b) { return (a & kSign) | (b & ~kSign); })>);
  add("sat", type, unary<T, T, decltype([](T a) { return saturate(a); })>);
  addComparisons<T>(add, type);
}

// Classes of numbers: sub is 0 finite, 1 infinite, 2 number, 3 not a number, 4 normal, 5 subnormal.
template <class T> void testClass(Warp &warp, const Instr &instr) {
  using U = Bits<T>;
  const U *a = warp.source<U>(instr.op[1]);
  constexpr U kInfinity = sizeof(T) == 4 ? U(0x7f800000) : U(0x7ff0000000000000);
  constexpr U kLeast = sizeof(T) == 4 ? U(0x800000) : U(0x10000000000000);
  uint32_t mask = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    const U bits = a[l] & ~(U(1) << (8 * sizeof(T) - 1));
    const bool is[] = {bits<kInfinity, bits == kInfinity, bits <= kInfinity, bits> kInfinity,
                       bits >= kLeast && bits < kInfinity, bits && bits < kLeast};
    mask |= static_cast<uint32_t>(is[instr.sub]) << l;
  }
  setPredicate(warp, instr.op[0], mask);
}

// ---- Approximations, as exact as the host can.

template <double (*F)(double)> void approximate(Warp &warp, const Instr &instr) {
  const auto *a = warp.source<float>(instr.op[1]);
  float result[kLanes];
  for (unsigned l = 0; l < kLanes; ++l)
    result[l] = canonical(static_cast<float>(F(a[l])));
  perLane<float>(warp, instr.op[0], [&result](unsigned l) { return result[l]; });
}
inline double exp2Of(double a) { return std::exp2(a); }
inline double log2Of(double a) { return std::log2(a); }
inline double sinOf(double a) { return std::sin(a); }
inline double cosOf(double a) { return std::cos(a); }
inline double tanhOf(double a) { return std::tanh(a); }

// ---- Numbers of 16 bits: computed as doubles, rounded once.

/// a + b, where what is lost makes the last bit odd: rounding that again to fewer bits rounds the exact sum.
inline double addToOdd(double a, double b) {
  const double sum = a + b;
  if (!(std::fabs(sum) < INFINITY))
    return sum;
  const double part = sum - a, error = (a - (sum - part)) + (b - part);
  auto bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || bits & 1)
    return sum;
  const bool outwards = (error > 0) == (sum > 0);
  return std::bit_cast<double>(outwards ? bits + 1 : bits - 1);
}

template <class S> struct Small {
  static uint16_t round(double a, bool flush) {
    const uint16_t bits = S::fromDouble(a, kNearest);
    return flush && !(bits & S::kExponent) ? bits & 0x8000 : bits;
  }
  static double number(uint16_t a, bool flush) { return S::toDouble(flush && !(a & S::kExponent) ? a & 0x8000 : a); }
  static bool isNan(uint16_t a) { return (a & 0x7fff) > S::kExponent; }

  enum Op { Add, Sub, Mul, Fma, Min, Max, MinNan, MaxNan, Neg, Abs, Exp2, Tanh, Sat, Relu };
  static uint16_t compute(Op op, uint16_t a, uint16_t b, uint16_t c, bool flush) {
    const double x = number(a, flush), y = number(b, flush), z = number(c, flush);
    switch (op) {
    case Add:
      return round(addToOdd(x, y), flush);
    case Sub:
      return round(addToOdd(x, -y), flush);
    case Mul:
      return round(x * y, flush);
    case Fma:
      return round(addToOdd(x * y, z), flush); // the product is exact
    case Neg:
      return isNan(a) ? 0x7fff : round(-x, flush);
    case Abs:
      return isNan(a) ? 0x7fff : round(std::fabs(x), flush);
    case Exp2:
      return round(std::exp2(x), flush);
    case Tanh:
      return round(std::tanh(x), flush);
    case Sat:
      return round(saturate(x), flush);
    case Relu:
      return isNan(a) ? 0x7fff : round(x > 0 ? x : 0, flush);
    default:
      break;
    }
    const bool passNan = op == MinNan || op == MaxNan, isMax = op == Max || op == MaxNan;
    if ((isNan(a) && isNan(b)) || (passNan && (isNan(a) || isNan(b))))
      return 0x7fff;
    if (isNan(a) || isNan(b))
      return round(isNan(a) ? y : x, flush);
    return round(isMax ? extreme<true, false>(x, y) : extreme<false, false>(x, y), flush);
  }
  /// sub: bit 0: flushes, bits 1 and 2: operands but the first.
  template <Op O> static void one(Warp &warp, const Instr &instr) {
    const uint16_t *in[3] = {};
    for (unsigned i = 0; i < 3; ++i)
      in[i] = warp.source<uint16_t>(instr.op[i <= instr.count ? 1 + i : 1]);
    uint16_t result[kLanes];
    for (unsigned l = 0; l < kLanes; ++l)
      result[l] = compute(O, in[0][l], in[1][l], in[2][l], instr.sub & 1);
    perLane<uint16_t>(warp, instr.op[0], [&result](unsigned l) { return result[l]; });
  }
  template <Op O> static void two(Warp &warp, const Instr &instr) {
    const uint32_t *in[3] = {};
    for (unsigned i = 0; i < 3; ++i)
      in[i] = warp.source<uint32_t>(instr.op[i <= instr.count ? 1 + i : 1]);
    uint32_t result[kLanes];
    for (unsigned l = 0; l < kLanes; ++l) {
      const uint32_t a = in[0][l], b = in[1][l], c = in[2][l];
      auto half = [&](unsigned s) {
        return uint32_t(compute(O, static_cast<uint16_t>(a >> s), static_cast<uint16_t>(b >> s),
                                static_cast<uint16_t>(c >> s), instr.sub & 1))
               << s;
      };
      result[l] = half(0) | half(16);
    }
    perLane<uint32_t>(warp, instr.op[0], [&result](unsigned l) { return result[l]; });
  }
  template <Op O> static void addOp(const Table &add, const char *name) {
    add(name, S::kName, one<O>);
    add(name, S::kNameOfTwo, two<O>);
  }
  template <class F> static void compareSmall(Warp &warp, const Instr &instr) {
    const auto *a = warp.source<uint16_t>(instr.op[1]), *b = warp.source<uint16_t>(instr.op[2]);
    uint32_t mask = 0;
    for (unsigned l = 0; l < kLanes; ++l)
      mask |= static_cast<uint32_t>(F{}(number(a[l], instr.sub & 1), number(b[l], instr.sub & 1))) << l;
    setPredicate(warp, instr.op[0], mask);
  }
  static void addAll(const Table &add) {
    addOp<Add>(add, "add"), addOp<Sub>(add, "sub"), addOp<Mul>(add, "mul"), addOp<Fma>(add, "fma");
    addOp<Min>(add, "min"), addOp<Max>(add, "max"), addOp<MinNan>(add, "min.nan"), addOp<MaxNan>(add, "max.nan");
    addOp<Neg>(add, "neg"), addOp<Abs>(add, "abs"), addOp<Exp2>(add, "ex2"), addOp<Tanh>(add, "tanh");
    addOp<Sat>(add, "sat"), addOp<Relu>(add, "relu");
    using D = double;
    add("setp.eq", S::kName, compareSmall<decltype([](D a, D b) { return a == b; })>);
    add("setp.ne", S::kName, compareSmall<decltype([](D a, D b) { return a < b || a > b; })>);
    add("setp.lt", S::kName, compareSmall<decltype([](D a, D b) { return a < b; })>);
    add("setp.le", S::kName, compareSmall<decltype([](D a, D b) { return a <= b; })>);
    add("setp.gt", S::kName, compareSmall<decltype([](D a, D b) { return a > b; })>);
    add("setp.ge", S::kName, compareSmall<decltype([](D a, D b) { return a >= b; })>);
    add("setp.equ", S::kName, compareSmall<decltype([](D a, D b) { return !(a < b || a > b); })>);
    add("setp.neu", S::kName, compareSmall<decltype([](D a, D b) { return a != b; })>);
    add("setp.ltu", S::kName, compareSmall<decltype([](D a, D b) { return !(a >= b); })>);
    add("setp.leu", S::kName, compareSmall<decltype([](D a, D b) { return !(a > b); })>);
    add("setp.gtu", S::kName, compareSmall<decltype([](D a, D b) { return !(a <= b); })>);
    add("setp.geu", S::kName, compareSmall<decltype([](D a, D b) { return !(a < b); })>);
    add("setp.num", S::kName, compareSmall<decltype([](D a, D b) { return a == a && b == b; })>);
    add("setp.nan", S::kName, compareSmall<decltype([](D a, D b) { return a != a || b != b; })>);
  }
};

inline void addFloatHandlers(const Table &add) {
  addFloats<float>(add, "f32");
  addFloats<double>(add, "f64");
  // Those that SSE does not flush for.
  using F = float;
  add("min.ftz", "f32",
      binary<F, F, F, decltype([](F a, F b) { return extreme<false, false>(flushed(a), flushed(b)); })>);
  add("max.ftz", "f32",
      binary<F, F, F, decltype([](F a, F b) { return extreme<true, false>(flushed(a), flushed(b)); })>);
  add("min.nan.ftz", "f32",
      binary<F, F, F, decltype([](F a, F b) { return extreme<false, true>(flushed(a), flushed(b)); })>);
  add("max.nan.ftz", "f32",
      binary<F, F, F, decltype([](F a, F b) { return extreme<true, true>(flushed(a), flushed(b)); })>);
  add("neg.ftz", "f32", unary<F, F, decltype([](F a) { return -flushed(a); })>);
  add("abs.ftz", "f32", unary<F, F, decltype([](F a) {
                                return std::bit_cast<float>(std::bit_cast<uint32_t>(flushed(a)) & 0x7fffffff);
                              })>);
  add("ftz", "f32", unary<F, F, decltype([](F a) { return flushed(a); })>);
  add("relu", "f32", unary<F, F, decltype([](F a) { return a != a ? canonical(a) : a > 0 ? a : 0.0f; })>);
  add("testp", "f32", testClass<float>);
  add("testp", "f64", testClass<double>);
  add("ex2", "f32", approximate<exp2Of>);
  add("lg2", "f32", approximate<log2Of>);
  add("sin", "f32", approximate<sinOf>);
  add("cos", "f32", approximate<cosOf>);
  add("tanh", "f32", approximate<tanhOf>);
  Small<Half>::addAll(add);
  Small<Bfloat>::addAll(add);
}

} // namespace tressel::standin::ptx::PTX_EXECUTE
