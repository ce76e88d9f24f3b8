// Orders a step over several devices by list scheduling, with times predicted from the machine model.
#pragma once

#include "passes/place/MachineCosts.h"
#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/PipelineOrder.h"

namespace tressel::passes {

struct Planned {
  mlir::Operation *op = nullptr;
  unsigned device = 0; ///< of MachineCosts::devices
  runtime::StreamKind stream = runtime::StreamKind::Compute; ///< of that device
  unsigned engine = 0;                                       ///< the engine that executes it: MachineCosts::engine
  double begin = 0, end = 0; ///< seconds from the begin of the step
};

/// How long a shorter plan is searched for: Quick for trials of one change after another, Thorough for the plan that is
/// kept.
enum class Effort : uint8_t { Quick, Thorough };

/// Returns the ops of `step` (given in a topological order) in the order in which they begin: whenever an engine is
/// free, it takes the ready op of highest priority. Several priorities are tried, and the shortest plan is kept: the
/// longest path to the end; the given order; the end of each op in a plan made backward, iterated while that helps;
/// with `Thorough` also random variations, the same on every call. Transfers share links as in Simulate.h. `isPageable`
/// tells which values of the host are not in pinned memory; `held` is the bytes that are resident on each device. An op
/// begins only when its results fit into the memory of its device, unless nothing is in flight that would free some.
/// `how`, if given, receives what was tried and the results.
///
/// With `pipeline`, an accelerator takes the micro-batches (ir/graph/Stage.h) in that order, or in any order where they
/// depend on one another.
std::vector<Planned> listSchedule(llvm::ArrayRef<mlir::Operation *> step, MachineCosts &costs,
                                  llvm::function_ref<bool(mlir::Value)> isPageable, llvm::ArrayRef<int64_t> held,
                                  Effort effort = Effort::Quick, std::string *how = nullptr,
                                  std::optional<PipelineOrder> pipeline = std::nullopt);
/// The order that @main asks for (graph::kMicroBatchOrderAttr), else the first one to try; nothing without
/// micro-batches.
std::optional<PipelineOrder> firstPipelineOrder(mlir::func::FuncOp main);

/// Plans a step whose order is settled: each engine takes its ops in the order given.
std::vector<Planned> scheduleInOrder(llvm::ArrayRef<mlir::Operation *> step, MachineCosts &costs,
                                     llvm::function_ref<bool(mlir::Value)> isPageable);
/// Plans the step of a placed program with its transfers, by one of the functions above. Micro-batches: with `Thorough`
/// in the order that @main asks for, or in the best one; of two whose times differ by at most one percent, in the one
/// that keeps less memory.
std::vector<Planned> planStep(mlir::func::FuncOp main, const IssueOrder &order, MachineCosts &costs, Effort effort,
                              std::string *how = nullptr);
/// Predicted time at which the last op ends.
double lengthOf(llvm::ArrayRef<Planned> plan);

/// The device and the kind of stream that run an op. A collective: the communication stream. A transfer: the
/// accelerator where the other end is the host; the source where both are accelerators; the compute stream within one
/// memory.
std::pair<unsigned, runtime::StreamKind> streamOf(mlir::Operation *work, const MachineCosts &costs);
/// Whether a value of the host lies in the caller's memory, which may not be pinned.
bool isPageable(mlir::func::FuncOp main, mlir::Value value);
/// Whether the value is computed in the bytes of a join of rows.
bool isPartOfJoin(mlir::Value value);
/// The device that runs an op of a placed program; for a transfer, its destination.
unsigned deviceIndexOf(mlir::Operation *work, const MachineCosts &costs);
/// The device whose memory has a value: that of the op that makes it, and the host for arguments and constants.
unsigned homeIndexOf(mlir::Value base, const MachineCosts &costs);

} // namespace tressel::passes
