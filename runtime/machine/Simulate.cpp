#include "tressel/runtime/Simulate.h"

#include "runtime/schedule/Producers.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/KernelHistory.h"
#include "tressel/runtime/Ranks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <set>

namespace tressel::runtime {
namespace {

constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();
constexpr uint32_t kNone = UINT32_MAX;

/// What a command costs when nothing else runs.
struct Work {
  SpanKind kind = SpanKind::Host;
  Picoseconds alone = 0;
  // Of a transfer: `bytes` over `links` after `latency`.
  double bytes = 0;
  Picoseconds latency = 0;
  std::vector<uint32_t> links; ///< capacities (Simulator::capacity)
  double fastest = 0;          ///< bytes per second, alone
  int64_t steps = 1;           ///< of a collective's part: that often, together with the others
};

/// The parts of a collective, from command `first` on.
struct Ring {
  uint32_t first = 0, members = 0;
  uint32_t missing = 0;  ///< parts that are not ready
  Picoseconds ready = 0; ///< those that are
  uint32_t held = 0;     ///< parts that have their engine
  uint32_t done = 0;     ///< parts that have ended the step
  int64_t stepsLeft = 0;
};

class Simulator {
public:
  Simulator(const Schedule &schedule, const MachineModel &machine, const SimulateOptions &options)
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
    if (machine.devices.size() == 1) // the clock of simulated devices knows no caches between kernels
      footprint_ = footprintOf();
    std::vector<int64_t> held(machine.devices.size(), 0);
    for (const ArenaDesc &arena : s.arenas) {
      int64_t &bytes = held[deviceIndex(arena.device)];
      bytes += arena.bytes;
    }
    for (size_t i = 0; i < held.size(); ++i)
      if (held[i] > machine.devices[i].memoryBytes)
        throw InputError(concat("'", s.name, "' needs ", held[i], " bytes on ", machine.devices[i].name, ", which has ",
                                machine.devices[i].memoryBytes, " on ", machine.name));
  }

  Timeline run() {
    Timeline timeline{.kind = TimelineKind::Simulated, .program = s.name, .machine = machine.name};
    simulate(s.step, &timeline);
    return timeline;
  }

  std::vector<Picoseconds> linkTimes() {
    std::vector<double> carried(machine.links.size(), 0);
    for (size_t i = 0; i < s.step.commands.size(); ++i) {
      const CommandKind kind = s.step.commands[i].kind;
      if (kind != CommandKind::Copy && kind != CommandKind::Collective)
        continue;
      const Work work = workOf(s.step, i);
      for (uint32_t link : work.links)
        if (link < carried.size())
          carried[link] += work.bytes * static_cast<double>(work.steps);
    }
    std::vector<Picoseconds> times;
    for (size_t link = 0; link < carried.size(); ++link)
      times.push_back(picoseconds(carried[link] / machine.links[link].bytesPerSecond));
    return times;
  }

private:
  /// Of the weights that the kernel reads, which wait a whole step until they are read again (in a loop they are read again at once). What is
  /// packed ahead is read instead of what it was made of.
  double parameterBytes(const Command &c) const {
    double packed = 0, plain = 0;
    for (uint32_t i = 0; i < c.numOperands; ++i) {
      const BufferDesc &b = s.buffers[s.step.operands[c.firstOperand + i].buffer];
      if (b.space == Space::State)
        (s.states[b.index].kind == StateKind::Derived ? packed : plain) += static_cast<double>(b.bytes);
      else if (b.space == Space::Constant)
        plain += static_cast<double>(b.bytes);
    }
    return packed > 0 ? packed : plain;
  }
  /// Bytes that a step touches, each once.
  double footprintOf() const {
    std::set<std::pair<Space, uint32_t>> known;
    double bytes = 0;
    for (const ArenaDesc &arena : s.arenas)
      bytes += static_cast<double>(arena.bytes);
    for (const Command &c : s.step.commands)
      for (uint32_t i = 0; i < c.numOperands; ++i) {
        const BufferDesc &b = s.buffers[s.step.operands[c.firstOperand + i].buffer];
        if (b.space != Space::Arena && known.insert({b.space, b.index}).second)
          bytes += static_cast<double>(b.bytes);
      }
    return bytes;
  }

  //--- Costs --------------------------------------------------------------------------------------------------------
  size_t deviceIndex(DeviceRef ref) const { return static_cast<size_t>(&deviceOf(ref) - machine.devices.data()); }
  const DeviceModel &deviceOf(DeviceRef ref) const {
    const DeviceModel *device = machine.find(ref);
    if (!device)
      throw InputError(concat("'", s.name, "' uses ", nameOf(ref), ", which ", machine.name, " does not have"));
    return *device;
  }

  /// A launch's work, where its bytes take `slower` times as long as alone. Operands in a cache do not notice.
  double kernelSeconds(const CommandList &p, size_t i, double slower) const {
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
    // What copies beside it cost is not measured: as much more as by the figures.
    const double alone = slower == 1 ? predicted : workSeconds(device, work);
    return std::max(0.0, *measured - whole.commandSeconds) * (alone > 0 ? predicted / alone : 1);
  }

  Work workOf(const CommandList &p, size_t i) {
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
      take(static_cast<double>(s.buffers[operands[0].buffer].bytes) / device.bytesPerSecond);
      break;
    case CommandKind::Copy: {
      work.kind = SpanKind::Copy;
      const BufferDesc &source = s.buffers[operands[0].buffer], &target = s.buffers[operands[1].buffer];
      const Home fromHome = homeOf(s, source), toHome = homeOf(s, target);
      const DeviceRef from = fromHome.device, to = toHome.device;
      if (from == to) {
        take(2 * static_cast<double>(source.bytes) / device.bytesPerSecond);
        break;
      }
      const RouteModel *route = machine.route(from, to);
      if (!route)
        throw InputError(concat("'", s.name, "' copies from ", nameOf(from), " to ", nameOf(to), ", but ", machine.name,
                                " has no route there"));
      if (!options.transferTime)
        break;
      alongRoute(work, *route, static_cast<double>(source.bytes),
                 fromHome.memory == MemoryKind::Host || toHome.memory == MemoryKind::Host);
      work.alone = work.latency + picoseconds(work.bytes / work.fastest);
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
      work.alone = std::max(simulate(s.bodies[c.body], nullptr), simulate(s.bodies[c.body + 1], nullptr));
      break;
    case CommandKind::While:
      work.kind = SpanKind::Control;
      work.alone = 2 * simulate(s.bodies[c.body], nullptr) + simulate(s.bodies[c.body + 1], nullptr);
      break;
    case CommandKind::Loop: {
      work.kind = SpanKind::Control;
      const Picoseconds once = p.scalars[c.firstScalar] > 0 ? simulate(s.bodies[c.body], nullptr) : 0;
      if (__builtin_mul_overflow(once, p.scalars[c.firstScalar], &work.alone))
        work.alone = kNever / 8;
      break;
    }
    }
    return work;
  }

  void alongRoute(Work &work, const RouteModel &route, double bytes, bool pageable) {
    work.bytes = bytes;
    work.links = route.links;
    double latency = 0;
    for (uint32_t link : route.links)
      latency += machine.links[link].latencySeconds;
    work.latency = picoseconds(latency);
    for (DeviceRef end : {route.from, route.to})
      work.links.push_back(static_cast<uint32_t>(machine.links.size() + deviceIndex(end)));
    work.fastest = pageable && route.pageableBytesPerSecond > 0 ? route.pageableBytesPerSecond
                                                                : std::numeric_limits<double>::infinity();
    for (uint32_t link : work.links)
      work.fastest = std::min(work.fastest, capacity[link]);
  }

  /// Where the member behind rank 0 has its device, if each rank has as many accelerators as this one; where the
  /// machine has fewer, that of rank 1 stands for it.
  DeviceRef nextRank(const CollectiveDesc &desc, DeviceRef local) const {
    int64_t stride = 1;
    size_t axis = s.mesh.size();
    while (axis-- > desc.axes.back() + 1u)
      stride *= s.mesh[axis].size;
    auto ofRank = [&](int64_t rank) {
      return DeviceRef{local.kind,
                       static_cast<uint16_t>(std::min<int64_t>(rank * accelerators + local.index, UINT16_MAX))};
    };
    return machine.find(ofRank(stride)) ? ofRank(stride) : ofRank(1);
  }

  /// What a member sends to the next one, in each step around the ring.
  void partOf(const CommandList &p, size_t i, Work &work) {
    const Command &c = p.commands[i];
    const CollectiveDesc &desc = s.collectives[c.kernel];
    const auto &members = desc.members;
    const bool overAxes = !desc.axes.empty();
    const auto n = overAxes ? numRanks(s.mesh, desc.axes) : static_cast<int64_t>(members.size()),
               member = std::ranges::find(members, c.stream) - members.begin();
    const BufferDesc &target = s.buffers[p.operands[c.firstOperand + c.numOperands - 1u].buffer];
    const bool halves = desc.kind == CollectiveKind::AllGather || desc.kind == CollectiveKind::ReduceScatter;
    work.steps = halves ? n - 1 : 2 * (n - 1);
    if (n == 1 || !options.transferTime)
      return;
    // A member's piece: an n-th of the whole.
    const int64_t piece = desc.kind == CollectiveKind::ReduceScatter ? target.bytes : (target.bytes + n - 1) / n;
    const DeviceRef from = s.streams[c.stream].device,
                    to = overAxes ? nextRank(desc, from)
                                  : s.streams[members[static_cast<size_t>((member + 1) % n)]].device;
    const RouteModel *route = machine.route(from, to);
    if (!route && overAxes)
      throw InputError(concat("'", s.name, "' exchanges with other ranks, but ", machine.name, " has no route from ",
                              nameOf(from), " to ", nameOf(to), ", which would stand for the way to the next one"));
    if (!route)
      throw InputError(concat("'", s.name, "' sends around a ring from ", nameOf(from), " to ", nameOf(to), ", but ",
                              machine.name, " has no route there"));
    alongRoute(work, *route, static_cast<double>(piece), false);
    work.alone = work.steps * (work.latency + picoseconds(work.bytes / work.fastest));
  }

  //--- Engines ------------------------------------------------------------------------------------------------------
  struct Engine {
    EngineTable::Engine of;
    /// Ready, stream and number of the command (of a collective's part: those of the first), the command.
    std::set<std::tuple<Picoseconds, uint32_t, uint32_t, uint32_t>> queue;
    uint32_t running = kNone, last = kNone;
  };

  //--- The clock ----------------------------------------------------------------------------------------------------
  struct Running {
    uint32_t command;
    const Work *work;
    bool flows = false;     ///< a transfer past its latency
    double left = 0;        ///< bytes, or picoseconds of work
    double rate = 1;        ///< per picosecond
    Picoseconds since = 0;  ///< when `left` was so much
    Picoseconds finish = 0; ///< at this rate; of a transfer in its latency: when that ends
  };

  /// Max-min fair rates: the fullest link decides for all that use it, and the others share what is left.
  void shareLinks(std::vector<Running> &active, std::vector<double> &rates) {
    std::vector<double> left = capacity;
    std::vector<bool> fixed(active.size());
    for (size_t i = 0; i < active.size(); ++i)
      fixed[i] = !active[i].flows;
    for (;;) {
      std::vector<int> users(capacity.size(), 0);
      for (size_t i = 0; i < active.size(); ++i)
        if (!fixed[i])
          for (uint32_t link : active[i].work->links)
            ++users[link];
      double share = std::numeric_limits<double>::infinity();
      for (size_t link = 0; link < users.size(); ++link)
        if (users[link])
          share = std::min(share, left[link] / users[link]);
      size_t slowest = active.size();
      for (size_t i = 0; i < active.size(); ++i)
        if (!fixed[i] && active[i].work->fastest < share &&
            (slowest == active.size() || active[i].work->fastest < active[slowest].work->fastest))
          slowest = i;
      bool any = false;
      auto fix = [&](size_t i, double rate) {
        fixed[i] = any = true;
        rates[i] = rate;
        for (uint32_t link : active[i].work->links)
          left[link] = std::max(0.0, left[link] - rate);
      };
      if (slowest != active.size()) {
        fix(slowest, active[slowest].work->fastest);
        continue;
      }
      // All that use a link with this least share.
      const std::vector<double> before = left;
      for (size_t i = 0; i < active.size(); ++i)
        if (!fixed[i] && std::ranges::any_of(active[i].work->links, [&](uint32_t link) {
              return before[link] / users[link] <= share * (1 + 1e-12);
            }))
          fix(i, share);
      if (!any)
        return;
    }
  }

  void setRates(const CommandList &p, std::vector<Running> &active, const std::vector<Engine> &engines, const std::vector<uint32_t> &engineOf,
                Picoseconds now) {
    std::vector<double> flow(active.size(), 0);
    shareLinks(active, flow);
    for (size_t i = 0; i < active.size(); ++i) {
      Running &r = active[i];
      double rate = 1;
      if (r.flows) {
        rate = flow[i] * 1e-12;
      } else if (r.work->links.empty()) {
        const DeviceModel &device = deviceOf(engines[engineOf[r.command]].of.device);
        if (r.work->kind != SpanKind::Kernel || device.contention == 0)
          continue;
        const auto memory = static_cast<uint32_t>(machine.links.size() + deviceIndex(device.device));
        double beside = 0;
        for (size_t k = 0; k < active.size(); ++k)
          if (active[k].flows && std::ranges::find(active[k].work->links, memory) != active[k].work->links.end())
            beside += flow[k];
        rate = (device.commandSeconds + kernelSeconds(p, r.command, 1)) /
               (device.commandSeconds + kernelSeconds(p, r.command, 1 + device.contention * beside / device.bytesPerSecond));
      } else {
        continue; // in its latency
      }
      if (rate == r.rate)
        continue; // the finish stays exact
      r.left -= static_cast<double>(now - r.since) * r.rate;
      r.since = now;
      r.rate = rate;
      r.finish = now + wholePicoseconds(std::max(0.0, r.left) / rate);
    }
  }

  /// Returns when the last command ends. Bodies are simulated by themselves.
  Picoseconds simulate(const CommandList &p, Timeline *timeline) {
    const auto n = static_cast<uint32_t>(p.commands.size());
    const EngineTable table(machine, s.streams);
    const std::vector<uint32_t> &ofStream = table.ofStream;
    std::vector<Engine> engines;
    for (const EngineTable::Engine &engine : table.engines)
      engines.push_back({.of = engine});
    std::vector<Work> work(n);
    std::vector<uint32_t> engineOf(n), missing(n, 0);
    std::vector<std::vector<uint32_t>> followers(n);
    std::vector<Picoseconds> ready(n, 0), begin(n, 0), end(n, kNever);
    std::vector<uint32_t> before(n, kNone); // on its engine
    std::vector<std::vector<uint32_t>> needs(n);
    std::vector<uint32_t> last(s.streams.size(), kNone);
    std::map<size_t, Picoseconds> issued; // by device
    std::vector<Ring> rings;
    std::vector<uint32_t> ringOf(n, kNone);
    for (uint32_t i = 0; i < n; ++i) {
      const Command &c = p.commands[i];
      work[i] = workOf(p, i);
      if (c.kind == CommandKind::Collective) {
        const auto members = static_cast<uint32_t>(s.collectives[c.kernel].members.size());
        if (rings.empty() || rings.back().first + rings.back().members <= i)
          rings.push_back({.first = i, .members = members, .missing = members, .stepsLeft = work[i].steps});
        ringOf[i] = static_cast<uint32_t>(rings.size() - 1);
      }
      engineOf[i] = ofStream[c.stream];
      const DeviceModel &device = deviceOf(s.streams[c.stream].device);
      Picoseconds &host = issued[deviceIndex(device.device)];
      ready[i] = host += picoseconds(device.issueSeconds);
      auto need = [&](uint32_t other) {
        if (std::ranges::find(needs[i], other) != needs[i].end())
          return;
        needs[i].push_back(other);
        followers[other].push_back(i);
        ++missing[i];
      };
      for (uint32_t w = 0; w < c.numWaits; ++w)
        need(p.waits[c.firstWait + w].command);
      if (last[c.stream] != kNone)
        need(last[c.stream]);
      last[c.stream] = i;
    }

    using Event = std::pair<Picoseconds, uint32_t>;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> becoming;
    auto becomes = [&](uint32_t i) {
      if (ringOf[i] == kNone)
        return becoming.emplace(ready[i], i), void();
      Ring &ring = rings[ringOf[i]];
      ring.ready = std::max(ring.ready, ready[i]);
      if (--ring.missing == 0)
        for (uint32_t part = ring.first; part < ring.first + ring.members; ++part)
          becoming.emplace(ready[part] = ring.ready, part);
    };
    for (uint32_t i = 0; i < n; ++i)
      if (!missing[i])
        becomes(i);
    std::vector<Running> active;
    Picoseconds now = 0, finished = 0;
    for (uint32_t done = 0; done < n;) {
      now = becoming.empty() ? kNever : becoming.top().first;
      for (const Running &r : active)
        now = std::min(now, r.finish);
      wholePicoseconds(static_cast<double>(now)); // throws where it is too late for sums
      bool changed = false;
      // What ends now, then what begins, until nothing does at this time.
      for (bool again = true; again;) {
        again = false;
        for (size_t k = 0; k < active.size();) {
          Running &r = active[k];
          if (r.finish > now) {
            ++k;
            continue;
          }
          again = changed = true;
          const bool isOver = ringOf[r.command] != kNone && rings[ringOf[r.command]].stepsLeft == 0;
          if (!r.work->links.empty() && !r.flows && !isOver) { // past its latency; its rate follows below
            r.flows = true;
            r.left = r.work->bytes;
            r.rate = 0;
            r.since = now;
            r.finish = kNever;
            ++k;
            continue;
          }
          const uint32_t i = r.command;
          if (Ring *ring = ringOf[i] == kNone ? nullptr : &rings[ringOf[i]]; ring && ring->stepsLeft > 0) {
            r.flows = false;
            r.finish = kNever; // until the others have ended the step
            ++k;
            if (++ring->done < ring->members)
              continue;
            ring->done = 0;
            --ring->stepsLeft;
            for (Running &part : active)
              if (ringOf[part.command] == ringOf[i]) {
                part.left = static_cast<double>(part.work->latency);
                part.rate = 1;
                part.since = now;
                part.finish = ring->stepsLeft > 0 ? now + part.work->latency : now;
              }
            k = 0;
            continue;
          }
          end[i] = now;
          finished = std::max(finished, now);
          ++done;
          engines[engineOf[i]].running = kNone;
          engines[engineOf[i]].last = i;
          for (uint32_t f : followers[i]) {
            ready[f] = std::max(ready[f], now);
            if (--missing[f] == 0)
              becomes(f);
          }
          active.erase(active.begin() + static_cast<ptrdiff_t>(k));
        }
        for (; !becoming.empty() && becoming.top().first <= now; becoming.pop()) {
          const uint32_t i = becoming.top().second;
          const uint32_t first = ringOf[i] == kNone ? i : rings[ringOf[i]].first;
          engines[engineOf[i]].queue.emplace(ready[i], p.commands[first].stream, first, i);
        }
        for (Engine &engine : engines) {
          if (engine.running != kNone || engine.queue.empty())
            continue;
          const uint32_t i = std::get<3>(*engine.queue.begin());
          engine.queue.erase(engine.queue.begin());
          engine.running = i;
          before[i] = engine.last;
          again = changed = true;
          uint32_t from = i, to = i + 1;
          if (ringOf[i] != kNone) { // engines are held until all parts have theirs
            Ring &ring = rings[ringOf[i]];
            if (++ring.held < ring.members)
              continue;
            from = ring.first;
            to = from + ring.members;
            if (work[i].links.empty())
              ring.stepsLeft = 0;
          }
          for (uint32_t each = from; each < to; ++each) {
            begin[each] = now;
            const Work &w = work[each];
            const Picoseconds first = w.links.empty() ? w.alone : w.latency;
            active.push_back({each, &w, false, static_cast<double>(first), 1, now, now + first});
          }
        }
      }
      if (changed)
        setRates(p, active, engines, engineOf, now);
    }
    if (timeline)
      fill(*timeline, p, engines, engineOf, work, needs, before, begin, end, rings, ringOf);
    return finished;
  }

  //--- The result ---------------------------------------------------------------------------------------------------
  void fill(Timeline &timeline, const CommandList &p, const std::vector<Engine> &engines,
            const std::vector<uint32_t> &engineOf, const std::vector<Work> &work,
            const std::vector<std::vector<uint32_t>> &needs, const std::vector<uint32_t> &before,
            const std::vector<Picoseconds> &begin, const std::vector<Picoseconds> &end, const std::vector<Ring> &rings,
            const std::vector<uint32_t> &ringOf) const {
    const auto n = static_cast<uint32_t>(p.commands.size());
    for (const Engine &engine : engines)
      timeline.resources.push_back({engine.of.name, engine.of.device, engine.of.kind, 0});
    std::vector<Picoseconds> chain(n, 0), total(engines.size(), 0);
    /// A command, or all parts of its collective: from, to.
    auto partsOf = [&](uint32_t i) {
      return ringOf[i] == kNone ? std::pair(i, i + 1)
                                : std::pair(rings[ringOf[i]].first, rings[ringOf[i]].first + rings[ringOf[i]].members);
    };
    std::vector<double> carried(capacity.size(), 0);
    // What no order of the commands can do without: that data is there before it is read.
    const std::vector<std::vector<uint32_t>> producers = producersOf(s, p);
    for (uint32_t i = 0; i < n; ++i) { // producers come earlier, so chains are complete in issue order
      Picoseconds longest = 0, alone = work[i].alone;
      for (uint32_t part = partsOf(i).first; part < partsOf(i).second; ++part) {
        alone = std::max(alone, work[part].alone);
        for (uint32_t producer : producers[part])
          longest = std::max(longest, chain[producer]);
      }
      chain[i] = longest + alone;
      timeline.lowerBound = std::max(timeline.lowerBound, chain[i]);
      total[engineOf[i]] += work[i].alone;
      for (uint32_t link : work[i].links)
        carried[link] += work[i].bytes * static_cast<double>(work[i].steps);
    }
    for (Picoseconds busy : total)
      timeline.lowerBound = std::max(timeline.lowerBound, busy);
    for (size_t link = 0; link < capacity.size(); ++link)
      timeline.lowerBound =
          std::max(timeline.lowerBound, static_cast<Picoseconds>(carried[link] / capacity[link] * 1e12));
    // The sums above round each command up, the clock its end.
    Picoseconds last = 0;
    for (Picoseconds each : end)
      last = std::max(last, each);
    if (timeline.lowerBound - last <= n)
      timeline.lowerBound = std::min(timeline.lowerBound, last);
    for (uint32_t i = 0; i < n; ++i) {
      Span span = spanOf(s, i);
      span.resource = engineOf[i];
      span.begin = begin[i];
      span.end = end[i];
      for (uint32_t w = 0; w < p.commands[i].numWaits; ++w)
        span.after.push_back(p.waits[p.commands[i].firstWait + w].command);
      timeline.spans.push_back(std::move(span));
    }
    // Back from the last: each began when the latest that it followed, in its stream, on its engine or by a wait, had
    // ended, or when it was issued.
    uint32_t at = kNone;
    for (uint32_t i = 0; i < n; ++i)
      if (at == kNone || end[i] >= end[at])
        at = i;
    while (at != kNone) {
      timeline.criticalPath.push_back(at);
      uint32_t latest = kNone;
      auto consider = [&](uint32_t other) {
        if (other != kNone && (latest == kNone || end[other] > end[latest]))
          latest = other;
      };
      for (uint32_t part = partsOf(at).first; part < partsOf(at).second; ++part) {
        consider(before[part]);
        for (uint32_t need : needs[part])
          consider(need);
      }
      at = latest;
    }
    std::ranges::reverse(timeline.criticalPath);
    arrange(timeline);
  }

  const Schedule &s;
  const MachineModel &machine;
  const SimulateOptions &options;
  double footprint_ = 0; ///< bytes that a step touches; 0: not counted
  uint32_t accelerators = 0;    ///< of a rank
  std::vector<double> capacity; ///< of links, then of devices' memories
};

} // namespace

Timeline simulate(const Schedule &schedule, const MachineModel &machine, const SimulateOptions &options) {
  return Simulator(schedule, machine, options).run();
}

std::vector<Picoseconds> linkTimes(const Schedule &schedule, const MachineModel &machine) {
  const SimulateOptions options;
  return Simulator(schedule, machine, options).linkTimes();
}

} // namespace tressel::runtime
