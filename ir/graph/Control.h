// C++ classes of the ops with bodies (cond, while, scan), and operations that work on all of them.
#pragma once

#include "ir/graph/Attributes.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/graph/ControlInterfaces.h.inc"

#define GET_OP_CLASSES
#include "ir/graph/Control.h.inc"

namespace tressel::graph {

/// Called by the dialect's initialize().
void registerControlOps(mlir::Dialect &dialect);

/// Calls fn with `block` and with the blocks of all bodies in it, inner ones first.
void forEachBody(mlir::Block &block, llvm::function_ref<void(mlir::Block &)> fn);

/// Adds an invariant, with a new last argument in each body.
void addInvariant(ControlOpInterface op, mlir::Value value);

/// Makes values from outside that the regions of `op` use invariants, each once.
void captureInvariants(ControlOpInterface op);

/// The type of one slice along the first dimension; and of slices stacked along a new one.
mlir::RankedTensorType sliceType(mlir::Type stacked);
mlir::RankedTensorType stackedType(mlir::Type slice, Size count);

/// Simplifications for all ops with bodies: replaces the op where its condition or number of iterations is known; turns
/// a while with a known number of iterations into a scan; moves constants into bodies; makes unchanged carried values
/// invariants; drops unused values. Returns whether anything changed; `op` may be erased, and its results replaced.
bool simplifyControl(ControlOpInterface op);
/// Moves ops that depend on invariants alone out of bodies that repeat, if `wanted` accepts them. Returns whether any
/// moved.
bool hoistInvariants(ControlOpInterface op, llvm::function_ref<bool(mlir::Operation *)> wanted);

} // namespace tressel::graph
