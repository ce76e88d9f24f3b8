// Which commands a driver can take as one graph (a CUDA graph): launched together, they cost the host one call instead
// of one each.
//
// A command is a node if an accelerator executes it: a launch of a kernel made for it, a copy, or a fill. Order within
// a stream and waits are the graph's edges. A graph is launched as a whole, so no node may wait for the host's work
// that itself waits for the graph: node and host commands have levels, a node that of what it waits for, or one more
// than that of the host's work it waits for, and each level is a graph. The host may wait for single nodes, by events
// in the graph, so that a copy to the host is used as soon as it is there.
//
// A loop of a known number of iterations whose body an accelerator executes is unrolled into the graph: each
// iteration's commands stand behind the one before.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tressel::runtime {

struct CommandCounts {
  uint64_t kernels = 0, copies = 0, fills = 0;
  uint64_t all() const { return kernels + copies + fills; }
};
/// What a loop is when it is unrolled: only accelerators execute it, and it has at most kMostUnrolled commands.
/// Symbolic counts are as large as their hints. None for other commands.
std::optional<CommandCounts> unrolled(const Schedule &schedule, const CommandList &list, const Command &command);
inline constexpr uint64_t kMostUnrolled = 4096;

struct DeviceGraph {
  std::vector<uint32_t> nodes; ///< commands of the list, in their order; a loop is one
  CommandCounts counts;        ///< loops unrolled
  uint32_t edges = 0;          ///< of streams and waits, between its nodes
};

/// The graphs of a command list in the order of their launch; none where accelerators run no kernels of their own.
/// Branches, loops that are not unrolled, and collectives are no nodes: the host stands between, though a device may decide a branch or a `while` (Device.h, GroupChoice).
std::vector<DeviceGraph> deviceGraphs(const Schedule &schedule, const CommandList &list);

} // namespace tressel::runtime
