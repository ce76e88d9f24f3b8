// From a graph module to something that runs: the pipeline and the emission of code, strung together.
#pragma once

#include "codegen/ObjectCache.h"
#include "codegen/cuda/target/Code.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tressel/runtime/Blob.h"
#include "tressel/runtime/Decision.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/KernelHistory.h"
#include "tressel/runtime/MachineModel.h"
#include "tressel/runtime/MemoryBudget.h"
#include "tressel/runtime/Schedule.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tressel::passes {
class KernelProvider;
}
namespace tressel::runtime {
class Machine;
}
namespace tressel::codegen::cuda {
class Tunings;
}

namespace tressel::codegen {

class Target;

/// What the compiler gives the runtime: everything a package holds. Import-free images, no pointers into the compiler.
struct CompiledProgram {
  runtime::Schedule schedule;
  std::vector<std::byte> image;   ///< linked, import-free ELF shared object with the generated kernels; may be empty
  runtime::Blob constants;        ///< the weights
  std::string cpuLevel;           ///< what the image needs: "baseline", "v3", "v4"
  std::vector<runtime::GpuCode> gpu;    ///< of the kernels that accelerators run, for each of CompileOptions::gpus
  runtime::KernelLookup kernels;        ///< where kernels for GPUs are emulated: those (runtime::ProgramCode)

  /// Verified and mapped, for this process. Takes the schedule and the code for GPUs.
  std::shared_ptr<const runtime::Executable> load();
};

struct PassTiming {
  std::string pass;
  double seconds;
};
struct CompileReport {
  std::vector<PassTiming> timings; ///< passes, then "codegen", "link", "export"
  int numKernels = 0, numLibraryKernels = 0;
  /// Of the kernels with code in the image: compiled now, found in a cache, equal to another one of the program.
  int numCompiled = 0, numCached = 0, numShared = 0;
  /// Generated for accelerators; not part of the other numbers. Of these, for the first architecture: to PTX now, found
  /// in a cache.
  int numGpuKernels = 0, numGpuCompiled = 0, numGpuCached = 0;
  int numTuned = 0, numTunedFaster = 0; ///< of these measured now, and cut in another way since
  int numMeasured = 0, numKnown = 0; ///< kernels timed, where CompileOptions::measure asks for it, and timed before
  int numFailed = 0;                 ///< of these: they cannot be compiled or run alone, and are chosen by what is predicted
};

struct CompileOptions {
  std::string cpu = "native";      ///< "baseline", "v3", "v4" or "native"
  /// What the program is placed on; it outlives the call. Null, or without accelerators: this host alone.
  const runtime::MachineModel *machine = nullptr;
  /// Those of the machine that compute; empty: all. What only the host can do, it does all the same.
  std::vector<runtime::DeviceRef> devices;
  /// Architectures ("sm_90", "sm_90a") for which the machine's accelerators get kernels of their own; how they are cut
  /// is decided for the first. Accelerators then compute whatever they can, unless `devices` has the host. Empty: they
  /// are simulated, with the host's kernels.
  std::vector<std::string> gpus;
  /// Run these kernels on the CPU (codegen/cuda/emulate/Emulate.h), on simulated accelerators, instead of making code for a GPU.
  bool emulateGpu = false;
  /// How kernels for GPUs are cut where that was measured (cuda/tuning/Tunings.h): what is set for the process counts
  /// (cuda::setTunings). With a machine here, whose GPU is of the first of `gpus`, those kernels of the program that
  /// these tunings do not have are measured there first, which takes about a second each, and added.
  std::shared_ptr<runtime::Machine> tuneOn;
  std::shared_ptr<cuda::Tunings> tunings;
  bool gpuLibraries = false;       ///< cuBLASLt and cuDNN bid for GPUs too
  const CodeArchive *gpuArchive = nullptr; ///< PTX that need not be compiled; null: none
  /// Receives the PTX of each kernel for GPUs, for an archive. Null: nothing does.
  std::function<void(const CacheKey &, const Code &)> gpuCodeUsed;
  bool assembleGpu = true;         ///< also make machine code of PTX, where there is an assembler
  /// Measured times of kernels, which plans go by instead of the machine's figures. Null: none. Ignored if
  /// `deterministic`: the same program then has the same plan whatever was measured.
  std::shared_ptr<const runtime::KernelHistory> history;
  bool kernelKeys = false;         ///< fill KernelDesc::key, for recording; with `history` they are there anyway
  bool allowLibrary = true;        ///< may use oneDNN; false for self-contained packages
  bool verifyEach = false;         ///< interpret before and after each pass, name the one that changed the result
  bool deterministic = false;
  /// To run elsewhere: units of work suit all processors of this machine, whatever threads this process has.
  bool forPackage = false;
  MemoryBudget memoryBudget;       ///< of intermediate values on the host
  int64_t bucketBytes = 25 << 20;  ///< as PipelineOptions::bucketBytes
  std::optional<DType> autocast;   ///< f16 or bf16: products of f32 are computed in it. Throws Error for another type
  bool winograd = false;           ///< 3 x 3 convolutions may use Winograd's method: faster, and less exact (some 1e-4 of the largest)
  bool keepSubnormals = false;     ///< arithmetic on f32 keeps subnormal numbers, which can be a hundred times slower (docs/numbers.md)
  bool quickCode = false;          ///< machine code made quickly rather than well: for tests of many programs
  /// Where several providers bid for a contraction or convolution of fixed sizes, their kernels are timed on this machine
  /// (codegen/Measure.h), which takes 20 to 100 ms each the first time. The cache keeps the times.
  bool measure = false;
  /// A provider that runs whatever it can, others only the rest: for measuring its kernels. Empty: the cheapest bid wins.
  std::string prefer;
  ObjectCache *cache = ObjectCache::ofUser(); ///< of kernels, from one process to the next; null: none
  std::vector<std::string> disabledPasses;
  /// "graph", "placed", "schedule", "llvm", "asm" or "ptx" (for the first of `gpus`): stop there and hand the text to `sink`; empty: all the way.
  std::string emit;
  std::function<void(std::string)> sink;
  CompileReport *report = nullptr; ///< filled if not null
  runtime::Decisions *decisions = nullptr; ///< what the passes chose and why is appended, if not null
  bool scheduleOnly = false;              ///< no machine code and no constants: for predictions
  /// Called when a step begins, and within "codegen" for each kernel, from any of the pool's threads but one at a time. `all` is 0
  /// where there is nothing to count.
  std::function<void(const std::string &step, int done, int all)> progress;
  /// As PipelineOptions::afterPass.
  std::function<llvm::LogicalResult(mlir::ModuleOp, llvm::StringRef pass)> afterPass;
  std::string name = "main";       ///< in the names of files that are dumped
  /// Receives what there is after each stage on the way: "graph.mlir", "schedule.mlir", "kernels.ll". Null: written to
  /// the folder TRESSEL_DUMP_DIR, if the environment has it, as NNN-<name>.<stage>.
  std::function<void(const std::string &stage, const std::string &text)> dump;
};

/// The providers that bid on a machine, in order of preference.
class ProviderSet {
public:
  /// `gpu`: the architecture that accelerators have; empty: none of their own. `gpuLibraries`: cuBLASLt and cuDNN bid as well.
  ProviderSet(const std::string &cpu, bool allowLibrary, bool quickCode = false, bool winograd = false, const std::string &gpu = {},
              bool gpuLibraries = false);
  ~ProviderSet();
  std::vector<const passes::KernelProvider *> list;
  std::vector<const passes::KernelProvider *> hostList; ///< with an architecture: those for the host, which `list` then lacks
  const Target &target() const { return *target_; }

private:
  std::unique_ptr<const Target> target_;
  std::vector<std::unique_ptr<passes::KernelProvider>> owned_;
};

/// Consumes `module` (a func.func @main in the graph dialect). Throws Error for the user's mistakes (an op that no
/// kernel can run, with its line) and InternalError for bugs. Thread-safe: one MLIRContext per concurrent call.
CompiledProgram compile(mlir::ModuleOp module, const CompileOptions &options = {});

/// Forgets the objects of kernels that this process compiled before: for measuring compilation from nothing. What is on disk stays.
void clearCaches();

} // namespace tressel::codegen
