// Loop plans to object code, each plan on its own so that work is shared between threads and cached.
#pragma once

#include "codegen/cpu/EmitKernel.h"
#include "codegen/cpu/Target.h"
#include "codegen/prebuilt/Emit.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tressel::codegen {

/// A kernel to compile: a loop nest, or a call of a prebuilt kernel.
struct KernelSource {
  LoopPlan plan;
  LoopSchedule schedule;
  KernelSignature signature; ///< of a call only the symbol
  std::optional<PrebuiltCall> prebuilt;
};

struct KernelCodeStats {
  double seconds = 0;
  int compiled = 0, cached = 0;
};

/// Objects that define the symbols of all kernels and need nothing: one for each kernel, kept in a cache of the process,
/// bounded in bytes, keyed by plan, symbol and target. For a quick target all generated kernels make one, which is not
/// kept. Thread-safe.
std::vector<std::vector<char>> compileKernels(const std::vector<KernelSource> &kernels, const Target &target,
                                              KernelCodeStats *stats = nullptr);
/// The same as text: LLVM IR before the back end, or assembly.
std::string printKernels(const std::vector<KernelSource> &kernels, const Target &target, bool assembly);
/// Forgets all cached objects (benchmarks of cold compilation).
void clearKernelCache();

} // namespace tressel::codegen
