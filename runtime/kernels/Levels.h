// Which level's kernels run: the CPU's, unless TRESSEL_KERNEL_LEVEL in the environment limits it (baseline, v3, v4).
#pragma once

#include "tressel/runtime/Cpu.h"

namespace tressel::kernels {

/// Decided once per process.
runtime::CpuLevel kernelLevel();

/// One of a family's tables.
template <typename Table>
const Table &at(runtime::CpuLevel level, const Table &baseline, const Table &v3, const Table &v4) {
  return level == runtime::CpuLevel::V4 ? v4 : level == runtime::CpuLevel::V3 ? v3 : baseline;
}

} // namespace tressel::kernels
