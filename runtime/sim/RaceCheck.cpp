#include "RaceCheck.h"

#include "runtime/types/Concat.h"

#include <algorithm>

namespace tressel::runtime::sim {

void RaceCheck::newCall() {
  clocks_.clear();
  counts_.clear();
  atEvent_.clear();
  for (auto &[begin, segment] : segments_) {
    segment.hasWrite = false;
    segment.reads.clear();
  }
}

RaceCheck::Clock &RaceCheck::clockOf(uint32_t stream) {
  if (stream >= clocks_.size()) {
    clocks_.resize(stream + 1);
    counts_.resize(stream + 1, 0);
  }
  if (clocks_[stream].size() < clocks_.size())
    clocks_[stream].resize(clocks_.size(), 0);
  return clocks_[stream];
}

RaceCheck::Segments::iterator RaceCheck::cut(uintptr_t begin, uintptr_t end) {
  auto splitAt = [&](uintptr_t at) {
    auto it = segments_.upper_bound(at);
    if (it == segments_.begin())
      return;
    --it;
    if (it->first == at || it->second.end <= at)
      return;
    Segment tail = it->second;
    it->second.end = at;
    segments_.emplace(at, std::move(tail));
  };
  splitAt(begin);
  splitAt(end);
  for (uintptr_t at = begin; at < end;) { // a gap becomes a segment
    auto it = segments_.lower_bound(at);
    if (it != segments_.end() && it->first == at) {
      at = it->second.end;
      continue;
    }
    const uintptr_t to = it == segments_.end() ? end : std::min(end, it->first);
    segments_.emplace(at, Segment{.end = to});
    at = to;
  }
  return segments_.find(begin);
}

void RaceCheck::discard(const void *address, int64_t bytes) {
  if (bytes <= 0)
    return;
  const auto begin = reinterpret_cast<uintptr_t>(address), end = begin + static_cast<uintptr_t>(bytes);
  const auto first = cut(begin, end), last = segments_.lower_bound(end);
  segments_.erase(first, last);
  segments_.emplace(begin, Segment{.end = end});
}

std::string RaceCheck::access(uint32_t stream, uint64_t tag, std::span<const Checked> regions,
                              std::span<const Event> waits, uint64_t &otherTag) {
  Clock &clock = clockOf(stream);
  for (const Event &wait : waits)
    if (auto it = atEvent_.find(wait); it != atEvent_.end()) {
      if (clock.size() < it->second.size())
        clock.resize(it->second.size(), 0);
      for (size_t i = 0; i < it->second.size(); ++i)
        clock[i] = std::max(clock[i], it->second[i]);
    }
  const Epoch now{stream, counts_[stream] + 1, tag};
  std::string problem;
  // All reads come before the writes.
  for (const bool writing : {false, true})
    for (const auto &[region, known] : regions) {
      if (region.bytes <= 0 || (writing ? region.access == Access::Read : region.access == Access::Write))
        continue;
      const auto begin = reinterpret_cast<uintptr_t>(region.address),
                 end = begin + static_cast<uintptr_t>(region.bytes);
      auto it = cut(begin, end);
      for (; it != segments_.end() && it->first < end; ++it) {
        Segment &segment = it->second;
        auto meets = [&](const Epoch &other, const char *did) {
          if (problem.empty() && !(other.stream == stream && other.count == now.count) && !isOver(other, clock)) {
            otherTag = other.tag;
            problem = concat(writing ? "writes " : "reads ", region.bytes, " bytes that an earlier command ", did,
                             ", without waiting for it");
          }
        };
        if (segment.hasWrite)
          meets(segment.write, "writes");
        if (writing) {
          for (const Epoch &read : segment.reads)
            meets(read, "reads");
          continue;
        }
        if (!segment.isWritten && !known && problem.empty()) {
          otherTag = tag;
          problem = concat("reads ", region.bytes, " bytes, of which some were never written");
        }
        auto same = std::ranges::find(segment.reads, stream, &Epoch::stream);
        same == segment.reads.end() ? segment.reads.push_back(now) : void(*same = now);
      }
      if (writing) {
        segments_.erase(segments_.find(begin), it);
        segments_.emplace(begin, Segment{.end = end, .isWritten = true, .hasWrite = true, .write = now});
      }
    }
  counts_[stream] = now.count;
  clockOf(stream)[stream] = now.count;
  return problem;
}

void RaceCheck::ended(uint32_t stream, Event event) { atEvent_[event] = clockOf(stream); }

} // namespace tressel::runtime::sim
