// Exports the sched dialect to the flat schedule, and verifies it.
#pragma once

#include "ir/sched/Sched.h"
#include "tressel/runtime/Blob.h"
#include "tressel/runtime/Schedule.h"

#include <cstddef>
#include <string>
#include <vector>

namespace tressel::sched {

/// The symbol of the epilogue of a kernel that has one (KernelDesc::epilogue).
std::string epilogueSymbol(llvm::StringRef kernel);

/// A flat schedule, and the op of each of its entries, by index.
struct Exported {
  runtime::Schedule schedule;
  std::vector<mlir::Operation *> prepare, step; ///< commands
  std::vector<std::vector<mlir::Operation *>> bodies;
  std::vector<mlir::Operation *> buffers;
};

/// Needs a valid program with planned memory; else an error at the op that has no offset.
llvm::FailureOr<Exported> exportWithOps(ProgramOp program);
/// exportWithOps for a program that was verified. An unplanned one is a bug and ends the process.
runtime::Schedule exportSchedule(ProgramOp program);

/// The blob of all constants, in order, into which the schedule's ConstantDescs point. Large constants are not copied;
/// their bytes are kept alive beyond the module's context.
runtime::Blob exportConstants(ProgramOp program);

/// Runs the runtime's verifier on the schedule. Each violation becomes an error at the command, with a note at the
/// other command.
llvm::LogicalResult verifySchedule(ProgramOp program);

} // namespace tressel::sched
