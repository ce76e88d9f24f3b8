// Flat schedules made up at random: several devices, compute and copy streams, copies in chunks, fills, overlapping
// ranges, bytes used again, loops and branches, host calls, collectives, calls in flight. Their waits are made by a
// simple method (all earlier conflicts), then reduced; so they are safe, and none of their waits can be spared.
//
// They can be executed: kernels and host calls are of this library, everything holds integers, and `runSerially` says
// what each output is.
#pragma once

#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tressel::test {

struct RandomScheduleOptions {
  int accelerators = 2; ///< gpu0, ... beside one cpu
  int commands = 40;    ///< of the step, about; those of bodies count
  int lanes = 1;        ///< further streams of the cpu, of kind Lane
  int64_t words = 24;   ///< most 4-byte words of a range
  bool bodies = true;   ///< loops, branches, whiles, in each other
  bool hostCalls = true;
  bool collectives = true; ///< among all accelerators, if there are two or more
  int groups = 1;          ///< of up to three: on streams of their own, with other members
  /// Sizes of the axes "a", "b", ... of a mesh: the program of one rank with one accelerator, and collectives over
  /// axes.
  std::vector<int64_t> mesh = {};
  bool prepare = true;     ///< parameters, and states derived of them
  bool deviceToDevice = true;
  bool homes = false; ///< some inputs, outputs and states that callers bind lie on accelerators
  uint32_t inFlight = 1; ///< where it is more, all that touches mutable states runs in the cpu's first stream, and
                         ///< bodies hold no collectives
};

/// The same seed and options give the same schedule, on every machine. Streams: cpu's "cpu", then its lanes; per
/// accelerator "gpu0" (kernels, fills), "gpu0.in", "gpu0.out", "gpu0.comm" (of kind CopyOut) with collectives, and
/// "gpu0.side" with those of further groups. Inputs, outputs and what callers bind are i32; constants lie in
/// `constantsOf`.
runtime::Schedule randomSchedule(uint64_t seed, const RandomScheduleOptions &options = {});
/// The bytes of its constants.
std::vector<std::byte> constantsOf(const runtime::Schedule &schedule);
/// Some bytes for an input or a state that the caller binds: the same for the same numbers.
std::vector<std::byte> someBytes(int64_t bytes, uint64_t seed);

/// Makes the kernels known to the runtime, under the providers "mix" and, for host calls, "host" (KernelDesc::params
/// say what they do). Each has one unit of work, so it runs in one piece; results depend on every byte that it reads.
void registerMixKernels();
/// What a collective does to the members' elements: sources and destinations in the members' order, `words` i32
/// each source has (of a broadcast: as many as the destinations; the sources of others than the root are not read).
void combine(const runtime::CollectiveDesc &collective, std::span<const void *const> sources,
             std::span<void *const> destinations, int64_t words);

/// States that outlive a call, by number; those that are not bound or not yet derived are empty.
struct States {
  std::vector<std::vector<std::byte>> bytes;
};
/// Executes prepare, then the step as often as there are sets of inputs, command by command in issue order: what any
/// correct execution gives. Returns the outputs of each call. Needs a verified schedule of numbers. `states` holds the
/// bound ones, and is left as the calls leave it.
std::vector<std::vector<std::vector<std::byte>>>
runSerially(const runtime::Schedule &schedule, States &states,
            std::span<const std::vector<std::vector<std::byte>>> inputsOfCalls);
/// The same for all ranks of a program with a mesh, whose sizes are numbers: each has memory of its own, and they
/// proceed command by command together. Throws std::logic_error when a branch with collectives goes different ways.
/// `states` by rank; inputs and outputs of a call are those of rank 0, then those of rank 1, and so on.
std::vector<std::vector<std::vector<std::byte>>>
runRanksSerially(const runtime::Schedule &schedule, std::vector<States> &states,
                 std::span<const std::vector<std::vector<std::byte>>> inputsOfCalls);

} // namespace tressel::test
