// The memory that one op needs, and the error for an op that needs more than a device has.
#pragma once

#include "mlir/IR/Operation.h"

namespace tressel::passes {

/// Bytes of a buffer of the type, as plan-memory places it; a typical size where it is symbolic.
int64_t slotBytesOf(mlir::Type type);
/// Bytes that an op's operands and results take at once. The only result of a launch takes none if it may be computed
/// in an operand's bytes.
int64_t footprintOf(mlir::Operation *work);

/// "the parameter 'w'", "the result of 'exp' (model.cpp:12)": how messages name a value of @main, or of a copy of it.
std::string spellValue(mlir::Value value);
/// "8192 for the parameter 'w', 4096 for ...": the largest few of `holders`, pairs of bytes and a name.
std::string spellHolders(llvm::ArrayRef<std::pair<int64_t, std::string>> holders);

/// Reports at `work` that it needs `bytes` of a device that has fewer, and lists what they are for.
llvm::LogicalResult refuse(mlir::Operation *work, int64_t bytes, llvm::StringRef device, int64_t memory,
                           const llvm::Twine &more = "");

} // namespace tressel::passes
