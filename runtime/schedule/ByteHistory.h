// What the verifier knows about the bytes of a space at one point of its walk: the last write, and the reads since.
// Each run of a command has an epoch. A vector clock holds, per stream, how many of its commands are certainly
// finished, so "before" is one comparison.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <algorithm>
#include <map>
#include <vector>

namespace tressel::runtime {

/// One run of a command. Streams of bodies count as streams of their own, one set per depth of nesting.
struct Epoch {
  uint32_t stream = 0, position = 0;
  uint32_t command = 0, buffer = 0;
  const CommandList *list = nullptr; ///< the list that contains `command`
  bool isSame(const Epoch &other) const { return stream == other.stream && position == other.position; }
};

/// How many commands of each stream are known to be finished.
using Clock = std::vector<uint32_t>;
inline void join(Clock &clock, const Clock &other) {
  for (size_t i = 0; i < clock.size(); ++i)
    clock[i] = std::max(clock[i], other[i]);
}
inline bool before(const Epoch &epoch, const Clock &clock) { return epoch.position < clock[epoch.stream]; }

/// Bytes [start of the key, end) with one history.
struct Segment {
  int64_t end = 0;
  /// on every path to this point: bytes that only one alternative of a branch wrote do not count
  bool written = false;
  bool initial = true;     ///< no command of the list has written it yet: `write` is invalid
  bool uniform = false;    ///< the same bytes on all ranks of a mesh
  bool mixedReads = false; ///< the latest reader reads these bytes by operands of different ranges
  Epoch write;
  std::vector<Epoch>
      reads; ///< at most one per stream, since the write: a later one in the same stream implies the earlier
};
/// Covers a space without gaps, keyed by the first byte of each segment.
using IntervalMap = std::map<int64_t, Segment>;
using Spaces = std::vector<IntervalMap>; ///< arenas, outputs, states

/// Splits the segment that contains `at`, if `at` is inside of it.
inline void splitAt(IntervalMap &map, int64_t at) {
  auto it = map.upper_bound(at);
  if (it == map.begin())
    return;
  --it;
  if (it->first == at || it->second.end <= at)
    return;
  Segment tail = it->second;
  it->second.end = at;
  map.emplace_hint(std::next(it), at, std::move(tail));
}

/// Merges the states after two alternatives into what holds after either. Bytes are written if they are written in
/// both; where the last writes differ, the write is that of `end`, the command that contains the alternatives.
inline void mergeAlternatives(IntervalMap &into, IntervalMap &other, const Epoch &end) {
  for (const auto &[start, segment] : other)
    splitAt(into, start);
  for (const auto &[start, segment] : into)
    splitAt(other, start);
  for (auto a = into.begin(), b = other.begin(); a != into.end() && b != other.end(); ++a, ++b) {
    Segment &to = a->second;
    const Segment &from = b->second;
    to.written &= from.written;
    to.uniform &= from.uniform;
    if (to.initial != from.initial || (!to.initial && !to.write.isSame(from.write))) {
      to.initial = false;
      to.write = end;
    }
    for (const Epoch &read : from.reads) {
      auto same =
          std::find_if(to.reads.begin(), to.reads.end(), [&](const Epoch &r) { return r.stream == read.stream; });
      if (same == to.reads.end())
        to.reads.push_back(read);
      else if (same->position < read.position)
        *same = read;
    }
  }
}

inline void mergeAlternatives(Spaces &into, Spaces &other, const Epoch &end) {
  for (size_t i = 0; i < into.size(); ++i)
    mergeAlternatives(into[i], other[i], end);
}

} // namespace tressel::runtime
