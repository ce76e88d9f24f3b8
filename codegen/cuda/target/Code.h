// Kernels to code: PTX for an architecture, machine code where an assembler is at hand, or something that runs on the
// CPU.
#pragma once

#include "codegen/CodeCache.h"
#include "codegen/cuda/target/Arch.h"
#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/Kernel.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tressel::codegen::cuda {

struct Kernel;

/// Where PTX of kernels may come from, and go to.
struct CodeSources {
  const CodeArchive *archive = nullptr;
  ObjectCache *disk = nullptr;
  /// Receives the PTX of each kernel of the program, from wherever it came. From one thread.
  std::function<void(const CacheKey &, const Code &)> used = {};
};
/// `assembled`: also the cubin, where this machine has an assembler. Each kernel is compiled by itself, so that
/// programs share its PTX, and the pool's threads the work. Throws InternalError. Thread-safe.
runtime::GpuCode compileKernels(const std::vector<Kernel> &kernels, const Arch &arch, bool assembled,
                                const CodeSources &sources = {}, KernelCodeStats *stats = nullptr);
/// LLVM IR after optimization.
std::string printKernels(const std::vector<Kernel> &kernels, const Arch &arch);

/// Kernels that run on the CPU (Emulate.h), for simulated devices.
runtime::KernelLookup emulatedKernels(const std::vector<Kernel> &kernels, const Arch &arch);

} // namespace tressel::codegen::cuda
