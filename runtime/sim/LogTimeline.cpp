// Turns the log of a call into a timeline.
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Simulated.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <limits>

namespace tressel::runtime {
Timeline timelineOf(const Executor &executor, uint32_t call) {
  const Schedule &s = executor.numbers();
  const Machine &machine = executor.machine();
  if (machine.log().commands.empty() && !s.step.commands.empty())
    throw Error(concat("machine '", machine.name(), "' keeps no log of its commands, of which a timeline could be made"));
  if (machine.caller() != executor.caller())
    throw Error(concat("machine '", machine.name(), "' has run another program since '", s.name, "'"));
  const VirtualTimes times = machine.times();
  const std::vector<LoggedCommand> &log = machine.log().commands;
  const bool isVirtual = machine.at({}).caps().isVirtualTime;
  Timeline t{.kind = isVirtual ? TimelineKind::Simulated : TimelineKind::Measured,
             .program = s.name,
             .machine = machine.name()};
  const auto [engines, engineOf] = EngineTable(machine.model(), s.streams);
  for (const EngineTable::Engine &engine : engines)
    t.resources.push_back({.name = engine.name, .device = engine.device, .kind = engine.kind});
  constexpr Picoseconds kUnknown = -1;
  std::vector<Picoseconds> begin(s.step.commands.size(), kUnknown), end(s.step.commands.size(), 0);
  for (size_t i = 0; i < log.size(); ++i) {
    const CommandTag tag = CommandTag::unpack(log[i].tag);
    if (tag.list != 1 || tag.call != (call & 255))
      continue;
    if (tag.role == CommandTag::Role::Whole || tag.role == CommandTag::Role::Begin)
      begin[tag.command] = times.begin[i];
    end[tag.command] = std::max(end[tag.command], times.end[i]);
  }
  for (uint32_t i = 0; i < s.step.commands.size(); ++i) {
    const Command &c = s.step.commands[i];
    Span span = spanOf(s, i);
    span.resource = engineOf[c.stream];
    span.begin = std::max<Picoseconds>(begin[i], 0);
    span.end = end[i];
    for (uint32_t w = 0; w < c.numWaits; ++w)
      span.after.push_back(s.step.waits[c.firstWait + w].command);
    t.spans.push_back(std::move(span));
  }
  // Backward from the last command: each was delayed by one that ended when it began, in its stream, on its engine or
  // elsewhere.
  std::vector<std::vector<uint32_t>> onEngine(t.resources.size());
  for (uint32_t i = 0; i < t.spans.size(); ++i)
    onEngine[t.spans[i].resource].push_back(i);
  std::vector<uint32_t> before(t.spans.size(), UINT32_MAX);
  for (auto &list : onEngine) {
    std::ranges::sort(list, {}, [&](uint32_t i) { return std::pair(t.spans[i].begin, i); });
    for (size_t k = 1; k < list.size(); ++k)
      before[list[k]] = list[k - 1];
  }
  uint32_t at = UINT32_MAX;
  for (uint32_t i = 0; i < t.spans.size(); ++i)
    if (at == UINT32_MAX || t.spans[i].end > t.spans[at].end)
      at = i;
  for (size_t steps = 0; at != UINT32_MAX && steps < t.spans.size(); ++steps) {
    t.criticalPath.push_back(at);
    uint32_t latest = before[at];
    for (uint32_t need : t.spans[at].after)
      if (latest == UINT32_MAX || t.spans[need].end > t.spans[latest].end)
        latest = need;
    at = latest;
  }
  std::ranges::reverse(t.criticalPath);
  arrange(t);
  return t;
}

} // namespace tressel::runtime
