// Where a program that computes gradients turns round.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace tressel::passes {

/// What a gradient reads is made in one order, and read in the opposite one: the place between the two ways is where
/// most bytes of values that live long are alive. How many ops stand ahead of it; nothing where fewer than `minBytes`
/// are alive there. `parameterOnly`: values that are known ahead of the step and count for nothing, as constants do.
std::optional<size_t> turningPointOf(mlir::Block &block, const llvm::DenseSet<mlir::Value> &parameterOnly,
                                     int64_t minBytes);

} // namespace tressel::passes
