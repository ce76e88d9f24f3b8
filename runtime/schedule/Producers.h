// Which commands made the bytes that a command reads.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <vector>

namespace tressel::runtime {

/// By command of a program: the earlier commands, in the program's order, that wrote bytes which it reads; a command
/// with bodies touches what these do. Reuse of bytes makes none: more memory would do without that order. Needs a
/// verified schedule of numbers.
std::vector<std::vector<uint32_t>> producersOf(const Schedule &schedule, const Program &program);

} // namespace tressel::runtime
