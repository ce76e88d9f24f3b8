// What depends on the rank in a schedule with a mesh.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <optional>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden) // of no use outside, and names take room
namespace tressel::runtime {

/// Found in the form with symbols; numbers no longer say it. Indices in the schedule need not be valid.
struct RankRules {
  std::vector<bool> places; ///< by buffer: where it begins or ends depends on the rank
  std::vector<bool> sizes;  ///< by buffer: how many bytes it has does
  std::vector<bool> loops;  ///< by body: it belongs to a loop whose trip count does
  bool any = false;         ///< whether anything does
};
[[gnu::noinline]] RankRules rankRulesOf(const Schedule &schedule);

/// What is wrong with the mesh of a schedule, whose sizes may be symbols; empty: nothing.
[[gnu::noinline]] std::string meshFault(const Schedule &schedule);

} // namespace tressel::runtime
#pragma GCC visibility pop
