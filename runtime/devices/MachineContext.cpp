// A package's function through an Executor, with memory on the devices for what its caller has on the host.
#include "tressel/runtime/MachineContext.h"

#include "CudaLibrary.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/DeviceStorage.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Instantiate.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace tressel::runtime {
namespace {

/// Never destroyed: contexts of static lifetime may be.
struct OpenMachines {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Machine>> byName;
};

std::shared_ptr<Machine> machineFor(const std::string &name) {
  static OpenMachines &open = *new OpenMachines();
  std::lock_guard lock(open.mutex);
  if (auto known = open.byName[name].lock())
    return known;
  std::shared_ptr<Machine> made;
  if (name == "cpu")
    made = makeMachine(name, {makeCpuDevice()});
  else if (name == "cuda")
    made = cudaLibrary().open({}, {});
  else
    throw Error(Error::Details{.message = concat("there is no machine '", name, "' for packages"),
                               .hint = "\"cpu\", and \"cuda\" with an NVIDIA GPU; simulated machines are for programs with the compiler"});
  open.byName[name] = made;
  return made;
}

ProgramCode codeFor(const Package &package, const std::string &function) {
  ProgramCode code;
  if (needsGpu(package.schedule(function)))
    code.gpu = std::make_shared<std::vector<GpuCode>>(gpuCodeOf(package));
  return code;
}

class OnMachine final : public MachineContext {
public:
  OnMachine(const Package &package, std::shared_ptr<Machine> machine, const std::string &function)
      : package_(package), memory_(DeviceMemory::of(machine)),
        executor_(package.executable(function, hostCpuLevel(), codeFor(package, function)), std::move(machine)) {
    bindStates(PackageStates(package));
  }

  const Schedule &schedule() const override { return executor_.schedule(); }

  void run(std::span<const View> inputs, std::span<const View> outputs) override {
    const Schedule &s = schedule();
    std::vector<TensorType> types;
    for (const View &view : inputs)
      types.push_back(view.type);
    const dim::Values dims = dimsFor(types);
    std::vector<const void *> in;
    std::vector<void *> out;
    for (const View &view : inputs)
      in.push_back(view.data);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (i < s.outputs.size()) // their number is checked by the executor
        if (const TensorType want{s.outputs[i].type.dtype, dim::evaluate(s.outputs[i].type.shape, dims)}; outputs[i].type != want)
          throwError<ShapeError>("output '", s.outputs[i].name, "' of '", s.name, "' is ", want.str(), ", given ", outputs[i].type.str());
      out.push_back(outputs[i].data);
    }
    // What the program takes and leaves on an accelerator.
    std::vector<StorageRef> there;
    for (size_t i = 0; i < std::min(in.size(), s.inputs.size()); ++i)
      if (const DeviceRef device = s.inputs[i].home.device; !isHost(device) && in[i]) {
        there.push_back(memory_->allocate(types[i].bytes(), device));
        memory_->copy(there.back()->data(), device, in[i], {}, types[i].bytes());
        in[i] = there.back()->data();
      }
    for (size_t i = 0; i < std::min(out.size(), s.outputs.size()); ++i)
      if (const DeviceRef device = s.outputs[i].home.device; !isHost(device) && out[i]) {
        there.push_back(memory_->allocate(outputs[i].type.bytes(), device));
        out[i] = there.back()->data();
      }
    executor_.run(in, out, dims);
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i] != outputs[i].data)
        memory_->copy(outputs[i].data, {}, out[i], s.outputs[i].home.device, outputs[i].type.bytes());
  }

  std::vector<TensorType> outputTypes(std::span<const TensorType> inputs) const override {
    const dim::Values dims = dimsFor(inputs);
    std::vector<TensorType> types;
    for (const ValueDesc &output : schedule().outputs)
      types.push_back({output.type.dtype, dim::evaluate(output.type.shape, dims)});
    return types;
  }

  int64_t bytes() const override {
    int64_t bytes = 0;
    for (const auto &device : executor_.machine().devices())
      bytes += executor_.bytesOn(device->caps().device);
    for (const StorageRef &state : states_)
      bytes += state ? state->bytes() : 0;
    return bytes;
  }

  void readStates(PackageStates &states) override {
    size_t place = 0;
    forEachState(states, [&](const StateDesc &state, size_t index) {
      const StorageRef &mine = states_[place++];
      if (state.kind != StateKind::Mutable)
        return;
      const auto *bytes = static_cast<const std::byte *>(mine->data());
      const auto size = static_cast<size_t>(state.type.bytes());
      if (isHost(state.home.device))
        return states.set(index, {bytes, size});
      std::vector<std::byte> value(size);
      memory_->copy(value.data(), {}, bytes, state.home.device, state.type.bytes());
      states.set(index, value);
    });
  }
  void writeStates(const PackageStates &states) override { bindStates(states); }

private:
  /// The symbols' values. Throws ShapeError when an input has not its type.
  dim::Values dimsFor(std::span<const TensorType> inputs) const {
    const Schedule &s = schedule();
    std::vector<Shape> shapes;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i < s.inputs.size() && inputs[i].dtype != s.inputs[i].type.dtype)
        throwError<ShapeError>("input '", s.inputs[i].name, "' of '", s.name, "' is ", s.inputs[i].type.str(), ", given ", inputs[i].str());
      shapes.push_back(inputs[i].shape);
    }
    return dimsOf(s, shapes);
  }

  void bindStates(const PackageStates &values) {
    states_.clear();
    std::vector<void *> pointers;
    forEachState(values, [&](const StateDesc &state, size_t index) {
      const DeviceRef device = state.home.device;
      const std::span<const std::byte> value = values.value(index);
      if (isHost(device) && state.kind != StateKind::Mutable &&
          value.data() == package_.stateValue(state.name).data()) {
        states_.emplace_back();
        pointers.push_back(const_cast<std::byte *>(value.data())); // only read: the schedule was verified
        return;
      }
      pointers.push_back(states_.emplace_back(memory_->copyOf(value, device))->data());
    });
    if (!pointers.empty())
      executor_.bindStates(pointers);
  }
  /// Those that are bound, in order, with their number in `values`.
  template <typename Fn> void forEachState(const PackageStates &values, Fn fn) const {
    for (const StateDesc &state : schedule().states)
      if (state.kind != StateKind::Derived) {
        const auto at = std::ranges::find(values.entries(), state.name, &PackageStates::Entry::name);
        fn(state, static_cast<size_t>(
                      at - values.entries().begin())); // the package has an entry for each state of its functions
      }
  }

  const Package package_; // states and constants lie in its file
  const std::shared_ptr<DeviceMemory> memory_;
  std::vector<StorageRef> states_; // of those that are bound, null for the file's bytes; outlive the executor
  Executor executor_;
};

std::unique_ptr<MachineContext> make(const Package &package, const std::string &machine, const std::string &function) {
  return std::make_unique<OnMachine>(package, machineFor(machine), function);
}

} // namespace
} // namespace tressel::runtime

extern "C" {
extern const tressel::runtime::MakeMachineContext tressel_machine_context;
const tressel::runtime::MakeMachineContext tressel_machine_context = &tressel::runtime::make;
}
