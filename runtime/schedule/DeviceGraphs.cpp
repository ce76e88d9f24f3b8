#include "tressel/runtime/DeviceGraphs.h"

#include "GraphLevels.h"
#include "Unrolled.h"

#include <utility>

namespace tressel::runtime {

namespace {

/// Whether the launch calls a library, which is issued between graphs.
bool callsLibrary(const Schedule &s, const Command &c) {
  if (c.kind == CommandKind::Loop)
    return std::ranges::any_of(s.bodies[c.body].commands, [&](const Command &inner) { return callsLibrary(s, inner); });
  return c.kind == CommandKind::Launch && s.kernels[c.kernel].target != KernelTarget::Gpu;
}

} // namespace

std::vector<DeviceGraph> deviceGraphs(const Schedule &s, const CommandList &p) {
  std::vector<DeviceGraph> graphs;
  if (std::ranges::none_of(s.kernels, [](const KernelDesc &kernel) { return isForGpu(kernel.target); }))
    return graphs;
  auto isNode = [&](const Command &c) { return (isByAccelerator(s, c) || unrolled(s, p, c)) && !callsLibrary(s, c); };
  const auto count = static_cast<uint32_t>(p.commands.size());
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<bool> isANode(count);
  std::vector<uint32_t> previous(count, kNone), last(s.streams.size(), kNone); // the command before in its stream
  for (uint32_t i = 0; i < count; ++i) {
    isANode[i] = isNode(p.commands[i]);
    previous[i] = std::exchange(last[p.commands[i].stream], i);
  }
  auto forEachBefore = [&](uint32_t i, auto &&use) {
    const Command &c = p.commands[i];
    for (uint32_t w = 0; w < c.numWaits; ++w)
      use(p.waits[c.firstWait + w].command);
    if (previous[i] != kNone)
      use(previous[i]);
  };
  const std::vector<uint32_t> levels = graphLevels(
      count, [&](uint32_t i) { return isANode[i]; }, forEachBefore);
  for (uint32_t i = 0; i < count; ++i) {
    if (!isANode[i])
      continue;
    if (graphs.size() <= levels[i])
      graphs.resize(levels[i] + 1);
    DeviceGraph &graph = graphs[levels[i]];
    const Command &c = p.commands[i];
    const CommandCounts loop = unrolled(s, p, c).value_or(CommandCounts{});
    graph.nodes.push_back(i);
    graph.counts.kernels += loop.kernels + (c.kind == CommandKind::Launch);
    graph.counts.copies += loop.copies + (c.kind == CommandKind::Copy);
    graph.counts.fills += loop.fills + (c.kind == CommandKind::Fill);
    forEachBefore(i, [&](uint32_t before) { graph.edges += isANode[before] && levels[before] == levels[i]; });
  }
  std::erase_if(graphs, [](const DeviceGraph &graph) { return graph.nodes.empty(); });
  return graphs;
}

} // namespace tressel::runtime
