// Kernels to code: PTX for an architecture, machine code where an assembler is at hand, or something that runs on the
// CPU.
#pragma once

#include "codegen/cuda/Assemble.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace tressel::codegen::cuda {

struct Kernel;

/// The code of a program's kernels for one architecture, as one module.
struct Code {
  std::string arch; ///< "sm_90"
  std::string ptx;
  std::vector<std::byte> cubin;           ///< empty where there is no assembler
  std::vector<KernelResources> resources; ///< of the cubin, by kernel; likewise
  std::string assembler;                  ///< "nvJitLink 13.0"
};

/// `assembled`: also the cubin, where this machine has an assembler. Throws InternalError.
Code compileKernels(const std::vector<Kernel> &kernels, const Arch &arch, bool assembled);
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
