// The peer of our plans over several devices: a run-time system that places tasks while they run, as task libraries do.
#pragma once

#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <vector>

namespace tressel::bench {

/// Tasks in the order in which a serial program submits them. What they depend on follows from the data.
struct TaskGraph {
  struct Task {
    uint32_t kernel = 0; ///< of `kernels`
    std::vector<uint32_t> reads;
    uint32_t writes = 0; ///< if it is among the reads too, it is updated
  };
  std::vector<TensorType> data; ///< all begin in the host's pinned memory; those that are written end there too
  std::vector<runtime::KernelDesc> kernels;
  std::vector<Task> tasks;
};

/// A task that becomes ready goes, in submission order, to the accelerator where it would be done first: when that is
/// done with what it has been given, what the copies of its operands take (which begin then), and its own time, by the
/// machine's figures ("dmda" of StarPU; Augonnet, Thibault, Namyst and Wacrenier, 2011). Commands stand in the order of
/// these decisions, each with the waits that its data needs.
runtime::Schedule dynamicSchedule(const TaskGraph &graph, const runtime::MachineModel &machine);

} // namespace tressel::bench
