// Random schedules (RandomSchedule.h) on machines, and one command after the other, to be compared.
#pragma once

#include "test/support/RandomSchedule.h"
#include "tressel/runtime/Device.h"
#include "tressel/runtime/Executable.h"

#include <memory>

namespace tressel::test {

std::shared_ptr<const runtime::Executable> executableOf(const runtime::Schedule &schedule);
/// Without the proof that it is safe.
std::shared_ptr<const runtime::Executable> unverifiedExecutableOf(const runtime::Schedule &schedule);

/// The outputs of two calls, then the states that the caller has bound.
using Results = std::vector<std::vector<std::vector<std::byte>>>;
/// Inputs and states are made of the seed.
Results runTwice(const runtime::Schedule &schedule, const std::shared_ptr<runtime::Machine> &machine, uint64_t seed,
                 bool verified = true);
Results runTwiceSerially(const runtime::Schedule &schedule, uint64_t seed);
/// The same of so many calls, of which as many are at work at once as the schedule says.
Results runInFlight(const runtime::Schedule &schedule, const std::shared_ptr<runtime::Machine> &machine, uint64_t seed,
                    size_t calls, bool verified = true);
Results runAllSerially(const runtime::Schedule &schedule, uint64_t seed, size_t calls);
/// Of a program with a mesh: all ranks together, with the inputs and states that the program made of it by expandRanks
/// gets.
Results runRanksTwiceSerially(const runtime::Schedule &schedule, uint64_t seed);

} // namespace tressel::test
