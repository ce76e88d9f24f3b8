// Which commands a driver can take as one graph (a CUDA graph): launched together, they cost the host one call instead of one each.
//
// A command is a node if an accelerator executes it: a launch of a kernel made for it, a copy, or a fill. Order within a stream and waits are the graph's
// edges. A graph is launched as a whole, so no node may wait for the host's work that itself waits for the graph: node and host commands have levels, a
// node that of what it waits for, or one more than that of the host's work it waits for, and each level is a graph. The host may wait for single nodes, by
// events in the graph, so that a copy to the host is used as soon as it is there.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <vector>

namespace tressel::runtime {

struct DeviceGraph {
  std::vector<uint32_t> nodes; ///< commands of the list, in their order
  uint32_t kernels = 0, copies = 0, fills = 0;
  uint32_t edges = 0; ///< of streams and waits, between its nodes
};

/// The graphs of a command list in the order of their launch; none where accelerators run no kernels of their own. Bodies of loops and branches, and
/// collectives, are the host's work.
std::vector<DeviceGraph> deviceGraphs(const Schedule &schedule, const CommandList &list);

} // namespace tressel::runtime
