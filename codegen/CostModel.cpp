#include "codegen/CostModel.h"

#include <algorithm>

namespace tressel::codegen {

const CpuModel &hostCpuModel() {
  static const CpuModel model = [] {
    const runtime::DeviceModel cpu = runtime::hostMachine().devices.front();
    return CpuModel{cpu, cpu.commandSeconds, 250e-9};
  }();
  return model;
}

double predictSeconds(const CpuModel &cpu, double flops, double bytes, double efficiency) {
  const double parallel = std::max(flops / (cpu.flops(f32) * efficiency), bytes / cpu.bandwidth(bytes)),
               serial = parallel * cpu.threads;
  constexpr double worthSplitting = 20e-6;
  return std::min(serial, std::max(parallel, worthSplitting)); // grows without jumps
}

} // namespace tressel::codegen
