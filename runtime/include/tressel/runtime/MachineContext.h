// A package's function on a machine with several devices or with a GPU: what Context is on the processor.
//
//   auto package = runtime::Package::open("mlp.tsl");
//   auto context = runtime::MachineContext::open(package, "cuda");
//   context->run(inputs, outputs);
//
// A program needs libtressel_runtime.so only: the executor and the machine are libraries beside it, libtressel_devices.so and
// libtressel_cuda.so, which are opened here.
#pragma once

#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Package.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tressel::runtime {

/// The memory and bindings of one caller. Belongs to one thread at a time, and keeps what it needs of its package.
class MachineContext {
public:
  /// `machine`: "cuda", this computer with its NVIDIA GPUs; "cpu", its processor alone, with a thread for each stream of the program. Contexts of
  /// one process share a machine. States are bound: those on the host as Package::context does, those of an accelerator to copies there. `function`
  /// "" is the first. Throws InputError for a library that is missing (it names the file and what needs it) and a program that does not fit the
  /// machine, Error for a machine that is not there, and OutOfMemory.
  static std::unique_ptr<MachineContext> open(const Package &package, const std::string &machine, const std::string &function = "");
  virtual ~MachineContext();

  virtual const Schedule &schedule() const = 0;
  /// As Context::run, and returns when the outputs are complete. All memory is the host's: what the program wants on an accelerator is copied there
  /// and back.
  virtual void run(std::span<const View> inputs, std::span<const View> outputs) = 0;
  virtual std::vector<TensorType> outputTypes(std::span<const TensorType> inputs) const = 0;
  /// Held now on all devices: arenas, states that are derived or copied.
  virtual int64_t bytes() const = 0;
  /// Copies the states that the function updates to the host's.
  virtual void readStates(PackageStates &states) = 0;
  /// Takes all states of the function from the host's, as they are.
  virtual void writeStates(const PackageStates &states) = 0;
};

/// What libtressel_devices.so has for it, as its symbol tressel_machine_context.
using MakeMachineContext = std::unique_ptr<MachineContext> (*)(const Package &package, const std::string &machine, const std::string &function);

} // namespace tressel::runtime
