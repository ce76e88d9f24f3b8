// Which level's kernels run: the CPU's, unless TRESSEL_KERNEL_LEVEL in the environment limits it (baseline, v3, v4), and
// whether products use tile registers (SplitProduct.h), which TRESSEL_KERNEL_TILES=0 forbids; `emulated` has them use the
// tiles of EmulatedTiles.h, for tests.
#pragma once

#include "SplitProduct.h"
#include "tressel/runtime/Cpu.h"

namespace tressel::kernels {

struct Level {
  runtime::CpuLevel cpu;
  const SplitKernels *split; ///< null: without tiles
  Level(runtime::CpuLevel cpu, const SplitKernels *split = nullptr) : cpu(cpu), split(split) {}
};
/// Decided once per process. Throws InputError where emulated tiles are asked for and are not there.
const Level &kernelLevel();

/// One of a family's tables.
template <typename Table>
const Table &at(const Level &level, const Table &baseline, const Table &v3, const Table &v4) {
  return level.cpu == runtime::CpuLevel::V4 ? v4 : level.cpu == runtime::CpuLevel::V3 ? v3 : baseline;
}

} // namespace tressel::kernels
