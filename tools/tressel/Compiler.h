// The compiler as the command line sees it. It lives in a shared library of its own, which is loaded when a command
// needs it: `tressel run x.tsl` starts without LLVM and MLIR.
#pragma once

#include "ir/op/OpInfo.h"
#include "tressel/runtime/Blob.h"
#include "tressel/runtime/Decision.h"
#include "tressel/runtime/Device.h"
#include "tressel/runtime/GpuCode.h"
#include "tressel/runtime/KernelHistory.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/MemoryBudget.h"
#include "tressel/runtime/Schedule.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tressel::tool {

/// An input or output as a model file declares it; sizes that it leaves open have a name.
struct Port {
  std::string name;
  DType dtype = f32;
  std::vector<Size> sizes; ///< kDynamic where `dimNames` has the name
  std::vector<std::string> dimNames;
  std::string home = {}; ///< the device where a package's state lies, if that is not the host
};
struct UnsupportedOp {
  std::string op, node, why;
  int64_t opset = 0;
};
struct ModelInfo {
  std::string format;   ///< "onnx" or "mlir"
  std::string producer; ///< may be empty
  std::map<std::string, int64_t> opsets;
  std::vector<Port> inputs, outputs, states;
  std::map<std::string, int> opCounts;
  std::vector<UnsupportedOp> unsupported;
  std::vector<UnsupportedOp> malformed; ///< nodes with an input that their op does not take; where asked for
  int64_t weightBytes = 0;
  std::string mesh; ///< of the ranks that the model is for, "data=4, model=2"; empty: a single device
};

struct CompileRequest {
  std::string path;
  /// Sizes of named dimensions, or their ranges; one program serves a whole range.
  std::map<std::string, std::pair<int64_t, int64_t>> dims;
  bool keepDynamic = false; ///< named dimensions that are not in `dims` stay dynamic where the model allows it
  std::string cpu = "native";
  bool allowLibrary = false;
  bool gpuLibraries = false; ///< as CompileOptions::gpuLibraries
  bool deterministic = false;
  bool forPackage = false; ///< as CompileOptions::forPackage
  bool verifyEach = false;
  bool stripLocations = false;
  bool useCache = true; ///< kernels kept on disk
  bool measure = false, winograd = false, keepSubnormals = false; ///< as in CompileOptions
  MemoryBudget memoryBudget;                                      ///< as in CompileOptions
  std::optional<DType> autocast;                                  ///< as in CompileOptions
  bool explain = false; ///< make the schedule without code, and keep the passes' decisions
  /// Make the program of one rank of this mesh, "data=64"; its first axis cuts inputs along their first dimension.
  /// Empty: no mesh.
  std::string ranks;
  int64_t compare =
      0; ///< compare ways to split the program over so many accelerators instead (codegen::compareLayouts); 0: do not
  const runtime::MachineModel *machine = nullptr; ///< as CompileOptions::machine
  std::vector<std::string> gpus;                  ///< as CompileOptions::gpus
  bool emulateGpu = false;                        ///< as CompileOptions::emulateGpu
  std::string tuning;                             ///< a file of GPU tunings; empty: those of the environment
  std::shared_ptr<runtime::Machine>
      tuneOn; ///< as CompileOptions::tuneOn: the file is made if there is none, and written
  std::shared_ptr<const runtime::KernelHistory> history; ///< as CompileOptions::history
  bool kernelKeys = false;                               ///< as CompileOptions::kernelKeys
  std::vector<std::string> disabledPasses;
  std::string emit;                      ///< as CompileOptions::emit
  std::function<void(std::string)> sink; ///< receives the text of `emit`
  std::function<void(const std::string &step, int done, int all)> progress; ///< as CompileOptions::progress
};
struct AssumedDim {
  std::string name;
  int64_t size;
  std::string why; ///< why it could not stay dynamic; empty where it was given a size
};
/// What the runtime needs, and notes for the user.
struct CompiledModel {
  runtime::Schedule schedule;
  std::vector<std::byte> image;
  runtime::Blob constants;
  std::string cpuLevel;
  std::vector<runtime::GpuCode> gpu;
  runtime::KernelLookup kernels; ///< as CompiledProgram::kernels
  std::vector<AssumedDim> assumed; ///< dimensions without a given size
  std::vector<std::string> notes;  ///< on what the model asks for and this compilation leaves out
  std::string comparison;          ///< LayoutComparison::text, where that was asked for; then there is no program
  std::vector<std::pair<std::string, double>> timings; ///< "import", then as CompileReport
  int numKernels = 0, numLibraryKernels = 0, numCompiled = 0, numCached = 0, numShared = 0, numMeasured = 0,
      numKnown = 0, numFailed = 0, numGpuKernels = 0, numGpuCompiled = 0, numGpuCached = 0, numTuned = 0,
      numTunedFaster = 0;
  runtime::Decisions decisions; ///< of CompileRequest::explain
  std::string noCache;          ///< why kernels could not be written to the cache on disk
};

struct BisectRequest {
  CompileRequest model; ///< path, dims, cpu, allowLibrary
  std::shared_ptr<runtime::Machine> machine; ///< what the program runs on; null: the processor
  /// The value of an input or state of @main.
  std::function<op::HostTensor(const std::string &name, const TensorType &type)> value;
  std::optional<double> rtol, atol; ///< as codegen::BisectOptions
  std::function<void(const std::string &)> progress;
};
/// codegen::BisectReport, in types that this side of the library has.
struct BisectOutcome {
  bool differs = false;
  std::string verdict; ///< one line or more, for people
  std::string reproducer;
  std::vector<op::HostTensor> inputs; ///< of the reproducer
};

/// The cache of kernels on disk. `folder` is empty where there is none, and `problem` says why.
struct CacheInfo {
  std::string folder, problem;
  int64_t entries = 0, bytes = 0, limit = 0, hits = 0, misses = 0;
};
enum class CacheAction { Info, Verify, Clear };

class CompilerLibrary {
public:
  virtual ~CompilerLibrary() = default;
  /// An error message for the names of passes that a request disables; empty if all are known.
  virtual std::string checkDisabledPasses(const std::vector<std::string> &names) = 0;
  /// Throws InputError for a file that is damaged. Ops that are not supported are listed, not thrown. With
  /// `checksInputs`, nodes with an input that their op does not take are listed too; that infers types through the
  /// whole model.
  virtual ModelInfo describe(const std::string &path, bool checksInputs) = 0;
  /// Throws tressel::Error. With `emit` other than empty the result holds no program.
  virtual CompiledModel compile(const CompileRequest &request) = 0;
  /// Draws the text that `emit` "graph" gave, in the format of the file's extension; nothing for other extensions.
  /// Throws InputError.
  virtual std::optional<std::string> draw(const std::string &graph, const std::string &file, const std::string &title) = 0;
  /// A package as a shared or a static library, which defines `symbol` and `symbol`_bytes.
  virtual std::vector<std::byte> library(const std::string &symbol, std::span<const std::byte> package, bool shared) = 0;
  /// Information on the cache. Verify: `damaged` counts the entries found damaged and deleted. Clear: it reports what
  /// was deleted.
  virtual CacheInfo cache(CacheAction action, int64_t &damaged) = 0;
  /// Looks for what makes the compiled program differ from the interpreted one. Throws tressel::Error.
  virtual BisectOutcome bisect(const BisectRequest &request) = 0;
};

/// Loads libtressel_compiler.so from beside this program. Also registers the library kernels, which packages made with
/// --allow-library need. Throws EnvironmentError.
CompilerLibrary &compiler();

/// The library's only symbol.
inline constexpr char kCompilerEntry[] = "tressel_compiler_library";
using CompilerEntry = CompilerLibrary *(*)();

} // namespace tressel::tool
