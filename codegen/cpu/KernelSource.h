// From outlined kernels to what is compiled of them.
#pragma once

#include "codegen/cpu/CompileKernels.h"
#include "codegen/loops/FromGraph.h"
#include "ir/graph/Structure.h"

namespace tressel::codegen {

/// What is to be generated for an outlined kernel: all of it, or the epilogue of a library's root, under the symbol
/// sched::epilogueSymbol and in the library's units. Throws Error with the op's line if there is no plan.
KernelSource makeKernelSource(graph::KernelOp kernel, const Target &target);

} // namespace tressel::codegen
