// From ops of the graph dialect to the loops that plans are made of: what providers of generated code bid with, on processors and GPUs.
#pragma once

#include "codegen/loops/KernelGraph.h"

#include "mlir/IR/Operation.h"

#include <optional>

namespace tressel::codegen {

/// The loop forms of `ops` (program order). Splat constants become immediates wherever they stand. Nothing if an op has
/// no loop form or an operand is neither made here, nor an input, nor a splat.
std::optional<KernelGraph> kernelGraphOf(llvm::ArrayRef<mlir::Operation *> ops, llvm::ArrayRef<mlir::Value> inputs,
                                         llvm::ArrayRef<mlir::Value> results);

/// Whether the value is a splat or one element, which becomes part of the code.
bool isImmediate(mlir::Value value);

} // namespace tressel::codegen
