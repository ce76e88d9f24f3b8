// In which order the commands of a program, or of a body, are issued, and which run ahead of the step.
#pragma once

#include "passes/Util.h"

namespace tressel::passes {

/// An op of the table that names its operand's bytes anew.
bool isView(mlir::Operation *op);
/// The value whose bytes a chain of views shows.
mlir::Value baseOf(mlir::Value value);
/// An op that becomes a command: a launch, a transfer, or one with bodies.
bool isWork(mlir::Operation *op);

class IssueOrder {
public:
  /// Of @main: what depends on parameters and constants only goes to `prepare`.
  explicit IssueOrder(mlir::func::FuncOp main);
  /// Of a body.
  explicit IssueOrder(mlir::Block &body);

  std::vector<mlir::Operation *> prepare, step;

private:
  void splitPrepare(mlir::func::FuncOp main);
  void settle();

  /// Bytes of arena memory that the step's ops make, by value, with the number of ops that read each.
  struct Live {
    int64_t bytes = 0, readers = 0;
  };
  using Values = llvm::DenseMap<mlir::Value, Live>;
  Values stepValues() const;
  static mlir::SmallVector<mlir::Value> basesRead(mlir::Operation *op);
  static int64_t growth(mlir::Operation *op, const Values &values);
  static void run(mlir::Operation *op, Values &values);
  int64_t peakOf(llvm::ArrayRef<mlir::Operation *> order) const;
  std::vector<mlir::Operation *> leastMemoryFirst() const;

  mlir::Block &block;
  llvm::DenseSet<mlir::Value> prepared;
};

} // namespace tressel::passes
