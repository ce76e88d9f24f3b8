// Detects unordered accesses. Each stream has a vector clock: how many commands of every stream are certainly over when
// its next command begins, according to the waits. Each byte has its last write and the reads since. An access is
// ordered if these are over by the clock of its stream. So one run, in whatever order it executed, finds all races,
// also those that only another order would show.
#pragma once

#include "tressel/runtime/Device.h"

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace tressel::runtime::sim {

class RaceCheck {
public:
  /// A new call: all commands so far are over; written bytes stay written.
  void newCall();
  /// The bytes are undefined from here on: reading them is an error.
  void discard(const void *address, int64_t bytes);

  /// The fault of the next command's accesses, empty if there is none. `known`: every byte of the region is defined, as
  /// in the caller's memory.
  struct Checked {
    Region region;
    bool known = false;
  };
  std::string access(uint32_t stream, uint64_t tag, std::span<const Checked> regions, std::span<const Event> waits,
                     uint64_t &otherTag);
  /// The command is over: `event` gets its clock.
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
    std::vector<Epoch> reads; ///< since the write, the last read of each stream
  };
  using Segments = std::map<uintptr_t, Segment>;

  Clock &clockOf(uint32_t stream);
  static bool isOver(const Epoch &e, const Clock &clock) {
    return e.stream < clock.size() && e.count <= clock[e.stream];
  }
  /// Splits segments at both ends of the range, and adds segments for the gaps in it. Returns the first.
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
