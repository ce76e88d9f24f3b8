#include "CudnnKernel.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace tressel::runtime::cuda {
namespace {

constexpr int64_t kMostKnobs = 64, kMostNotes = 32;

/// "12,3=4,7=1" for engine 12 with choices for two of its knobs.
using Knobs = std::vector<std::pair<int, int64_t>>;
std::string spell(int64_t engine, const Knobs &knobs) {
  std::string text = concat(engine);
  for (const auto &[knob, value] : knobs)
    text += concat(",", knob, "=", value);
  return text;
}
std::optional<std::pair<int64_t, Knobs>> parseEngine(const std::string &text) {
  const char *at = text.data(), *const end = at + text.size();
  auto number = [&](auto &value) {
    const auto [next, error] = std::from_chars(at, end, value);
    return at = next, error == std::errc();
  };
  std::pair<int64_t, Knobs> parsed;
  if (!number(parsed.first))
    return std::nullopt;
  while (at != end) {
    auto &[knob, value] = parsed.second.emplace_back();
    if (*at++ != ',' || !number(knob) || at == end || *at++ != '=' || !number(value))
      return std::nullopt;
  }
  return parsed;
}

} // namespace

std::optional<dnn::DataType> CudnnKernel::dataType(DType type) {
  switch (type) {
  case f32:
    return dnn::kF32;
  case f16:
    return dnn::kF16;
  case bf16:
    return dnn::kBf16;
  default:
    return std::nullopt;
  }
}

/// An engine with its knobs set, as a plan that runs.
struct CudnnKernel::Candidate {
  std::string name;
  std::vector<CudnnDescriptor> descriptors; ///< the plan is the last one
  dnn::Descriptor plan = nullptr;
};

struct CudnnKernel::Plan final : LibraryKernel::Plan {
  explicit Plan(const Cudnn &library) : graph(library) {}
  CudnnGraph graph;
  std::optional<Candidate> chosen;
};

CudnnKernel::CudnnKernel(const char *computes, const KernelDesc &desc, std::shared_ptr<const GpuKernel> generated,
                         const Cudnn &library, Cudnn::CardHandle *handle, const Card &card, const Driver &driver)
    : LibraryKernel({.name = "cuDNN",
                     .choices = kChoices,
                     .variable = "TRESSEL_CUDNN_TUNE",
                     .mostAlignment = CudnnGraph::kMostAlignment},
                    desc, std::move(generated), card, driver),
      library_(library), computes_(computes), handle_(*handle) {}

//--- Plans ------------------------------------------------------------------------------------------------------------
std::unique_ptr<LibraryKernel::Plan> CudnnKernel::planOf(const Call &call, const std::string &problem,
                                                         const std::string &words, const Describe &describe) const {
  auto plan = std::make_unique<Plan>(library_);
  std::lock_guard lock(handle_.mutex);
  try {
    describe(plan->graph);
    plan->graph.finish(handle_.handle);
    choose(*plan, problem, words, call);
  } catch (const CudnnFailure &failure) {
    const std::string what = concat(failure.what, " failed: ", library_.describe(failure.status));
    if (!dnn::isRefusal(failure.status))
      fail(concat("cuDNN: ", what));
    noteGenerated(concat("cuDNN does not take its ", computes_, ": ", what));
    return nullptr;
  }
  return plan;
}

bool CudnnKernel::writesWhatItReads(const Call &call) const {
  const Region &result = call.regions[result_];
  const bool does = std::any_of(reads_.begin(), reads_.end(), [&](const auto &read) {
    const Region &region = call.regions[read.second];
    return overlap(result, region) && !(read.first == kResidual && result.address == region.address);
  });
  if (does)
    noteGenerated("its result lies over what it reads, which cuDNN does not take");
  return does;
}

bool CudnnKernel::serves(const CudnnDescriptor &engine) const {
  std::array<int, kMostNotes> notes{};
  const int64_t count = std::min(engine.read(dnn::kEngineNotes, dnn::kTypeNote, kMostNotes, notes.data()), kMostNotes);
  return std::none_of(notes.begin(), notes.begin() + count, [&](int note) {
    switch (note) {
    case dnn::kTensorCore:
    case dnn::kDownConvertsInputs:
      return type_ == f32;
    case dnn::kReducedPrecisionReduction:
    case dnn::kFft:
    case dnn::kNondeterministic:
    case dnn::kWinograd:
    case dnn::kWinograd4:
    case dnn::kWinograd6:
    case dnn::kWinograd13:
      return true;
    default:
      return false;
    }
  });
}

/// Nothing: the library makes no plan of it, or one that needs more memory.
std::optional<CudnnKernel::Candidate> CudnnKernel::build(CudnnDescriptor config, std::string name,
                                                         size_t workspaceBytes) const {
  try {
    CudnnDescriptor plan(library_, dnn::kExecutionPlan, "making a plan");
    plan.set(dnn::kPlanHandle, dnn::kTypeHandle, 1, &handle_.handle).set(dnn::kPlanConfig, config).finalize();
    if (static_cast<uint64_t>(plan.number(dnn::kPlanWorkspace)) > workspaceBytes)
      return std::nullopt;
    Candidate made{.name = std::move(name), .descriptors = {}, .plan = plan.get()};
    made.descriptors.push_back(std::move(config));
    made.descriptors.push_back(std::move(plan));
    return made;
  } catch (const CudnnFailure &) {
    return std::nullopt;
  }
}

std::optional<CudnnKernel::Candidate> CudnnKernel::rebuild(const Plan &plan, const std::string &name,
                                                           size_t workspaceBytes) const {
  const auto parsed = parseEngine(name);
  if (!parsed)
    return std::nullopt;
  try {
    std::vector<CudnnDescriptor> parts;
    CudnnDescriptor engine(library_, dnn::kEngine, "taking an engine that was kept");
    engine.set(dnn::kEngineGraph, plan.graph.descriptor()).set(dnn::kEngineIndex, parsed->first).finalize();
    if (!serves(engine))
      return std::nullopt;
    for (const auto &[knob, value] : parsed->second)
      parts.emplace_back(library_, dnn::kKnobChoice, "setting a knob")
          .set(dnn::kKnobType, dnn::kTypeKnob, knob)
          .set(dnn::kKnobValue, value)
          .finalize();
    CudnnDescriptor config(library_, dnn::kEngineConfig, "setting an engine");
    config.set(dnn::kConfigEngine, engine);
    if (!parts.empty())
      config.set(dnn::kConfigKnobs, parts);
    config.finalize();
    std::optional<Candidate> made = build(std::move(config), name, workspaceBytes);
    if (made) {
      parts.push_back(std::move(engine));
      for (CudnnDescriptor &part : parts)
        made->descriptors.push_back(std::move(part));
    }
    return made;
  } catch (const CudnnFailure &) { // it has no such engine any more
    return std::nullopt;
  }
}

void CudnnKernel::propose(const Plan &plan, dnn::HeuristicMode mode, size_t wanted, size_t workspaceBytes,
                          std::vector<Candidate> &found) const {
  CudnnDescriptor heuristics(library_, dnn::kHeuristics, "asking for engines");
  heuristics.set(dnn::kHeuristicsGraph, plan.graph.descriptor())
      .set(dnn::kHeuristicsMode, dnn::kTypeHeuristicMode, mode)
      .finalize();
  const int64_t count = heuristics.count(dnn::kHeuristicsResults, dnn::kTypeDescriptor);
  for (CudnnDescriptor &config :
       heuristics.list(dnn::kHeuristicsResults, dnn::kEngineConfig, count, "asking for engines")) {
    if (found.size() == wanted)
      break;
    std::vector<CudnnDescriptor> engines = config.list(dnn::kConfigEngine, dnn::kEngine, 1, "reading an engine");
    if (engines.empty() || !serves(engines[0]))
      continue;
    Knobs knobs;
    for (const CudnnDescriptor &knob :
         config.list(dnn::kConfigKnobs, dnn::kKnobChoice, kMostKnobs, "reading the knobs of an engine"))
      knobs.emplace_back(static_cast<int>(knob.number(dnn::kKnobType, dnn::kTypeKnob)), knob.number(dnn::kKnobValue));
    std::string name = spell(engines[0].number(dnn::kEngineIndex), knobs);
    if (std::optional<Candidate> made = build(std::move(config), std::move(name), workspaceBytes))
      found.push_back(std::move(*made));
  }
}

void CudnnKernel::choose(Plan &plan, const std::string &problem, const std::string &words, const Call &call) const {
  const size_t workspaceBytes = call.workspace ? kWorkspaceBytes : 0;
  const Tuning tuned = tuning(call);
  if (tuned != Tuning::Off)
    if (const auto kept = choices().find(problem))
      if ((plan.chosen = rebuild(plan, *kept, workspaceBytes))) {
        plan.isTaken = true;
        return;
      }
  std::vector<Candidate> usable;
  for (const dnn::HeuristicMode mode : {dnn::kModeA, dnn::kFallback})
    try {
      if (usable.empty())
        propose(plan, mode, tuned == Tuning::On ? kMostCandidates : 1, workspaceBytes, usable);
    } catch (const CudnnFailure &failure) { // a mode need not know the graph
      if (!dnn::isRefusal(failure.status))
        throw;
    }
  if (usable.empty()) {
    noteGenerated(concat("cuDNN has no engine for its ", computes_, " (", nameOf(type_), ", ", words,
                         ") that is as exact as the generated kernel"));
    return;
  }
  plan.isTaken = true;
  size_t best = 0;
  if (tuned == Tuning::On && usable.size() > 1)
    if (const auto fastest = measure(usable.size(), call, result_, residual_, [&](size_t candidate, void *result) {
          return execute(usable[candidate], call, result) == dnn::kDone;
        })) {
      best = *fastest;
      choices().keep(problem, usable[best].name);
    }
  plan.chosen = std::move(usable[best]);
}

//--- Launches ---------------------------------------------------------------------------------------------------------
/// With the handle's mutex held.
dnn::Status CudnnKernel::execute(const Candidate &candidate, const Call &call, void *result) const {
  std::vector<int64_t> ids{kResult};
  std::vector<void *> pointers{result};
  for (const auto &[id, operand] : reads_)
    ids.push_back(id), pointers.push_back(call.regions[operand].address);
  for (const auto &[id, number] : numbers_)
    ids.push_back(id), pointers.push_back(const_cast<float *>(&number));
  try {
    CudnnDescriptor pack(library_, dnn::kVariantPack, "giving the addresses");
    pack.set(dnn::kPackIds, ids)
        .set(dnn::kPackPointers, dnn::kTypePointer, static_cast<int64_t>(pointers.size()), pointers.data())
        .set(dnn::kPackWorkspace, dnn::kTypePointer, 1, &call.workspace)
        .finalize();
    if (const dnn::Status status = library_.cudnnSetStream(handle_.handle, call.stream); status != dnn::kDone)
      return status;
    return library_.cudnnBackendExecute(handle_.handle, candidate.plan, pack.get());
  } catch (const CudnnFailure &failure) {
    return failure.status;
  }
}

bool CudnnKernel::run(const LibraryKernel::Plan &of, const Call &call) const {
  const auto &plan = static_cast<const Plan &>(of);
  std::lock_guard lock(handle_.mutex);
  const dnn::Status status = execute(*plan.chosen, call, call.regions[result_].address);
  if (status == dnn::kDone)
    return true;
  if (!dnn::isRefusal(status))
    fail(concat("cudnnBackendExecute failed: ", library_.describe(status)));
  noteGenerated(concat("cuDNN does not compute its ", computes_, ": ", library_.describe(status)));
  plan.isTaken = false;
  return false;
}

} // namespace tressel::runtime::cuda
