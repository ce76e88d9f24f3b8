#include "DynamicSchedule.h"

#include "tressel/runtime/VerifySchedule.h"

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

namespace tressel::bench {

using namespace runtime;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr uint32_t kNone = UINT32_MAX;

class Scheduler {
public:
  Scheduler(const TaskGraph &graph, const MachineModel &machine) : graph(graph), machine(machine) {
    for (const DeviceModel &device : machine.devices)
      if (device.device == DeviceRef{} || device.device.kind == DeviceKind::Gpu)
        devices.push_back(&device);
    engines.resize(devices.size());
    makeSchedule();
    follow();
  }

  Schedule run() {
    // Tasks become ready as time goes on; equal times in submission order.
    std::set<std::pair<double, uint32_t>> ready;
    std::vector<double> since(graph.tasks.size(), 0);
    for (uint32_t t = 0; t < graph.tasks.size(); ++t)
      if (missing[t] == 0)
        ready.insert({0, t});
    while (!ready.empty()) {
      const auto [now, t] = *ready.begin();
      ready.erase(ready.begin());
      if (t >= graph.tasks.size()) {
        copyBack(t - static_cast<uint32_t>(graph.tasks.size()), now);
        continue;
      }
      const double end = push(t, now);
      if (lastWriter[graph.tasks[t].writes] == t) // a result goes back as soon as it is there
        ready.insert({end, static_cast<uint32_t>(graph.tasks.size()) + graph.tasks[t].writes});
      for (uint32_t follower : followers[t]) {
        since[follower] = std::max(since[follower], end);
        if (--missing[follower] == 0)
          ready.insert({since[follower], follower});
      }
    }
    reduceWaits(s.step, s.streams.size());
    for (const ArenaDesc &arena : s.arenas)
      s.peakBytes += arena.bytes;
    return std::move(s);
  }

private:
  struct Engines {
    double compute = 0, in = 0, out = 0;
  };
  /// A datum in one memory.
  struct Place {
    uint32_t buffer = kNone;
    double there = kNever; ///< from when on its bytes are valid
  };
  Place &place(uint32_t datum, size_t device) { return places[datum * devices.size() + device]; }

  void makeSchedule() {
    s.name = "dynamic";
    s.locations.push_back({});
    s.kernels = graph.kernels;
    for (size_t d = 1; d < devices.size(); ++d) {
      const DeviceRef ref = devices[d]->device;
      s.streams.push_back({ref, StreamKind::Compute, nameOf(ref)});
      s.streams.push_back({ref, StreamKind::CopyIn, nameOf(ref) + ".in"});
      s.streams.push_back({ref, StreamKind::CopyOut, nameOf(ref) + ".out"});
      s.arenas.push_back({ref, MemoryKind::Device, 0});
    }
    places.resize(graph.data.size() * devices.size());
    for (uint32_t d = 0; d < graph.data.size(); ++d) {
      s.inputs.push_back({"x" + std::to_string(d), graph.data[d], {{}, MemoryKind::Pinned}});
      place(d, 0).buffer = buffer(Space::Input, d, 0, graph.data[d]);
      place(d, 0).there = 0;
    }
  }
  uint32_t buffer(Space space, uint32_t index, int64_t offset, const TensorType &type) {
    s.buffers.push_back({space, index, offset, type.bytes(), type});
    return static_cast<uint32_t>(s.buffers.size() - 1);
  }
  /// Each datum has its own bytes in each memory where it is ever needed.
  uint32_t bufferOf(uint32_t datum, size_t device) {
    Place &p = place(datum, device);
    if (p.buffer == kNone) {
      ArenaDesc &arena = s.arenas[device - 1];
      p.buffer = buffer(Space::Arena, static_cast<uint32_t>(device - 1), arena.bytes.number(), graph.data[datum]);
      arena.bytes += (graph.data[datum].bytes() + 63) / 64 * 64;
    }
    return p.buffer;
  }

  /// Who waits for whom: data that is read after it was written, written after it was read or written.
  void follow() {
    followers.resize(graph.tasks.size());
    missing.assign(graph.tasks.size(), 0);
    std::vector<uint32_t> &writer = lastWriter;
    writer.assign(graph.data.size(), kNone);
    std::vector<std::vector<uint32_t>> readers(graph.data.size());
    for (uint32_t t = 0; t < graph.tasks.size(); ++t) {
      const TaskGraph::Task &task = graph.tasks[t];
      std::set<uint32_t> before;
      for (uint32_t d : task.reads)
        if (writer[d] != kNone)
          before.insert(writer[d]);
      if (writer[task.writes] != kNone)
        before.insert(writer[task.writes]);
      before.insert(readers[task.writes].begin(), readers[task.writes].end());
      for (uint32_t d : task.reads)
        readers[d].push_back(t);
      writer[task.writes] = t;
      readers[task.writes].clear();
      before.erase(t);
      for (uint32_t b : before)
        followers[b].push_back(t);
      missing[t] = static_cast<uint32_t>(before.size());
    }
  }

  //--- Figures ------------------------------------------------------------------------------------------------------
  double seconds(const TaskGraph::Task &task, size_t device) const {
    const KernelDesc &k = graph.kernels[task.kernel];
    const DeviceModel &model = *devices[device];
    return model.commandSeconds + workSeconds(model, workOf(k, graph.data[task.writes].dtype));
  }
  double seconds(int64_t bytes, size_t from, size_t to) const {
    const RouteModel *route = machine.route(devices[from]->device, devices[to]->device);
    if (!route)
      return kNever;
    double rate = kNever, latency = 0;
    for (uint32_t link : route->links) {
      rate = std::min(rate, machine.links[link].bytesPerSecond);
      latency += machine.links[link].latencySeconds;
    }
    return latency + static_cast<double>(bytes) / rate;
  }
  /// A transfer holds an accelerator's engine: what comes from the host that for copies in, all others that for
  /// copies out.
  static double &engineOf(std::vector<Engines> &on, size_t from, size_t to) {
    return from == 0 ? on[to].in : on[from].out;
  }
  /// From where a datum would be there first.
  size_t sourceOf(uint32_t datum, size_t to, std::vector<Engines> &on) {
    size_t best = 0;
    double first = kNever;
    for (size_t from = 0; from < devices.size(); ++from) {
      const double there = place(datum, from).there;
      if (from == to || there == kNever)
        continue;
      const double end = std::max(there, engineOf(on, from, to)) + seconds(graph.data[datum].bytes(), from, to);
      if (end < first)
        first = end, best = from;
    }
    if (first == kNever)
      throw std::runtime_error("no route for a datum");
    return best;
  }

  //--- Decisions ----------------------------------------------------------------------------------------------------
  /// Gives the task to an accelerator, and says when it will be done.
  double push(uint32_t t, double now) {
    const TaskGraph::Task &task = graph.tasks[t];
    size_t best = 0;
    double first = kNever;
    for (size_t d = 1; d < devices.size(); ++d) {
      std::vector<Engines> tried = engines;
      double ready = now;
      for (uint32_t datum : task.reads)
        ready = std::max(ready, arrival(datum, d, now, tried, false));
      const double end = std::max(ready, tried[d].compute) + seconds(task, d);
      if (end < first)
        first = end, best = d;
    }
    double ready = now;
    std::vector<Operand> operands;
    for (uint32_t datum : task.reads) {
      ready = std::max(ready, arrival(datum, best, now, engines, true));
      operands.push_back({bufferOf(datum, best), Access::Read});
    }
    operands.push_back({bufferOf(task.writes, best), Access::Write});
    issue({.kind = CommandKind::Launch, .stream = static_cast<uint16_t>(3 * (best - 1)), .kernel = task.kernel},
          operands);
    engines[best].compute = std::max(ready, engines[best].compute) + seconds(task, best);
    for (size_t d = 0; d < devices.size(); ++d)
      place(task.writes, d).there = kNever;
    return place(task.writes, best).there = engines[best].compute;
  }
  /// When the datum is at the device; it is copied there from now on, if need be.
  double arrival(uint32_t datum, size_t to, double now, std::vector<Engines> &on, bool commit) {
    if (const double there = place(datum, to).there; there < kNever)
      return there;
    const size_t from = sourceOf(datum, to, on);
    double &engine = engineOf(on, from, to);
    engine = std::max({now, engine, place(datum, from).there}) + seconds(graph.data[datum].bytes(), from, to);
    const double end = engine;
    if (commit) {
      issueCopy(place(datum, from).buffer, bufferOf(datum, to), from, to);
      place(datum, to).there = end;
    }
    return end;
  }
  void copyBack(uint32_t datum, double now) {
    s.outputs.push_back({"y" + std::to_string(datum), graph.data[datum], {{}, MemoryKind::Pinned}});
    const uint32_t target = buffer(Space::Output, static_cast<uint32_t>(s.outputs.size() - 1), 0, graph.data[datum]);
    for (size_t d = 1; d < devices.size(); ++d)
      if (const double there = place(datum, d).there; there < kNever) {
        engines[d].out = std::max({now, there, engines[d].out}) + seconds(graph.data[datum].bytes(), d, 0);
        return issueCopy(place(datum, d).buffer, target, d, 0);
      }
  }

  //--- Commands -----------------------------------------------------------------------------------------------------
  void issueCopy(uint32_t from, uint32_t to, size_t source, size_t target) {
    const size_t stream = source == 0 ? 3 * (target - 1) + 1 : 3 * (source - 1) + 2;
    issue({.kind = CommandKind::Copy, .stream = static_cast<uint16_t>(stream)},
          {{from, Access::Read}, {to, Access::Write}});
  }
  void issue(Command c, const std::vector<Operand> &operands) {
    const auto index = static_cast<uint32_t>(s.step.commands.size());
    uses.resize(s.buffers.size());
    std::set<std::pair<uint32_t, WaitReason>> waits;
    for (const Operand &o : operands) {
      if (uses[o.buffer].writer != kNone)
        waits.insert({uses[o.buffer].writer, o.access == Access::Read ? WaitReason::Data : WaitReason::War});
      if (o.access != Access::Read)
        for (uint32_t reader : uses[o.buffer].readers)
          waits.insert({reader, WaitReason::War});
    }
    for (const Operand &o : operands)
      if (o.access == Access::Read) {
        uses[o.buffer].readers.push_back(index);
      } else {
        uses[o.buffer].writer = index;
        uses[o.buffer].readers.clear();
      }
    c.firstOperand = static_cast<uint32_t>(s.step.operands.size());
    c.numOperands = static_cast<uint16_t>(operands.size());
    s.step.operands.insert(s.step.operands.end(), operands.begin(), operands.end());
    c.firstWait = static_cast<uint32_t>(s.step.waits.size());
    uint32_t last = kNone;
    for (auto [command, reason] : waits)
      if (command != last && command != index) {
        s.step.waits.push_back({command, reason});
        last = command;
      }
    c.numWaits = static_cast<uint16_t>(s.step.waits.size() - c.firstWait);
    s.step.commands.push_back(c);
  }

  const TaskGraph &graph;
  const MachineModel &machine;
  std::vector<const DeviceModel *> devices; ///< the host first
  std::vector<Engines> engines;
  std::vector<Place> places; ///< by datum and device
  struct Uses {
    uint32_t writer = kNone;
    std::vector<uint32_t> readers;
  };
  std::vector<Uses> uses; ///< by buffer
  std::vector<std::vector<uint32_t>> followers;
  std::vector<uint32_t> missing;
  std::vector<uint32_t> lastWriter; ///< of a datum
  Schedule s;
};

} // namespace

Schedule dynamicSchedule(const TaskGraph &graph, const MachineModel &machine) {
  return Scheduler(graph, machine).run();
}

} // namespace tressel::bench
