// Computes the begin and end of each command of a log: a discrete event simulation of host threads that issue, engines
// that work and links that carry. It shares only the machine model with the clock of plans (Simulate.cpp).
#include "tressel/runtime/CommandLog.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <unordered_map>

namespace tressel::runtime {
namespace {

constexpr Picoseconds kForever = std::numeric_limits<Picoseconds>::max();
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// A pseudo-random number in [-1, 1] from the seed and the tag (the finalizer of SplitMix64).
double chance(uint64_t seed, uint64_t tag) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + tag + 0x632be59bd9b4e019u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1p-52 - 1;
}

/// The resources that the bytes of a transfer pass.
struct Way {
  std::vector<uint32_t> through; ///< links, then memories
  Picoseconds latency = 0;
  double pageable = kUnlimited; ///< limit of bytes per second from or to pageable memory
};

class Clock {
public:
  Clock(const CommandLog &log, const MachineModel &machine, const VirtualTimeOptions &options)
      : log(log), machine(machine), options(options) {
    for (const LinkModel &link : machine.links)
      rate.push_back(link.bytesPerSecond * options.slowLinks);
    for (const DeviceModel &device : machine.devices)
      rate.push_back(device.bytesPerSecond);
  }

  VirtualTimes run() {
    makeEngines();
    connect();
    for (size_t i = 0; i < hosts.size(); ++i)
      proceed(i);
    while (true) {
      now = coming.empty() ? kForever : coming.top().at;
      for (const Job &job : jobs)
        now = std::min(now, job.finish);
      if (now == kForever)
        break;
      wholePicoseconds(static_cast<double>(now)); // throws if the time is too large for sums
      for (bool more = true; more;) {
        more = endJobs();
        more |= arrive();
        more |= beginJobs();
      }
      settleRates();
    }
    times.total = 0;
    for (Picoseconds end : times.end)
      times.total = std::max(times.total, end);
    return std::move(times);
  }

private:
  //--- What there is ------------------------------------------------------------------------------------------------
  uint32_t deviceIndex(DeviceRef ref) const {
    for (uint32_t i = 0; i < machine.devices.size(); ++i)
      if (machine.devices[i].device == ref)
        return i;
    throw InputError(concat(machine.name, " has no ", nameOf(ref)));
  }

  struct Arrival {
    Picoseconds at;
    uint32_t stream, order; ///< for the part of a collective: those of the first part
    uint32_t entry;
    auto operator<=>(const Arrival &) const = default;
  };
  using Earliest = std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>>;
  struct Engine {
    uint32_t device = 0;
    DeviceModel model; ///< the device's part of the machine model
    Earliest waiting;
    bool isBusy = false;
  };
  void makeEngines() {
    const EngineTable table(machine, log.streams);
    engineOf = table.ofStream;
    for (const EngineTable::Engine &engine : table.engines) {
      const uint32_t device = deviceIndex(engine.device);
      engines.push_back({.device = device, .model = machine.devices[device]});
      if (engine.kind == StreamKind::Lane)
        engines.back().model = engines.back().model.lane();
    }
  }

  const Way &wayBetween(const Home &from, const Home &to) {
    const bool isPageable = from.memory == MemoryKind::Host || to.memory == MemoryKind::Host;
    const uint32_t a = deviceIndex(from.device), b = deviceIndex(to.device);
    auto [it, isNew] = ways.try_emplace(std::tuple(a, b, isPageable));
    if (!isNew)
      return it->second;
    const RouteModel *route = machine.route(from.device, to.device);
    if (!route)
      throw InputError(concat(machine.name, " has no route from ", nameOf(from.device), " to ", nameOf(to.device)));
    Way &way = it->second;
    double latency = 0;
    for (uint32_t link : route->links) {
      way.through.push_back(link);
      latency += machine.links[link].latencySeconds;
    }
    way.latency = picoseconds(latency);
    for (uint32_t device : {a, b})
      way.through.push_back(static_cast<uint32_t>(machine.links.size()) + device);
    if (isPageable && route->pageableBytesPerSecond > 0)
      way.pageable = route->pageableBytesPerSecond * options.slowLinks;
    return way;
  }

  //--- What waits for what ------------------------------------------------------------------------------------------
  struct HostStep {
    bool isWait = false;
    size_t index = 0; ///< of a command, or of a wait of the host
  };
  struct Host { ///< a host thread that issues the commands of one device
    uint32_t device = 0;
    std::vector<HostStep> steps;
    size_t next = 0;
    Picoseconds clock = 0;
    uint32_t missing = 0; ///< commands that it waits for now
  };
  struct Entry {
    uint32_t missing = 1; ///< dependences that are not over; being issued is one
    Picoseconds ready = 0;
    std::vector<uint32_t> followers;
    std::vector<uint32_t> waitingHosts;
  };

  /// The parts of a collective, from `first` on.
  struct Ring {
    uint32_t first = 0, members = 0;
    uint32_t missing = 0; ///< parts that are not ready
    uint32_t held = 0;    ///< engines that hold their part until all do
    uint32_t sent = 0;    ///< pieces of the current step that have arrived
    size_t phase = 0;     ///< index into LoggedCommand::phases; their number when the collective ends
    int64_t steps = 0;    ///< steps left in the phase, the current one included
  };

  void connect() {
    const size_t n = log.commands.size();
    entries.resize(n);
    times.begin.assign(n, 0);
    times.end.assign(n, 0);
    for (uint32_t i = 0; i < n; ++i) {
      byEvent.emplace(log.commands[i].event, i);
      if (log.commands[i].signal)
        byEvent.emplace(log.commands[i].signal, i);
    }
    std::vector<int64_t> last(log.streams.size(), -1);
    std::map<std::pair<uint32_t, uint32_t>, size_t> hostOf; // by issuer and device
    size_t wait = 0;
    auto addWaits = [&](size_t position) {
      for (; wait < log.hostWaits.size() && log.hostWaits[wait].position <= position; ++wait)
        for (uint32_t d = 0; d < machine.devices.size(); ++d)
          hosts[hostNamed(hostOf, log.hostWaits[wait].host, d)].steps.push_back({true, wait});
    };
    for (uint32_t i = 0; i < n; ++i) {
      const LoggedCommand &c = log.commands[i];
      if (c.ring > rings.size())
        rings.push_back({.first = i, .members = c.members, .missing = c.members});
      addWaits(i);
      hosts[hostNamed(hostOf, c.host, engines[engineOf[c.stream]].device)].steps.push_back({false, i});
      auto follow = [&](uint32_t other) {
        entries[other].followers.push_back(i);
        ++entries[i].missing;
      };
      for (LoggedEvent event : c.waits)
        if (auto it = byEvent.find(event); it != byEvent.end())
          follow(it->second);
      if (last[c.stream] >= 0)
        follow(static_cast<uint32_t>(last[c.stream]));
      last[c.stream] = i;
    }
  }
  size_t hostNamed(std::map<std::pair<uint32_t, uint32_t>, size_t> &hostOf, uint32_t host, uint32_t device) {
    auto [it, isNew] = hostOf.try_emplace({host, device}, hosts.size());
    if (isNew)
      hosts.push_back({.device = device});
    return it->second;
  }

  /// Lets a host thread issue commands until it has to wait.
  void proceed(size_t h) {
    Host &host = hosts[h];
    while (host.next < host.steps.size()) {
      const HostStep step = host.steps[host.next++];
      if (!step.isWait) {
        if (!log.commands[step.index].isFree)
          host.clock += picoseconds(machine.devices[host.device].issueSeconds);
        release(static_cast<uint32_t>(step.index), host.clock);
        continue;
      }
      for (LoggedEvent event : log.hostWaits[step.index].events) {
        auto it = byEvent.find(event);
        if (it == byEvent.end())
          continue;
        if (isEnded(it->second)) {
          host.clock = std::max(host.clock, times.end[it->second]);
        } else {
          entries[it->second].waitingHosts.push_back(static_cast<uint32_t>(h));
          ++host.missing;
        }
      }
      if (host.missing)
        return;
    }
  }

  bool isEnded(uint32_t entry) const { return entries[entry].ready == kForever; }
  /// One dependence of the command is over. If it was the last, the command queues at its engine.
  void release(uint32_t i, Picoseconds at) {
    Entry &entry = entries[i];
    entry.ready = std::max(entry.ready, at);
    if (--entry.missing == 0)
      coming.push({entry.ready, log.commands[i].stream, i, i});
  }
  void end(uint32_t i) {
    times.end[i] = now;
    entries[i].ready = kForever;
    for (uint32_t follower : entries[i].followers)
      release(follower, now);
    for (uint32_t h : entries[i].waitingHosts) {
      hosts[h].clock = std::max(hosts[h].clock, now);
      if (--hosts[h].missing == 0)
        proceed(h);
    }
  }

  //--- Work ---------------------------------------------------------------------------------------------------------
  struct Job {
    uint32_t entry, engine;
    const Way *way = nullptr; ///< of a transfer, else null
    bool isFlowing = false;   ///< a transfer past its latency
    bool isKernel = false;
    double factor = 1; ///< perturbation of its bytes (VirtualTimeOptions::perturbation)
    double left = 0;   ///< bytes or picoseconds to go
    double speed = 0;  ///< the same per picosecond
    Picoseconds since = 0, finish = 0;
  };

  /// Moves commands that are ready to the queues of their engines; a command without work ends at once. Returns whether
  /// there were any.
  bool arrive() {
    bool any = false;
    while (!coming.empty() && coming.top().at <= now) {
      const Arrival arrival = coming.top();
      coming.pop();
      any = true;
      const DeviceCommandKind kind = log.commands[arrival.entry].kind;
      if (const uint32_t ring = log.commands[arrival.entry].ring) {
        gather(rings[ring - 1]);
        continue;
      }
      if (kind == DeviceCommandKind::Wait || kind == DeviceCommandKind::Signal || log.commands[arrival.entry].isFree) {
        times.begin[arrival.entry] = now;
        end(arrival.entry);
      } else {
        engines[engineOf[arrival.stream]].waiting.push(arrival);
      }
    }
    return any;
  }

  /// One more part is ready. When all are, they queue at their engines, with the same priority everywhere so that there
  /// is no deadlock.
  void gather(Ring &ring) {
    if (--ring.missing > 0)
      return;
    for (uint32_t i = ring.first; i < ring.first + ring.members; ++i)
      engines[engineOf[log.commands[i].stream]].waiting.push({now, log.commands[ring.first].stream, ring.first, i});
  }
  /// Begins a step: every member sends its piece. After the last phase the parts end.
  void beginStep(const Ring &ring) {
    for (Job &job : jobs)
      if (log.commands[job.entry].ring && &rings[log.commands[job.entry].ring - 1] == &ring) {
        const LoggedCommand &c = log.commands[job.entry];
        const LoggedPhase *phase = ring.phase < c.phases.size() ? &c.phases[ring.phase] : nullptr;
        job.way = phase ? &wayBetween(c.from, phase->to) : nullptr;
        job.isFlowing = false;
        job.left = phase ? static_cast<double>(phase->bytes) * job.factor : 0;
        job.since = now;
        job.finish = phase ? now + job.way->latency : now;
      }
  }
  void beginPhase(Ring &ring, size_t number) {
    const std::vector<LoggedPhase> &phases = log.commands[ring.first].phases;
    ring.phase = options.transferTime ? number : phases.size();
    ring.steps = ring.phase < phases.size() ? phases[ring.phase].steps : 0;
    beginStep(ring);
  }

  bool beginJobs() {
    bool any = false;
    for (uint32_t e = 0; e < engines.size(); ++e) {
      Engine &engine = engines[e];
      if (engine.isBusy || engine.waiting.empty())
        continue;
      const uint32_t i = engine.waiting.top().entry;
      engine.waiting.pop();
      engine.isBusy = any = true;
      jobs.push_back(jobOf(i, e));
      needsRates = true;
      const uint32_t which = log.commands[i].ring;
      if (!which) {
        times.begin[i] = now;
        continue;
      }
      Ring &ring = rings[which - 1];
      if (++ring.held < ring.members)
        continue;
      for (uint32_t part = ring.first; part < ring.first + ring.members; ++part)
        times.begin[part] = now;
      beginPhase(ring, 0);
    }
    return any;
  }

  Job jobOf(uint32_t i, uint32_t e) {
    const LoggedCommand &c = log.commands[i];
    const DeviceModel &device = machine.devices[engines[e].device];
    const double factor = options.perturbation > 0 ? 1 + options.perturbation * chance(options.seed, c.tag) : 1;
    Job job{.entry = i, .engine = e, .speed = 1, .since = now, .finish = now};
    auto work = [&](double seconds) {
      const Picoseconds time = options.computeTime ? picoseconds((device.commandSeconds + seconds) * factor) : 0;
      job.left = static_cast<double>(time);
      job.finish = now + time;
    };
    const auto bytes = static_cast<double>(c.bytes);
    switch (c.kind) {
    case DeviceCommandKind::Launch:
      job.isKernel = true;
      work(kernelWork(job, 1));
      break;
    case DeviceCommandKind::Fill:
      work(bytes / device.bytesPerSecond);
      break;
    case DeviceCommandKind::Copy:
      if (c.from.device == c.to.device) {
        work(2 * bytes / device.bytesPerSecond); // bytes are read and written
        break;
      }
      job.way = &wayBetween(c.from, c.to);
      if (!options.transferTime) {
        job.way = nullptr;
        break;
      }
      job.left = bytes * factor;
      job.finish = now + job.way->latency;
      break;
    case DeviceCommandKind::Collective: // begins when all its engines are held
      job.factor = factor;
      job.finish = kForever;
      break;
    case DeviceCommandKind::HostCall:
    case DeviceCommandKind::Wait:
    case DeviceCommandKind::Signal:
      break;
    }
    return job;
  }

  bool endJobs() {
    bool any = false;
    for (size_t k = 0; k < jobs.size();) {
      Job &job = jobs[k];
      if (job.finish > now) {
        ++k;
        continue;
      }
      any = needsRates = true;
      Ring *ring = log.commands[job.entry].ring ? &rings[log.commands[job.entry].ring - 1] : nullptr;
      if (ring && job.isFlowing && ring->steps > 0) { // its piece has arrived
        job.isFlowing = false;
        job.finish = kForever;
        ++k;
        if (++ring->sent == ring->members) {
          ring->sent = 0;
          if (--ring->steps == 0)
            beginPhase(*ring, ring->phase + 1);
          else
            beginStep(*ring);
        }
        continue;
      }
      if (job.way && !job.isFlowing) { // its latency is over
        job.isFlowing = true;
        job.speed = 0;
        job.since = now;
        job.finish = kForever;
        ++k;
        continue;
      }
      const Job done = job;
      jobs.erase(jobs.begin() + static_cast<ptrdiff_t>(k));
      engines[done.engine].isBusy = false;
      end(done.entry);
    }
    return any;
  }

  /// Recomputes the speeds of running commands after one began or ended.
  void settleRates() {
    if (!needsRates)
      return;
    needsRates = false;
    const std::vector<double> flow = fairFlows();
    for (size_t k = 0; k < jobs.size(); ++k) {
      Job &job = jobs[k];
      if (job.isFlowing)
        setSpeed(job, flow[k] * 1e-12);
      else if (job.isKernel)
        setSpeed(job, kernelSpeed(job, flow));
    }
  }
  /// Seconds of a kernel without the device's least time per kernel, if its bytes from memory take `slower` times as
  /// long.
  double kernelWork(const Job &job, double slower) const {
    const LoggedCommand &c = log.commands[job.entry];
    const DeviceModel &model = engines[job.engine].model;
    return workSeconds(model,
                       {.type = c.type,
                        .flops = static_cast<double>(c.flops),
                        .bytes = static_cast<double>(c.bytes),
                        .provider = c.provider,
                        .moves = c.moves,
                        .tasks = c.tasks,
                        .costs = c.costs},
                       slower);
  }
  double kernelSpeed(const Job &job, const std::vector<double> &flow) const {
    const uint32_t device = engines[job.engine].device;
    const DeviceModel &model = machine.devices[device];
    const auto memory = static_cast<uint32_t>(machine.links.size()) + device;
    double passing = 0;
    for (size_t k = 0; k < jobs.size(); ++k)
      if (jobs[k].isFlowing && std::ranges::count(jobs[k].way->through, memory))
        passing += flow[k];
    if (passing == 0 || model.contention == 0 || !options.computeTime)
      return 1;
    const double slower = 1 + model.contention * passing / model.bytesPerSecond;
    return (model.commandSeconds + kernelWork(job, 1)) / (model.commandSeconds + kernelWork(job, slower));
  }
  void setSpeed(Job &job, double speed) {
    if (speed == job.speed)
      return;
    job.left = std::max(0.0, job.left - job.speed * static_cast<double>(now - job.since));
    job.since = now;
    job.speed = speed;
    job.finish = now + wholePicoseconds(job.left / speed);
  }
  /// Bytes per second of each flowing transfer, by progressive filling: all rates grow alike until a link or memory of
  /// theirs is full.
  std::vector<double> fairFlows() const {
    std::vector<double> flow(jobs.size(), 0), room = rate;
    std::vector<size_t> growing;
    for (size_t k = 0; k < jobs.size(); ++k)
      if (jobs[k].isFlowing)
        growing.push_back(k);
    while (!growing.empty()) {
      std::vector<uint32_t> users(room.size(), 0);
      for (size_t k : growing)
        for (uint32_t part : jobs[k].way->through)
          ++users[part];
      double step = kUnlimited;
      for (size_t part = 0; part < room.size(); ++part)
        if (users[part])
          step = std::min(step, room[part] / users[part]);
      for (size_t k : growing)
        step = std::min(step, jobs[k].way->pageable - flow[k]);
      std::vector<bool> isFull(room.size(), false);
      for (size_t part = 0; part < room.size(); ++part)
        if (users[part]) {
          room[part] -= step * users[part];
          isFull[part] = room[part] <= 1e-9 * rate[part];
        }
      for (size_t k : growing)
        flow[k] += step;
      const size_t before = growing.size();
      std::erase_if(growing, [&](size_t k) {
        const Way &way = *jobs[k].way;
        return flow[k] >= way.pageable * (1 - 1e-12) ||
               std::ranges::any_of(way.through, [&](uint32_t part) { return isFull[part]; });
      });
      if (growing.size() == before)
        break; // unreachable: each step fills a resource
    }
    return flow;
  }

  const CommandLog &log;
  const MachineModel &machine;
  const VirtualTimeOptions &options;
  std::vector<double> rate; ///< bytes per second of links, then of memories
  std::vector<Engine> engines;
  std::vector<uint32_t> engineOf; ///< by stream
  std::map<std::tuple<uint32_t, uint32_t, bool>, Way> ways;
  std::vector<Entry> entries;
  std::unordered_map<LoggedEvent, uint32_t> byEvent;
  std::vector<Host> hosts;
  std::vector<Ring> rings;
  Earliest coming;
  std::vector<Job> jobs;
  bool needsRates = false;
  Picoseconds now = 0;
  VirtualTimes times;
};

} // namespace

VirtualTimes virtualTimes(const CommandLog &log, const MachineModel &machine, const VirtualTimeOptions &options) {
  return Clock(log, machine, options).run();
}

} // namespace tressel::runtime
