#include "Issue.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace tressel::runtime {

void LoadedKernels::load(const Machine &machine, const Schedule &s, std::span<const KernelCode> code,
                         const std::shared_ptr<const std::vector<GpuCode>> &gpu) {
  auto find = [&](DeviceRef device) -> OnDevice & {
    const auto at = std::ranges::find(devices_, device, &OnDevice::device);
    return at != devices_.end() ? *at : devices_.emplace_back(OnDevice{device, std::vector<DeviceKernelRef>(s.kernels.size())});
  };
  std::map<uint16_t, std::vector<bool>> launched; // by place in `devices_`
  for (uint32_t list = 0; list < s.bodies.size() + 2; ++list)
    for (const Command &c : runtime::listOf(s, list).commands)
      if (c.kind == CommandKind::Launch || c.kind == CommandKind::HostCall) {
        const auto place = static_cast<uint16_t>(&find(s.streams[c.stream].device) - devices_.data());
        launched.try_emplace(place, s.kernels.size()).first->second[c.kernel] = true;
      }
  for (const auto &[place, kernels] : launched) {
    std::vector<KernelCode> wanted;
    for (size_t k = 0; k < kernels.size(); ++k)
      if (kernels[k])
        wanted.push_back(code[k]);
    auto loaded = machine.at(devices_[place].device).load(wanted, gpu);
    for (size_t k = 0, at = 0; k < kernels.size(); ++k)
      if (kernels[k])
        devices_[place].byKernel[k] = std::move(loaded[at++]);
  }
}
const DeviceKernel *LoadedKernels::on(DeviceRef device, uint32_t kernel) const {
  return std::ranges::find(devices_, device, &OnDevice::device)->byKernel[kernel].get();
}

Issuer::Issuer(Machine &machine, const Schedule &s) : machine_(machine) {
  activations_.resize(s.bodies.size() + 2);
  controls_.resize(s.bodies.size() + 2);
  for (uint32_t list : {0u, 1u}) {
    activations_[list] = std::make_unique<Activation>();
    activations_[list]->list = activations_[list]->root = list;
    build(*activations_[list], s);
  }
}
Issuer::~Issuer() {
  for (const auto &list : controls_)
    for (const auto &control : list)
      if (control)
        control->choice.reset(); // before the streams
  for (const auto &activation : activations_)
    if (activation)
      activation->runs.clear();
}

void Issuer::build(Activation &a, const Schedule &s) {
  const CommandList &p = runtime::listOf(s, a.list);
  a.streams.resize(s.streams.size());
  a.used.resize(s.streams.size());
  a.ends.resize(p.commands.size());
  std::vector<bool> isUsed(s.streams.size(), false);
  if (a.parent) // it may write its number, and signals its end, on the stream of its command
    isUsed[runtime::listOf(s, a.parent->list).commands[a.command].stream] = true;
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
      body->list = bodyNumber(c, k);
      body->root = a.root;
      body->parent = &a;
      body->command = i;
      build(*body, s);
      activations_[body->list] = std::move(body);
    }
  }
}

template <typename Fn> void Issuer::forEachStream(Fn fn) const {
  for (const auto &activation : activations_)
    if (activation)
      for (const auto &stream : activation->streams)
        if (stream)
          fn(*stream);
}

//--- Issuing ----------------------------------------------------------------------------------------------------------
void Issuer::addBegin(const Activation &a, uint32_t stream, std::vector<Event> &events) const {
  events.insert(events.end(), a.begin.begin(), a.begin.end());
  if (!a.parent && stream < call_.before.size() && call_.before[stream].semaphore)
    events.push_back(call_.before[stream]);
}

Event Issuer::submit(Activation &a, uint32_t stream, DeviceCommand command, std::span<const Wait> waits) {
  waits_.assign(command.waits.begin(), command.waits.end());
  for (const Wait &wait : waits)
    waits_.push_back(a.ends[wait.command]);
  if (!a.used[stream])
    addBegin(a, stream, waits_);
  a.used[stream] = true;
  command.waits = waits_;
  return a.streams[stream]->submit(command);
}

void Issuer::submit(Activation &a, Run &run) {
  const CommandList &p = listOf(a.list);
  std::vector<std::vector<Event>> begins(a.streams.size());
  for (uint32_t i = run.first; i < run.first + run.count; ++i)
    if (const uint32_t stream = p.commands[i].stream; !a.used[stream]) {
      addBegin(a, stream, begins[stream]);
      a.used[stream] = true;
    }
  std::vector<std::span<const Event>> events(begins.begin(), begins.end());
  for (uint32_t command : run.outside)
    events.push_back({&a.ends[command], 1});
  moveAddresses(run);
  run.group->submit(events, CommandTag{CommandTag::Role::Whole, 0, 0, call_.number}.pack(), run.ends);
  for (uint32_t i = 0; i < run.count; ++i)
    a.ends[run.first + i] = run.ends[run.endOf[i]];
}

void Issuer::issue(Activation &a, std::span<const Event> begin) {
  a.begin.assign(begin.begin(), begin.end());
  std::fill(a.used.begin(), a.used.end(), false);
  auto run = a.runs.begin();
  for (uint32_t i = 0; i < a.ends.size();) {
    if (run != a.runs.end() && run->first == i) {
      submit(a, *run);
      i += run++->count;
    } else {
      this->begin(a, i++);
    }
  }
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
  if (control.choice) {
    for (Run &run : control.choiceRuns)
      moveAddresses(run);
    Event end;
    if (control.choice->submit({&begun, 1}, CommandTag{CommandTag::Role::Whole, 0, 0, call_.number}.pack(), end)) {
      a.ends[i] =
          submit(a, c.stream, {.waits = {&end, 1}, .tag = tagOf(CommandTag::Role::End, a, i), .isFree = true}, {});
      return;
    }
  }
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
  uint8_t flag = 0;
  device.read(&flag, regionOf(a, c, 0).address, 1);
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

std::vector<Event> Issuer::runBody(Activation &body, std::span<const Event> begin) {
  issue(body, begin);
  return tails(body);
}

void Issuer::proceed(Control &control) {
  const Command &c = listOf(control.parent->list).commands[control.command];
  Activation &first = *activations_[bodyNumber(c)];
  if (c.kind == CommandKind::Loop)
    return proceedLoop(control, first);
  const std::vector<Event> reached = control.awaited;
  if (c.kind == CommandKind::Branch) {
    Activation &body = readFlag(control, true) ? first : *activations_[bodyNumber(c, 1)];
    machine_.hostWaits(body.list, reached);
    control.awaited = runBody(body, reached);
    return finish(control, body);
  }
  if (!control.hasBegun) {
    control.hasBegun = true;
    machine_.hostWaits(first.list, reached);
    control.awaited = runBody(first, reached);
    return;
  }
  // Where nothing is computed, it runs once.
  if (!readFlag(control, control.iteration == 0))
    return finish(control, first);
  ++control.iteration;
  Activation &second = *activations_[bodyNumber(c, 1)];
  machine_.hostWaits(second.list, reached);
  const std::vector<Event> between = runBody(second, reached);
  machine_.hostWaits(first.list, between);
  control.awaited = runBody(first, between);
}

void Issuer::proceedLoop(Control &control, Activation &body) {
  const CommandList &p = listOf(control.parent->list);
  const Command &c = p.commands[control.command];
  const int64_t trips = p.scalars[c.firstScalar].number();
  if (control.iteration == trips) {
    if (trips > 1)
      operandsOf(body).move(body.list, 1 - trips);
    return finish(control, body);
  }
  if (control.iteration > 0)
    operandsOf(body).move(body.list, 1);
  std::vector<Event> begin = control.awaited;
  machine_.hostWaits(body.list, begin);
  if (hasIndex(c)) {
    std::fill(body.used.begin(), body.used.end(), true);
    const Region index = regionOf(*control.parent, c, 0);
    begin = {submit(body, c.stream,
                    {.kind = DeviceCommandKind::Fill,
                     .regions = {&index, 1},
                     .waits = control.awaited,
                     .type = i64,
                     .fillValue = static_cast<uint64_t>(control.iteration),
                     .tag = tagOf(CommandTag::Role::Part, *control.parent, control.command),
                     .isFree = true},
                    {})};
  }
  ++control.iteration;
  control.awaited = runBody(body, begin);
}

//--- Calls ------------------------------------------------------------------------------------------------------------
void Issuer::start(IssuedCall call) {
  call_ = std::move(call);
  pending_.clear();
  Operands &operands = operands_[call_.list];
  if (recordedFor_[call_.list] != call_.sizes) {
    operands.layOut(*call_.numbers, call_.list);
    record(*activations_[call_.list]);
    recordedFor_[call_.list] = call_.sizes;
  }
  for (size_t space = 0; space < kNumSpaces; ++space)
    operands.bind(static_cast<Space>(space), call_.begins->of[space]);
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
          end.semaphore && end.state() == Semaphore::State::Pending && isRecorded(*activation, p.commands[i]) &&
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
