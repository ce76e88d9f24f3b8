// Words at random about where the ops of a program are computed.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace tressel::test {

/// Says of some ops of @main, and of some of its branches and loops, that the host or one of so many accelerators
/// computes them, and moves some values. What only the host can do stays as it is.
void placeAtRandom(mlir::ModuleOp module, uint64_t seed, unsigned numAccelerators);

} // namespace tressel::test
