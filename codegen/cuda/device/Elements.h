// Arithmetic of all element types, and the functions that are exported for each of them. Semantics are those of the
// kernels for the CPU (codegen/bitcode/kernels).
#pragma once

#include "codegen/cuda/device/Gpu.h"

namespace tressel::device {

enum class Mode : int64_t { Set, Add, Mul, Min, Max }; // in the order of op::scatterModes

/// Integers wrap around; of bools the sum is "or", the product "and"; min and max propagate NaN.
template <class W> TRESSEL_INLINE W combine(Mode mode, W a, W b) {
  constexpr bool isBool = __is_same(W, bool);
  switch (mode) {
  case Mode::Set:
    return b;
  case Mode::Add:
    if constexpr (isBool)
      return a || b;
    else if constexpr (kIsFloat<W>)
      return a + b;
    else
      return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  case Mode::Mul:
    if constexpr (isBool)
      return a && b;
    else if constexpr (kIsFloat<W>)
      return a * b;
    else
      return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  case Mode::Min:
    return a != a ? a : b != b ? b : b < a ? b : a;
  case Mode::Max:
    return a != a ? a : b != b ? b : a < b ? b : a;
  }
  return b;
}

/// Which of the block's threads, in order, have `flag` set: how many before this one, and how many in all. All threads
/// call it; `counts` has room for 32 numbers.
struct Rank {
  int before, all;
};
TRESSEL_INLINE Rank rankInBlock(bool flag, TRESSEL_SHARED int *counts) {
  const int lane = threadIndex() % kWarp, warp = threadIndex() / kWarp, warps = numThreads() / kWarp;
  const auto votes = static_cast<uint32_t>(__nvvm_vote_ballot_sync(kAllLanes, flag));
  if (lane == 0)
    counts[warp] = __builtin_popcount(votes);
  barrier();
  Rank rank{__builtin_popcount(votes & ((1u << lane) - 1)), 0};
  for (int w = 0; w < warps; ++w) {
    const int count = counts[w];
    rank.before += w < warp ? count : 0;
    rank.all += count;
  }
  barrier();
  return rank;
}

#define TRESSEL_FOR_ALL_TYPES(instantiate)                                                                             \
  instantiate(f32, float) instantiate(f64, double) instantiate(f16, Half) instantiate(bf16, BFloat16)                  \
      instantiate(i8, int8_t) instantiate(i16, int16_t) instantiate(i32, int32_t) instantiate(i64, int64_t)            \
          instantiate(u8, uint8_t) instantiate(bool, bool)
/// For movement of data: by width.
#define TRESSEL_FOR_ALL_WIDTHS(instantiate)                                                                            \
  instantiate(b1, uint8_t) instantiate(b2, uint16_t) instantiate(b4, uint32_t) instantiate(b8, uint64_t)

} // namespace tressel::device
