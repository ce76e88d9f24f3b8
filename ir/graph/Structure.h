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

/// What a kernel computes and by whom, in 16 letters: the same for equal kernels of all programs and processes,
/// whatever they are called and however they are cut into tasks.
std::string keyOf(KernelOp kernel);

/// On clusters and kernels: what they are predicted to take on a host (runtime::KernelDesc::costs), as seconds by kind.
inline constexpr llvm::StringLiteral kCostsAttr = "tressel.costs";
/// Costs of one kind are added up. Without costs: removes the attribute.
void setCosts(mlir::Operation *op, llvm::ArrayRef<runtime::KernelCost> costs);
std::vector<runtime::KernelCost> costsOf(mlir::Operation *op);
/// On the same: runtime::KernelDesc::runnerUp. One with an empty kind removes the attribute.
inline constexpr llvm::StringLiteral kRunnerUpAttr = "tressel.runner_up";
void setRunnerUp(mlir::Operation *op, const runtime::KernelCost &runnerUp);
runtime::KernelCost runnerUpOf(mlir::Operation *op);

/// Whether generated code reads elements in another order than it writes them: a transpose, a gather.
bool movesElements(KernelOp kernel);

/// On a module: arithmetic on f32 keeps subnormal numbers (docs/numbers.md).
inline constexpr llvm::StringLiteral kKeepSubnormalsAttr = "tressel.keep_subnormals";
/// Whether the module that `op` is in has it.
bool keepsSubnormals(mlir::Operation *op);

/// On a module: results do not depend on what is fused with what (docs/numbers.md).
inline constexpr llvm::StringLiteral kDeterministicAttr = "tressel.deterministic";
/// Whether the module that `op` is in has it.
bool isDeterministic(mlir::Operation *op);

/// In which floating-point mode a kernel of a provider runs (that of a generated kernel follows from its code): the root
/// alone, where a generated epilogue follows.
runtime::FloatMode floatModeOf(KernelOp kernel);

} // namespace tressel::graph
