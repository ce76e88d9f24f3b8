// Finds the pass that changed a program's results: interprets the program after each pass, at every stage from graph to
// planned schedule, on the same seeded inputs.
#pragma once

#include "passes/Pipeline.h"

#include "ir/graph/Mesh.h"
#include "ir/op/OpInfo.h"

namespace tressel::passes {

class DifferentialCheck {
public:
  /// Interprets the program as it is before any pass. A program that cannot be interpreted is not checked, and a remark
  /// says so, unless the reason is that it is too large.
  DifferentialCheck(mlir::ModuleOp module, const PipelineOptions &options);
  bool isTooLarge() const { return tooLarge; }
  /// Compares with the results before `pass`; on a difference, an error that names the pass and the first value that
  /// differs.
  llvm::LogicalResult check(mlir::ModuleOp module, llvm::StringRef pass, Contract contract);

private:
  struct Results {
    std::vector<op::HostTensor> values; ///< in the order of @main's results
    std::string error;
  };
  Results interpret(mlir::ModuleOp module) const;
  Results interpretSchedule(mlir::ModuleOp module, sched::ProgramOp program) const;

  void noteRanks(mlir::ModuleOp module);
  void expandRanks(mlir::ModuleOp module);

  graph::Mesh mesh; ///< from `shard` until ranks are expanded
  bool enabled = false, tooLarge = false;
  struct Slot {
    bool isState;
    std::string name;
  };
  std::vector<Slot> arguments, results; ///< of @main
  dim::Values dims; ///< sizes for the symbols
  std::vector<op::HostTensor> inputs;
  Results before;
};

/// Takes consecutive parts of @main through the pipeline, each checked by itself.
llvm::LogicalResult verifyInPieces(mlir::ModuleOp module, const PipelineOptions &options);

} // namespace tressel::passes
