#include "frontend/tensor/Machine.h"
#include "frontend/tensor/Fail.h"
#include "frontend/tensor/Make.h"
#include "frontend/tensor/Spread.h"
#include "frontend/tensor/StateGroup.h"
#include "frontend/trace/Recorder.h"
#include "runtime/types/Clock.h"

#include "tressel/runtime/DeviceStorage.h"
#include "tressel/runtime/Engine.h"

#include <tressel/ops.h>
#include <tressel/variable.h>

#include <algorithm>
#include <mutex>

namespace tressel {
namespace {

struct Current {
  std::mutex mutex;
  std::shared_ptr<runtime::Machine> machine;
  bool libraries = false;
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
  if (options.libraries &&
      !(machine && std::ranges::any_of(machine->model().devices,
                                       [](const runtime::DeviceModel &d) { return !d.architecture.empty(); })))
    throw Error({.message = "the machine '" + std::string(name) + "' has no GPUs for which there are libraries",
                 .hint = "leave out MachineOptions::libraries, or choose \"cuda\""});
  {
    std::lock_guard lock(current().mutex);
    current().machine = std::move(machine);
    current().libraries = options.libraries;
  }
  detail::structureEpoch.fetch_add(1, std::memory_order_release); // functions check their machine
}

double machine_seconds() {
  if (const auto machine = detail::currentMachine())
    return static_cast<double>(machine->nowPs()) * 1e-12;
  return runtime::nowSeconds();
}

Tensor Tensor::to(Device device, std::source_location where) const {
  const detail::TensorImpl &t = get(where);
  if (detail::tracing())
    return tressel::to(Arg(*this, where), device.name());
  const runtime::DeviceRef to = detail::refOf(device);
  const SourceLoc at = detail::toLoc(where);
  if (t.trace)
    detail::fail<TraceError>("a tensor " + t.type.str() + " (made at " + t.where.str() +
                                 ") belongs to a trace that has ended",
                             at, "to", "return tensors from the traced function instead of keeping them aside");
  const auto machine = isHost(to) ? nullptr : detail::machineWith(to, at, "to");
  if (t.home == detail::homeNumber(to) && detail::machineOf(t) == machine)
    return *this;
  return detail::moved(*this, to, machine, at);
}

Device Tensor::device(std::source_location where) const {
  const detail::TensorImpl &t = get(where);
  if (t.trace)
    detail::fail<TraceError>("where a traced tensor " + t.type.str() + " (made at " + t.where.str() +
                                 ") is computed is not known while the program is being recorded",
                             detail::toLoc(where), "device",
                             "move it with to(), or ask for the device of what the program returns");
  return {static_cast<int>(t.home) - 1};
}

void Variable::on(Device device, std::source_location where) const {
  get(where);
  const uint32_t to = detail::homeNumber(detail::refOf(device));
  if (detail::tracing())
    detail::fail<TraceError>("the Variable '" + impl_->name + "' cannot be moved while a program is being recorded",
                             detail::toLoc(where), "on", "move it before; in the program, to() moves its value");
  impl_->move(to, detail::toLoc(where));
}

void Variable::on(const std::vector<Device> &devices, std::source_location where) const {
  const detail::VariableImpl &variable = get(where);
  auto refuse = [&](const std::string &why, const char *hint) {
    detail::fail<Error>("the Variable '" + variable.name + "' " + why, detail::toLoc(where), "on", hint);
  };
  if (devices.empty())
    refuse("is to be on no device", "name one, or several accelerators");
  if (devices.size() == 1)
    return on(devices.front(), where);
  if (detail::tracing())
    detail::fail<TraceError>("the Variable '" + variable.name + "' cannot be moved while a program is being recorded",
                             detail::toLoc(where), "on", "move it before");
  std::vector<uint32_t> homes;
  for (Device device : devices) {
    const runtime::DeviceRef ref = detail::refOf(device);
    if (isHost(ref) || std::ranges::find(homes, detail::homeNumber(ref)) != homes.end())
      refuse("is to be on several devices, of which " + device.name() +
                 (isHost(ref) ? " is the host" : " is named twice"),
             "name accelerators, each once: the value on the host is there anyhow");
    (void)detail::machineWith(ref, detail::toLoc(where), "on"); // throws if there is no such device
    homes.push_back(detail::homeNumber(ref));
  }
  {
    const detail::StateGroup::Lock lock(*impl_);
    if (impl_->spread && impl_->spread->homes == homes)
      return;
  }
  on(cpu(), where);
  {
    const detail::StateGroup::Lock lock(*impl_);
    impl_->spread = std::make_shared<detail::Spread>(std::move(homes));
  }
  detail::structureEpoch.fetch_add(1, std::memory_order_release); // programs check the Variable's home
}

void Variable::shard(std::string axes, std::source_location where) const {
  const TensorType &type = get(where).value.type();
  if (detail::tracing())
    detail::fail<TraceError>("the Variable '" + impl_->name + "' cannot be cut while a program is being recorded",
                             detail::toLoc(where), "shard", "cut it before; in the program, shard() cuts its value");
  const int words = axes.empty() ? type.rank() : static_cast<int>(std::count(axes.begin(), axes.end(), ',')) + 1;
  if (words != type.rank())
    detail::fail<ShapeError>("the Variable '" + impl_->name + "' is to be cut as \"" + axes + "\", which names " +
                                 std::to_string(words) + " dimensions of " + type.str(),
                             detail::toLoc(where), "shard", "name the axis, or -, for each dimension: \"-, model\"");
  {
    const detail::StateGroup::Lock lock(*impl_);
    impl_->sharding = std::move(axes);
  }
  detail::structureEpoch.fetch_add(1, std::memory_order_release); // programs check the sharding
}

Device Variable::device(std::source_location where) const {
  const detail::StateGroup::Lock lock(get(where));
  return {static_cast<int>(impl_->home) - 1};
}

namespace detail {

std::shared_ptr<runtime::Machine> currentMachine() {
  std::lock_guard lock(current().mutex);
  return current().machine;
}

bool allowsLibraries() {
  std::lock_guard lock(current().mutex);
  return current().libraries;
}

std::shared_ptr<runtime::Machine> machineWith(runtime::DeviceRef device, SourceLoc where, const char *op) {
  auto machine = currentMachine();
  if (!machine || !machine->model().find(device))
    fail<Error>("the machine has no " + runtime::nameOf(device), where, op, "choose one that has it with use_machine");
  return machine;
}

std::shared_ptr<runtime::Machine> machineOf(const TensorImpl &t) {
  return t.home ? runtime::DeviceMemory::of(*t.storage)->machine() : nullptr;
}

void checkMachine(const TensorImpl &t, const std::shared_ptr<runtime::Machine> &current, SourceLoc where,
                  const char *op) {
  if (!t.home)
    return;
  const auto own = machineOf(t);
  if (own != current)
    fail<Error>("a tensor " + t.type.str() + " lies in the memory of " + runtime::nameOf(deviceOfHome(t.home)) +
                    " of '" + own->name() + "', which is no longer the machine of this process",
                where, op, "bring it to the host with to(cpu()); the same for Variables and modules with on(cpu())");
}

const void *copiedElements(const TensorImpl &t, SourceLoc where, const char *what) {
  try {
    return runtime::DeviceMemory::onHost(t.storage)->data();
  } catch (const RuntimeError &e) {
    fail<RuntimeError>(e.message(), where, what);
  }
}

Tensor deviceTensor(const TensorType &type, int64_t bytes, const std::shared_ptr<runtime::Machine> &machine,
                    runtime::DeviceRef device, SourceLoc where, const char *op) {
  const auto memory = runtime::DeviceMemory::of(machine);
  for (bool again = false;; again = true) {
    try {
      return makeTensor(type, memory->allocate(bytes, device), where);
    } catch (const OutOfMemory &e) {
      if (again)
        fail<OutOfMemory>(type.str() + ": " + e.message(), where, op);
    }
    runtime::Engine::global().drain({.op = "memory of a device", .where = where}); // queued tasks may free memory
  }
}

Tensor moved(const Tensor &t, runtime::DeviceRef to, const std::shared_ptr<runtime::Machine> &machine,
             SourceLoc where, const char *op) {
  const TensorImpl &from = *t.impl();
  const int64_t bytes = from.storage->bytes();
  if (from.home && !isHost(to) && machineOf(from) != machine)
    return moved(moved(t, {}, nullptr, where, op), to, machine, where, op);
  Tensor result =
      isHost(to) ? resultTensor(from.type, bytes, where) : deviceTensor(from.type, bytes, machine, to, where, op);
  const auto memory = isHost(to) ? runtime::DeviceMemory::of(*from.storage) : runtime::DeviceMemory::of(machine);
  const runtime::DeviceRef source = deviceOfHome(from.home);
  const runtime::StorageRef in = from.storage, out = result.impl()->storage;
  // Always queued: the caller does not wait for the copy.
  runtime::Engine::global().submit({.op = op, .where = where}, {&in, 1}, {&out, 1},
                                   [memory, source, to, bytes](const runtime::TaskView &task) {
                                     memory->copy(task.outputs[0], to, task.inputs[0], source, bytes);
                                     return int32_t(runtime::kKernelOk);
                                   });
  return result;
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
