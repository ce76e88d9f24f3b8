// Judges whether a schedule is safe by running through all interleavings of its commands over bytes. Shares no code with the verifier,
// and knows nothing of orders or clocks: it only begins and ends commands.
//
// The model. A command may begin when the one before it in its stream has ended and so has all that it waits for; it ends at any time
// after. A schedule is unsafe if in some interleaving two commands at work touch the same byte and one of them writes it, if a command
// begins to read a byte that no ended command has written (inputs, states and constants are there), or if bytes of an output are not
// written in the end; and if a command writes bytes twice, or some of those that it reads and others beside them.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <optional>
#include <string>

namespace tressel::test {

/// Empty: safe. Otherwise what goes wrong, and in which interleaving. Nothing: it has prepare, bodies, collectives, derived states, several
/// calls in flight or more than 24 commands, or more than `mostStates` states.
std::optional<std::string> judgeInterleavings(const runtime::Schedule &schedule, size_t mostStates = 200000);

} // namespace tressel::test
