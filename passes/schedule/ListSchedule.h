// The order of a step over several devices: list scheduling in the time that the machine's model predicts.
#pragma once

#include "passes/place/MachineCosts.h"
#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/PipelineOrder.h"

namespace tressel::passes {

struct Planned {
  mlir::Operation *op = nullptr;
  unsigned device = 0; ///< of MachineCosts::devices
  runtime::StreamKind stream = runtime::StreamKind::Compute; ///< of that device
  unsigned engine = 0;                                       ///< that works on it: MachineCosts::engine
  double begin = 0, end = 0; ///< seconds from the begin of the step
};

/// How much is done for a shorter plan: trials of one change after another, or the plan that is kept.
enum class Effort : uint8_t { Quick, Thorough };

/// The ops of `step` (in an order in which each stands after what it reads) in the order in which they begin: whenever
/// an engine is free it takes the most urgent op of what is ready. How urgent ops are is tried in several ways, and the
/// shortest plan is kept: by the longest way to the end; as given; by when they ended in a plan from the end to the
/// begin, again and again as long as that helps; with `Thorough` also somewhat at random, the same on every call.
/// Transfers share links as in Simulate.h. `isPageable` tells which values of the host are not in pinned memory; `held`
/// is what lies in a device's memory all the time, in bytes. An op begins only when its results fit into the memory of
/// its device, unless nothing else is left to wait for. `how`, if given, becomes what was tried and what came of it.
///
/// With `pipeline`, an accelerator takes the micro-batches (ir/graph/Stage.h) in that order; in any where they wait for
/// one another.
std::vector<Planned> listSchedule(llvm::ArrayRef<mlir::Operation *> step, MachineCosts &costs,
                                  llvm::function_ref<bool(mlir::Value)> isPageable, llvm::ArrayRef<int64_t> held,
                                  Effort effort = Effort::Quick, std::string *how = nullptr,
                                  std::optional<PipelineOrder> pipeline = std::nullopt);
/// The order that @main asks for (graph::kMicroBatchOrderAttr), or the first that is to be tried; nothing without
/// micro-batches.
std::optional<PipelineOrder> firstPipelineOrder(mlir::func::FuncOp main);

/// The same for an order that is settled, in that order: each engine takes its ops as they come.
std::vector<Planned> scheduleInOrder(llvm::ArrayRef<mlir::Operation *> step, MachineCosts &costs,
                                     llvm::function_ref<bool(mlir::Value)> isPageable);
/// One of these, for a placed program with its transfers. Micro-batches: with `Thorough` in the order that @main asks
/// for, or in the best one; of two that take as long within a hundredth, in the one that keeps less memory.
std::vector<Planned> planStep(mlir::func::FuncOp main, const IssueOrder &order, MachineCosts &costs, Effort effort,
                              std::string *how = nullptr);
/// When the last op ends.
double lengthOf(llvm::ArrayRef<Planned> plan);

/// The device that runs an op, and the kind of its stream: of a collective, that which communicates; of a transfer, the
/// accelerator at the end that is not the host, and between two the one that it comes from; within one memory, the
/// stream that computes.
std::pair<unsigned, runtime::StreamKind> streamOf(mlir::Operation *work, const MachineCosts &costs);
/// Whether a value of the host lies in the caller's memory, which is not promised to be pinned.
bool isPageable(mlir::func::FuncOp main, mlir::Value value);
/// Whether the value's bytes are some of those of a join of rows.
bool isPartOfJoin(mlir::Value value);
/// Where an op of a placed program is computed; of a transfer, where it leads to.
unsigned deviceIndexOf(mlir::Operation *work, const MachineCosts &costs);
/// Where the bytes of a value lie: that of the op that makes it, and the host for arguments and constants.
unsigned homeIndexOf(mlir::Value base, const MachineCosts &costs);

} // namespace tressel::passes
