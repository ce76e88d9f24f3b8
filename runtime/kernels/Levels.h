// Selects the level of the kernels: that of the CPU, unless TRESSEL_KERNEL_LEVEL in the environment limits it
// (baseline, v3, v4); and whether products use tile registers (SplitProduct.h). TRESSEL_KERNEL_TILES=0 disables tiles;
// `emulated` selects those of EmulatedTiles.h, for tests.
#pragma once

#include "SplitProduct.h"
#include "tressel/runtime/Cpu.h"

namespace tressel::kernels {

struct Level {
  runtime::CpuLevel cpu;
  const SplitKernels *split; ///< null: without tiles
  Level(runtime::CpuLevel cpu, const SplitKernels *split = nullptr) : cpu(cpu), split(split) {}
};
/// Determined once per process. Throws InputError if emulated tiles are requested but missing.
const Level &kernelLevel();

/// Selects the table of the level from those of a family.
template <typename Table>
const Table &at(const Level &level, const Table &baseline, const Table &v3, const Table &v4) {
  return level.cpu == runtime::CpuLevel::V4 ? v4 : level.cpu == runtime::CpuLevel::V3 ? v3 : baseline;
}

} // namespace tressel::kernels
