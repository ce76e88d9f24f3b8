// A loop plan as a function in LLVM IR with the kernel signature (runtime/Kernel.h).
#pragma once

#include "codegen/cpu/LoopPlan.h"
#include "codegen/cpu/LoopSchedule.h"

#include "llvm/IR/Module.h"

#include <optional>

namespace tressel::codegen {

/// What the function reads and writes: buffers[operand i of the plan] is args->buffers[operands[i]].
struct KernelSignature {
  std::string symbol;
  std::vector<int32_t> operands; ///< empty: operand i is buffer i
  std::optional<UnitRows> rows;  ///< an epilogue: the library's units instead of the schedule's
  std::vector<int64_t> symbols;  ///< whose values are args->scalars, in this order
};

/// Adds the function to `module`. It returns a runtime::KernelStatus.
llvm::Function *emitKernel(llvm::Module &module, const LoopPlan &plan, const LoopSchedule &schedule,
                           const CpuFeatures &features, const KernelSignature &signature);

} // namespace tressel::codegen
