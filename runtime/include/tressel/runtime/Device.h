// The seam between programs and what computes them: memory, streams of commands, and events. Implemented by the
// processor, by NVIDIA's GPUs (runtime/cuda), by simulated accelerators (Simulated.h) and by a device that does nothing; one suite of tests holds
// all to what is said here.
//
//   Machine: devices ──makeStream──> Stream ──submit(command)──> Event ──waits of other commands, awaitAny──>
//               │                                   ^
//               ├──load(kernels)──> DeviceKernel ───┘
//               └──record(commands)──> CommandGroup ──submit──> Events
//
// Order. A stream runs its commands one after the other, in the order in which they were given. Between streams there
// is order only through events: a command begins when its waits are reached, whatever device they belong to.
//
// Failures. A command that fails, fails its stream for good: the commands behind it are skipped, and so is every command
// that waits for it, with the same cause. A thread that waits for such an event is told the cause at once. Nothing hangs
// on it.
//
// Memory. Commands name bytes by address and say which memory they believe them in. A device works on its own memory;
// it copies between its own and another's if it reaches that. It may check this (simulated ones do) or trust it. Addresses
// of an accelerator's memory mean something to its device alone: nothing above the seam reads or writes there.
//
// Code. A device loads the kernels of a program before it launches them, from whatever form of code it takes: functions
// of this process, or a module for its architecture.
#pragma once

#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/Schedule.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tressel::runtime {

struct CommandLog;
struct GpuCode;
struct VirtualTimes;

enum class FailureKind : uint8_t {
  Kernel,     ///< a kernel's status: an index out of range, say
  Launch,     ///< the device did not take the command
  DeviceLost, ///< the device is gone, with all that was in its memory
  Corrupted,  ///< bytes arrived that were not sent
  Memory,     ///< an address that is not in the memory it is said to be in, or released
  Race,       ///< an access that nothing orders (only where this is checked)
  Overrun,    ///< a kernel touched what it had not declared (only where this is checked)
  TimedOut,   ///< not done within the time that the waiter gave
  Unsupported,
  RankLost, ///< a rank of a communicator left, failed, or did not come in time
  Revoked,  ///< a rank of a communicator ended it for all
};
/// Why a command, and all that depends on it, did not run.
struct DeviceFailure {
  FailureKind kind = FailureKind::Launch;
  std::string message;
  DeviceRef device;
  uint64_t tag = 0;      ///< DeviceCommand::tag of the command to blame
  uint64_t otherTag = 0; ///< Race: the other command
  int32_t rank = -1;     ///< RankLost, Revoked: the rank to blame; -1: not known
  std::string host;      ///< the name of its host
};
using DeviceFailureRef = std::shared_ptr<const DeviceFailure>;

/// The driver's own events for the values of a semaphore, of a device whose driver has such: what works with the same driver waits for
/// them without the host.
class NativeEvents {
public:
  virtual const char *driver() const = 0; ///< "cuda": events are CUevents
  /// Calls `use` with the driver's event that is recorded when the semaphore gets this value; the event serves until `use` returns. False,
  /// without a call, where the driver has none: the command is not issued yet, or it has ended or failed.
  virtual bool withEvent(uint64_t value, const std::function<void(void *event)> &use) = 0;

protected:
  ~NativeEvents() = default;
};

/// A number that only grows, until it fails for good. Safe from any thread.
class Semaphore {
public:
  /// `native` stays as long as the semaphore.
  explicit Semaphore(NativeEvents *native = nullptr) : native_(native) {}
  enum class State : uint8_t { Pending, Reached, Failed };
  NativeEvents *native() const { return native_; } ///< null: known to this process alone
  uint64_t value() const;
  DeviceFailureRef failure() const;
  /// Reached even if it has failed since.
  State state(uint64_t value) const;
  void signal(uint64_t value);
  /// The first failure stays.
  void fail(DeviceFailureRef failure);

private:
  NativeEvents *const native_;
  mutable std::mutex mutex_;
  uint64_t value_ = 0;
  DeviceFailureRef failure_;
};
/// When the semaphore has this value. The semaphore must outlive its events.
struct Event {
  Semaphore *semaphore = nullptr;
  uint64_t value = 0;
  Semaphore::State state() const { return semaphore->state(value); }
  bool operator==(const Event &) const = default;
};

/// Bytes that a command touches, and where it believes them.
struct Region {
  void *address = nullptr;
  int64_t bytes = 0;
  Access access = Access::Read;
  Home home;
};
/// A kernel of a program before a device has loaded it. The program outlives what is loaded of it.
struct KernelCode {
  const KernelDesc *desc = nullptr;
  /// A function of this process: the kernel of a processor, or one that computes what a GPU's kernel does. Null where there is none.
  KernelFn fn = nullptr;
  KernelFn epilogue = nullptr; ///< run on each chunk after it, may be null
  const void *state = nullptr;
};
/// A kernel that a device has loaded, for commands of that device. Devices derive theirs from it.
class DeviceKernel {
public:
  virtual ~DeviceKernel() = default;
};
using DeviceKernelRef = std::shared_ptr<const DeviceKernel>;

class Stream;
class Communicator;
/// What the ranks of a communicator do together.
enum class RankWork : uint8_t {
  Collective, ///< CollectiveRun::kind
  Exchange,   ///< regions to be read are sent to peers, regions to be written are received from them
  Barrier,    ///< no regions
};
/// A collective at work: either of streams of this process, known to all of its parts and made anew each time it runs,
/// or between ranks, where it is this rank's part (Communicator.h).
struct CollectiveRun {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Reduction reduction = Reduction::Sum;
  uint32_t root = 0;
  DType type = f32;
  std::vector<Stream *> members; ///< each is given one part

  std::shared_ptr<Communicator> communicator = nullptr; ///< instead of members; the part keeps it until it has ended
  RankWork work = RankWork::Collective;
  std::vector<uint32_t> peers = {}; ///< Exchange: a rank for each region
};

enum class DeviceCommandKind : uint8_t {
  Launch,
  Copy,       ///< regions: source, destination
  Fill,       ///< regions: destination
  HostCall,   ///< of a host: a function, or a kernel on its regions
  Collective, ///< a member's or rank's part. Regions: source (it may have none), destination. It begins when all parts
              ///< may, and fails with them
  Wait,       ///< does nothing, when its waits are reached
  Signal,     ///< then signals `signal`, which no other command does
};
/// What the spans and pointers name must stay until the command has ended; the spans themselves until `submit` returns.
struct DeviceCommand {
  DeviceCommandKind kind = DeviceCommandKind::Wait;
  std::span<const Region> regions;
  std::span<const Event> waits;
  const DeviceKernel *kernel = nullptr;
  const KernelDesc *desc = nullptr;      ///< of the kernel, with the numbers of this launch
  std::span<const int64_t> scalars;      ///< Launch: stays until the command has ended
  DType type = f32;                      ///< Launch: of the arithmetic, for its cost. Fill: of the elements
  uint64_t fillValue = 0;                ///< Fill: one element's bytes, low end first
  int32_t (*host)(void *user) = nullptr; ///< HostCall without a kernel: a KernelStatus. Calls no device
  void *user = nullptr;
  std::shared_ptr<const CollectiveRun> collective;
  uint64_t turn = 0; ///< of a communicator's part: its place in the order of this rank's parts, set by the stream
  Event signal;
  uint64_t tag = 0;    ///< the caller's name for the command, in failures and stamps
  const Location *location = nullptr; ///< what it does, for profilers; stays until the command has ended
  bool isFree = false; ///< takes no time: it comes along with another one
};

/// Commands in order. Used by one thread at a time.
class Stream {
public:
  virtual ~Stream() = default; ///< all that was submitted must have ended
  /// Takes the command without waiting for anything, and returns when it will have ended. Throws Error for a command
  /// that means nothing (a copy with one region); all other trouble is a failure of the event.
  virtual Event submit(const DeviceCommand &command) = 0;
  /// When all that was submitted has ended.
  virtual Event last() const = 0;
  /// Nothing that has not begun runs any more, and what runs has ended on return.
  virtual void abort(DeviceFailureRef failure) = 0;
};

/// A command of a group.
struct GroupCommand {
  uint32_t stream = 0; ///< of the streams that the group is recorded for
  /// As submit takes it, but for waits. What its pointers name stays as long as the group.
  DeviceCommand command;
  /// Where each region is. They are read at each submission, and stay as long as the group. Region::address does not count.
  std::span<void *const> addresses;
  std::span<const uint32_t> after;  ///< commands of the group that it waits for, all before it
  std::span<const uint32_t> events; ///< and numbers of lists of events that each submission gives: it waits for all of them
};
/// Commands that are recorded once and submitted many times. Their streams must outlive it.
class CommandGroup {
public:
  virtual ~CommandGroup() = default;
  /// The same as one submission of each command in turn, and as asynchronous; `tag` is added to the tags of all. `ends` is given an
  /// event for each command; an implementation that runs the group as one may give a later one, but none after the group's end, and
  /// begin no command before all of `events` are reached: so none of them may depend on a command of the group. Parts of a collective stand
  /// behind each other, with one CollectiveRun, of which each submission makes a new one.
  virtual void submit(std::span<const std::span<const Event>> events, uint64_t tag, std::span<Event> ends) = 0;
};

/// A branch, or a `while`, whose bodies devices execute.
struct GroupChoice {
  /// A while: `first`, then as often as the flag is set `second` and `first`. Else a branch: `first` if the flag is
  /// set, else `second`.
  bool repeats = false;
  std::span<const GroupCommand> first, second; ///< that wait for nothing outside
  Region flag;                                 ///< a byte; the address does not count,
  void *const *flagAddress = nullptr;          ///< but where this points, read at each submission
};
/// One that is recorded, for the device to decide. Its streams must outlive it.
class ChoiceGroup {
public:
  virtual ~ChoiceGroup() = default;
  /// The whole of it, behind all of `events`; `end` is when it has ended. `tag` is added to the tags of commands that
  /// fail. False: nothing was submitted, and the host has to decide this time.
  virtual bool submit(std::span<const Event> events, uint64_t tag, Event &end) = 0;
};

struct DeviceCaps {
  std::string name; ///< "cpu", "gpu0"
  DeviceRef device;
  std::string implementation; ///< "cpu", "cuda", "sim", "null"
  int64_t memoryBytes = 0;    ///< 0: not known
  bool computes = true;       ///< false: commands do nothing, memory has no contents
  bool isVirtualTime = false; ///< now() and stamps are of a simulated clock
  int ordinal = -1;           ///< of a card, as its driver counts; -1: no card
  bool runsGpuCode = false;   ///< loads code for GPUs (GpuCode.h); others call functions of this process
  bool checksMemory = false;  ///< addresses outside the memory they are said to be in are failures
};

/// When a command was at work, by the device's clock.
struct Stamp {
  uint64_t tag = 0;
  Event end;
  int64_t beginPs = 0, endPs = 0;
};

/// A stream of the caller's that waits for this process, until this is destroyed.
class HeldStream {
public:
  virtual ~HeldStream() = default;
};

class Device {
public:
  virtual ~Device() = default;
  virtual const DeviceCaps &caps() const = 0;

  /// 64-byte aligned memory with undefined contents. An accelerator's is Device; a host's Pinned or Host. Throws
  /// OutOfMemory, which says how many bytes were asked for and are there.
  virtual void *allocate(int64_t bytes, MemoryKind kind) = 0;
  /// When the events are reached or failed; never blocks.
  virtual void release(void *memory, std::span<const Event> lastUses = {}) = 0;
  /// Memory of the caller's, of a host, that commands will name again and again: a device that checks addresses knows it from now on, a
  /// driver that copies from pinned memory faster pins it. It is counted: as often as it is registered it must be unregistered, with the same
  /// bytes and kind, before it is freed (RegisteredMemory does it). Throws RuntimeError when the driver refuses.
  virtual void registerMemory(const void *memory, int64_t bytes, MemoryKind kind) = 0;
  virtual void unregisterMemory(const void *memory, int64_t bytes, MemoryKind kind) = 0;
  /// Whether commands may name these bytes without more; false: they have to be registered first.
  virtual bool knowsMemory(const void *, int64_t, MemoryKind) const { return true; }
  /// What is there is needed no more: until it is written, it is not read. No command in flight reads it.
  virtual void discard(void *, int64_t) {}
  /// Copies of the device come from and go to that memory without a step between.
  virtual bool reaches(DeviceRef other) const = 0;
  /// Bytes of the device to the host, at once: for a flag or so. The command that wrote them must have ended.
  virtual void read(void *to, const void *from, int64_t bytes) = 0;

  /// Kernels of one program, `gpu` with its code for GPUs if it has some: all that is launched here. The device may put off the work, such as
  /// giving the code to a driver, to the first launch. Throws InputError for a kernel of which there is no code that it takes.
  virtual std::vector<DeviceKernelRef> load(std::span<const KernelCode> kernels, const std::shared_ptr<const std::vector<GpuCode>> &gpu = {}) = 0;

  /// `host` tells apart the threads of a program that issue commands: those of one are issued one after the other.
  virtual std::unique_ptr<Stream> makeStream(StreamKind kind, std::string name, uint32_t host = 0) = 0;

  /// When what a stream of the caller's own, made with the device's driver (a CUstream), holds now has ended. Throws
  /// InputError where the device has no driver with streams, or the driver says that this is none of its device.
  virtual Event endOf(void *stream);
  /// What is put into such a stream from now on waits until the result is destroyed. Null where the driver cannot hold
  /// streams. Throws as `endOf` does.
  virtual std::unique_ptr<HeldStream> hold(void *stream);

  /// By the device's clock, since some fixed moment.
  virtual int64_t nowPs() = 0;
  /// Of the commands that have ended since the last call of this; at most some thousands, the latest ones. None of a GPU whose machine was opened
  /// without MachineRequest::stamps.
  virtual std::vector<Stamp> takeStamps() = 0;
  /// After DeviceLost: the device works again, empty. Streams made before have failed for good. Without effect else.
  virtual void reset() = 0;
};

/// A host with its accelerators. Devices are found by what programs call them: gpu0 is accelerator 0.
class Machine {
public:
  virtual ~Machine() = default;
  const std::string &name() const { return model_.name; }
  /// What is known of its speed: what programs for it are planned and predicted with.
  const MachineModel &model() const { return model_; }
  std::span<const std::shared_ptr<Device>> devices() const { return devices_; }
  /// Throws InputError, naming the machine, when it has no such device.
  Device &at(DeviceRef device) const;

  /// A group for these streams of the machine, null where it uses none. Throws Error for commands that mean nothing.
  virtual std::unique_ptr<CommandGroup> record(std::span<Stream *const> streams, std::span<const GroupCommand> commands);
  /// Null where it cannot be recorded: the host decides.
  virtual std::unique_ptr<ChoiceGroup> record(std::span<Stream *const>, const GroupChoice &) { return nullptr; }
  /// Whether loops are recorded with the commands around them where they can be (DeviceGraphs.h), one iteration behind
  /// the other; else the host begins each iteration when the one before has ended.
  virtual bool unrollsLoops() const { return false; }
  /// Waits until one of the events is reached or has failed, and returns its index; -1 when none is after `timeoutNs`.
  /// The caller may be made to do the work.
  virtual int awaitAny(std::span<const Event> events, int64_t timeoutNs);
  /// A call of a program begins, and lasts as long as the lock: of what only one at a time may use. Nothing runs
  /// between calls. `isAside`: not a program's call, but copies between two of them; `log` stays that of the last one.
  virtual std::unique_lock<std::mutex> beginCall(bool isAside = false) {
    (void)isAside;
    return {};
  }
  /// The host thread does what comes next because these events are reached, not before: known to simulated clocks.
  virtual void hostWaits(uint32_t, std::span<const Event>) {}

  /// Whose call began last, of those that executors run: whose commands the log has. Within a call.
  void setCaller(const void *caller) { caller_.store(caller, std::memory_order_relaxed); }
  const void *caller() const { return caller_.load(std::memory_order_relaxed); }

  /// By the machine's clock, since some fixed moment: this computer's, or a simulated one.
  virtual int64_t nowPs();
  /// Commands of the latest call, and when they were at work (CommandLog.h). Stay until the next one. Empty where the machine keeps none.
  virtual const CommandLog &log() const;
  virtual VirtualTimes times() const;

protected:
  MachineModel model_;
  std::vector<std::shared_ptr<Device>> devices_;

private:
  std::atomic<const void *> caller_{nullptr};
};

/// Memory that a device knows as long as this lives.
class RegisteredMemory {
public:
  RegisteredMemory() = default;
  RegisteredMemory(Device &host, const void *memory, int64_t bytes, MemoryKind kind = MemoryKind::Host)
      : host_(&host), memory_(memory), bytes_(bytes), kind_(kind) {
    host.registerMemory(memory, bytes, kind);
  }
  RegisteredMemory(RegisteredMemory &&other) noexcept
      : host_(std::exchange(other.host_, nullptr)), memory_(other.memory_), bytes_(other.bytes_), kind_(other.kind_) {}
  RegisteredMemory &operator=(RegisteredMemory &&other) noexcept {
    std::swap(host_, other.host_), std::swap(memory_, other.memory_), std::swap(bytes_, other.bytes_), std::swap(kind_, other.kind_);
    return *this;
  }
  ~RegisteredMemory() {
    if (host_)
      host_->unregisterMemory(memory_, bytes_, kind_);
  }

private:
  Device *host_ = nullptr;
  const void *memory_ = nullptr;
  int64_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::Host;
};

/// The processor; each of its streams is a thread.
std::shared_ptr<Device> makeCpuDevice(DeviceRef device = {});
/// This computer's processor as a host and accelerators: what several devices do, by the clock, where there are no
/// others. An accelerator runs kernels on as many threads of its own as DeviceModel::threads says, and copies on
/// others, so they take cores from each other. Its memory is this process's. Keeps a log.
std::shared_ptr<Machine> makeProcessorParts(MachineModel model);
/// Takes all commands and does nothing: every event is reached at once, memory has addresses but no contents.
std::shared_ptr<Device> makeNullDevice(DeviceRef device);
/// Devices that were made apart from each other. Of their speed nothing is known.
std::shared_ptr<Machine> makeMachine(std::string name, std::vector<std::shared_ptr<Device>> devices);

struct MachineRequest {
  bool computes = true;          ///< false: nothing is computed, only times are right. Of a simulated machine
  std::string architecture = {}; ///< of GPUs whose kernels are to be generated and emulated, "sm_90". Empty: simulated accelerators run the host's kernels
  std::vector<int> cards = {};   ///< of the machine "cuda", which cards are its accelerators, in their order; a card named twice is two of them. Empty: all cards
  bool stamps = false;           ///< GPUs keep when each command was at work (Device::takeStamps), which costs some microseconds a command
};
/// The machine that programs and commands name: "cpu:2", this computer's processor as two accelerators
/// (makeProcessorParts); "cuda", this computer with its NVIDIA GPUs, "cuda:1,3" with some of them, "cuda:0,0" with one
/// as two that share it; "sim:NAME" or "sim:FILE.json", as machineNamed has them. Null for "cpu", where a Context runs
/// programs. Throws Error for a machine that is not there (without a GPU or its driver it says which is missing), or
/// that cannot do what is asked for, and what machineNamed throws.
std::shared_ptr<Machine> openMachine(std::string_view name, const MachineRequest &request = {});
/// Waits for events of any devices whose work needs no help.
int awaitAny(std::span<const Event> events, int64_t timeoutNs);

} // namespace tressel::runtime
