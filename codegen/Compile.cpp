#include "codegen/Compile.h"

#include "codegen/CostModel.h"
#include "codegen/CustomProvider.h"
#include "codegen/Link.h"
#include "codegen/Measure.h"
#include "codegen/bitcode/Provider.h"
#include "codegen/builtin/Provider.h"
#include "codegen/cpu/CompileKernels.h"
#include "codegen/cpu/GeneratedProvider.h"
#include "codegen/cpu/KernelSource.h"
#include "codegen/cpu/LoopCost.h"
#include "codegen/cuda/Library.h"
#include "codegen/cuda/Provider.h"
#include "codegen/cuda/loops/KernelSource.h"
#include "codegen/cuda/tuning/Tune.h"
#include "codegen/onednn/Provider.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "ir/op/Num.h"
#include "ir/sched/Export.h"
#include "passes/Pipeline.h"
#include "passes/cluster/Traffic.h"
#include "runtime/types/Clock.h"
#include "tressel/runtime/CustomKernels.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executable.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/Shutdown.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

namespace tressel::codegen {
using runtime::secondsSince;

namespace {

/// Collects the diagnostics of a context while it lives; the first error becomes what is thrown.
class Errors {
public:
  explicit Errors(mlir::MLIRContext *context) : handler(context, [this](mlir::Diagnostic &d) {
    if (d.getSeverity() == mlir::DiagnosticSeverity::Error && details.message.empty()) {
      details.message = d.str();
      graph::FileLine at = graph::fileLineOf(d.getLocation());
      if (!at.file.empty())
        details.where = {internName(at.file), at.line};
    }
  }) {}
  [[noreturn]] void raise(const char *during) {
    if (details.message.empty())
      throw InternalError(std::string(during) + " failed without a message");
    throw Error(details);
  }

private:
  Error::Details details;
  mlir::ScopedDiagnosticHandler handler;
};

std::string print(mlir::ModuleOp module, bool withLines = false) {
  std::string text;
  llvm::raw_string_ostream out(text);
  mlir::OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(16).elideLargeResourceString(64);
  if (withLines)
    flags.enableDebugInfo();
  module.print(out, flags);
  return text + "\n";
}

/// CompileOptions::dump, or files in TRESSEL_DUMP_DIR, or nothing.
class Dump {
public:
  explicit Dump(const CompileOptions &options) {
    static const char *folder = std::getenv("TRESSEL_DUMP_DIR");
    if (options.dump) {
      write = options.dump;
    } else if (folder && *folder) {
      static std::atomic<int> count{0};
      std::string name = options.name;
      for (char &c : name)
        if (c == '/')
          c = '_';
      char number[16];
      std::snprintf(number, sizeof number, "%04d-", ++count);
      write = [prefix = std::string(folder) + "/" + number + name + "."](auto &stage, const std::string &text) {
        std::error_code ec;
        std::filesystem::create_directories(std::filesystem::path(prefix).parent_path(), ec);
        runtime::writeFile(prefix + stage, std::as_bytes(std::span(text)));
      };
    }
  }
  template <typename Text> void operator()(const char *stage, Text text) const {
    if (write)
      write(stage, text());
  }

private:
  std::function<void(const std::string &, const std::string &)> write;
};

/// The pass after which a stage of `emit` stands; null: the whole pipeline.
const char *lastPassOf(const CompileOptions &options) {
  if (options.emit == "graph")
    return "simplify";
  if (options.emit == "placed")
    return options.machine && options.machine->devices.size() > 1 ? "split-producers" : "form-clusters";
  return nullptr;
}

/// What plans go by: nothing that was measured, if the same plan is to come out everywhere.
std::shared_ptr<const runtime::KernelHistory> historyFor(const CompileOptions &options) {
  if (options.deterministic)
    return nullptr;
  return options.history ? options.history : options.machine ? options.machine->history : nullptr;
}

/// The machine as this compilation sees it: with the history that counts, and the architecture its accelerators have.
const runtime::MachineModel *machineFor(const CompileOptions &options, runtime::MachineModel &own) {
  if (!options.machine || (options.machine->history == historyFor(options) && options.gpus.empty()))
    return options.machine;
  own = *options.machine;
  own.history = historyFor(options);
  if (!options.gpus.empty())
    for (runtime::DeviceModel &device : own.devices)
      if (device.device.kind == runtime::DeviceKind::Gpu)
        device.architecture = options.gpus.front();
  return &own;
}

/// Whether the kernel's code is part of the image: generated, or linked from what was compiled ahead.
bool isInImage(graph::KernelOp kernel) { return kernel.getTarget() == graph::KernelTarget::Host; }

} // namespace

ProviderSet::ProviderSet(const std::string &cpu, bool allowLibrary, bool quickCode, bool winograd, const std::string &gpu,
                         bool gpuLibraries)
    : target_(std::make_unique<Target>(cpu, quickCode)) {
  // Own kernels first: of equal bids the first wins.
  owned_.push_back(makeGeneratedProvider(*target_));
  owned_.push_back(makeBitcodeProvider(target_->level()));
  owned_.push_back(makeCustomProvider());
  owned_.push_back(kernels::makeProvider());
  if (winograd)
    owned_.push_back(kernels::makeWinogradProvider());
  if (allowLibrary && onednn::isThere())
    owned_.push_back(onednn::makeProvider());
  for (const auto &provider : owned_)
    list.push_back(provider.get());
  if (gpu.empty())
    return;
  std::swap(list, hostList);
  const cuda::Arch &arch = cuda::findArch(gpu);
  owned_.push_back(cuda::makeLoopProvider(arch));
  list.push_back(owned_.back().get());
  owned_.push_back(cuda::makeRootProvider(arch));
  list.push_back(owned_.back().get());
  if (gpuLibraries)
    for (auto make : {cuda::makeCublasProvider, cuda::makeCudnnProvider}) {
      owned_.push_back(make(arch));
      list.push_back(owned_.back().get());
    }
  for (const passes::KernelProvider *provider : hostList)
    if (provider->name() == runtime::kCustomProvider) // of custom ops, which the host runs
      list.push_back(provider);
}
ProviderSet::~ProviderSet() = default;

/// What a kernel predicted to take so long counts as, in the figures that plans are made from: few blocks, waits for memory and the like do not show in
/// its arithmetic. On the architecture's typical card it then takes what was predicted. `type`: of its first operand.
static Size flopsThatTake(double seconds, const runtime::KernelDesc &kernel, DType type,
                          const runtime::DeviceModel &card) {
  if (seconds <= 1.05 * runtime::workSeconds(card, runtime::workOf(kernel, type)))
    return kernel.flops;
  return static_cast<int64_t>(std::min(seconds * card.flops(type) * card.efficiencyOf(kernel.provider), 1e18));
}

namespace {

/// One compilation: the pipeline over the module, then its kernels to code, then the schedule that names them.
class Compilation {
public:
  Compilation(mlir::ModuleOp module, const CompileOptions &options, const Target &target, CompileReport &report)
      : module(module), options(options), target(target), report(report), errors(module.getContext()), dump(options) {}

  CompiledProgram run(const passes::Providers &providers, const passes::Providers &hostProviders) {
    dump("graph.mlir", [&] { return print(module, /*withLines=*/true); });
    runPasses(providers, hostProviders);
    if (options.emit == "graph" || options.emit == "placed" || options.emit == "schedule")
      return shown([&] { return print(module); });
    started = std::chrono::steady_clock::now();
    collectKernels();
    if (!options.emit.empty())
      return shown([&] { return kernelText(); });
    compileHostKernels();
    compileGpuKernels();
    link();
    exportProgram();
    return std::move(program);
  }

private:
  void progress(const char *step, int done, int all) const {
    if (options.progress)
      options.progress(step, done, all);
  }
  void end(const char *step) {
    report.timings.push_back({step, secondsSince(started)});
    started = std::chrono::steady_clock::now();
  }
  /// What is asked for is text, and no program.
  CompiledProgram shown(llvm::function_ref<std::string()> text) const {
    if (options.sink)
      options.sink(text());
    return {};
  }

  void runPasses(const passes::Providers &providers, const passes::Providers &hostProviders) {
    passes::PipelineOptions pipeline;
    pipeline.providers = providers;
    pipeline.hostProviders = hostProviders;
    runtime::MachineModel own;
    pipeline.machine = machineFor(options, own);
    pipeline.devices = options.devices;
    pipeline.memoryBudget = options.memoryBudget;
    pipeline.autocast = options.autocast;
    pipeline.bucketBytes = options.bucketBytes;
    pipeline.afterPass = options.afterPass;
    if (options.progress)
      pipeline.beforePass = [&](llvm::StringRef pass) { options.progress(pass.str(), 0, 0); };
    pipeline.disabled = options.disabledPasses;
    pipeline.verifyEach = options.verifyEach;
    std::vector<passes::PassTime> times;
    pipeline.timings = &times;
    pipeline.decisions = options.decisions;
    if (const char *last = lastPassOf(options))
      pipeline.stopAfter = last;
    if (failed(passes::runPipeline(module, pipeline)))
      errors.raise("compilation");
    dump("schedule.mlir", [&] { return print(module, /*withLines=*/true); });
    for (const passes::PassTime &t : times)
      report.timings.push_back({t.pass, t.seconds});
  }

  //--- Kernels ------------------------------------------------------------------------------------------------------
  const cuda::Arch &arch() const { return cuda::findArch(options.gpus.front()); }

  void tuneKernels() {
    if (!options.tuneOn)
      return;
    llvm::SmallVector<graph::KernelOp> kernels;
    for (graph::KernelOp kernel : module.getOps<graph::KernelOp>())
      if (kernel.isForGpu())
        kernels.push_back(kernel);
    const cuda::TuneReport tuned = cuda::tune(kernels, arch(), *options.tuneOn, *options.tunings,
                                              [&](int done, int all) { progress("tuning", done, all); });
    report.numTuned = tuned.measured, report.numTunedFaster = tuned.faster;
    end("tuning");
  }
  /// What is to be generated, for the host and for GPUs.
  void collectKernels() {
    tuneKernels();
    for (graph::KernelOp kernel : module.getOps<graph::KernelOp>()) {
      if (kernel.isForGpu()) {
        cuda::MadeKernel made = cuda::makeKernel(kernel, arch());
        if (!made.library.empty())
          gpuLibraries[made.kernel.symbol] = std::move(made.library);
        gpuKernels.push_back(std::move(made.kernel));
        ++report.numGpuKernels;
        continue;
      }
      if (isInImage(kernel))
        ++report.numKernels;
      else
        ++report.numLibraryKernels;
      if (isInImage(kernel) || kernel.getRootOps())
        sources.push_back(makeKernelSource(kernel, target));
      if (isInImage(kernel))
        readAgain[sources.back().signature.symbol] = passes::bytesReadAgain(kernel.getBody().front());
    }
    if (options.emit == "ptx" && gpuKernels.empty())
      throw Error({.message = "no kernel of the program runs on a GPU, so there is no PTX",
                   .hint = "name a machine with one and its architecture (--device cuda --gpu sm_90)"});
    dump("kernels.ll", [&] { return hostText(/*assembly=*/false) + gpuText(/*ptx=*/false); });
  }

  std::string hostText(bool assembly) const { return printKernels(sources, target, assembly); }
  std::string gpuText(bool ptx) const {
    if (gpuKernels.empty())
      return {};
    return ptx ? cuda::compileKernels(gpuKernels, arch(), /*assembled=*/false).ptx : cuda::printKernels(gpuKernels, arch());
  }
  std::string kernelText() const {
    const bool isAssembly = options.emit == "asm";
    return options.emit == "ptx" ? gpuText(/*ptx=*/true) : hostText(isAssembly) + gpuText(isAssembly);
  }

  void compileHostKernels() {
    KernelCodeStats stats;
    if (!options.scheduleOnly)
      code = compileKernels(sources, target, options.cache, &stats, [&](int done, int all) { progress("codegen", done, all); });
    report.numCompiled = stats.compiled, report.numCached = stats.cached, report.numShared = stats.shared;
    end("codegen");
  }

  void compileGpuKernels() {
    if (gpuKernels.empty() || options.scheduleOnly)
      return;
    progress("gpu", 0, 0);
    if (options.emulateGpu) {
      program.kernels = cuda::emulatedKernels(gpuKernels, arch());
    } else {
      for (const std::string &gpu : options.gpus) {
        KernelCodeStats stats;
        program.gpu.push_back(cuda::compileKernels(gpuKernels, cuda::findArch(gpu), options.assembleGpu,
                                                   {options.gpuArchive, options.cache, options.gpuCodeUsed}, &stats));
        if (program.gpu.size() == 1)
          report.numGpuCompiled = stats.compiled, report.numGpuCached = stats.cached;
      }
      dump("kernels.ptx", [&] { return program.gpu.front().ptx; });
    }
    end("gpu");
  }

  void link() {
    if (!code.objects.empty()) {
      progress("link", 0, 0);
      program.image = linkImage(code);
    }
    end("link");
  }

  //--- The schedule -------------------------------------------------------------------------------------------------
  void exportProgram() {
    auto programs = module.getOps<sched::ProgramOp>();
    if (programs.empty())
      throw InternalError("the pipeline left no schedule");
    sched::ProgramOp scheduled = *programs.begin();
    program.schedule = sched::exportSchedule(scheduled);
    completeKernels();
    if (!options.scheduleOnly)
      program.constants = sched::exportConstants(scheduled);
    program.cpuLevel = std::string(runtime::nameOf(target.level()));
    end("export");
  }

  /// What only code generation knows of the schedule's kernels.
  void completeKernels() {
    std::map<std::string, const KernelSource *> bySymbol;
    for (const KernelSource &s : sources)
      bySymbol[s.signature.symbol] = &s;
    std::map<std::string, const cuda::Kernel *> gpuBySymbol;
    for (const cuda::Kernel &kernel : gpuKernels)
      gpuBySymbol[kernel.symbol] = &kernel;
    const std::vector<DType> firstTypes = gpuKernels.empty() ? std::vector<DType>() : typesOfFirstOperands();
    const runtime::MachineModel typical = gpuKernels.empty() ? runtime::MachineModel() : runtime::machineOfArchitecture(options.gpus.front());
    const bool needsKeys = options.kernelKeys || historyFor(options);
    for (auto [number, desc] : llvm::enumerate(program.schedule.kernels)) {
      if (auto kernel = needsKeys ? module.lookupSymbol<graph::KernelOp>(desc.symbol) : graph::KernelOp())
        desc.key = graph::keyOf(kernel);
      if (auto gpu = gpuBySymbol.find(desc.symbol); gpu != gpuBySymbol.end()) {
        const cuda::Kernel &kernel = *gpu->second; // its code decides the number of blocks
        desc.provider = cuda::kCudaProvider, desc.target = runtime::KernelTarget::Gpu;
        desc.epilogue.clear(); // is part of it
        desc.range = kernel.blocks, desc.grain = 1;
        desc.flops = flopsThatTake(kernel.seconds, desc, firstTypes[number], typical.devices.back());
        desc.floats = runtime::FloatMode::Any; // an instruction's own, which the emulation models
        const std::string &library = gpuLibraries[desc.symbol];
        if (!library.empty())
          desc.target = runtime::KernelTarget::GpuLibrary;
        desc.params = cuda::launchParams(kernel, library);
        continue;
      }
      if (desc.provider == kBitcodeProvider) { // to the runtime all kernels of the image are alike
        desc.provider = "generated";
        desc.params.clear();
        continue;
      }
      if (auto epilogue = desc.epilogue.empty() ? bySymbol.end() : bySymbol.find(desc.epilogue); epilogue != bySymbol.end())
        desc.epilogueFloats = epilogue->second->plan.floats();
      auto source = bySymbol.find(desc.symbol);
      if (desc.target != runtime::KernelTarget::Host || source == bySymbol.end())
        continue;
      const KernelSource &s = *source->second; // the loop schedule knows its units best
      if (!s.parts.empty()) {
        desc.floats = s.parts.front().plan.floats(); // that of all of them
        desc.range = desc.flops = desc.bytes = 0, desc.grain = 1;
        for (const ScheduledPart &part : s.parts)
          desc.range += part.units(), desc.flops += flopsOf(part.plan, part.schedule), desc.bytes += part.plan.bytes();
        desc.bytes += readAgain[desc.symbol];
        continue;
      }
      desc.floats = s.plan.floats();
      desc.range = s.schedule.range, desc.grain = s.schedule.grain;
      desc.flops = flopsOf(s.plan, s.schedule), desc.bytes = s.plan.bytes() + readAgain[desc.symbol];
    }
  }
  /// By kernel.
  std::vector<DType> typesOfFirstOperands() const {
    std::vector<DType> types(program.schedule.kernels.size(), f32);
    const runtime::CommandList &step = program.schedule.step;
    for (const runtime::Command &c : step.commands)
      if (c.kind == runtime::CommandKind::Launch && c.numOperands)
        types[c.kernel] = program.schedule.buffers[step.operands[c.firstOperand].buffer].type.dtype;
    return types;
  }

  mlir::ModuleOp module;
  const CompileOptions &options;
  const Target &target;
  CompileReport &report;
  Errors errors;
  const Dump dump;
  std::chrono::steady_clock::time_point started;
  std::vector<KernelSource> sources;
  std::map<std::string, int64_t> readAgain; ///< bytes, by symbol (bytesReadAgain)
  std::vector<cuda::Kernel> gpuKernels;
  std::map<std::string, std::string> gpuLibraries; ///< calls that some of them stand in for
  KernelCode code;
  CompiledProgram program;
};

CompiledProgram compileFor(mlir::ModuleOp module, const CompileOptions &options, const Target &target,
                           const passes::Providers &providers, CompileReport &report,
                           const passes::Providers &hostProviders = {}) {
  return Compilation(module, options, target, report).run(providers, hostProviders);
}

} // namespace

std::shared_ptr<const runtime::Executable> CompiledProgram::load() {
  return runtime::Executable::create(std::move(schedule), image, constants.joined(),
                                     {.kernels = kernels, .gpu = gpu.empty() ? nullptr : std::make_shared<std::vector<runtime::GpuCode>>(std::move(gpu))});
}

/// Numbers that no kernel takes a shortcut for.
static op::HostTensor someNumbers(const TensorType &type) {
  op::HostTensor tensor = op::HostTensor::allocate(type);
  const int64_t count = type.shape.numElements();
  auto fill = [&](auto *data, auto value) { std::fill_n(data, count, value); };
  switch (type.dtype) {
  case DType::f64:
    fill(tensor.as<double>(), 0.5);
    break;
  case DType::f32:
    fill(tensor.as<float>(), 0.5f);
    break;
  case DType::f16:
    fill(tensor.as<uint16_t>(), uint16_t(0x3800));
    break;
  case DType::bf16:
    fill(tensor.as<uint16_t>(), uint16_t(0x3f00));
    break;
  default: // odd, and not 0
    fill(tensor.as<uint8_t>(), uint8_t(1));
  }
  return tensor;
}

/// The fastest of some runs: what else the machine does only ever adds.
static double secondsOfStep(CompiledProgram program) {
  constexpr double enough = 10e-3;
  constexpr int mostRuns = 200, leastRuns = 3;
  const runtime::Schedule schedule = program.schedule;
  runtime::Context context(program.load());
  std::vector<op::HostTensor> tensors;
  std::vector<void *> states, outputs;
  std::vector<const void *> inputs;
  auto data = [&](const TensorType &type) { return static_cast<void *>(tensors.emplace_back(someNumbers(type)).data.get()); };
  for (const runtime::StateDesc &state : schedule.states)
    if (state.kind != runtime::StateKind::Derived)
      states.push_back(data(state.type));
  for (const runtime::ValueDesc &input : schedule.inputs)
    inputs.push_back(data(input.type));
  for (const runtime::ValueDesc &output : schedule.outputs)
    outputs.push_back(data(output.type));
  context.bindStates(states);
  context.run(inputs, outputs); // packs, and touches all memory
  double best = std::numeric_limits<double>::infinity();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < leastRuns || (i < mostRuns && secondsSince(start) < enough); ++i) {
    const auto begin = std::chrono::steady_clock::now();
    context.run(inputs, outputs);
    best = std::min(best, secondsSince(begin));
  }
  return best;
}

CompiledProgram compile(mlir::ModuleOp module, const CompileOptions &options) {
  // An architecture whose code runs on its own cards alone decides how kernels are cut: the others have forms of all.
  const auto isSpecific = [](const std::string &gpu) { return cuda::findArch(gpu).isSpecific(); };
  if (!std::ranges::is_partitioned(options.gpus, isSpecific)) {
    CompileOptions ordered = options;
    ordered.gpus.clear();
    for (const bool specific : {true, false})
      std::ranges::copy_if(options.gpus, std::back_inserter(ordered.gpus),
                           [&](const std::string &gpu) { return isSpecific(gpu) == specific; });
    return compile(module, ordered);
  }
  const runtime::StaticsUse use;
  const CostScope costs(options.deterministic, options.forPackage);
  if (options.deterministic)
    module->setAttr(graph::kDeterministicAttr, mlir::UnitAttr::get(module.getContext()));
  if (options.keepSubnormals)
    module->setAttr(graph::kKeepSubnormalsAttr, mlir::UnitAttr::get(module.getContext()));
  const op::KeepSubnormals folding(graph::keepsSubnormals(module)); // what passes evaluate
  static const std::set<std::string> stages{"", "graph", "placed", "schedule", "llvm", "asm", "ptx"};
  if (!stages.count(options.emit))
    throw Error("there is no stage '" + options.emit + "' to print; the stages are graph, placed, schedule, llvm, asm, ptx");
  if (options.autocast && *options.autocast != f16 && *options.autocast != bf16)
    throw Error("products cannot be computed in " + std::string(nameOf(*options.autocast)) +
                "; the types of half the width are f16 and bf16");
  const ProviderSet providers(options.cpu, options.allowLibrary, options.quickCode, options.winograd,
                              options.gpus.empty() ? std::string() : options.gpus.front(),
                              options.gpuLibraries);
  const Target &target = providers.target();
  CompileReport report;
  CompiledProgram program;
  for (const std::string &gpu : options.gpus)
    cuda::findArch(gpu); // throws
  std::vector<std::unique_ptr<passes::KernelProvider>> scaled;
  if (!options.prefer.empty()) {
    passes::Providers list;
    for (const passes::KernelProvider *provider : providers.list) {
      constexpr double lastResort = 1e6;
      const double factor = provider->name() == options.prefer ? 1 : lastResort;
      scaled.push_back(makeScaled(*provider, [factor](const auto &, auto) { return factor; }));
      list.push_back(scaled.back().get());
    }
    program = compileFor(module, options, target, list, report, providers.hostList);
  } else if (!options.measure || !options.gpus.empty()) {
    program = compileFor(module, options, target, providers.list, report, providers.hostList);
  } else {
    if (target.level() != runtime::hostCpuLevel()) // built-in kernels would run at the CPU's own level
      throw Error("kernels for '" + options.cpu + "' cannot be measured here: this CPU's are '" +
                  std::string(runtime::nameOf(runtime::hostCpuLevel())) + "'; measure where the program will run");
    CompileOptions part;
    part.cpu = options.cpu, part.quickCode = options.quickCode, part.cache = options.cache;
    part.dump = [](const std::string &, const std::string &) {};
    auto timer = [&](mlir::ModuleOp root, const passes::KernelProvider &provider) -> std::optional<double> {
      CompileReport ignored;
      try {
        return secondsOfStep(compileFor(root, part, target, {&provider}, ignored));
      } catch (const Error &) { // it cannot run by itself: then what is predicted counts
        return std::nullopt;
      }
    };
    Measurements measurements(providers.list, timer, options.cache, runtime::hostName());
    std::vector<std::unique_ptr<passes::KernelProvider>> measured;
    passes::Providers list;
    for (const passes::KernelProvider *provider : providers.list) {
      measured.push_back(makeMeasured(*provider, measurements));
      list.push_back(measured.back().get());
    }
    program = compileFor(module, options, target, list, report);
    report.numMeasured = measurements.numMeasured();
    report.numKnown = measurements.numFound();
    report.numFailed = measurements.numFailed();
  }
  if (options.report)
    *options.report = report;
  return program;
}

void clearCaches() {
  clearCodeCache();
  Measurements::clear();
}

} // namespace tressel::codegen
