// tressel compile: a package, or the text of a stage.
#include "tools/tressel/Compiler.h"
#include "tools/tressel/Gpu.h"
#include "tools/tressel/History.h"
#include "tools/tressel/Runnable.h"
#include "tools/tressel/Tool.h"
#include "tressel/runtime/CustomKernels.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <set>

namespace tressel::tool {

namespace {

/// The file's name as an identifier of C.
std::string symbolOf(const std::string &path) {
  std::string name = std::filesystem::path(path).stem().string();
  if (name.starts_with("lib"))
    name.erase(0, 3);
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  static const std::set<std::string_view> keywords = {
      "auto", "bool", "break", "case", "catch", "char", "class", "const", "continue", "default", "delete", "do", "double", "else", "enum", "export",
      "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "operator", "private",
      "protected", "public", "register", "requires", "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "template",
      "this", "throw", "true", "try", "typedef", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "while"};
  const bool isName = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) && !keywords.contains(name);
  return isName ? name : "model_" + name;
}

std::string headerOf(const std::string &symbol, const runtime::Schedule &schedule) {
  std::string text = "/* A program compiled by Tressel, to be run through tressel_runtime.h.\n";
  for (const auto &input : schedule.inputs)
    text += "   input  " + input.name + ": " + input.type.str() + "\n";
  for (const auto &output : schedule.outputs)
    text += "   output " + output.name + ": " + output.type.str() + "\n";
  for (size_t at = 0; (at = text.find("*/", at)) != std::string::npos;) // a name may hold it
    text.replace(at, 2, "* ");
  text += "*/\n#pragma once\n#include <tressel/runtime/tressel_runtime.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  text += "extern const unsigned char " + symbol + "[];\nextern const size_t " + symbol + "_bytes;\n";
  text += "#ifdef __cplusplus\n}\n#endif\n\n/* Opens it; tressel_close ends that. */\nstatic inline tressel_status " + symbol +
          "_open(tressel_package **package) {\n  return tressel_open_memory(" + symbol + ", " + symbol +
          "_bytes, package);\n}\n";
  return text;
}

/// Opens the card only for --tune, as compiling needs none.
void setTuning(CompileRequest &request, const CompileArgs &args) {
  if (!args.tuning.empty() && args.gpus.empty())
    throw UsageError(
        "--tuning: only kernels of GPUs are cut by it: name their architecture, as in --device cuda --gpu sm_90");
  request.tuning = args.tuning;
  if (!args.tune)
    return;
  if (args.tuning.empty())
    throw UsageError("--tune: name the file that keeps what is measured, as in --tuning h100.json");
  if (args.deterministic)
    throw UsageError("--tune measures, and --deterministic goes by nothing that was measured: give --tuning alone");
  request.tuneOn = runtime::openMachine("cuda", {.cards = {0}, .stamps = true}); // throws where there is none
}

/// Where the time of a compilation went.
std::string timingTable(const CompiledModel &program) {
  double total = 0;
  for (const auto &[step, seconds] : program.timings)
    total += seconds;
  std::string text = "   seconds   share  step of compiling for " + (program.cpuLevel.empty() ? "text" : program.cpuLevel) + "\n";
  auto row = [&](double seconds, const std::string &step) {
    char line[48];
    std::snprintf(line, sizeof line, "%10.4f  %5.1f%%  ", seconds, total > 0 ? 100 * seconds / total : 0.0);
    text += line + step + "\n";
  };
  for (const auto &[step, seconds] : program.timings)
    row(seconds, step);
  row(total, "total");
  return text + kernelCounts(program) + "\n";
}

} // namespace

int compileCommand(const CompileArgs &args) {
  const TargetMachine target = targetMachine(args.device, args.gpus);
  const runtime::MachineModel &machine = target.model;
  for (const std::string &library : args.libraries)
    runtime::loadCustomLibrary(library);
  if (args.model.ends_with(".tsl"))
    throw InputError(args.model + ": is a package already; `tressel run` runs it");
  CompileRequest request;
  request.path = args.model;
  if (!args.useHistory.empty() && args.deterministic)
    note("--deterministic: plans do not depend on what was measured, so --use-history changes nothing");
  request.history = historyFrom(args.useHistory, machine.name);
  for (const auto &[name, range] : parseDims(args.dims))
    request.dims[name] = {range.lo, range.hi};
  request.keepDynamic = true;
  request.forPackage = true;
  request.allowLibrary = request.gpuLibraries = args.allowLibrary;
  request.deterministic = args.deterministic;
  request.verifyEach = args.verifyEach;
  request.stripLocations = args.stripLocations;
  request.useCache = !args.noCache;
  request.measure = args.measure;
  request.winograd = args.winograd;
  request.keepSubnormals = args.keepSubnormals;
  request.memoryBudget = args.memoryBudget;
  request.autocast = args.autocast;
  request.disabledPasses = args.disabledPasses;
  if (std::string problem = compiler().checkDisabledPasses(args.disabledPasses); !problem.empty())
    throw UsageError("--disable-pass: " + problem);
  const bool package = args.emit == "package";
  setMachine(request, target, args.gpus);
  setTuning(request, args);
  if (package && args.device.starts_with("cpu:"))
    throw UsageError("--device " + args.device + ": a package is for the processor as a whole: leave --device out");
  if (target.hasAccelerators && args.gpus.empty() && package)
    throw UsageError("--device " + args.device +
                     ": a package for a machine with GPUs needs their architecture, as in --gpu sm_90; --emit placed or schedule "
                     "shows the program without, and without --device and annotations it becomes a package for the CPU");
  if (args.emit == "ptx" && args.gpus.size() != 1)
    throw UsageError(args.gpus.empty() ? "--emit ptx: name the architecture of the GPU, as in --device cuda --gpu sm_90"
                                       : "--emit ptx shows the code for one architecture: give --gpu once");
  if (args.format != "package" && (!package || args.output == "-"))
    throw UsageError("--format " + args.format + " makes two files, so it goes neither with --emit nor to standard output");
  const std::string suffix = std::filesystem::path(args.output).extension().string();
  const std::string made = args.format == "shared" ? ".so" : args.format == "static" ? ".a" : ".tsl";
  for (const char *other : {".so", ".a", ".tsl", ".h"})
    if (package && suffix == other && suffix != made)
      throw UsageError("-o " + args.output + ": --format " + args.format + " makes a " + made + " file");
  std::string text;
  if (!package) {
    if (args.cpus.size() > 1)
      throw UsageError("--emit " + args.emit + " shows the code of one level: name one with --cpu");
    request.emit = args.emit;
    request.sink = [&](std::string part) { text += part; };
  }
  std::vector<CompiledModel> programs; // one per level
  for (const std::string &cpu : args.cpus) {
    request.cpu = cpu;
    CompiledModel compiled = compileWithProgress(request);
    if (std::none_of(programs.begin(), programs.end(), // "native" may be one of the others
                     [&](const CompiledModel &other) { return other.cpuLevel == compiled.cpuLevel; }))
      programs.push_back(std::move(compiled));
  }
  const CompiledModel &program = programs.front();
  if (args.tune)
    note(args.tuning + ": " + std::to_string(program.numTuned) + " kernels measured, of which " +
         std::to_string(program.numTunedFaster) + " are cut in another way than predicted");
  for (const AssumedDim &d : program.assumed)
    note("dimension '" + d.name + "' is not given: taken as " + std::to_string(d.size) +
         (d.why.empty() ? "" : ", because it cannot stay dynamic: " + d.why));

  std::string output = args.output;
  if (output.empty())
    output = package ? std::filesystem::path(args.model).stem().string() +
                           made
                     : "-";
  std::vector<std::vector<std::byte>> storage;
  if (args.format != "package") {
    const std::string symbol = symbolOf(output);
    std::vector<std::byte> bytes;
    for (std::span<const std::byte> piece : packageFile(programs, storage).pieces)
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    const auto library = compiler().library(symbol, bytes, args.format == "shared");
    writeFile(output, std::string(reinterpret_cast<const char *>(library.data()), library.size()));
    writeFile(std::filesystem::path(output).replace_extension(".h").string(), headerOf(symbol, program.schedule));
  } else if (package) {
    writeFile(output, packageFile(programs, storage).pieces);
    if (output != "-")
      detail(output + ": " + kernelCounts(program));
    if (!args.gpus.empty() && program.gpu.empty())
      note("no kernel of the program runs on a GPU: all are placed on the host");
    for (std::string table = gpuTable(program.gpu, /*perKernel=*/false); !table.empty();) {
      const size_t end = table.find('\n');
      detail(table.substr(0, end));
      table.erase(0, end + 1);
    }
  } else {
    if (args.emit == "graph")
      text = compiler().draw(text, output, std::filesystem::path(args.model).stem().string()).value_or(text);
    writeFile(output, text);
  }
  if (!program.noCache.empty())
    detail("no cache of kernels: " + program.noCache);
  if (args.timings)
    for (const CompiledModel &each : programs)
      std::fputs(timingTable(each).c_str(), stderr);
  return kOk;
}

} // namespace tressel::tool
