// The commands of a program given to the streams of devices, and the bodies of its branches and loops as the run
// decides.
#pragma once

#include "tressel/runtime/Executor.h"

#include <array>

namespace tressel::runtime {

/// Where the first byte of each input, output, state, constant and arena is, by Space.
struct Bases {
  std::array<std::vector<std::byte *>, 5> of;
};

/// Streams for each program of a schedule: bodies have their own. After a failure it must be made anew.
class Issuer {
public:
  Issuer(Machine &machine, const Schedule &schedule);
  ~Issuer();

  /// Runs program 0 (prepare) or 1 (step). `numbers` is the schedule with the sizes of this call. Returns, when nothing
  /// of it runs any more, why it failed, or nothing.
  DeviceFailureRef run(uint32_t program, const Schedule &numbers, std::span<const DeviceKernel> kernels,
                       const Bases &bases, int64_t timeoutNs);

private:
  /// A program at work. A body belongs to one command, so there is one for each.
  struct Activation {
    uint32_t program = 0;
    const Activation *parent = nullptr;           ///< the program that runs this body,
    uint32_t command = 0;                         ///< by this command
    std::vector<std::unique_ptr<Stream>> streams; ///< by stream of the schedule; null where it uses none
    std::vector<Event> ends;                      ///< by command
    std::vector<bool> used;                       ///< streams, since `begin`
    std::vector<Event> begin;                     ///< its commands begin when these are reached
    int64_t iteration = 0;                        ///< of the loop that runs it
  };
  /// A Branch, While or Loop at work.
  struct Control {
    Activation *parent = nullptr;
    uint32_t command = 0;
    Semaphore done;
    uint64_t doneValue = 0; ///< that its end signals
    bool hasBegun = false, isOver = false;
    int64_t iteration = 0;
    std::vector<Event> awaited; ///< before it goes on
  };

  void build(Activation &a, const Schedule &s, const Program &p);
  const Program &programOf(uint32_t program) const;
  void issue(Activation &a, std::span<const Event> begin);
  Event submit(Activation &a, uint32_t stream, DeviceCommand command, std::span<const Wait> waits);
  std::shared_ptr<const CollectiveRun> partOf(const Activation &a, const Command &c, DType type);
  std::vector<Event> tails(const Activation &a) const;
  void begin(Activation &a, uint32_t command);
  /// What it awaited is reached.
  void proceed(Control &control);
  void finish(Control &control, Activation &body);
  bool readFlag(const Control &control, bool otherwise);
  void fillRegions(const Activation &a, const Command &c, std::vector<Region> &regions) const;
  /// How far loops have moved a buffer.
  int64_t shiftOf(const Activation &a, uint32_t buffer) const;
  DeviceFailureRef timedOut(int64_t timeoutNs) const;
  /// The first failure in the order of the program.
  DeviceFailureRef firstFailure() const;
  template <typename Fn> void forEachStream(Fn fn) const;

  Machine &machine_;
  std::vector<std::unique_ptr<Activation>> activations_;        ///< by program
  std::vector<std::vector<std::unique_ptr<Control>>> controls_; ///< by program and command; null for other commands
  std::vector<Control *> pending_;
  std::shared_ptr<const CollectiveRun> collective_; ///< of which parts are being issued
  // Of the call.
  const Schedule *s_ = nullptr;
  std::span<const DeviceKernel> kernels_;
  const Bases *bases_ = nullptr;
  std::vector<Region> regions_;
  std::vector<Event> waits_;
};

} // namespace tressel::runtime
