// A trace as a module of the graph dialect, and its compilation. No MLIR in this header: contexts, builder and module
// are behind it.
#pragma once

#include "codegen/CodeCache.h"
#include "frontend/tensor/Machine.h"
#include "frontend/trace/CompiledFunction.h"
#include "frontend/trace/Fingerprint.h"
#include "frontend/trace/Recorder.h"

#include "tressel/runtime/Decision.h"
#include "tressel/runtime/MemoryBudget.h"
#include "tressel/runtime/Schedule.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tressel {
struct ParallelComparison;
}

namespace tressel::detail {

/// What became of a tensor that the traced function returned.
struct TraceResult {
  enum class Kind : uint8_t { Output, Input, State, Constant };
  Kind kind = Kind::Output;
  size_t index = 0; ///< of the output, of the input, or of the state among `Traced::states`
  Tensor constant;  ///< a tensor from outside that was returned as it is
};

struct Traced {
  std::shared_ptr<CompiledFunction> function;        ///< null when it was recorded only, or has no output
  std::vector<TraceResult> results;                  ///< one per returned tensor
  std::vector<std::shared_ptr<VariableImpl>> states;  ///< those that are only read
  std::vector<std::shared_ptr<VariableImpl>> updated; ///< those that are assigned: the program updates them
  Fingerprint fingerprint;
  std::string text; ///< the graph, without locations; only where asked for
  int kernelsCompiled = 0, kernelsCached = 0;
  runtime::Decisions decisions; ///< of the passes
  std::shared_ptr<const ParallelComparison> layouts; ///< of FinishOptions::compare; then there is no function
  std::optional<runtime::Schedule> schedule; ///< of one rank, where that was asked for; then there is no function
};

struct FinishOptions {
  std::string name = "main"; ///< in errors and timelines
  bool compile = true;
  bool text = false;
  bool deterministic = false;
  bool diskCache = true;
  bool measure = false, winograd = false, keepSubnormals = false, strictDonation = false;
  MemoryBudget memoryBudget = {};
  std::optional<DType> autocast = {};
  std::shared_ptr<runtime::Machine> machine = nullptr;  ///< what it runs on; null: the processor
  const runtime::MachineModel *model = nullptr; ///< what it is placed on
  std::vector<runtime::DeviceRef> devices = {}; ///< those of it that compute; empty: all
  std::string architecture = {};                ///< of code for GPUs, which they compile; empty: that of the model's
  bool gpuLibraries = false;                    ///< as of codegen::CompileOptions
  const codegen::CodeArchive *gpuArchive = nullptr; ///< as of codegen::CompileOptions
  /// As of codegen::CompileOptions: then code is compiled for the archive alone, and there is no function.
  std::function<void(const codegen::CacheKey &, const codegen::Code &)> gpuCodeUsed = {};
  std::string mesh = {};                        ///< of those, as graph::kMeshAttr; empty: none
  std::optional<int> shardAxis =
      {}; ///< of the inputs that have it, cut along the first axis of the mesh, and that of micro-batches
  struct Pipeline {
    std::string axis; ///< of the mesh, along which micro-batches lie; empty: no pipeline
    int64_t inRow = 1;
    std::string order; ///< as of graph::kPipelineAttr; empty: the best
  };
  Pipeline pipeline = {};
  int64_t compare = 0;    ///< compare ways to split the program over so many accelerators; 0: do not
  bool ofOneRank = false; ///< make the schedule of one of the mesh's ranks, with all Variables on it, and no code
  int64_t bucketBytes = 25 << 20;                                                   ///< JitOptions::bucket_bytes
  std::function<void(const std::string &stage, const std::string &text)> dump = {}; ///< as of codegen::CompileOptions
};

/// A function compiled for a package.
struct ExportedFunction;
/// States by their names in a package.
using StateNameMap = std::map<std::string, std::shared_ptr<VariableImpl>>;

struct ExportRequest {
  std::string cpu = "native";
  std::vector<std::string> outputNames; ///< one per result, or none
  std::vector<std::string> gpus;        ///< as ExportOptions::gpus
  bool gpuLibraries = false;            ///< as ExportOptions::gpu_libraries
  bool deterministic = false, measure = false, winograd = false, keepSubnormals = false;
  MemoryBudget memoryBudget;
  std::optional<DType> autocast;
};

class TraceRecorder : public Recorder {
public:
  TraceRecorder();
  ~TraceRecorder() override;

  /// Inputs are added before anything else. `home`: TensorImpl::home of the tensors in calls.
  Tensor input(const TensorType &type, const std::string &name, SourceLoc where, uint32_t home = 0);
  void op(const op::OpInfo &info, std::span<const Tensor> inputs, std::span<const TensorType> types,
          const op::Attrs &attrs, SourceLoc where, std::span<Tensor> results) override;
  Tensor read(const std::shared_ptr<VariableImpl> &variable, SourceLoc where) override;
  void assign(const std::shared_ptr<VariableImpl> &variable, const Tensor &value, SourceLoc where) override;
  void keep(const Tensor &t) override;
  void *valueIn(const Tensor &t, SourceLoc where) override;
  std::vector<Tensor> pullBack(void *control, std::span<const Tensor> cotangents, std::span<const uint8_t> wanted,
                               const std::source_location &where) override;

protected:
  Fingerprint *fingerprintOf() override;
  void beginControl(const ControlCall &call) override;
  void beginBody() override;
  Tensor bodyArgument(size_t depth, const TensorType &type, SourceLoc where) override;
  void endBody(const BodyRecord &body, SourceLoc where) override;
  std::vector<Tensor> endControl(const ControlCall &call, std::span<const BodyRecord> bodies,
                                 std::span<const std::shared_ptr<VariableImpl>> assigned,
                                 std::span<const TensorType> types) override;

public:
  /// TensorImpl::home of the inputs and Variables so far that are not on the host.
  std::vector<uint32_t> homes() const;
  /// Ends the trace and compiles it. Throws the compiler's errors.
  Traced finish(std::span<const Tensor> results, const FinishOptions &options);
  /// Before all else: what these states are called in the program.
  void nameStates(const StateNameMap &names);
  /// Ends the trace and compiles it for a package; `names` gets the states that had none.
  std::shared_ptr<const ExportedFunction> finishExport(std::span<const Tensor> results, const ExportRequest &request,
                                                       StateNameMap &names);

private:
  /// Records an op of the trace, an mlir::Operation, on this thread's tapes.
  void noteOnTapes(void *op, const std::source_location &where);

  struct Impl;
  class ControlOp;
  class Gradient;
  class Results;
  std::unique_ptr<Impl> impl_;
};

/// Writes functions under their names, with the states' current values; `metadata` is that of files of states, in JSON,
/// or empty.
void writePackage(const std::string &path,
                  const std::vector<std::pair<std::string, std::shared_ptr<const ExportedFunction>>> &functions,
                  const StateNameMap &states, const std::string &metadata);

/// Clears the compiler's in-memory cache of kernel objects.
void clearCompilerCaches();

} // namespace tressel::detail
