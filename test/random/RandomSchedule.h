// Random flat schedules over a host and accelerators: kernels that mix bits, copies every way, fills, branches and
// loops, in arenas whose bytes are used again and again, with exactly the waits that they need. And what they compute,
// one command after the other: by an interpreter that knows nothing of devices, streams and waits.
#pragma once

#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace tressel::runtime::test {

struct RandomScheduleOptions {
  int gpus = 2;      ///< at most
  int commands = 40; ///< of the step, about
  bool bodies = true;
};

/// The same for the same seed. Verified; its waits are reduced: none can go.
Schedule randomSchedule(uint64_t seed, const RandomScheduleOptions &options = {});

/// Code for it.
std::shared_ptr<const Executable> executableOf(Schedule schedule);
/// Without the proof that it is safe.
std::shared_ptr<const Executable> unverifiedExecutableOf(Schedule schedule);

/// Memory of a caller, one vector of words per input, state and output.
struct CallerMemory {
  std::vector<std::vector<uint32_t>> inputs, states, outputs; ///< states: those that are bound
  CallerMemory() = default;
  CallerMemory(const Schedule &schedule, uint64_t seed);
  bool operator==(const CallerMemory &) const = default;
  std::vector<const void *> inputPointers() const;
  std::vector<void *> statePointers(), outputPointers();
};

/// Runs prepare, if `prepare`, and step.
class SerialRun {
public:
  explicit SerialRun(const Schedule &schedule);
  void bind(CallerMemory &memory);
  void step(CallerMemory &memory);

private:
  void run(const Program &program, CallerMemory &memory);
  void *address(const BufferDesc &buffer, CallerMemory &memory, uint32_t index);

  const Schedule &s_;
  std::vector<std::vector<uint32_t>> arenas_, derived_;
  std::vector<int64_t> shift_; ///< of buffers
};

} // namespace tressel::runtime::test
