// The processor as a device, and one that does nothing.
#include "PendingReleases.h"
#include "RunLog.h"
#include "ThreadStream.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Communicator.h"
#include "tressel/runtime/Error.h"

#include <cstring>
#include <new>
#include <unistd.h>

namespace tressel::runtime {
namespace {

/// The processor as a host, or an equal part of it as an accelerator.
class CpuDevice final : public Device {
public:
  explicit CpuDevice(DeviceRef device) : CpuDevice(device, 0, nullptr) {
    caps_.memoryBytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  }
  /// A device of a machine whose devices reach each other, and that keeps a log. An accelerator has threads of its own.
  CpuDevice(const DeviceModel &model, RunLog &log)
      : CpuDevice(model.device, isHost(model.device) ? 0 : model.threads, &log) {
    caps_.memoryBytes = model.memoryBytes;
  }
  ~CpuDevice() override { released_.freeAll(free); }
  const DeviceCaps &caps() const override { return caps_; }

  void *allocate(int64_t bytes, MemoryKind kind) override {
    if ((kind == MemoryKind::Device) == isHost(caps_.device))
      throwError<Error>(caps_.name, isHost(caps_.device) ? " is a host: its memory is Host or Pinned"
                                                         : " is an accelerator: its memory is Device");
    {
      std::lock_guard lock(mutex_);
      released_.freeUnused(free);
    }
    void *memory = bytes <= caps_.memoryBytes ? ::operator new(static_cast<size_t>(std::max<int64_t>(bytes, 1)),
                                                               std::align_val_t(64), std::nothrow)
                                              : nullptr;
    if (!memory)
      throwError<OutOfMemory>(caps_.name, " has no ", bytes, " bytes; it has ", caps_.memoryBytes, " in all");
    return memory;
  }
  void release(void *memory, std::span<const Event> lastUses) override {
    std::lock_guard lock(mutex_);
    released_.add(memory, lastUses);
    released_.freeUnused(free);
  }
  void registerMemory(const void *, int64_t, MemoryKind) override {
    if (!isHost(caps_.device))
      throwError<Error>("memory of callers is a host's, not that of ", caps_.name);
  }
  void unregisterMemory(const void *, int64_t, MemoryKind) override {}
  bool reaches(DeviceRef other) const override { return log_ || other == caps_.device; }
  void read(void *to, const void *from, int64_t bytes) override { std::memcpy(to, from, static_cast<size_t>(bytes)); }

  std::vector<DeviceKernelRef> load(std::span<const KernelCode> kernels, const std::shared_ptr<const std::vector<GpuCode>> &) override {
    return loadOnHost(kernels, caps_);
  }
  std::unique_ptr<Stream> makeStream(StreamKind kind, std::string name, uint32_t) override {
    ThreadPool &pool = isHost(caps_.device) || kind == StreamKind::Compute ? pool_ : alone_;
    ThreadStream::Note note;
    if (log_)
      note = [log = log_, number = log_->addStream({caps_.device, kind, std::move(name)})](const Stamp &stamp) {
        log->add(number, stamp);
      };
    return std::make_unique<ThreadStream>(
        [device = caps_.device, &pool](const DeviceCommand &command) {
          std::vector<void *> addresses;
          for (const Region &region : command.regions)
            addresses.push_back(region.address);
          return workOnHost(command, addresses, device, pool);
        },
        stamps_, std::move(note));
  }
  int64_t nowPs() override { return StampList::nowPs(); }
  std::vector<Stamp> takeStamps() override { return stamps_.take(); }
  void reset() override {}

private:
  CpuDevice(DeviceRef device, int threads, RunLog *log)
      : own_(threads > 0 ? std::make_unique<ThreadPool>(threads) : nullptr), pool_(own_ ? *own_ : ThreadPool::global()),
        log_(log) {
    caps_.name = nameOf(device);
    caps_.device = device;
    caps_.implementation = "cpu";
  }
  static void free(void *memory) { ::operator delete(memory, std::align_val_t(64)); }
  DeviceCaps caps_;
  std::unique_ptr<ThreadPool> own_;
  ThreadPool &pool_;
  ThreadPool alone_{1}; ///< copies of a part run on their stream's thread
  RunLog *log_ = nullptr;
  StampList stamps_;
  std::mutex mutex_;
  PendingReleases released_;
};

/// See makeProcessorParts.
class ProcessorParts final : public Machine {
public:
  explicit ProcessorParts(MachineModel model) {
    model_ = std::move(model);
    for (const DeviceModel &device : model_.devices)
      devices_.push_back(std::make_shared<CpuDevice>(device, log_));
  }
  std::unique_lock<std::mutex> beginCall(bool isAside) override {
    std::unique_lock call(calls_);
    log_.begin(isAside);
    return call;
  }
  const CommandLog &log() const override { return log_.log(); }
  VirtualTimes times() const override { return log_.times(); }

private:
  RunLog log_; // devices use it
  std::mutex calls_;
};

class NullDevice final : public Device {
public:
  explicit NullDevice(DeviceRef device) {
    caps_.name = nameOf(device);
    caps_.device = device;
    caps_.implementation = "null";
    caps_.computes = false;
  }
  const DeviceCaps &caps() const override { return caps_; }
  void *allocate(int64_t bytes, MemoryKind) override {
    return reinterpret_cast<void *>(
        next_.fetch_add(static_cast<uintptr_t>(std::max<int64_t>(bytes, 1) + 63) / 64 * 64));
  }
  void release(void *, std::span<const Event>) override {}
  void registerMemory(const void *, int64_t, MemoryKind) override {
    if (!isHost(caps_.device))
      throwError<Error>("memory of callers is a host's, not that of ", caps_.name);
  }
  void unregisterMemory(const void *, int64_t, MemoryKind) override {}
  bool reaches(DeviceRef) const override { return true; }
  void read(void *to, const void *, int64_t bytes) override { std::memset(to, 0, static_cast<size_t>(bytes)); }
  std::vector<DeviceKernelRef> load(std::span<const KernelCode> kernels, const std::shared_ptr<const std::vector<GpuCode>> &) override {
    return loadOnHost(kernels, caps_);
  }
  std::unique_ptr<Stream> makeStream(StreamKind, std::string, uint32_t) override {
    return std::make_unique<ThreadStream>(
        [device = caps_.device](const DeviceCommand &command) {
          DeviceFailureRef failure;
          if (Communicator *communicator = communicatorOf(command)) { // other ranks would wait for it
            failure = std::make_shared<DeviceFailure>(FailureKind::Unsupported,
                                                      "a device that does nothing takes no part", device, command.tag);
            communicator->skip(command.turn, failure);
          }
          return failure;
        },
        stamps_);
  }
  int64_t nowPs() override { return StampList::nowPs(); }
  std::vector<Stamp> takeStamps() override { return stamps_.take(); }
  void reset() override {}

private:
  DeviceCaps caps_;
  StampList stamps_;
  std::atomic<uintptr_t> next_{uintptr_t(1) << 44};
};

} // namespace

std::shared_ptr<Device> makeCpuDevice(DeviceRef device) { return std::make_shared<CpuDevice>(device); }
std::shared_ptr<Machine> makeProcessorParts(MachineModel model) {
  return std::make_shared<ProcessorParts>(std::move(model));
}
std::shared_ptr<Device> makeNullDevice(DeviceRef device) { return std::make_shared<NullDevice>(device); }

} // namespace tressel::runtime
