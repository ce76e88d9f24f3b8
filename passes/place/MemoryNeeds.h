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

} // namespace tressel::passes
