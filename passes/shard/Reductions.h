// Reductions over what ranks have parts of, as `shard` prepares them once it is known how values are cut.
#pragma once

#include "passes/Passes.h"
#include "passes/shard/Propagation.h"

namespace tressel::passes {

/// Ops that @main still has as a whole because they follow from their parts (OpInfo::fromParts). Where ranks have equal
/// parts of what one reduces, each computes the op of its part, and the ranks exchange only that: of a mean and a
/// variance as ops of their own the second would wait for the first one's exchange. All others are decomposed, and so
/// are those of ranks in processes of their own that combine sums in less time, by the machine's figures. Whether there
/// were any, so that `propagation` is out of date. `propagation` is null where nothing is cut.
bool reduceFromParts(mlir::func::FuncOp main, const graph::Mesh &mesh, Propagation *propagation,
                     const runtime::MachineModel *machine, llvm::ArrayRef<runtime::DeviceRef> devices,
                     Decisions *decisions);

/// A mean of parts becomes a sum of parts, divided afterwards.
void splitMeans(mlir::func::FuncOp main, Propagation &propagation);

} // namespace tressel::passes
