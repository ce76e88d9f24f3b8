// Who knows of whom: vector clocks over the host and the streams.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tressel::standin {

/// Timeline 0 is the host, all of its threads together; each stream is one, and so is each chain of nodes of a graph. Entry t says up to which of its ticks timeline t
/// has certainly ended.
class Clock {
public:
  uint64_t at(uint32_t timeline) const { return timeline < ticks_.size() ? ticks_[timeline] : 0; }
  void set(uint32_t timeline, uint64_t tick) {
    if (ticks_.size() <= timeline)
      ticks_.resize(timeline + 1);
    ticks_[timeline] = tick;
  }
  void join(const Clock &other) {
    if (ticks_.size() < other.ticks_.size())
      ticks_.resize(other.ticks_.size());
    for (size_t i = 0; i < other.ticks_.size(); ++i)
      ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
  }

private:
  std::vector<uint64_t> ticks_;
};

/// An operation as it is remembered: when it was, and how messages call it.
struct Access {
  uint32_t timeline = 0;
  uint64_t tick = 0; ///< 0: none
  std::shared_ptr<const std::string> what;
  bool isBefore(const Clock &clock) const { return tick <= clock.at(timeline); }
};

} // namespace tressel::standin
