#include "tressel/runtime/DeviceStorage.h"

#include "EnginePoints.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace tressel::runtime {

std::atomic<bool (*)(Point)> isPointReached{[](Point) { return true; }};

namespace {

constexpr int64_t kPatienceNs = int64_t(3600) * 1'000'000'000;

/// Never destroyed: storages of static lifetime may end after everything else.
struct Registry {
  std::mutex mutex;
  std::vector<std::pair<const Machine *, std::weak_ptr<DeviceMemory>>> all;
};
Registry &registry() {
  static Registry &registry = *new Registry;
  return registry;
}

} // namespace

/// What a storage on a device has beside its header.
struct DeviceMemory::Block {
  std::shared_ptr<DeviceMemory> memory;
  Device *device = nullptr; ///< null once the bytes are lost; guarded by the memory's mutex, as `onHost` is
  Storage *storage = nullptr;
  StorageRef onHost;
  Storage::Deleter deleter = nullptr; ///< of a caller's memory; null: the bytes are the device's
  void *user = nullptr;

  static void release(void *data, void *user) {
    const std::unique_ptr<Block> block(static_cast<Block *>(user));
    const std::shared_ptr<DeviceMemory> memory = block->memory; // outlives the lock
    std::unique_lock lock(memory->mutex_);
    memory->storages_.erase(block->storage);
    if (!block->deleter) {
      if (block->device)
        block->device->release(data);
      return;
    }
    lock.unlock(); // it may let go another storage
    block->deleter(data, block->user);
  }
};

std::shared_ptr<DeviceMemory> DeviceMemory::of(const std::shared_ptr<Machine> &machine) {
  Registry &known = registry();
  std::lock_guard lock(known.mutex);
  std::erase_if(known.all, [](const auto &each) { return each.second.expired(); });
  for (const auto &[its, memory] : known.all)
    if (its == machine.get())
      if (auto alive = memory.lock())
        return alive;
  std::shared_ptr<DeviceMemory> made(new DeviceMemory(machine));
  known.all.emplace_back(machine.get(), made);
  return made;
}

std::shared_ptr<DeviceMemory> DeviceMemory::of(const Storage &storage) {
  return isHost(storage.device_) ? nullptr : static_cast<const Block *>(storage.user_)->memory;
}

DeviceMemory::~DeviceMemory() = default;

StorageRef DeviceMemory::allocate(int64_t bytes, DeviceRef ref) {
  Device &device = machine_->at(ref);
  void *data = device.allocate(bytes, homeOn(ref).memory);
  try {
    return keep(data, bytes, ref, nullptr, nullptr);
  } catch (...) {
    device.release(data);
    throw;
  }
}

StorageRef DeviceMemory::adopt(void *data, int64_t bytes, DeviceRef ref, Storage::Deleter deleter, void *user) {
  return keep(data, bytes, ref, deleter, user);
}

StorageRef DeviceMemory::keep(void *data, int64_t bytes, DeviceRef ref, Storage::Deleter deleter, void *user) {
  auto block = std::make_unique<Block>(Block{shared_from_this(), &machine_->at(ref), nullptr, {}, deleter, user});
  const StorageRef storage = Storage::adopt(data, bytes, &Block::release, block.get());
  // But for a caller's the engine may update it in place. It lets it go on any thread.
  storage->adopted_ = deleter != nullptr;
  storage->device_ = ref;
  block.release()->storage = storage.get();
  std::lock_guard lock(mutex_);
  storages_.insert(storage.get());
  return storage;
}

StorageRef DeviceMemory::copyOf(std::span<const std::byte> bytes, DeviceRef device) {
  const auto size = static_cast<int64_t>(bytes.size());
  StorageRef made = isHost(device) ? Storage::allocate(size) : allocate(size, device);
  if (!isHost(device))
    copy(made->data(), device, bytes.data(), {}, size);
  else if (size > 0)
    std::memcpy(made->data(), bytes.data(), bytes.size());
  return made;
}

void DeviceMemory::copyDirectly(void *to, const Home &toHome, const void *from, const Home &fromHome, int64_t bytes) {
  // Into an accelerator its own engine copies, else that of the source.
  const bool isIn = isHost(fromHome);
  const DeviceRef owner = isIn ? toHome.device : fromHome.device;
  const StreamKind kind = isIn                               ? StreamKind::CopyIn
                          : toHome.device == fromHome.device ? StreamKind::Compute
                                                             : StreamKind::CopyOut;
  Device &host = machine_->at({});
  RegisteredMemory known;
  if (const void *memory = isIn ? from : isHost(toHome) ? to : nullptr; memory && host.caps().checksMemory)
    known = RegisteredMemory(host, memory, bytes);
  const auto call = machine_->beginCall(/*isAside=*/true);
  std::unique_lock lock(mutex_);
  std::shared_ptr<Stream> &cached = streams_[{owner.index, kind}];
  if (!cached)
    cached = machine_->at(owner).makeStream(kind, concat(nameOf(owner), isIn                          ? ".in"
                                                                       : kind == StreamKind::CopyOut ? ".out"
                                                                                                     : ""));
  const Region regions[] = {{const_cast<void *>(from), bytes, Access::Read, fromHome},
                            {to, bytes, Access::Write, toHome}};
  const std::shared_ptr<Stream> stream = cached; // another copy that fails may drop it
  const Event end = stream->submit({.kind = DeviceCommandKind::Copy, .regions = regions});
  lock.unlock();
  DeviceFailureRef failure;
  if (machine_->awaitAny({&end, 1}, kPatienceNs) < 0)
    failure = std::make_shared<DeviceFailure>(FailureKind::TimedOut, concat("a copy of ", bytes, " bytes did not end"),
                                              owner);
  else if (end.state() == Semaphore::State::Failed)
    failure = end.semaphore->failure();
  if (!failure)
    return;
  lock.lock();
  if (auto at = streams_.find({owner.index, kind}); at != streams_.end() && at->second == stream)
    streams_.erase(at);
  lock.unlock();
  stream->abort(failure);
  if (failure->kind == FailureKind::DeviceLost) {
    machine_->at(failure->device).reset();
    lost(*machine_, *failure);
  }
  throwError<RuntimeError>("copying ", bytes, " bytes from ", nameOf(fromHome.device), " to ", nameOf(toHome.device),
                           ": ", failure->message);
}

void DeviceMemory::copy(void *to, DeviceRef toDevice, const void *from, DeviceRef fromDevice, int64_t bytes) {
  if (bytes == 0)
    return;
  if (fromDevice == toDevice || machine_->at(fromDevice).reaches(toDevice))
    return copyDirectly(to, homeOn(toDevice), from, homeOn(fromDevice), bytes);
  const StorageRef between = Storage::allocate(bytes);
  copyDirectly(between->data(), {}, from, homeOn(fromDevice), bytes);
  copyDirectly(to, homeOn(toDevice), between->data(), {}, bytes);
}

StorageRef DeviceMemory::onHost(const StorageRef &storage) {
  if (isHost(storage->device_))
    return storage;
  auto &block = *static_cast<Block *>(storage->user_);
  {
    std::lock_guard lock(block.memory->mutex_);
    if (block.onHost)
      return block.onHost;
  }
  StorageRef made = Storage::allocate(storage->bytes());
  block.memory->copy(made->data(), {}, storage->data(), storage->device_, storage->bytes());
  std::lock_guard lock(block.memory->mutex_);
  if (!block.onHost) // else another thread was first, and callers may hold its address
    block.onHost = std::move(made);
  return block.onHost;
}

void DeviceMemory::forgetHostCopy(const Storage &storage) {
  if (isHost(storage.device_))
    return;
  auto &block = *static_cast<Block *>(storage.user_);
  std::lock_guard lock(block.memory->mutex_);
  block.onHost = {};
}

uint64_t DeviceMemory::losses(DeviceRef device) {
  std::lock_guard lock(mutex_);
  const auto at = isHost(device) ? lossesOf_.end() : lossesOf_.find(device.index);
  return at == lossesOf_.end() ? 0 : at->second;
}

void DeviceMemory::lost(const Machine &machine, const DeviceFailure &failure) {
  std::shared_ptr<DeviceMemory> memory;
  {
    std::lock_guard lock(registry().mutex);
    for (const auto &[its, known] : registry().all)
      if (its == &machine)
        memory = known.lock();
  }
  if (!memory)
    return;
  auto why = std::make_shared<Failure>();
  why->message = concat(nameOf(failure.device), " was lost, with all that was in its memory: ", failure.message);
  why->observed = true; // the call that met it says so
  std::lock_guard lock(memory->mutex_);
  ++memory->lossesOf_[failure.device.index];
  memory->losses_.fetch_add(1, std::memory_order_acq_rel);
  std::erase_if(memory->streams_, [&](const auto &each) { return each.first.first == failure.device.index; });
  for (Storage *storage : memory->storages_)
    if (storage->device_ == failure.device) {
      static_cast<Block *>(storage->user_)->device = nullptr;
      if (!storage->failure() && isPointReached.load()(storage->ready()))
        storage->fail(why);
    }
}

} // namespace tressel::runtime
