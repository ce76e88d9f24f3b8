// Conversions.
#pragma once

#include "test/standin/ptx/ExecuteFloat.h"

#include <limits>

namespace tressel::standin::ptx::PTX_EXECUTE {

// Of 8 bits in registers of 16: a type by its numbers and what a register has.
template <class T>
using Register = std::conditional_t<sizeof(T) == 1, std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>, T>;

template <class D, class S> inline Register<D> convertInteger(Register<S> a) {
  return static_cast<Register<D>>(static_cast<D>(static_cast<S>(a)));
}
template <class D, class S> inline Register<D> clampInteger(Register<S> a) {
  const __int128 value = static_cast<S>(a), low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max();
  return static_cast<Register<D>>(static_cast<D>(value < low ? low : value > high ? high : value));
}

template <class D, class S> void addIntegerPair(const Table &add, const char *types) {
  add("cvt", types, unary<Register<D>, Register<S>, decltype([](Register<S> a) { return convertInteger<D, S>(a); })>);
  add("cvt.sat", types, unary<Register<D>, Register<S>, decltype([](Register<S> a) { return clampInteger<D, S>(a); })>);
}

template <unsigned Rounding> inline float toIntegral(float a) {
  return Rounding == kNearest ? __builtin_nearbyintf(a)
         : Rounding == kDown  ? __builtin_floorf(a)
         : Rounding == kUp    ? __builtin_ceilf(a)
                              : __builtin_truncf(a);
}
template <unsigned Rounding> inline double toIntegral(double a) {
  return Rounding == kNearest ? __builtin_nearbyint(a)
         : Rounding == kDown  ? __builtin_floor(a)
         : Rounding == kUp    ? __builtin_ceil(a)
                              : __builtin_trunc(a);
}

/// Clamps at the ends of D. PTX ISA, cvt: a NaN gives 0, but between types of 64 bits the number with the highest bit
/// alone.
template <class D, unsigned Rounding, bool IsWide, class S> inline Register<D> toInteger(S a) {
  const S rounded = toIntegral<Rounding>(a);
  constexpr D kLow = std::numeric_limits<D>::min(), kHigh = std::numeric_limits<D>::max();
  // 2^bits: what is at least that is above kHigh, which need not be a number of type S.
  constexpr S kEnd = S(static_cast<uint64_t>(kHigh) / 2 + 1) * 2;
  using U = std::make_unsigned_t<D>;
  constexpr D kNan = IsWide ? static_cast<D>(U(1) << (8 * sizeof(D) - 1)) : D(0);
  D result;
  if (rounded != rounded)
    result = kNan;
  else if (rounded >= kEnd)
    result = kHigh;
  else if (rounded <= S(kLow))
    result = kLow;
  else
    result = static_cast<D>(rounded);
  return static_cast<Register<D>>(result);
}

template <class D, unsigned R>
void addFloatToInteger(const Table &add, const char *name, const char *f16, const char *bf16, const char *f32,
                       const char *f64) {
  constexpr bool kWide = sizeof(D) == 8;
  add(name, f16,
      unary<Register<D>, uint16_t, decltype([](uint16_t a) { return toInteger<D, R, kWide>(Half::toFloat(a)); })>);
  add(name, bf16,
      unary<Register<D>, uint16_t, decltype([](uint16_t a) { return toInteger<D, R, kWide>(Bfloat::toFloat(a)); })>);
  add(name, f32, unary<Register<D>, float, decltype([](float a) { return toInteger<D, R, kWide>(a); })>);
  add(name, f64, unary<Register<D>, double, decltype([](double a) { return toInteger<D, R, true>(a); })>);
}

/// To 16 bits, of which the direction is in sub: bits 1 and 2; bit 0: what is subnormal is flushed first.
template <class S, class T> void narrow(Warp &warp, const Instr &instr) {
  const T *a = warp.source<T>(instr.op[1]);
  uint16_t result[kLanes];
  for (unsigned l = 0; l < kLanes; ++l)
    result[l] = S::fromDouble(static_cast<double>(a[l]), instr.sub >> 1);
  perLane<uint16_t>(warp, instr.op[0], [&result](unsigned l) { return result[l]; });
}
inline void halvesOf(const float *a, uint16_t *out) {
#ifdef __F16C__
  for (unsigned l = 0; l < kLanes; l += 8) {
    const __m256 x = _mm256_loadu_ps(a + l);
    const __m128i half = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m128i nans = _mm_packs_epi32(_mm256_castsi256_si128(nan), _mm256_extracti128_si256(nan, 1));
    const __m128i canonicalNan = _mm_srli_epi16(nans, 1);
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out + l), _mm_or_si128(_mm_andnot_si128(nans, half), canonicalNan));
  }
#else
  for (unsigned l = 0; l < kLanes; ++l)
    out[l] = Half::fromDouble(static_cast<double>(a[l]), kNearest);
#endif
}
inline void floatsOf(const uint16_t *a, float *out) {
#ifdef __F16C__
  const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  for (unsigned l = 0; l < kLanes; l += 8) {
    const __m256 x = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(a + l)));
    _mm256_storeu_ps(out + l, _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
  }
#else
  for (unsigned l = 0; l < kLanes; ++l)
    out[l] = Half::toFloat(a[l]);
#endif
}
inline void halfToFloat(Warp &warp, const Instr &instr) {
  alignas(32) float result[kLanes];
  floatsOf(warp.source<uint16_t>(instr.op[1]), result);
  perLane<float>(warp, instr.op[0], [&result](unsigned l) { return result[l]; });
}
inline void floatToHalf(Warp &warp, const Instr &instr) {
  alignas(32) uint16_t result[kLanes];
  halvesOf(warp.source<float>(instr.op[1]), result);
  perLane<uint16_t>(warp, instr.op[0], [&result](unsigned l) { return result[l]; });
}
/// Two floats to a register of two halves: the first is the upper.
template <class S> void narrowTwo(Warp &warp, const Instr &instr) {
  const auto *high = warp.source<float>(instr.op[1]), *low = warp.source<float>(instr.op[2]);
  uint32_t result[kLanes];
  for (unsigned l = 0; l < kLanes; ++l)
    result[l] = S::fromDouble(static_cast<double>(low[l]), instr.sub >> 1) |
                uint32_t(S::fromDouble(static_cast<double>(high[l]), instr.sub >> 1)) << 16;
  perLane<uint32_t>(warp, instr.op[0], [&result](unsigned l) { return result[l]; });
}
/// Of an integer, without a rounding on the way.
template <class S, class T> void narrowInteger(Warp &warp, const Instr &instr) {
  const Register<T> *a = warp.source<Register<T>>(instr.op[1]);
  uint16_t result[kLanes];
  for (unsigned l = 0; l < kLanes; ++l) {
    // Up to 2^53 it is a double; above that only whether there are lower bits matters.
    const auto value = static_cast<__int128>(static_cast<T>(a[l]));
    auto magnitude = static_cast<uint64_t>(value < 0 ? -value : value);
    if (magnitude >> 53)
      magnitude = (magnitude & ~uint64_t(0xffff)) | (magnitude & 0xffff ? 0x8000 : 0);
    const auto exact = static_cast<double>(magnitude);
    result[l] = S::fromDouble(value < 0 ? -exact : exact, instr.sub >> 1);
  }
  perLane<uint16_t>(warp, instr.op[0], [&result](unsigned l) { return result[l]; });
}

template <class T>
void addIntegerToFloat(const Table &add, const char *f16, const char *bf16, const char *f32, const char *f64) {
  add("cvt", f16, narrowInteger<Half, T>);
  add("cvt", bf16, narrowInteger<Bfloat, T>);
  add("cvt", f32,
      unary<float, Register<T>, decltype([](Register<T> a) { return static_cast<float>(static_cast<T>(a)); })>);
  add("cvt", f64,
      unary<double, Register<T>, decltype([](Register<T> a) { return static_cast<double>(static_cast<T>(a)); })>);
}

/// Half to half by way of the float, to an integral number.
template <class S, unsigned R> inline uint16_t integralSmall(uint16_t a) {
  return S::fromDouble(static_cast<double>(toIntegral<R>(S::toFloat(a))), kNearest);
}
template <unsigned R> void addIntegral(const Table &add, const char *name) {
  add(name, "f32.f32", unary<float, float, decltype([](float a) { return canonical(toIntegral<R>(a)); })>);
  add(name, "f64.f64", unary<double, double, decltype([](double a) { return toIntegral<R>(a); })>);
  add(name, "f16.f16", unary<uint16_t, uint16_t, decltype([](uint16_t a) { return integralSmall<Half, R>(a); })>);
  add(name, "bf16.bf16", unary<uint16_t, uint16_t, decltype([](uint16_t a) { return integralSmall<Bfloat, R>(a); })>);
}

/// Nearest, ties away from zero; the lower 13 bits are zero then.
inline uint32_t roundToTensor(float a, bool isNearestEven) {
  const auto bits = std::bit_cast<uint32_t>(a);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fffffff;
  return (bits + (isNearestEven ? 0xfff + (bits >> 13 & 1) : 0x1000)) & ~0x1fffu;
}

#define PTX_PAIRS(D, d)                                                                                                \
  addIntegerPair<D, uint8_t>(add, d ".u8");                                                                            \
  addIntegerPair<D, int8_t>(add, d ".s8");                                                                             \
  addIntegerPair<D, uint16_t>(add, d ".u16");                                                                          \
  addIntegerPair<D, int16_t>(add, d ".s16");                                                                           \
  addIntegerPair<D, uint32_t>(add, d ".u32");                                                                          \
  addIntegerPair<D, int32_t>(add, d ".s32");                                                                           \
  addIntegerPair<D, uint64_t>(add, d ".u64");                                                                          \
  addIntegerPair<D, int64_t>(add, d ".s64");                                                                           \
  addFloatToInteger<D, kNearest>(add, "cvt.rni", d ".f16", d ".bf16", d ".f32", d ".f64");                             \
  addFloatToInteger<D, kZero>(add, "cvt.rzi", d ".f16", d ".bf16", d ".f32", d ".f64");                                \
  addFloatToInteger<D, kDown>(add, "cvt.rmi", d ".f16", d ".bf16", d ".f32", d ".f64");                                \
  addFloatToInteger<D, kUp>(add, "cvt.rpi", d ".f16", d ".bf16", d ".f32", d ".f64");                                  \
  addIntegerToFloat<D>(add, "f16." d, "bf16." d, "f32." d, "f64." d)

inline void addConversionHandlers(const Table &add) {
  PTX_PAIRS(uint8_t, "u8");
  PTX_PAIRS(int8_t, "s8");
  PTX_PAIRS(uint16_t, "u16");
  PTX_PAIRS(int16_t, "s16");
  PTX_PAIRS(uint32_t, "u32");
  PTX_PAIRS(int32_t, "s32");
  PTX_PAIRS(uint64_t, "u64");
  PTX_PAIRS(int64_t, "s64");
  addIntegral<kNearest>(add, "cvt.rni");
  addIntegral<kZero>(add, "cvt.rzi");
  addIntegral<kDown>(add, "cvt.rmi");
  addIntegral<kUp>(add, "cvt.rpi");
  add("cvt", "f32.f16", halfToFloat);
  add("cvt", "f32.bf16", unary<float, uint16_t, decltype([](uint16_t a) { return Bfloat::toFloat(a); })>);
  add("cvt", "f64.f16", unary<double, uint16_t, decltype([](uint16_t a) { return Half::toDouble(a); })>);
  add("cvt", "f64.bf16", unary<double, uint16_t, decltype([](uint16_t a) { return Bfloat::toDouble(a); })>);
  add("cvt", "f64.f32", unary<double, float, decltype([](float a) { return static_cast<double>(a); })>);
  add("cvt", "f32.f64", unary<float, double, decltype([](double a) { return canonical(static_cast<float>(a)); })>);
  add("cvt", "f32.f32", unary<float, float, decltype([](float a) { return canonical(a); })>);
  add("cvt", "f64.f64", unary<double, double, decltype([](double a) { return a; })>);
  add("cvt", "f16.f32", narrow<Half, float>);
  add("cvt", "bf16.f32", narrow<Bfloat, float>);
  add("cvt", "f16.f64", narrow<Half, double>);
  add("cvt", "bf16.f64", narrow<Bfloat, double>);
  add("cvt.rn", "f16.f32", floatToHalf);
  add("cvt.rn", "bf16.f32", unary<uint16_t, float, decltype([](float a) { return Bfloat::fromFloat(a); })>);
  add("cvt", "f16x2.f32", narrowTwo<Half>);
  add("cvt", "bf16x2.f32", narrowTwo<Bfloat>);
  add("cvt.rna", "tf32.f32", unary<uint32_t, float, decltype([](float a) { return roundToTensor(a, false); })>);
  add("cvt.rn", "tf32.f32", unary<uint32_t, float, decltype([](float a) { return roundToTensor(a, true); })>);
}
#undef PTX_PAIRS

} // namespace tressel::standin::ptx::PTX_EXECUTE
