// The sched dialect's C++ classes. README.md shows how a schedule reads; Export.h lowers it to the flat form.
#pragma once

#include "ir/graph/Attributes.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tressel::sched {
class PrepareOp;
class StepOp;
namespace detail {
mlir::LogicalResult verifyCommand(mlir::Operation *op);
mlir::LogicalResult verifyBuffer(mlir::Operation *op);
} // namespace detail
} // namespace tressel::sched

#include "ir/sched/SchedDialect.h.inc"
#include "ir/sched/SchedEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/sched/SchedAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/sched/SchedTypes.h.inc"

#include "ir/sched/SchedInterfaces.h.inc"

#define GET_OP_CLASSES
#include "ir/sched/SchedOps.h.inc"

namespace tressel::sched {

void registerDialect(mlir::DialectRegistry &registry);

/// On a command of a step over several devices, while it is compiled: array<i64: begin, end>, in picoseconds, as the
/// machine's model predicts.
inline constexpr llvm::StringLiteral kPlannedAttr = "sched.planned";
/// On a derived state of the host: it lies in pinned memory, as it is copied to accelerators in each call.
inline constexpr llvm::StringLiteral kPinnedStateAttr = "sched.pinned";

/// The declaration that a chain of views ends in, and the bytes between its start and the buffer's.
struct BufferRange {
  mlir::Operation *base = nullptr; ///< input, output, state, constant or buffer op
  Size offset, bytes;
};
BufferRange rangeOf(mlir::Value buffer);
/// What a command reads or writes, its bodies included. Of what they touch through a moving buffer, the buffer that it
/// is a view of, as it is met by those outside.
llvm::SmallVector<mlir::Value> readsOf(CommandOpInterface command);
llvm::SmallVector<mlir::Value> writesOf(CommandOpInterface command);

/// The type a buffer's bytes hold.
mlir::RankedTensorType typeOf(mlir::Value buffer);
/// Bytes of a dense tensor in Tressel's layout (bool one byte), a size in the sense of Dim.h.
Size bytesOf(mlir::RankedTensorType type);

} // namespace tressel::sched
