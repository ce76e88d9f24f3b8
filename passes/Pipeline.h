// The passes in order: from a graph to a verified schedule.
#pragma once

#include "passes/Passes.h"

#include <functional>
#include <string>
#include <vector>

namespace tressel::passes {

/// What a pass may change of a program's results. Its description in Passes.td says the same.
enum class Contract {
  Exact,        ///< not a bit
  Reassociates, ///< the rounding of floats
  Precision,    ///< the types that floats are computed in
};

struct PassTime {
  std::string pass; ///< "form-clusters"
  double seconds;
};

struct PipelineOptions {
  Providers providers;
  /// Names of passes to leave out, where that leaves a program that runs: see Stage::optional in Pipeline.cpp.
  std::vector<std::string> disabled;
  /// Stop after the pass of this name (its first occurrence); empty: run all.
  std::string stopAfter;
  int64_t streams = 1; ///< compute streams of the CPU
  /// Interpret the program before and after each pass and name the one that changed the result beyond its contract.
  /// Programs too large to interpret are skipped with a remark.
  bool verifyEach = false;
  uint64_t seed = 1;                        ///< of the inputs that verifyEach invents
  std::vector<PassTime> *timings = nullptr; ///< appended to, one entry per pass
};

/// Turns a module with a func.func @main in the graph dialect into kernels and one sched.program. Errors are
/// diagnostics of the module's context.
llvm::LogicalResult runPipeline(mlir::ModuleOp module, const PipelineOptions &options);

/// "form-clusters", ... in order, each once.
std::vector<std::string> pipelinePassNames();

/// The table that --tressel-pass-timing prints.
std::string formatTimings(llvm::ArrayRef<PassTime> timings);

} // namespace tressel::passes
