// Finds the turning point of a program that computes gradients.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace tressel::passes {

/// The number of ops ahead of the turning point: where most bytes of long-lived values are alive. Gradients read the
/// values of the forward ops in opposite order, so the peak is between the two. Nothing if fewer than `minBytes` are
/// alive there. `parameterOnly`: values known ahead of the step, which do not count, like constants.
std::optional<size_t> turningPointOf(mlir::Block &block, const llvm::DenseSet<mlir::Value> &parameterOnly,
                                     int64_t minBytes);

} // namespace tressel::passes
