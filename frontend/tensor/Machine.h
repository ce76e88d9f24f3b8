// The machine of this process, as the library sees it.
#pragma once

#include "tressel/runtime/Device.h"

#include <tressel/machine.h>
#include <tressel/tensor.h>

#include <memory>
#include <optional>

namespace tressel::detail {

/// Null: this computer's processor.
std::shared_ptr<runtime::Machine> currentMachine();
/// MachineOptions::libraries of the current machine.
bool allowsLibraries();
/// Throws Error if it is no stage number.
void checkStage(int stage, const std::source_location &where);
/// The stage of a pipeline that ops of this thread belong to; nothing outside of every StageScope.
std::optional<int> currentStage();
/// While one is alive, ops of this thread compute gradients of ops of this stage, if there is one.
class GoingBack {
public:
  explicit GoingBack(std::optional<int> stage);
  ~GoingBack();
  GoingBack(const GoingBack &) = delete;
  GoingBack &operator=(const GoingBack &) = delete;

private:
  uint32_t previous_;
  bool wasGoingBack_;
};
/// The device that ops of this thread run on; nothing outside of every DeviceScope.
std::optional<runtime::DeviceRef> currentDevice();
runtime::DeviceRef refOf(Device device);

/// TensorImpl::home of a device, and the other way round.
inline uint32_t homeNumber(runtime::DeviceRef device) { return runtime::isHost(device) ? 0 : device.index + 1u; }
inline runtime::DeviceRef deviceOfHome(uint32_t home) {
  return home ? runtime::DeviceRef{runtime::DeviceKind::Gpu, static_cast<uint16_t>(home - 1)} : runtime::DeviceRef{};
}

/// A host copy of the elements of a tensor on an accelerator.
const void *copiedElements(const TensorImpl &t, SourceLoc where, const char *what);
/// The elements in memory of the host, where they must be ready (Engine::wait). Every read of a tensor's elements by
/// the host goes through this.
inline const void *elementsOf(const TensorImpl &t, SourceLoc where, const char *what) {
  return t.home ? copiedElements(t, where, what) : t.storage->data();
}

/// A tensor in an accelerator's memory, to be written by a program. Waits for room; throws OutOfMemory.
Tensor deviceTensor(const TensorType &type, int64_t bytes, const std::shared_ptr<runtime::Machine> &machine,
                    runtime::DeviceRef device, SourceLoc where, const char *op = "");
/// A copy of the value on another device, made by a task of the engine. `machine`: that of the destination, unless it
/// is the host.
Tensor moved(const Tensor &t, runtime::DeviceRef to, const std::shared_ptr<runtime::Machine> &machine, SourceLoc where, const char *op = "to");
/// What profiles call the move of an operand to the device that its op runs on.
inline constexpr const char *kOperandMove = "operand to";
/// The machine in whose memory it is; null for the host.
std::shared_ptr<runtime::Machine> machineOf(const TensorImpl &t);
/// Throws Error where the tensor lies on an accelerator of a machine that is no longer the current one.
void checkMachine(const TensorImpl &t, const std::shared_ptr<runtime::Machine> &current, SourceLoc where,
                  const char *op);
/// The current machine, if it has the device. Throws Error.
std::shared_ptr<runtime::Machine> machineWith(runtime::DeviceRef device, SourceLoc where, const char *op);

} // namespace tressel::detail
