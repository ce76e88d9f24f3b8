// Gradients of programs with control flow: reverse rules of the ops with bodies, and of blocks of ops.
//
// A loop is gone back over by a scan. What its body made in each iteration must be there then, so a loop that is to be
// differentiated yields all that it makes, stacked (exposeResiduals): simplification drops what no gradient reads. Of a
// branch, the body that was taken runs again.
#pragma once

#include "ir/graph/Control.h"
#include "ir/op/Gradient.h"

namespace tressel::graph {

/// Yields, stacked, what the body of a scan makes, bodies inside of it included; a while with a bound becomes such a
/// scan, which does nothing once the condition fails. Returns what is now in place of `op`, whose first results are those of `op`.
ControlOpInterface exposeResiduals(ControlOpInterface op);

/// What a gradient needs to know beside the program.
class GradientContext {
public:
  virtual ~GradientContext() = default;
  /// The reverse rule of an op that an application defines: the cotangents of its operands, null where zero, from those of its
  /// results (null where zero), built at `b`. nullopt where there is none.
  virtual std::optional<llvm::SmallVector<mlir::Value>> pullBack(mlir::OpBuilder &, mlir::Operation *, llvm::ArrayRef<mlir::Value>) {
    return std::nullopt;
  }
  /// What is built will itself be differentiated: its residuals are exposed as well.
  virtual bool again() const { return false; }
};

/// Builds, at `b`, the cotangents of an op's operands from those of its results: null where one is zero or not wanted.
/// The residuals of `op` are exposed. Throws op::expr::NoGradient.
llvm::SmallVector<mlir::Value> pullBack(mlir::OpBuilder &b, ControlOpInterface op, llvm::ArrayRef<mlir::Value> cotangents,
                                        llvm::ArrayRef<uint8_t> wanted, GradientContext &context);

/// Builds, at `b`, the cotangents of `inputs` from those of `results` (null where zero), values of `block` both: null
/// where one is zero. The residuals of the block's ops are exposed. Throws op::expr::NoGradient.
llvm::SmallVector<mlir::Value> gradientsOf(mlir::OpBuilder &b, mlir::Block &block, llvm::ArrayRef<mlir::Value> results,
                                           llvm::ArrayRef<mlir::Value> cotangents, llvm::ArrayRef<mlir::Value> inputs,
                                           GradientContext &context);

} // namespace tressel::graph
