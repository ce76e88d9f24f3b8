// Kernels of matrix products as the executor calls them.
#pragma once

#include "Fields.h"
#include "Levels.h"
#include "tressel/runtime/Cpu.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

namespace tressel::kernels {

// Both throw InputError when the description is damaged or does not fit the operands.
runtime::LoadedKernel makeProduct(const runtime::KernelDesc &desc, const Fields &fields, const Level &level);
runtime::LoadedKernel makeProductPack(const runtime::KernelDesc &desc, const Fields &fields, const Level &level);

} // namespace tressel::kernels
