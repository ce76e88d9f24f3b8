#include "Guards.h"

#include "runtime/types/Concat.h"
#include "Memory.h"

#include <algorithm>
#include <cstring>

namespace tressel::runtime::sim {

Guards::Guards(std::span<const Region> regions) : regions_(regions) {
  std::vector<size_t> order;
  for (size_t i = 0; i < regions.size(); ++i)
    order.push_back(i);
  auto beginOf = [&](size_t i) { return reinterpret_cast<uintptr_t>(regions[i].address); };
  auto endOf = [&](size_t i) { return beginOf(i) + static_cast<uintptr_t>(regions[i].bytes); };
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(beginOf(i), i); });
  std::vector<size_t> blockOf(regions.size());
  for (size_t i : order) {
    if (blocks_.empty() || beginOf(i) >= blocks_.back().end)
      blocks_.push_back({.begin = beginOf(i), .end = endOf(i), .operand = i});
    Block &block = blocks_.back();
    block.end = std::max(block.end, endOf(i));
    block.isRead |= regions[i].access != Access::Write;
    block.isWritten |= regions[i].access != Access::Read;
    blockOf[i] = blocks_.size() - 1;
  }
  for (Block &block : blocks_) {
    const size_t bytes = block.end - block.begin;
    block.bytes.assign(bytes + 2 * kGuard + 128, std::byte(kPoison));
    auto at = reinterpret_cast<uintptr_t>(block.bytes.data() + kGuard);
    at = (at + 63) / 64 * 64 + block.begin % 64;
    block.data = reinterpret_cast<std::byte *>(at);
    // The old contents are copied only if the kernel declares that it reads them: a kernel that relies on them
    // undeclared gets poison.
    if (block.isRead && bytes)
      std::memcpy(block.data, reinterpret_cast<const void *>(block.begin), bytes);
    if (!block.isWritten)
      block.before.assign(block.data, block.data + bytes);
  }
  for (size_t i = 0; i < regions.size(); ++i)
    addresses_.push_back(blocks_[blockOf[i]].data + (beginOf(i) - blocks_[blockOf[i]].begin));
}

std::string Guards::finish() {
  std::string problem;
  for (Block &block : blocks_) {
    const size_t bytes = block.end - block.begin;
    const std::byte *const first = block.bytes.data(), *const last = first + block.bytes.size();
    auto isGuard = [](std::byte b) { return b == std::byte(kPoison); };
    if (!std::all_of(first, static_cast<const std::byte *>(block.data), isGuard))
      problem = concat("writes in front of operand ", block.operand);
    else if (!std::all_of(static_cast<const std::byte *>(block.data) + bytes, last, isGuard))
      problem = concat("writes beyond operand ", block.operand);
    else if (!block.isWritten && !std::equal(block.before.begin(), block.before.end(), block.data))
      problem = concat("writes operand ", block.operand, ", which it only reads");
    if (block.isWritten && bytes)
      std::memcpy(reinterpret_cast<void *>(block.begin), block.data, bytes);
  }
  return problem;
}

} // namespace tressel::runtime::sim
