// Transposes square blocks of values in registers.
#pragma once

#include "Vector.h"

namespace tressel::kernels {
namespace {

/// Interleaves the lower or upper halves of a and b: a0 b0 a1 b1 ...
template <bool Upper> [[gnu::always_inline]] inline Vector interleave(Vector a, Vector b) {
#if defined(__AVX512F__)
  return Upper ? __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
               : __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif defined(__AVX2__)
  return Upper ? __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
               : __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return Upper ? __builtin_shufflevector(a, b, 2, 6, 3, 7) : __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}

/// rows[i][j] becomes rows[j][i]. Each round rotates the bits of (row, lane) by one.
[[gnu::always_inline]] inline void transpose(Vector (&rows)[kLanes]) {
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
    Vector next[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = interleave<false>(rows[i], rows[i + kLanes / 2]);
      next[2 * i + 1] = interleave<true>(rows[i], rows[i + kLanes / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i)
      rows[i] = next[i];
  }
}

} // namespace
} // namespace tressel::kernels
