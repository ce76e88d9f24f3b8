// C++ classes of the ops with bodies (cond, while, scan), and what is done with all of them alike.
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

/// Adds an invariant; the argument that stands for it in each body is the last.
void addInvariant(ControlOpInterface op, mlir::Value value);

/// Values from outside that the regions of `op` use become invariants, each once.
void captureInvariants(ControlOpInterface op);

/// The type of one slice along the first dimension, and of so many stacked.
mlir::RankedTensorType sliceType(mlir::Type stacked);
mlir::RankedTensorType stackedType(mlir::Type slice, Size count);

/// Simplifications that hold for all of them: a body that is known to run, or not to, takes the op's place; constants
/// move into bodies; values that do not change become invariants; what is not used goes. True if something changed;
/// `op` may be gone, and its results replaced.
bool simplifyControl(ControlOpInterface op);
/// Moves what needs only invariants out of bodies that repeat, if `wanted` says so. True if something moved.
bool hoistInvariants(ControlOpInterface op, llvm::function_ref<bool(mlir::Operation *)> wanted);

} // namespace tressel::graph
