// Kernels that were compiled when Tressel was built: one import-free image per instruction-set level, mapped at the
// first use, and an archive of PTX. Which ones: those of prebuilt/CommonCalls.h.
#pragma once

#include "codegen/CodeArchive.h"
#include "frontend/eager/Kernel.h"
#include "tressel/runtime/Cpu.h"

#include <optional>

namespace tressel::eager {

/// Code for a class, at this machine's level or one below it.
std::optional<Kernel::Code> findPrebuilt(const codegen::OpCall &call,
                                         runtime::CpuLevel level = runtime::hostCpuLevel());
/// Kernels in the image of this machine's level.
size_t numPrebuilt();

/// The architecture that prebuilt GPU kernels are compiled for: the first one, as all later cards accept its PTX.
inline constexpr const char *kPrebuiltArchitecture = "sm_80";
/// PTX of the programs of common ops on accelerators (prebuilt/Gpu.cpp).
const codegen::PackedArchive &prebuiltGpuCode();

} // namespace tressel::eager
