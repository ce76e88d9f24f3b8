#include "tressel/runtime/DeviceGraphs.h"

#include <algorithm>

namespace tressel::runtime {

std::vector<DeviceGraph> deviceGraphs(const Schedule &s, const CommandList &p) {
  std::vector<DeviceGraph> graphs;
  if (std::ranges::none_of(s.kernels, [](const KernelDesc &kernel) { return isForGpu(kernel.target); }))
    return graphs;
  auto isNode = [&](const Command &c) {
    if (s.streams[c.stream].device.kind != DeviceKind::Gpu)
      return false;
    return c.kind == CommandKind::Copy || c.kind == CommandKind::Fill || (c.kind == CommandKind::Launch && isForGpu(s.kernels[c.kernel].target));
  };
  struct Place {
    bool node = false;
    uint32_t level = 0;
  };
  std::vector<Place> places(p.commands.size());
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> last(s.streams.size(), kNone);
  for (uint32_t i = 0; i < p.commands.size(); ++i) {
    const Command &c = p.commands[i];
    Place &here = places[i];
    here.node = isNode(c);
    auto after = [&](uint32_t other) {
      const Place &before = places[other];
      here.level = std::max(here.level, before.level + (here.node && !before.node ? 1 : 0));
    };
    for (uint32_t w = 0; w < c.numWaits; ++w)
      after(p.waits[c.firstWait + w].command);
    if (last[c.stream] != kNone)
      after(last[c.stream]);
    if (here.node) {
      if (graphs.size() <= here.level)
        graphs.resize(here.level + 1);
      DeviceGraph &graph = graphs[here.level];
      graph.nodes.push_back(i);
      graph.kernels += c.kind == CommandKind::Launch;
      graph.copies += c.kind == CommandKind::Copy;
      graph.fills += c.kind == CommandKind::Fill;
      auto edge = [&](uint32_t other) { graph.edges += places[other].node && places[other].level == here.level; };
      for (uint32_t w = 0; w < c.numWaits; ++w)
        edge(p.waits[c.firstWait + w].command);
      if (last[c.stream] != kNone)
        edge(last[c.stream]);
    }
    last[c.stream] = i;
  }
  std::erase_if(graphs, [](const DeviceGraph &graph) { return graph.nodes.empty(); });
  return graphs;
}

} // namespace tressel::runtime
