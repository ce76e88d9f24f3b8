// Judges whether a schedule is safe, as plainly as can be, and shares no code with the verifier: every path through
// branches and loops is written out as single commands, the transitive closure of their order is taken, and all pairs
// that touch the same bytes are looked at. Quadratic in commands, exponential in branches: for small schedules.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <optional>
#include <string>

namespace tressel::test {

/// Empty: safe. Otherwise what is not, in a few words. Nothing: too many paths, no judgement.
std::optional<std::string> judge(const runtime::Schedule &schedule, size_t mostPaths = 2000);

} // namespace tressel::test
