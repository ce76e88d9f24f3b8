// Makes a failing program small enough to read.
#pragma once

#include "test/support/RandomGraph.h"

#include <functional>

namespace tressel::test {

/// Whether the program still shows the fault. The module may be consumed: it is a copy.
using StillFails = std::function<bool(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs)>;

/// Drops outputs, replaces ops by inputs that hold what the interpreter computes for them, and drops what is then unused, as
/// long as `stillFails` says yes. Returns the smallest program found, with its inputs.
RandomGraph shrinkGraph(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs, const StillFails &stillFails);

/// Ops of the table in the module.
int countOps(mlir::ModuleOp module);

} // namespace tressel::test
