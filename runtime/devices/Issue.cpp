#include "Issue.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <chrono>

namespace tressel::runtime {

Issuer::Issuer(Machine &machine, const Schedule &s) : machine_(machine) {
  activations_.resize(s.bodies.size() + 2);
  controls_.resize(s.bodies.size() + 2);
  for (uint32_t list : {0u, 1u}) {
    activations_[list] = std::make_unique<Activation>();
    activations_[list]->list = list;
  }
  build(*activations_[0], s, s.prepare);
  build(*activations_[1], s, s.step);
}
Issuer::~Issuer() = default;

void Issuer::build(Activation &a, const Schedule &s, const CommandList &p) {
  a.streams.resize(s.streams.size());
  a.used.resize(s.streams.size());
  a.ends.resize(p.commands.size());
  std::vector<bool> isUsed(s.streams.size(), false);
  if (a.parent) // it may write its number, and signals its end, on the stream of its command
    isUsed[a.parent->list == 0   ? s.prepare.commands[a.command].stream
           : a.parent->list == 1 ? s.step.commands[a.command].stream
                                    : s.bodies[a.parent->list - 2].commands[a.command].stream] = true;
  for (const Command &c : p.commands)
    isUsed[c.stream] = true;
  for (size_t i = 0; i < s.streams.size(); ++i)
    if (isUsed[i])
      a.streams[i] = machine_.at(s.streams[i].device).makeStream(s.streams[i].kind, s.streams[i].name, a.list);
  controls_[a.list].resize(p.commands.size());
  for (uint32_t i = 0; i < p.commands.size(); ++i) {
    const Command &c = p.commands[i];
    if (!hasBodies(c.kind))
      continue;
    auto control = std::make_unique<Control>();
    control->parent = &a;
    control->command = i;
    controls_[a.list][i] = std::move(control);
    for (uint32_t k = 0; k < numBodies(c.kind); ++k) {
      auto body = std::make_unique<Activation>();
      body->list = 2 + c.body + k;
      body->parent = &a;
      body->command = i;
      build(*body, s, s.bodies[c.body + k]);
      activations_[body->list] = std::move(body);
    }
  }
}

const CommandList &Issuer::listOf(uint32_t list) const {
  return list == 0   ? call_.numbers->prepare
         : list == 1 ? call_.numbers->step
                        : call_.numbers->bodies[list - 2];
}

template <typename Fn> void Issuer::forEachStream(Fn fn) const {
  for (const auto &activation : activations_)
    if (activation)
      for (const auto &stream : activation->streams)
        if (stream)
          fn(*stream);
}

//--- Issuing ----------------------------------------------------------------------------------------------------------
int64_t Issuer::shiftOf(const Activation &a, uint32_t buffer) const {
  int64_t shift = 0;
  for (const Activation *at = &a; at->parent; at = at->parent) {
    const CommandList &p = listOf(at->parent->list);
    const Command &c = p.commands[at->command];
    if (c.kind != CommandKind::Loop || at->iteration == 0)
      continue;
    const uint32_t numMoving = c.numScalars - 1u, firstMoving = c.firstOperand + c.numOperands - numMoving;
    for (uint32_t m = 0; m < numMoving; ++m)
      if (p.operands[firstMoving + m].buffer == buffer)
        shift += at->iteration * p.scalars[c.firstScalar + 1 + m];
  }
  return shift;
}

void Issuer::fillRegions(const Activation &a, const Command &c, std::vector<Region> &regions) const {
  const CommandList &p = listOf(a.list);
  regions.clear();
  for (uint32_t k = 0; k < c.numOperands; ++k) {
    const Operand &o = p.operands[c.firstOperand + k];
    const BufferDesc &b = call_.numbers->buffers[o.buffer];
    std::byte *base = call_.bases->of[size_t(b.space)][b.index];
    regions.push_back(
        {base ? base + b.offset + shiftOf(a, o.buffer) : nullptr, b.bytes, o.access, homeOf(*call_.numbers, b)});
  }
}

Event Issuer::submit(Activation &a, uint32_t stream, DeviceCommand command, std::span<const Wait> waits) {
  waits_.assign(command.waits.begin(), command.waits.end());
  for (const Wait &wait : waits)
    waits_.push_back(a.ends[wait.command]);
  if (!a.used[stream]) {
    a.used[stream] = true;
    waits_.insert(waits_.end(), a.begin.begin(), a.begin.end());
    if (!a.parent && stream < call_.before.size() && call_.before[stream].semaphore)
      waits_.push_back(call_.before[stream]);
  }
  command.waits = waits_;
  return a.streams[stream]->submit(command);
}

void Issuer::issue(Activation &a, std::span<const Event> begin) {
  const CommandList &p = listOf(a.list);
  a.begin.assign(begin.begin(), begin.end());
  std::fill(a.used.begin(), a.used.end(), false);
  for (uint32_t i = 0; i < p.commands.size(); ++i) {
    const Command &c = p.commands[i];
    if (hasBodies(c.kind)) {
      this->begin(a, i);
      continue;
    }
    DeviceCommand command{.tag = tagOf(CommandTag::Role::Whole, a, i)};
    fillRegions(a, c, regions_);
    command.regions = regions_;
    const BufferDesc *first = c.numOperands ? &call_.numbers->buffers[p.operands[c.firstOperand].buffer] : nullptr;
    switch (c.kind) {
    case CommandKind::Launch:
      command.kind = DeviceCommandKind::Launch;
      command.kernel = &call_.kernels[c.kernel];
      command.scalars = {p.scalars.data() + c.firstScalar, c.numScalars};
      command.type = first ? first->type.dtype : f32;
      break;
    case CommandKind::Copy:
      command.kind = DeviceCommandKind::Copy;
      break;
    case CommandKind::Fill:
      command.kind = DeviceCommandKind::Fill;
      command.type = first->type.dtype;
      command.fillValue = c.fillValue;
      break;
    case CommandKind::HostCall:
      command.kind = DeviceCommandKind::HostCall;
      command.kernel = &call_.kernels[c.kernel];
      command.scalars = {p.scalars.data() + c.firstScalar, c.numScalars};
      break;
    case CommandKind::Collective:
      command.kind = DeviceCommandKind::Collective;
      command.collective = partOf(a, c, first->type.dtype);
      command.type = first->type.dtype;
      break;
    case CommandKind::Branch:
    case CommandKind::While:
    case CommandKind::Loop:
      break;
    }
    a.ends[i] = submit(a, c.stream, command, {p.waits.data() + c.firstWait, c.numWaits});
  }
}

/// The parts of a collective stand behind each other, in the members' order.
std::shared_ptr<const CollectiveRun> Issuer::partOf(const Activation &a, const Command &c, DType type) {
  const CollectiveDesc &desc = call_.numbers->collectives[c.kernel];
  if (c.stream == desc.members[0]) {
    auto run = std::make_shared<CollectiveRun>();
    run->kind = desc.kind;
    run->reduction = desc.reduction;
    run->root = desc.root;
    run->type = type;
    for (uint32_t stream : desc.members)
      run->members.push_back(a.streams[stream].get());
    collective_ = std::move(run);
  }
  return collective_;
}

/// What a command list waits for: the last command of each stream that it used, or what it began with.
std::vector<Event> Issuer::tails(const Activation &a) const {
  std::vector<Event> events;
  for (size_t i = 0; i < a.streams.size(); ++i)
    if (a.used[i])
      events.push_back(a.streams[i]->last());
  return events.empty() ? a.begin : events;
}

//--- Bodies -----------------------------------------------------------------------------------------------------------
void Issuer::begin(Activation &a, uint32_t i) {
  const CommandList &p = listOf(a.list);
  const Command &c = p.commands[i];
  Control &control = *controls_[a.list][i];
  const Event begun =
      submit(a, c.stream, {.tag = tagOf(CommandTag::Role::Begin, a, i)}, {p.waits.data() + c.firstWait, c.numWaits});
  control.awaited = {begun};
  control.hasBegun = control.isOver = false;
  control.iteration = 0;
  const Event done{&control.done, ++control.doneValue};
  a.ends[i] = submit(a, c.stream, {.waits = {&done, 1}, .tag = tagOf(CommandTag::Role::End, a, i), .isFree = true}, {});
  pending_.push_back(&control);
}

bool Issuer::readFlag(const Control &control, bool otherwise) {
  const Activation &a = *control.parent;
  const Command &c = listOf(a.list).commands[control.command];
  Device &device = machine_.at(call_.numbers->streams[c.stream].device);
  if (!device.caps().computes)
    return otherwise;
  std::vector<Region> regions;
  fillRegions(a, c, regions);
  uint8_t flag = 0;
  device.read(&flag, regions[0].address, 1);
  return flag != 0;
}

void Issuer::finish(Control &control, Activation &body) {
  const CommandList &p = listOf(control.parent->list);
  const std::vector<Event> last = control.awaited;
  std::fill(body.used.begin(), body.used.end(), true);
  submit(body, p.commands[control.command].stream,
         {.kind = DeviceCommandKind::Signal,
          .waits = last,
          .signal = {&control.done, control.doneValue},
          .tag = tagOf(CommandTag::Role::Part, *control.parent, control.command),
          .isFree = true},
         {});
  control.isOver = true;
}

void Issuer::proceed(Control &control) {
  const CommandList &p = listOf(control.parent->list);
  const Command &c = p.commands[control.command];
  Activation &first = *activations_[2 + c.body];
  const std::vector<Event> reached = control.awaited;
  auto runBody = [&](Activation &body, std::span<const Event> begin, bool hostWaits = true) {
    if (hostWaits)
      machine_.hostWaits(body.list, begin);
    issue(body, begin);
    return tails(body);
  };
  switch (c.kind) {
  case CommandKind::Branch: {
    Activation &body = readFlag(control, true) ? first : *activations_[2 + c.body + 1];
    control.awaited = runBody(body, reached);
    return finish(control, body);
  }
  case CommandKind::While: {
    Activation &second = *activations_[2 + c.body + 1];
    // Where nothing is computed, it runs once.
    if (control.hasBegun) {
      if (!readFlag(control, control.iteration == 0))
        return finish(control, first);
      ++control.iteration;
      const std::vector<Event> between = runBody(second, reached);
      control.awaited = runBody(first, between);
      return;
    }
    control.hasBegun = true;
    control.awaited = runBody(first, reached);
    return;
  }
  default: {
    if (control.iteration == p.scalars[c.firstScalar])
      return finish(control, first);
    std::vector<Event> begin = reached;
    if (c.numOperands == c.numScalars) { // the body wants the number of the iteration
      std::fill(first.used.begin(), first.used.end(), true);
      fillRegions(*control.parent, c, regions_);
      machine_.hostWaits(first.list, reached);
      const Event numbered = submit(first, c.stream,
                                    {.kind = DeviceCommandKind::Fill,
                                     .regions = {regions_.data(), 1},
                                     .waits = reached,
                                     .type = i64,
                                     .fillValue = static_cast<uint64_t>(control.iteration),
                                     .tag = tagOf(CommandTag::Role::Part, *control.parent, control.command),
                                     .isFree = true},
                                    {});
      begin = {numbered};
      first.iteration = control.iteration++;
      control.awaited = runBody(first, begin, false);
      return;
    }
    first.iteration = control.iteration++;
    control.awaited = runBody(first, begin);
    return;
  }
  }
}

//--- Calls ------------------------------------------------------------------------------------------------------------
void Issuer::start(IssuedCall call) {
  call_ = std::move(call);
  pending_.clear();
  issue(*activations_[call_.list], call_.begin);
}

std::vector<Event> Issuer::lastOfStreams() const {
  const Activation &main = *activations_[call_.list];
  std::vector<Event> events = call_.before;
  events.resize(main.streams.size());
  for (size_t i = 0; i < main.streams.size(); ++i)
    if (main.used[i])
      events[i] = main.streams[i]->last();
  return events;
}

bool Issuer::advance(std::vector<Event> &awaited) {
  // In the order of the list: the same on every run.
  for (Control *control : pending_) {
    const Event *failed = nullptr;
    bool waits = false;
    for (const Event &event : control->awaited)
      if (const auto state = event.state(); state == Semaphore::State::Failed) {
        failed = &event;
      } else if (state == Semaphore::State::Pending) {
        waits = true;
        awaited.push_back(event);
      }
    if (failed) {
      control->done.fail(failed->semaphore->failure());
      control->isOver = true;
    } else if (waits) {
      continue;
    } else {
      proceed(*control);
    }
    if (control->isOver)
      std::erase(pending_, control);
    return true;
  }
  return false;
}

bool Issuer::isOver(std::vector<Event> &awaited) const {
  if (!pending_.empty())
    return false;
  bool over = true;
  forEachStream([&](Stream &stream) {
    if (const Event last = stream.last(); last.state() == Semaphore::State::Pending) {
      over = false;
      awaited.push_back(last);
    }
  });
  return over;
}

void Issuer::abort(const DeviceFailureRef &failure) {
  for (Control *control : pending_)
    control->done.fail(failure);
  forEachStream([&](Stream &stream) { stream.abort(failure); });
}

DeviceFailureRef runCalls(Machine &machine, std::span<const std::unique_ptr<Issuer>> issuers, size_t count,
                          const std::function<IssuedCall(size_t)> &callOf, int64_t timeoutNs) {
  using Clock = std::chrono::steady_clock;
  std::vector<Clock::time_point> since(count);
  std::vector<Event> lastOfStreams, awaited;
  size_t oldest = 0, next = 0; // those between are in flight
  DeviceFailureRef failure;
  while (oldest < count && !failure) {
    for (; next < count && next < oldest + issuers.size(); ++next) {
      Issuer &issuer = *issuers[next % issuers.size()];
      IssuedCall call = callOf(next);
      if (next >= issuers.size()) { // its memory was another call's, which is over
        for (const Event &event : issuer.lastOfStreams())
          if (event.semaphore)
            call.begin.push_back(event);
        machine.hostWaits(call.list, call.begin);
      }
      call.before = lastOfStreams;
      since[next] = Clock::now();
      issuer.start(std::move(call));
      lastOfStreams = issuer.lastOfStreams();
    }
    awaited.clear();
    bool any = false;
    for (size_t i = oldest; i < next; ++i)
      any |= issuers[i % issuers.size()]->advance(awaited);
    if (any)
      continue;
    Issuer &first = *issuers[oldest % issuers.size()];
    if (first.isOver(awaited)) {
      failure = first.firstFailure();
      oldest += !failure;
      continue;
    }
    const int64_t passed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - since[oldest]).count();
    if (machine.awaitAny(awaited, timeoutNs - passed) < 0) {
      failure = first.firstFailure();
      if (!failure)
        failure = first.timedOut(timeoutNs);
    }
  }
  if (failure)
    for (size_t i = oldest; i < next; ++i)
      issuers[i % issuers.size()]->abort(failure);
  return failure;
}

DeviceFailureRef Issuer::timedOut(int64_t timeoutNs) const {
  auto failure = std::make_shared<DeviceFailure>();
  failure->kind = FailureKind::TimedOut;
  failure->message = concat("not done within ", timeoutNs / 1'000'000, " ms");
  // Of what has not ended the first that waits for nothing: its predecessors have, and its stream's turn has come.
  for (const auto &activation : activations_) {
    if (!activation)
      continue;
    const CommandList &p = listOf(activation->list);
    for (uint32_t i = 0; i < p.commands.size(); ++i)
      if (const Event end = activation->ends[i];
          end.semaphore && end.state() == Semaphore::State::Pending && !hasBodies(p.commands[i].kind) &&
          std::ranges::all_of(
              std::span(p.waits).subspan(p.commands[i].firstWait, p.commands[i].numWaits),
              [&](const Wait &w) { return activation->ends[w.command].state() == Semaphore::State::Reached; })) {
        failure->device = call_.numbers->streams[p.commands[i].stream].device;
        failure->tag = tagOf(CommandTag::Role::Whole, *activation, i);
        failure->message = concat(nameOf(failure->device), " has ", failure->message, " what it was given");
        return failure;
      }
  }
  return failure;
}

DeviceFailureRef Issuer::firstFailure() const {
  DeviceFailureRef first;
  forEachStream([&](Stream &stream) {
    const DeviceFailureRef failure = stream.last().semaphore->failure();
    if (failure && (!first || (failure->tag & ~(uint64_t(3) << 62)) < (first->tag & ~(uint64_t(3) << 62))))
      first = failure;
  });
  return first;
}

} // namespace tressel::runtime
