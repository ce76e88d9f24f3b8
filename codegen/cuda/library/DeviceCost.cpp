#include "codegen/cuda/library/DeviceCost.h"

#include "tressel/runtime/MachineModel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace tressel::codegen::cuda {

// Only warp-wide matrix instructions are used; where a card's peak needs larger ones (those of groups of warps on
// sm_90, of whole blocks on sm_100), the share that is commonly reported for them is counted.
static double shareOfMatrixPeak(const Arch &arch) {
  return arch.card == "sm_90" ? 0.6 : arch.card == "sm_100" ? 0.25 : 1;
}

Peak peakOf(const Arch &arch, DType type) {
  static const auto &peaks = *[] {
    auto *all = new std::map<std::string_view, std::array<Peak, 2>>; // f32, 16-bit floats
    for (const Arch &a : architectures()) {
      const runtime::MachineModel machine = runtime::machineOfArchitecture(a.name);
      const runtime::DeviceModel &gpu = machine.devices.back();
      (*all)[a.name] = {Peak{gpu.flops(f32), gpu.bytesPerSecond},
                        Peak{gpu.flops(f16) * shareOfMatrixPeak(a), gpu.bytesPerSecond}};
    }
    return all;
  }();
  return peaks.at(arch.card)[sizeOf(type) == 2];
}

double tiledSeconds(const TiledWork &w, const Arch &arch, DType type) {
  constexpr double secondsPerStep = 0.7e-6, share = 0.85; // of memory's latency and rate: typical
  const Peak peak = peakOf(arch, type);
  const double waves = std::ceil(w.blocks / arch.multiprocessors);
  const double block = 2 * w.rows * w.columns * w.depth / (peak.flops / arch.multiprocessors * w.efficiency);
  return std::max(
      {waves * block, w.bytes / (peak.bytesPerSecond * share), secondsPerStep * (1 + w.depth / w.step / w.atOnce)});
}

double exchangeSeconds(double rows, double columns) {
  constexpr double meeting = 2e-6, bytesPerSecond = 50e9; // of a block: estimates
  return meeting + 4 * rows * columns / bytesPerSecond;
}

double streamedSeconds(double bytes, const Arch &arch) {
  return 1.5e-6 + bytes / (peakOf(arch, DType::f32).bytesPerSecond * 0.8);
}

} // namespace tressel::codegen::cuda
