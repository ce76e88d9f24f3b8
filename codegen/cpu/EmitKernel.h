// A loop plan as a function in LLVM IR with the kernel signature (runtime/Kernel.h).
#pragma once

#include "codegen/cpu/LoopSchedule.h"
#include "codegen/loops/KernelSignature.h"
#include "codegen/loops/LoopPlan.h"

#include "llvm/IR/Module.h"

namespace tressel::codegen {

/// Adds the function to `module`. It returns a runtime::KernelStatus.
llvm::Function *emitKernel(llvm::Module &module, const LoopPlan &plan, const LoopSchedule &schedule,
                           const CpuFeatures &features, const KernelSignature &signature);

} // namespace tressel::codegen
