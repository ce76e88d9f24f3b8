// The memory that a placed program takes as it is, without evictions.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace tressel::runtime {
struct MachineModel;
}

namespace tressel::passes {

/// Bytes for buffers and resident values, for each device of MachineCosts::devices: runs build-schedule and plan-memory
/// on a copy of the program. Symbolic sizes count as typical ones.
llvm::FailureOr<llvm::SmallVector<int64_t>> memoryNeeds(mlir::ModuleOp module, const runtime::MachineModel &machine);

/// Arena bytes of the intermediate values of a program for the host alone, in the order of its ops, or in the order of
/// build-schedule where the program has none; and the peak of live bytes, which no plan in this order can go below.
/// `module` becomes a schedule.
struct ArenaNeeds {
  int64_t bytes = 0, leastBytes = 0;
};
llvm::FailureOr<ArenaNeeds> arenaNeeds(mlir::ModuleOp module);

} // namespace tressel::passes
