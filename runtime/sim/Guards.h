// Copies of a kernel's operands with guards around them, to see what it touches beside what it declared.
#pragma once

#include "tressel/runtime/Device.h"

#include <string>
#include <vector>

namespace tressel::runtime::sim {

class Guards {
public:
  /// What is read is copied, the rest holds poison. Operands that overlap share a copy.
  explicit Guards(std::span<const Region> regions);
  /// One per region, aligned to 64 bytes as the operand is.
  std::span<void *const> addresses() { return addresses_; }
  /// Copies back what was written. Returns what else was, "writes beyond operand 2", or nothing.
  std::string finish();

private:
  struct Block {
    uintptr_t begin = 0, end = 0; ///< of the operands
    std::vector<std::byte> bytes; ///< with the guards
    std::byte *data = nullptr;    ///< what stands for `begin`
    bool isRead = false, isWritten = false;
    std::vector<std::byte> before; ///< of a block that is only read
    size_t operand = 0;            ///< the first in it
  };
  static constexpr size_t kGuard = 256;
  std::span<const Region> regions_;
  std::vector<Block> blocks_;
  std::vector<void *> addresses_;
};

} // namespace tressel::runtime::sim
