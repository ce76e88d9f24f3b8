// What generated loops take: what a nest does as it is scheduled, counted for the cost models of generated code.
#pragma once

#include "codegen/cpu/LoopSchedule.h"
#include "tressel/runtime/Cpu.h"
#include "tressel/runtime/Schedule.h"

#include <vector>

namespace tressel::codegen {

/// Of the whole nest on one thread (CostModel.h), in code for the level.
std::vector<runtime::KernelCost> costsOf(const LoopPlan &plan, const LoopSchedule &schedule, runtime::CpuLevel level);

/// Of the whole nest as it is scheduled, in additions that take as long: what stands outside of the vector loop counts
/// for a whole vector. At typical sizes, where sizes are symbolic.
int64_t flopsOf(const LoopPlan &plan, const LoopSchedule &schedule);

/// Instructions of one evaluation, roughly.
int instructionsOf(const Expr &e);

/// What a load or store of one vector of `lanes` along `dim` costs, in vector accesses.
double accessCost(const Affine &index, const LoopPlan &plan, int dim, int lanes);

inline uint64_t bit(int d) { return uint64_t(1) << d; }

} // namespace tressel::codegen
