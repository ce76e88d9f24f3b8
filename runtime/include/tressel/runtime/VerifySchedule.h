// Proves that a flat schedule is safe, wherever it comes from: the compiler's last step, and the package loader's check
// of a file that may be hostile. One forward walk over the commands with a vector clock per stream and an interval map
// per space; 100,000 commands take about a tenth of a second.
#pragma once

#include "tressel/runtime/Schedule.h"

#include <string>
#include <vector>

namespace tressel::runtime {

enum class ViolationKind : uint8_t {
  Structure,        ///< an index, a size, an operand count or a wait that means nothing
  Access,           ///< a command touches what its command list may not: it writes an input, for example
  Race,             ///< two commands touch the same bytes, one writes, and nothing orders them
  ReadBeforeWrite,  ///< bytes are read that no command has written
  OutputIncomplete, ///< an output has bytes that no command writes
  Deadlock,         ///< collectives may wait for each other, or some ranks for a collective that others do not run
};
enum class Phase : uint8_t { Prepare, Step };

/// What is wrong, and where. Indices are -1 where they do not apply.
struct Violation {
  ViolationKind kind = ViolationKind::Structure;
  Phase phase = Phase::Step;
  int64_t command = -1;      ///< the command at fault, or the later of two
  int64_t otherCommand = -1; ///< the earlier of two
  int64_t body = -1, otherBody = -1; ///< the command lists they belong to: numbers of bodies, -1 for that of the phase
  int64_t buffer = -1, otherBuffer = -1;
  uint32_t loc = 0, otherLoc = 0; ///< indices into Schedule::locations
  std::string message;            ///< one line that names all of these
};

/// Proves of `prepare`, then of `step` with the derived states that prepare wrote:
///  - every index, offset and size is in range; waits point backward; launches of one kernel have the same operands;
///  - commands touch the memory of their stream's device alone, but for copies, of which one end lies there;
///  - inputs, constants and parameters are never written, derived states only by prepare, mutable states and outputs
///    only by step; prepare reads parameters, constants, derived states and its arenas only;
///  - no two accesses to overlapping bytes, one of them a write, are unordered; within one command, a written range may
///    coincide with one that it reads, and overlaps nothing else;
///  - nothing is read before it is written; every output is complete at the end;
///  - any two collectives that share a device are ordered on it by streams and waits (of commands of all kinds, host calls and commands
///    with bodies included), over all groups and over calls in flight;
///  - in a program for ranks, what decides whether a collective over axes runs, and how many bytes it moves, is the same on all ranks.
///    Bytes are known to be the same on all ranks that were last written by a fill, by an all_reduce, all_gather or broadcast over the
///    whole mesh, or by a copy of such bytes; in constants; never those of buffers whose place depends on the rank. A flag in them may
///    decide over collectives. Proved for the first and the last rank; `expandRanks` and a communicator prove it for each.
/// Bodies: each belongs to one command, and a loop's is walked behind itself, the second time for all iterations but the
/// first; a buffer that moves must not meet, in another iteration, bytes that the loop writes. What only one branch, or
/// a While's body, has written counts as not written afterwards.
/// Empty if all holds. Reports at most `limit` violations; structure errors of a command list stop its walk. Never crashes,
/// whatever the data (enumerators out of range included).
std::vector<Violation> verifySchedule(const Schedule &schedule, size_t limit = 20);

/// Drops the waits that others and the streams' order imply, and sorts the rest by command, latest first. Keeps the
/// order relation as it is. Needs a structurally valid command list; `numStreams` as in the schedule.
void reduceWaits(CommandList &list, size_t numStreams);

} // namespace tressel::runtime
