#include "ir/graph/Segment.h"

#include "ir/graph/Structure.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace tressel::graph {

int64_t segmentOf(Operation *op) {
  auto segment = op->getAttrOfType<IntegerAttr>(kSegmentAttr);
  return segment ? segment.getInt() : 0;
}
void setSegment(Operation *op, int64_t segment) {
  op->setAttr(kSegmentAttr, IntegerAttr::get(IntegerType::get(op->getContext(), 64), segment));
}
void removeSegment(Operation *op) {
  op->removeAttr(kSegmentAttr);
  op->removeAttr(kKeptAttr);
}
int64_t droppedBy(Operation *op) { return op->hasAttr(kKeptAttr) ? 0 : segmentOf(op); }

void setSegments(Operation *cluster, ArrayRef<Operation *> ops, ArrayRef<Value> results) {
  SmallVector<int64_t> segments, dropped;
  for (Operation *op : ops)
    if (const int64_t segment = segmentOf(op); segment && !llvm::is_contained(segments, segment))
      segments.push_back(segment);
  if (segments.empty())
    return;
  for (Value result : results)
    dropped.push_back(droppedBy(result.getDefiningOp()));
  cluster->setAttr(kSegmentsAttr, DenseI64ArrayAttr::get(cluster->getContext(), segments));
  cluster->setAttr(kDroppedAttr, DenseI64ArrayAttr::get(cluster->getContext(), dropped));
}

SmallVector<int64_t> segmentsOf(Operation *work) {
  if (auto segments = work->getAttrOfType<DenseI64ArrayAttr>(kSegmentsAttr))
    return SmallVector<int64_t>(segments.asArrayRef());
  const int64_t segment = segmentOf(work);
  return segment ? SmallVector<int64_t>{segment} : SmallVector<int64_t>();
}
SmallVector<int64_t> droppedOf(Operation *work) {
  if (auto dropped = work->getAttrOfType<DenseI64ArrayAttr>(kDroppedAttr))
    return SmallVector<int64_t>(dropped.asArrayRef());
  return SmallVector<int64_t>(work->getNumResults(), droppedBy(work));
}

} // namespace tressel::graph
