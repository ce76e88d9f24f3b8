#include "tressel/runtime/DeviceGraphs.h"

#include "GraphLevels.h"

#include <utility>

namespace tressel::runtime {

std::vector<DeviceGraph> deviceGraphs(const Schedule &s, const CommandList &p) {
  std::vector<DeviceGraph> graphs;
  if (std::ranges::none_of(s.kernels, [](const KernelDesc &kernel) { return isForGpu(kernel.target); }))
    return graphs;
  auto isNode = [&](const Command &c) {
    if (s.streams[c.stream].device.kind != DeviceKind::Gpu)
      return false;
    // Calls of libraries are issued between graphs.
    return c.kind == CommandKind::Copy || c.kind == CommandKind::Fill || (c.kind == CommandKind::Launch && s.kernels[c.kernel].target == KernelTarget::Gpu);
  };
  const auto count = static_cast<uint32_t>(p.commands.size());
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<bool> isANode(count);
  std::vector<uint32_t> previous(count, kNone), last(s.streams.size(), kNone); // in the stream
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
    const CommandKind kind = p.commands[i].kind;
    graph.nodes.push_back(i);
    graph.kernels += kind == CommandKind::Launch;
    graph.copies += kind == CommandKind::Copy;
    graph.fills += kind == CommandKind::Fill;
    forEachBefore(i, [&](uint32_t before) { graph.edges += isANode[before] && levels[before] == levels[i]; });
  }
  std::erase_if(graphs, [](const DeviceGraph &graph) { return graph.nodes.empty(); });
  return graphs;
}

} // namespace tressel::runtime
