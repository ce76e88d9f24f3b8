// Bugs on purpose: what a wrong compiler might make of a program.
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>

namespace tressel::test {

/// Replaces an op (which one, `number` says) by another of the table that takes the same operands and attributes and
/// gives the same types. False if there is no such op.
bool injectWrongOp(mlir::ModuleOp module, uint64_t number);

/// Changes a branch or loop: branches change places; a loop counts on by two, or starts as if an iteration had been;
/// its number stays 0; carried values change places where they start or are handed on, or are not handed on at all;
/// slices are taken from the end. False if there is nothing to change.
bool injectWrongControl(mlir::ModuleOp module, uint64_t number);

} // namespace tressel::test
