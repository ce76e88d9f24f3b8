// Finds the pass that changed a program's results: interprets the program after each pass, at every stage from graph to
// planned schedule, on the same seeded inputs.
#pragma once

#include "passes/Pipeline.h"

#include "ir/op/OpInfo.h"

namespace tressel::passes {

class DifferentialCheck {
public:
  /// Interprets the program as it is. Above a fixed amount of work nothing is checked, and a remark says so.
  DifferentialCheck(mlir::ModuleOp module, uint64_t seed);
  /// Compares with the program before `pass`; an error that names the pass and the first value that differs.
  llvm::LogicalResult check(mlir::ModuleOp module, llvm::StringRef pass, Contract contract);

private:
  struct Results {
    std::vector<op::HostTensor> values; ///< in the order of @main's results
    std::string error;
  };
  Results interpret(mlir::ModuleOp module) const;
  Results interpretSchedule(mlir::ModuleOp module, sched::ProgramOp program) const;

  bool enabled = false;
  struct Slot {
    bool isState;
    std::string name;
  };
  std::vector<Slot> arguments, results; ///< of @main
  dim::Values dims; ///< sizes for the symbols
  std::vector<op::HostTensor> inputs;
  Results before;
};

} // namespace tressel::passes
