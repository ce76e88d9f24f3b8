// A machine written against the seam alone, as the first version of a new back end would be: a host and one accelerator whose commands run when
// a thread waits for them, in that thread. Addresses of the accelerator's memory are no addresses of this process, so that whatever above the seam
// follows one crashes.
#pragma once

#include "runtime/devices/HostWork.h"
#include "tressel/runtime/Device.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

namespace tressel::runtime::test {

class DeferredMachine;

class DeferredStream final : public Stream, NativeEvents {
public:
  DeferredStream(DeferredMachine &machine, class DeferredDevice &device);
  ~DeferredStream() override;
  Event submit(const DeviceCommand &command) override;
  Event last() const override;
  void abort(DeviceFailureRef failure) override;
  const char *driver() const override { return "deferred"; }
  bool withEvent(uint64_t value, const std::function<void(void *)> &use) override;

  /// Runs the first command if it may begin; false if not. Under the machine's lock.
  bool step();

private:
  bool isReady() const {
    return progress_.failure() || std::ranges::all_of(queue_.front().waits, [](const Event &wait) { return wait.state() != Semaphore::State::Pending; });
  }
  DeviceFailureRef work(const KeptCommand &kept);
  DeferredMachine &machine_;
  DeferredDevice &device_;
  Semaphore progress_{this};
  uint64_t submitted_ = 0, ended_ = 0;
  std::deque<KeptCommand> queue_;
};

class DeferredDevice final : public Device {
public:
  static constexpr int64_t kBytes = int64_t(64) << 20;
  static constexpr uintptr_t kTag = uintptr_t(1) << 62; // not canonical: following it is a fault

  DeferredDevice(DeferredMachine &machine, DeviceRef ref) : machine_(machine) {
    caps_ = {.name = nameOf(ref), .device = ref, .implementation = "deferred", .memoryBytes = kBytes};
  }
  ~DeferredDevice() override {
    for (const auto &[memory, bytes] : blocks_)
      ::operator delete(memory, std::align_val_t(64));
  }
  const DeviceCaps &caps() const override { return caps_; }
  void *allocate(int64_t bytes, MemoryKind kind) override;
  void release(void *memory, std::span<const Event> lastUses) override;
  void registerMemory(const void *, int64_t, MemoryKind) override {
    if (!isHost(caps_.device))
      throw Error("memory of callers is a host's");
  }
  void unregisterMemory(const void *, int64_t, MemoryKind) override {}
  bool reaches(DeviceRef) const override { return true; }
  void read(void *to, const void *from, int64_t bytes) override { std::memcpy(to, real(const_cast<void *>(from)), static_cast<size_t>(bytes)); }
  std::vector<DeviceKernelRef> load(std::span<const KernelCode> kernels, const std::shared_ptr<const std::vector<GpuCode>> &) override {
    return loadOnHost(kernels, caps_);
  }
  std::unique_ptr<Stream> makeStream(StreamKind, std::string, uint32_t) override { return std::make_unique<DeferredStream>(machine_, *this); }
  int64_t nowPs() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count() * 1000;
  }
  std::vector<Stamp> takeStamps() override;
  void reset() override {}

  /// Under the machine's lock.
  void add(const Stamp &stamp) { stamps_.push_back(stamp); }
  static void *real(void *memory) { return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(memory) & ~kTag); }

private:
  void *shown(void *memory) const {
    return isHost(caps_.device) ? memory : reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(memory) | kTag);
  }
  void freeUnused();
  DeferredMachine &machine_;
  DeviceCaps caps_;
  std::map<void *, int64_t> blocks_;
  struct Released {
    void *memory;
    std::vector<Event> lastUses;
  };
  std::vector<Released> released_;
  std::vector<Stamp> stamps_;
};

class DeferredMachine final : public Machine {
public:
  DeferredMachine() {
    model_.name = "deferred";
    for (DeviceRef ref : {DeviceRef{}, DeviceRef{DeviceKind::Gpu, 0}})
      devices_.push_back(std::make_shared<DeferredDevice>(*this, ref));
  }
  ~DeferredMachine() override { devices_.clear(); }
  int awaitAny(std::span<const Event> events, int64_t timeoutNs) override {
    const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min<int64_t>(timeoutNs, int64_t(3600) * 1'000'000'000));
    for (;;) {
      if (const int reached = runtime::awaitAny(events, 0); reached >= 0)
        return reached;
      if (std::unique_lock lock(mutex); runOne())
        continue;
      if (std::chrono::steady_clock::now() >= until)
        return -1;
      runtime::awaitAny(events, 1'000'000); // other threads may signal
    }
  }
  /// Streams take turns.
  bool runOne() {
    for (size_t i = 0; i < streams.size(); ++i) {
      std::rotate(streams.begin(), streams.begin() + 1, streams.end());
      if (streams.back()->step())
        return true;
    }
    return false;
  }

  std::mutex mutex; ///< guards all of it
  std::vector<DeferredStream *> streams;
};

//--- Streams ----------------------------------------------------------------------------------------------------------
inline DeferredStream::DeferredStream(DeferredMachine &machine, DeferredDevice &device) : machine_(machine), device_(device) {
  std::lock_guard lock(machine_.mutex);
  machine_.streams.push_back(this);
}
inline DeferredStream::~DeferredStream() {
  std::lock_guard lock(machine_.mutex);
  std::erase(machine_.streams, this);
}
inline Event DeferredStream::submit(const DeviceCommand &command) {
  checkShape(command);
  std::lock_guard lock(machine_.mutex);
  queue_.emplace_back(command);
  return {&progress_, ++submitted_};
}
inline Event DeferredStream::last() const {
  std::lock_guard lock(machine_.mutex);
  return {const_cast<Semaphore *>(&progress_), submitted_};
}
inline void DeferredStream::abort(DeviceFailureRef failure) {
  std::lock_guard lock(machine_.mutex);
  progress_.fail(std::move(failure));
  while (!queue_.empty())
    step();
}
inline bool DeferredStream::withEvent(uint64_t value, const std::function<void(void *)> &use) {
  std::lock_guard lock(machine_.mutex);
  if (queue_.empty() || value != ended_ + 1 || !isReady())
    return false;
  use(&queue_.front());
  return true;
}
inline bool DeferredStream::step() {
  if (queue_.empty() || !isReady())
    return false;
  const KeptCommand kept = std::move(queue_.front());
  queue_.pop_front();
  ++ended_;
  DeviceFailureRef failure = progress_.failure();
  for (const Event &wait : kept.waits)
    if (!failure && wait.state() == Semaphore::State::Failed)
      failure = wait.semaphore->failure();
  const int64_t begin = device_.nowPs();
  if (!failure)
    failure = work(kept);
  const Event &signal = kept.command.signal;
  const bool signals = kept.command.kind == DeviceCommandKind::Signal;
  if (failure) {
    if (signals)
      signal.semaphore->fail(failure);
    progress_.fail(std::move(failure));
    return true;
  }
  device_.add({kept.command.tag, {&progress_, ended_}, begin, device_.nowPs()});
  if (signals)
    signal.semaphore->signal(signal.value);
  progress_.signal(ended_);
  return true;
}
inline DeviceFailureRef DeferredStream::work(const KeptCommand &kept) {
  std::vector<void *> addresses;
  for (const Region &region : kept.regions)
    addresses.push_back(isHost(region.home) ? region.address : DeferredDevice::real(region.address));
  return workOnHost(kept.command, addresses, device_.caps().device);
}

//--- Devices ----------------------------------------------------------------------------------------------------------
inline void *DeferredDevice::allocate(int64_t bytes, MemoryKind kind) {
  if (isHost(caps_.device) == (kind == MemoryKind::Device))
    throw Error(caps_.name + " has no such memory");
  std::lock_guard lock(machine_.mutex);
  freeUnused();
  int64_t used = bytes;
  for (const auto &[memory, size] : blocks_)
    used += size;
  if (used > kBytes)
    throw OutOfMemory(caps_.name + " has no " + std::to_string(bytes) + " bytes");
  void *memory = ::operator new(static_cast<size_t>(std::max<int64_t>(bytes, 1)), std::align_val_t(64));
  blocks_.emplace(memory, bytes);
  return shown(memory);
}
inline void DeferredDevice::release(void *memory, std::span<const Event> lastUses) {
  std::lock_guard lock(machine_.mutex);
  released_.push_back({real(memory), {lastUses.begin(), lastUses.end()}});
  freeUnused();
}
inline void DeferredDevice::freeUnused() {
  std::erase_if(released_, [&](const Released &released) {
    if (std::ranges::any_of(released.lastUses, [](const Event &use) { return use.state() == Semaphore::State::Pending; }))
      return false;
    blocks_.erase(released.memory);
    ::operator delete(released.memory, std::align_val_t(64));
    return true;
  });
}
inline std::vector<Stamp> DeferredDevice::takeStamps() {
  std::lock_guard lock(machine_.mutex);
  return std::exchange(stamps_, {});
}

} // namespace tressel::runtime::test
