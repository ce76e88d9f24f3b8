#include "HostWork.h"
#include "StreamGroup.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

namespace tressel::runtime {

StreamGroup::StreamGroup(std::span<Stream *const> streams, std::span<const GroupCommand> commands) {
  commands_.reserve(commands.size());
  for (uint32_t i = 0; i < commands.size(); ++i) {
    const GroupCommand &c = commands[i];
    if (c.stream >= streams.size() || !streams[c.stream])
      throwError<Error>("command ", i, " of a group is for stream ", c.stream, ", which the group does not have");
    if (c.addresses.size() != c.command.regions.size())
      throwError<Error>("command ", i, " of a group has ", c.command.regions.size(), " regions and ",
                        c.addresses.size(), " addresses");
    for (uint32_t before : c.after)
      if (before >= i)
        throwError<Error>("command ", i, " of a group waits for command ", before, ", which is not before it");
    checkShape(c.command);
    commands_.push_back({streams[c.stream],
                         c.command,
                         {c.command.regions.begin(), c.command.regions.end()},
                         c.addresses,
                         {c.after.begin(), c.after.end()},
                         {c.events.begin(), c.events.end()}});
  }
}

void StreamGroup::submit(std::span<const std::span<const Event>> events, uint64_t tag, std::span<Event> ends) {
  recorded_ = nullptr;
  for (size_t i = 0; i < commands_.size(); ++i)
    submitOne(i, events, tag, ends);
}

void StreamGroup::submitOne(size_t i, std::span<const std::span<const Event>> events, uint64_t tag,
                            std::span<Event> ends) {
  Recorded &c = commands_[i];
  for (size_t k = 0; k < c.regions.size(); ++k)
    c.regions[k].address = c.addresses[k];
  waits_.clear();
  for (uint32_t before : c.after)
    waits_.push_back(ends[before]);
  for (uint32_t list : c.events)
    waits_.insert(waits_.end(), events[list].begin(), events[list].end());
  DeviceCommand command = c.command;
  command.regions = c.regions;
  command.waits = waits_;
  command.tag += tag;
  if (c.command.collective) {
    if (c.command.collective.get() != recorded_)
      run_ = std::make_shared<CollectiveRun>(*c.command.collective);
    recorded_ = c.command.collective.get();
    command.collective = run_;
  }
  ends[i] = c.stream->submit(command);
}

std::unique_ptr<CommandGroup> Machine::record(std::span<Stream *const> streams, std::span<const GroupCommand> commands) {
  return std::make_unique<StreamGroup>(streams, commands);
}

} // namespace tressel::runtime
