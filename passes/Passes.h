// The passes, one by one. Pipeline.h runs them in order.
#pragma once

#include "passes/KernelProvider.h"

#include "ir/sched/Sched.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "tressel/runtime/Decision.h"

namespace tressel::passes {

/// Providers in order of preference: of equal bids the first wins. They outlive the passes.
using Providers = std::vector<const KernelProvider *>;

/// What passes chose, and why, for those who ask (null: nobody). It outlives the passes.
using runtime::Decisions;

std::unique_ptr<mlir::Pass> createDecomposeComposites(Providers providers);
std::unique_ptr<mlir::Pass> createAssignLayouts(Providers providers);
std::unique_ptr<mlir::Pass> createFormClusters(Providers providers, Decisions *decisions = nullptr);

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

/// Makes every pass known by its flag, for tressel-opt.
void registerPasses(Providers providers);

} // namespace tressel::passes
