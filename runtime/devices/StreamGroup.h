// A group whose submission submits one command after the other: for machines whose devices know no recorded commands, and for those commands that a device
// cannot record.
#pragma once

#include "tressel/runtime/Device.h"

#include <memory>
#include <vector>

namespace tressel::runtime {

class StreamGroup : public CommandGroup {
public:
  /// Throws Error for commands that mean nothing.
  StreamGroup(std::span<Stream *const> streams, std::span<const GroupCommand> commands);
  void submit(std::span<const std::span<const Event>> events, uint64_t tag, std::span<Event> ends) override;

protected:
  struct Recorded {
    Stream *stream;
    DeviceCommand command;
    std::vector<Region> regions;
    std::span<void *const> addresses;
    std::vector<uint32_t> after, events;
  };
  const std::vector<Recorded> &commands() const { return commands_; }
  /// Submits the next command; those before it have their `ends`.
  void submitOne(size_t command, std::span<const std::span<const Event>> events, uint64_t tag, std::span<Event> ends);

private:
  std::vector<Recorded> commands_;
  std::vector<Event> waits_;
  const CollectiveRun *recorded_ = nullptr; ///< of the part before
  std::shared_ptr<const CollectiveRun> run_;
};

} // namespace tressel::runtime
