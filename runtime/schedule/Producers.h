// Finds the commands that produce the bytes that a command reads.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <vector>

namespace tressel::runtime {

/// By command of a list: the earlier commands, in the list's order, that wrote bytes which it reads. A command with
/// bodies reads and writes what its bodies do. Write-after-read dependences, which come from reuse of bytes, do not
/// count: with more memory they would not exist. Needs a verified schedule of numbers.
std::vector<std::vector<uint32_t>> producersOf(const Schedule &schedule, const CommandList &list);

} // namespace tressel::runtime
