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

/// How far a pass may change a program's results. Its description in Passes.td says the same.
enum class Contract {
  Exact,        ///< results stay the same bit by bit
  Reassociates, ///< floats may be rounded differently
  Precision,    ///< floats may be computed in other types
};

struct PassTime {
  std::string pass; ///< "form-clusters"
  double seconds;
};

struct PipelineOptions {
  Providers providers;
  /// Where `providers` are for accelerators with an architecture of their own: providers for what is placed on the
  /// host.
  Providers hostProviders;
  /// Names of passes to leave out. Only optional ones can be left out: see Stage::optional in Pipeline.cpp.
  std::vector<std::string> disabled;
  /// Stop after the pass of this name (its first occurrence); empty: run all.
  std::string stopAfter;
  int64_t streams = 1; ///< compute streams of the CPU
  /// The machine that the program is placed on; it outlives the call. Null, or without accelerators: this host alone.
  const runtime::MachineModel *machine = nullptr;
  std::vector<runtime::DeviceRef> devices; ///< the machine's devices that compute; empty: all
  /// Bytes of gradients that ranks combine in one collective: an option of lower-collectives.
  int64_t bucketBytes = 25 << 20;
  std::optional<DType> autocast;           ///< f16 or bf16: products of f32 are computed in it
  MemoryBudget memoryBudget;               ///< of intermediate values, for a program on the host alone
  /// Interpret the program before and after each pass and name the one that changed the result beyond its contract.
  bool verifyEach = false;
  /// Flops and bytes that verifyEach interprets at once, some seconds of work. A larger program is checked in pieces,
  /// each taken through all passes by itself; single ops above the bound are skipped with a remark.
  int64_t verifyWork = 500'000'000;
  uint64_t seed = 1;                        ///< of the inputs that verifyEach generates
  std::vector<op::HostTensor> inputs;       ///< in place of generated ones, one per argument of @main
  std::string *blamed = nullptr;            ///< receives the name of the pass that changed a result
  /// Called after each pass, before its result is verified and compared. Tests inject faults here.
  std::function<llvm::LogicalResult(mlir::ModuleOp, llvm::StringRef pass)> afterPass;
  std::function<void(llvm::StringRef pass)> beforePass; ///< for showing progress
  std::vector<PassTime> *timings = nullptr; ///< appended to, one entry per pass
  Decisions *decisions = nullptr;           ///< appended to
};

/// Turns a module with a func.func @main in the graph dialect into kernels and one sched.program. Errors are
/// diagnostics of the module's context.
llvm::LogicalResult runPipeline(mlir::ModuleOp module, const PipelineOptions &options);

/// Registers each pass of the pipeline under its flag, for tressel-opt. `options` is called when a pass is created.
void registerPasses(const std::function<PipelineOptions()> &options);

/// An error message for names in the options that are no passes, or no optional ones; nothing if all are valid.
std::string problemWithNames(const PipelineOptions &options);

/// "form-clusters", ... in order, each once.
std::vector<std::string> pipelinePassNames();

/// The table that --tressel-pass-timing prints.
std::string formatTimings(llvm::ArrayRef<PassTime> timings);

} // namespace tressel::passes
