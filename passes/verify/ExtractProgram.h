// Parts of a program as programs of their own, and programs made small: what checks and bug hunts work on.
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
  llvm::SmallVector<mlir::Value> inputs;    ///< of the old program, by argument
  llvm::SmallVector<mlir::Value> results;   ///< likewise
};
/// A program with these ops, which stand in one block in this order. Its inputs are the values that they take from
/// elsewhere, but constants are copied; its results are the values used elsewhere, and those used nowhere.
ExtractedProgram extractProgram(llvm::ArrayRef<mlir::Operation *> ops);

/// After a change of its body: the function's type anew, and names for arguments and results (x0, x1, ..., y0, y1, ...).
void setSignature(mlir::func::FuncOp function);

/// A program with values for its arguments.
struct Example {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<op::HostTensor> inputs;
};
/// Whether the program still shows the fault. The module may be consumed: it is a copy.
using StillFails = std::function<bool(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs)>;
/// Drops outputs, puts bodies in place of branches and loops, replaces ops by inputs that hold what the interpreter computes
/// for them, and drops what is then unused, as long as `stillFails` says yes. Returns the smallest program found.
Example shrinkProgram(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs, const StillFails &stillFails);

} // namespace tressel::passes
