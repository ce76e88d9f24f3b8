// Memory of tensors: counted references to 64-byte aligned blocks of the host, to a caller's memory with its deleter,
// or to memory of an accelerator (DeviceStorage.h).
//
//   StorageRef s = Storage::allocate(n * 4);
//   StorageRef t = Storage::adopt(ptr, bytes, [](void *p, void *user) { ... }, user);
//
// A storage knows which task writes it (`ready`) and which tasks use it last (`lastUse`); code that writes host memory
// directly waits for the latter first (Engine.h). References may be copied and dropped in any thread. Queued tasks
// count apart: a task's result that only queued tasks need (Engine::output) gives its bytes to later tasks of their
// lane.
#pragma once

#include "tressel/runtime/Error.h"
#include "tressel/runtime/Home.h"
#include "tressel/runtime/Lane.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace tressel::runtime {

/// Why a task's results do not exist. Shared by every tensor computed from them.
struct Failure {
  enum class Kind : uint8_t { Runtime, OutOfMemory };
  Kind kind = Kind::Runtime;
  std::string message;
  std::string op;
  SourceLoc where;
  /// Set when a call has thrown it; failures that none threw are printed at exit.
  mutable std::atomic<bool> observed{false};

  /// As the exception a waiter gets; `waitedAt` becomes part of the trace.
  [[noreturn]] void raise(SourceLoc waitedAt = {}) const;
};
using FailureRef = std::shared_ptr<const Failure>;

class StorageRef;
class StoragePin;

class Storage {
public:
  using Deleter = void (*)(void *data, void *user);

  /// 64-byte aligned, contents undefined, recycled from earlier blocks where possible. `bytes` may be 0.
  /// Throws OutOfMemory with the number of bytes.
  static StorageRef allocate(int64_t bytes);
  /// Takes the caller's memory. `deleter` (may be null) runs once, when the last reference is gone and no task uses the
  /// memory; never on a lane's thread, but inside a later call of the library by one of the caller's threads.
  static StorageRef adopt(void *data, int64_t bytes, Deleter deleter, void *user);

  /// An address of the home's: where that is not the host, only commands of the device may name it.
  void *data() const { return data_; }
  /// The device in whose memory the bytes are.
  DeviceRef device() const { return device_; }
  int64_t bytes() const { return bytes_; }
  /// Memory of the caller's: its lifetime and alignment are not ours.
  bool adopted() const { return adopted_; }
  /// True while exactly one reference exists, which is then the caller's: the bytes may be reused in place.
  bool unique() const { return references_.load(std::memory_order_acquire) == kHandle; }
  /// True while exactly one handle exists beside those of StoragePins. Queued tasks may use the bytes nevertheless: a task that
  /// is handed over later, with the storage among its outputs, runs after them.
  bool heldOnce() const {
    return references_.load(std::memory_order_acquire) % kTask == kHandle * (1 + pins_.load(std::memory_order_acquire));
  }

  /// The task that writes the contents; not a point when they are there already.
  Point ready() const { return unpack(ready_.load(std::memory_order_acquire)); }
  /// The last tasks handed to lanes that read or write the bytes.
  Uses lastUse() const { return unpackUses(lastUse_.load(std::memory_order_acquire)); }
  /// Null unless the writing task failed. Only meaningful once ready() is reached.
  FailureRef failure() const;

  /// Bytes of blocks beyond 4 KiB that are in use, and that are kept for reuse, over the process.
  static int64_t liveBytes();
  static int64_t cachedBytes();
  /// Gives kept blocks back to the system.
  static void trimCache();
  /// Runs deleters that fell due on lane threads. The engine calls it; harmless at any time.
  static void runPendingDeleters();

private:
  friend class StorageRef;
  friend class DeviceMemory;
  friend class StoragePin;
  friend class Engine;
  friend class Blocks;
  friend class Lanes;
  /// What references_ counts: in its lower half those of handles, in its upper half those of queued tasks.
  static constexpr uint64_t kHandle = 1, kTask = uint64_t(1) << 32;
  Storage() = default;
  ~Storage() = default;
  void release(uint64_t one = kHandle);
  void destroy();
  void fail(FailureRef why);

  void *data_ = nullptr;
  int64_t bytes_ = 0;
  std::atomic<uint64_t> references_{kHandle};
  std::atomic<uint32_t> pins_{0}; ///< of the handles
  std::atomic<bool> failed_{false};
  bool adopted_ = false;
  DeviceRef device_;
  bool inOrder_ = false; ///< a task's result, whose bytes are given on in the order of its lanes
  int32_t sizeClass_ = -1; ///< of the block of the contents; of this header with the contents behind it, where small
  std::atomic<uint64_t> ready_{0}, lastUse_{0}; // a packed point, packed uses
  FailureRef failure_;                          // written before failed_ is set
  Deleter deleter_ = nullptr;
  void *user_ = nullptr;
  Storage *nextPending_ = nullptr;

  /// Takes the bytes of a result whose last handle goes while tasks use it. Set by the engine.
  static void (*giveInOrder_)(Storage &);
};

/// A counted reference. Null when default constructed.
class StorageRef {
public:
  StorageRef() = default;
  StorageRef(const StorageRef &o) : storage_(o.storage_) { retain(); }
  StorageRef(StorageRef &&o) noexcept : storage_(std::exchange(o.storage_, nullptr)) {}
  StorageRef &operator=(StorageRef o) noexcept {
    std::swap(storage_, o.storage_);
    return *this;
  }
  ~StorageRef() {
    if (storage_)
      storage_->release();
  }
  /// One more reference to a storage that has one already.
  static StorageRef share(Storage *storage) {
    StorageRef ref(storage);
    ref.retain();
    return ref;
  }
  /// A reference is its pointer, so those of an array need not be copied to be borrowed.
  static std::span<Storage *const> pointers(std::span<const StorageRef> refs) {
    static_assert(sizeof(StorageRef) == sizeof(Storage *) && alignof(StorageRef) == alignof(Storage *));
    return {refs.empty() ? nullptr : &refs.data()->storage_, refs.size()};
  }
  Storage *get() const { return storage_; }
  Storage *operator->() const { return storage_; }
  Storage &operator*() const { return *storage_; }
  explicit operator bool() const { return storage_ != nullptr; }
  bool operator==(const StorageRef &) const = default;

private:
  friend class Storage;
  friend class Engine;
  explicit StorageRef(Storage *adopt) : storage_(adopt) {}
  void retain() const {
    if (storage_)
      storage_->references_.fetch_add(Storage::kHandle, std::memory_order_relaxed);
  }
  Storage *storage_ = nullptr;
};

/// A reference that keeps the memory, but does not ask for the contents to stay as they are (Storage::heldOnce): a compiled program's to
/// the Variables that it is bound to, which it looks after at each call.
class StoragePin {
public:
  explicit StoragePin(StorageRef storage) : storage_(std::move(storage)) {
    storage_->pins_.fetch_add(1, std::memory_order_acq_rel);
  }
  StoragePin(StoragePin &&) noexcept = default;
  StoragePin &operator=(StoragePin &&) = delete;
  ~StoragePin() {
    if (storage_)
      storage_->pins_.fetch_sub(1, std::memory_order_acq_rel);
  }
  Storage *get() const { return storage_.get(); }

private:
  StorageRef storage_;
};

} // namespace tressel::runtime
