// Storages in the memory of accelerators, and copies between them and the host.
//
//   std::shared_ptr<DeviceMemory> memory = DeviceMemory::of(machine);
//   StorageRef there = memory->allocate(bytes, {DeviceKind::Gpu, 0});
//   memory->copy(there->data(), there->device(), here->data(), here->device(), bytes);
//
// A storage on a device keeps its machine. Its bytes go back to the device with the last reference; commands that use them are
// issued by tasks of the engine, which hold references until the commands have ended. When a device is lost, all that lay there
// has failed: whatever reads it is told.
#pragma once

#include "tressel/runtime/Device.h"
#include "tressel/runtime/Storage.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>

namespace tressel::runtime {

class DeviceMemory : public std::enable_shared_from_this<DeviceMemory> {
public:
  /// That of the machine: the same for all callers as long as one of them, or a storage, holds it.
  static std::shared_ptr<DeviceMemory> of(const std::shared_ptr<Machine> &machine);
  /// That which the storage lies in; null for the host.
  static std::shared_ptr<DeviceMemory> of(const Storage &storage);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;

  const std::shared_ptr<Machine> &machine() const { return machine_; }

  /// Contents undefined. Throws OutOfMemory, which names the device, and InputError where the machine has no such device.
  StorageRef allocate(int64_t bytes, DeviceRef device);
  /// Takes the caller's memory, which is the device's, begins at a multiple of 64 bytes and has its contents. `deleter`
  /// runs once, in any thread, when no reference and no command needs it any more.
  StorageRef adopt(void *data, int64_t bytes, DeviceRef device, Storage::Deleter deleter, void *user);
  /// With these contents; the device may be the host.
  StorageRef copyOf(std::span<const std::byte> bytes, DeviceRef device);
  /// Returns when the bytes are there; between two accelerators without a route, by way of the host. Nothing else may write
  /// either meanwhile. Throws RuntimeError.
  void copy(void *to, DeviceRef toDevice, const void *from, DeviceRef fromDevice, int64_t bytes);

  /// The contents in memory of the host: the storage itself, or a copy, which is kept with it until `forgetHostCopy`. They must
  /// be there (Engine::wait). Throws RuntimeError and OutOfMemory.
  static StorageRef onHost(const StorageRef &storage);
  /// Of a storage whose contents are about to change.
  static void forgetHostCopy(const Storage &storage);

  /// The device works again, empty: all storages on it have failed.
  static void lost(const Machine &machine, const DeviceFailure &failure);
  /// How often that happened, to any device and to this one: what was allocated before is gone, and must not be released.
  uint64_t losses() const { return losses_.load(std::memory_order_acquire); }
  uint64_t losses(DeviceRef device);

private:
  explicit DeviceMemory(std::shared_ptr<Machine> machine) : machine_(std::move(machine)) {}
  struct Block;
  StorageRef keep(void *data, int64_t bytes, DeviceRef device, Storage::Deleter deleter, void *user);
  void copyDirectly(void *to, const Home &toHome, const void *from, const Home &fromHome, int64_t bytes);

  const std::shared_ptr<Machine> machine_; // outlives the streams
  std::mutex mutex_;                       ///< guards what follows
  std::map<std::pair<uint16_t, StreamKind>, std::shared_ptr<Stream>> streams_; ///< by accelerator
  std::set<Storage *> storages_;
  std::map<uint16_t, uint64_t> lossesOf_; ///< by accelerator
  std::atomic<uint64_t> losses_{0};
};

} // namespace tressel::runtime
