// What a jitted function can do beside being called: compile ahead, explain itself, export itself.
#include "frontend/jit/Explain.h"
#include "frontend/jit/JitImpl.h"
#include "frontend/tensor/Fail.h"
#include "frontend/trace/Recorder.h"

#include "tressel/runtime/File.h"
#include "tressel/runtime/Ranks.h"

#include <tressel/debug.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace tressel {

struct PackageBuilder::Impl {
  detail::StateNameMap states;
  std::string metadata;
  std::vector<std::pair<std::string, std::shared_ptr<const detail::ExportedFunction>>> functions;
  bool hasGpus = false;
};

PackageBuilder::PackageBuilder(StateNames states) : impl_(std::make_unique<Impl>()) {
  for (auto &[name, variable] : states.variables)
    if (!impl_->states.emplace(name, variable.impl()).second)
      throw Error(Error::Details{.message = "two states are called '" + name + "'", .op = "PackageBuilder"});
  if (!states.metadata.empty())
    impl_->metadata = nlohmann::json(states.metadata).dump();
}
PackageBuilder::~PackageBuilder() = default;
PackageBuilder::PackageBuilder(PackageBuilder &&) noexcept = default;
PackageBuilder &PackageBuilder::operator=(PackageBuilder &&) noexcept = default;

void PackageBuilder::write(const std::string &path, std::source_location where) const {
  if (impl_->functions.empty())
    detail::fail<Error>("the package has no function", detail::toLoc(where), "PackageBuilder::write",
                        "export some into it");
  detail::writePackage(path, impl_->functions, impl_->states, impl_->metadata);
}

} // namespace tressel

namespace tressel::detail {

void JitCore::compile(std::span<const TensorSpec> inputs, std::span<const uint64_t> words, TraceBody &body,
                      const std::source_location &where) {
  std::vector<TensorType> types = detail::typesOf(inputs, "compile", where);
  if (impl_->maker == std::this_thread::get_id())
    fail<TraceError>("'" + impl_->options.name + "' is compiled while it is being recorded", toLoc(where), "compile",
                     "compile it before, or call it");
  std::lock_guard lock(impl_->compiling);
  const Making making(impl_->maker);
  {
    std::lock_guard entries(impl_->mutex);
    for (const auto &entry : impl_->entries)
      if (entry->types == types && std::ranges::count(entry->homes, 0u) == std::ssize(entry->homes) &&
          entry->mode == callMode() && std::ranges::equal(entry->words, words) && entry->isCurrent())
        return;
  }
  std::vector<uint32_t> homes(types.size(), 0); // compiled for calls whose tensors are on the host
  impl_->make(std::move(types), std::move(homes), {words.begin(), words.end()}, body, where);
}

std::string JitCore::traceOnly(const CallArgs &args, TraceBody &body, bool text, const std::source_location &where) {
  TraceRecorder recorder;
  const std::vector<TensorType> types = typesOf(args, impl_->options, where);
  std::vector<Tensor> results = recordBody(recorder, makeInputs(recorder, types, toLoc(where)), body, nullptr);
  return recorder.finish(results, {.name = impl_->options.name, .compile = false, .text = text}).text;
}

void JitCore::exportInto(PackageBuilder &package, const std::string &name, const ExportOptions &options,
                         TraceBody &body, const std::source_location &where) {
  PackageBuilder::Impl &into = *package.impl_;
  for (const auto &[other, function] : into.functions)
    if (other == name)
      fail<Error>("the package has a function '" + name + "' already", toLoc(where), "export_into",
                  "export it under another name");
  if (!into.functions.empty() && (into.hasGpus || !options.gpus.empty()))
    fail<Error>("a package for GPUs has one function", toLoc(where), "export_into", "write one package for each");
  TraceRecorder recorder;
  recorder.nameStates(into.states);
  const std::vector<TensorType> types = detail::typesOf(options.inputs, "export_package", where);
  std::vector<std::string> names;
  for (const TensorSpec &spec : options.inputs)
    names.push_back(spec.name.empty() ? "arg" + std::to_string(names.size()) : spec.name);
  checkDistinct(names, "input", "export_package", where);
  checkDistinct(options.outputs, "output", "export_package", where);
  std::vector<Tensor> results = recordBody(recorder, makeInputs(recorder, types, toLoc(where), names), body, nullptr);
  if (const auto &devices = impl_->options.devices;
      options.gpus.empty() && !devices.empty() && std::ranges::find(devices, cpu()) == devices.end())
    fail<Error>("'" + impl_->options.name + "' is to run on " + devices.front().name() +
                    ", but a package for GPUs needs their architecture",
                toLoc(where), "export_package", "name it in ExportOptions::gpus, or export a function whose JitOptions::devices are empty or have cpu()");
  auto exported = recorder.finishExport(results,
                                        {.cpu = options.cpu,
                                         .outputNames = options.outputs,
                                         .gpus = options.gpus,
                                         .gpuLibraries = options.gpu_libraries,
                                         .deterministic = impl_->options.deterministic,
                                         .measure = impl_->options.measure,
                                         .winograd = impl_->options.winograd,
                                         .keepSubnormals = impl_->options.keep_subnormals,
                                         .memoryBudget = impl_->options.memory_budget,
                                         .autocast = impl_->options.autocast},
                                        into.states);
  into.functions.emplace_back(name, std::move(exported));
  into.hasGpus = !options.gpus.empty();
}

void JitCore::dump(const std::string &path, const CallArgs &args, TraceBody &body, const std::source_location &where) {
  std::error_code ec;
  std::filesystem::create_directories(path, ec);
  if (ec)
    fail<RuntimeError>("the folder '" + path + "' cannot be made: " + ec.message(), toLoc(where), "dump");
  const auto machine = currentMachine();
  TraceRecorder recorder;
  const std::vector<TensorType> types = typesOf(args, impl_->options, where);
  std::vector<Tensor> traced = recordBody(
      recorder, makeInputs(recorder, types, toLoc(where), {}, JitEntry::homesOf(args.tensors())), body, nullptr);
  const std::optional<runtime::MachineModel> model = modelFor(impl_->options, machine.get(), where, recorder.homes());
  FinishOptions finish = finishOptionsOf(impl_->options, machine, model ? &*model : nullptr, where);
  finish.dump = [&](const std::string &stage, const std::string &text) {
    runtime::writeFile(path + "/" + stage, std::as_bytes(std::span(text)));
  };
  recorder.finish(traced, finish);
  std::vector<Tensor> results;
  call(args, body, results, where);
  for (size_t i = 0; i < args.tensors().size(); ++i)
    tressel::dump(*args.tensors()[i], path + "/arg" + std::to_string(i) + ".npy", where);
  for (size_t i = 0; i < results.size(); ++i)
    tressel::dump(results[i], path + "/result" + std::to_string(i) + ".npy", where);
}

/// The program that was used last.
static const JitEntry &latestOf(const JitOptions &options, const std::vector<std::shared_ptr<JitEntry>> &entries,
                                const std::source_location &where) {
  if (entries.empty() || !entries.front()->traced.function)
    fail<Error>("'" + options.name + "' has no program yet", toLoc(where), "explain", "call it, or compile it ahead");
  return *entries.front();
}

static runtime::MachineModel modelOf(const JitEntry &entry) {
  return entry.machine ? entry.machine->model() : runtime::hostMachine();
}

Prediction JitCore::explain(const std::source_location &where) const {
  std::lock_guard lock(impl_->mutex);
  const JitEntry &entry = latestOf(impl_->options, impl_->entries, where);
  runtime::Decisions decisions = entry.traced.decisions;
  for (runtime::Decision &finding : entry.traced.function->findings())
    decisions.push_back(std::move(finding));
  return predict(entry.traced.function->schedule(), modelOf(entry), std::move(decisions),
                 entry.traced.function->achievedSideBySide());
}

static std::string hintOf(int64_t ranks) {
  const std::string machine = runtime::presetOfAtLeast(ranks);
  return machine.empty() ? "describe a machine of that size in a file (docs/machines.md)"
                         : "machines with a network take a size: use_machine(\"" + machine + "\")";
}

/// Records the function for ranks on accelerators like the first of the machine.
static Traced traceForRanks(JitOptions options, const std::shared_ptr<runtime::Machine> &machine,
                            std::span<const TensorSpec> inputs, TraceBody &body, int64_t compare, const char *op,
                            const std::source_location &where) {
  options.devices = {};
  if (!machine)
    fail<Error>("'" + options.name + "' is to be explained for ranks on accelerators, and the machine has none",
                toLoc(where), op, "choose a machine that has some with use_machine");
  int64_t ranks = 1;
  for (const MeshAxis &axis : options.mesh)
    ranks *= std::max<int64_t>(1, axis.size);
  if (const int64_t there = machine->model().numAccelerators(); ranks > there)
    fail<Error>("'" + options.name + "' is to be explained for " + std::to_string(ranks) +
                    " ranks with an accelerator each, and '" + machine->model().name + "' has " + std::to_string(there),
                toLoc(where), op, hintOf(ranks));
  const std::vector<TensorType> types = detail::typesOf(inputs, op, where);
  checkShardAxis(options, types, where);
  TraceRecorder recorder;
  const std::vector<Tensor> results = recordBody(recorder, makeInputs(recorder, types, toLoc(where)), body, nullptr);
  FinishOptions finish = finishOptionsOf(options, machine, &machine->model(), where, /*ofOneRank=*/true);
  finish.compare = compare;
  finish.ofOneRank = compare == 0;
  Traced traced = recorder.finish(results, finish);
  if (!traced.schedule && !traced.layouts)
    fail<Error>("'" + options.name + "' computes nothing", toLoc(where), op, "let it return what it computes");
  return traced;
}

Prediction JitCore::explainRanks(const RankOptions &ranks, std::span<const TensorSpec> inputs, TraceBody &body,
                                 const std::source_location &where) const {
  JitOptions options = impl_->options;
  options.mesh = ranks.mesh, options.shard_axis = ranks.shard_axis;
  if (ranks.mesh.empty())
    fail<Error>("'" + options.name + "' is to be explained for ranks without a mesh", toLoc(where), "explain_ranks",
                "name its axes: {.mesh = {{\"data\", 64}}}");
  const auto machine = currentMachine();
  Traced traced = traceForRanks(std::move(options), machine, inputs, body, 0, "explain_ranks", where);
  return predict(runtime::scheduleOfRank(*traced.schedule, 0), machine->model(), std::move(traced.decisions));
}

ParallelComparison JitCore::explainParallel(int ranks, std::optional<int> axis, std::span<const TensorSpec> inputs,
                                            TraceBody &body, const std::source_location &where) const {
  JitOptions options = impl_->options;
  if (ranks < 1)
    fail<Error>("'" + options.name + "' is to be split over " + std::to_string(ranks) + " accelerators", toLoc(where),
                "explain_parallel", "there is at least 1");
  options.mesh = {{"data", ranks}}, options.shard_axis = axis, options.pipeline.reset();
  const auto machine = currentMachine();
  const Traced traced = traceForRanks(std::move(options), machine, inputs, body, ranks, "explain_parallel", where);
  return *traced.layouts;
}

void JitCore::drawPlan(const std::string &path, const std::source_location &where) const {
  std::lock_guard lock(impl_->mutex);
  const JitEntry &entry = latestOf(impl_->options, impl_->entries, where);
  detail::drawPlan(path, entry.traced.function->schedule(), modelOf(entry));
}

} // namespace tressel::detail
