// Kernels that were compiled when Tressel was built: one import-free image per instruction-set level, mapped at the
// first use. Which ones: the records' field `prebuilt`, in the classes of prebuilt/Main.cpp.
#pragma once

#include "frontend/eager/Kernel.h"
#include "tressel/runtime/Cpu.h"

#include <optional>

namespace tressel::eager {

/// Code for a class, at this machine's level or one below it.
std::optional<Kernel::Code> findPrebuilt(const codegen::OpCall &call,
                                         runtime::CpuLevel level = runtime::hostCpuLevel());
/// Kernels in the image of this machine's level.
size_t numPrebuilt();

} // namespace tressel::eager
