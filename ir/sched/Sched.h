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

/// On a command of a step over several devices, between build-schedule and plan-memory: predicted begin and end,
/// array<i64: begin, end>, in picoseconds.
inline constexpr llvm::StringLiteral kPlannedAttr = "sched.planned";
/// On a derived state of the host: it lies in pinned memory, since each call copies it to accelerators.
inline constexpr llvm::StringLiteral kPinnedStateAttr = "sched.pinned";

/// The declaration at the end of a chain of views, and the offset of the view in it, in bytes.
struct BufferRange {
  mlir::Operation *base = nullptr; ///< input, output, state, constant or buffer op
  Size offset, bytes;
};
BufferRange rangeOf(mlir::Value buffer);
/// The buffers that a command reads or writes, its bodies included. For accesses through a buffer that its loop moves,
/// the base of that buffer.
llvm::SmallVector<mlir::Value> readsOf(CommandOpInterface command);
llvm::SmallVector<mlir::Value> writesOf(CommandOpInterface command);

/// The tensor type of a buffer.
mlir::RankedTensorType typeOf(mlir::Value buffer);
/// Bytes of a dense tensor in Tressel's layout (a bool takes one byte); may be symbolic (Dim.h).
Size bytesOf(mlir::RankedTensorType type);

} // namespace tressel::sched
