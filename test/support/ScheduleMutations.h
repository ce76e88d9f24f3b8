// Mistakes in schedules, made one at a time.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace tressel::test {

enum class Mutation : uint8_t {
  RemovedWait,
  SwappedCollectives, ///< two collectives of a group, by one member alone
  ShortenedArena,     ///< by what its last slot needs
  ShortenedSlot,      ///< its buffer keeps its type, and so has too few bytes
  MovedSlot,          ///< 64 bytes to either side
};
constexpr int kNumMutations = 5;
const char *nameOf(Mutation kind);

/// Calls fn(kind, where, mutant) for each mistake of these kinds that can be made in the schedule. `where` says what
/// was changed.
void forEachMutation(
    const runtime::Schedule &schedule,
    const std::function<void(Mutation, const std::string &where, const runtime::Schedule &mutant)> &fn);

/// What the verifier says of the mistakes in schedules: all but moved slots must be refused, for those may be harmless.
struct MutationTally {
  size_t schedules = 0, commands = 0, made[kNumMutations] = {}, rejected[kNumMutations] = {};
  size_t judged = 0; ///< moved slots that it accepts, and the oracle (ScheduleOracle.h) too
  void add(const MutationTally &other);
  std::string text() const; ///< a line
};
/// Tries them on a schedule of numbers, adding to the tally. Returns what is wrong: the schedule itself is refused, or
/// a mistake is not. `otherSizes`: the same schedule for other sizes; a wait that these sizes have no use for (a buffer
/// is empty) may be one that others need.
std::string tryMutations(const runtime::Schedule &schedule, MutationTally &tally,
                         std::span<const runtime::Schedule> otherSizes = {});

} // namespace tressel::test
