// Segments: parts of a program whose values are rematerialized for the gradient instead of being kept, as
// autograd::checkpoint() marks them.
#pragma once

#include "mlir/IR/Operation.h"

namespace tressel::graph {

/// On an op: the number of its segment, from 1 on. Its results are dropped once the segment has read them, and
/// rematerialized for later readers.
inline constexpr llvm::StringLiteral kSegmentAttr = "tressel.segment";
/// On an op of a segment, in addition: its results are results of the segment, and are kept.
inline constexpr llvm::StringLiteral kKeptAttr = "tressel.kept";
/// On a cluster and its launch: the segments of its ops; and for each result the segment that drops it, or 0.
inline constexpr llvm::StringLiteral kSegmentsAttr = "tressel.segments", kDroppedAttr = "tressel.dropped";

/// The segment of an op, or 0.
int64_t segmentOf(mlir::Operation *op);
void setSegment(mlir::Operation *op, int64_t segment);
void removeSegment(mlir::Operation *op);
/// The segment that drops an op's results, or 0.
int64_t droppedBy(mlir::Operation *op);

/// Sets a cluster's segments from those of its ops; `results` are the values of its results.
void setSegments(mlir::Operation *cluster, llvm::ArrayRef<mlir::Operation *> ops, llvm::ArrayRef<mlir::Value> results);
/// The segments of a launch, or of an op with bodies; and for each result the segment that drops it, or 0.
llvm::SmallVector<int64_t> segmentsOf(mlir::Operation *work);
llvm::SmallVector<int64_t> droppedOf(mlir::Operation *work);

} // namespace tressel::graph
