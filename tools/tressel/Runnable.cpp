#include "tools/tressel/Runnable.h"

#include "tools/tressel/Gpu.h"
#include "tools/tressel/Tool.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/Package.h"

#include <algorithm>

#include <chrono>
#include <unistd.h>

namespace tressel::tool {

CompiledModel compileWithProgress(CompileRequest request) {
  ProgressLine line;
  request.progress = [&](const std::string &step, int done, int all) {
    line.show("compiling: " + step +
              (all ? " " + std::to_string(done) + " of " + std::to_string(all) + " kernels" : std::string()));
  };
  CompiledModel program = compiler().compile(request);
  if (request.measure && !program.numMeasured && !program.numKnown)
    note("--measure: there is nothing to measure, no product or convolution of fixed sizes for which kernels of several providers are near "
         "each other");
  for (const std::string &text : program.notes)
    note(text);
  if (program.numFailed)
    note("--measure: " + std::to_string(program.numFailed) + " of " + std::to_string(program.numMeasured + program.numKnown) +
         " candidates could not be compiled or run by themselves; what is predicted counts for them");
  return program;
}

std::string kernelCounts(const CompiledModel &program) {
  return std::to_string(program.numKernels) + " kernels, " + std::to_string(program.numLibraryKernels) +
         " of a library; machine code (epilogues of libraries too): " + std::to_string(program.numCompiled) +
         " compiled, " + std::to_string(program.numCached) + " cached, " + std::to_string(program.numShared) +
         " equal to another" +
         (program.numGpuKernels
              ? "; " + std::to_string(program.numGpuKernels) + " for GPUs (" + std::to_string(program.numGpuCompiled) +
                    " compiled, " + std::to_string(program.numGpuCached) + " cached)"
              : "") +
         (program.numMeasured ? "; " + std::to_string(program.numMeasured) + " timed" : "") +
         (program.numKnown ? "; " + std::to_string(program.numKnown) + " timed before" : "");
}

Runnable compileModel(const CompileRequest &request) {
  auto start = std::chrono::steady_clock::now();
  CompiledModel program = compileWithProgress(request);
  checkMemory(program.schedule);
  Runnable ready;
  runtime::ProgramCode code{.kernels = program.kernels};
  if (!program.gpu.empty())
    code.gpu = std::make_shared<std::vector<runtime::GpuCode>>(std::move(program.gpu));
  ready.executable = runtime::Executable::create(std::move(program.schedule), program.image, program.constants.joined(), code);
  ready.assumed = std::move(program.assumed);
  ready.compileSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  detail("compiled in " + humanSeconds(ready.compileSeconds) + ": " + kernelCounts(program));
  if (!program.noCache.empty())
    detail("no cache of kernels: " + program.noCache);
  return ready;
}

/// Throws UsageError for one that the package does not have.
static void checkFunction(const runtime::Package &package, const std::string &path, const std::string &function) {
  const std::vector<std::string> functions = package.functions();
  if (function.empty() || std::ranges::find(functions, function) != functions.end())
    return;
  std::string known;
  for (const std::string &each : functions)
    known += (known.empty() ? "" : ", ") + each;
  throw UsageError(path + ": has no function '" + function + "'; it has: " + known);
}

Runnable loadPackage(const std::string &path, const runtime::Machine *machine, const std::string &function) {
  runtime::Package package = runtime::Package::open(path);
  checkFunction(package, path, function);
  checkMemory(package.schedule(function));
  runtime::ProgramCode gpuCode;
  if (runtime::needsGpu(package.schedule(function))) {
    std::vector<runtime::GpuCode> codes = runtime::gpuCodeOf(package);
    if (machine && runtime::runsGpuCode(*machine)) {
      gpuCode.gpu = std::make_shared<std::vector<runtime::GpuCode>>(std::move(codes));
    } else {
    std::string archs;
    for (const runtime::GpuCode &code : codes)
      archs += (archs.empty() ? "" : ", ") + code.arch;
    throw EnvironmentError(path + ": its kernels are for GPUs (" + archs + "), which --device cuda runs on a machine that has one; `tressel run` of the "
                           "model that it was made of, with --device sim:h100 --gpu sm_90, emulates them");
    }
  }
  for (const runtime::KernelDesc &kernel : package.schedule(function).kernels)
    if (kernel.target == runtime::KernelTarget::HostLibrary && !runtime::findKernelProvider(kernel.provider)) {
      try {
        compiler();                        // registers the kernels of libraries that it links
      } catch (const EnvironmentError &) { // a missing kernel is reported by name below
      }
      break;
    }
  Runnable ready;
  ready.executable = package.executable(function, runtime::hostCpuLevel(), gpuCode);
  ready.function = function;
  ready.package = std::move(package);
  return ready;
}

PackageInfo describePackage(const std::string &path, const std::string &function) {
  runtime::Package package = runtime::Package::open(path);
  checkFunction(package, path, function);
  package.check();
  PackageInfo info;
  info.schedule = package.schedule(function);
  info.functions = package.functions();
  for (runtime::CpuLevel level : package.levels())
    info.cpuLevels.emplace_back(runtime::nameOf(level));
  info.weightBytes = package.constantBytes();
  info.gpu = runtime::gpuCodeOf(package);
  for (const runtime::StateDesc &state : info.schedule.states)
    info.weightBytes += static_cast<int64_t>(package.stateValue(state.name).size());
  return info;
}

runtime::PackageFile packageFile(std::span<const CompiledModel> levels, std::vector<std::vector<std::byte>> &storage) {
  std::vector<runtime::PackageFunction> functions;
  for (const CompiledModel &program : levels) {
    for (const runtime::StateDesc &state : program.schedule.states)
      if (state.kind != runtime::StateKind::Derived)
        throw InputError("the program has a state '" + state.name +
                         "' without a value; packages of such programs are made by export_package");
    runtime::PackageFunction function;
    function.schedule = &program.schedule;
    if (!program.image.empty()) {
      runtime::CpuLevel level;
      if (!runtime::parseCpuLevel(program.cpuLevel, level))
        throw InternalError("code for the unknown CPU level '" + program.cpuLevel + "'");
      function.images.push_back({level, program.image});
    } else if (levels.size() > 1) {
      functions.clear(); // a program without code is equal for all levels
    }
    function.constants = program.constants;
    functions.push_back(std::move(function));
  }
  // Architectures are the same for all levels, and so are their kernels.
  return runtime::packageFile(functions, runtime::gpuSections(levels.front().gpu, storage));
}

void bindSizes(const runtime::Schedule &schedule, const std::map<std::string, int64_t> &sizes, dim::Values &dims) {
  for (const auto &[name, size] : sizes) {
    const Size symbol = runtime::findDim(schedule, name);
    if (!symbol) {
      std::string known;
      for (Size other : schedule.dims)
        known += (known.empty() ? "" : ", ") + std::string(dim::symbolName(other));
      throw InputError("the program has no dimension '" + name + "' of symbolic size; it has: " + known);
    }
    dims.bind(symbol, size);
  }
}

void bindRest(const runtime::Schedule &schedule, dim::Values &dims) {
  for (Size symbol : schedule.dims) {
    if (dims.find(symbol))
      continue;
    const int64_t size = std::max<int64_t>(1, dim::bounds(symbol).lo);
    note("dimension '" + std::string(dim::symbolName(symbol)) + "' is not given: taken as " + std::to_string(size));
    dims.bind(symbol, size);
  }
  runtime::checkDims(schedule, dims);
}

void checkMemory(const runtime::Schedule &schedule, const dim::Values &dims) {
  // Sizes that are not given count as their lower bounds.
  auto least = [&](Size size) {
    const int64_t bytes = dims.all().empty() ? dim::bounds(size).lo : dim::evaluate(size, dims);
    return static_cast<double>(std::max<int64_t>(0, bytes));
  };
  double need = least(schedule.peakBytes);
  for (const auto &v : schedule.inputs)
    need += least(dim::bytes(v.type));
  for (const auto &v : schedule.outputs)
    need += least(dim::bytes(v.type));
  for (const auto &s : schedule.states)
    need += least(dim::bytes(s.type));
  for (const auto &c : schedule.constants)
    need += static_cast<double>(c.bytes);
  const int64_t have = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (need <= static_cast<double>(have))
    return;
  // Points at the op that touches the most bytes.
  double most = 0;
  const runtime::Location *where = nullptr;
  for (const runtime::Command &c : schedule.step.commands) {
    double bytes = 0;
    for (uint32_t i = 0; i < c.numOperands; ++i)
      bytes += least(schedule.buffers[schedule.step.operands[c.firstOperand + i].buffer].bytes);
    if (c.kind == runtime::CommandKind::Launch && c.loc && bytes > most) {
      most = bytes;
      where = &schedule.locations[c.loc];
    }
  }
  std::string text = "the program needs " + humanBytes(static_cast<int64_t>(need)) + ", more than this machine's " +
                     humanBytes(have) + " of memory";
  if (where)
    text += "; " + where->op +
            (where->file.empty() ? "" : " (" + where->file + ":" + std::to_string(where->line) + ")") +
            " alone reads and writes " + humanBytes(static_cast<int64_t>(most));
  throw InputError(text);
}

} // namespace tressel::tool
