// Accesses that nothing orders. Each stream has a vector clock: how many commands of every stream are certainly over
// when its next one begins, by the waits that were given. Each byte has its last write and the reads since. An access
// is in order if what it meets is over by its clock; so one run, in whatever order it was made, finds every pair that
// some other order could turn round.
#pragma once

#include "tressel/runtime/Device.h"

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace tressel::runtime::sim {

class RaceCheck {
public:
  /// All that was given is over; bytes stay written.
  void newCall();
  /// The bytes hold nothing that anybody may read.
  void discard(const void *address, int64_t bytes);

  /// What is wrong with the accesses of the next command of a stream, empty if nothing is. `known`: every byte of the
  /// region has contents, such as the caller's.
  struct Checked {
    Region region;
    bool known = false;
  };
  std::string access(uint32_t stream, uint64_t tag, std::span<const Checked> regions, std::span<const Event> waits,
                     uint64_t &otherTag);
  /// The command is over: its event, or that which it signals, carries its clock.
  void ended(uint32_t stream, Event event);

private:
  using Clock = std::vector<uint32_t>;
  struct Epoch {
    uint32_t stream = 0, count = 0;
    uint64_t tag = 0;
  };
  struct Segment {
    uintptr_t end = 0;
    bool isWritten = false; ///< in this call or before
    bool hasWrite = false;  ///< in this call
    Epoch write;
    std::vector<Epoch> reads; ///< the last of each stream since
  };
  using Segments = std::map<uintptr_t, Segment>;

  Clock &clockOf(uint32_t stream);
  static bool isOver(const Epoch &e, const Clock &clock) {
    return e.stream < clock.size() && e.count <= clock[e.stream];
  }
  /// Segments that cover the range without gaps, cut at its ends.
  Segments::iterator cut(uintptr_t begin, uintptr_t end);

  Segments segments_;
  std::vector<Clock> clocks_;
  std::vector<uint32_t> counts_;
  struct EventHash {
    size_t operator()(const Event &p) const {
      return std::hash<const void *>()(p.semaphore) * 31 + std::hash<uint64_t>()(p.value);
    }
  };
  std::unordered_map<Event, Clock, EventHash> atEvent_;
};

} // namespace tressel::runtime::sim
