// Loop plans to object code, each plan on its own so that work is shared between threads, programs and processes.
#pragma once

#include "codegen/CodeCache.h"
#include "codegen/Link.h"
#include "codegen/bitcode/Emit.h"
#include "codegen/cpu/EmitKernel.h"
#include "codegen/cpu/Target.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tressel::codegen {

/// A kernel to compile: a loop nest, several of them, or a call of a bitcode kernel.
struct KernelSource {
  LoopPlan plan;
  LoopSchedule schedule;
  KernelSignature signature; ///< of a call, and of several nests, only the symbol
  std::optional<BitcodeCall> bitcode = {};
  std::vector<ScheduledPart> parts = {}; ///< several: instead of `plan` and `schedule`
};

/// What the linker makes an image of.
struct KernelCode {
  std::vector<Code> objects;
  /// The symbol of each kernel, and the one that an object defines for it: objects know nothing of the program's names, so
  /// that any program can use them.
  std::vector<SymbolAlias> aliases;
};

/// Objects for all kernels that need nothing from outside: one for each distinct kernel, looked up by plan and target in a
/// cache of the process, bounded in bytes, and then in `cache` if it is not null. For a quick target all generated
/// kernels make one, which is not kept. Thread-safe. `progress` is called from the pool's threads, one at a time, with how many
/// of the kernels that must be compiled are done.
KernelCode compileKernels(const std::vector<KernelSource> &kernels, const Target &target, ObjectCache *cache = nullptr,
                          KernelCodeStats *stats = nullptr, const std::function<void(int done, int all)> &progress = {});
std::vector<std::byte> linkImage(const KernelCode &code);
/// The same as text: LLVM IR before the back end, or assembly.
std::string printKernels(const std::vector<KernelSource> &kernels, const Target &target, bool assembly);

} // namespace tressel::codegen
