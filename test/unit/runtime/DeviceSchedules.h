// Flat schedules over a host and accelerators, for tests: streams and buffers by device, and kernels that are functions
// of this program.
#pragma once

#include "ScheduleBuilder.h"
#include "runtime/executable/ExecutableImpl.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/Kernel.h"

#include <algorithm>
#include <functional>
#include <map>

namespace tressel::runtime::test {

inline constexpr DeviceRef kCpu{DeviceKind::Cpu, 0}, kGpu0{DeviceKind::Gpu, 0}, kGpu1{DeviceKind::Gpu, 1};

/// Kernels of the provider "test", by the name in KernelDesc::params.
inline LoadedKernel testKernel(const KernelDesc &desc) {
  static const std::map<std::string, KernelFn> kernels = {
      {"add",
       [](const KernelArgs *args, int64_t begin, int64_t end) -> int32_t {
         const auto *a = static_cast<const float *>(args->buffers[0]),
                    *b = static_cast<const float *>(args->buffers[1]);
         auto *out = static_cast<float *>(args->buffers[2]);
         for (int64_t i = begin; i < end; ++i)
           out[i] = a[i] + b[i];
         return kKernelOk;
       }},
      {"twice",
       [](const KernelArgs *args, int64_t begin, int64_t end) -> int32_t {
         const auto *in = static_cast<const float *>(args->buffers[0]);
         auto *out = static_cast<float *>(args->buffers[1]), *scratch = static_cast<float *>(args->scratch);
         for (int64_t i = begin; i < end; ++i) {
           scratch[0] = in[i];
           out[i] = 2 * scratch[0];
         }
         return kKernelOk;
       }},
      /// flag = a[0] < b[0]
      {"less",
       [](const KernelArgs *args, int64_t, int64_t) -> int32_t {
         *static_cast<uint8_t *>(args->buffers[2]) =
             static_cast<const float *>(args->buffers[0])[0] < static_cast<const float *>(args->buffers[1])[0];
         return kKernelOk;
       }},
      /// out = the number of an iteration
      {"number",
       [](const KernelArgs *args, int64_t begin, int64_t end) -> int32_t {
         for (int64_t i = begin; i < end; ++i)
           static_cast<float *>(args->buffers[1])[i] =
               static_cast<float>(*static_cast<const int64_t *>(args->buffers[0]));
         return kKernelOk;
       }},
      {"fails", [](const KernelArgs *, int64_t, int64_t) -> int32_t { return kKernelIndexOutOfRange; }},
      /// Beside out = in: the float behind out, and the first of in.
      {"overruns",
       [](const KernelArgs *args, int64_t begin, int64_t end) -> int32_t {
         for (int64_t i = begin; i <= end; ++i)
           static_cast<float *>(args->buffers[1])[i] = 1;
         return kKernelOk;
       }},
      {"writes-input",
       [](const KernelArgs *args, int64_t, int64_t) -> int32_t {
         static_cast<float *>(args->buffers[0])[0] = 5;
         return kKernelOk;
       }},
      /// Leaves the second half of out as it was.
      {"half",
       [](const KernelArgs *args, int64_t begin, int64_t end) -> int32_t {
         for (int64_t i = begin; i < end / 2; ++i)
           static_cast<float *>(args->buffers[1])[i] = 1;
         return kKernelOk;
       }},
  };
  return {.fn = kernels.at(desc.params)};
}

class DeviceBuilder : public ScheduleBuilder {
public:
  /// Stream 0 is the host's; each accelerator has one for kernels, one for copies in and one for copies out.
  explicit DeviceBuilder(uint16_t gpus) : ScheduleBuilder(0) {
    s.streams.push_back({kCpu, StreamKind::Compute, "cpu"});
    for (uint16_t i = 0; i < gpus; ++i)
      for (StreamKind kind : {StreamKind::Compute, StreamKind::CopyIn, StreamKind::CopyOut})
        s.streams.push_back({{DeviceKind::Gpu, i}, kind, ""});
  }
  static uint16_t compute(DeviceRef d) { return d.kind == DeviceKind::Cpu ? 0 : uint16_t(1 + 3 * d.index); }
  static uint16_t copyIn(DeviceRef d) { return uint16_t(2 + 3 * d.index); }
  static uint16_t copyOut(DeviceRef d) { return uint16_t(3 + 3 * d.index); }

  /// A buffer in an arena of its own.
  uint32_t on(DeviceRef device, TensorType type, MemoryKind memory = MemoryKind::Device) {
    s.arenas.push_back({device, memory, type.bytes()});
    return buffer(Space::Arena, uint32_t(s.arenas.size() - 1), 0, type);
  }
  uint32_t pinned(TensorType type) { return on(kCpu, type, MemoryKind::Pinned); }
  uint32_t derivedOn(DeviceRef device, std::string name, TensorType type) {
    const uint32_t b = state(std::move(name), type, StateKind::Derived);
    s.states.back().home = {device, device.kind == DeviceKind::Gpu ? MemoryKind::Device : MemoryKind::Host};
    return b;
  }
  /// Of the provider "test", over n floats.
  uint32_t function(const std::string &name, int64_t n, int32_t numInputs) {
    const uint32_t k = kernel(name + std::to_string(s.kernels.size()), n, std::max<int64_t>(n, 1));
    s.kernels[k].provider = "test";
    s.kernels[k].target = KernelTarget::HostLibrary;
    s.kernels[k].params = name;
    s.kernels[k].numInputs = numInputs;
    s.kernels[k].flops = n;
    s.kernels[k].bytes = 4 * n * (numInputs + 1);
    s.kernels[k].scratchBytes = 64;
    return k;
  }
  uint32_t add(int64_t n) { return function("add", n, 2); }
  uint32_t twice(int64_t n) { return function("twice", n, 1); }

  std::shared_ptr<const Executable> executable(const ProgramCode &code = {}) const {
    registerKernelProvider("test", testKernel);
    return Executable::create(s, {}, nullptr, code);
  }
  /// Without the proof that it is safe.
  std::shared_ptr<const Executable> unverifiedExecutable() const {
    auto made = std::make_shared<ExecutableImpl>();
    for (const KernelDesc &desc : s.kernels)
      made->kernels.push_back(testKernel(desc));
    made->epilogues.resize(s.kernels.size(), nullptr);
    made->setSchedule(s);
    return made;
  }
};

} // namespace tressel::runtime::test
