// tressel compile: a package, or the text of a stage.
#include "tools/tressel/Compiler.h"
#include "tools/tressel/Program.h"
#include "tools/tressel/Tool.h"
#include "tressel/runtime/CustomKernels.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace tressel::tool {

int compileCommand(const CompileArgs &args) {
  checkDevice(args.device);
  for (const std::string &library : args.libraries)
    runtime::loadCustomLibrary(library);
  if (args.model.ends_with(".tsl"))
    throw InputError(args.model + ": is a package already; `tressel run` runs it");
  CompileRequest request;
  request.path = args.model;
  for (const auto &[name, range] : parseDims(args.dims))
    request.dims[name] = {range.lo, range.hi};
  request.keepDynamic = true;
  request.allowLibrary = args.allowLibrary;
  request.deterministic = args.deterministic;
  request.verifyEach = args.verifyEach;
  request.stripLocations = args.stripLocations;
  request.disabledPasses = args.disabledPasses;
  if (std::string problem = compiler().checkDisabledPasses(args.disabledPasses); !problem.empty())
    throw UsageError("--disable-pass: " + problem);
  const bool package = args.emit == "package";
  std::string text;
  if (!package) {
    if (args.cpus.size() > 1)
      throw UsageError("--emit " + args.emit + " shows the code of one level: name one with --cpu");
    request.emit = args.emit;
    request.sink = [&](std::string part) { text += part; };
  }
  std::vector<Program> programs; // one per level
  for (const std::string &cpu : args.cpus) {
    request.cpu = cpu;
    Program compiled = compiler().compile(request);
    if (std::none_of(programs.begin(), programs.end(), // "native" may be one of the others
                     [&](const Program &other) { return other.cpuLevel == compiled.cpuLevel; }))
      programs.push_back(std::move(compiled));
  }
  const Program &program = programs.front();
  for (const AssumedDim &d : program.assumed)
    note("dimension '" + d.name + "' is not given: taken as " + std::to_string(d.size) +
         (program.whyFixed.empty() ? "" : ", because it cannot stay dynamic: " + program.whyFixed));

  std::string output = args.output;
  if (output.empty())
    output = package ? std::filesystem::path(args.model).stem().string() + ".tsl" : "-";
  if (package) {
    writeFile(output, packageBytes(programs));
    if (output != "-")
      detail(output + ": " + std::to_string(program.numKernels) + " kernels, " +
             std::to_string(program.numLibraryKernels) + " of a library");
  } else {
    writeFile(output, text);
  }
  if (args.timings)
    for (const Program &each : programs)
      for (const auto &[pass, seconds] : each.timings)
        std::fprintf(stderr, "%10.3f ms  %s\n", seconds * 1e3, pass.c_str());
  return kOk;
}

} // namespace tressel::tool
