// What a collective is made of, and how long it takes by a machine's model.
#pragma once

#include "tressel/runtime/MachineModel.h"

namespace tressel::runtime {

/// How a collective goes: so many steps, in each of which a member sends so many bytes to one other and gets as many.
struct CollectiveSteps {
  int64_t steps = 0, bytes = 0;
  bool isRing = true;
};
/// Around the ring of `members`, of which each ends with `bytes` (of reduce_scatter: begins). The algorithms are those
/// of Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH" (2005).
CollectiveSteps ringSteps(CollectiveKind kind, int64_t members, int64_t bytes);
/// The ring, or where it is shorter with messages of that latency and rate: recursive halving and doubling (all_reduce,
/// reduce_scatter, all_gather), which takes 2 log2 n, or log2 n, steps; a binomial tree (broadcast). Where n is no
/// power of two, the members beyond the last one send theirs to others before, and get the result from them.
CollectiveSteps shortestSteps(CollectiveKind kind, int64_t members, int64_t bytes, double latencySeconds,
                              double bytesPerSecond);
/// The same for messages on the route from one member to another, which stands for all; the ring where there is none. `seconds` becomes what all
/// steps take where nothing else moves.
CollectiveSteps stepsAlong(const MachineModel &machine, DeviceRef from, DeviceRef to, CollectiveKind kind, int64_t members,
                           int64_t bytes, double *seconds = nullptr);

} // namespace tressel::runtime
