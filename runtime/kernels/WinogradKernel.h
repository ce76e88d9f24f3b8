// Kernels of Winograd convolutions with the interface of the executor.
#pragma once

#include "Fields.h"
#include "Levels.h"
#include "tressel/runtime/Cpu.h"
#include "tressel/runtime/Kernel.h"
#include "tressel/runtime/Schedule.h"

namespace tressel::kernels {

// Both throw InputError if the description is invalid or does not match the operands.
runtime::LoadedKernel makeWinograd(const runtime::KernelDesc &desc, const Fields &fields, const Level &level);
runtime::LoadedKernel makeWinogradPack(const runtime::KernelDesc &desc, const Fields &fields, const Level &level);

} // namespace tressel::kernels
