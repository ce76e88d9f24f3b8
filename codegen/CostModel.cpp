#include "codegen/CostModel.h"

#include <algorithm>
#include <thread>

namespace tressel::codegen {

const CpuModel &hostCpuModel() {
  static const CpuModel model = [] {
    double threads = std::max(1u, std::thread::hardware_concurrency());
    double lanes = __builtin_cpu_supports("avx512f") ? 16 : __builtin_cpu_supports("avx2") ? 8 : 4;
    constexpr double clock = 2.5e9, fmaUnits = 2, flopsPerFma = 2, bandwidth = 8e9, cachedBandwidth = 60e9, cache = 1 << 20;
    return CpuModel{threads * lanes * clock * fmaUnits * flopsPerFma, threads * bandwidth, threads * cachedBandwidth,
                    threads * cache, 30e-9, 250e-9, static_cast<int>(threads)};
  }();
  return model;
}

double predictSeconds(const CpuModel &cpu, double flops, double bytes, double efficiency) {
  double bandwidth = bytes <= cpu.cacheBytes ? cpu.cachedBytesPerSecond : cpu.bytesPerSecond;
  double parallel = std::max(flops / (cpu.flopsPerSecond * efficiency), bytes / bandwidth);
  double serial = parallel * cpu.threads;
  constexpr double worthSplitting = 20e-6;
  return serial < worthSplitting ? serial : std::max(parallel, worthSplitting / cpu.threads);
}

} // namespace tressel::codegen
