// Assigns pipeline stages to ops without an annotation.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace tressel::passes {

/// Gives each op without a stage (ir/graph/Stage.h) that of all its readers, if they agree, or else the last stage
/// among its operands. An op that updates a state on an accelerator counts as read by the stage that reads the state.
/// If neither is known, the op has no stage and is computed wherever it is read. An op is on the way back if one of its
/// operands is.
///
/// Reports an annotation that is negative or no number, an annotation inside of a body, and a row of several
/// accelerators without any annotated op. `named` becomes the set of ops that were annotated, and of those that a
/// single stage reads: that stage's accelerator computes them.
llvm::LogicalResult assignStages(mlir::func::FuncOp main, llvm::DenseSet<mlir::Operation *> &named);
/// For each argument that is a state, by number: the stage that reads it, once ops have stages; nothing where its
/// readers are of several.
llvm::DenseMap<unsigned, int64_t> stagesOfStates(mlir::func::FuncOp main);
/// Removes all stages from a program that runs without a pipeline.
void forgetStages(mlir::func::FuncOp main);

} // namespace tressel::passes
