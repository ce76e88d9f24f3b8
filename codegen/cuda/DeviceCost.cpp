#include "codegen/cuda/DeviceCost.h"

#include <algorithm>
#include <cmath>

namespace tressel::codegen::cuda {

// Data sheets of A100 SXM 40 GB, H100 SXM, B200 and GeForce RTX 5090: f32 without matrix instructions, 16-bit floats
// without sparsity. Warp-wide matrix instructions are the only ones used; where the card's peak needs larger ones, the
// share that is commonly reported for them is counted.
Peak peakOf(const Arch &arch, DType type) {
  struct Figures {
    std::string_view machine;
    double f32, half, share, bytes;
  };
  static constexpr Figures kFigures[] = {{"a100", 19.5e12, 312e12, 1, 1.555e12},
                                         {"h100", 67e12, 989e12, 0.6, 3.35e12},
                                         {"b200", 75e12, 2250e12, 0.25, 8e12},
                                         {"rtx5090", 105e12, 210e12, 1, 1.79e12}};
  const auto *f = std::ranges::find(kFigures, arch.machine, &Figures::machine);
  if (f == std::end(kFigures))
    f = kFigures;
  return {sizeOf(type) == 2 ? f->half * f->share : f->f32, f->bytes};
}

double tiledSeconds(const TiledWork &w, const Arch &arch, DType type) {
  constexpr double secondsPerStep = 0.7e-6, share = 0.85; // of memory's latency and rate: typical
  const Peak peak = peakOf(arch, type);
  const double waves = std::ceil(w.blocks / arch.multiprocessors);
  const double block = 2 * w.rows * w.columns * w.depth / (peak.flops / arch.multiprocessors * w.efficiency);
  return std::max(
      {waves * block, w.bytes / (peak.bytesPerSecond * share), secondsPerStep * (1 + w.depth / w.step / 2)});
}

double streamedSeconds(double bytes, const Arch &arch) {
  return 1.5e-6 + bytes / (peakOf(arch, DType::f32).bytesPerSecond * 0.8);
}

} // namespace tressel::codegen::cuda
