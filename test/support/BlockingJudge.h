// Judges whether collectives can wait for each other for ever, by trying every order in which devices may begin them.
// Shares no code with the verifier.
//
// The model. A device may begin a part as soon as what is before it in its stream and what it waits for has ended, and
// if it has no other part at work. The part then occupies the device until all members have begun theirs; then all end.
// What hangs is a state from which nothing can go on though commands are left. Parts are matched as communicators do
// it: the k-th of a collective on each member.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <optional>

namespace tressel::test {

/// Whether the step can hang; of a program with a mesh, whose sizes are numbers, that of all ranks. Loops are written
/// out. Nothing: it has a branch or while, or more than `mostStates` states.
std::optional<bool> canHang(const runtime::Schedule &schedule, size_t mostStates = 20000);

} // namespace tressel::test
