// Extracts parts of a program as programs, and shrinks programs that show a fault.
#pragma once

#include "ir/op/OpInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <functional>
#include <vector>

namespace tressel::passes {

struct ExtractedProgram {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< one func.func @main
  llvm::SmallVector<mlir::Value> inputs;    ///< values of the original program, by argument
  llvm::SmallVector<mlir::Value> results;   ///< values of the original program, by result
};
/// A program of these ops, which stand in one block in this order. Its inputs are the values that the ops use from
/// outside, but constants are copied; its results are those used outside, and those without a use.
ExtractedProgram extractProgram(llvm::ArrayRef<mlir::Operation *> ops);

/// Recomputes the function's type after its body changed, and names arguments and results (x0, x1, ..., y0, y1, ...).
void setSignature(mlir::func::FuncOp function);

/// A program with one set of input values.
struct Example {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<op::HostTensor> inputs;
};
/// Whether the program still shows the fault. The module is a copy and may be consumed.
using StillFails = std::function<bool(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs)>;
/// Drops outputs, replaces branches and loops by their bodies, replaces ops by inputs that hold what the interpreter
/// computes for them, and drops unused ops, as long as `stillFails` returns true. Returns the smallest program found.
Example shrinkProgram(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs, const StillFails &stillFails);

} // namespace tressel::passes
