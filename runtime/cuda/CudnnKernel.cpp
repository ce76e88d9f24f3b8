#include "CudnnKernel.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <deque>
#include <numeric>
#include <utility>

namespace tressel::runtime::cuda {
namespace {

constexpr unsigned kMostAlignment = 16; // bytes
constexpr int64_t kMostKnobs = 64, kMostNotes = 32;

/// Of the tensors that a launch gives addresses for; those that are virtual follow.
enum Id : int64_t { kImage = 1, kWeights, kResidual, kBias, kResult, kFirstVirtual };

std::optional<dnn::DataType> dataType(DType type) {
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

__int128 product(const std::vector<int64_t> &values) {
  return std::accumulate(values.begin(), values.end(), static_cast<__int128>(1),
                         [](__int128 all, int64_t value) { return all * value; });
}

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

/// An engine with its knobs set, as a plan that runs.
struct CudnnKernel::Candidate {
  std::string name;
  std::vector<CudnnDescriptor> descriptors; ///< the plan is the last one
  dnn::Descriptor plan = nullptr;
};

struct CudnnKernel::Plan final : LibraryKernel::Plan {
  std::deque<CudnnDescriptor> parts; ///< of the graph: they stay where they are
  std::optional<CudnnDescriptor> graph;
  std::optional<Candidate> chosen;
};

CudnnKernel::CudnnKernel(const KernelDesc &desc, const json::Value &params, const json::Value &call,
                         std::shared_ptr<const GpuKernel> generated, const Cudnn &library, Cudnn::CardHandle *handle,
                         const Card &card, const Driver &driver)
    : LibraryKernel(
          {.name = "cuDNN", .choices = kName, .variable = "TRESSEL_CUDNN_TUNE", .mostAlignment = kMostAlignment}, desc,
          std::move(generated), card, driver),
      library_(library), handle_(*handle) {
  auto list = [&](std::string_view name) {
    std::vector<Size> sizes;
    for (const json::Value &value : call.at(name).items())
      sizes.push_back(sizeFrom(value));
    if (sizes.size() != 2 && sizes.size() != 3)
      throwError<InputError>("'", name, "' has ", sizes.size(), " sizes instead of 2 or 3");
    if (!in_.empty() && sizes.size() != in_.size())
      throwError<InputError>("'", name, "' has ", sizes.size(), " sizes and 'in' ", in_.size());
    return sizes;
  };
  try {
    if (!parseDType(call.at("type").asString(), type_) || !dataType(type_))
      throwError<InputError>("convolutions of ", call.at("type").asString(), " are not computed by cuDNN");
    const std::string layout = call.at("layout").asString();
    if (layout != "nchw" && layout != "nhwc")
      throwError<InputError>("'", layout, "' is no layout");
    channelsLast_ = layout == "nhwc";
    batch_ = sizeFrom(call.at("batch"));
    groups_ = call.at("groups").asInt();
    inChannels_ = call.at("in_channels").asInt(), outChannels_ = call.at("out_channels").asInt();
    if (groups_ < 1 || inChannels_ < 1 || outChannels_ < 1 || inChannels_ % groups_ || outChannels_ % groups_)
      throwError<InputError>(inChannels_, " and ", outChannels_, " channels do not make ", groups_, " groups");
    in_ = list("in"), out_ = list("out"), window_ = list("window");
    strides_ = list("strides"), dilations_ = list("dilations"), pad_ = list("pad");
    image_ = operandFrom(call.at("image")), weights_ = operandFrom(call.at("weights"));
    result_ = operandFrom(call.at("result"));
    if (const json::Value *found = call.find("bias"))
      bias_ = operandFrom(*found);
    if (const json::Value *found = call.find("residual"))
      residual_ = operandFrom(*found);
    if (const json::Value *found = call.find("alpha"))
      alpha_ = static_cast<float>(found->asDouble());
    if (const json::Value *found = call.find("relu"))
      relu_ = found->asBool();
    readSymbols(params);
  } catch (const InputError &problem) {
    refuseDescription(problem.message());
  }
  operands_ = {image_, weights_, residual_, bias_, result_};
}

//--- Numbers ----------------------------------------------------------------------------------------------------------
std::optional<CudnnKernel::Numbers> CudnnKernel::numbersOf(std::span<const int64_t> scalars) const {
  const dim::Values values = valuesOf(scalars);
  Numbers n;
  try {
    n.batch = numberOf(batch_, values);
    for (const auto &[sizes, numbers] :
         {std::pair(&in_, &n.in), std::pair(&out_, &n.out), std::pair(&window_, &n.window),
          std::pair(&strides_, &n.strides), std::pair(&dilations_, &n.dilations), std::pair(&pad_, &n.pad)})
      for (const Size &size : *sizes)
        numbers->push_back(numberOf(size, values));
  } catch (const Error &) { // a symbol that the launch does not carry
    noteGenerated("the launch does not carry the sizes of its convolution");
    return std::nullopt;
  }
  // Sizes of 0 are the generated kernel's.
  bool isWhole = n.batch >= 1 && n.batch <= INT_MAX;
  for (const auto *list : {&n.in, &n.out, &n.window, &n.strides, &n.dilations})
    for (int64_t number : *list)
      isWhole &= number >= 1 && number <= INT_MAX;
  for (int64_t number : n.pad)
    isWhole &= number >= 0 && number <= INT_MAX;
  if (!isWhole)
    return std::nullopt;
  for (size_t d = 0; d < n.in.size(); ++d)
    if (const int64_t room = n.in[d] + 2 * n.pad[d] - n.dilations[d] * (n.window[d] - 1) - 1;
        room < 0 || room / n.strides[d] + 1 != n.out[d]) {
      noteGenerated("the sizes of its convolution are not what cuDNN makes of them");
      return std::nullopt;
    }
  return n;
}

void CudnnKernel::checkElements(const Numbers &n, const Call &call) const {
  const __int128 result = product(n.out) * n.batch * outChannels_;
  needElements(call, image_, product(n.in) * n.batch * inChannels_, type_);
  needElements(call, weights_, product(n.window) * outChannels_ * (inChannels_ / groups_), type_);
  needElements(call, result_, result, type_);
  if (residual_)
    needElements(call, *residual_, result, type_);
  if (bias_)
    needElements(call, *bias_, outChannels_, type_);
}

std::vector<int64_t> CudnnKernel::stridesOf(const std::vector<int64_t> &dims) const {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = channelsLast_ ? dims[1] : 1;
  for (size_t d = dims.size(); d-- > 2;)
    strides[d] = stride, stride *= dims[d];
  strides[1] = channelsLast_ ? 1 : stride;
  strides[0] = channelsLast_ ? stride : stride * dims[1];
  return strides;
}

//--- Graphs -----------------------------------------------------------------------------------------------------------
void CudnnKernel::describe(Plan &plan, const Key &key, const Numbers &n) const {
  auto part = [&](dnn::Kind kind, const char *what) -> CudnnDescriptor & {
    return plan.parts.emplace_back(library_, kind, what);
  };
  auto tensor = [&](int64_t id, dnn::DataType type, int64_t alignment, const std::vector<int64_t> &dims,
                    const std::vector<int64_t> &strides) -> CudnnDescriptor & {
    CudnnDescriptor &made = part(dnn::kTensor, "describing a tensor");
    made.set(dnn::kTensorType, dnn::kTypeDataType, type).set(dnn::kTensorDimensions, dims);
    made.set(dnn::kTensorStrides, strides).set(dnn::kTensorId, id).set(dnn::kTensorAlignment, alignment);
    if (const bool isVirtual = id >= kFirstVirtual)
      made.set(dnn::kTensorIsVirtual, dnn::kTypeBoolean, 1, &isVirtual);
    return made.finalize();
  };
  auto dimsOf = [](int64_t first, int64_t second, const std::vector<int64_t> &rest) {
    std::vector<int64_t> dims{first, second};
    dims.insert(dims.end(), rest.begin(), rest.end());
    return dims;
  };
  const dnn::DataType type = *dataType(type_);
  const std::vector<int64_t> imageDims = dimsOf(n.batch, inChannels_, n.in),
                             weightDims = dimsOf(outChannels_, inChannels_ / groups_, n.window),
                             resultDims = dimsOf(n.batch, outChannels_, n.out);
  // A window of one element has its weights in both layouts: then those are said to lie as the image does.
  std::vector<int64_t> weightStrides = stridesOf(weightDims);
  if (channelsLast_ && product(n.window) != 1) {
    int64_t stride = 1;
    for (size_t d = weightDims.size(); d-- > 0;)
      weightStrides[d] = stride, stride *= weightDims[d];
  }
  const CudnnDescriptor &image = tensor(kImage, type, key.alignments[0], imageDims, stridesOf(imageDims)),
                        &weights = tensor(kWeights, type, key.alignments[1], weightDims, weightStrides);

  const bool adds = residual_ || bias_;
  int operationsLeft = 1 + residual_.has_value() + bias_.has_value() + relu_;
  int64_t nextVirtual = kFirstVirtual;
  auto following = [&]() -> const CudnnDescriptor & {
    return --operationsLeft == 0 ? tensor(kResult, type, key.alignments[4], resultDims, stridesOf(resultDims))
                                 : tensor(nextVirtual++, dnn::kF32, kMostAlignment, resultDims, stridesOf(resultDims));
  };
  std::vector<dnn::Descriptor> operations;
  const auto dimensions = static_cast<int64_t>(n.in.size());
  const CudnnDescriptor &convolution =
      part(dnn::kConvolution, "describing the convolution")
          .set(dnn::kConvolutionType, dnn::kTypeDataType, dnn::kF32)
          .set(dnn::kConvolutionMode, dnn::kTypeConvolutionMode, dnn::kCrossCorrelation)
          .set(dnn::kConvolutionSpaces, dimensions)
          .set(dnn::kConvolutionPadLow, n.pad)
          .set(dnn::kConvolutionPadHigh, n.pad)
          .set(dnn::kConvolutionStrides, n.strides)
          .set(dnn::kConvolutionDilations, n.dilations)
          .finalize();
  const CudnnDescriptor *value = &following();
  operations.push_back(part(dnn::kConvolutionForward, "describing the operation of the convolution")
                           .set(dnn::kForwardX, image)
                           .set(dnn::kForwardW, weights)
                           .set(dnn::kForwardY, *value)
                           .set(dnn::kForwardConvolution, convolution)
                           .set(dnn::kForwardAlpha, adds ? 1 : alpha_)
                           .set(dnn::kForwardBeta, 0.0f)
                           .finalize()
                           .get());
  auto pointwise = [&](dnn::PointwiseMode mode, const CudnnDescriptor *other, float factor) {
    const CudnnDescriptor &kind = part(dnn::kPointwise, "describing what follows the convolution")
                                      .set(dnn::kPointwiseMode, dnn::kTypePointwiseMode, mode)
                                      .set(dnn::kPointwisePrecision, dnn::kTypeDataType, dnn::kF32)
                                      .finalize();
    const CudnnDescriptor &to = following();
    CudnnDescriptor &operation = part(dnn::kPointwiseOperation, "describing the operation behind the convolution");
    operation.set(dnn::kPointwiseDescriptor, kind).set(dnn::kPointwiseX, *value).set(dnn::kPointwiseY, to);
    if (other)
      operation.set(dnn::kPointwiseB, *other).set(dnn::kPointwiseAlpha1, factor).set(dnn::kPointwiseAlpha2, 1.0f);
    operations.push_back(operation.finalize().get());
    value = &to;
  };
  if (residual_)
    pointwise(dnn::kAdd, &tensor(kResidual, type, key.alignments[2], resultDims, stridesOf(resultDims)), alpha_);
  if (bias_) {
    const std::vector<int64_t> dims = dimsOf(1, outChannels_, std::vector<int64_t>(n.in.size(), 1));
    pointwise(dnn::kAdd, &tensor(kBias, type, key.alignments[3], dims, stridesOf(dims)), residual_ ? 1 : alpha_);
  }
  if (relu_)
    pointwise(dnn::kRelu, nullptr, 1);

  plan.graph.emplace(library_, dnn::kOperationGraph, "describing the graph");
  plan.graph->set(dnn::kGraphHandle, dnn::kTypeHandle, 1, &handle_.handle)
      .set(dnn::kGraphOperations, dnn::kTypeDescriptor, static_cast<int64_t>(operations.size()), operations.data())
      .finalize();
}

//--- Plans ------------------------------------------------------------------------------------------------------------
std::unique_ptr<LibraryKernel::Plan> CudnnKernel::make(const Key &key, const Call &call) const {
  const auto n = numbersOf(call.scalars);
  if (!n)
    return nullptr;
  checkElements(*n, call);
  // The library lets the residual be the result, and not what the convolution reads.
  const Region &result = call.regions[result_];
  if (overlap(result, call.regions[image_]) || overlap(result, call.regions[weights_]) ||
      (bias_ && overlap(result, call.regions[*bias_])) ||
      (residual_ && overlap(result, call.regions[*residual_]) && result.address != call.regions[*residual_].address)) {
    noteGenerated("its result lies over what it reads, which cuDNN does not take");
    return nullptr;
  }
  auto plan = std::make_unique<Plan>();
  std::lock_guard lock(handle_.mutex);
  try {
    describe(*plan, key, *n);
    choose(*plan, key, *n, call);
  } catch (const CudnnFailure &failure) {
    const std::string what = concat(failure.what, " failed: ", library_.describe(failure.status));
    if (!dnn::isRefusal(failure.status))
      fail(concat("cuDNN: ", what));
    noteGenerated(concat("cuDNN does not take its convolution: ", what));
    return nullptr;
  }
  return plan;
}

std::string CudnnKernel::problemOf(const Key &key, const Numbers &n) const {
  std::string text =
      concat(LibraryKernel::problemOf(library_.version), ",", nameOf(type_), channelsLast_ ? ",nhwc," : ",nchw,",
             n.batch, ",", groups_, ",", inChannels_, ",", outChannels_);
  for (const auto *list : {&n.in, &n.window, &n.strides, &n.dilations, &n.pad})
    for (int64_t number : *list)
      text += concat(",", number);
  text += concat(bias_ ? ",bias" : "", relu_ ? ",relu" : "", residual_ ? ",residual" : "",
                 key.hasWorkspace ? ",workspace" : "");
  for (uint16_t alignment : key.alignments)
    text += concat(",", alignment);
  return text;
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
    engine.set(dnn::kEngineGraph, *plan.graph).set(dnn::kEngineIndex, parsed->first).finalize();
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
  heuristics.set(dnn::kHeuristicsGraph, *plan.graph)
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

void CudnnKernel::choose(Plan &plan, const Key &key, const Numbers &numbers, const Call &call) const {
  const size_t workspaceBytes = call.workspace ? kWorkspaceBytes : 0;
  const Tuning tuned = tuning(call);
  const std::string problem = tuned == Tuning::Off ? "" : problemOf(key, numbers);
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
    noteGenerated(concat("cuDNN has no engine for its convolution (", nameOf(type_), ", ",
                         channelsLast_ ? "channels last" : "channels first", ", ", inChannels_, " to ", outChannels_,
                         " channels) that is as exact as the generated kernel"));
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
  std::vector<int64_t> ids{kImage, kWeights, kResult};
  std::vector<void *> pointers{call.regions[image_].address, call.regions[weights_].address, result};
  for (const auto &[operand, id] : {std::pair(residual_, kResidual), std::pair(bias_, kBias)})
    if (operand)
      ids.push_back(id), pointers.push_back(call.regions[*operand].address);
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
  noteGenerated(concat("cuDNN does not compute its convolution: ", library_.describe(status)));
  plan.isTaken = false;
  return false;
}

} // namespace tressel::runtime::cuda
