// Stages of a pipeline: parts of a program that different accelerators compute for one micro-batch after the other
// (Mesh.h, kPipelineAttr).
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace tressel::graph {

/// On an op: its stage, from 0 on. Accelerator k modulo the length of the row computes stage k.
inline constexpr llvm::StringLiteral kStageAttr = "tressel.stage";
/// On an op of a stage: it is on the way back, which computes gradients.
inline constexpr llvm::StringLiteral kBackwardAttr = "tressel.backward";
/// On an op, once ranks are expanded: its only micro-batch.
inline constexpr llvm::StringLiteral kMicroBatchAttr = "tressel.micro_batch";

/// Nothing if the op has no stage, or an annotation that is no number from 0 on.
std::optional<int64_t> stageOf(mlir::Operation *op);
std::optional<int64_t> microBatchOf(mlir::Operation *op);
void setStage(mlir::Operation *op, int64_t stage, bool isBackward);
void setMicroBatch(mlir::Operation *op, int64_t number);
inline bool isBackward(mlir::Operation *op) { return op->hasAttr(kBackwardAttr); }
/// Gives `made` the stage of `op`.
void copyStage(mlir::Operation *op, mlir::Operation *made);
/// Removes the op's stage.
void takeStage(mlir::Operation *op);

/// Device, stage, direction and micro-batch of an op, as far as they are set: ops of one kernel have these in common.
/// Null if none is set.
mlir::DictionaryAttr placeOf(mlir::Operation *op);
void setPlace(mlir::Operation *op, mlir::DictionaryAttr place);
/// Removes these attributes, and returns them.
mlir::DictionaryAttr takePlace(mlir::Operation *op);

} // namespace tressel::graph
