// Arithmetic on sizes of an unverified schedule, from a damaged package for example.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <optional>

namespace tressel::runtime {

/// Bounds beyond any real size, small enough that sums of a few do not overflow.
inline constexpr int64_t kMaxBytes = int64_t(1) << 48;

inline constexpr size_t kMaxStreams = 256;
inline constexpr uint32_t kMaxInFlight = 16;
inline constexpr size_t kMaxAxes = 8;
inline constexpr int64_t kMaxRanks = int64_t(1) << 24;
/// Depth of nested bodies. Bodies of loops are walked twice at each level, so the time is exponential in it.
inline constexpr uint32_t kMaxDepth = 8;

/// Product of sizes without overflow; nothing if dynamic, negative or beyond kMaxBytes.
[[gnu::noinline]] inline std::optional<int64_t> typeBytes(const TensorType &type) {
  if (static_cast<int>(type.dtype) >= kNumDTypes || type.rank() < 0 || type.rank() > kMaxRank)
    return std::nullopt;
  int64_t n = sizeOf(type.dtype);
  bool empty = false;
  for (Size d : type.shape) {
    const int64_t extent = d.numberOr(-1);
    if (extent < 0 || extent > kMaxBytes)
      return std::nullopt;
    empty |= extent == 0;
    if (extent && n > kMaxBytes / extent)
      n = kMaxBytes + 1; // a dimension of size 0 may still follow
    else if (extent)
      n *= extent;
  }
  if (empty)
    return 0;
  return n <= kMaxBytes ? std::optional(n) : std::nullopt;
}

inline const char *nameOf(Space space) {
  constexpr const char *names[] = {"arena", "input", "output", "state", "constant"};
  return names[static_cast<int>(space)];
}

} // namespace tressel::runtime
