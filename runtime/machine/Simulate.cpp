#include "tressel/runtime/Simulate.h"

#include "runtime/schedule/Producers.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/CollectivePlan.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/KernelHistory.h"
#include "tressel/runtime/Ranks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <set>

namespace tressel::runtime {
namespace {

constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();
constexpr uint32_t kNone = UINT32_MAX;

/// Sends `bytes` over `links` after `latency`.
struct Transfer {
  double bytes = 0;
  Picoseconds latency = 0;
  std::vector<uint32_t> links; ///< indices into Costs::capacity
  double fastest = 0;          ///< bytes per second if no other transfer is active
  int64_t steps = 1;           ///< for a part of a collective: number of steps, each in lockstep with the other parts

  Picoseconds alone() const { return steps * (latency + picoseconds(bytes / fastest)); }
};
/// Time of a command when no other runs.
struct Work {
  SpanKind kind = SpanKind::Host;
  Picoseconds alone = 0;
  std::vector<Transfer> transfers; ///< in sequence: one for a copy, one per phase for a part of a collective
};

/// The parts of a collective, from command `first` on.
struct Ring {
  uint32_t first = 0, members = 0;
  uint32_t missing = 0;  ///< parts that are not ready yet
  Picoseconds ready = 0; ///< when the latest part became ready
  uint32_t held = 0;     ///< parts that hold their engine
  uint32_t done = 0;     ///< parts that have finished the current step
  size_t phase = 0;      ///< index into Work::transfers; their number when the collective has ended
  int64_t stepsLeft = 0; ///< steps left in the phase
};

/// Times of single commands on a machine, without contention.
class Costs {
public:
  Costs(const Schedule &schedule, const MachineModel &machine, const SimulateOptions &options)
      : s(schedule), machine(machine), options(options) {
    for (const LinkModel &link : machine.links)
      capacity.push_back(link.bytesPerSecond);
    for (const DeviceModel &device : machine.devices)
      capacity.push_back(device.bytesPerSecond);
    for (const StreamDesc &stream : s.streams) {
      deviceOf(stream.device);
      if (stream.device.kind == DeviceKind::Gpu)
        accelerators = std::max<uint32_t>(accelerators, stream.device.index + 1u);
    }
    // only for the host: the clock of simulated devices does not model caches between kernels
    if (machine.devices.size() == 1)
      footprint_ = footprintOf();
    std::vector<int64_t> held(machine.devices.size(), 0);
    for (const ArenaDesc &arena : s.arenas) {
      int64_t &bytes = held[deviceIndex(arena.device)];
      bytes += arena.bytes.number();
    }
    for (size_t i = 0; i < held.size(); ++i)
      if (held[i] > machine.devices[i].memoryBytes)
        throw InputError(concat("'", s.name, "' needs ", held[i], " bytes on ", machine.devices[i].name, ", which has ",
                                machine.devices[i].memoryBytes, " on ", machine.name));
  }

  std::vector<Picoseconds> linkTimes() const {
    std::vector<double> carried(machine.links.size(), 0);
    for (size_t i = 0; i < s.step.commands.size(); ++i) {
      const CommandKind kind = s.step.commands[i].kind;
      if (kind != CommandKind::Copy && kind != CommandKind::Collective)
        continue;
      for (const Transfer &transfer : workOf(s.step, i).transfers)
        for (uint32_t link : transfer.links)
          if (link < carried.size())
            carried[link] += transfer.bytes * static_cast<double>(transfer.steps);
    }
    std::vector<Picoseconds> times;
    for (size_t link = 0; link < carried.size(); ++link)
      times.push_back(picoseconds(carried[link] / machine.links[link].bytesPerSecond));
    return times;
  }

  /// Throws InputError for a device that the machine does not have.
  const DeviceModel &deviceOf(DeviceRef ref) const {
    const DeviceModel *device = machine.find(ref);
    if (!device)
      throw InputError(concat("'", s.name, "' uses ", nameOf(ref), ", which ", machine.name, " does not have"));
    return *device;
  }
  size_t deviceIndex(DeviceRef ref) const { return static_cast<size_t>(&deviceOf(ref) - machine.devices.data()); }
  /// Index of a device's memory in `capacity`.
  uint32_t memoryOf(DeviceRef ref) const { return static_cast<uint32_t>(machine.links.size() + deviceIndex(ref)); }
  double kernelSeconds(const CommandList &p, size_t i, double slower) const;
  /// The plan of a collective's part.
  struct Exchange {
    CollectiveGroup group;
    CollectivePlan plan;
    int64_t bytes = 0; ///< bytes of each member's result; of reduce_scatter, of its operand
  };
  Exchange exchangeOf(const CommandList &p, size_t i) const;
  /// The work of a command, without its bodies, which have clocks of their own.
  Work workOf(const CommandList &p, size_t i) const;

  const Schedule &s;
  const MachineModel &machine;
  const SimulateOptions &options;
  std::vector<double> capacity; ///< bytes per second of links, then of devices' memories

private:
  /// Bytes of the weights that a kernel reads. They are read again only a whole step later (in a loop at once), so they
  /// may have left the caches. If some are packed, only these count: they are read in place of the originals.
  double parameterBytes(const Command &c) const {
    double packed = 0, plain = 0;
    for (uint32_t i = 0; i < c.numOperands; ++i) {
      const BufferDesc &b = s.buffers[s.step.operands[c.firstOperand + i].buffer];
      if (b.space == Space::State)
        (s.states[b.index].kind == StateKind::Derived ? packed : plain) += static_cast<double>(b.bytes.number());
      else if (b.space == Space::Constant)
        plain += static_cast<double>(b.bytes.number());
    }
    return packed > 0 ? packed : plain;
  }
  /// Distinct bytes that a step accesses.
  double footprintOf() const {
    std::set<std::pair<Space, uint32_t>> known;
    double bytes = 0;
    for (const ArenaDesc &arena : s.arenas)
      bytes += static_cast<double>(arena.bytes.number());
    for (const Command &c : s.step.commands)
      for (uint32_t i = 0; i < c.numOperands; ++i) {
        const BufferDesc &b = s.buffers[s.step.operands[c.firstOperand + i].buffer];
        if (b.space != Space::Arena && known.insert({b.space, b.index}).second)
          bytes += static_cast<double>(b.bytes.number());
      }
    return bytes;
  }

  /// A transfer through links and the memories of its end devices.
  Transfer through(std::vector<uint32_t> links, std::initializer_list<DeviceRef> ends, double bytes) const {
    double latency = 0;
    for (uint32_t link : links)
      latency += machine.links[link].latencySeconds;
    Transfer transfer{.bytes = bytes, .latency = picoseconds(latency), .links = std::move(links)};
    for (DeviceRef end : ends)
      transfer.links.push_back(memoryOf(end));
    transfer.fastest = std::numeric_limits<double>::infinity();
    for (uint32_t link : transfer.links)
      transfer.fastest = std::min(transfer.fastest, capacity[link]);
    return transfer;
  }

  /// Adds the transfers of a member in each phase of a collective.
  void partOf(const CommandList &p, size_t i, Work &work) const {
    const Exchange exchange = exchangeOf(p, i);
    if (exchange.group.members == 1 || !options.transferTime)
      return;
    const CollectiveDesc &desc = s.collectives[p.commands[i].kernel];
    if (desc.axes.empty())
      sendToMember(p.commands[i].stream, desc, exchange.plan, work);
    else
      sendToRank(s.streams[p.commands[i].stream].device, exchange, work);
    for (const Transfer &transfer : work.transfers)
      work.alone += transfer.alone();
  }
  std::vector<DeviceRef> membersOf(const CollectiveDesc &desc) const {
    std::vector<DeviceRef> members;
    for (uint32_t member : desc.members)
      members.push_back(s.streams[member].device);
    return members;
  }
  void sendToMember(uint32_t stream, const CollectiveDesc &desc, const CollectivePlan &plan, Work &work) const {
    const std::vector<DeviceRef> members = membersOf(desc);
    const auto own = static_cast<size_t>(std::ranges::find(desc.members, stream) - desc.members.begin());
    for (const CollectivePhase &phase : plan.phases) {
      const DeviceRef from = members[own], to = members[peerOf(machine, members, own, plan.algorithm, phase)];
      const RouteModel *route = machine.route(from, to);
      if (!route)
        throw InputError(concat("'", s.name, "' has a collective in which ", nameOf(from), " sends to ", nameOf(to), ", but ",
                                machine.name, " has no route there"));
      work.transfers.push_back(through(route->links, {from, to}, static_cast<double>(phase.bytes)));
      work.transfers.back().steps = phase.steps;
    }
  }
  /// The peer's device is not part of the program: its memory is assumed to be as fast as this one's.
  void sendToRank(DeviceRef local, const Exchange &exchange, Work &work) const {
    for (const CollectivePhase &phase : exchange.plan.phases) {
      const Channel &channel = phase.crossesHosts ? exchange.group.between : exchange.group.within;
      if (channel.links.empty())
        throw InputError(concat(
            "'", s.name, "' exchanges with other ranks, but ", machine.name, " has no way from ", nameOf(local),
            phase.crossesHosts ? " to the accelerators of another host: they are reached by a port of \"network\""
                               : " to the other accelerators of its host"));
      Transfer transfer = through(channel.links, {local}, static_cast<double>(phase.bytes));
      transfer.steps = phase.steps;
      const bool isAlone = exchange.plan.algorithm == CollectiveAlgorithm::Ring && exchange.group.hosts > 1;
      transfer.fastest =
          std::min(transfer.fastest, isAlone ? channel.aloneBytesPerSecond : channel.message.bytesPerSecond);
      work.transfers.push_back(std::move(transfer));
    }
  }

  double footprint_ = 0;     ///< distinct bytes that a step accesses; 0: not modelled
  uint32_t accelerators = 0; ///< accelerators per rank
};

/// Predicted end of a body.
Picoseconds timeOf(const Costs &costs, const CommandList &body);

/// Seconds of a launch whose bytes from memory take `slower` times as long as alone. Operands in a cache are not slowed
/// down.
double Costs::kernelSeconds(const CommandList &p, size_t i, double slower) const {
  const Command &c = p.commands[i];
  const KernelDesc &k = s.kernels[c.kernel];
  const StreamDesc &stream = s.streams[c.stream];
  const DeviceModel &whole = deviceOf(stream.device);
  const DeviceModel device = stream.kind == StreamKind::Lane ? whole.lane() : whole;
  KernelWork work =
      runtime::workOf(k, c.numOperands ? s.buffers[p.operands[c.firstOperand].buffer].type.dtype : f32);
  if (&p == &s.step && footprint_ > 0) {
    work.oldBytes = std::min(parameterBytes(c), work.bytes);
    work.distance = footprint_;
  }
  const double predicted = workSeconds(device, work, slower);
  if (!machine.history || stream.kind == StreamKind::Lane)
    return predicted;
  std::vector<TensorType> types;
  for (uint32_t operand = 0; operand < c.numOperands; ++operand)
    types.push_back(s.buffers[p.operands[c.firstOperand + operand].buffer].type);
  const auto measured = measuredSeconds(machine, whole, k.key, shapeOf(types, static_cast<size_t>(k.numInputs)));
  if (!measured)
    return predicted;
  // The slowdown by concurrent copies is not measured: it is taken from the prediction.
  const double alone = slower == 1 ? predicted : workSeconds(device, work);
  return std::max(0.0, *measured - whole.commandSeconds) * (alone > 0 ? predicted / alone : 1);
}

Costs::Exchange Costs::exchangeOf(const CommandList &p, size_t i) const {
  const Command &c = p.commands[i];
  const CollectiveDesc &desc = s.collectives[c.kernel];
  const BufferDesc &target = s.buffers[p.operands[c.firstOperand + c.numOperands - 1u].buffer];
  Exchange exchange;
  if (desc.axes.empty()) {
    exchange.group = groupOf(machine, membersOf(desc));
  } else if (numRanks(s.mesh, desc.axes) > 1) {
    std::vector<int64_t> sizes;
    for (const MeshAxis &axis : s.mesh)
      sizes.push_back(axis.size.number());
    auto group = groupOfRanks(machine, sizes, desc.axes, s.streams[c.stream].device, accelerators);
    if (!group) {
      const std::string larger = presetOfAtLeast(numRanks(s.mesh) * accelerators);
      throw InputError(concat("'", s.name, "' is for ", numRanks(s.mesh), " ranks with ", accelerators,
                              accelerators == 1 ? " accelerator each, but " : " accelerators each, but ", machine.name,
                              " has ", machine.numAccelerators(), " in all; ",
                              larger.empty() ? "" : concat("presets with a network take a size, as ", larger, ", and "),
                              "files say \"hosts\""));
    }
    exchange.group = std::move(*group);
  }
  exchange.bytes = target.bytes.number() * (desc.kind == CollectiveKind::ReduceScatter ? exchange.group.members : 1);
  exchange.plan = planCollective(desc.kind, exchange.group, exchange.bytes);
  return exchange;
}

Work Costs::workOf(const CommandList &p, size_t i) const {
  const Command &c = p.commands[i];
  const DeviceModel &device = deviceOf(s.streams[c.stream].device);
  const Operand *operands = p.operands.data() + c.firstOperand;
  Work work;
  auto take = [&](double seconds) {
    work.alone = options.computeTime ? picoseconds(device.commandSeconds + seconds) : 0;
  };
  switch (c.kind) {
  case CommandKind::Launch: {
    work.kind = SpanKind::Kernel;
    take(kernelSeconds(p, i, 1));
    break;
  }
  case CommandKind::Fill:
    work.kind = SpanKind::Fill;
    take(static_cast<double>(s.buffers[operands[0].buffer].bytes.number()) / device.bytesPerSecond);
    break;
  case CommandKind::Copy: {
    work.kind = SpanKind::Copy;
    const BufferDesc &source = s.buffers[operands[0].buffer], &target = s.buffers[operands[1].buffer];
    const Home fromHome = homeOf(s, source), toHome = homeOf(s, target);
    const DeviceRef from = fromHome.device, to = toHome.device;
    if (from == to) {
      take(2 * static_cast<double>(source.bytes.number()) / device.bytesPerSecond);
      break;
    }
    const RouteModel *route = machine.route(from, to);
    if (!route)
      throw InputError(concat("'", s.name, "' copies from ", nameOf(from), " to ", nameOf(to), ", but ", machine.name,
                              " has no route there"));
    if (!options.transferTime)
      break;
    Transfer transfer = through(route->links, {from, to}, static_cast<double>(source.bytes.number()));
    if ((fromHome.memory == MemoryKind::Host || toHome.memory == MemoryKind::Host) && route->pageableBytesPerSecond > 0)
      transfer.fastest = std::min(transfer.fastest, route->pageableBytesPerSecond);
    work.alone = transfer.alone();
    work.transfers.push_back(std::move(transfer));
    break;
  }
  case CommandKind::HostCall:
    break;
  case CommandKind::Collective:
    work.kind = SpanKind::Collective;
    partOf(p, i, work);
    break;
  case CommandKind::Branch:
    work.kind = SpanKind::Control;
    work.alone = std::max(timeOf(*this, s.bodies[c.body]), timeOf(*this, s.bodies[c.body + 1]));
    break;
  case CommandKind::While:
    work.kind = SpanKind::Control;
    work.alone = 2 * timeOf(*this, s.bodies[c.body]) + timeOf(*this, s.bodies[c.body + 1]);
    break;
  case CommandKind::Loop: {
    work.kind = SpanKind::Control;
    const Picoseconds once = p.scalars[c.firstScalar].number() > 0 ? timeOf(*this, s.bodies[c.body]) : 0;
    if (__builtin_mul_overflow(once, p.scalars[c.firstScalar].number(), &work.alone))
      work.alone = kNever / 8;
    break;
  }
  }
  return work;
}

//--- The clock --------------------------------------------------------------------------------------------------------
/// Runs the commands of one list in virtual time: which engine executes which command, and at what rate while others
/// share links and memory.
class ListClock {
public:
  ListClock(const Costs &costs, const CommandList &list);
  /// Returns the end of the last command.
  Picoseconds run();
  /// After `run`: spans, bounds and the critical path.
  void fill(Timeline &timeline) const;

private:
  struct Engine {
    EngineTable::Engine of;
    /// By ready time, then stream and number of the command (for a part of a collective: those of the first part), then
    /// the command.
    std::set<std::tuple<Picoseconds, uint32_t, uint32_t, uint32_t>> queue;
    uint32_t running = kNone, last = kNone;
  };
  struct Running {
    uint32_t command;
    const Work *work;
    const Transfer *transfer = nullptr; ///< the current one of its transfers
    bool flows = false;                 ///< a transfer whose latency is over
    double left = 0;                    ///< bytes or picoseconds to go, at `since`
    double rate = 1;                    ///< of `left`, per picosecond
    Picoseconds since = 0;              ///< time to which `left` refers
    Picoseconds finish = 0; ///< predicted end at this rate; for a transfer in its latency: end of the latency
  };

  using Event = std::pair<Picoseconds, uint32_t>;

  Ring *ringFor(uint32_t i) { return ringOf_[i] == kNone ? nullptr : &rings_[ringOf_[i]]; }
  const Ring *ringFor(uint32_t i) const { return ringOf_[i] == kNone ? nullptr : &rings_[ringOf_[i]]; }
  /// Range of commands: the command alone, or all parts of its collective.
  std::pair<uint32_t, uint32_t> partsOf(uint32_t i) const {
    const Ring *ring = ringFor(i);
    return ring ? std::pair(ring->first, ring->first + ring->members) : std::pair(i, i + 1);
  }
  /// To be called when all its dependences are over.
  void becomes(uint32_t i);
  /// Ends or advances all jobs that are due now. Returns whether there were any.
  bool endDue();
  /// Starts the flow of a transfer whose latency is over.
  bool beginsToFlow(Running &r) const;
  /// Begins the next step for all parts, or ends them after the last one.
  void beginStep(Ring &ring);
  /// Ends a step of one part; the last part begins the next step of all. False if the collective has no further steps.
  bool endsStep(Running &r);
  void end(uint32_t i);
  /// Lets idle engines take the heads of their queues. Returns whether any did.
  bool beginReady();
  void begin(uint32_t from, uint32_t to);
  void shareLinks(std::vector<double> &rates) const;
  void setRates();
  double kernelRate(const Running &r, const std::vector<double> &flow) const;

  void bound(Timeline &timeline) const;
  void findCriticalPath(Timeline &timeline) const;

  const Costs &costs_;
  const Schedule &s_;
  const CommandList &p_;
  const uint32_t n_;
  std::vector<Engine> engines_;
  std::vector<Ring> rings_;
  // By command.
  std::vector<Work> work_;
  std::vector<uint32_t> engineOf_, missing_, ringOf_;
  std::vector<std::vector<uint32_t>> needs_, followers_;
  std::vector<Picoseconds> ready_, begin_, end_;
  std::vector<uint32_t> before_; ///< by command: the one before it on its engine

  Picoseconds now_ = 0, finished_ = 0;
  uint32_t done_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> becoming_;
  std::vector<Running> active_;
};

ListClock::ListClock(const Costs &costs, const CommandList &list)
    : costs_(costs), s_(costs.s), p_(list), n_(static_cast<uint32_t>(list.commands.size())), work_(n_), engineOf_(n_), missing_(n_, 0), ringOf_(n_, kNone),
      needs_(n_), followers_(n_), ready_(n_, 0), begin_(n_, 0), end_(n_, kNever), before_(n_, kNone) {
  const EngineTable table(costs.machine, s_.streams);
  for (const EngineTable::Engine &engine : table.engines)
    engines_.push_back({.of = engine});
  std::vector<uint32_t> last(s_.streams.size(), kNone);
  std::map<size_t, Picoseconds> issued; // by device
  for (uint32_t i = 0; i < n_; ++i) {
    const Command &c = p_.commands[i];
    work_[i] = costs.workOf(p_, i);
    if (c.kind == CommandKind::Collective) {
      const auto members = static_cast<uint32_t>(s_.collectives[c.kernel].members.size());
      if (rings_.empty() || rings_.back().first + rings_.back().members <= i)
        rings_.push_back({.first = i, .members = members, .missing = members});
      ringOf_[i] = static_cast<uint32_t>(rings_.size() - 1);
    }
    engineOf_[i] = table.ofStream[c.stream];
    const DeviceModel &device = costs.deviceOf(s_.streams[c.stream].device);
    ready_[i] = issued[costs.deviceIndex(device.device)] += picoseconds(device.issueSeconds);
    auto need = [&](uint32_t other) {
      if (std::ranges::find(needs_[i], other) != needs_[i].end())
        return;
      needs_[i].push_back(other);
      followers_[other].push_back(i);
      ++missing_[i];
    };
    for (uint32_t w = 0; w < c.numWaits; ++w)
      need(p_.waits[c.firstWait + w].command);
    if (last[c.stream] != kNone)
      need(last[c.stream]);
    last[c.stream] = i;
  }
}

void ListClock::becomes(uint32_t i) {
  Ring *ring = ringFor(i);
  if (!ring) {
    becoming_.emplace(ready_[i], i);
    return;
  }
  ring->ready = std::max(ring->ready, ready_[i]);
  if (--ring->missing == 0)
    for (uint32_t part = ring->first; part < ring->first + ring->members; ++part)
      becoming_.emplace(ready_[part] = ring->ready, part);
}

Picoseconds ListClock::run() {
  for (uint32_t i = 0; i < n_; ++i)
    if (!missing_[i])
      becomes(i);
  while (done_ < n_) {
    now_ = becoming_.empty() ? kNever : becoming_.top().first;
    for (const Running &r : active_)
      now_ = std::min(now_, r.finish);
    wholePicoseconds(static_cast<double>(now_)); // throws if the time is too large for sums
    // Alternates between ends and begins until neither happens at this time.
    bool changed = false;
    for (bool again = true; again; changed |= again) {
      again = endDue();
      again |= beginReady();
    }
    if (changed)
      setRates();
  }
  return finished_;
}

bool ListClock::beginsToFlow(Running &r) const {
  if (!r.transfer || r.flows)
    return false;
  r.flows = true;
  r.left = r.transfer->bytes;
  r.rate = 0; // set by setRates
  r.since = now_;
  r.finish = kNever;
  return true;
}

void ListClock::beginStep(Ring &ring) {
  for (Running &part : active_)
    if (ringFor(part.command) == &ring) {
      part.transfer = ring.phase < part.work->transfers.size() ? &part.work->transfers[ring.phase] : nullptr;
      part.flows = false;
      part.left = part.transfer ? static_cast<double>(part.transfer->latency) : 0;
      part.rate = 1;
      part.since = now_;
      part.finish = part.transfer ? now_ + part.transfer->latency : now_;
    }
}

bool ListClock::endsStep(Running &r) {
  Ring *ring = ringFor(r.command);
  if (!ring || !r.transfer)
    return false;
  r.flows = false;
  r.finish = kNever; // until all parts have ended the step
  if (++ring->done < ring->members)
    return true;
  ring->done = 0;
  if (--ring->stepsLeft == 0 && ++ring->phase < r.work->transfers.size())
    ring->stepsLeft = r.work->transfers[ring->phase].steps;
  beginStep(*ring);
  return true;
}

bool ListClock::endDue() {
  bool any = false;
  for (size_t k = 0; k < active_.size();) {
    Running &r = active_[k];
    if (r.finish > now_) {
      ++k;
      continue;
    }
    any = true;
    if (beginsToFlow(r)) {
      ++k;
    } else if (endsStep(r)) {
      const bool areAllDue = ringFor(r.command)->done == 0; // whether parts before this one are due too
      k = areAllDue ? 0 : k + 1;
    } else {
      end(r.command);
      active_.erase(active_.begin() + static_cast<ptrdiff_t>(k));
    }
  }
  return any;
}

void ListClock::end(uint32_t i) {
  end_[i] = now_;
  finished_ = std::max(finished_, now_);
  ++done_;
  engines_[engineOf_[i]].running = kNone;
  engines_[engineOf_[i]].last = i;
  for (uint32_t f : followers_[i]) {
    ready_[f] = std::max(ready_[f], now_);
    if (--missing_[f] == 0)
      becomes(f);
  }
}

bool ListClock::beginReady() {
  for (; !becoming_.empty() && becoming_.top().first <= now_; becoming_.pop()) {
    const uint32_t i = becoming_.top().second, first = partsOf(i).first;
    engines_[engineOf_[i]].queue.emplace(ready_[i], p_.commands[first].stream, first, i);
  }
  bool any = false;
  for (Engine &engine : engines_) {
    if (engine.running != kNone || engine.queue.empty())
      continue;
    const uint32_t i = std::get<3>(*engine.queue.begin());
    engine.queue.erase(engine.queue.begin());
    engine.running = i;
    before_[i] = engine.last;
    any = true;
    if (Ring *ring = ringFor(i)) { // engines are held until all parts have theirs
      if (++ring->held < ring->members)
        continue;
      if (!work_[i].transfers.empty())
        ring->stepsLeft = work_[i].transfers[0].steps;
    }
    begin(partsOf(i).first, partsOf(i).second);
  }
  return any;
}

void ListClock::begin(uint32_t from, uint32_t to) {
  for (uint32_t each = from; each < to; ++each) {
    begin_[each] = now_;
    const Work &w = work_[each];
    const Transfer *transfer = w.transfers.empty() ? nullptr : w.transfers.data();
    const Picoseconds first = transfer ? transfer->latency : w.alone;
    active_.push_back({each, &w, transfer, false, static_cast<double>(first), 1, now_, now_ + first});
  }
}

/// Max-min fair rates: repeatedly finds the most loaded link, gives its transfers equal shares, and divides what is
/// left among the others.
void ListClock::shareLinks(std::vector<double> &rates) const {
  const std::vector<Running> &active = active_;
  const std::vector<double> &capacity = costs_.capacity;
  std::vector<double> left = capacity;
  std::vector<bool> fixed(active.size());
  for (size_t i = 0; i < active.size(); ++i)
    fixed[i] = !active[i].flows;
  for (;;) {
    std::vector<int> users(capacity.size(), 0);
    for (size_t i = 0; i < active.size(); ++i)
      if (!fixed[i])
        for (uint32_t link : active[i].transfer->links)
          ++users[link];
    double share = std::numeric_limits<double>::infinity();
    for (size_t link = 0; link < users.size(); ++link)
      if (users[link])
        share = std::min(share, left[link] / users[link]);
    size_t slowest = active.size();
    for (size_t i = 0; i < active.size(); ++i)
      if (!fixed[i] && active[i].transfer->fastest < share &&
          (slowest == active.size() || active[i].transfer->fastest < active[slowest].transfer->fastest))
        slowest = i;
    bool any = false;
    auto fix = [&](size_t i, double rate) {
      fixed[i] = any = true;
      rates[i] = rate;
      for (uint32_t link : active[i].transfer->links)
        left[link] = std::max(0.0, left[link] - rate);
    };
    if (slowest != active.size()) {
      fix(slowest, active[slowest].transfer->fastest);
      continue;
    }
    // All transfers on links with this least share.
    const std::vector<double> before = left;
    for (size_t i = 0; i < active.size(); ++i)
      if (!fixed[i] && std::ranges::any_of(active[i].transfer->links, [&](uint32_t link) {
            return before[link] / users[link] <= share * (1 + 1e-12);
          }))
        fix(i, share);
    if (!any)
      return;
  }
}

/// The rate of a kernel whose memory is also used by transfers.
double ListClock::kernelRate(const Running &r, const std::vector<double> &flow) const {
  const DeviceModel &device = costs_.deviceOf(engines_[engineOf_[r.command]].of.device);
  if (r.work->kind != SpanKind::Kernel || device.contention == 0)
    return r.rate;
  const uint32_t memory = costs_.memoryOf(device.device);
  double beside = 0;
  for (size_t k = 0; k < active_.size(); ++k)
    if (active_[k].flows &&
        std::ranges::find(active_[k].transfer->links, memory) != active_[k].transfer->links.end())
      beside += flow[k];
  return (device.commandSeconds + costs_.kernelSeconds(p_, r.command, 1)) /
         (device.commandSeconds + costs_.kernelSeconds(p_, r.command, 1 + device.contention * beside / device.bytesPerSecond));
}

void ListClock::setRates() {
  std::vector<double> flow(active_.size(), 0);
  shareLinks(flow);
  for (size_t i = 0; i < active_.size(); ++i) {
    Running &r = active_[i];
    if (!r.flows && r.transfer)
      continue; // it has not begun to flow
    const double rate = r.flows ? flow[i] * 1e-12 : kernelRate(r, flow);
    if (rate == r.rate)
      continue; // avoids rounding: the finish stays exact
    r.left -= static_cast<double>(now_ - r.since) * r.rate;
    r.since = now_;
    r.rate = rate;
    r.finish = now_ + wholePicoseconds(std::max(0.0, r.left) / rate);
  }
}

//--- The result -------------------------------------------------------------------------------------------------------
void ListClock::fill(Timeline &timeline) const {
  for (const Engine &engine : engines_)
    timeline.resources.push_back({engine.of.name, engine.of.device, engine.of.kind, 0});
  bound(timeline);
  for (uint32_t i = 0; i < n_; ++i) {
    Span span = spanOf(s_, i);
    span.resource = engineOf_[i];
    span.begin = begin_[i];
    span.end = end_[i];
    for (uint32_t w = 0; w < p_.commands[i].numWaits; ++w)
      span.after.push_back(p_.waits[p_.commands[i].firstWait + w].command);
    timeline.spans.push_back(std::move(span));
  }
  findCriticalPath(timeline);
  arrange(timeline);
}

/// Lower bounds for any order of the commands: the longest chain of data dependences, and the total work of each engine
/// and link.
void ListClock::bound(Timeline &timeline) const {
  const std::vector<double> &capacity = costs_.capacity;
  std::vector<Picoseconds> chain(n_, 0), total(engines_.size(), 0);
  std::vector<double> carried(capacity.size(), 0);
  const std::vector<std::vector<uint32_t>> producers = producersOf(s_, p_);
  for (uint32_t i = 0; i < n_; ++i) { // producers come earlier, so chains are complete in issue order
    Picoseconds longest = 0, alone = work_[i].alone;
    for (auto [part, to] = partsOf(i); part < to; ++part) {
      alone = std::max(alone, work_[part].alone);
      for (uint32_t producer : producers[part])
        longest = std::max(longest, chain[producer]);
    }
    chain[i] = longest + alone;
    timeline.lowerBound = std::max(timeline.lowerBound, chain[i]);
    total[engineOf_[i]] += work_[i].alone;
    for (const Transfer &transfer : work_[i].transfers)
      for (uint32_t link : transfer.links)
        carried[link] += transfer.bytes * static_cast<double>(transfer.steps);
  }
  for (Picoseconds busy : total)
    timeline.lowerBound = std::max(timeline.lowerBound, busy);
  for (size_t link = 0; link < capacity.size(); ++link)
    timeline.lowerBound = std::max(timeline.lowerBound, static_cast<Picoseconds>(carried[link] / capacity[link] * 1e12));
  // The sums above round up per command, the clock only per end, so they may exceed the end by a little.
  Picoseconds last = 0;
  for (Picoseconds each : end_)
    last = std::max(last, each);
  if (timeline.lowerBound - last <= n_)
    timeline.lowerBound = std::min(timeline.lowerBound, last);
}

/// Follows the path backward from the last command: to the latest end among the commands before it in its stream, on
/// its engine or by a wait.
void ListClock::findCriticalPath(Timeline &timeline) const {
  uint32_t at = kNone;
  for (uint32_t i = 0; i < n_; ++i)
    if (at == kNone || end_[i] >= end_[at])
      at = i;
  while (at != kNone) {
    timeline.criticalPath.push_back(at);
    uint32_t latest = kNone;
    auto consider = [&](uint32_t other) {
      if (other != kNone && (latest == kNone || end_[other] > end_[latest]))
        latest = other;
    };
    for (auto [part, to] = partsOf(at); part < to; ++part) {
      consider(before_[part]);
      for (uint32_t need : needs_[part])
        consider(need);
    }
    at = latest;
  }
  std::ranges::reverse(timeline.criticalPath);
}

Picoseconds timeOf(const Costs &costs, const CommandList &body) { return ListClock(costs, body).run(); }

} // namespace

Timeline simulate(const Schedule &schedule, const MachineModel &machine, const SimulateOptions &options) {
  const Costs costs(schedule, machine, options);
  Timeline timeline{.kind = TimelineKind::Simulated, .program = schedule.name, .machine = machine.name};
  ListClock clock(costs, schedule.step);
  clock.run();
  clock.fill(timeline);
  return timeline;
}

std::vector<Picoseconds> linkTimes(const Schedule &schedule, const MachineModel &machine) {
  const SimulateOptions options;
  return Costs(schedule, machine, options).linkTimes();
}

std::vector<CollectiveUse> collectivesOf(const Schedule &schedule, const MachineModel &machine) {
  const SimulateOptions options;
  const Costs costs(schedule, machine, options);
  std::vector<CollectiveUse> uses;
  const CommandList &p = schedule.step;
  for (uint32_t i = 0; i < p.commands.size(); ++i) {
    if (p.commands[i].kind != CommandKind::Collective)
      continue;
    const CollectiveDesc &desc = schedule.collectives[p.commands[i].kernel];
    if (!desc.members.empty() && desc.axes.empty() && p.commands[i].stream != desc.members.front())
      continue; // its first part represents it
    const auto [group, plan, bytes] = costs.exchangeOf(p, i);
    const std::string span = spanOf(schedule, i).name, name = span.substr(0, span.find(' '));
    CollectiveUse *use = nullptr;
    for (CollectiveUse &other : uses)
      if (other.name == name && other.algorithm == plan.algorithm && other.members == group.members && other.hosts == group.hosts)
        use = &other;
    if (!use)
      use = &uses.emplace_back(
          CollectiveUse{.name = name, .members = group.members, .hosts = group.hosts, .algorithm = plan.algorithm});
    ++use->count;
    use->bytes += bytes;
    use->seconds += plan.seconds;
  }
  return uses;
}

} // namespace tressel::runtime
