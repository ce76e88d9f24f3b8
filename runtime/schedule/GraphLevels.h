// Which graph each command of a list belongs to (tressel/runtime/DeviceGraphs.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tressel::runtime {

/// The level of each of `count` commands: nodes of one level are a graph; what is no node is the host's work, which may follow the graph of its level and precedes that
/// of the next one. `forEachBefore(i, use)` calls use(j) for the commands that command i is behind, in its stream and by waits; they are smaller.
template <typename IsNode, typename ForEachBefore> std::vector<uint32_t> graphLevels(uint32_t count, IsNode &&isNode, ForEachBefore &&forEachBefore) {
  std::vector<uint32_t> levels(count, 0);
  for (uint32_t i = 0; i < count; ++i)
    forEachBefore(i, [&](uint32_t before) { levels[i] = std::max(levels[i], levels[before] + (isNode(i) && !isNode(before) ? 1 : 0)); });
  return levels;
}

} // namespace tressel::runtime
