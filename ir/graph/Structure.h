// C++ classes of the structural ops (cluster, yield, pack, kernel, launch).
#pragma once

#include "ir/graph/Attributes.h"
#include "ir/graph/Control.h"
#include "tressel/runtime/FloatMode.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tressel/runtime/Schedule.h"

#define GET_OP_CLASSES
#include "ir/graph/Structure.h.inc"

namespace tressel::graph {

/// Called by the dialect's initialize().
void registerStructureOps(mlir::Dialect &dialect);

/// "matmul, add, relu": the table's names of the ops in a kernel's or cluster's body; the provider's name without one.
std::string describeBody(mlir::Region &body, llvm::StringRef provider);

/// A hash of a kernel's body, provider, parameters and types, in 16 letters: equal for equal kernels of all programs
/// and processes, independent of their names and of how their range is divided into tasks.
std::string keyOf(KernelOp kernel);

/// On clusters and kernels: predicted costs on a host (runtime::KernelDesc::costs), as seconds by kind.
inline constexpr llvm::StringLiteral kCostsAttr = "tressel.costs";
/// Adds up costs of one kind. Without costs, removes the attribute.
void setCosts(mlir::Operation *op, llvm::ArrayRef<runtime::KernelCost> costs);
std::vector<runtime::KernelCost> costsOf(mlir::Operation *op);
/// On clusters and kernels: runtime::KernelDesc::runnerUp. An empty kind removes the attribute.
inline constexpr llvm::StringLiteral kRunnerUpAttr = "tressel.runner_up";
void setRunnerUp(mlir::Operation *op, const runtime::KernelCost &runnerUp);
runtime::KernelCost runnerUpOf(mlir::Operation *op);

/// Whether generated code reads elements in another order than it writes them, as a transpose or gather does.
bool movesElements(KernelOp kernel);

/// On a module: f32 arithmetic keeps subnormal numbers (docs/numbers.md).
inline constexpr llvm::StringLiteral kKeepSubnormalsAttr = "tressel.keep_subnormals";
/// Whether the module that contains `op` has the attribute.
bool keepsSubnormals(mlir::Operation *op);

/// On a module: results do not depend on which ops are fused (docs/numbers.md).
inline constexpr llvm::StringLiteral kDeterministicAttr = "tressel.deterministic";
/// Whether the module that contains `op` has the attribute.
bool isDeterministic(mlir::Operation *op);

/// The floating-point mode in which a kernel of a provider runs; with an epilogue, that of the root alone. The mode of
/// generated code follows from the code itself.
runtime::FloatMode floatModeOf(KernelOp kernel);

} // namespace tressel::graph
