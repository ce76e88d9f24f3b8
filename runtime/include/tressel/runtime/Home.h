// Where bytes lie: a device and a kind of its memory.
#pragma once

#include <cstdint>
#include <string>

namespace tressel::runtime {

enum class DeviceKind : uint8_t { Cpu, Gpu };
struct DeviceRef {
  DeviceKind kind = DeviceKind::Cpu;
  uint16_t index = 0;
  bool operator==(const DeviceRef &) const = default;
};
constexpr bool isHost(DeviceRef device) { return device.kind == DeviceKind::Cpu; }
std::string nameOf(DeviceRef device); ///< "cpu", "cpu1", "gpu0"

enum class MemoryKind : uint8_t { Device, Pinned, Host };
/// A host's memory is Host (pageable) or Pinned, an accelerator's is Device; Device on a host is Host.
struct Home {
  DeviceRef device;
  MemoryKind memory = MemoryKind::Host;
  bool operator==(const Home &) const = default;
};
constexpr bool isHost(const Home &home) { return isHost(home.device); }
/// The memory of an accelerator, or pageable memory of a host.
constexpr Home homeOn(DeviceRef device) { return {device, isHost(device) ? MemoryKind::Host : MemoryKind::Device}; }

} // namespace tressel::runtime
