// Prepares reductions over values that are cut, once shardings are known.
#pragma once

#include "passes/Passes.h"
#include "passes/shard/Propagation.h"

namespace tressel::passes {

/// Handles the ops that @main still has as a whole because they follow from their parts (OpInfo::fromParts), such as a
/// mean with its variance. Where ranks have equal parts of what such an op reduces, each rank computes the op on its
/// part and only these results are exchanged: as separate ops, the variance would wait for the exchange of the mean.
/// All others are decomposed, and also those of ranks in processes of their own that combine sums in less time, by the
/// machine's figures. Returns whether any were changed, which makes `propagation` out of date. `propagation` is null
/// where nothing is cut.
bool reduceFromParts(mlir::func::FuncOp main, const graph::Mesh &mesh, Propagation *propagation,
                     const runtime::MachineModel *machine, llvm::ArrayRef<runtime::DeviceRef> devices,
                     Decisions *decisions);

/// Rewrites a mean over values that are cut as a sum of parts and a division.
void splitMeans(mlir::func::FuncOp main, Propagation &propagation);

} // namespace tressel::passes
