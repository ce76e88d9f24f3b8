// Builds timelines, for the simulator and for measured calls.
#include "tressel/runtime/Timeline.h"

#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executable.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace tressel::runtime {

std::string_view nameOf(TimelineKind kind) {
  switch (kind) {
  case TimelineKind::Planned:
    return "planned";
  case TimelineKind::Simulated:
    return "simulated";
  case TimelineKind::Measured:
    return "measured";
  }
  return "?";
}

std::string_view nameOf(SpanKind kind) {
  switch (kind) {
  case SpanKind::Kernel:
    return "kernel";
  case SpanKind::Copy:
    return "copy";
  case SpanKind::Fill:
    return "fill";
  case SpanKind::Host:
    return "host";
  case SpanKind::Collective:
    return "collective";
  case SpanKind::Control:
    return "control";
  case SpanKind::Wait:
    return "wait";
  case SpanKind::HiddenWait:
    return "hidden wait";
  }
  return "?";
}

std::vector<Resource> resourcesOf(const Schedule &schedule) {
  std::vector<Resource> resources;
  for (const StreamDesc &stream : schedule.streams)
    resources.push_back({.name = stream.name, .device = stream.device, .kind = stream.kind});
  return resources;
}

namespace {

/// The user's name for the bytes, if there is one.
std::string userName(const Schedule &s, const BufferDesc &buffer) {
  switch (buffer.space) {
  case Space::Input:
    return s.inputs[buffer.index].name;
  case Space::Output:
    return s.outputs[buffer.index].name;
  case Space::State:
    return s.states[buffer.index].name;
  case Space::Arena:
  case Space::Constant:
    break;
  }
  return {};
}

std::string copyName(const Schedule &s, const BufferDesc &from, const BufferDesc &to) {
  const bool fromGpu = !isHost(homeOf(s, from)), toGpu = !isHost(homeOf(s, to));
  std::string what = userName(s, from);
  if (what.empty())
    what = userName(s, to);
  if (what.empty())
    what = from.type.str();
  return std::string(!fromGpu && !toGpu ? "copy " : !fromGpu ? "h2d " : toGpu ? "d2d " : "d2h ") + what;
}

std::string collectiveName(const CollectiveDesc &c) {
  static constexpr const char *kKinds[] = {"all_reduce ", "all_gather ", "reduce_scatter ", "broadcast "};
  return kKinds[static_cast<size_t>(c.kind)] + c.name;
}

int64_t known(Size size) { return std::max<int64_t>(size.numberOr(0), 0); }

} // namespace

Span spanOf(const Schedule &s, uint32_t index) {
  const Command &command = s.step.commands[index];
  auto buffer = [&](uint32_t operand) -> const BufferDesc & {
    return s.buffers[s.step.operands[command.firstOperand + operand].buffer];
  };
  Span span{.command = index, .resource = command.stream, .loc = command.loc};
  switch (command.kind) {
  case CommandKind::Launch: {
    const KernelDesc &kernel = s.kernels[command.kernel];
    span.name = kernel.symbol;
    span.flops = known(kernel.flops);
    span.bytes = known(kernel.bytes);
    break;
  }
  case CommandKind::Copy:
    span.kind = SpanKind::Copy;
    span.name = copyName(s, buffer(0), buffer(1));
    span.bytes = known(buffer(1).bytes);
    break;
  case CommandKind::Fill: {
    const std::string what = userName(s, buffer(0));
    span.kind = SpanKind::Fill;
    span.name = "fill " + (what.empty() ? buffer(0).type.str() : what);
    span.bytes = known(buffer(0).bytes);
    break;
  }
  case CommandKind::HostCall:
    span.kind = SpanKind::Host;
    span.name = command.kernel < s.kernels.size() ? s.kernels[command.kernel].symbol : "host call";
    break;
  case CommandKind::Collective:
    span.kind = SpanKind::Collective;
    span.name = command.kernel < s.collectives.size() ? collectiveName(s.collectives[command.kernel]) : "collective";
    for (uint32_t i = 0; i < command.numOperands; ++i)
      span.bytes += known(buffer(i).bytes);
    break;
  case CommandKind::Branch:
  case CommandKind::While:
  case CommandKind::Loop:
    span.kind = SpanKind::Control;
    span.name = command.kind == CommandKind::Branch ? "branch" : command.kind == CommandKind::While ? "while" : "loop";
    break;
  }
  return span;
}

/// Disjoint intervals in ascending order.
using Intervals = std::vector<std::pair<Picoseconds, Picoseconds>>;
/// Adds an interval that begins no earlier than the last one.
static void join(Intervals &intervals, Picoseconds begin, Picoseconds end) {
  if (!intervals.empty() && begin <= intervals.back().second)
    intervals.back().second = std::max(intervals.back().second, end);
  else if (begin < end)
    intervals.emplace_back(begin, end);
}
static Picoseconds lengthOf(const Intervals &intervals) {
  Picoseconds length = 0;
  for (const auto &[begin, end] : intervals)
    length += end - begin;
  return length;
}
static Picoseconds bothOf(const Intervals &a, const Intervals &b) {
  Picoseconds both = 0;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size(); a[i].second < b[k].second ? ++i : ++k)
    both += std::max<Picoseconds>(0, std::min(a[i].second, b[k].second) - std::max(a[i].first, b[k].first));
  return both;
}

/// Time in which accelerators compute and move bytes at once, as a share of the most that could overlap. Spans must be
/// sorted by begin.
static std::optional<double> sideBySideOf(const Timeline &t) {
  std::map<uint16_t, std::pair<Intervals, Intervals>> accelerators; // computing, moving bytes
  for (const Span &span : t.spans) {
    const Resource &resource = t.resources[span.resource];
    if (resource.device.kind != DeviceKind::Gpu)
      continue;
    auto &[computing, moving] = accelerators[resource.device.index];
    join(resource.kind == StreamKind::Compute ? computing : moving, span.begin, span.end);
  }
  Picoseconds both = 0, most = 0;
  for (const auto &[device, times] : accelerators) {
    both += bothOf(times.first, times.second);
    most += std::min(lengthOf(times.first), lengthOf(times.second));
  }
  return most > 0 ? std::optional(static_cast<double>(both) / static_cast<double>(most)) : std::nullopt;
}

void arrange(Timeline &t) {
  std::vector<uint32_t> order(t.spans.size()), place(t.spans.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](uint32_t i) {
    const Span &span = t.spans[i];
    return std::tuple(span.begin, span.resource, span.command, i);
  });
  std::vector<Span> spans;
  spans.reserve(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    spans.push_back(std::move(t.spans[order[i]]));
  }
  t.spans = std::move(spans);

  std::vector<Picoseconds> busyUntil(t.resources.size(), std::numeric_limits<Picoseconds>::min());
  for (Resource &resource : t.resources)
    resource.busy = 0;
  for (Span &span : t.spans) {
    for (uint32_t &before : span.after)
      before = place[before];
    std::ranges::sort(span.after, {}, [&](uint32_t i) { return std::pair(t.spans[i].end, i); });
    Picoseconds &until = busyUntil[span.resource];
    t.resources[span.resource].busy += std::max<Picoseconds>(0, span.end - std::max(span.begin, until));
    until = std::max(until, span.end);
    t.end = std::max(t.end, span.end);
  }
  for (uint32_t &span : t.criticalPath)
    span = place[span];
  std::ranges::sort(t.criticalPath);
  t.sideBySide = sideBySideOf(t);
}

Picoseconds wholePicoseconds(double value) {
  if (!(value <= 1e18))
    throw InputError("a command would take " + std::to_string(value * 1e-12) +
                     " s by the machine's figures, or end after so many; times here are up to 1000000 s: mend the figures, or "
                     "take smaller sizes");
  return static_cast<Picoseconds>(std::ceil(value));
}
Picoseconds picoseconds(double seconds) { return wholePicoseconds(seconds * 1e12); }

TimelineWriter timelineWriter(std::string_view file) {
  static constexpr std::pair<std::string_view, TimelineWriter> forms[] = {
      {".json", timelineJson}, {".svg", timelineSvg}, {".html", timelineHtml}, {".dot", timelineDot}};
  for (const auto &[suffix, writer] : forms)
    if (file.ends_with(suffix))
      return writer;
  return nullptr;
}

Timeline measured(const Schedule &schedule, const Profile &profile, std::string machine) {
  const auto &commands = schedule.step.commands;
  if (profile.commands.size() != commands.size())
    throw InternalError("a profile of " + std::to_string(profile.commands.size()) + " commands for a schedule of " +
                        std::to_string(commands.size()));
  Timeline t{.kind = TimelineKind::Measured, .program = schedule.name, .machine = std::move(machine)};
  t.resources = resourcesOf(schedule);
  int64_t start = std::numeric_limits<int64_t>::max();
  for (const Profile::Span &span : profile.commands)
    start = std::min(start, span.startNs);
  for (uint32_t i = 0; i < commands.size(); ++i) {
    Span span = spanOf(schedule, i);
    span.begin = (profile.commands[i].startNs - start) * 1000;
    span.end = (profile.commands[i].endNs - start) * 1000;
    for (uint32_t w = 0; w < commands[i].numWaits; ++w)
      span.after.push_back(schedule.step.waits[commands[i].firstWait + w].command);
    t.spans.push_back(std::move(span));
  }
  arrange(t);
  return t;
}

} // namespace tressel::runtime
