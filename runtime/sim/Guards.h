// Copies of a kernel's operands between guard bytes, to detect accesses that the kernel did not declare.
#pragma once

#include "tressel/runtime/Device.h"

#include <string>
#include <vector>

namespace tressel::runtime::sim {

class Guards {
public:
  /// Operands that are read are copied; the others are filled with poison. Operands that overlap share a copy.
  explicit Guards(std::span<const Region> regions);
  /// One address per region, equal to the operand's modulo 64.
  std::span<void *const> addresses() { return addresses_; }
  /// Copies written operands back. Returns the undeclared write that was found, "writes beyond operand 2", or nothing.
  std::string finish();

private:
  struct Block {
    uintptr_t begin = 0, end = 0; ///< range of the operands
    std::vector<std::byte> bytes; ///< copy with its guards
    std::byte *data = nullptr;    ///< the copy of `begin`
    bool isRead = false, isWritten = false;
    std::vector<std::byte> before; ///< contents of a block that is only read, to detect writes
    size_t operand = 0;            ///< number of its first operand
  };
  static constexpr size_t kGuard = 256;
  std::span<const Region> regions_;
  std::vector<Block> blocks_;
  std::vector<void *> addresses_;
};

} // namespace tressel::runtime::sim
