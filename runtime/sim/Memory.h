// The memory of a simulated device, and the owner of each address.
#pragma once

#include "tressel/runtime/Device.h"

#include <functional>
#include <map>

namespace tressel::runtime::sim {

constexpr int kPoison = 0xFF; ///< a NaN in every floating type; -1; true

class Memory {
public:
  /// `isReal`: false for addresses that have no bytes behind them.
  Memory(DeviceRef device, int64_t bytes, bool isReal) : device_(device), capacity_(bytes), isReal_(isReal) {}
  ~Memory() { clear(); }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// Throws OutOfMemory if the capacity does not suffice.
  void *allocate(int64_t bytes, MemoryKind kind, bool poison, const std::string &machine);
  void release(void *memory, bool poison);
  void registerCallers(const void *memory, int64_t bytes, MemoryKind kind);
  void unregisterCallers(const void *memory, int64_t bytes, MemoryKind kind);
  /// Frees everything; all addresses become invalid.
  void clear();
  void poisonAll();

  /// Whether the range lies in one block of that kind.
  bool holds(const void *address, int64_t bytes, MemoryKind kind) const;
  /// Whether the address is in an allocated block.
  bool isAllocated(const void *address) const;
  /// Calls fn(address, bytes) for each allocated block.
  void forEach(const std::function<void(void *, int64_t)> &fn) const;
  int64_t used() const { return used_; }

private:
  struct Block {
    int64_t bytes;
    MemoryKind kind;
    int64_t counted = 0; ///< bytes that count against the capacity
  };
  static uintptr_t key(const void *p) { return reinterpret_cast<uintptr_t>(p); }
  static bool isInside(const std::multimap<uintptr_t, Block> &blocks, uintptr_t address, int64_t bytes, MemoryKind kind,
                       bool mayOverlap);

  const DeviceRef device_;
  const int64_t capacity_;
  const bool isReal_;
  int64_t used_ = 0;
  std::multimap<uintptr_t, Block> owned_, callers_;
};

} // namespace tressel::runtime::sim
