// Gradients of programs with control flow: reverse rules of the ops with bodies, and of blocks of ops.
//
// A loop is differentiated by a scan that runs backward and needs the values that the body computed in each iteration.
// So a loop to be differentiated yields all of them, stacked (exposeResiduals); simplification drops those that no
// gradient reads. For a branch, the body that was taken is executed again.
#pragma once

#include "ir/graph/Control.h"
#include "ir/op/Gradient.h"

namespace tressel::graph {

/// Makes a scan also yield, stacked, the values that its body computes, nested bodies included. A while with a bound
/// becomes such a scan, which does nothing once the condition fails. Returns the op that replaces `op`; its first
/// results are those of `op`.
ControlOpInterface exposeResiduals(ControlOpInterface op);

/// What a gradient needs beside the program.
class GradientContext {
public:
  virtual ~GradientContext() = default;
  /// The reverse rule of an op that an application defines: builds at `b` the cotangents of its operands from those of
  /// its results (null for zero). nullopt if there is none.
  virtual std::optional<llvm::SmallVector<mlir::Value>> pullBack(mlir::OpBuilder &, mlir::Operation *, llvm::ArrayRef<mlir::Value>) {
    return std::nullopt;
  }
  /// Whether the gradient will be differentiated again, so that its residuals must be exposed as well.
  virtual bool again() const { return false; }
};

/// Builds, at `b`, the cotangents of an op's operands from those of its results: null where one is zero or not wanted.
/// The residuals of `op` must be exposed. Throws op::expr::NoGradient.
llvm::SmallVector<mlir::Value> pullBack(mlir::OpBuilder &b, ControlOpInterface op, llvm::ArrayRef<mlir::Value> cotangents,
                                        llvm::ArrayRef<uint8_t> wanted, GradientContext &context);

/// Builds, at `b`, the cotangents of `inputs` from those of `results` (null for zero); both are values of `block`. Null
/// where one is zero. The residuals of the block's ops must be exposed. Throws op::expr::NoGradient.
llvm::SmallVector<mlir::Value> gradientsOf(mlir::OpBuilder &b, mlir::Block &block, llvm::ArrayRef<mlir::Value> results,
                                           llvm::ArrayRef<mlir::Value> cotangents, llvm::ArrayRef<mlir::Value> inputs,
                                           GradientContext &context);

} // namespace tressel::graph
