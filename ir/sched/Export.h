// From the sched dialect to the flat schedule, and its proof.
#pragma once

#include "ir/sched/Sched.h"
#include "tressel/runtime/Blob.h"
#include "tressel/runtime/Schedule.h"

#include <cstddef>
#include <string>
#include <vector>

namespace tressel::sched {

/// The symbol of the generated code that follows a library's root (KernelDesc::epilogue), where a kernel has one.
std::string epilogueSymbol(llvm::StringRef kernel);

/// A flat schedule with the ops it came from, index by index.
struct Exported {
  runtime::Schedule schedule;
  std::vector<mlir::Operation *> prepare, step; ///< commands
  std::vector<std::vector<mlir::Operation *>> bodies;
  std::vector<mlir::Operation *> buffers;
};

/// Needs a valid program with planned memory; else an error at the op that lacks its place.
llvm::FailureOr<Exported> exportWithOps(ProgramOp program);
/// The same, of a program that was verified: ends the process on an unplanned one, which is a bug.
runtime::Schedule exportSchedule(ProgramOp program);

/// The blob that the schedule's ConstantDescs point into: the constants in order. Large ones stay where the module's
/// context has them, and are kept beyond it.
runtime::Blob exportConstants(ProgramOp program);

/// Proves the schedule safe with the runtime's verifier; each violation becomes an error at the command, with a note at
/// the other one.
llvm::LogicalResult verifySchedule(ProgramOp program);

} // namespace tressel::sched
