// What memory a placed program takes, as it stands.
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace tressel::runtime {
struct MachineModel;
}

namespace tressel::passes {

/// Bytes of the memory of each device of MachineCosts::devices, for buffers and for what stays there: takes a copy of
/// the program through build-schedule and plan-memory. Typical ones, where sizes are symbolic.
llvm::FailureOr<llvm::SmallVector<int64_t>> memoryNeeds(mlir::ModuleOp module, const runtime::MachineModel &machine);

/// Bytes that the intermediate values of a program for the host alone take, in the order in which its ops stand, or in
/// that of build-schedule where they stand in none; and what is live at once, which is the least that they could take
/// in this order. `module` is made a schedule.
struct ArenaNeeds {
  int64_t bytes = 0, leastBytes = 0;
};
llvm::FailureOr<ArenaNeeds> arenaNeeds(mlir::ModuleOp module);

} // namespace tressel::passes
