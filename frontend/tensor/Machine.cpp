#include "frontend/tensor/Machine.h"
#include "frontend/trace/Record.h"
#include "runtime/types/Clock.h"

#include <tressel/ops.h>

#include <mutex>

namespace tressel {
namespace {

struct Current {
  std::mutex mutex;
  std::shared_ptr<runtime::Machine> machine;
};
Current &current() {
  static auto *current = new Current; // threads may outlive static destruction
  return *current;
}

} // namespace

std::string Device::name() const { return runtime::nameOf(detail::refOf(*this)); }

Device gpu(int i) {
  if (i < 0 || i > 4095)
    throw Error("there is no accelerator " + std::to_string(i));
  return {i};
}

void use_machine(std::string_view name, MachineOptions options) {
  auto machine = runtime::openMachine(name, {.computes = options.computes, .architecture = options.gpu});
  {
    std::lock_guard lock(current().mutex);
    current().machine = std::move(machine);
  }
  detail::structureEpoch.fetch_add(1, std::memory_order_release); // functions look again what they were compiled for
}

double machine_seconds() {
  if (const auto machine = detail::currentMachine())
    return static_cast<double>(machine->nowPs()) * 1e-12;
  return runtime::nowSeconds();
}

Tensor Tensor::to(Device device, std::source_location where) const {
  get(where); // there is one
  if (detail::tracing())
    return tressel::to(Arg(*this, where), device.name());
  if (const auto machine = detail::currentMachine();
      device != cpu() && (!machine || !machine->model().find(detail::refOf(device))))
    detail::fail<Error>("the machine has no " + device.name(), detail::toLoc(where), "to",
                        "choose one that has it with use_machine");
  return *this; // outside of programs values are on the host
}

namespace detail {

std::shared_ptr<runtime::Machine> currentMachine() {
  std::lock_guard lock(current().mutex);
  return current().machine;
}

runtime::DeviceRef refOf(Device device) {
  if (device.index < -1 || device.index > 4095)
    throw Error(Error::Details{.message = "there is no device with the index " + std::to_string(device.index),
                               .hint = "cpu() is the host, gpu(0) the first accelerator"});
  if (device == cpu())
    return {};
  return {runtime::DeviceKind::Gpu, static_cast<uint16_t>(device.index)};
}

} // namespace detail
} // namespace tressel
