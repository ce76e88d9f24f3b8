#include "Simulation.h"

#include "../devices/Collective.h"
#include "Guards.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/CollectivePlan.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace tressel::runtime {

std::shared_ptr<SimulatedMachine> SimulatedMachine::create(MachineModel model, const SimulatedOptions &options) {
  return std::make_shared<sim::Simulation>(std::move(model), options);
}

namespace sim {

Simulation::Simulation(MachineModel model, const SimulatedOptions &options) {
  model_ = std::move(model);
  for (uint32_t i = 0; i < model_.devices.size(); ++i)
    devices_.push_back(std::make_shared<SimDevice>(*this, i, model_.devices[i], options.computes));
  stamped_.assign(devices_.size(), 0);
  setOptions(options);
}

void Simulation::setOptions(const SimulatedOptions &options) {
  std::lock_guard lock(mutex_);
  if (!devices_.empty() && options.computes != devices_[0]->caps().computes)
    throw Error("whether a simulated machine computes is settled when it is made");
  options_ = options;
  random_.seed(options.interleaving.value_or(0));
}
void Simulation::setTime(const VirtualTimeOptions &options) {
  std::lock_guard lock(mutex_);
  time_ = options;
}
void Simulation::inject(const Fault &fault) {
  std::lock_guard lock(mutex_);
  faults_.push_back(fault);
}

bool Simulation::strikes(Fault::Kind kind, DeviceRef device) {
  for (size_t i = 0; i < faults_.size(); ++i) {
    Fault &fault = faults_[i];
    if (fault.kind != kind || fault.device != device)
      continue;
    if (fault.after-- > 0)
      continue;
    faults_.erase(faults_.begin() + static_cast<ptrdiff_t>(i));
    return true;
  }
  return false;
}

//--- Calls and the log ------------------------------------------------------------------------------------------------
std::unique_lock<std::mutex> Simulation::beginCall(bool isAside) {
  std::unique_lock call(callMutex_);
  std::lock_guard lock(mutex_);
  base_ += virtualTimes(log_, model_, time_).total;
  if (!isAside)
    kept_ = {};
  else if (!isAside_)
    kept_ = {log_.streams, std::move(log_.commands), std::move(log_.hostWaits)};
  isAside_ = isAside;
  log_.commands.clear();
  log_.hostWaits.clear();
  ended_.clear();
  numRings_ = 0;
  semaphores_.clear();
  std::ranges::fill(stamped_, 0);
  if (options_.checkRaces)
    races_.newCall();
  return call;
}

void Simulation::hostWaits(uint32_t host, std::span<const Event> events) {
  std::lock_guard lock(mutex_);
  LoggedHostWait wait{host, log_.commands.size(), {}};
  for (const Event &event : events)
    wait.events.push_back(logged(event));
  log_.hostWaits.push_back(std::move(wait));
}

LoggedEvent Simulation::logged(const Event &event) {
  const auto [it, isNew] = semaphores_.try_emplace(event.semaphore, semaphores_.size() + 1);
  return it->second << 40 | event.value;
}

size_t Simulation::logCommand(SimStream &stream, const DeviceCommand &c, Event event) {
  LoggedCommand entry{.kind = c.kind, .stream = stream.index, .host = stream.host, .tag = c.tag};
  entry.event = logged(event);
  for (const Event &wait : c.waits)
    entry.waits.push_back(logged(wait));
  if (c.kind == DeviceCommandKind::Signal)
    entry.signal = logged(c.signal);
  entry.type = c.type;
  if (c.kind == DeviceCommandKind::Launch) {
    entry.flops = c.desc->flops.number();
    entry.bytes = c.desc->bytes.number();
    entry.provider = internName(c.desc->provider);
    entry.moves = c.desc->moves;
    entry.costs = c.desc->costs;
    entry.tasks = (c.desc->range + c.desc->grain - 1).number() / std::max<int64_t>(1, c.desc->grain.number());
  } else if (c.kind == DeviceCommandKind::Collective) {
    logPart(entry, c, stream);
  } else if (c.kind == DeviceCommandKind::Copy || c.kind == DeviceCommandKind::Fill) {
    entry.bytes = c.regions[0].bytes;
    entry.from = c.regions[0].home;
    if (c.kind == DeviceCommandKind::Copy)
      entry.to = c.regions[1].home;
  }
  entry.isFree = c.isFree;
  log_.commands.push_back(std::move(entry));
  ended_.push_back(false);
  return log_.commands.size() - 1;
}

/// Logs what a member of a collective sends in each phase, and its destination.
void Simulation::logPart(LoggedCommand &entry, const DeviceCommand &c, const SimStream &stream) {
  const auto &members = c.collective->members;
  const auto n = static_cast<int64_t>(members.size());
  const auto member = std::ranges::find(members, static_cast<const Stream *>(&stream)) - members.begin();
  if (member == 0)
    ++numRings_;
  entry.ring = numRings_;
  entry.members = static_cast<uint32_t>(n);
  std::vector<DeviceRef> devices;
  for (Stream *each : members)
    devices.push_back(device(static_cast<SimStream *>(each)->device).caps().device);
  auto homeOf = [&](size_t i) {
    return Home{devices[i], devices[i].kind == DeviceKind::Cpu ? MemoryKind::Pinned : MemoryKind::Device};
  };
  const auto own = static_cast<size_t>(member);
  entry.from = homeOf(own);
  if (n == 1)
    return;
  const int64_t bytes = c.regions.back().bytes * (c.collective->kind == CollectiveKind::ReduceScatter ? n : 1);
  const CollectivePlan plan = planCollective(c.collective->kind, groupOf(model_, devices), bytes);
  for (const CollectivePhase &phase : plan.phases)
    entry.phases.push_back(
        {homeOf(peerOf(model_, devices, own, plan.algorithm, phase)), phase.bytes, phase.steps});
}

int64_t Simulation::nowPs() {
  std::lock_guard lock(mutex_);
  return clock();
}
int64_t Simulation::clock() const { return base_ + virtualTimes(log_, model_, time_).total; }

//--- Streams ----------------------------------------------------------------------------------------------------------
SimStream::~SimStream() {
  std::lock_guard lock(machine.mutex_);
  machine.streams_[index] = nullptr;
}
Event SimStream::submit(const DeviceCommand &command) {
  checkShape(command);
  if (communicatorOf(command))
    throwError<Error>("simulated machines run no collectives between ranks: give the collective members");
  std::lock_guard lock(machine.mutex_);
  return machine.submit(*this, command);
}
void SimStream::abort(DeviceFailureRef failure) {
  std::lock_guard lock(machine.mutex_);
  machine.fail(*this, failure);
}

Event Simulation::submit(SimStream &stream, const DeviceCommand &command) {
  const Event event{&stream.progress, ++stream.submitted};
  const size_t entry = logCommand(stream, command, event);
  const DeviceFailureRef lost = device(stream.device).lost;
  if (lost)
    fail(stream, lost);
  if (const DeviceFailureRef failure = stream.progress.failure()) {
    if (command.kind == DeviceCommandKind::Signal)
      command.signal.semaphore->fail(failure);
    return event;
  }
  stream.queue.push_back({KeptCommand(command), nextOrder_++, entry});
  return event;
}

void Simulation::fail(SimStream &stream, const DeviceFailureRef &failure) {
  stream.progress.fail(failure);
  for (const SimStream::Queued &queued : stream.queue)
    if (queued.kept.command.kind == DeviceCommandKind::Signal)
      queued.kept.command.signal.semaphore->fail(failure);
  stream.queue.clear();
  stream.hangs = false;
}

void Simulation::lose(uint32_t index, const DeviceFailureRef &failure) {
  SimDevice &lost = device(index);
  lost.lost = failure;
  lost.memory.poisonAll();
  for (SimStream *stream : streams_)
    if (stream && stream->device == index)
      fail(*stream, failure);
}

//--- Running ----------------------------------------------------------------------------------------------------------
int Simulation::awaitAny(std::span<const Event> events, int64_t timeoutNs) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      do {
        for (size_t i = 0; i < events.size(); ++i)
          if (events[i].state() != Semaphore::State::Pending)
            return static_cast<int>(i);
      } while (runOne());
    }
    // No command is ready: another thread may signal an event or submit commands.
    const int64_t left = timeoutNs - std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    if (left <= 0)
      return -1;
    if (const int found = runtime::awaitAny(events, std::min<int64_t>(left, 1'000'000)); found >= 0)
      return found;
  }
}

bool Simulation::isReady(const SimStream &stream) const {
  auto waits = [](const SimStream &s) {
    return s.hangs || std::ranges::any_of(s.queue.front().kept.waits,
                                          [](const Event &wait) { return wait.state() == Semaphore::State::Pending; });
  };
  if (waits(stream))
    return false;
  const CollectiveRun *run = stream.queue.front().kept.command.collective.get();
  if (!run)
    return true;
  bool all = true;
  for (const Stream *each : run->members) {
    const auto &member = static_cast<const SimStream &>(*each);
    if (member.progress.failure())
      return true; // the failure of one member fails them all
    all &= !member.queue.empty() && member.queue.front().kept.command.collective.get() == run && !waits(member);
  }
  return all;
}

SimStream *Simulation::choose() {
  std::vector<SimStream *> ready;
  SimStream *first = nullptr;
  for (SimStream *stream : streams_) {
    if (!stream || stream->queue.empty() || stream->hangs)
      continue;
    if (!options_.interleaving && first && stream->queue.front().order > first->queue.front().order)
      continue;
    if (!isReady(*stream))
      continue;
    first = stream;
    ready.push_back(stream);
  }
  if (!options_.interleaving || ready.size() < 2)
    return options_.interleaving && !ready.empty() ? ready.front() : first;
  // Odd seeds choose at random. Even seeds choose by priorities that seldom change, so that some streams fall far
  // behind others.
  if (*options_.interleaving % 2)
    return ready[random_() % ready.size()];
  priorities_.resize(streams_.size(), 0);
  if (random_() % 16 == 0)
    for (double &priority : priorities_)
      priority = static_cast<double>(random_() >> 11);
  return *std::ranges::max_element(ready, {}, [&](const SimStream *s) { return priorities_[s->index]; });
}

bool Simulation::runOne() {
  SimStream *stream = choose();
  if (!stream)
    return false;
  execute(*stream);
  return true;
}

void Simulation::execute(SimStream &stream) {
  const DeviceRef ref = device(stream.device).caps().device;
  const DeviceCommand &command = stream.queue.front().kept.command;
  if (command.kind == DeviceCommandKind::Collective)
    return executeCollective(std::shared_ptr(command.collective));
  DeviceFailureRef failure;
  for (const Event &wait : command.waits)
    if (!failure && wait.state() == Semaphore::State::Failed)
      failure = wait.semaphore->failure();
  if (!failure && strikes(Fault::Kind::DeviceLost, ref)) {
    failure = std::make_shared<DeviceFailure>(FailureKind::DeviceLost, concat(nameOf(ref), " of ", name(), " was lost"),
                                              ref, command.tag);
    return lose(stream.device, failure);
  }
  if (!failure && strikes(Fault::Kind::Hangs, ref)) {
    stream.hangs = true;
    return;
  }
  if (!failure)
    failure = attempt(stream, command);
  if (failure)
    return fail(stream, failure);
  end(stream);
}

void Simulation::end(SimStream &stream) {
  SimStream::Queued queued = std::move(stream.queue.front());
  stream.queue.pop_front();
  ended_[queued.logged] = true;
  const DeviceCommand &done = queued.kept.command;
  const uint64_t value = stream.progress.value() + 1;
  if (options_.checkRaces) {
    races_.ended(stream.index, {&stream.progress, value});
    if (done.kind == DeviceCommandKind::Signal)
      races_.ended(stream.index, done.signal);
  }
  stream.progress.signal(value);
  if (done.kind == DeviceCommandKind::Signal)
    done.signal.semaphore->signal(done.signal.value);
}

/// Executes all parts of a collective at once, or none.
void Simulation::executeCollective(const std::shared_ptr<const CollectiveRun> &run) {
  std::vector<SimStream *> members;
  DeviceFailureRef failure;
  auto note = [&](const DeviceFailureRef &why) {
    if (why && !failure)
      failure = why;
  };
  for (Stream *each : run->members) {
    auto &member = static_cast<SimStream &>(*each);
    note(member.progress.failure());
    if (member.queue.empty() || member.queue.front().kept.command.collective != run)
      continue; // it fails at its own turn
    members.push_back(&member);
    for (const Event &wait : member.queue.front().kept.waits)
      if (wait.state() == Semaphore::State::Failed)
        note(wait.semaphore->failure());
  }
  std::vector<CollectiveOperands> operands;
  for (SimStream *member : members) {
    const DeviceCommand &part = member->queue.front().kept.command;
    const DeviceRef ref = device(member->device).caps().device;
    if (!failure && strikes(Fault::Kind::DeviceLost, ref)) {
      failure = std::make_shared<DeviceFailure>(FailureKind::DeviceLost,
                                                concat(nameOf(ref), " of ", name(), " was lost"), ref, part.tag);
      lose(member->device, failure);
      break;
    }
    if (!failure && strikes(Fault::Kind::Hangs, ref)) {
      member->hangs = true;
      return;
    }
    if (!failure)
      note(checkAddresses(*member, part));
    if (!failure && options_.checkRaces)
      note(checkRaces(*member, part));
    const Region &source = part.regions.front(), &target = part.regions.back();
    const bool hasSource = part.regions.size() > 1;
    operands.push_back(
        {hasSource ? source.address : nullptr, target.address, hasSource ? source.bytes : 0, target.bytes});
  }
  if (failure) {
    for (SimStream *member : members)
      fail(*member, failure);
    return;
  }
  if (options_.computes)
    combine(*run, operands);
  for (SimStream *member : members)
    end(*member);
}

DeviceFailureRef Simulation::attempt(SimStream &stream, const DeviceCommand &command) {
  const DeviceRef ref = device(stream.device).caps().device;
  if (DeviceFailureRef failure = checkAddresses(stream, command))
    return failure;
  if (options_.checkRaces)
    if (DeviceFailureRef failure = checkRaces(stream, command))
      return failure;
  if (command.kind == DeviceCommandKind::Launch && strikes(Fault::Kind::LaunchFails, ref))
    return std::make_shared<DeviceFailure>(
        FailureKind::Launch, concat(nameOf(ref), " of ", name(), " refused kernel '", command.desc->symbol, "'"),
        ref, command.tag);
  const bool isCopy = command.kind == DeviceCommandKind::Copy;
  const bool corrupt = isCopy && strikes(Fault::Kind::CopyCorrupted, ref);
  if (!options_.computes)
    return nullptr;
  if (options_.isolate && command.kind == DeviceCommandKind::Launch)
    return isolated(stream, command);
  auto isRead = [&](const Region &region) { // whether the region is also read, so updated in place
    return std::ranges::any_of(command.regions, [&](const Region &other) {
      return other.access != Access::Write && other.address == region.address;
    });
  };
  if (options_.poison)
    for (const Region &region : command.regions)
      if (region.access == Access::Write && region.bytes > 0 && !isRead(region))
        std::memset(region.address, kPoison, static_cast<size_t>(region.bytes));
  std::vector<void *> addresses;
  for (const Region &region : command.regions)
    addresses.push_back(region.address);
  if (DeviceFailureRef failure = workOnHost(command, addresses, ref))
    return failure;
  if (corrupt && command.regions[1].bytes > 0)
    static_cast<std::byte *>(addresses[1])[command.regions[1].bytes / 2] ^= std::byte(16);
  if (isCopy && options_.checkCopies &&
      checksum(addresses[0], command.regions[0].bytes) != checksum(addresses[1], command.regions[1].bytes))
    return std::make_shared<DeviceFailure>(
        FailureKind::Corrupted, concat("a copy of ", command.regions[0].bytes, " bytes arrived with other contents"),
        ref, command.tag);
  return nullptr;
}

std::string Simulation::describe(const Region &region) const {
  std::string where = "nowhere";
  for (const auto &each : devices_)
    for (MemoryKind kind : {MemoryKind::Device, MemoryKind::Pinned, MemoryKind::Host})
      if (static_cast<const SimDevice &>(*each).memory.holds(region.address, region.bytes, kind))
        where = concat("in the ", kind == MemoryKind::Pinned ? "pinned " : "", "memory of ", each->caps().name);
  return concat(region.bytes, " bytes that are said to be in the ",
                region.home.memory == MemoryKind::Pinned ? "pinned " : "", "memory of ", nameOf(region.home.device),
                ", but are ", where);
}

DeviceFailureRef Simulation::checkAddresses(SimStream &stream, const DeviceCommand &command) {
  const DeviceRef ref = device(stream.device).caps().device;
  auto failure = [&](FailureKind kind, std::string message) {
    return std::make_shared<DeviceFailure>(kind, std::move(message), ref, command.tag);
  };
  bool isNear = false;
  for (const Region &region : command.regions) {
    const DeviceModel *model = model_.find(region.home.device);
    if (!model || !device(static_cast<uint32_t>(model - model_.devices.data()))
                       .memory.holds(region.address, region.bytes, region.home.memory))
      return failure(FailureKind::Memory,
                     concat(region.access == Access::Read ? "reads " : "writes ", describe(region)));
    isNear |= region.home.device == ref;
    if (command.kind != DeviceCommandKind::Copy && region.home.device != ref)
      return failure(FailureKind::Memory, concat("on ", nameOf(ref), " touches ", region.bytes,
                                                 " bytes in the memory of ", nameOf(region.home.device)));
  }
  if (command.kind == DeviceCommandKind::Copy) {
    const DeviceRef from = command.regions[0].home.device, to = command.regions[1].home.device;
    if (!isNear || (from != to && !model_.route(from, to)))
      return failure(FailureKind::Unsupported,
                     concat(nameOf(ref), " of ", name(), " cannot copy from ", nameOf(from), " to ", nameOf(to)));
  }
  return nullptr;
}

DeviceFailureRef Simulation::checkRaces(SimStream &stream, const DeviceCommand &command) {
  std::vector<RaceCheck::Checked> regions;
  for (const Region &region : command.regions) {
    const auto it = std::ranges::find(devices_, region.home.device, [](const auto &d) { return d->caps().device; });
    regions.push_back({region, !static_cast<const SimDevice &>(**it).memory.isAllocated(region.address)});
  }
  uint64_t other = 0;
  const std::string problem = races_.access(stream.index, command.tag, regions, command.waits, other);
  if (problem.empty())
    return nullptr;
  auto failure =
      std::make_shared<DeviceFailure>(FailureKind::Race, problem, device(stream.device).caps().device, command.tag);
  failure->otherTag = other;
  return failure;
}

DeviceFailureRef Simulation::isolated(SimStream &stream, const DeviceCommand &command) {
  const DeviceRef ref = device(stream.device).caps().device;
  Guards guards(command.regions);
  DeviceFailureRef failure = workOnHost(command, guards.addresses(), ref);
  if (failure)
    return failure;
  if (const std::string problem = guards.finish(); !problem.empty())
    return std::make_shared<DeviceFailure>(
        FailureKind::Overrun, concat("kernel '", command.desc->symbol, "' ", problem), ref, command.tag);
  return nullptr;
}

} // namespace sim
} // namespace tressel::runtime
