// Which parts of a schedule with a mesh depend on the rank.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <optional>
#include <string>
#include <vector>

#pragma GCC visibility push(hidden) // internal to the library; exported names would take space
namespace tressel::runtime {

/// Derived from the symbolic form of a schedule, as numbers no longer show it. Indices in the schedule need not be
/// valid.
struct RankRules {
  std::vector<bool> places; ///< by buffer: its begin or end depends on the rank
  std::vector<bool> sizes;  ///< by buffer: its number of bytes depends on the rank
  std::vector<bool> loops;  ///< by body: the trip count of its loop depends on the rank
  bool any = false;         ///< whether any of these is set
};
[[gnu::noinline]] RankRules rankRulesOf(const Schedule &schedule);

/// The fault in the mesh of a schedule, whose sizes may be symbolic; empty if there is none.
[[gnu::noinline]] std::string meshFault(const Schedule &schedule);

} // namespace tressel::runtime
#pragma GCC visibility pop
