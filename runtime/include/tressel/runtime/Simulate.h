// Virtual time: when the commands of a schedule would run on a machine that is described by figures alone. Nothing is
// computed; the same schedule and model give the same picoseconds on every call.
//
// The rule. One host thread per device issues its commands in issue order, each taking DeviceModel::issueSeconds. A
// command is ready when it is issued, its predecessor in the stream has ended, and so has everything that it waits for.
// A device has one engine for kernels and fills, one for each direction of copies; each stream of kind Lane has its
// own. An engine runs one command at a time to its end, of those ready the one that has been so longest, then the lower
// stream, then the earlier command. A transfer takes the latencies of its route's links, then shares their rates, and
// those of the memories at its ends, fairly with all others (max-min), computed anew whenever one begins or ends. A
// kernel beside transfers of its device is slowed as DeviceModel::contention says.
//
// A collective is ready when the last of its parts is; each part holds its stream's engine, and it begins when all have
// theirs. It runs as the phases of planCollective (CollectivePlan.h) say: around the ring of its members, as a tree, or
// within hosts and between them, whichever is the shortest. In a step each member's piece is a transfer like any other;
// the next step begins when all have ended.
//
// Of a program for the ranks of a mesh, one rank is simulated, whose devices are the first of the machine; all ranks
// take the same time. Rank r has the accelerators behind those of the ranks before it, host by host. This rank's pieces
// take the route to the member beside it, within its host or between hosts, and share an adapter with the other ranks
// of the host, as these send at the same time. Other links of a host are taken to be the rank's own: where ranks share
// them, simulate what expandRanks (Ranks.h) makes.
//
// A command with bodies runs alone on its stream's engine, for as long as its bodies take: a loop as often as it says;
// of a branch the longer body; a While once, as its number of iterations is not known. Host calls take no time.
#pragma once

#include "tressel/runtime/CollectivePlan.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Timeline.h"

namespace tressel::runtime {

struct SimulateOptions {
  bool transferTime = true; ///< false: copies between devices and collectives take no time
  bool computeTime = true;  ///< false: kernels, fills and copies within a device take no time
};

/// The step of a verified schedule whose sizes are numbers (Instantiate.h). Throws InputError when the machine lacks a
/// device that the schedule uses, accelerators for all ranks, a route (to other ranks included), or the memory for its arenas (with the bytes).
Timeline simulate(const Schedule &schedule, const MachineModel &machine, const SimulateOptions &options = {});

/// How long each link of the machine, at its full rate, takes for all that the step's copies and collectives send
/// through it; those of bodies are not counted. With the same errors.
std::vector<Picoseconds> linkTimes(const Schedule &schedule, const MachineModel &machine);

/// Collectives of the step of one kind, algorithm and number of members.
struct CollectiveUse {
  std::string name; ///< the kind: "all_reduce"
  int64_t members = 1, hosts = 1;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring;
  uint32_t count = 0;
  int64_t bytes = 0;  ///< of all of them
  double seconds = 0; ///< that they take one after the other, where nothing else is sent
};
/// Those of bodies are not counted. With the same errors.
std::vector<CollectiveUse> collectivesOf(const Schedule &schedule, const MachineModel &machine);

} // namespace tressel::runtime
