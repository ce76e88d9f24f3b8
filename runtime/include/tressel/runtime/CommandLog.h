// What simulated devices were told to do, and the clock that reads it: virtual time is computed from the log of a call,
// never by those who did the work, so it is the same for every order in which they did it.
//
// The rule is that of Simulate.h, on the commands that were really given: each with the bytes and the memories that it
// named, the iterations that loops really made, the branches really taken. It is written apart from the clock of plans,
// and shares the machine's figures with it alone, so each can show the other wrong.
#pragma once

#include "tressel/runtime/Device.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Timeline.h"

namespace tressel::runtime {

/// A event without its semaphore: 0 for "long ago".
using LoggedEvent = uint64_t;

/// Steps of a collective in each of which a member sends so many bytes to another.
struct LoggedPhase {
  Home to;
  int64_t bytes = 0, steps = 0;
};
struct LoggedCommand {
  DeviceCommandKind kind = DeviceCommandKind::Wait;
  uint32_t stream = 0; ///< index into CommandLog::streams
  uint32_t host = 0;   ///< who issued it
  uint64_t tag = 0;
  LoggedEvent event = 0;  ///< when it has ended
  LoggedEvent signal = 0; ///< Signal: what it signals
  std::vector<LoggedEvent> waits;
  // What it costs.
  int64_t flops = 0, bytes = 0;
  DType type = f32;
  const char *provider = ""; ///< interned
  bool moves = false;        ///< Launch: as of KernelDesc,
  std::vector<KernelCost> costs; ///< likewise,
  int64_t tasks = 1;         ///< and in so many parts
  Home from, to;             ///< Copy. Collective: `from` is this member
  uint32_t ring = 0;         ///< Collective: which one, from 1,
  uint32_t members = 0;      ///< of so many parts, one logged behind the other,
  std::vector<LoggedPhase> phases; ///< one after the other, with as many steps for each member
  bool isFree = false;       ///< takes no time
};
/// A host thread that waited, before it issued the command at `position`.
struct LoggedHostWait {
  uint32_t host = 0;
  size_t position = 0;
  std::vector<LoggedEvent> events;
};
/// One call of a program, in the order in which its commands were given.
struct CommandLog {
  std::vector<StreamDesc> streams;
  std::vector<LoggedCommand> commands;
  std::vector<LoggedHostWait> hostWaits;
};

/// Of a truth that the plan did not know.
struct VirtualTimeOptions {
  bool transferTime = true; ///< false: copies between devices take no time
  bool computeTime = true;  ///< false: kernels, fills and copies within a device take no time
  double perturbation = 0;  ///< each command costs up to this share more or less,
  uint64_t seed = 0;        ///< as this decides, by its tag
  double slowLinks = 1;     ///< links have this share of their rates
};
/// When the commands of a log were at work.
struct VirtualTimes {
  std::vector<Picoseconds> begin, end; ///< by command of the log
  Picoseconds total = 0;
};
/// Throws InputError when the machine has no such device or route.
VirtualTimes virtualTimes(const CommandLog &log, const MachineModel &machine, const VirtualTimeOptions &options = {});

} // namespace tressel::runtime
