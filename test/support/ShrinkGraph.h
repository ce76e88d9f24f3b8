// Makes a failing program small enough to read.
#pragma once

#include "ir/graph/Graph.h"
#include "passes/verify/ExtractProgram.h"
#include "test/support/RandomGraph.h"

namespace tressel::test {

using passes::StillFails;

inline RandomGraph shrinkGraph(mlir::ModuleOp module, llvm::ArrayRef<op::HostTensor> inputs,
                               const StillFails &stillFails) {
  passes::Example small = passes::shrinkProgram(module, inputs, stillFails);
  return {std::move(small.module), std::move(small.inputs)};
}

/// Ops of the table in the module.
inline int countOps(mlir::ModuleOp module) {
  int count = 0;
  module.walk([&](mlir::Operation *op) { count += graph::infoOf(op) != nullptr; });
  return count;
}

} // namespace tressel::test
