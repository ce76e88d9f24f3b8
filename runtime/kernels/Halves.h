// Conversion of 16-bit floats to f32, which is exact, and back, rounded to nearest even. Products and convolutions of
// 16-bit floats are computed in f32 between these.
#pragma once

#include "Element.h"
#include "PartialVector.h"

namespace tressel::kernels {
namespace {

typedef uint16_t Halves __attribute__((vector_size(kLanes * sizeof(uint16_t))));
typedef uint16_t UnalignedHalves __attribute__((vector_size(kLanes * sizeof(uint16_t)), aligned(2), may_alias));
typedef uint32_t FloatBits __attribute__((vector_size(kLanes * sizeof(uint32_t))));

template <Element E> [[gnu::always_inline]] inline Vector widen(Halves halves);
template <Element E> [[gnu::always_inline]] inline Halves narrow(Vector v);

template <> [[gnu::always_inline]] inline Vector widen<Element::BF16>(Halves halves) {
  return Vector(__builtin_convertvector(halves, FloatBits) << 16);
}
template <> [[gnu::always_inline]] inline Halves narrow<Element::BF16>(Vector v) {
  const FloatBits bits = FloatBits(v), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
  return __builtin_convertvector(v == v ? rounded : quiet, Halves);
}

#if defined(__AVX512F__)

template <> [[gnu::always_inline]] inline Vector widen<Element::F16>(Halves halves) {
  return Vector(_mm512_cvtph_ps(__m256i(halves)));
}
template <> [[gnu::always_inline]] inline Halves narrow<Element::F16>(Vector v) {
  return Halves(_mm512_cvtps_ph(__m512(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#elif defined(__F16C__)

template <> [[gnu::always_inline]] inline Vector widen<Element::F16>(Halves halves) {
  return Vector(_mm256_cvtph_ps(__m128i(halves)));
}
template <> [[gnu::always_inline]] inline Halves narrow<Element::F16>(Vector v) {
  return Halves(_mm256_cvtps_ph(__m256(v), _MM_FROUND_TO_NEAREST_INT));
}

#else

template <> [[gnu::always_inline]] inline Vector widen<Element::F16>(Halves halves) {
  const FloatBits bits = __builtin_convertvector(halves, FloatBits), magnitude = (bits & 0x7fff) << 13;
  // A subnormal half is computed as 2^-14 with its bits as mantissa, minus 2^-14: so no operand is subnormal in f32,
  // which the thread's mode may flush.
  const FloatBits one = FloatBits{} + 0x38800000;
  const FloatBits subnormal = FloatBits(Vector(magnitude + one) - Vector(one)), normal = magnitude + 0x38000000,
                  special = magnitude | 0x7f800000;
  const FloatBits finite = (bits & 0x7c00) == 0 ? subnormal : normal;
  return Vector(((bits & 0x7c00) == 0x7c00 ? special : finite) | ((bits & 0x8000) << 16));
}
template <> [[gnu::always_inline]] inline Halves narrow<Element::F16>(Vector v) {
  const FloatBits bits = FloatBits(v), magnitude = bits & 0x7fffffff;
  // Adding 0.5 rounds to the steps of subnormal halves, in the lowest bits.
  const FloatBits subnormal = FloatBits(Vector(magnitude) + 0.5f) - 0x3f000000,
                  normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
  FloatBits result = magnitude < 0x38800000 ? subnormal : normal;
  result = magnitude >= 0x477ff000 ? FloatBits{} + 0x7c00 : result; // too large: rounds to infinity
  result = magnitude > 0x7f800000 ? (magnitude >> 13 & 0x3ff) | 0x7e00 : result;
  return __builtin_convertvector(result | (bits >> 16 & 0x8000), Halves);
}

#endif

template <Element E> void widenRun(const uint16_t *from, int64_t step, int64_t count, float *to) {
  if (step == 1)
    for (; count >= kLanes; count -= kLanes, from += kLanes, to += kLanes) {
      __builtin_prefetch(from + 1024);
      store(to, widen<E>(*reinterpret_cast<const UnalignedHalves *>(from)));
    }
  while (count > 0) {
    const Lanes lanes = lanesBetween(0, count);
    Halves halves = {};
#if defined(__AVX512F__)
    if (step == 1)
      halves = Halves(_mm256_maskz_loadu_epi16(static_cast<__mmask16>(lanes), from));
    else
#endif
      for (int64_t i = 0; i < least(count, kLanes); ++i)
        halves[i] = from[i * step];
    store(to, widen<E>(halves), lanes);
    count -= kLanes, from += kLanes * step, to += kLanes;
  }
}

template <Element E> void narrowRun(const float *from, int64_t count, uint16_t *to) {
  for (; count >= kLanes; count -= kLanes, from += kLanes, to += kLanes)
    *reinterpret_cast<UnalignedHalves *>(to) = narrow<E>(load(from));
  if (count > 0) {
    const Halves halves = narrow<E>(load(from, lanesBetween(0, count)));
    for (int64_t i = 0; i < count; ++i)
      to[i] = halves[i];
  }
}

/// Converts `count` elements that are `step` apart.
[[gnu::noinline]] void widen(Element element, const uint16_t *from, int64_t step, int64_t count, float *to) {
  (element == Element::F16 ? widenRun<Element::F16> : widenRun<Element::BF16>)(from, step, count, to);
}
[[gnu::noinline]] void narrow(Element element, const float *from, int64_t count, uint16_t *to) {
  (element == Element::F16 ? narrowRun<Element::F16> : narrowRun<Element::BF16>)(from, count, to);
}

} // namespace
} // namespace tressel::kernels
