// In which order the commands of a program, or of a body, are issued, and which run ahead of the step.
#pragma once

#include "passes/Util.h"

namespace tressel::passes {

/// On @main: its ops stand in the order in which they are to be issued; place-clusters has placed them all, as nobody had annotated one. On
/// a launch or transfer: it belongs to the step, though what it reads are parameters.
inline constexpr llvm::StringLiteral kOrderedAttr = "tressel.ordered", kChosenAttr = "tressel.chosen", kInStepAttr = "tressel.in_step";

/// On some rows of a value, however few: they are a part of its bytes wherever those may be read in place.
inline constexpr llvm::StringLiteral kAsViewAttr = "tressel.as_view";

/// An op of the table that names its operand's bytes anew, or some rows of them.
bool isView(mlir::Operation *op);
/// Of an op whose result is so many rows of its operand, which lie together: the first of them.
std::optional<int64_t> firstRowOf(mlir::Operation *op);
/// An op whose result is its operands' rows one after the other: they are computed in its bytes, and it does nothing.
bool isRowJoin(mlir::Operation *op);
/// The value whose bytes a chain of views shows, and how far behind its begin.
mlir::Value baseOf(mlir::Value value);
int64_t offsetInBase(mlir::Value value);
/// An op that becomes a command, a launch, a transfer, or one with bodies; and a join of rows, which has its place in
/// the order.
bool isWork(mlir::Operation *op);

class IssueOrder {
public:
  /// Of @main: what depends on parameters and constants only goes to `prepare`.
  /// Without `leastMemory` the step stays in program order.
  explicit IssueOrder(mlir::func::FuncOp main, bool leastMemory = true);
  /// Of a body.
  explicit IssueOrder(mlir::Block &body);

  std::vector<mlir::Operation *> prepare, step;

private:
  void splitPrepare(mlir::func::FuncOp main);
  void settle();
  void delayStateWrites(mlir::func::FuncOp main);

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
  /// Which ops wait for which.
  struct Waits {
    llvm::DenseMap<mlir::Value, mlir::SmallVector<size_t>> readers; ///< places in `step`
    std::vector<size_t> missing;                                    ///< by place: what it waits for
    llvm::DenseMap<size_t, size_t> nextEffect; ///< ops with effects keep their order: each waits for the one before
  };
  Waits waitsOf(const Values &values) const;
  std::vector<mlir::Operation *> leastMemoryFirst() const;
  std::vector<mlir::Operation *> shrinkingFirst() const;

  mlir::Block &block;
  llvm::DenseSet<mlir::Value> prepared;
};

} // namespace tressel::passes
