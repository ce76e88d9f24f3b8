// Size classes of memory blocks, and their allocation.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>

namespace tressel::runtime {

inline constexpr size_t kAlignment = 64;
inline constexpr int64_t kHugePage = int64_t(2) << 20;
inline constexpr int64_t kLargestBlock = int64_t(1) << 39;

/// Size classes: eight per power of two, so at most an eighth is wasted. Class c holds classBytes(c) bytes.
constexpr int classOf(int64_t bytes) {
  if (bytes <= 64)
    return 0;
  const int log = std::bit_width(static_cast<uint64_t>(bytes - 1)) - 1; // 2^log < bytes <= 2^(log + 1)
  const int stepLog = std::max(log - 3, 6);
  // 1..8; a shift, as division is slow
  const int64_t eighth = (bytes - (int64_t(1) << log) + (int64_t(1) << stepLog) - 1) >> stepLog;
  return (log - 6) * 8 + static_cast<int>(eighth);
}
constexpr int64_t classBytes(int sizeClass) {
  if (sizeClass == 0)
    return 64;
  const int log = (sizeClass - 1) / 8 + 6;
  const int64_t step = std::max<int64_t>((int64_t(1) << log) / 8, 64);
  return (int64_t(1) << log) + ((sizeClass - 1) % 8 + 1) * step;
}
static_assert(classBytes(classOf(65)) == 128 && classBytes(classOf(128)) == 128 && classBytes(classOf(4097)) == 4608);
inline constexpr int kNumClasses = classOf(kLargestBlock) + 1;

/// Null if there is no memory. To be freed by std::free.
inline void *allocateBlock(int64_t bytes) {
  if (bytes < kHugePage)
    return std::aligned_alloc(kAlignment, static_cast<size_t>(bytes));
  // If the last huge page would be mostly empty, it is left to small pages.
  const int64_t rest = bytes % kHugePage, rounded = rest > kHugePage / 2 ? bytes - rest + kHugePage : bytes;
  void *block = nullptr; // std::aligned_alloc wants whole multiples of the alignment
  if (posix_memalign(&block, kHugePage, static_cast<size_t>(rounded)) != 0)
    return nullptr;
  madvise(block, static_cast<size_t>(rounded), MADV_HUGEPAGE);
  return block;
}

} // namespace tressel::runtime
