// Propagates shardings: users annotate some values, and the rules of ops (ir/op/ShardingRule.h) tell how the others lie
// on the ranks.
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

  /// Reads the annotations and propagates them forward and backward to a fixed point. An annotation that is impossible
  /// is an error at its line.
  llvm::LogicalResult run();

  /// The sharding of a value: whole, if none reached it.
  graph::Sharding of(mlir::Value value) const;
  /// How the op is cut: not at all if it has no rule, has effects, or was placed by the user.
  Cut cutOf(mlir::Operation *op);
  const op::ShardingRule *ruleOf(mlir::Operation *op);
  /// The rule of a scan that has one.
  const BodyRule &bodyOf(graph::ScanOp scan) const { return *bodies.at(scan); }

  /// The sharding that an operand or result of an op with this cut must have.
  static graph::Sharding shardingOf(const op::ShardingRule::Dims &dims, const Cut &cut);
  /// To be called before the op is erased.
  void forget(mlir::Operation *op) { rules.erase(op), bodies.erase(op); }
  /// Gives a new value the sharding of another.
  void copy(mlir::Value from, mlir::Value to) { known[to] = known.lookup(from); }

private:
  struct Known {
    graph::Sharding sharding;
    bool pinned = false; ///< annotated by the user
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
