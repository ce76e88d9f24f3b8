#include "codegen/CostModel.h"

namespace tressel::codegen {

const CpuModel &hostCpuModel() {
  static const CpuModel model = [] {
    const runtime::DeviceModel cpu = runtime::hostMachine().devices.front();
    return CpuModel{cpu, cpu.commandSeconds, 250e-9};
  }();
  return model;
}

double predictSeconds(const CpuModel &cpu, double flops, double bytes, double efficiency) {
  return runtime::workSeconds(cpu, f32, flops, bytes, efficiency);
}

} // namespace tressel::codegen
