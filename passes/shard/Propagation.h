// How the values of a program lie on the ranks of a mesh: what people say of some, and what follows for the others from
// the rules of ops (ir/op/ShardingRule.h).
#pragma once

#include "passes/shard/Bodies.h"

#include "ir/graph/Mesh.h"
#include "ir/op/ShardingRule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tressel::passes {

/// How an op is cut: the axes of each factor of its rule.
struct Cut {
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>> axes;
  bool isCut() const {
    return llvm::any_of(axes, [](const auto &list) { return !list.empty(); });
  }
};

class Propagation {
public:
  Propagation(mlir::func::FuncOp main, const graph::Mesh &mesh)
      : main(main), mesh(mesh), ofOneRank(main->hasAttr(graph::kRankProgramAttr)) {}

  /// Reads annotations and follows them through the program, forward and backward, until nothing changes. An annotation
  /// that says what cannot be is an error at its line.
  llvm::LogicalResult run();

  /// Whole, if no sharding reached the value.
  graph::Sharding of(mlir::Value value) const;
  /// Whole for ops that have no rule, have effects, or were placed by the user.
  Cut cutOf(mlir::Operation *op);
  const op::ShardingRule *ruleOf(mlir::Operation *op);
  /// Of a scan with a rule.
  const BodyRule &bodyOf(graph::ScanOp scan) const { return *bodies.at(scan); }

  /// How an operand or result of an op that is cut so must lie.
  static graph::Sharding shardingOf(const op::ShardingRule::Dims &dims, const Cut &cut);
  /// The op is about to be erased.
  void forget(mlir::Operation *op) { rules.erase(op), bodies.erase(op); }
  /// A new value lies as another one.
  void copy(mlir::Value from, mlir::Value to) { known[to] = known.lookup(from); }

private:
  struct Known {
    graph::Sharding sharding;
    bool pinned = false; ///< somebody said so
  };
  llvm::LogicalResult annotate();
  llvm::LogicalResult pin(mlir::Value value, llvm::StringRef text, mlir::Location loc, const llvm::Twine &what);
  bool propose(mlir::Value value, const graph::Sharding &wanted);
  bool follow(mlir::Operation *op);
  bool mayCut(const op::ShardingRule &rule, unsigned factor, llvm::ArrayRef<unsigned> axes) const;

  mlir::func::FuncOp main;
  const graph::Mesh &mesh;
  bool ofOneRank; ///< the parts of a dimension have one size
  llvm::DenseMap<mlir::Value, Known> known;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<op::ShardingRule>> rules;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<BodyRule>> bodies;
};

} // namespace tressel::passes
