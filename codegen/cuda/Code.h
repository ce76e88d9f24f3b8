// Kernels to code: PTX for an architecture, machine code where an assembler is at hand, or something that runs on the
// CPU.
#pragma once

#include "codegen/cuda/Arch.h"
#include "tressel/runtime/GpuCode.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace tressel::codegen::cuda {

struct Kernel;

/// `assembled`: also the cubin, where this machine has an assembler. Throws InternalError.
runtime::GpuCode compileKernels(const std::vector<Kernel> &kernels, const Arch &arch, bool assembled);
/// LLVM IR after optimization.
std::string printKernels(const std::vector<Kernel> &kernels, const Arch &arch);

/// Kernels that run on the CPU (Emulate.h), for simulated devices. While the handle lives, KernelDesc of the provider
/// "cuda" that name it can be loaded.
class Emulation {
public:
  static std::shared_ptr<Emulation> create(const std::vector<Kernel> &kernels, const Arch &arch);
  virtual ~Emulation() = default;
  /// The kernel's params, with what finds the code.
  virtual std::string paramsOf(const Kernel &kernel) const = 0;
};

} // namespace tressel::codegen::cuda
