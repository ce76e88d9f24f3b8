#include "Memory.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

namespace tressel::runtime::sim {

/// Addresses without bytes begin above those of any program.
static std::atomic<uintptr_t> nextAddress{uintptr_t(1) << 52};

void *Memory::allocate(int64_t bytes, MemoryKind kind, bool poison, const std::string &machine) {
  const int64_t counted = bytes; // the block of zero bytes has an address too
  bytes = std::max<int64_t>(bytes, 1);
  if (counted > capacity_ - used_)
    throwError<OutOfMemory>(nameOf(device_), " of ", machine, " has no ", bytes, " bytes left; of its ", capacity_,
                            " are ", used_, " taken");
  void *memory = nullptr;
  if (isReal_) {
    memory = ::operator new(static_cast<size_t>(bytes), std::align_val_t(64), std::nothrow);
    if (!memory)
      throwError<OutOfMemory>("this computer has no ", bytes, " bytes for ", nameOf(device_), " of ", machine);
    if (poison)
      std::memset(memory, kPoison, static_cast<size_t>(bytes));
  } else {
    memory = reinterpret_cast<void *>(nextAddress.fetch_add(static_cast<uintptr_t>(bytes + 4096) / 64 * 64));
  }
  used_ += counted;
  owned_.emplace(key(memory), Block{bytes, kind, counted});
  return memory;
}

void Memory::release(void *memory, bool poison) {
  auto it = owned_.find(key(memory));
  if (it == owned_.end())
    return; // freed already when the device was lost
  if (isReal_) {
    if (poison)
      std::memset(memory, kPoison, static_cast<size_t>(it->second.bytes));
    ::operator delete(memory, std::align_val_t(64));
  }
  used_ -= it->second.counted;
  owned_.erase(it);
}

void Memory::registerCallers(const void *memory, int64_t bytes, MemoryKind kind) {
  callers_.emplace(key(memory), Block{bytes, kind});
}
void Memory::unregisterCallers(const void *memory, int64_t bytes, MemoryKind kind) {
  // others may have registered it with more bytes, or as another kind
  const auto [begin, end] = callers_.equal_range(key(memory));
  if (const auto it = std::find_if(begin, end, [&](const auto &entry) { return entry.second.bytes == bytes && entry.second.kind == kind; }); it != end)
    callers_.erase(it);
}

void Memory::clear() {
  while (!owned_.empty())
    release(reinterpret_cast<void *>(owned_.begin()->first), false);
}
void Memory::poisonAll() {
  if (isReal_)
    forEach([](void *memory, int64_t bytes) { std::memset(memory, kPoison, static_cast<size_t>(bytes)); });
}
void Memory::forEach(const std::function<void(void *, int64_t)> &fn) const {
  for (const auto &[address, block] : owned_)
    fn(reinterpret_cast<void *>(address), block.bytes);
}

bool Memory::isAllocated(const void *address) const {
  auto it = owned_.upper_bound(key(address));
  return it != owned_.begin() && key(address) < (--it)->first + static_cast<uintptr_t>(it->second.bytes);
}
bool Memory::isInside(const std::multimap<uintptr_t, Block> &blocks, uintptr_t address, int64_t bytes, MemoryKind kind,
                      bool mayOverlap) {
  for (auto it = blocks.upper_bound(address); it != blocks.begin();) {
    --it;
    const auto end = it->first + static_cast<uintptr_t>(it->second.bytes);
    if (address + static_cast<uintptr_t>(bytes) <= end && it->second.kind == kind)
      return true;
    if (!mayOverlap)
      return false;
  }
  return false;
}

bool Memory::holds(const void *address, int64_t bytes, MemoryKind kind) const {
  return bytes == 0 || isInside(owned_, key(address), bytes, kind, false) ||
         isInside(callers_, key(address), bytes, kind, true);
}

} // namespace tressel::runtime::sim
