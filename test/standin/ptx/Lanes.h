// How handlers go over the lanes of a warp. For Execute.cpp alone, which is compiled for two instruction sets:
// everything here is in a namespace of the set's, so that the linker takes nothing of the one for the other.
#pragma once

#include "test/standin/ptx/Program.h"

#include <cstring>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#ifndef PTX_EXECUTE
#define PTX_EXECUTE baseline
#endif

// Lanes do not depend on each other: the compiler need not check whether a destination is a source.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" // some are not worth a vector
#define PTX_LANES(l) _Pragma("clang loop vectorize(assume_safety)") for (unsigned l = 0; l < kLanes; ++l)
#else
#define PTX_LANES(l) _Pragma("GCC ivdep") for (unsigned l = 0; l < kLanes; ++l)
#endif

namespace tressel::standin::ptx::PTX_EXECUTE {

alignas(64) constexpr uint32_t kBits[kLanes] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,  1u << 10,
    1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,
    1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

template <size_t Bytes> struct BitsOf;
template <> struct BitsOf<2> {
  using type = uint16_t;
};
template <> struct BitsOf<4> {
  using type = uint32_t;
};
template <> struct BitsOf<8> {
  using type = uint64_t;
};
template <class T> using Bits = typename BitsOf<sizeof(T)>::type;

/// a where the mask has a bit, else b.
template <class T> inline void select(T *out, uint32_t mask, const T *a, const T *b) {
  if constexpr (sizeof(T) == 2) {
    // Of 16 bits each: a mask of two halves.
    const auto low = static_cast<uint16_t>(mask), high = static_cast<uint16_t>(mask >> 16);
#if defined(__clang__)
    _Pragma("clang loop vectorize(assume_safety)")
#else
    _Pragma("GCC ivdep")
#endif
        for (unsigned l = 0; l < 16; ++l) {
      const T x = a[l], y = b[l]; // both are there
      out[l] = low & static_cast<uint16_t>(kBits[l]) ? x : y;
    }
#if defined(__clang__)
    _Pragma("clang loop vectorize(assume_safety)")
#else
    _Pragma("GCC ivdep")
#endif
        for (unsigned l = 0; l < 16; ++l) {
      const T x = a[16 + l], y = b[16 + l];
      out[16 + l] = high & static_cast<uint16_t>(kBits[l]) ? x : y;
    }
  } else
    PTX_LANES(l) {
      const T x = a[l], y = b[l]; // both are there
      out[l] = mask & kBits[l] ? x : y;
    }
}

/// All lanes are computed, and those that are active are taken.
template <class D, class F> [[gnu::noinline, gnu::cold]] void perActiveLane(Warp &warp, uint32_t place, F f) {
  D *out = reinterpret_cast<D *>(warp.scratch);
  PTX_LANES(l) out[l] = f(l);
  D *target = warp.target<D>(place);
  select(target, warp.active, static_cast<const D *>(out), static_cast<const D *>(target));
}

/// Sets each lane of a register to what f gives for it, where the lane is active.
template <class D, class F> inline void perLane(Warp &warp, uint32_t place, F f) {
  if (warp.isPartial) [[unlikely]]
    return perActiveLane<D>(warp, place, f);
  D *out = warp.target<D>(place);
  PTX_LANES(l) out[l] = f(l);
}

inline void setPredicate(Warp &warp, uint32_t place, uint32_t mask) {
  auto *target = warp.target<uint32_t>(place);
  *target = (*target & ~warp.active) | (mask & warp.active);
}

/// A bit of each of 32 numbers of which all bits are alike.
inline uint32_t maskOf(const uint16_t *flags) {
#ifdef __SSE2__
  const auto *v = reinterpret_cast<const __m128i *>(flags);
  const __m128i low = _mm_packs_epi16(_mm_loadu_si128(v), _mm_loadu_si128(v + 1));
  const __m128i high = _mm_packs_epi16(_mm_loadu_si128(v + 2), _mm_loadu_si128(v + 3));
  return static_cast<uint32_t>(_mm_movemask_epi8(low)) | static_cast<uint32_t>(_mm_movemask_epi8(high)) << 16;
#else
  uint32_t mask = 0;
  for (unsigned l = 0; l < kLanes; ++l)
    mask |= (flags[l] & 1u) << l;
  return mask;
#endif
}
inline uint32_t maskOf(const uint32_t *flags) {
  uint32_t mask = 0;
#if defined(__AVX__)
  for (unsigned l = 0; l < kLanes; l += 8)
    mask |= static_cast<uint32_t>(_mm256_movemask_ps(_mm256_loadu_ps(reinterpret_cast<const float *>(flags + l)))) << l;
#elif defined(__SSE2__)
  for (unsigned l = 0; l < kLanes; l += 4)
    mask |= static_cast<uint32_t>(_mm_movemask_ps(_mm_loadu_ps(reinterpret_cast<const float *>(flags + l)))) << l;
#else
  for (unsigned l = 0; l < kLanes; ++l)
    mask |= (flags[l] & 1u) << l;
#endif
  return mask;
}
inline uint32_t maskOf(const uint64_t *flags) {
  uint32_t mask = 0;
#if defined(__AVX__)
  for (unsigned l = 0; l < kLanes; l += 4)
    mask |= static_cast<uint32_t>(_mm256_movemask_pd(_mm256_loadu_pd(reinterpret_cast<const double *>(flags + l))))
            << l;
#elif defined(__SSE2__)
  for (unsigned l = 0; l < kLanes; l += 2)
    mask |= static_cast<uint32_t>(_mm_movemask_pd(_mm_loadu_pd(reinterpret_cast<const double *>(flags + l)))) << l;
#else
  for (unsigned l = 0; l < kLanes; ++l)
    mask |= static_cast<uint32_t>(flags[l] & 1) << l;
#endif
  return mask;
}

/// Sets a predicate to what f says of each lane; T is as wide as what f compares.
template <class T, class F> inline void perLanePredicate(Warp &warp, uint32_t place, F f) {
  alignas(64) Bits<T> flags[kLanes];
  PTX_LANES(l) flags[l] = f(l) ? static_cast<Bits<T>>(~Bits<T>(0)) : Bits<T>(0);
  setPredicate(warp, place, maskOf(flags));
}

// Handlers of operands of the types given: F is a function of values without a state.
template <class D, class A, class F> void unary(Warp &warp, const Instr &instr) {
  const A *a = warp.source<A>(instr.op[1]);
  perLane<D>(warp, instr.op[0], [a](unsigned l) { return static_cast<D>(F{}(a[l])); });
}
template <class D, class A, class B, class F> void binary(Warp &warp, const Instr &instr) {
  const A *a = warp.source<A>(instr.op[1]);
  const B *b = warp.source<B>(instr.op[2]);
  perLane<D>(warp, instr.op[0], [a, b](unsigned l) { return static_cast<D>(F{}(a[l], b[l])); });
}
template <class D, class A, class B, class C, class F> void ternary(Warp &warp, const Instr &instr) {
  const A *a = warp.source<A>(instr.op[1]);
  const B *b = warp.source<B>(instr.op[2]);
  const C *c = warp.source<C>(instr.op[3]);
  perLane<D>(warp, instr.op[0], [a, b, c](unsigned l) { return static_cast<D>(F{}(a[l], b[l], c[l])); });
}
template <class D, class A, class B, class C, class E, class F> void quaternary(Warp &warp, const Instr &instr) {
  const A *a = warp.source<A>(instr.op[1]);
  const B *b = warp.source<B>(instr.op[2]);
  const C *c = warp.source<C>(instr.op[3]);
  const E *e = warp.source<E>(instr.op[4]);
  perLane<D>(warp, instr.op[0], [a, b, c, e](unsigned l) { return static_cast<D>(F{}(a[l], b[l], c[l], e[l])); });
}
template <class A, class F> void compare(Warp &warp, const Instr &instr) {
  const A *a = warp.source<A>(instr.op[1]), *b = warp.source<A>(instr.op[2]);
  perLanePredicate<A>(warp, instr.op[0], [a, b](unsigned l) { return F{}(a[l], b[l]); });
}

/// Receives the handlers: names are of the two parts and a dot between them.
struct Table {
  void *context;
  void (*receive)(void *context, const char *name, const char *type, Handler handler);
  void operator()(const char *name, const char *type, Handler handler) const { receive(context, name, type, handler); }
};

} // namespace tressel::standin::ptx::PTX_EXECUTE
