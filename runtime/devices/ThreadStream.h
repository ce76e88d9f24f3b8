// A stream that is a thread: takes commands in order, waits for what they wait for, and has them done.
#pragma once

#include "HostWork.h"

#include <atomic>
#include <deque>
#include <functional>
#include <thread>

namespace tressel::runtime {

/// What the streams of a device have done, and when. At most kMost, the latest.
class StampList {
public:
  static int64_t nowPs();
  void add(const Stamp &stamp);
  std::vector<Stamp> take();

private:
  static constexpr size_t kMost = 1 << 16;
  std::mutex mutex_;
  std::deque<Stamp> stamps_;
};

class ThreadStream final : public Stream {
public:
  /// `work` does what a command whose waits are reached says, and returns why it could not.
  using Work = std::function<DeviceFailureRef(const DeviceCommand &)>;
  /// `note` is told when each command was at work, before its event is reached.
  using Note = std::function<void(const Stamp &)>;
  ThreadStream(Work work, StampList &stamps, Note note = {});
  ~ThreadStream() override;

  Event submit(const DeviceCommand &command) override;
  Event last() const override;
  void abort(DeviceFailureRef failure) override;

private:
  void run();
  void execute(const DeviceCommand &command, uint64_t number);
  /// Returns why the command must be skipped.
  DeviceFailureRef waitFor(std::span<const Event> waits);

  Work work_;
  StampList &stamps_;
  Note note_;
  Semaphore progress_; ///< how many commands have ended
  mutable std::mutex mutex_;
  std::condition_variable more_;
  std::deque<KeptCommand> queue_;
  uint64_t submitted_ = 0;
  bool closing_ = false, isWorking_ = false;
  Communicator *atWork_ = nullptr; ///< of the part at work
  std::condition_variable rests_;
  std::thread thread_;
};

} // namespace tressel::runtime
