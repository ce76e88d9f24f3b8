// Which commands made the bytes that a command reads.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <vector>

namespace tressel::runtime {

/// By command of a list: the earlier commands, in the list's order, that wrote bytes which it reads; a command
/// with bodies touches what these do. Reuse of bytes makes none: more memory would do without that order. Needs a
/// verified schedule of numbers.
std::vector<std::vector<uint32_t>> producersOf(const Schedule &schedule, const CommandList &list);

} // namespace tressel::runtime
