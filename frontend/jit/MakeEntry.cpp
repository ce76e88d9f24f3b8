// Programs of a jitted function: recorded and compiled for a kind of call, for all sizes where it can be, within the budget of retraces.
#include "frontend/jit/JitImpl.h"
#include "frontend/tensor/Fail.h"
#include "frontend/trace/Recorder.h"

#include "frontend/trace/Fingerprint.h"
#include "runtime/types/Clock.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iostream>
#include <limits>

namespace tressel::detail {

std::vector<Tensor> recordBody(Recorder &recorder, std::span<const Tensor> inputs, TraceBody &body,
                                      std::shared_ptr<void> *prototype) {
  RecorderScope scope(&recorder);
  return body.run(inputs, prototype);
}

std::vector<Tensor> makeInputs(TraceRecorder &recorder, std::span<const TensorType> types, SourceLoc where,
                                      std::span<const std::string> names, std::span<const uint32_t> homes) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < types.size(); ++i)
    inputs.push_back(recorder.input(types[i], names.empty() ? "arg" + std::to_string(i) : names[i], where,
                                    homes.empty() ? 0 : homes[i]));
  return inputs;
}

std::vector<TensorType> typesOf(const CallArgs &args, const JitOptions &options, const std::source_location &where) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < args.tensors().size(); ++i) {
    checkLeaf(*args.tensors()[i], i, options, where);
    types.push_back(args.tensors()[i]->type());
  }
  return types;
}

static Fingerprint fingerprintOf(std::span<const TensorType> types, TraceBody &body,
                                 const std::source_location &where) {
  FingerprintRecorder recorder;
  std::vector<Tensor> inputs;
  for (const TensorType &type : types)
    inputs.push_back(recorder.input(type, toLoc(where)));
  for (const Tensor &t : recordBody(recorder, inputs, body, nullptr))
    recorder.fingerprint.result(t);
  return std::move(recorder.fingerprint);
}

/// A hash of what tells calls apart.
static uint64_t kindOf(std::span<const TensorType> types, std::span<const uint32_t> homes,
                       std::span<const uint64_t> words) {
  uint64_t hash = callMode();
  for (const TensorType &type : types)
    hash = mixHash(hash, type);
  for (uint32_t home : homes)
    hash = mixHash(hash, home);
  for (uint64_t word : words)
    hash = mixHash(hash, word);
  return hash;
}

std::optional<runtime::MachineModel> modelFor(const JitOptions &options, const runtime::Machine *machine,
                                              const std::source_location &where, std::span<const uint32_t> homes) {
  const auto &devices = options.devices;
  for (const Device &device : devices)
    if (device != cpu() && (!machine || !machine->model().find(refOf(device))))
      fail<Error>("'" + options.name + "' is to run on " + device.name() + ", which the machine does not have",
                  toLoc(where), "jit", "choose one that has it with use_machine");
  if (!machine)
    return std::nullopt;
  runtime::MachineModel model = machine->model();
  if (devices.empty())
    return model;
  auto isLeft = [&](runtime::DeviceRef ref) {
    return isHost(ref) || std::ranges::any_of(devices, [&](Device d) { return refOf(d) == ref; }) ||
           std::ranges::find(homes, homeNumber(ref)) != homes.end();
  };
  std::erase_if(model.devices, [&](const runtime::DeviceModel &d) { return !isLeft(d.device); });
  std::erase_if(model.routes, [&](const runtime::RouteModel &r) { return !isLeft(r.from) || !isLeft(r.to); });
  return model;
}

static constexpr const char *kMicroBatches = "micro";
static FinishOptions::Pipeline pipelineOf(const JitOptions &options, const std::source_location &where) {
  if (!options.pipeline)
    return {};
  const char *order = "";
  switch (options.pipeline->order) {
  case PipelineOrder::Best:
    break;
  case PipelineOrder::OneForwardOneBackward:
    order = "1f1b";
    break;
  case PipelineOrder::ZeroBubble:
    order = "zero-bubble";
    break;
  case PipelineOrder::AllForwardFirst:
    order = "gpipe";
    break;
  default:
    fail<Error>("'" + options.name + "' has a pipeline in the order " +
                    std::to_string(static_cast<int>(options.pipeline->order)) + ", which is none",
                toLoc(where), "jit", "orders are those of PipelineOrder");
  }
  return {kMicroBatches, options.pipeline->size, order};
}
/// The dimension that is cut along the mesh's first axis and into micro-batches.
static std::optional<int> shardAxisOf(const JitOptions &options) {
  return options.pipeline ? options.shard_axis.value_or(0) : options.shard_axis;
}

/// The mesh as programs name it; empty without one.
static std::string meshOf(const JitOptions &options, const runtime::Machine *machine, const std::source_location &where,
                          bool ofOneRank) {
  auto refuse = [&](const std::string &why, const char *hint) {
    fail<Error>("'" + options.name + "' " + why, toLoc(where), "jit", hint);
  };
  if (options.shard_axis && *options.shard_axis < 0)
    refuse("is to be cut along dimension " + std::to_string(*options.shard_axis),
           "shard_axis counts dimensions from the first, 0");
  if (options.bucket_bytes < 1)
    refuse("is to exchange gradients in pieces of " + std::to_string(options.bucket_bytes) + " bytes",
           "bucket_bytes is at least 1");
  if (options.mesh.empty() && !options.shard_axis && !options.pipeline)
    return {};
  const Pipeline pipeline = options.pipeline.value_or(Pipeline());
  if (pipeline.micro_batches < 1 || pipeline.size < 1)
    refuse("has a pipeline of " + std::to_string(pipeline.size) + " accelerators with " +
               std::to_string(pipeline.micro_batches) + " micro-batches",
           "both are at least 1");
  if (pipeline.micro_batches > 4096)
    refuse("has a pipeline with " + std::to_string(pipeline.micro_batches) + " micro-batches",
           "there are at most 4096");
  if (options.pipeline && ofOneRank)
    refuse("has a pipeline, and is to be the program of one rank", "ranks in processes of their own have no stages");
  size_t accelerators = 0;
  if (!options.devices.empty())
    accelerators =
        static_cast<size_t>(std::ranges::count_if(options.devices, [](Device device) { return device != cpu(); }));
  else if (machine)
    accelerators = static_cast<size_t>(std::ranges::count_if(
        machine->model().devices, [](const runtime::DeviceModel &d) { return !isHost(d.device); }));
  for (const Device &device : options.devices)
    if (std::ranges::count(options.devices, device) > 1)
      refuse("is to be cut over `devices`, of which " + device.name() + " is named twice", "name each once");
  if (accelerators == 0)
    refuse("is to be cut over accelerators, and " +
               std::string(options.devices.empty() ? "the machine has none" : "`devices` names none"),
           "choose a machine that has some with use_machine, or leave mesh, shard_axis and pipeline out");
  if (options.mesh.empty() && !options.pipeline)
    return "data=" + std::to_string(accelerators);
  std::string text;
  size_t ranks = 1;
  for (const MeshAxis &axis : options.mesh) {
    const bool isName = !axis.name.empty() && !std::isdigit(static_cast<unsigned char>(axis.name[0])) &&
                        std::ranges::all_of(axis.name, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (!isName || axis.size < 1)
      refuse("has a mesh with the axis '" + axis.name + "' of " + std::to_string(axis.size),
             "an axis has a name of letters, digits and _, and a size from 1");
    if (options.pipeline && axis.name == kMicroBatches)
      refuse("has a mesh with the axis '" + axis.name + "', which is that of the pipeline's micro-batches",
             "give it another name");
    if (std::ranges::count(options.mesh, axis.name, &MeshAxis::name) > 1)
      refuse("has a mesh with two axes called '" + axis.name + "'", "each axis has a name of its own");
    text += (text.empty() ? "" : ", ") + axis.name + "=" + std::to_string(axis.size);
    ranks *= static_cast<size_t>(axis.size);
  }
  const size_t needed = ranks * static_cast<size_t>(pipeline.size);
  if (needed > accelerators && !ofOneRank)
    refuse("has a mesh of " + std::to_string(needed) + " accelerators (" + text +
               (options.pipeline ? (text.empty() ? "" : ", ") + std::to_string(pipeline.size) + " in a row" : "") +
               "), and there are " + std::to_string(accelerators),
           "a mesh has as many places as accelerators, or fewer");
  constexpr size_t kMostParts = 4096;
  if (const size_t parts = ranks * static_cast<size_t>(pipeline.micro_batches); options.pipeline && parts > kMostParts)
    refuse("is to be computed in " + std::to_string(parts) + " parts: " + std::to_string(pipeline.micro_batches) +
               " micro-batches on each of " + std::to_string(ranks) + " accelerators (" + text + ")",
           "there are at most 4096");
  if (options.pipeline)
    text += (text.empty() ? "" : ", ") + std::string(kMicroBatches) + "=" + std::to_string(pipeline.micro_batches);
  return text;
}

void checkShardAxis(const JitOptions &options, std::span<const TensorType> types, const std::source_location &where) {
  const std::optional<int> axis = shardAxisOf(options);
  int64_t parts = options.pipeline ? options.pipeline->micro_batches : 1;
  if (!options.mesh.empty())
    parts *= options.mesh.front().size;
  else if (!options.pipeline) // cut over all accelerators: no dynamic size is known to divide
    parts = std::numeric_limits<int32_t>::max();
  for (const TensorType &type : types)
    if (axis && *axis >= 0 && type.rank() > *axis && parts > 0)
      if (const Size size = type.shape[*axis]; size.isSymbolic() && !dim::divideExactly(size, parts))
        fail<Error>("'" + options.name + "' is to be cut along dimension " + std::to_string(*axis) + " of " +
                        type.str() + ", whose size is open: its parts would have none",
                    toLoc(where), "jit", "give the size as a number, once for each that calls have");
  if (axis && std::ranges::none_of(types, [&](const TensorType &t) { return t.rank() > *axis; }))
    fail<Error>("'" + options.name + "' is to be cut along dimension " + std::to_string(*axis) +
                    ", which no argument has",
                toLoc(where), "jit", "shard_axis counts dimensions from the first, 0");
}

FinishOptions finishOptionsOf(const JitOptions &options, const std::shared_ptr<runtime::Machine> &machine,
                              const runtime::MachineModel *model, const std::source_location &where, bool ofOneRank) {
  std::vector<runtime::DeviceRef> devices;
  for (const Device &device : options.devices)
    devices.push_back(refOf(device));
  return {.name = options.name,
          .deterministic = options.deterministic,
          .diskCache = options.disk_cache,
          .measure = options.measure,
          .winograd = options.winograd,
          .keepSubnormals = options.keep_subnormals,
          .strictDonation = options.strict_donation,
          .memoryBudget = options.memory_budget,
          .autocast = options.autocast,
          .machine = machine,
          .model = model,
          .gpuLibraries = allowsLibraries(),
          .devices = std::move(devices),
          .mesh = meshOf(options, machine.get(), where, ofOneRank),
          .shardAxis = shardAxisOf(options),
          .pipeline = pipelineOf(options, where),
          .ofOneRank = ofOneRank,
          .bucketBytes = options.bucket_bytes};
}

std::shared_ptr<JitEntry> JitCore::Impl::make(std::vector<TensorType> types, std::vector<uint32_t> homes,
                                              std::vector<uint64_t> words, TraceBody &body,
                                              const std::source_location &where, const std::vector<TensorType> *call) {
  {
    std::lock_guard lock(mutex);
    budget.need(kindOf(types, homes, words));
    if (budget.isSpent(options)) { // asked for ahead of a call
      const JitEntry *known = before();
      const Difference now = known ? known->firstDifference(types, homes, words, callMode()) : Difference();
      failSpent(known ? &now : nullptr, body, where);
    }
  }
  auto entry = std::make_shared<JitEntry>();
  entry->types = std::move(types);
  entry->isSymbolic = std::ranges::any_of(entry->types, [](const TensorType &t) { return !t.shape.isStatic(); });
  entry->homes = std::move(homes);
  entry->words = std::move(words);
  entry->mode = callMode();
  entry->structureSeen = structureEpoch.load(std::memory_order_acquire);
  entry->machine = currentMachine();
  checkShardAxis(options, entry->types, where);
  (void)modelFor(options, entry->machine.get(), where); // throws where the machine lacks one of them
  const double start = runtime::nowSeconds();
  TraceRecorder recorder;
  std::vector<Tensor> results =
      recordBody(recorder, makeInputs(recorder, entry->types, toLoc(where), {}, entry->homes), body, &entry->prototype);
  const std::optional<runtime::MachineModel> model = modelFor(options, entry->machine.get(), where, recorder.homes());
  const double traced = runtime::nowSeconds();
  entry->traced = recorder.finish(results, finishOptionsOf(options, entry->machine, model ? &*model : nullptr, where));
  const double compiled = runtime::nowSeconds();
  entry->structure = recorder.structure();
  entry->stateTypes = entry->typesOfStates();
  entry->stateHomes = entry->homesOfStates();
  entry->stateCuts = entry->cutsOfStates();
  if (const auto &updated = entry->traced.updated; !updated.empty()) {
    std::unique_lock known(mutex);
    if (!assigned)
      assigned = updated.front();
    const std::array both{assigned, updated.front()};
    known.unlock(); // join waits for groups, whose holder may wait for `mutex`
    StateGroup::join(both);
  }

  std::lock_guard lock(mutex);
  ++stats.traces;
  budget.made();
  stats.trace_seconds += traced - start;
  stats.compile_seconds += compiled - traced;
  stats.kernels_compiled += static_cast<uint64_t>(entry->traced.kernelsCompiled);
  stats.kernels_cached += static_cast<uint64_t>(entry->traced.kernelsCached);
  if (const JitEntry *known = before()) {
    const Difference difference =
        known->firstDifference(call ? *call : entry->types, entry->homes, entry->words, entry->mode);
    stats.retraces.push_back(difference.text);
    budget.note(difference);
  }
  dropped.reset();
  ++generation;
  for (const auto &last : lastCalls) // hits of a LastCall bypass the cache: count them as uses here
    if (const uint64_t hits = last->hits.load(std::memory_order_relaxed); last->entry && last->hitsSeen != hits) {
      last->hitsSeen = hits;
      if (auto used = std::ranges::find(entries, last->entry); used != entries.end())
        touch(static_cast<size_t>(used - entries.begin()));
    }
  entries.insert(entries.begin(), entry);
  if (entries.size() > static_cast<size_t>(std::max(1, options.max_programs)))
    entries.pop_back();
  return entry;
}

/// The call's types with symbols where those of a known program differ; nothing if each known program differs in more
/// than one pair of sizes. The same pair in several places is one symbol: a batch of images with their labels.
std::optional<std::vector<TensorType>>
JitCore::Impl::generalized(std::span<const TensorType> types, std::span<const uint64_t> words, uint32_t mode) const {
  for (const auto &entry : entries) {
    if (entry->mode != mode || entry->types.size() != types.size() || !std::ranges::equal(entry->words, words))
      continue;
    std::vector<TensorType> general(types.begin(), types.end());
    std::optional<std::pair<Size, Size>> change; // the known size and the new one
    Size symbol;
    bool fits = true;
    for (size_t i = 0; i < types.size() && fits; ++i) {
      const TensorType &known = entry->types[i];
      fits = known.dtype == types[i].dtype && known.rank() == types[i].rank();
      for (int d = 0; fits && d < known.rank(); ++d) {
        const Size before = known.shape[d], now = types[i].shape[d];
        if (before == now)
          continue;
        if (before.isSymbolic()) { // dynamic already
          const dim::Bounds bounds = dim::bounds(before);
          fits = now >= bounds.lo && now <= bounds.hi;
          general[i].shape[d] = before;
          continue;
        }
        if (!change) {
          change = {before, now};
          symbol = dim::symbol("arg" + std::to_string(i) + "_" + std::to_string(d));
        }
        fits = *change == std::pair(before, now) && before > 0 && now > 0;
        general[i].shape[d] = symbol;
      }
    }
    if (fits && change)
      return general;
  }
  return std::nullopt;
}

/// A program for all sizes where the function allows it, else null.
std::shared_ptr<JitEntry> JitCore::Impl::makeGeneral(const std::vector<TensorType> &types,
                                                     const std::vector<uint32_t> &homes,
                                                     const std::vector<uint64_t> &words, TraceBody &body,
                                                     const std::source_location &where) {
  std::optional<std::vector<TensorType>> general;
  {
    std::lock_guard lock(mutex);
    if (!options.infer_dynamic || !options.mesh.empty() || options.shard_axis ||
        options.pipeline) // a dynamic size cannot be cut into parts
      return nullptr;
    general = generalized(types, words, callMode());
    if (!general || std::ranges::find(refused, *general) != refused.end())
      return nullptr;
  }
  try {
    return make(*general, homes, words, body, where, &types);
  } catch (const InternalError &) {
    throw;
  } catch (const Error &) { // the function needs the size as a number: each size keeps a program of its own
    std::lock_guard lock(mutex);
    refused.push_back(std::move(*general));
    return nullptr;
  }
}

/// Records once more, and compares with the first call.
void JitCore::Impl::check(JitEntry &entry, TraceBody &body, const std::source_location &where) {
  Fingerprint now = fingerprintOf(entry.types, body, where);
  std::lock_guard lock(mutex);
  ++stats.checks;
  if (std::string difference = now.differsFrom(entry.traced.fingerprint); !difference.empty())
    fail<TraceError>(
        "'" + options.name + "' recorded another program than at its first call: " + difference, toLoc(where), "jit",
        "what a jitted function reads from outside is fixed when it is recorded: pass it as an argument, or "
        "make it a Variable");
}

void JitCore::Impl::failSpent(const Difference *now, TraceBody &body, const std::source_location &where) const {
  fail<TraceError>(budget.message(options, now, body), toLoc(where), "jit", budget.hint(options));
}

/// A call that is over the budget: throws, or returns for the call to run op by op.
void JitCore::Impl::spend(const CallArgs &args, TraceBody &body, const std::source_location &where) {
  const auto machine = currentMachine();
  const std::optional<runtime::MachineModel> model = modelFor(options, machine.get(), where);
  // Imperative ops run on the host, and flush subnormal numbers.
  const bool needsProgram = options.keep_subnormals || (model && std::ranges::any_of(model->devices, [](const runtime::DeviceModel &d) {
                              return d.device.kind != runtime::DeviceKind::Cpu;
                            }));
  const std::vector<TensorType> types = typesOf(args, options, where);
  std::string warning;
  {
    std::lock_guard lock(mutex);
    const JitEntry *known = before();
    const Difference now =
        known ? known->firstDifference(types, JitEntry::homesOf(args.tensors()), args.words(), callMode())
              : Difference();
    const bool throws = options.strict_retrace || needsProgram, warns = !throws && budget.warns();
    if (throws || warns)
      budget.need(kindOf(types, JitEntry::homesOf(args.tensors()), args.words()));
    if (throws)
      failSpent(known ? &now : nullptr, body, where);
    if (warns)
      warning = budget.message(options, known ? &now : nullptr, body) +
                "; calls that need another program run op by op from now on: " + budget.hint(options);
    ++stats.imperative;
  }
  if (!warning.empty()) {
    const SourceLoc line = userLine(toLoc(where));
    std::cerr << "tressel: " + (line ? line.str() + ": " : std::string()) + warning + "\n";
  }
}

/// Null: the budget is spent, and the call must run op by op.
Found JitCore::Impl::entryFor(const CallArgs &args, TraceBody &body, const std::source_location &where) {
  Found found = find(args, callMode());
  if (!found.entry) {
    std::unique_lock lock(compiling, std::defer_lock);
    std::optional<Making> making;
    if (!isSpent()) {
      lock.lock();
      making.emplace(maker);
      found = find(args, callMode()); // another thread may have made it meanwhile
    }
    if (!found.entry && isSpent()) {
      spend(args, body, where);
      return {};
    }
    if (!found.entry) {
      const std::vector<TensorType> types = typesOf(args, options, where);
      const std::vector<uint64_t> words(args.words().begin(), args.words().end());
      const std::vector<uint32_t> homes = JitEntry::homesOf(args.tensors());
      found.entry = makeGeneral(types, homes, words, body, where);
      if (!found.entry)
        found.entry = make(types, homes, words, body, where);
      std::lock_guard count(mutex);
      found.entry->calls = 1;
      return found;
    }
  }
  if (found.calls == 2 || (checkInterval() && found.calls % checkInterval() == 0)) [[unlikely]]
    check(*found.entry, body, where);
  return found;
}

} // namespace tressel::detail
