// Loads and stores of some lanes of a vector, given by a mask with a bit per lane. Memory of other lanes is not
// accessed and need not exist.
#pragma once

#include "Vector.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tressel::kernels {
namespace {

using Lanes = uint32_t;
constexpr Lanes kAllLanes = (Lanes(1) << kLanes) - 1;

/// The mask of lanes [from, to), clamped to the vector.
[[gnu::always_inline]] inline Lanes lanesBetween(int64_t from, int64_t to) {
  from = most(0, least(from, kLanes)), to = most(from, least(to, kLanes));
  return (Lanes(1) << to) - (Lanes(1) << from);
}

#if defined(__AVX512F__)

[[gnu::always_inline]] inline Vector load(const float *from, Lanes lanes) {
  return Vector(_mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes), from));
}
[[gnu::always_inline]] inline void store(float *to, Vector v, Lanes lanes) {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>(lanes), __m512(v));
}

#elif defined(__AVX2__)

[[gnu::always_inline]] inline __m256i maskOf(Lanes lanes) {
  const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(lanes)), bits), bits);
}
[[gnu::always_inline]] inline Vector load(const float *from, Lanes lanes) {
  return Vector(_mm256_maskload_ps(from, maskOf(lanes)));
}
[[gnu::always_inline]] inline void store(float *to, Vector v, Lanes lanes) {
  // A masked store takes twelve cycles on some AMD processors (Zen 3). So whole vectors are stored without a mask, and
  // the first lanes of a vector in parts.
  if (lanes == kAllLanes)
    return store(to, v);
  if ((lanes & (lanes + 1)) != 0) {
    _mm256_maskstore_ps(to, maskOf(lanes), __m256(v));
    return;
  }
  __m128 four = _mm256_castps256_ps128(__m256(v));
  if (lanes & 8) {
    _mm_storeu_ps(to, four);
    four = _mm256_extractf128_ps(__m256(v), 1), to += 4, lanes >>= 4;
  }
  if (lanes & 2) {
    _mm_storel_pi(reinterpret_cast<__m64 *>(to), four);
    four = _mm_movehl_ps(four, four), to += 2, lanes >>= 2;
  }
  if (lanes & 1)
    _mm_store_ss(to, four);
}

#else

[[gnu::always_inline]] inline Vector load(const float *from, Lanes lanes) {
  Vector v = {};
  if (lanes == kAllLanes)
    return load(from);
  for (int i = 0; i < kLanes; ++i)
    if (lanes >> i & 1)
      v[i] = from[i];
  return v;
}
[[gnu::always_inline]] inline void store(float *to, Vector v, Lanes lanes) {
  if (lanes == kAllLanes)
    return store(to, v);
  for (int i = 0; i < kLanes; ++i)
    if (lanes >> i & 1)
      to[i] = v[i];
}

#endif

/// Loads from[i * stride] to lane i.
[[gnu::always_inline]] inline Vector load(const float *from, int64_t stride, Lanes lanes) {
#if defined(__AVX512F__)
  if (stride == 2) {
    const Lanes low = _pdep_u32(lanes & 0xff, 0x5555), high = _pdep_u32(lanes >> 8, 0x5555);
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return Vector(_mm512_permutex2var_ps(__m512(load(from, low)), even, __m512(load(from + kLanes, high))));
  }
#endif
  Vector v = {};
  for (int i = 0; i < kLanes; ++i)
    if (lanes >> i & 1)
      v[i] = from[i * stride];
  return v;
}

/// Combines vectors of which at most one is nonzero in each lane.
[[gnu::always_inline]] inline Vector join(Vector a, Vector b) {
  typedef int Bits __attribute__((vector_size(kLanes * sizeof(int))));
  return Vector(Bits(a) | Bits(b));
}

} // namespace
} // namespace tressel::kernels
