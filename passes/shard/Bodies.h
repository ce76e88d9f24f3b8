// The rule by which a scan is cut: what the rules of its body's ops say, for all iterations at once.
//
// A dimension of the whole is one of its body's, and that belongs with dimensions of other values there, by the rules of
// the ops between them. All of these are one factor. It may be cut where each op of the body computes its part of a
// step from parts: recurrence over a batch is, over what is carried as well. A sum over the factor (a gradient of
// weights, of one step) is exchanged once, behind the last iteration, where it does nothing in the body but become part of
// carried or stacked values by linear ops: each rank carries its terms.
#pragma once

#include "ir/graph/Control.h"
#include "ir/op/ShardingRule.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tressel::passes {

struct BodyRule {
  op::ShardingRule rule;
  /// Of an op of the body, by the factors of its own rule: the factor of `rule` that it is cut by; -1: it never is.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<int, 4>> factorsOf;
  /// The same of the dimensions of the body's values.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<int, 4>> dimsOf;
};

/// `ruleOf` gives the rules of the body's ops; null for those that compute whole values alone.
BodyRule ruleOfBody(graph::ScanOp scan, llvm::function_ref<const op::ShardingRule *(mlir::Operation *)> ruleOf);

/// Whether the op's result is linear in `operands` (by number) together, and zero where they are: with terms of these the
/// op makes terms of the result.
bool isLinearIn(mlir::Operation *op, llvm::function_ref<bool(unsigned)> operands);

} // namespace tressel::passes
