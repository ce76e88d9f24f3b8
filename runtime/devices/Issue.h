// The commands of a list given to the streams of devices, and the bodies of its branches and loops as the run
// decides.
#pragma once

#include "runtime/executable/Operands.h"
#include "tressel/runtime/Executor.h"

#include <array>
#include <functional>
#include <memory>

namespace tressel::runtime {

/// Where each input, output, state, constant and arena begins, by Space and number.
struct Begins {
  std::array<std::vector<void *>, kNumSpaces> of;
};

/// The kernels of a program on the devices of a machine that launch them.
class LoadedKernels {
public:
  /// Throws InputError for a kernel that its device does not take.
  void load(const Machine &machine, const Schedule &schedule, std::span<const KernelCode> code, const std::shared_ptr<const std::vector<GpuCode>> &gpu);
  const DeviceKernel *on(DeviceRef device, uint32_t kernel) const;

private:
  struct OnDevice {
    DeviceRef device;
    std::vector<DeviceKernelRef> byKernel; ///< null where it launches none
  };
  std::vector<OnDevice> devices_;
};

/// What a call needs: which command list, 0 (prepare) or 1 (step), of the schedule with the sizes of this call, and where
/// its bytes are. All of it stays until the call is over.
struct IssuedCall {
  uint32_t list = 1;
  uint32_t number = 0; ///< among those that are run together
  const Schedule *numbers = nullptr;
  uint64_t sizes = 0; ///< tells apart what `numbers` were made for: commands are recorded once for each
  const LoadedKernels *kernels = nullptr;
  const Begins *begins = nullptr;
  std::vector<Event> begin; ///< none of its commands runs before these
  std::vector<Event>
      before; ///< by stream: the first command on it runs behind this; no semaphore: nothing, nor if it is empty
};

/// One call at a time, with streams for each command list of a schedule: bodies have their own. After a failure it must be
/// made anew. Calls in flight each have one.
class Issuer {
public:
  Issuer(Machine &machine, const Schedule &schedule);
  ~Issuer();

  /// Gives all that does not depend on what runs. The call before is over.
  void start(IssuedCall call);
  /// By stream, what a call that follows has to run behind.
  std::vector<Event> lastOfStreams() const;
  /// Goes on with the first branch or loop that can; false if there is none. What they wait for is added.
  bool advance(std::vector<Event> &awaited);
  /// Whether nothing of it is left to run; what it waits for is added.
  bool isOver(std::vector<Event> &awaited) const;
  /// The first failure in the order of the list.
  DeviceFailureRef firstFailure() const;
  /// A command that has not ended though nothing holds it up.
  DeviceFailureRef timedOut(int64_t timeoutNs) const;
  /// Nothing of it runs on return.
  void abort(const DeviceFailureRef &failure);

private:
  /// Commands that stand behind each other and are recorded as one group: those without bodies, and loops that are
  /// unrolled.
  struct Run {
    uint32_t first = 0, count = 0;
    std::unique_ptr<CommandGroup> group;
    /// Commands of the list that are not in it, for whose ends it waits: the lists of events behind those of the streams.
    std::vector<uint32_t> outside;
    std::vector<Event> ends;     ///< of the group's commands
    std::vector<uint32_t> endOf; ///< by command of the list: that of the group with which it ends
    /// Of unrolled loops: where operands of an iteration are, and what they follow from.
    struct Moved {
      void *const *first; ///< in the first iteration
      int64_t offset;
    };
    std::vector<Moved> moved;
    std::vector<void *> addresses;
  };
  /// A command list at work. A body belongs to one command, so there is one for each.
  struct Activation {
    uint32_t list = 0;
    uint32_t root = 0;                            ///< the list that runs it, of 0 and 1
    const Activation *parent = nullptr;           ///< the list that runs this body,
    uint32_t command = 0;                         ///< by this command
    std::vector<std::unique_ptr<Stream>> streams; ///< by stream of the schedule; null where it uses none
    std::vector<Run> runs;                        ///< recorded for the latest sizes
    std::vector<Event> ends;                      ///< by command
    std::vector<bool> used;                       ///< streams, since `begin`
    std::vector<Event> begin;                     ///< its commands begin when these are reached
  };
  /// A Branch, While or Loop at work.
  struct Control {
    Activation *parent = nullptr;
    uint32_t command = 0;
    Semaphore done;
    uint64_t doneValue = 0; ///< that its end signals
    bool hasBegun = false, isOver = false;
    /// Where the device can decide: with the operands of what the bodies' loops unroll to.
    std::unique_ptr<ChoiceGroup> choice;
    std::array<Run, 2> choiceRuns;
    int64_t iteration = 0;
    std::vector<Event> awaited; ///< before it goes on
  };

  void build(Activation &a, const Schedule &s);
  const CommandList &listOf(uint32_t list) const { return runtime::listOf(*call_.numbers, list); }
  Operands &operandsOf(const Activation &a) { return operands_[a.root]; }
  /// The commands of a list and its bodies for the sizes of this call.
  void record(Activation &a);
  void record(Activation &a, Run &run);
  class Recorder;
  void recordChoice(const Activation &a, uint32_t command);
  static void moveAddresses(Run &run) {
    for (size_t i = 0; i < run.moved.size(); ++i)
      run.addresses[i] = static_cast<std::byte *>(*run.moved[i].first) + run.moved[i].offset;
  }
  bool isRecorded(const Activation &a, const Command &c) const;
  void submit(Activation &a, Run &run);
  void issue(Activation &a, std::span<const Event> begin);
  Event submit(Activation &a, uint32_t stream, DeviceCommand command, std::span<const Wait> waits);
  /// What the first command on a stream has to wait for, since the list began.
  void addBegin(const Activation &a, uint32_t stream, std::vector<Event> &events) const;
  DeviceCommand commandOf(const Activation &a, uint32_t index) const;
  std::vector<Event> tails(const Activation &a) const;
  void begin(Activation &a, uint32_t command);
  /// What it awaited is reached.
  void proceed(Control &control);
  void proceedLoop(Control &control, Activation &body);
  std::vector<Event> runBody(Activation &body, std::span<const Event> begin);
  void finish(Control &control, Activation &body);
  bool readFlag(const Control &control, bool otherwise);
  Region regionOf(const Activation &a, const Command &c, uint32_t operand) const;
  uint64_t tagOf(CommandTag::Role role, const Activation &a, uint32_t command) const {
    return CommandTag{role, a.list, command, call_.number}.pack();
  }
  template <typename Fn> void forEachStream(Fn fn) const;

  Machine &machine_;
  std::vector<std::unique_ptr<Activation>> activations_;        ///< by list
  std::vector<std::vector<std::unique_ptr<Control>>> controls_; ///< by list and command; null for other commands
  std::vector<Control *> pending_;
  std::array<Operands, 2> operands_;              ///< of prepare and step
  std::array<uint64_t, 2> recordedFor_ = {0, 0}; ///< sizes; 0: none
  IssuedCall call_;
  std::vector<Event> waits_;
};

/// Runs calls, at most as many at once as there are issuers: call i is issued by number i modulo their number, when the
/// call that it had before is over. In each stream commands of a call follow those of the call before. `callOf` is
/// asked when a call is issued. Returns, when nothing runs any more, why the first that failed did, or nothing.
DeviceFailureRef runCalls(Machine &machine, std::span<const std::unique_ptr<Issuer>> issuers, size_t count,
                          const std::function<IssuedCall(size_t)> &callOf, int64_t timeoutNs);

} // namespace tressel::runtime
