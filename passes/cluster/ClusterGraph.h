// The graph of a block's ops, contracted group by group. form-clusters joins groups; this class keeps groups convex and
// in a topological order.
//
// Ops with effects keep their order: each counts as a user of the one before.
//
// The order is kept up to date as in Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic
// graphs" (2006): joining two groups moves only the groups between them that one reaches, or that reach the other.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace tressel::passes {

class ClusterGraph {
public:
  /// One group per op of the block, the terminator included. A join whose check would visit more than `maxSearch` edges
  /// is refused, which bounds the time of a join.
  ClusterGraph(mlir::Block &block, int64_t maxSearch);

  using Group = uint32_t;
  Group groupOf(mlir::Operation *op) const { return group[indexOf.lookup(op)]; }
  /// In the order of the block.
  llvm::ArrayRef<mlir::Operation *> opsOf(Group g) const { return members[g]; }
  /// Place of a group in a topological order.
  uint32_t placeOf(Group g) const { return order[g]; }
  /// Position of an op in the block as it was.
  uint32_t indexOfOp(mlir::Operation *op) const { return indexOf.lookup(op); }

  /// Whether a path leads from `producer` through a third group to `consumer`, or the search exceeded its bound. If
  /// false, `join` of the two may follow, with no other join between.
  bool blocked(Group producer, Group consumer);
  /// Ops of `from` move into `into`.
  void join(Group into, Group from);

  /// Groups that have ops, in topological order.
  std::vector<Group> inOrder() const;

private:
  template <typename Fn> bool forEachNeighbour(Group g, bool forward, Fn fn);

  std::vector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> nextEffect, previousEffect;
  llvm::DenseMap<mlir::Operation *, uint32_t> indexOf;
  std::vector<Group> group;                                     // by op
  std::vector<llvm::SmallVector<mlir::Operation *, 2>> members; // by group
  std::vector<uint32_t> order;                                  // by group: its place
  std::vector<Group> reachedForward, reachedBackward;           // what the last `blocked` found between the two
  std::vector<uint32_t> visited;
  uint32_t epoch = 0;
  int64_t maxSearch;
};

} // namespace tressel::passes
