// What one op needs of a memory, and the error for one that needs more than there is.
#pragma once

#include "mlir/IR/Operation.h"

namespace tressel::passes {

/// Bytes of a buffer of the type, as plan-memory places it; a typical size where it is symbolic.
int64_t slotBytesOf(mlir::Type type);
/// What a work op needs at once for what it reads and writes; its result takes an operand's bytes where that may be.
int64_t footprintOf(mlir::Operation *work);

/// "the parameter 'w'", "the result of 'exp' (model.cpp:12)": the user's words for a value of @main, or of a copy of
/// one.
std::string spellValue(mlir::Value value);
/// "8192 for the parameter 'w', 4096 for ...": the largest few, who hold so many bytes each.
std::string spellHolders(llvm::ArrayRef<std::pair<int64_t, std::string>> holders);

/// An error at `work`, which needs so many bytes of a device that has fewer, and names what they are for.
llvm::LogicalResult refuse(mlir::Operation *work, int64_t bytes, llvm::StringRef device, int64_t memory,
                           const llvm::Twine &more = "");

} // namespace tressel::passes
