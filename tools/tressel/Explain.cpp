// tressel explain: what a step will take on a machine, by the model of that machine.
#include "tressel/runtime/Explain.h"
#include "tools/tressel/Gpu.h"
#include "tools/tressel/History.h"
#include "tools/tressel/Runnable.h"
#include "tools/tressel/Timelines.h"
#include "tools/tressel/Tool.h"
#include "tressel/runtime/CustomKernels.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/Ranks.h"

#include <charconv>
#include <set>

namespace tressel::tool {

/// The number of ranks in a list of axes with sizes, "data=8,model=2". Throws UsageError for any other text.
static int64_t checkRanks(const std::string &ranks) {
  int64_t all = 1;
  std::set<std::string> names;
  for (size_t begin = 0; !ranks.empty() && begin <= ranks.size();) {
    const size_t end = std::min(ranks.size(), ranks.find(',', begin)), equals = ranks.find('=', begin);
    const std::string name = ranks.substr(begin, std::min(end, equals) - begin);
    int64_t size = 0;
    const char *text = ranks.data() + std::min(end, equals + 1), *last = ranks.data() + end;
    const auto [at, error] = std::from_chars(text, last, size);
    if (name.empty() || equals >= end || error != std::errc() || at != last || size < 1 || size > 4096 ||
        !names.insert(name).second)
      throw UsageError(
          "--ranks " + ranks +
          ": name each axis of the mesh once, with how many ranks it has (1 to 4096), as in --ranks data=8,model=2");
    all = std::min<int64_t>(all * size, int64_t(1) << 40);
    begin = end + 1;
  }
  return all;
}

int explainCommand(const ExplainArgs &args) {
  for (const std::string &library : args.libraries)
    runtime::loadCustomLibrary(library);
  if (!args.timeline.empty())
    checkTimelineFile(args.timeline);
  if (args.json && args.timeline == "-")
    throw UsageError("--timeline - and --json would both write to standard output; give the timeline a file");
  const std::map<std::string, int64_t> sizes = parseSizes(args.dims);
  TargetMachine target = targetMachine(args.device, args.gpus);
  runtime::MachineModel &machine = target.model;
  machine.history = historyFrom(args.useHistory, machine.name);
  runtime::Schedule schedule;
  runtime::Decisions decisions;
  if (!args.function.empty() && !args.model.ends_with(".tsl"))
    throw UsageError("--function chooses among those of a package, and " + args.model + " is none");
  if (args.model.ends_with(".tsl")) {
    if (!args.useHistory.empty())
      throw UsageError(
          "--use-history: packages do not say what their kernels compute; give the model that it was made of");
    checkCompiled({{"--allow-library", args.allowLibrary},
                   {"--tuning", !args.tuning.empty()},
                   {"--winograd", args.winograd},
                   {"--keep-subnormals", args.keepSubnormals},
                   {"--memory-budget", args.memoryBudget.isBound()},
                   {"--ranks", !args.ranks.empty()},
                   {"--parallel", args.parallel > 0},
                   {"--autocast", args.autocast.has_value()}});
    schedule = describePackage(args.model, args.function).schedule;
    if (runtime::needsGpu(schedule) && !target.hasAccelerators)
      throw UsageError(args.model + ": is for a machine with GPUs: name one, as in --device sim:h100");
  } else {
    CompileRequest request{.path = args.model,
                           .allowLibrary = args.allowLibrary,
                           .gpuLibraries = args.allowLibrary,
                           .winograd = args.winograd,
                           .keepSubnormals = args.keepSubnormals,
                           .memoryBudget = args.memoryBudget,
                           .autocast = args.autocast,
                           .explain = true};
    setMachine(request, target, args.gpus);
    request.tuning = args.tuning;
    request.machine = &machine;
    if (const char *option = !args.ranks.empty() ? "--ranks"
                             : args.parallel > 0 ? "--parallel"
                                                 : nullptr;
        option && !target.hasAccelerators)
      throw UsageError(
          std::string(option) +
          ": each rank has an accelerator of its own: name a machine with some, as in --device sim:dgx-h100");
    const int64_t wanted = checkRanks(args.ranks);
    if (wanted > machine.numAccelerators() && target.hasAccelerators) {
      const std::string larger = runtime::presetOfAtLeast(wanted);
      throw InputError(
          "--ranks " + args.ranks + " are " + std::to_string(wanted) + " ranks with an accelerator each, and " +
          machine.name + " has " + std::to_string(machine.numAccelerators()) + "; " +
          (larger.empty() ? "describe a machine of that size in a file (docs/machines.md)"
                          : "presets with a network take a size, as " + larger + ", and files say \"hosts\""));
    }
    if (args.parallel > machine.numAccelerators() && args.parallel > 0) {
      const std::string larger = runtime::presetOfAtLeast(args.parallel);
      throw UsageError("--parallel " + std::to_string(args.parallel) + ": " + machine.name + " has " +
                       std::to_string(machine.numAccelerators()) + " accelerators; " +
                       (larger.empty() ? "describe a machine of that size in a file (docs/machines.md)"
                                       : "machines with a network take a size, as in --device " + larger));
    }
    if (!args.ranks.empty() && args.parallel > 0)
      throw UsageError("--parallel compares meshes, of which --ranks is one: give one of the two");
    if (args.parallel > 0 && (args.json || !args.timeline.empty()))
      throw UsageError("--parallel prints a table: for --json or --timeline choose one of its layouts with --ranks");
    request.ranks = args.ranks;
    request.compare = args.parallel;
    for (const auto &[name, size] : sizes)
      request.dims[name] = {size, size};
    CompiledModel program = compileWithProgress(request);
    for (const AssumedDim &d : program.assumed)
      note("dimension '" + d.name + "' is not given: taken as " + std::to_string(d.size));
    if (args.parallel > 0) {
      std::fputs(program.comparison.c_str(), stdout);
      return kOk;
    }
    schedule = std::move(program.schedule);
    decisions = std::move(program.decisions);
  }
  if (!schedule.mesh.empty())
    schedule = runtime::scheduleOfRank(schedule, 0);
  if (!schedule.dims.empty()) {
    dim::Values dims;
    bindSizes(schedule, sizes, dims);
    bindRest(schedule, dims);
    schedule = runtime::instantiate(schedule, dims);
    note("what kernels take is predicted for the sizes that the compiler took as typical; for others, fix them in the "
         "model with --dim");
  }
  const runtime::Explanation explanation = runtime::explain(schedule, machine, std::move(decisions));
  if (!args.timeline.empty())
    writeTimelines(args.timeline, schedule, {&explanation.timeline, 1});
  if (args.device == "cpu")
    noteLoad();
  const std::string text = args.json ? explainJson(schedule, explanation) : explainText(schedule, explanation);
  std::fputs(text.c_str(), stdout);
  return kOk;
}

} // namespace tressel::tool
