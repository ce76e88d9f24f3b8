// Memory that was released while commands in flight still use it: it is freed once they have ended.
#pragma once

#include "tressel/runtime/Device.h"

#include <algorithm>
#include <vector>

namespace tressel::runtime {

/// Not thread-safe: the device that owns it holds its lock.
class PendingReleases {
public:
  void add(void *memory, std::span<const Event> lastUses) { pending_.push_back({memory, {lastUses.begin(), lastUses.end()}}); }
  static bool isPending(const Event &use) { return use.state() == Semaphore::State::Pending; }
  /// Calls `free(memory)` for all memory whose last uses are reached or failed, or as the device says.
  template <typename Free, typename IsPending = bool (*)(const Event &)> void freeUnused(Free &&free, IsPending &&isPending = &PendingReleases::isPending) {
    std::erase_if(pending_, [&](const Pending &pending) {
      if (std::ranges::any_of(pending.lastUses, isPending))
        return false;
      free(pending.memory);
      return true;
    });
  }
  /// A stream goes, which has ended: nothing waits for its events any more.
  void forget(const Semaphore &semaphore) {
    for (Pending &pending : pending_)
      std::erase_if(pending.lastUses, [&](const Event &use) { return use.semaphore == &semaphore; });
  }
  /// For a device that goes: nothing is in flight any more.
  template <typename Free> void freeAll(Free &&free) {
    for (const Pending &pending : pending_)
      free(pending.memory);
    pending_.clear();
  }

private:
  struct Pending {
    void *memory;
    std::vector<Event> lastUses;
  };
  std::vector<Pending> pending_;
};

} // namespace tressel::runtime
