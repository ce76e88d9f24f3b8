// The machine that programs run on, and where in it: a host and its accelerators.
//
//   use_machine("sim:2gpu-pcie3");                         // once, before anything is compiled
//   auto f = jit([](Tensor x, Tensor w) {
//     Tensor a = with_device(gpu(0), [&] { return x * w; });
//     return relu(a.to(gpu(1))) + x;                       // relu where its operand is
//   });
//
// In programs cpu() is the host and gpu(i) accelerator i of the chosen machine, so one program runs on every machine
// that has as many. The compiler places ops without an annotation, and writes the copies.
//
// Tensors and Variables live on the host or on an accelerator (Tensor::device, Variable::on). Compiled functions read
// arguments where they are, update Variables in their memory, and leave results where they are computed; return
// y.to(cpu()) for a result on the host. Reading elements (item, to_vector, data, printing, saving) copies them to the
// host. An op outside of compiled functions runs on the accelerator of its operands, or on the host if all of them are
// there; operands elsewhere are copied by the call. A DeviceScope does not move such ops. After use_machine has chosen
// another machine, a tensor on an accelerator of the old one can still be copied by to(cpu()); all other uses throw.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

namespace tressel {

struct Device {
  int index = -1; ///< -1: the host
  bool operator==(const Device &) const = default;
  std::string name() const; ///< "cpu", "gpu0"
};
/// The host.
inline Device cpu() { return {}; }
/// Accelerator i of the machine. Throws Error when i is negative or beyond 4095.
Device gpu(int i);

/// One dimension of a grid of accelerators, on which compiled functions are split (JitOptions::mesh, docs/parallel.md).
struct MeshAxis {
  std::string name; ///< an identifier: "data", "model"
  int size = 1;     ///< from 1
};

struct MachineOptions {
  /// Of a simulated machine. false: only virtual time is computed. Programs of any size then run at once, take no
  /// memory on devices, and give meaningless results.
  bool computes = true;
  /// Of a simulated machine: the architecture of its accelerators, "sm_80", "sm_90", "sm_100" or "sm_120". Programs
  /// then run the kernels for GPUs of this architecture, emulated on the processor, and accelerators compute everything
  /// they can. Empty: the processor's own kernels.
  std::string gpu = {};
  /// Of a machine with GPUs: NVIDIA's cuBLASLt and cuDNN may compute products, convolutions and attention, in compiled
  /// functions and in ops outside of them. Where one is not installed, Tressel's own kernels run instead, and a note on
  /// standard error says so (docs/gpu.md). Sums of the two differ by rounding.
  bool libraries = false;
};
/// Chooses the machine for this process: "cpu"; "cpu:2", the processor's cores as two accelerators, by the clock
/// (docs/machines.md); "cuda", this computer with its NVIDIA GPUs (docs/gpu.md), "cuda:1,3" with some of them,
/// "cuda:0,0" with one card as two accelerators; "sim:NAME" (docs/machines.md lists them) or "sim:FILE.json".
/// "sim:dgx-h100:64" is of 64 accelerators, in hosts of as many as the preset has, "sim:dgx-h100:16x4" of 16 hosts with
/// 4 each; of more than 64 accelerators those of the first host are there, and explain_ranks counts on all. A simulated
/// machine computes true numbers in virtual time (docs/simulated.md). Functions that were compiled for another machine
/// are compiled anew when they are called. Throws Error for a name that means nothing, for a machine that is not there,
/// for one that is not simulated and shall not compute, and for `libraries` on one without GPUs.
void use_machine(std::string_view name, MachineOptions options = {});
/// Seconds by the machine's clock, since some fixed moment; virtual time on a simulated machine.
double machine_seconds();

/// Ops recorded in this thread while it is alive are computed on the device. The innermost of these and of StageScopes
/// counts. Programs compiled inside and outside of one are different.
class DeviceScope {
public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;

private:
  unsigned previous_;
};
/// Ops recorded in this thread while it is alive belong to a stage of a pipeline, counted from 0 (JitOptions::pipeline,
/// docs/parallel.md), as do the ops of their gradients; ignored in programs without a pipeline. The innermost of these
/// and of DeviceScopes counts. Throws Error for an invalid stage number.
class StageScope {
public:
  explicit StageScope(int stage, std::source_location where = std::source_location::current());
  ~StageScope();
  StageScope(const StageScope &) = delete;
  StageScope &operator=(const StageScope &) = delete;

private:
  unsigned previous_;
};
/// The result of the function, with its ops in the stage.
template <typename F>
decltype(auto) with_stage(int stage, F &&function, std::source_location where = std::source_location::current()) {
  StageScope scope(stage, where);
  return static_cast<F &&>(function)();
}

/// The result of the function, with its ops on the device.
template <typename F> decltype(auto) with_device(Device device, F &&function) {
  DeviceScope scope(device);
  return static_cast<F &&>(function)();
}

} // namespace tressel
