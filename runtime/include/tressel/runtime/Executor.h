// Runs flat schedules over the devices of a machine: gives their commands to the devices' streams, with the waits of
// the schedule as events, and waits for the end. For a program on one processor Context (Executable.h) does the same
// with less.
//
// The caller's thread issues the commands of all devices. Of a Branch, While or Loop it issues the bodies as the run
// decides: when a flag is known, when an iteration has ended. Commands behind it are issued at once, and wait for its
// end.
#pragma once

#include "tressel/runtime/Device.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Timeline.h"

namespace tressel::runtime {

/// DeviceCommand::tag of what an Executor issues.
struct CommandTag {
  enum class Role : uint8_t { Whole, Begin, End, Part }; ///< Begin and End of a command with bodies; Part: between
  Role role = Role::Whole;
  uint32_t list = 1;    ///< 0: prepare, 1: step, 2 and on: a body
  uint32_t command = 0; ///< of the list
  uint32_t call = 0;    ///< of those that runCalls runs, modulo 256
  uint64_t pack() const {
    return uint64_t(role) << 62 | uint64_t(call & 255) << 54 | uint64_t(list) << 32 | command;
  }
  static CommandTag unpack(uint64_t tag) {
    return {static_cast<Role>(tag >> 62), static_cast<uint32_t>(tag >> 32) & 0x3FFFFF, static_cast<uint32_t>(tag),
            static_cast<uint32_t>(tag >> 54) & 255};
  }
};

struct ExecutorOptions {
  /// A call that takes longer fails, naming a command that had not ended.
  int64_t timeoutNs = int64_t(3600) * 1'000'000'000;
};

/// The memory and bindings of one caller on a machine, as Context has them. Belongs to one thread at a time. One that
/// was moved from throws Error.
class Executor {
public:
  /// Allocates on the devices. Throws InputError when the machine lacks a device or route that the schedule uses, and
  /// OutOfMemory, naming the device and an op that needs the most there.
  Executor(std::shared_ptr<const Executable> executable, std::shared_ptr<Machine> machine,
           const ExecutorOptions &options = {});
  /// A verified schedule without code or constants, for machines that do not compute.
  Executor(Schedule schedule, std::shared_ptr<Machine> machine, const ExecutorOptions &options = {});
  ~Executor();
  Executor(Executor &&) noexcept;
  Executor &operator=(Executor &&) noexcept;

  /// As those of Context. A state that lies on an accelerator is bound to that device's memory, which must stay as long as the
  /// binding, and so are inputs and outputs of `run`: the machine's devices take them where the schedule says they are.
  void bindStates(std::span<void *const> states, std::shared_ptr<const void> owner = nullptr);
  void moveState(size_t index, void *memory);
  /// As Context::run; a failure may leave any mutable state written. Throws RuntimeError naming op and line of the command that failed; the next call runs again, also
  /// after a device was lost: what was in its memory is made anew from the states that the caller has bound.
  void run(std::span<const void *const> inputs, std::span<void *const> outputs);
  void run(std::span<const void *const> inputs, std::span<void *const> outputs, const dim::Values &dims);

  /// The calls of a caller who does not wait for one before giving the next.
  struct Call {
    std::span<const void *const> inputs;
    std::span<void *const> outputs;
  };
  /// As `run` for each, in turn: `schedule().inFlight` of them are at work at once, each with arenas of its own, which
  /// are allocated when they are first needed. No output may overlap an input or output of another call. Throws as
  /// `run` does, for the first call that fails: those before it have ended well, of those behind it, outputs hold
  /// anything.
  void runCalls(std::span<const Call> calls, const dim::Values &dims = {});

  const Schedule &schedule() const;
  /// With the sizes of the latest call.
  const Schedule &numbers() const;
  Machine &machine() const;
  const void *caller() const; ///< as it calls itself (Machine::caller)
  /// Bytes held on a device: arenas (of all calls in flight) and derived states.
  int64_t bytesOn(DeviceRef device) const;

private:
  struct Impl;
  Held<std::unique_ptr<Impl>> impl_;
};

/// When the commands of the latest call were at work: its step's, by the machine's log. Of kind Simulated. After
/// runCalls, those of one of its calls, from the begin of the first. Throws Error where the machine keeps no log, or
/// has run another program since. Of kind Measured where the machine goes by the computer's clock.
Timeline timelineOf(const Executor &executor, uint32_t call = 0);

} // namespace tressel::runtime
