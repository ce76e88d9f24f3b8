// Which stage of a pipeline computes an op without an annotation.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace tressel::passes {

/// Gives ops without one a stage (ir/graph/Stage.h): that of all that read them, if these agree; else the last one
/// among those of their operands. What updates a state that lies on an accelerator counts as read by the stage that
/// reads the state. Where neither is known, an op has none: it is computed wherever it is read. Ops are on the way back
/// if an operand is.
///
/// An annotation that is no number from 0 on, and one of an op inside of a body, are errors at its line; so is a row of
/// several accelerators where no op has one. `named` becomes the ops that had a stage before, and those that one stage
/// alone reads: its accelerator computes them.
llvm::LogicalResult assignStages(mlir::func::FuncOp main, llvm::DenseSet<mlir::Operation *> &named);
/// Of each argument that is a state, by its number, the stage of all that reads it, once ops have one; nothing where
/// they differ.
llvm::DenseMap<unsigned, int64_t> stagesOfStates(mlir::func::FuncOp main);
/// Forgets all stages: of a program without a pipeline.
void forgetStages(mlir::func::FuncOp main);

} // namespace tressel::passes
