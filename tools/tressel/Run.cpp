// tressel run: inputs from files or random numbers, outputs shown, written or compared, times measured.
#include "tools/tressel/Gpu.h"
#include "tools/tressel/History.h"
#include "tools/tressel/Inputs.h"
#include "tools/tressel/Runnable.h"
#include "tools/tressel/Timelines.h"
#include "tools/tressel/Tool.h"
#include "tressel/runtime/Corrections.h"
#include "tressel/runtime/CustomKernels.h"

#include "tressel/runtime/CommandLog.h"
#include "tressel/runtime/DeviceStorage.h"
#include "tressel/runtime/Executor.h"
#include "tressel/runtime/Instantiate.h"
#include "tressel/runtime/Simulate.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace tressel::tool {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

namespace {

std::vector<fs::path> testSets(const std::string &dir) {
  std::vector<fs::path> sets;
  std::error_code ec;
  if (!fs::is_directory(dir, ec))
    throw InputError(dir + ": no such folder");
  for (const auto &entry : fs::directory_iterator(dir, ec))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_"))
      sets.push_back(entry.path());
  std::ranges::sort(sets);
  if (sets.empty())
    sets.push_back(dir);
  return sets;
}
/// input_0.pb, input_1.pb, ... in order.
std::vector<Given> readNumbered(const fs::path &set, const char *prefix) {
  std::vector<Given> list;
  for (int i = 0;; ++i) {
    fs::path file = set / (prefix + std::to_string(i) + ".pb");
    std::error_code ec;
    if (!fs::exists(file, ec))
      return list;
    for (auto &[name, tensor] : readTensors(file.string()))
      list.push_back({"", std::move(tensor), file.string()});
  }
}

class Runner {
public:
  /// `machine`: what the program runs on, real or simulated; null: the processor.
  Runner(const RunArgs &args, Runnable program, std::map<std::string, int64_t> sizes,
         std::shared_ptr<runtime::Machine> machine, std::shared_ptr<const runtime::KernelHistory> history)
      : args_(args), program_(std::move(program)), sizes_(std::move(sizes)), machine_(std::move(machine)),
        history_(std::move(history)) {
    makeContext();
  }

  void bind(const Named &inputs) {
    bindDims(inputs);
    inputs_.clear();
    outputs_.clear();
    for (const auto &port : program_.schedule().inputs)
      inputs_.push_back(valueOf(port.name, sized(port.type), inputs, "input"));
    for (const auto &output : program_.schedule().outputs)
      outputs_.push_back(HostTensor::allocate(sized(output.type)));
    if (bound_)
      return;
    for (const auto &state : program_.schedule().states)
      if (state.kind != runtime::StateKind::Derived)
        states_.push_back(program_.package ? stored(state) : valueOf(state.name, state.type, inputs, "state"));
    if (executor_)
      executor_->bindStates(statesAtHome());
    else
      context_->bindStates(pointers(states_));
    bound_ = true;
  }

  /// Resets the states to their first values: sets of inputs must not affect each other.
  void restart() {
    states_.clear();
    makeContext();
  }

  void run() {
    const std::vector<void *> in = pointers(inputs_), out = pointers(outputs_);
    using Clock = std::chrono::steady_clock;
    for (int i = 0; i < args_.warmup; ++i)
      call(in, out);
    for (int i = 0; i < args_.repeat; ++i) {
      auto start = Clock::now();
      call(in, out);
      const double passed = std::chrono::duration<double>(Clock::now() - start).count();
      seconds_.push_back(machine_ && (machine_->at({}).caps().isVirtualTime || !machine_->log().commands.empty())
                             ? runtime::seconds(machine_->times().total)
                             : passed);
    }
  }

  /// One more call, with its commands timed. The outputs of earlier calls are kept.
  runtime::Timeline profile() {
    std::vector<HostTensor> outputs;
    for (const HostTensor &t : outputs_)
      outputs.push_back(HostTensor::allocate(t.type));
    runtime::Profile profile;
    context_->setProfile(&profile);
    context_->run(pointers(inputs_), pointers(outputs), dims_);
    context_->setProfile(nullptr);
    return runtime::measured(numbers(), profile, processorName());
  }
  /// Calls --repeat more times, and times the kernels for the history.
  void record(const std::string &file, const std::string &machineName) {
    std::vector<HostTensor> outputs;
    for (const HostTensor &t : outputs_)
      outputs.push_back(HostTensor::allocate(t.type));
    const std::vector<void *> in = pointers(inputs_), out = pointers(outputs);
    const runtime::Schedule schedule = numbers();
    runtime::KernelHistory measured(machineName);
    runtime::Profile profile;
    call(in, out); // touches the memory
    recording_ = true;
    if (context_)
      context_->setProfile(&profile);
    int64_t launches = 0;
    for (int i = 0; i < args_.repeat; ++i) {
      call(in, out);
      launches = measured.add(schedule, executor_ ? simulated() : runtime::measured(schedule, profile));
    }
    if (context_)
      context_->setProfile(nullptr);
    recording_ = false;
    addToHistory(file, measured);
    note(file + ": " + std::to_string(launches) + " launches of " + std::to_string(measured.size()) + " kernels, " +
         std::to_string(args_.repeat) + " times" +
         (args_.repeat < runtime::KernelHistory::kEnough
              ? "; a kernel counts once it is there " + std::to_string(runtime::KernelHistory::kEnough) +
                    " times (--repeat)"
              : ""));
  }
  const runtime::Machine *machine() const { return machine_.get(); }
  /// Of the latest call, on a simulated machine: from its log, and as the schedule says.
  runtime::Timeline simulated() const { return runtime::timelineOf(*executor_); }
  runtime::Timeline planned() const {
    runtime::MachineModel model = machine_->model();
    model.history = history_;
    runtime::Timeline t = runtime::simulate(numbers(), model);
    t.kind = runtime::TimelineKind::Planned;
    return t;
  }
  /// The schedule with the sizes of the calls.
  runtime::Schedule numbers() const { return runtime::instantiate(program_.schedule(), dims_); }

  /// Compares one output; true if within the tolerances.
  bool check(const std::string &name, const HostTensor &want, const std::string &file) {
    const auto &ports = program_.schedule().outputs;
    size_t i = static_cast<size_t>(std::ranges::find(ports, name, &runtime::ValueDesc::name) - ports.begin());
    const HostTensor &got = outputs_[i];
    if (!(got.type == want.type)) {
      complain("output '" + name + "' is " + got.type.str() + ", but " + file + " holds " + want.type.str());
      return false;
    }
    Difference d = compare(got, want, args_.rtol, args_.atol);
    char text[256];
    std::snprintf(text, sizeof text, "largest difference %.3g absolute, %.3g relative", d.maxAbsolute, d.maxRelative);
    if (d.within) {
      detail("output '" + name + "' agrees with " + file + ": " + text);
      return true;
    }
    std::string place = "[]";
    for (int64_t k = got.type.rank() - 1, rest = d.worst; k >= 0; rest /= got.type.shape.extent(static_cast<int>(k--)))
      place.insert(1, std::to_string(rest % got.type.shape.extent(static_cast<int>(k))) + (place == "[]" ? "" : ", "));
    const std::string worst = "; the worst is element " + place + ", " + spellElement(got, d.worst) + " instead of " +
                              spellElement(want, d.worst);
    complain("output '" + name + "' differs from " + file + " in " + std::to_string(d.mismatches) + " of " +
             std::to_string(got.type.shape.numElements()) + " values: " + text + worst);
    return false;
  }

  const Runnable &program() const { return program_; }
  const dim::Values &dims() const { return dims_; }
  const std::vector<HostTensor> &outputs() const { return outputs_; }
  std::vector<double> sortedSeconds() const {
    std::vector<double> s = seconds_;
    std::ranges::sort(s);
    return s;
  }

private:
  void makeContext() {
    const bool package = program_.package.has_value();
    bound_ = package && !machine_;
    for (const auto *values : {&program_.schedule().inputs, &program_.schedule().outputs})
      for (const runtime::ValueDesc &value : *values)
        if (machine_ && !runtime::isHost(value.home))
          throw InputError("'" + value.name + "' is at home on " + runtime::nameOf(value.home.device) +
                           ", and tensors of the command line are the host's: leave the attribute tressel.home out");
    if (machine_)
      executor_.emplace(program_.executable, machine_);
    else if (package)
      context_.emplace(program_.package->context({}, program_.function));
    else
      context_.emplace(program_.executable);
  }
  void call(const std::vector<void *> &in, const std::vector<void *> &out) {
    if (executor_)
      executor_->run(in, out, dims_);
    else
      runOnHost(in, out);
  }
  /// The first calls note their kernels' times, for the next compilation.
  void runOnHost(const std::vector<void *> &in, const std::vector<void *> &out) {
    if (!firstCalls_)
      firstCalls_.emplace(program_.schedule());
    const bool isObserved = firstCalls_->isOpen() && !recording_;
    runtime::Profile profile;
    if (isObserved)
      context_->setProfile(&profile);
    context_->run(in, out, dims_);
    if (!isObserved)
      return;
    context_->setProfile(nullptr);
    firstCalls_->add(profile, runtime::hostMachine().devices.front(), runtime::Corrections::ofHost());
  }
  /// A copy of the value that the package has.
  HostTensor stored(const runtime::StateDesc &state) const {
    const std::span<const std::byte> value = program_.package->stateValue(state.name);
    if (value.size() != static_cast<size_t>(state.type.bytes()))
      throw InputError("the package has no value for the state '" + state.name + "'");
    HostTensor tensor = HostTensor::allocate(state.type);
    std::ranges::copy(value, static_cast<std::byte *>(static_cast<void *>(tensor.data.get())));
    return tensor;
  }
  /// The states' memory: those whose home is an accelerator are copied there.
  std::vector<void *> statesAtHome() {
    const auto memory = runtime::DeviceMemory::of(machine_);
    std::vector<void *> list = pointers(states_);
    statesThere_.clear();
    size_t i = 0;
    for (const runtime::StateDesc &state : program_.schedule().states) {
      if (state.kind == runtime::StateKind::Derived)
        continue;
      if (!runtime::isHost(state.home)) {
        const std::span<const std::byte> value(static_cast<const std::byte *>(list[i]),
                                               static_cast<size_t>(state.type.bytes()));
        list[i] = statesThere_.emplace_back(memory->copyOf(value, state.home.device))->data();
      }
      ++i;
    }
    return list;
  }
  static std::vector<void *> pointers(const std::vector<HostTensor> &tensors) {
    std::vector<void *> list;
    for (const HostTensor &t : tensors)
      list.push_back(t.data.get());
    return list;
  }
  /// Binds symbolic sizes: from --dim, else from the inputs, else to their lower bounds, with a note.
  void bindDims(const Named &inputs) {
    const runtime::Schedule &schedule = program_.schedule();
    dims_.clear();
    bindSizes(schedule, sizes_, dims_);
    for (const auto &port : schedule.inputs)
      if (auto it = inputs.find(port.name); it != inputs.end())
        if (std::string problem = dim::unify(port.type.shape, it->second.type.shape, dims_, true); !problem.empty())
          throw InputError("input '" + port.name + "' must be " + port.type.str() + ", not " + it->second.type.str() +
                           ": " + problem);
    bindRest(schedule, dims_);
    if (!schedule.dims.empty())
      checkMemory(schedule, dims_);
  }
  TensorType sized(TensorType type) const {
    type.shape = dim::evaluate(type.shape, dims_);
    return type;
  }

  HostTensor valueOf(const std::string &name, const TensorType &type, const Named &given, const char *what) {
    auto it = given.find(name);
    if (it != given.end()) {
      if (!(it->second.type == type))
        throw InputError(std::string(what) + " '" + name + "' must be " + type.str() + ", not " +
                         it->second.type.str());
      return it->second;
    }
    if (!args_.testData.empty() && !args_.randomSeed)
      throw InputError(args_.testData + ": has no file for the " + what + " '" + name + "' (" + type.str() + "): input_0.pb is the first input's, and so on");
    if (!args_.randomSeed)
      throw UsageError(std::string(what) + " '" + name + "' (" + type.str() + ") is not given: use --input '" + name +
                       "=FILE.npy', or --random-inputs SEED");
    return randomTensor(type, *args_.randomSeed, name);
  }

  const RunArgs &args_;
  Runnable program_;
  std::map<std::string, int64_t> sizes_; ///< of --dim
  dim::Values dims_;
  bool bound_ = false; ///< the states are bound
  std::shared_ptr<runtime::Machine> machine_;
  std::shared_ptr<const runtime::KernelHistory> history_; ///< measured times that plans use
  std::optional<runtime::Context> context_;               ///< without a machine
  std::optional<runtime::FirstCalls> firstCalls_;
  bool recording_ = false; ///< the context's profile belongs to record()
  std::vector<runtime::StorageRef> statesThere_; ///< outlive the executor
  std::optional<runtime::Executor> executor_;    ///< on the machine
  std::vector<HostTensor> inputs_, outputs_, states_;
  std::vector<double> seconds_;
};

double percentile(const std::vector<double> &sorted, double p) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(p * static_cast<double>(sorted.size())))];
}

/// Distinct file names: '/' becomes '_', and a name that is taken then gets a number.
std::vector<std::string> fileNames(const runtime::Schedule &schedule) {
  std::vector<std::string> names;
  for (const auto &output : schedule.outputs) {
    std::string name = output.name;
    for (char &c : name)
      if (c == '/' || c == '\0')
        c = '_';
    if (name.empty() || name == "." || name == ".." || name.size() > 200)
      name = "output" + std::to_string(names.size());
    std::string unique = name;
    for (int k = 2; std::ranges::find(names, unique + ".npy") != names.end(); ++k)
      unique = name + "." + std::to_string(k);
    names.push_back(unique + ".npy");
  }
  return names;
}

json shapeJson(const TensorType &type) { return std::vector<int64_t>(type.shape.begin(), type.shape.end()); }

json outputJson(const runtime::ValueDesc &port, const HostTensor &tensor) {
  Summary s = summarize(tensor);
  json j{{"name", port.name}, {"dtype", nameOf(port.type.dtype)}, {"shape", shapeJson(tensor.type)}};
  j["min"] = s.min;
  j["mean"] = s.mean;
  j["max"] = s.max;
  j["first"] = s.first;
  return j;
}

std::string dump(const json &j, int indent) {
  // Names come from files: whatever is not UTF-8 in them is replaced rather than refused.
  return j.dump(indent, ' ', false, json::error_handler_t::replace) + "\n";
}

void writeOutputs(const RunArgs &args, const Runner &runner) {
  makeFolder(args.outputDir);
  const runtime::Schedule &schedule = runner.program().schedule();
  std::vector<std::string> names = fileNames(schedule);
  json list = json::array();
  for (size_t i = 0; i < names.size(); ++i) {
    writeTensor(args.outputDir + "/" + names[i], runner.outputs()[i]);
    const auto &port = schedule.outputs[i];
    list.push_back({{"name", port.name},
                    {"file", names[i]},
                    {"dtype", nameOf(port.type.dtype)},
                    {"shape", shapeJson(runner.outputs()[i].type)}});
  }
  writeFile(args.outputDir + "/outputs.json", dump({{"schema", 1}, {"outputs", list}}, 2));
}

void printOutputs(const Runner &runner) {
  const runtime::Schedule &schedule = runner.program().schedule();
  for (size_t i = 0; i < schedule.outputs.size(); ++i) {
    const auto &port = schedule.outputs[i];
    Summary s = summarize(runner.outputs()[i]);
    const TensorType &type = runner.outputs()[i].type;
    std::printf("%s: %s", port.name.c_str(), type.str().c_str());
    if (type.shape.numElements()) {
      std::printf("  min %.6g  mean %.6g  max %.6g  first", s.min, s.mean, s.max);
      for (double v : s.first)
        std::printf(" %.6g", v);
    }
    std::printf("\n");
  }
}

void printTimes(const Runner &runner) {
  std::vector<double> s = runner.sortedSeconds();
  std::printf("time: min %s  median %s  p99 %s over %zu runs\n", humanSeconds(s.front()).c_str(),
              humanSeconds(percentile(s, 0.5)).c_str(), humanSeconds(percentile(s, 0.99)).c_str(), s.size());
}

/// Prints what a simulated call took, beside the plan.
void printSimulated(const Runner &runner) {
  const bool isVirtual = runner.machine()->at({}).caps().isVirtualTime;
  const runtime::Timeline planned = runner.planned();
  const std::vector<double> seconds = runner.sortedSeconds();
  const std::string name = runner.machine()->name(),
                    taken = humanSeconds(isVirtual ? seconds.back() : percentile(seconds, 0.5)),
                    plan = humanSeconds(runtime::seconds(planned.end));
  std::string together;
  if (planned.sideBySide && !runner.machine()->log().commands.empty()) {
    char text[64];
    std::snprintf(text, sizeof text, "; side by side %.2f (planned %.2f)", runner.simulated().sideBySide.value_or(0),
                  *planned.sideBySide);
    together = text;
  }
  std::printf("%s on %s: %s (planned %s)%s\n", isVirtual ? "simulated" : "took", name.c_str(), taken.c_str(),
              plan.c_str(), together.c_str());
  if (!isVirtual && seconds.size() > 1)
    printTimes(runner);
}

void printJson(const RunArgs &args, const Runner &runner) {
  std::vector<double> s = runner.sortedSeconds();
  const runtime::Schedule &schedule = runner.program().schedule();
  json outputs = json::array();
  for (size_t i = 0; i < schedule.outputs.size(); ++i)
    outputs.push_back(outputJson(schedule.outputs[i], runner.outputs()[i]));
  json j{{"schema", 1}, {"model", args.model}, {"device", args.device}};
  j["latency"] = {{"unit", "s"},
                  {"min", s.front()},
                  {"median", percentile(s, 0.5)},
                  {"p99", percentile(s, 0.99)},
                  {"runs", s.size()}};
  if (const runtime::Machine *machine = runner.machine()) {
    j["latency"]["clock"] = machine->at({}).caps().isVirtualTime ? "virtual" : "real";
    j["machine"] = machine->name();
    const runtime::Timeline planned = runner.planned();
    j["planned_seconds"] = runtime::seconds(planned.end);
    if (planned.sideBySide) {
      j["planned_side_by_side"] = *planned.sideBySide;
      if (!machine->log().commands.empty())
        j["side_by_side"] = runner.simulated().sideBySide.value_or(0);
    }
  }
  j["compile_seconds"] = runner.program().compileSeconds;
  j["peak_bytes"] = dim::evaluate(schedule.peakBytes, runner.dims());
  j["peak_lower_bound_bytes"] = dim::evaluate(schedule.peakLowerBoundBytes, runner.dims());
  json dims = json::object();
  for (const AssumedDim &d : runner.program().assumed)
    dims[d.name] = d.size;
  j["assumed_dims"] = dims;
  j["outputs"] = outputs;
  std::fputs(dump(j, 2).c_str(), stdout);
}

/// The ports of a package or a model, for `assign`.
std::vector<runtime::ValueDesc> inputsAndStates(const runtime::Schedule &schedule, bool package) {
  std::vector<runtime::ValueDesc> ports = schedule.inputs;
  if (package) // a package has its states' values
    return ports;
  for (const auto &state : schedule.states)
    if (state.kind != runtime::StateKind::Derived)
      ports.push_back({state.name, state.type});
  return ports;
}

//--- The command ------------------------------------------------------------------------------------------------------
bool isPackage(const RunArgs &args) { return args.model.ends_with(".tsl"); }

/// Refuses wrong arguments before any file is read.
void checkArguments(const RunArgs &args) {
  if (!args.gpus.empty())
    targetMachine(args.device, args.gpus); // throws for machines without a GPU
  checkTolerances(args.rtol, args.atol);
  if (!args.timeline.empty())
    checkTimelineFile(args.timeline);
  if (!isPackage(args) && !args.function.empty())
    throw UsageError("--function chooses among those of a package, and " + args.model + " is none");
  if (isPackage(args) && !(args.history + args.useHistory).empty())
    throw UsageError("--history and --use-history: packages do not say what their kernels compute; give the model that "
                     "it was made of");
  if (isPackage(args))
    checkCompiled({{"--gpu", !args.gpus.empty()},
                   {"--tuning", !args.tuning.empty()},
                   {"--no-library", args.noLibrary},
                   {"--no-cache", args.noCache},
                   {"--measure", args.measure},
                   {"--winograd", args.winograd},
                   {"--keep-subnormals", args.keepSubnormals},
                   {"--memory-budget", args.memoryBudget.isBound()},
                   {"--autocast", args.autocast.has_value()}});
  if (args.timeline == "-" && args.json)
    throw UsageError("--timeline - and --json would both write to standard output; give the timeline a file");
  if (!args.testData.empty() && !args.inputs.empty())
    throw UsageError("--test-data brings its own inputs; leave --input out");
  if (!args.testData.empty() && !args.expect.empty())
    throw UsageError("--test-data brings its own expected outputs; leave --expect out");
}

std::vector<Given> givenBy(const std::vector<std::string> &options, const char *option) {
  std::vector<Given> given;
  for (const std::string &text : options)
    for (Given &g : readGiven(text, option))
      given.push_back(std::move(g));
  return given;
}

/// Of a package or a model. Sizes that follow from the inputs are added to `dims`.
Runnable load(const RunArgs &args, runtime::Machine *machine, const std::shared_ptr<const runtime::KernelHistory> &history,
              const std::vector<Given> &given, std::map<std::string, int64_t> &dims) {
  if (isPackage(args)) {
    Runnable program = loadPackage(args.model, machine, args.function);
    if (!dims.empty() && program.schedule().dims.empty())
      throw InputError(args.model + ": a package's sizes are fixed, but for those that have names; this one has none");
    return program;
  }
  ModelInfo info = compiler().describe(args.model, /*checksInputs=*/false);
  std::vector<Port> ports = info.inputs;
  ports.insert(ports.end(), info.states.begin(), info.states.end());
  inferDims(info, assign(given, ports, "input"), dims);
  CompileRequest request;
  request.path = args.model;
  for (const auto &[name, size] : dims)
    request.dims[name] = {size, size};
  request.allowLibrary = !args.noLibrary;
  request.useCache = !args.noCache;
  request.measure = args.measure;
  request.winograd = args.winograd;
  request.keepSubnormals = args.keepSubnormals;
  request.memoryBudget = args.memoryBudget;
  request.autocast = args.autocast;
  request.machine = machine ? &machine->model() : nullptr;
  request.gpus = args.gpus;
  request.emulateGpu = !machine || !runtime::runsGpuCode(*machine);
  if (!request.emulateGpu)
    request.gpus = {machine->model().devices.back().architecture};
  request.history = history;
  request.kernelKeys = !args.history.empty();
  request.tuning = args.tuning;
  Runnable program = compileModel(request);
  for (const AssumedDim &d : program.assumed)
    note("dimension '" + d.name + "' is not given: taken as " + std::to_string(d.size));
  return program;
}

/// Runs one call and compares its outputs with --expect. Returns whether all agree.
bool runOnce(const RunArgs &args, Runner &runner, const std::vector<Given> &given) {
  const runtime::Schedule &schedule = runner.program().schedule();
  const Named expected = assign(givenBy(args.expect, "--expect"), schedule.outputs, "output"); // names are checked before anything runs
  runner.bind(assign(given, inputsAndStates(schedule, isPackage(args)), "input"));
  runner.run();
  bool agrees = true;
  for (const auto &[name, tensor] : expected)
    agrees &= runner.check(name, tensor, "what is expected");
  return agrees;
}

/// Runs one call for each set of inputs and outputs. Returns whether all agree.
bool runSets(const RunArgs &args, Runner &runner, const std::vector<fs::path> &sets) {
  const runtime::Schedule &schedule = runner.program().schedule();
  bool agrees = true;
  for (const fs::path &set : sets) {
    if (set != sets.front())
      runner.restart();
    runner.bind(assign(readNumbered(set, "input_"), inputsAndStates(schedule, isPackage(args)), "input"));
    runner.run();
    std::vector<Given> outputs = readNumbered(set, "output_");
    if (outputs.empty())
      throw InputError(set.string() + ": holds no output_0.pb");
    const Named expected = assign(outputs, schedule.outputs, "output");
    for (const auto &[name, tensor] : expected)
      agrees &= runner.check(name, tensor, set.string());
    for (const auto &port : schedule.outputs)
      if (!expected.contains(port.name))
        note(set.string() + " holds nothing for the output '" + port.name + "': not compared");
  }
  return agrees;
}

void report(const RunArgs &args, Runner &runner, bool isOnMachine) {
  if (!args.outputDir.empty())
    writeOutputs(args, runner);
  if (args.json)
    return printJson(args, runner);
  if (args.outputDir.empty())
    printOutputs(runner);
  if (isOnMachine)
    printSimulated(runner);
  else if (args.repeat > 1)
    printTimes(runner);
  if (!isOnMachine && args.repeat > 1)
    noteLoad();
}

/// The measured or simulated timeline, with the plan's beneath it.
void drawTimeline(const RunArgs &args, Runner &runner, bool isOnMachine) {
  std::vector<runtime::Timeline> timelines;
  if (isOnMachine)
    timelines = {runner.simulated(), runner.planned()};
  else
    timelines = {runner.profile()};
  const runtime::Schedule numbers = runner.numbers();
  const bool typical = !runner.program().schedule().dims.empty(); // kernels are then priced for sizes taken as typical
  try {
    if (!typical && !isOnMachine)
      timelines.push_back(runtime::simulate(numbers, runtime::hostMachine()));
  } catch (const InputError &e) { // the run itself succeeded
    detail(std::string("the timeline is drawn without a simulated one: ") + e.what());
  }
  for (runtime::Timeline &t : timelines)
    t.program = fs::path(args.model).filename().string();
  writeTimelines(args.timeline, numbers, timelines);
  if (!isOnMachine)
    note("the timeline is of one more call, " + humanSeconds(runtime::seconds(timelines[0].end)) + ", not among those timed");
}

} // namespace

int runCommand(const RunArgs &args) {
  const std::shared_ptr<runtime::Machine> machine =
      machineOf(args.device, args.device.starts_with("cuda") && !args.gpus.empty() ? args.gpus.front() : "",
                /*stamps=*/!args.timeline.empty() || !args.history.empty());
  for (const std::string &library : args.libraries)
    runtime::loadCustomLibrary(library);
  checkArguments(args);
  const std::string machineName = machine ? machine->model().name : runtime::hostMachine().name;
  const auto history = historyFrom(args.useHistory, machineName);
  if (!args.history.empty())
    checkHistory(args.history, machineName);
  std::map<std::string, int64_t> dims = parseSizes(args.dims);
  const std::vector<fs::path> sets = args.testData.empty() ? std::vector<fs::path>() : testSets(args.testData);
  const std::vector<Given> given = sets.empty() ? givenBy(args.inputs, "--input") : readNumbered(sets[0], "input_");

  Runnable program = load(args, machine.get(), history, given, dims);
  checkMemory(program.schedule());
  if (program.schedule().dims.empty())
    dims.clear(); // they are in the program
  Runner runner(args, std::move(program), std::move(dims), machine, history);
  const bool agrees = sets.empty() ? runOnce(args, runner, given) : runSets(args, runner, sets);

  if (!args.history.empty())
    runner.record(args.history, machineName);
  report(args, runner, machine != nullptr);
  if (!args.timeline.empty())
    drawTimeline(args, runner, machine != nullptr);
  return agrees ? kOk : kDiffers;
}

} // namespace tressel::tool
