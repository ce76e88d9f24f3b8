#include "Issue.h"

#include "tressel/runtime/DeviceGraphs.h"

#include <algorithm>

namespace tressel::runtime {

//--- Recording --------------------------------------------------------------------------------------------------------
Region Issuer::regionOf(const Activation &a, const Command &c, uint32_t k) const {
  const uint32_t place = c.firstOperand + k;
  const Operand &o = listOf(a.list).operands[place];
  const BufferDesc &b = call_.numbers->buffers[o.buffer];
  return {operands_[a.root].of(a.list)[place], b.bytes.number(), o.access, homeOf(*call_.numbers, b)};
}

/// Without regions, waits and the run of a collective.
DeviceCommand Issuer::commandOf(const Activation &a, uint32_t i) const {
  const CommandList &p = listOf(a.list);
  const Command &c = p.commands[i];
  DeviceCommand command{.tag = CommandTag{CommandTag::Role::Whole, a.list, i, 0}.pack(),
                        .location = &call_.numbers->locations[c.loc]};
  if (c.numOperands)
    command.type = call_.numbers->buffers[p.operands[c.firstOperand].buffer].type.dtype;
  switch (c.kind) {
  case CommandKind::Launch:
  case CommandKind::HostCall:
    command.kind = c.kind == CommandKind::Launch ? DeviceCommandKind::Launch : DeviceCommandKind::HostCall;
    command.kernel = call_.kernels->on(call_.numbers->streams[c.stream].device, c.kernel);
    command.desc = &call_.numbers->kernels[c.kernel];
    command.scalars = {bitsOf(p.scalars) + c.firstScalar, c.numScalars}; // numbers
    break;
  case CommandKind::Copy:
    command.kind = DeviceCommandKind::Copy;
    break;
  case CommandKind::Fill:
    command.kind = DeviceCommandKind::Fill;
    command.fillValue = c.fillValue;
    break;
  case CommandKind::Collective:
    command.kind = DeviceCommandKind::Collective;
    break;
  case CommandKind::Branch:
  case CommandKind::While:
  case CommandKind::Loop:
    break;
  }
  return command;
}

void Issuer::record(Activation &a) {
  const CommandList &p = listOf(a.list);
  a.runs.clear();
  for (uint32_t i = 0; i < p.commands.size(); ++i) {
    const Command &c = p.commands[i];
    for (uint32_t k = 0; k < numBodies(c.kind); ++k)
      record(*activations_[bodyNumber(c, k)]);
    if (!isRecorded(a, c)) {
      if (c.kind != CommandKind::Loop)
        recordChoice(a, i);
      continue;
    }
    if (a.runs.empty() || a.runs.back().first + a.runs.back().count != i)
      a.runs.push_back({.first = i, .count = 0, .group = nullptr, .outside = {}});
    ++a.runs.back().count;
  }
  for (Run &run : a.runs)
    record(a, run);
}

bool Issuer::isRecorded(const Activation &a, const Command &c) const {
  return !hasBodies(c.kind) || (machine_.unrollsLoops() && unrolled(*call_.numbers, listOf(a.list), c));
}

/// Makes the group of a run, with the iterations of its loops one behind the other.
class Issuer::Recorder {
public:
  Recorder(Issuer &issuer, const Activation &a, Run &run)
      : issuer_(issuer), list_(a), run_(run), numStreams_(static_cast<uint32_t>(a.streams.size())) {
    for (const auto &stream : a.streams)
      streams_.push_back(stream.get());
  }

  void record() {
    const CommandList &p = issuer_.listOf(list_.list);
    std::vector<bool> isUsed(numStreams_, false); // by commands before
    for (uint32_t i = 0; i < run_.first; ++i)
      isUsed[p.commands[i].stream] = true;
    for (uint32_t i = run_.first; i < run_.first + run_.count; ++i) {
      const Command &c = p.commands[i];
      const auto number = static_cast<uint32_t>(made_.size());
      run_.endOf.push_back(add(list_, i, nullptr));
      if (!isUsed[c.stream])
        made_[number].events.push_back(c.stream);
      isUsed[c.stream] = true;
    }
    const std::span<const GroupCommand> commands = finish();
    run_.ends.resize(commands.size());
    run_.group = issuer_.machine_.record(streams_, commands);
  }

  /// All commands of a body, which wait for nothing outside; `offset` is added to the numbers of streams. They are
  /// valid as long as this.
  std::span<const GroupCommand> body(uint32_t offset) {
    run_ = {};
    run_.count = static_cast<uint32_t>(issuer_.listOf(list_.list).commands.size());
    for (uint32_t i = 0; i < run_.count; ++i)
      run_.endOf.push_back(add(list_, i, nullptr));
    for (Made &made : made_)
      made.command.stream += offset;
    return finish();
  }
  std::span<Stream *const> streams() const { return streams_; }

private:
  struct Made {
    GroupCommand command;
    std::vector<Region> regions;
    std::vector<uint32_t> after, events;
    bool isMoved = false;
    size_t firstMoved = 0;
  };
  std::span<const GroupCommand> finish() {
    run_.addresses.resize(run_.moved.size());
    for (Made &made : made_) {
      made.command.command.regions = made.regions;
      made.command.after = made.after;
      made.command.events = made.events;
      if (made.isMoved)
        made.command.addresses = std::span<void *const>(run_.addresses).subspan(made.firstMoved, made.regions.size());
      commands_.push_back(made.command);
    }
    return commands_;
  }
  struct Iteration {
    uint32_t body; ///< list
    int64_t number;
  };

  /// Each submission adds the number of its call.
  static uint64_t tagOf(CommandTag::Role role, const Activation &a, uint32_t command) {
    return CommandTag{role, a.list, command, 0}.pack();
  }
  uint32_t add(uint32_t stream, DeviceCommand command, std::vector<uint32_t> after) {
    made_.push_back(
        {.command = {.stream = stream, .command = std::move(command), .addresses = {}, .after = {}, .events = {}},
         .regions = {},
         .after = std::move(after),
         .events = {}});
    return static_cast<uint32_t>(made_.size() - 1);
  }
  void setOperands(Made &made, const Activation &a, const Command &c, uint32_t count) {
    for (uint32_t k = 0; k < count; ++k)
      made.regions.push_back(issuer_.regionOf(a, c, k));
    const std::span<void *const> pointers = issuer_.operandsOf(a).of(a.list, c).first(count);
    made.command.addresses = pointers;
    if (iterations_.empty())
      return;
    made.isMoved = true;
    made.firstMoved = run_.moved.size();
    for (void *const &pointer : pointers) {
      int64_t offset = 0;
      for (const Iteration &each : iterations_)
        offset += each.number * issuer_.operandsOf(a).strideOf(each.body, &pointer);
      run_.moved.push_back({&pointer, offset});
    }
  }

  /// The command of the list with number `i`; returns what it ends with. `ends`: those of the commands before it in a
  /// body; null: of the list itself.
  uint32_t add(const Activation &a, uint32_t i, const std::vector<uint32_t> *ends) {
    const CommandList &p = issuer_.listOf(a.list);
    const Command &c = p.commands[i];
    const bool isLoop = hasBodies(c.kind);
    const uint32_t number =
        add(streamOf(a, c.stream),
            isLoop ? DeviceCommand{.tag = tagOf(CommandTag::Role::Begin, a, i)} : issuer_.commandOf(a, i), {});
    Made &made = made_[number];
    for (const Wait &wait : std::span(p.waits).subspan(c.firstWait, c.numWaits))
      if (ends || wait.command >= run_.first) {
        made.after.push_back(ends ? (*ends)[wait.command] : run_.endOf[wait.command - run_.first]);
      } else {
        made.events.push_back(numStreams_ + static_cast<uint32_t>(run_.outside.size()));
        run_.outside.push_back(wait.command);
      }
    if (isLoop)
      return addLoop(a, i, number);
    setOperands(made_[number], a, c, c.numOperands);
    if (c.kind == CommandKind::Collective)
      setCollective(made_[number], a, c);
    return number;
  }

  uint32_t addLoop(const Activation &a, uint32_t i, uint32_t begin) {
    const CommandList &p = issuer_.listOf(a.list);
    const Command &c = p.commands[i];
    const Activation &body = *issuer_.activations_[bodyNumber(c)];
    const CommandList &inside = issuer_.listOf(body.list);
    const int64_t trips = p.scalars[c.firstScalar].number();
    std::vector<uint32_t> before{begin};
    for (int64_t trip = 0; trip < trips; ++trip) {
      if (hasIndex(c)) {
        const uint32_t fill = add(streamOf(body, c.stream),
                                  {.kind = DeviceCommandKind::Fill,
                                   .type = i64,
                                   .fillValue = static_cast<uint64_t>(trip),
                                   .tag = tagOf(CommandTag::Role::Part, a, i),
                                   .isFree = true},
                                  before);
        setOperands(made_[fill], a, c, 1);
        before = {fill};
      }
      iterations_.push_back({body.list, trip});
      std::vector<uint32_t> ends;
      std::vector<std::pair<uint32_t, uint32_t>> last; // streams, and what they end with
      for (uint32_t k = 0; k < inside.commands.size(); ++k) {
        const auto number = static_cast<uint32_t>(made_.size());
        ends.push_back(add(body, k, &ends));
        const uint32_t stream = inside.commands[k].stream;
        if (const auto at = std::ranges::find(last, stream, &std::pair<uint32_t, uint32_t>::first); at != last.end()) {
          at->second = ends.back();
        } else {
          made_[number].after.insert(made_[number].after.end(), before.begin(), before.end());
          last.push_back({stream, ends.back()});
        }
      }
      iterations_.pop_back();
      if (last.empty())
        continue;
      before.clear();
      for (const auto &[stream, end] : last)
        before.push_back(end);
    }
    return add(streamOf(a, c.stream), {.tag = tagOf(CommandTag::Role::End, a, i), .isFree = true}, before);
  }

  void setCollective(Made &made, const Activation &a, const Command &c) {
    const CollectiveDesc &desc = issuer_.call_.numbers->collectives[c.kernel];
    if (c.stream == desc.members[0]) { // parts stand behind each other, in the members' order
      collective_ = std::make_shared<CollectiveRun>(desc.kind, desc.reduction, desc.root, made.command.command.type);
      for (uint32_t member : desc.members)
        collective_->members.push_back(a.streams[member].get());
    }
    made.command.command.collective = collective_;
  }

  /// Bodies have streams of their own, so that what runs beside the loop is not held up by its iterations.
  uint32_t streamOf(const Activation &a, uint32_t stream) {
    if (&a == &list_)
      return stream;
    Stream *const own = a.streams[stream].get();
    const auto at = std::ranges::find(streams_.begin() + numStreams_, streams_.end(), own);
    if (at == streams_.end())
      streams_.push_back(own);
    return static_cast<uint32_t>(std::ranges::find(streams_.begin() + numStreams_, streams_.end(), own) -
                                 streams_.begin());
  }

  Issuer &issuer_;
  const Activation &list_;
  Run &run_;
  const uint32_t numStreams_;
  std::vector<Stream *> streams_;
  std::vector<Made> made_;
  std::vector<GroupCommand> commands_;
  std::vector<Iteration> iterations_; ///< that the next command belongs to, the outermost first
  std::shared_ptr<CollectiveRun> collective_;
};

/// Where devices of one kind and number execute all that the bodies do.
void Issuer::recordChoice(const Activation &a, uint32_t i) {
  const Schedule &s = *call_.numbers;
  const Command &c = listOf(a.list).commands[i];
  Control &control = *controls_[a.list][i];
  control.choice.reset();
  const DeviceRef device = s.streams[c.stream].device;
  if (device.kind != DeviceKind::Gpu)
    return;
  for (uint32_t k = 0; k < 2; ++k) {
    const CommandList &body = listOf(bodyNumber(c, k));
    for (const Command &inner : body.commands)
      if (s.streams[inner.stream].device != device || inner.kind == CommandKind::HostCall ||
          inner.kind == CommandKind::Collective || (hasBodies(inner.kind) && !unrolled(s, body, inner)))
        return;
  }
  Recorder first(*this, *activations_[bodyNumber(c)], control.choiceRuns[0]);
  Recorder second(*this, *activations_[bodyNumber(c, 1)], control.choiceRuns[1]);
  const std::span<const GroupCommand> firstCommands = first.body(0);
  std::vector<Stream *> streams(first.streams().begin(), first.streams().end());
  const std::span<const GroupCommand> secondCommands = second.body(static_cast<uint32_t>(streams.size()));
  streams.insert(streams.end(), second.streams().begin(), second.streams().end());
  control.choice = machine_.record(streams, GroupChoice{.repeats = c.kind == CommandKind::While,
                                                        .first = firstCommands,
                                                        .second = secondCommands,
                                                        .flag = regionOf(a, c, 0),
                                                        .flagAddress = operands_[a.root].of(a.list, c).data()});
}

void Issuer::record(Activation &a, Run &run) { Recorder(*this, a, run).record(); }

} // namespace tressel::runtime
