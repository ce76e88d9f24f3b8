// The sharding rule of a scan, derived from the rules of its body's ops, for all iterations at once.
//
// Each dimension of a scan's operand or result is one of a value in its body, and the rules of the body's ops tie that
// one to dimensions of other values. All dimensions tied together are one factor. A factor may be cut where each op of
// the body computes its part of an iteration from parts: a recurrence may be cut along the batch, carried values
// included. A sum over the factor (a weight gradient of one iteration) is combined once, after the last iteration, if
// in the body it only flows through linear ops into carried or stacked values: each rank carries its terms.
#pragma once

#include "ir/graph/Control.h"
#include "ir/op/ShardingRule.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tressel::passes {

struct BodyRule {
  op::ShardingRule rule;
  /// For each op of the body and each factor of that op's own rule: the factor of `rule` that cuts it; -1: none.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<int, 4>> factorsOf;
  /// The same for the dimensions of the body's values.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<int, 4>> dimsOf;
};

/// `ruleOf` gives the rules of the body's ops; null for those that compute whole values alone.
BodyRule ruleOfBody(graph::ScanOp scan, llvm::function_ref<const op::ShardingRule *(mlir::Operation *)> ruleOf);

/// Whether the op's result is linear in `operands` (by number) together, without a constant term: applied to terms of
/// these operands the op gives terms of the result.
bool isLinearIn(mlir::Operation *op, llvm::function_ref<bool(unsigned)> operands);

} // namespace tressel::passes
