// Parts of a program whose values are made again for its gradient instead of being kept: what autograd::checkpoint()
// marks.
#pragma once

#include "mlir/IR/Operation.h"

namespace tressel::graph {

/// On an op: the number of its part, from 1 on. What the op makes is dropped once the part has read it, and made again
/// for later readers.
inline constexpr llvm::StringLiteral kSegmentAttr = "tressel.segment";
/// On an op of a part, with it: what it makes is a result of the part, and is kept.
inline constexpr llvm::StringLiteral kKeptAttr = "tressel.kept";
/// On a cluster and its launch: the parts that its ops belong to; and per result the part that drops it, or 0.
inline constexpr llvm::StringLiteral kSegmentsAttr = "tressel.segments", kDroppedAttr = "tressel.dropped";

/// The part of an op, or 0.
int64_t segmentOf(mlir::Operation *op);
void setSegment(mlir::Operation *op, int64_t segment);
void removeSegment(mlir::Operation *op);
/// The part that drops what an op makes, or 0.
int64_t droppedBy(mlir::Operation *op);

/// Says of a cluster what its ops say; `results` are what they make of its results.
void setSegments(mlir::Operation *cluster, llvm::ArrayRef<mlir::Operation *> ops, llvm::ArrayRef<mlir::Value> results);
/// The parts that a launch, or an op with bodies, belongs to; and by result the part that drops it, or 0.
llvm::SmallVector<int64_t> segmentsOf(mlir::Operation *work);
llvm::SmallVector<int64_t> droppedOf(mlir::Operation *work);

} // namespace tressel::graph
