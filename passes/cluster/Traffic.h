// Bytes that a kernel reads more than once.
#pragma once

#include "mlir/IR/Block.h"

namespace tressel::passes {

/// Bytes of a kernel's arguments that it reads again after the first time. Ops that depend on a reduction read the
/// reduced elements again, and rows larger than a compute unit's cache come from memory each time: a variance of such
/// rows reads them twice, and a normalization by it a third time.
int64_t bytesReadAgain(mlir::Block &body);

} // namespace tressel::passes
