// Stages: parts of a program that different accelerators of a pipeline compute, one micro-batch behind the other
// (Mesh.h, kPipelineAttr).
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace tressel::graph {

/// On an op: its stage, from 0 on. Stage k is computed by accelerator k of those in a row, counted around.
inline constexpr llvm::StringLiteral kStageAttr = "tressel.stage";
/// On an op of a stage: it is part of the way back, which computes gradients.
inline constexpr llvm::StringLiteral kBackwardAttr = "tressel.backward";
/// On an op, once ranks are expanded: the one micro-batch that it is part of.
inline constexpr llvm::StringLiteral kMicroBatchAttr = "tressel.micro_batch";

/// Nothing for what is part of none, or says so with what is no number from 0 on.
std::optional<int64_t> stageOf(mlir::Operation *op);
std::optional<int64_t> microBatchOf(mlir::Operation *op);
void setStage(mlir::Operation *op, int64_t stage, bool isBackward);
void setMicroBatch(mlir::Operation *op, int64_t number);
inline bool isBackward(mlir::Operation *op) { return op->hasAttr(kBackwardAttr); }
/// `made` belongs to the stage of `op`.
void copyStage(mlir::Operation *op, mlir::Operation *made);
/// The op belongs to none from now on.
void takeStage(mlir::Operation *op);

/// Where and when an op is computed, as far as it says: its device, stage, direction and micro-batch. Ops of one kernel
/// have these in common. Null where it says nothing.
mlir::DictionaryAttr placeOf(mlir::Operation *op);
void setPlace(mlir::Operation *op, mlir::DictionaryAttr place);
/// Says nothing from now on; what it said.
mlir::DictionaryAttr takePlace(mlir::Operation *op);

} // namespace tressel::graph
