// What the verifier knows about the bytes of a space at one point of its walk: who wrote them last, and who has read
// them since. A command that runs is known by its epoch; a vector clock says, per stream, how many of its commands are
// certainly finished; so "before" is one comparison.
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
  const CommandList *list = nullptr; ///< that `command` counts in
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
  bool written = false;    ///< on every way here: what only one branch wrote is not there to be read
  bool initial = true;     ///< no command has written since the list began: `write` means nothing
  bool uniform = false;    ///< the same bytes on all ranks of a mesh
  bool mixedReads = false; ///< the latest reader reads these bytes through different ranges
  Epoch write;
  std::vector<Epoch>
      reads; ///< at most one per stream, since the write: a later one in the same stream implies the earlier
};
/// Covers a space without gaps.
using IntervalMap = std::map<int64_t, Segment>;
using Spaces = std::vector<IntervalMap>; ///< arenas, outputs, states

/// Makes `at` a boundary.
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

/// What holds after one of two alternatives, whichever it was: `into` and `other` are what holds after each. Bytes are
/// written if they are in both; what differs was written by the command `end`, which chose.
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
