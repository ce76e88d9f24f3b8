// What a kernel reads more than once.
#pragma once

#include "mlir/IR/Block.h"

namespace tressel::passes {

/// Bytes of a kernel's arguments that it reads again, after their first time: what follows from a reduction needs the
/// reduced elements once more, and rows of more bytes than a compute unit keeps come from memory again. A variance of such
/// rows reads them twice, and what is normalized by it a third time.
int64_t bytesReadAgain(mlir::Block &body);

} // namespace tressel::passes
