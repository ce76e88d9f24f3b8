// The log of a machine whose commands are timed by a clock: what was at work when, without what it costs.
#pragma once

#include "ThreadStream.h"
#include "tressel/runtime/CommandLog.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace tressel::runtime {

/// What was at work when, since a call began.
class RunLog {
public:
  uint32_t addStream(StreamDesc stream) {
    std::lock_guard lock(mutex_);
    log_.streams.push_back(std::move(stream));
    return static_cast<uint32_t>(log_.streams.size() - 1);
  }
  void begin(bool isAside) {
    std::lock_guard lock(mutex_);
    keeps_ = !isAside;
    if (!keeps_)
      return;
    log_.commands.clear();
    times_ = {};
    start_ = StampList::nowPs();
  }
  void add(uint32_t stream, const Stamp &stamp) {
    std::lock_guard lock(mutex_);
    if (!keeps_)
      return;
    LoggedCommand &c = log_.commands.emplace_back();
    c.stream = stream;
    c.tag = stamp.tag;
    times_.begin.push_back(std::max<int64_t>(0, stamp.beginPs - start_));
    times_.end.push_back(std::max<int64_t>(0, stamp.endPs - start_));
    times_.total = std::max(times_.total, times_.end.back());
  }
  /// Between calls.
  const CommandLog &log() const { return log_; }
  const VirtualTimes &times() const { return times_; }

private:
  std::mutex mutex_;
  CommandLog log_;
  VirtualTimes times_;
  int64_t start_ = 0;
  bool keeps_ = false;
};

} // namespace tressel::runtime
