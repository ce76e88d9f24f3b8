// The passes in order: from a graph to a verified schedule.
#pragma once

#include "ir/op/OpInfo.h"
#include "passes/Passes.h"

#include "tressel/runtime/MemoryBudget.h"
#include "tressel/runtime/Schedule.h"

#include <functional>
#include <optional>
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
  /// Where `providers` are for accelerators of another architecture: those for the host, which take what is placed there.
  Providers hostProviders;
  /// Names of passes to leave out, where that leaves a program that runs: see Stage::optional in Pipeline.cpp.
  std::vector<std::string> disabled;
  /// Stop after the pass of this name (its first occurrence); empty: run all.
  std::string stopAfter;
  int64_t streams = 1; ///< compute streams of the CPU
  /// What the program is placed on; it outlives the call. Null, or without accelerators: this host alone.
  const runtime::MachineModel *machine = nullptr;
  std::vector<runtime::DeviceRef> devices; ///< those of the machine that compute; empty: all
  int64_t bucketBytes = 25 << 20;          ///< of what ranks combine as one, as the pass lower-collectives has it
  std::optional<DType> autocast;           ///< f16 or bf16: products of f32 are computed in it
  MemoryBudget memoryBudget;               ///< of intermediate values, for a program on the host alone
  /// Interpret the program before and after each pass and name the one that changed the result beyond its contract.
  bool verifyEach = false;
  /// Flops and bytes that verifyEach interprets at once, some seconds of it. A larger program is checked in pieces, each
  /// taken through all passes by itself; ops that are larger alone are skipped with a remark.
  int64_t verifyWork = 500'000'000;
  uint64_t seed = 1;                        ///< of the inputs that verifyEach invents
  std::vector<op::HostTensor> inputs;       ///< instead of invented ones, one per argument of @main
  std::string *blamed = nullptr;            ///< receives the name of the pass that changed a result
  /// Called after each pass, before its result is verified and compared: tests plant faults here.
  std::function<llvm::LogicalResult(mlir::ModuleOp, llvm::StringRef pass)> afterPass;
  std::function<void(llvm::StringRef pass)> beforePass; ///< for showing progress
  std::vector<PassTime> *timings = nullptr; ///< appended to, one entry per pass
  Decisions *decisions = nullptr;           ///< appended to
};

/// Turns a module with a func.func @main in the graph dialect into kernels and one sched.program. Errors are
/// diagnostics of the module's context.
llvm::LogicalResult runPipeline(mlir::ModuleOp module, const PipelineOptions &options);

/// Makes each pass of the pipeline known by its flag, for tressel-opt. `options` is asked when a pass is made.
void registerPasses(const std::function<PipelineOptions()> &options);

/// What is wrong with the names of passes in the options, or nothing.
std::string problemWithNames(const PipelineOptions &options);

/// "form-clusters", ... in order, each once.
std::vector<std::string> pipelinePassNames();

/// The table that --tressel-pass-timing prints.
std::string formatTimings(llvm::ArrayRef<PassTime> timings);

} // namespace tressel::passes
