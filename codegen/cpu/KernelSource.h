// From ops of the graph dialect to loop plans: what the generated provider bids with and what is compiled in the end.
#pragma once

#include "codegen/cpu/CompileKernels.h"
#include "ir/graph/Structure.h"

#include "mlir/IR/Operation.h"

#include <optional>

namespace tressel::codegen {

/// The loop forms of `ops` (program order). Splat constants become immediates wherever they stand. Nothing if an op has
/// no loop form or an operand is neither made here, nor an input, nor a splat.
std::optional<KernelGraph> kernelGraphOf(llvm::ArrayRef<mlir::Operation *> ops, llvm::ArrayRef<mlir::Value> inputs,
                                         llvm::ArrayRef<mlir::Value> results);

/// What is to be generated for an outlined kernel: all of it, or the epilogue of a library's root, under the symbol
/// sched::epilogueSymbol and in the library's units. Throws Error with the op's line if there is no plan.
KernelSource makeKernelSource(graph::KernelOp kernel, const Target &target);

} // namespace tressel::codegen
