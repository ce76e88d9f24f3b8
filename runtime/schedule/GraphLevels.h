// Assigns the commands of a list to device graphs (tressel/runtime/DeviceGraphs.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tressel::runtime {

/// The level of each of `count` commands. Nodes of one level form a graph. Other commands are the host's: they run
/// after the graph of their level, if they depend on it, and before that of the next. `forEachBefore(i, use)` calls
/// use(j) for each command j < i that command i depends on, by its stream or by a wait.
template <typename IsNode, typename ForEachBefore> std::vector<uint32_t> graphLevels(uint32_t count, IsNode &&isNode, ForEachBefore &&forEachBefore) {
  std::vector<uint32_t> levels(count, 0);
  for (uint32_t i = 0; i < count; ++i)
    forEachBefore(i, [&](uint32_t before) { levels[i] = std::max(levels[i], levels[before] + (isNode(i) && !isNode(before) ? 1 : 0)); });
  return levels;
}

} // namespace tressel::runtime
