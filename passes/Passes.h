// The passes, one by one. Pipeline.h runs them in order.
#pragma once

#include "passes/cluster/KernelProvider.h"

#include "ir/sched/Sched.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "tressel/runtime/Decision.h"
#include "tressel/runtime/MemoryBudget.h"
#include "tressel/runtime/Schedule.h"

#include <functional>
#include <vector>

namespace tressel::runtime {
struct MachineModel;
}

namespace tressel::passes {

/// Providers in order of preference: of equal bids the first wins. They outlive the passes.
using Providers = std::vector<const KernelProvider *>;

/// The decisions of passes and their reasons, for `explain` (null: they are not recorded). It outlives the passes.
using runtime::Decisions;

std::unique_ptr<mlir::Pass> createDecomposeComposites(Providers providers);
std::unique_ptr<mlir::Pass> createAssignLayouts(Providers providers);
// `hostProviders`: as PipelineOptions::hostProviders.
std::unique_ptr<mlir::Pass> createFormClusters(Providers providers, Decisions *decisions = nullptr,
                                               const runtime::MachineModel *machine = nullptr, Providers hostProviders = {});

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

// A machine (null: this host alone) outlives the passes.
// `devices`: the machine's devices that compute; empty: all.
std::unique_ptr<mlir::Pass> createResolveDevices(const runtime::MachineModel *machine,
                                                 std::vector<runtime::DeviceRef> devices = {});
// `devices`: as above; the accelerators among them are the ranks.
std::unique_ptr<mlir::Pass> createShard(const runtime::MachineModel *machine,
                                        std::vector<runtime::DeviceRef> devices = {}, Decisions *decisions = nullptr);
std::unique_ptr<mlir::Pass> createLowerCollectives(const LowerCollectivesOptions &options,
                                                   const runtime::MachineModel *machine = nullptr,
                                                   std::vector<runtime::DeviceRef> devices = {},
                                                   Decisions *decisions = nullptr);
// `onlyUneven`: expands only programs whose ranks differ in sizes and not just in values.
std::unique_ptr<mlir::Pass> createExpandRanks(const runtime::MachineModel *machine,
                                              std::vector<runtime::DeviceRef> devices = {}, bool onlyUneven = false);
std::unique_ptr<mlir::Pass> createPlaceClusters(Providers providers, const runtime::MachineModel *machine,
                                                Decisions *decisions = nullptr,
                                                std::vector<runtime::DeviceRef> devices = {});
/// On the module, from fit-budget to plan-memory: the bytes that buffers of the host may take at once.
inline constexpr llvm::StringLiteral kMemoryBudgetAttr = "tressel.memory_budget";
/// On a tressel.kernel, from settle-kernels on: its operands and results begin at multiples of 64 bytes in every
/// launch. BuildSchedule copies those that do not.
inline constexpr llvm::StringLiteral kAlignedAttr = "tressel.aligned";
std::unique_ptr<mlir::Pass> createSettleKernels(Providers hostProviders);
std::unique_ptr<mlir::Pass> createInsertTransfers(const runtime::MachineModel *machine);
std::unique_ptr<mlir::Pass> createStageCopies(const runtime::MachineModel *machine, Decisions *decisions = nullptr);
std::unique_ptr<mlir::Pass> createFitMemory(const runtime::MachineModel *machine, Decisions *decisions = nullptr);
std::unique_ptr<mlir::Pass> createFitBudget(MemoryBudget budget, const runtime::MachineModel *machine,
                                            Decisions *decisions = nullptr);
std::unique_ptr<mlir::Pass> createSplitProducers(Providers providers, const runtime::MachineModel *machine,
                                                 Decisions *decisions = nullptr,
                                                 std::optional<int64_t> maxTrials = {});
std::unique_ptr<mlir::Pass> createBuildSchedule(const BuildScheduleOptions &options, const runtime::MachineModel *machine,
                                                Decisions *decisions = nullptr);
std::unique_ptr<mlir::Pass> createPlanMemory(const PlanMemoryOptions &options, const runtime::MachineModel *machine);

} // namespace tressel::passes
