// Kernels to code: PTX for an architecture, machine code where an assembler is at hand, or something that runs on the
// CPU.
#pragma once

#include "codegen/cuda/target/Arch.h"
#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Kernel.h"

#include <cstddef>
#include <string>
#include <vector>

namespace tressel::codegen::cuda {

struct Kernel;

/// `assembled`: also the cubin, where this machine has an assembler. Throws InternalError.
runtime::GpuCode compileKernels(const std::vector<Kernel> &kernels, const Arch &arch, bool assembled);
/// LLVM IR after optimization.
std::string printKernels(const std::vector<Kernel> &kernels, const Arch &arch);

/// Kernels that run on the CPU (Emulate.h), for simulated devices.
runtime::KernelLookup emulatedKernels(const std::vector<Kernel> &kernels, const Arch &arch);

} // namespace tressel::codegen::cuda
