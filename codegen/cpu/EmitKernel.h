// A loop plan as a function in LLVM IR with the kernel signature (runtime/Kernel.h).
#pragma once

#include "codegen/cpu/LoopSchedule.h"
#include "codegen/loops/KernelSignature.h"
#include "codegen/loops/LoopPlan.h"

#include "llvm/IR/Module.h"

#include <string>
#include <vector>

namespace tressel::codegen {

/// Adds the function to `module`. It returns a runtime::KernelStatus.
llvm::Function *emitKernel(llvm::Module &module, const LoopPlan &plan, const LoopSchedule &schedule,
                           const CpuFeatures &features, const KernelSignature &signature);

/// One of the nests of a kernel of several (KernelParts.h), of known sizes.
struct ScheduledPart {
  LoopPlan plan;
  LoopSchedule schedule;
  std::vector<int32_t> operands; ///< KernelSignature::operands
  /// Units of the kernel that are this nest: each is as many units of the nest as are worth a thread's while.
  int64_t units() const { return (schedule.range.number() + schedule.grain - 1) / schedule.grain; }
};
/// The function that the signature names, whose units are those of the parts, one part behind the other. All are given
/// the signature's sizes.
llvm::Function *emitParts(llvm::Module &module, const std::vector<ScheduledPart> &parts, const CpuFeatures &features,
                          const KernelSignature &signature);

} // namespace tressel::codegen
