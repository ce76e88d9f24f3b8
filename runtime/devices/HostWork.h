// Commands done by the processor, on memory that it can touch: what the cpu device and simulated ones share.
#pragma once

#include "tressel/runtime/Device.h"
#include "tressel/runtime/ThreadPool.h"

#include <vector>

namespace tressel::runtime {

/// A command that stays after `submit`.
struct KeptCommand {
  explicit KeptCommand(const DeviceCommand &command)
      : command(command), regions(command.regions.begin(), command.regions.end()),
        waits(command.waits.begin(), command.waits.end()) {
    this->command.regions = regions;
    this->command.waits = waits;
  }
  KeptCommand(KeptCommand &&) = default; // the vectors' elements stay where they are
  KeptCommand &operator=(KeptCommand &&) = default;
  DeviceCommand command;
  std::vector<Region> regions;
  std::vector<Event> waits;
};

/// A kernel that is a function of this process.
struct HostKernel final : DeviceKernel {
  explicit HostKernel(const KernelCode &code) : fn(code.fn), epilogue(code.epilogue), state(code.state) {}
  KernelFn fn, epilogue;
  const void *state;
};
/// Device::load for a device that runs them. Throws InputError for a kernel without a function, unless nothing is computed.
std::vector<DeviceKernelRef> loadOnHost(std::span<const KernelCode> kernels, const DeviceCaps &device);

/// Of a rank's part; null: the command is none.
inline Communicator *communicatorOf(const DeviceCommand &command) {
  return command.kind == DeviceCommandKind::Collective && command.collective ? command.collective->communicator.get()
                                                                             : nullptr;
}
/// The failure of a communicator as that of a part on a device; null stays null.
DeviceFailureRef failureOfPart(const DeviceFailureRef &failure, DeviceRef device, uint64_t tag);
/// Throws Error for a command that means nothing.
void checkShape(const DeviceCommand &command);

/// Does the work of a command whose waits are reached, on these addresses (one per region), split over the pool where
/// it is large. Returns nothing, or why it failed.
DeviceFailureRef workOnHost(const DeviceCommand &command, std::span<void *const> addresses, DeviceRef device,
                            ThreadPool &pool = ThreadPool::global());

/// Sum of bytes that tells copies that went wrong.
uint64_t checksum(const void *bytes, int64_t count);

} // namespace tressel::runtime
