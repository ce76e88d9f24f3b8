// A simulated machine: the queues of its streams, the choice of the next command, and the log.
#pragma once

#include "../devices/HostWork.h"
#include "../devices/PendingReleases.h"
#include "Memory.h"
#include "RaceCheck.h"
#include "tressel/runtime/Simulated.h"

#include <deque>
#include <random>
#include <unordered_map>

namespace tressel::runtime::sim {

class Simulation;

class SimStream final : public Stream {
public:
  SimStream(Simulation &machine, uint32_t index, uint32_t device, uint32_t host)
      : machine(machine), index(index), device(device), host(host) {}
  ~SimStream() override;
  Event submit(const DeviceCommand &command) override;
  Event last() const override { return {const_cast<Semaphore *>(&progress), submitted}; }
  void abort(DeviceFailureRef failure) override;

  Simulation &machine;
  const uint32_t index;  ///< stream of the log
  const uint32_t device; ///< index of the machine's device
  const uint32_t host;
  Semaphore progress;
  uint64_t submitted = 0;
  struct Queued {
    KeptCommand kept;
    uint64_t order; ///< among all commands of the machine
    size_t logged;
  };
  std::deque<Queued> queue;
  bool hangs = false; ///< its next command never ends: an injected fault
};

class SimDevice final : public Device {
public:
  SimDevice(Simulation &machine, uint32_t index, const DeviceModel &model, bool computes);
  const DeviceCaps &caps() const override { return caps_; }
  void *allocate(int64_t bytes, MemoryKind kind) override;
  void release(void *memory, std::span<const Event> lastUses) override;
  void registerMemory(const void *memory, int64_t bytes, MemoryKind kind) override;
  void unregisterMemory(const void *memory, int64_t bytes, MemoryKind kind) override;
  bool knowsMemory(const void *memory, int64_t bytes, MemoryKind kind) const override;
  void discard(void *memory, int64_t bytes) override;
  bool reaches(DeviceRef other) const override;
  void read(void *to, const void *from, int64_t bytes) override;
  std::vector<DeviceKernelRef> load(std::span<const KernelCode> kernels, const std::shared_ptr<const std::vector<GpuCode>> &) override {
    return loadOnHost(kernels, caps_);
  }
  std::unique_ptr<Stream> makeStream(StreamKind kind, std::string name, uint32_t host) override;
  int64_t nowPs() override;
  std::vector<Stamp> takeStamps() override;
  void reset() override;

  Memory memory;
  DeviceFailureRef lost; ///< why the device was lost; null if it was not

private:
  void freeUnused();
  PendingReleases released_;
  Simulation &machine_;
  const uint32_t index_;
  DeviceCaps caps_;
};

class Simulation final : public SimulatedMachine {
public:
  Simulation(MachineModel model, const SimulatedOptions &options);

  const SimulatedOptions &options() const override { return options_; }
  void setOptions(const SimulatedOptions &options) override;
  void setTime(const VirtualTimeOptions &options) override;
  void inject(const Fault &fault) override;
  const CommandLog &log() const override { return isAside_ ? kept_ : log_; }
  VirtualTimes times() const override { return virtualTimes(log(), model_, time_); }
  int64_t nowPs() override;

  int awaitAny(std::span<const Event> events, int64_t timeoutNs) override;
  std::unique_lock<std::mutex> beginCall(bool isAside) override;
  void hostWaits(uint32_t host, std::span<const Event> events) override;

private:
  friend class SimStream;
  friend class SimDevice;

  SimDevice &device(uint32_t index) { return *static_cast<SimDevice *>(devices_[index].get()); }
  Event submit(SimStream &stream, const DeviceCommand &command);
  size_t logCommand(SimStream &stream, const DeviceCommand &command, Event event);
  LoggedEvent logged(const Event &event);
  void logPart(LoggedCommand &entry, const DeviceCommand &command, const SimStream &stream);

  /// Runs one command; false if none is ready.
  bool runOne();
  SimStream *choose();
  /// Whether the head of its queue can begin, or is known to fail.
  bool isReady(const SimStream &stream) const;
  void execute(SimStream &stream);
  void executeCollective(const std::shared_ptr<const CollectiveRun> &run);
  /// Removes the head of the stream's queue, which has ended.
  void end(SimStream &stream);
  DeviceFailureRef attempt(SimStream &stream, const DeviceCommand &command);
  DeviceFailureRef checkAddresses(SimStream &stream, const DeviceCommand &command);
  DeviceFailureRef checkRaces(SimStream &stream, const DeviceCommand &command);
  DeviceFailureRef isolated(SimStream &stream, const DeviceCommand &command);
  void fail(SimStream &stream, const DeviceFailureRef &failure);
  void lose(uint32_t device, const DeviceFailureRef &failure);
  /// Whether an injected fault of this kind occurs now; counts the commands that succeed.
  bool strikes(Fault::Kind kind, DeviceRef device);
  std::string describe(const Region &region) const;
  int64_t clock() const; ///< nowPs; needs the mutex

  SimulatedOptions options_;
  VirtualTimeOptions time_;
  mutable std::mutex mutex_; ///< guards the members below; held while commands run
  std::mutex callMutex_;
  std::vector<SimStream *> streams_; ///< by index; null for a stream that was destroyed
  uint64_t nextOrder_ = 0;
  std::mt19937_64 random_;
  std::vector<double> priorities_; ///< by stream, for seeds that choose by priorities
  RaceCheck races_;
  std::vector<Fault> faults_;
  CommandLog log_;
  CommandLog kept_;         ///< log of the last program, while log_ is that of copies after it
  bool isAside_ = false;    ///< log_ is that of such copies
  std::vector<bool> ended_; ///< by command of the log
  uint32_t numRings_ = 0;   ///< number of collectives in the log
  std::unordered_map<const Semaphore *, uint64_t> semaphores_; ///< numbers of semaphores in the log
  std::vector<size_t> stamped_; ///< by device: commands of the log whose time stamps were read
  Picoseconds base_ = 0;        ///< virtual time at which the log begins
};

} // namespace tressel::runtime::sim
