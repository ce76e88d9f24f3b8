// The order in which commands of a program or a body are issued, and which of them `prepare` runs.
#pragma once

#include "passes/Util.h"

namespace tressel::passes {

/// Attributes. kOrderedAttr on @main: its ops stand in issue order. kChosenAttr on @main: place-clusters placed all
/// ops, as the user annotated none. kInStepAttr on a launch or transfer: it runs in the step, though it reads
/// parameters alone.
inline constexpr llvm::StringLiteral kOrderedAttr = "tressel.ordered", kChosenAttr = "tressel.chosen", kInStepAttr = "tressel.in_step";

/// On an op that takes rows of a value: it becomes a view even if the rows are few and keep the whole value alive.
inline constexpr llvm::StringLiteral kAsViewAttr = "tressel.as_view";

/// An op of the table whose result is its operand's bytes, or some rows of them.
bool isView(mlir::Operation *op);
/// For an op whose result is consecutive rows of its operand: the first of them.
std::optional<int64_t> firstRowOf(mlir::Operation *op);
/// An op that concatenates rows: its operands are computed in the bytes of its result, so it becomes no command.
bool isRowJoin(mlir::Operation *op);
/// The value whose bytes a chain of views shows, and the view's offset in it, in bytes.
mlir::Value baseOf(mlir::Value value);
int64_t offsetInBase(mlir::Value value);
/// An op that becomes a command: a launch, a transfer, or an op with bodies. A join of rows counts too, as it has a
/// place in the order.
bool isWork(mlir::Operation *op);

class IssueOrder {
public:
  /// For @main: ops that depend on parameters and constants alone go to `prepare`. Without `leastMemory` the step stays
  /// in program order.
  explicit IssueOrder(mlir::func::FuncOp main, bool leastMemory = true);
  /// For a body.
  explicit IssueOrder(mlir::Block &body);

  std::vector<mlir::Operation *> prepare, step;

private:
  void splitPrepare(mlir::func::FuncOp main);
  void settle();
  void delayStateWrites(mlir::func::FuncOp main);

  /// Arena bytes of the values that the step's ops make, with the number of ops that read each.
  struct Live {
    int64_t bytes = 0, readers = 0;
  };
  using Values = llvm::DenseMap<mlir::Value, Live>;
  Values stepValues() const;
  static mlir::SmallVector<mlir::Value> basesRead(mlir::Operation *op);
  static int64_t growth(mlir::Operation *op, const Values &values);
  static void run(mlir::Operation *op, Values &values);
  int64_t peakOf(llvm::ArrayRef<mlir::Operation *> order) const;
  /// Dependences among the step's ops.
  struct Waits {
    llvm::DenseMap<mlir::Value, mlir::SmallVector<size_t>> readers; ///< places in `step`
    std::vector<size_t> missing;                                    ///< by place: dependences that are not issued yet
    llvm::DenseMap<size_t, size_t> nextEffect; ///< ops with effects keep their order: each depends on the one before
  };
  Waits waitsOf(const Values &values) const;
  std::vector<mlir::Operation *> leastMemoryFirst() const;
  std::vector<mlir::Operation *> shrinkingFirst() const;

  mlir::Block &block;
  llvm::DenseSet<mlir::Value> prepared;
};

} // namespace tressel::passes
