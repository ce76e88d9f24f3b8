#include "tressel/runtime/Explain.h"
#include "tressel/runtime/DeviceGraphs.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Ranks.h"

#include "runtime/types/Concat.h"
#include "runtime/timeline/Format.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tressel::runtime {

using json = nlohmann::ordered_json;

std::string spellSeconds(double value) {
  return value <= 1e6 ? timeline::timeText(static_cast<Picoseconds>(value * 1e12)) : "more than 1000000 s";
}

std::string spellBytes(int64_t bytes) {
  static constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; unit < 3 && value >= 1024; ++unit)
    value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

namespace {

std::string lineOf(const Location &l) {
  const size_t slash = l.file.rfind('/');
  const std::string file = slash == std::string::npos ? l.file : l.file.substr(slash + 1);
  return timeline::clean(file.empty() ? l.op : concat(l.op.empty() ? "" : l.op + " ", "(", file, ":", l.line, ")"));
}

/// The slowest link or memory on the route of a copy, which bounds it.
std::string wayOf(const Schedule &s, const MachineModel &machine, const Command &c) {
  const Operand *operands = s.step.operands.data() + c.firstOperand;
  const Home from = homeOf(s, s.buffers[operands[0].buffer]), to = homeOf(s, s.buffers[operands[1].buffer]);
  const RouteModel *route = from.device == to.device ? nullptr : machine.route(from.device, to.device);
  if (!route)
    return "";
  double rate = std::min(machine.find(from.device)->bytesPerSecond, machine.find(to.device)->bytesPerSecond);
  std::string slowest;
  for (uint32_t link : route->links)
    if (machine.links[link].bytesPerSecond < rate) {
      rate = machine.links[link].bytesPerSecond;
      slowest = machine.links[link].name;
    }
  const bool pageable = from.memory == MemoryKind::Host || to.memory == MemoryKind::Host;
  if (pageable && route->pageableBytesPerSecond > 0 && route->pageableBytesPerSecond < rate)
    return ", of pageable memory";
  return slowest.empty() ? "" : " over " + slowest;
}

/// What bounds a span's time.
std::string limitOf(const Schedule &s, const MachineModel &machine, const Timeline &t, const Span &span) {
  const Resource &resource = t.resources[span.resource];
  const DeviceModel &device = *machine.find(resource.device);
  const std::string of = concat(" of ", device.name);
  const Command &c = s.step.commands[span.command];
  switch (span.kind) {
  case SpanKind::Kernel: {
    const KernelDesc &k = s.kernels[c.kernel];
    const DType type = c.numOperands ? s.buffers[s.step.operands[c.firstOperand].buffer].type.dtype : f32;
    const KernelWork work = workOf(k, type);
    if (workSeconds(device, work) < device.commandSeconds)
      return "calls" + of;
    KernelWork moving = work, computing = work;
    moving.flops = computing.bytes = 0;
    moving.costs = {};
    const bool moves = workSeconds(device, moving) >= workSeconds(device, computing);
    return concat(moves ? work.bytes <= device.cacheBytes() ? "cache" : "memory" : "arithmetic", of);
  }
  case SpanKind::Copy:
    return concat("copies",
                  s.streams[c.stream].kind == StreamKind::CopyIn    ? " to "
                  : s.streams[c.stream].kind == StreamKind::CopyOut ? " from "
                                                                    : " within ",
                  device.name, wayOf(s, machine, c));
  case SpanKind::Fill:
    return "memory" + of;
  case SpanKind::Control:
    return "loops and branches" + of;
  case SpanKind::Collective:
    return "collectives";
  case SpanKind::Host:
  case SpanKind::Wait: // of a program's thread, never in a schedule
  case SpanKind::HiddenWait:
    break;
  }
  return "the host";
}

} // namespace

/// Devices on which the schedule has memory.
static std::vector<Explanation::DeviceMemory> memoryOf(const Schedule &s, const MachineModel &machine) {
  std::vector<Explanation::DeviceMemory> all;
  for (const DeviceModel &device : machine.devices) {
    Explanation::DeviceMemory m{device.name, 0, 0, device.memoryBytes};
    for (const ArenaDesc &arena : s.arenas)
      m.arenaBytes += arena.device == device.device ? arena.bytes.number() : 0;
    auto hold = [&](const Home &home, const TensorType &type) {
      m.heldBytes += home.device == device.device ? dim::hint(dim::bytes(type)) : 0;
    };
    for (const StateDesc &state : s.states)
      hold(state.home, state.type);
    for (const auto *values : {&s.inputs, &s.outputs})
      for (const ValueDesc &value : *values)
        hold(value.home, value.type);
    if (isHost(device.device) && device.host == 0)
      for (const ConstantDesc &constant : s.constants)
        m.heldBytes += constant.bytes;
    if (m.arenaBytes + m.heldBytes > 0)
      all.push_back(std::move(m));
  }
  return all;
}

Explanation explain(const Schedule &s, const MachineModel &machine, Decisions decisions) {
  Explanation e;
  e.timeline = simulate(s, machine);
  e.timeline.kind = TimelineKind::Planned; // predicted; Simulated is for the logs of simulated runs
  const std::vector<Picoseconds> linkTime = linkTimes(s, machine);
  for (size_t i = 0; i < linkTime.size(); ++i)
    if (linkTime[i] > 0)
      e.links.push_back({machine.links[i].name, linkTime[i]});
  e.collectives = collectivesOf(s, machine);
  for (const DeviceGraph &graph : deviceGraphs(s, s.step)) {
    double issue = 0;
    for (uint32_t node : graph.nodes) {
      const Command &command = s.step.commands[node];
      const std::optional<CommandCounts> loop = unrolled(s, s.step, command);
      issue +=
          machine.find(s.streams[command.stream].device)->issueSeconds * static_cast<double>(loop ? loop->all() : 1);
    }
    e.graphs.push_back({graph.counts.kernels, graph.counts.copies, graph.counts.fills, graph.edges, issue});
  }
  auto assume = [&](const CommandList &p) {
    for (const Command &command : p.commands)
      e.assumedLoops += command.kind == CommandKind::While, e.assumedBranches += command.kind == CommandKind::Branch;
  };
  assume(s.step);
  std::ranges::for_each(s.bodies, assume);
  e.peakBytes = s.peakBytes.number();
  e.peakLowerBoundBytes = s.peakLowerBoundBytes.number();
  e.memory = memoryOf(s, machine);
  e.decisions = std::move(decisions);
  const Timeline &t = e.timeline;
  const double step = static_cast<double>(t.end);
  e.computeTime = simulate(s, machine, {.transferTime = false}).end;
  e.transferTime = simulate(s, machine, {.computeTime = false}).end;
  const auto compute = static_cast<double>(e.computeTime), transfer = static_cast<double>(e.transferTime);
  const bool moves = std::ranges::any_of(t.spans, [&](const Span &span) {
    return span.kind == SpanKind::Collective ||
           (span.kind == SpanKind::Copy && t.resources[span.resource].kind != StreamKind::Compute &&
            t.resources[span.resource].kind != StreamKind::Lane);
  });
  if (moves && std::min(compute, transfer) > 0)
    e.overlap = (compute + transfer - step) / std::min(compute, transfer);

  std::map<std::string, Picoseconds> limits;
  Picoseconds at = 0;
  for (uint32_t k : t.criticalPath) {
    const Span &span = t.spans[k];
    if (span.begin > at)
      limits["commands issued by the host"] += span.begin - at;
    limits[limitOf(s, machine, t, span)] += span.end - span.begin;
    at = span.end;
  }
  for (const auto &[name, time] : limits)
    if (time > 0)
      e.limits.push_back({name, time});
  std::ranges::sort(e.limits, {}, [](const Limit &limit) { return std::pair(-limit.time, limit.name); });

  auto remedy = [&](std::string name, auto change) {
    MachineModel better = machine;
    change(better);
    if (const Picoseconds end = simulate(s, better).end; static_cast<double>(end) <= 0.99 * step)
      e.remedies.push_back({std::move(name), end});
  };
  for (size_t i = 0; i < machine.devices.size(); ++i) {
    const std::string &name = machine.devices[i].name;
    if (std::ranges::none_of(t.resources,
                             [&](const Resource &r) { return r.device == machine.devices[i].device && r.busy > 0; }))
      continue;
    remedy("arithmetic of " + name + " twice as fast", [&](MachineModel &m) {
      for (auto &[type, rate] : m.devices[i].flopsPerSecond)
        rate *= 2;
      m.devices[i].speed *= 2;
    });
    remedy("memory and caches of " + name + " twice as fast", [&](MachineModel &m) {
      m.devices[i].bytesPerSecond *= 2, m.devices[i].threadBytesPerSecond *= 2;
      for (CacheModel &cache : m.devices[i].caches)
        cache.bytesPerSecond *= 2;
    });
    remedy("calls of " + name + " in half the time", [&](MachineModel &m) {
      m.devices[i].issueSeconds /= 2;
      m.devices[i].commandSeconds /= 2;
    });
  }
  if (e.links.size() > 1)
    remedy("links twice as fast", [](MachineModel &m) {
      for (LinkModel &link : m.links)
        link.bytesPerSecond *= 2;
      for (RouteModel &route : m.routes)
        route.pageableBytesPerSecond *= 2;
    });
  constexpr size_t kLinks = 16; // the most loaded links, each tried with twice the bandwidth
  std::vector<size_t> fullest;
  for (size_t i = 0; i < linkTime.size(); ++i)
    if (linkTime[i] > 0)
      fullest.push_back(i);
  std::ranges::sort(fullest, {}, [&](size_t i) { return std::pair(-linkTime[i], i); });
  for (size_t i : std::span(fullest).first(std::min(kLinks, fullest.size())))
    remedy(concat("link ", machine.links[i].name, " twice as fast"), [&](MachineModel &m) { m.links[i].bytesPerSecond *= 2; });
  if (std::ranges::any_of(machine.routes, [](const RouteModel &route) { return route.pageableBytesPerSecond > 0; }))
    remedy("inputs and outputs in pinned memory", [](MachineModel &m) {
      for (RouteModel &route : m.routes)
        route.pageableBytesPerSecond = 0;
    });
  std::ranges::sort(e.remedies, {}, [](const Remedy &r) { return std::pair(r.step, r.name); });
  return e;
}

std::string explainText(const Schedule &s, const Explanation &e, size_t most) {
  const Timeline &t = e.timeline;
  auto share = [&](Picoseconds part) {
    char text[16];
    std::snprintf(text, sizeof text, "%5.1f%%",
                  t.end ? 100 * static_cast<double>(part) / static_cast<double>(t.end) : 0.0);
    return std::string(text);
  };
  auto padded = [](std::string text, size_t width) {
    return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
  };
  auto right = [](const std::string &text, size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
  };
  std::string out =
      concat("'", timeline::clean(t.program), "' on ", timeline::clean(t.machine), ": ", t.spans.size(), " commands\n");
  if (!s.mesh.empty()) {
    std::string axes;
    for (const MeshAxis &axis : s.mesh)
      axes += concat(axes.empty() ? "" : ", ", timeline::clean(axis.name), " = ", dim::str(axis.size));
    out += concat("  ranks        one of ", numRanks(s.mesh), " (", axes,
                  "), all of which take as long; what follows is of this one\n");
  }
  out +=
      concat("  step         ", timeline::timeText(t.end),
             " (by these figures no order of the commands takes less than ", timeline::timeText(t.lowerBound), ")\n");
  if (e.overlap) {
    char text[16];
    std::snprintf(text, sizeof text, "%.3f", *e.overlap);
    out += concat("  overlap      ", text, " of transfers or computation, whichever is shorter\n");
  }
  if (t.sideBySide || e.achieved) {
    auto share = [](const std::optional<double> &part) {
      char text[16];
      part ? std::snprintf(text, sizeof text, "%.2f", *part) : std::snprintf(text, sizeof text, "none");
      return std::string(text);
    };
    out += concat("  side by side ", share(t.sideBySide), " planned",
                  e.achieved ? concat(", ", share(e.achieved), " achieved in the latest call") : "",
                  ", of the time in which an accelerator copies or computes, whichever is shorter\n");
  }
  out += concat("  memory       ", spellBytes(e.peakBytes), " of arenas (no plan for this order takes less than ",
                spellBytes(e.peakLowerBoundBytes), ")\n");
  if (e.memory.size() > 1)
    for (size_t i = 0, next = 0; i < e.memory.size(); i = next) {
      const Explanation::DeviceMemory &m = e.memory[i];
      auto isLike = [&](const Explanation::DeviceMemory &other) {
        return other.arenaBytes == m.arenaBytes && other.heldBytes == m.heldBytes && other.capacity == m.capacity;
      };
      for (next = i + 1; next < e.memory.size() && isLike(e.memory[next]);)
        ++next;
      out += concat("    ", m.device, next > i + 1 ? concat(" to ", e.memory[next - 1].device, ", each ") : " ",
                    spellBytes(m.arenaBytes), " of arenas, ", spellBytes(m.heldBytes),
                    " of weights, inputs and results; it has ", spellBytes(m.capacity), "\n");
    }
  auto counted = [](uint32_t n, const char *one, const char *many) { return concat(n, " ", n == 1 ? one : many); };
  if (e.assumedLoops)
    out += concat("  assumed      one trip of ", counted(e.assumedLoops, "loop whose end is", "loops whose ends are"), " computed\n");
  if (e.assumedBranches)
    out += concat("  assumed      the longer side of ", counted(e.assumedBranches, "branch", "branches"), "\n");
  auto heading = [&](const char *text) { out += concat("\n", text, "\n"); };
  auto rest = [&](size_t all) {
    if (all > most)
      out += concat("  ... and ", all - most, " more\n");
  };
  heading("resources, and how long they are busy");
  size_t width = e.links.empty() ? 12 : 16;
  for (const Explanation::Link &link : e.links)
    width = std::max(width, 6 + timeline::clean(link.name).size());
  auto busy = [&](const std::string &name, Picoseconds time) {
    out += concat("  ", padded(name, width), right(timeline::timeText(time), 9), "  ", share(time), "\n");
  };
  for (const Resource &r : t.resources)
    busy(timeline::clean(r.name), r.busy);
  for (const Explanation::Link &link : e.links)
    busy("link " + timeline::clean(link.name), link.busy);
  if (!e.collectives.empty())
    heading("collectives (bytes that a member has of all of them, and what they take one after the other where nothing "
            "else is sent)");
  for (size_t i = 0; i < std::min(most, e.collectives.size()); ++i) {
    const CollectiveUse &use = e.collectives[i];
    const std::string hosts = use.hosts > 1 ? concat(" on ", use.hosts, " hosts") : "";
    out +=
        concat("  ", padded(timeline::clean(use.name), 14), " ", use.count, " among ", use.members, " members", hosts,
               ", ", spellBytes(use.bytes), ", ", nameOf(use.algorithm), ": ", spellSeconds(use.seconds), "\n");
  }
  rest(e.collectives.size());
  if (!e.graphs.empty())
    heading("graphs that accelerators take (edges are waits and streams; beside it what issuing the commands one by one takes, as in the step above)");
  for (size_t i = 0; i < std::min(most, e.graphs.size()); ++i) {
    const Explanation::Graph &g = e.graphs[i];
    out += concat("  graph ", i, ": ", g.kernels, " kernels, ", g.copies, " copies, ", g.fills, " fills, ", g.edges, " edges; ",
                  spellSeconds(g.issueSeconds), " one by one\n");
  }
  rest(e.graphs.size());
  if (!e.limits.empty())
    heading("what bounds the step (time on the critical path)");
  for (size_t i = 0; i < std::min(most, e.limits.size()); ++i)
    out += concat("  ", padded(e.limits[i].name, 36), right(timeline::timeText(e.limits[i].time), 9), "  ",
                  share(e.limits[i].time), "\n");
  if (!e.remedies.empty())
    heading("what would help");
  for (size_t i = 0; i < std::min(most, e.remedies.size()); ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f",
                  static_cast<double>(t.end) / static_cast<double>(std::max<Picoseconds>(1, e.remedies[i].step)));
    out +=
        concat("  ", e.remedies[i].name, ": ", timeline::timeText(e.remedies[i].step), ", ", text, " times as fast\n");
  }
  if (!t.criticalPath.empty())
    heading("the longest commands of the critical path");
  std::vector<uint32_t> path = t.criticalPath;
  std::ranges::sort(path, {}, [&](uint32_t k) { return std::pair(t.spans[k].begin - t.spans[k].end, k); });
  for (size_t i = 0; i < std::min(most, path.size()); ++i) {
    const Span &span = t.spans[path[i]];
    out += concat("  ", right(timeline::timeText(span.end - span.begin), 9), "  ", share(span.end - span.begin), "  ",
                  padded(t.resources[span.resource].name, 8), " ", timeline::clean(span.name), "  ",
                  lineOf(s.locations[span.loc]), "\n");
  }
  rest(path.size());
  if (!e.decisions.empty())
    heading("decisions");
  std::vector<const Decision *> decisions; // decisions on the whole program come first
  for (bool whole : {true, false})
    for (const Decision &d : e.decisions)
      if ((d.where.line == 0 && d.where.file.empty()) == whole)
        decisions.push_back(&d);
  for (size_t i = 0; i < std::min(most, decisions.size()); ++i)
    out += concat("  ", lineOf(decisions[i]->where), ": ", decisions[i]->text, "\n");
  rest(decisions.size());
  return out;
}

std::string explainJson(const Schedule &s, const Explanation &e) {
  const Timeline &t = e.timeline;
  json file{{"schema", 1},
            {"program", t.program},
            {"machine", t.machine},
            {"kind", nameOf(t.kind)},
            {"step_seconds", seconds(t.end)},
            {"lower_bound_seconds", seconds(t.lowerBound)},
            {"overlap", e.overlap ? json(*e.overlap) : json(nullptr)},
            {"side_by_side", t.sideBySide ? json(*t.sideBySide) : json(nullptr)},
            {"side_by_side_achieved", e.achieved ? json(*e.achieved) : json(nullptr)},
            {"peak_bytes", e.peakBytes},
            {"peak_lower_bound_bytes", e.peakLowerBoundBytes},
            {"assumed_loops", e.assumedLoops},
            {"assumed_branches", e.assumedBranches}};
  for (const char *list :
       {"resources", "memory", "critical_path", "limits", "remedies", "decisions", "graphs", "collectives"})
    file[list] = json::array();
  for (const Explanation::DeviceMemory &m : e.memory)
    file["memory"].push_back({{"device", m.device},
                              {"arena_bytes", m.arenaBytes},
                              {"held_bytes", m.heldBytes},
                              {"capacity_bytes", m.capacity}});
  for (const Resource &r : t.resources)
    file["resources"].push_back({{"name", r.name}, {"busy_seconds", seconds(r.busy)}});
  for (const Explanation::Link &link : e.links)
    file["resources"].push_back({{"name", "link " + link.name}, {"busy_seconds", seconds(link.busy)}});
  for (uint32_t k : t.criticalPath) {
    const Span &span = t.spans[k];
    const Location &l = s.locations[span.loc];
    file["critical_path"].push_back({{"name", span.name},
                                     {"op", l.op},
                                     {"file", l.file},
                                     {"line", l.line},
                                     {"resource", t.resources[span.resource].name},
                                     {"begin_seconds", seconds(span.begin)},
                                     {"seconds", seconds(span.end - span.begin)}});
  }
  for (const Limit &limit : e.limits)
    file["limits"].push_back({{"name", limit.name}, {"seconds", seconds(limit.time)}});
  for (const Remedy &remedy : e.remedies)
    file["remedies"].push_back({{"name", remedy.name}, {"step_seconds", seconds(remedy.step)}});
  for (const Decision &d : e.decisions)
    file["decisions"].push_back(
        {{"pass", d.pass}, {"op", d.where.op}, {"file", d.where.file}, {"line", d.where.line}, {"text", d.text}});
  for (const Explanation::Graph &g : e.graphs)
    file["graphs"].push_back({{"kernels", g.kernels}, {"copies", g.copies}, {"fills", g.fills}, {"edges", g.edges}, {"issue_seconds", g.issueSeconds}});
  file["mesh"] = json::object();
  for (const MeshAxis &axis : s.mesh)
    file["mesh"][axis.name] = axis.size.numberOr(0);
  for (const CollectiveUse &use : e.collectives)
    file["collectives"].push_back({{"name", use.name},
                                   {"members", use.members},
                                   {"hosts", use.hosts},
                                   {"algorithm", nameOf(use.algorithm)},
                                   {"count", use.count},
                                   {"bytes", use.bytes},
                                   {"seconds", use.seconds}});
  return file.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace tressel::runtime
