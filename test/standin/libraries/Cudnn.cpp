// A stand-in for cuDNN, on the stand-in driver: libcudnn.so.9. It computes what the descriptors of an operation graph
// say, by plain loops over the addresses that a variant pack gives, as an operation of the handle's stream. So a wrong
// stride, pad, type, order of operations or address shows in the numbers, and a missing wait among the findings.
//
// It takes two kinds of graphs (CudnnGraph.h). CudnnConvolution: a convolution forward of f32, f16 and bf16 with sums
// in f32, any strides, and behind it a chain of additions (tensors of the result's size, or of 1 where they are the
// same along a dimension) and relu, with virtual tensors between. CudnnAttention: the graph of attention forward.
// Engines add up in different orders, and differ in what they need and what their numerical notes say; those that round
// more than the others do so, for programs that must not take them.
//
// Descriptors are held to more than NVIDIA's library is: one that another one refers to has to be alive. By the
// documentation ("cuDNN Backend API Reference", cudnn_graph); nothing of the project is used.
#include "CudnnGraph.h"

#include <algorithm>
#include <utility>

namespace tressel::standin::cudnn {

std::unique_ptr<Graph> Graph::of(const Descriptor &graph) {
  const Kind first = operationsOf(graph).front()->kind;
  if (first == kForward)
    return convolutionGraph(graph);
  if (first == kMatmulOp)
    return attentionGraph(graph);
  refuse(kPattern, "no graph begins with such an operation");
  return nullptr;
}

namespace {

struct Context {
  void *stream = nullptr;
};
std::set<const Context *> &contexts() {
  static auto &all = *new std::set<const Context *>;
  return all;
}
bool isHandle(int64_t value) { return contexts().contains(reinterpret_cast<const Context *>(value)); }

int finalizeGraph(const Descriptor &d) {
  if (state.graphFailure)
    return refuse(state.graphFailure, "asked for by a test");
  if (!isHandle(d.one(800)))
    return refuse(kBadParam, "no handle");
  const auto graph = Graph::of(d);
  return graph ? graph->check() : kPattern;
}
int64_t spell(const std::shared_ptr<Descriptor> &d) { return reinterpret_cast<int64_t>(d.get()); }
int finalizeHeuristics(Descriptor &d) {
  ++state.heuristics;
  const int64_t mode = d.one(200);
  if (mode != 0 && mode != 2 && mode != 3)
    return refuse(kNotSupported, "the mode of the heuristics");
  if (mode == 3 && state.modeFailure)
    return refuse(state.modeFailure, "asked for by a test");
  const auto graph = Graph::of(d.other(201));
  for (const auto &[number, order] : graph->proposals(mode == 2)) {
    if (state.hasNoEngine || (state.onlyEngine >= 0 && number != state.onlyEngine) || graph->missing(number))
      continue;
    const auto engine = own(kEngine, {{1300, {d.one(201)}}, {1301, {number}}, {1303, graph->notesOf(number)}});
    const auto config = own(kConfig, {{300, {spell(engine)}}});
    config->owned.push_back(engine);
    if (order) {
      config->owned.push_back(own(kKnob, {{600, {kOrderKnob}}, {601, {*order}}}));
      config->values[302] = {spell(config->owned.back())};
    }
    d.owned.push_back(config);
    d.values[202].push_back(spell(config));
  }
  return kOk;
}
int finalizeEngine(Descriptor &d) {
  const auto graph = Graph::of(d.other(1300));
  if (const char *why = graph->missing(d.one(1301)))
    return refuse(kNotSupported, why);
  d.values[1303] = graph->notesOf(d.one(1301));
  return kOk;
}
int finalizeConfig(const Descriptor &d) {
  const Descriptor &engine = d.other(300);
  if (d.has(302))
    for (int64_t each : d.list(302)) {
      const Descriptor &knob = Descriptor::at(each);
      if (!Graph::of(engine.other(1300))->hasOrder(engine.one(1301)) || knob.one(600) != kOrderKnob ||
          knob.one(601) < 0 || knob.one(601) > 1)
        return refuse(kBadParam, "the engine has no such knob, or no such value of it");
    }
  return kOk;
}
int finalizePlan(Descriptor &d) {
  if (const int status = std::exchange(state.planFailure, 0))
    return refuse(status, "asked for by a test");
  if (!isHandle(d.one(400)))
    return refuse(kBadParam, "no handle");
  const Descriptor &engine = d.other(401).other(300);
  d.values[402] = {Graph::of(engine.other(1300))->workspaceOf(engine.one(1301))};
  return kOk;
}
int finalizePack(const Descriptor &d) {
  if (d.list(1000).size() != d.list(1001).size())
    return refuse(kBadParam, "a pack has other addresses than numbers");
  const std::set<int64_t> ids(d.list(1000).begin(), d.list(1000).end());
  return ids.size() == d.list(1000).size() ? kOk : refuse(kDuplicated, "a number is twice in a pack");
}

int finalize(Descriptor &d) {
  switch (d.kind) {
  case kGraph:
    return finalizeGraph(d);
  case kHeuristics:
    return finalizeHeuristics(d);
  case kEngine:
    return finalizeEngine(d);
  case kConfig:
    return finalizeConfig(d);
  case kPlan:
    return finalizePlan(d);
  case kPack:
    return finalizePack(d);
  default:
    return finalizePart(d);
  }
}

/// A launch, as an operation of a stream.
struct Run {
  std::unique_ptr<Graph> graph;
  Launch launch;
  void compute() const { graph->compute(launch); }
};

/// The bytes of a tensor; those between its elements too, unless it is written.
void addBytes(std::vector<LibraryBytes> &list, uint64_t address, const Tensor &t, bool isWrite) {
  if (!isWrite || t.span() == t.elements()) {
    list.push_back({address, static_cast<uint64_t>(t.span()) * t.elementBytes(), isWrite});
    return;
  }
  for (int64_t i = 0; i < t.elements(); ++i)
    list.push_back({address + t.offsetOf(t.indexOf(i)), t.elementBytes(), true});
}

} // namespace

PUBLIC CudnnControl *tressel_standin_cudnn() { return &state; }

PUBLIC size_t cudnnGetVersion() { return versionFrom("TRESSEL_STANDIN_CUDNN_VERSION", 91900); }

PUBLIC const char *cudnnGetErrorString(int status) {
  switch (status) {
  case kOk:
    return "CUDNN_STATUS_SUCCESS";
  case kNotInitialized:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case kBadParam:
    return "CUDNN_STATUS_BAD_PARAM";
  case kNullPointer:
    return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
  case kMisaligned:
    return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
  case kNotFinalized:
    return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
  case kShapeMismatch:
    return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
  case kDuplicated:
    return "CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES";
  case kAttributeType:
    return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
  case kDescriptorType:
    return "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE";
  case kNotSupported:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case kPattern:
    return "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN";
  case kDataType:
    return "CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE";
  case kExecutionFailed:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "CUDNN_UNKNOWN_STATUS";
}

PUBLIC int cudnnCreate(Context **out) {
  const std::lock_guard lock(mutex);
  if (!out)
    return refuse(kNullPointer, "no place for the handle");
  if (!driver())
    return refuse(kNotInitialized, "the stand-in driver is not there");
  *out = new Context;
  contexts().insert(*out);
  return kOk;
}
PUBLIC int cudnnDestroy(Context *context) {
  const std::lock_guard lock(mutex);
  contexts().erase(context);
  delete context;
  return kOk;
}
PUBLIC int cudnnSetStream(Context *context, void *stream) {
  const std::lock_guard lock(mutex);
  if (!contexts().contains(context))
    return refuse(kBadParam, "no handle");
  context->stream = stream;
  return kOk;
}

PUBLIC int cudnnBackendFinalize(Descriptor *d) {
  const std::lock_guard lock(mutex);
  if (const int status = mayFinalize(d))
    return status;
  const int status = finalize(*d);
  d->isFinal = status == kOk;
  return status;
}

PUBLIC int cudnnBackendExecute(Context *context, Descriptor *plan, Descriptor *pack) {
  const std::lock_guard lock(mutex);
  if (!contexts().contains(context) || !driver())
    return refuse(kBadParam, "no handle");
  if (!alive().contains(plan) || plan->kind != kPlan || !alive().contains(pack) || pack->kind != kPack)
    return refuse(kBadParam, "no plan, or no pack");
  if (!plan->isFinal || !pack->isFinal)
    return refuse(kNotFinalized, "a descriptor that is not finalized");
  if (const char *why = dead(*plan))
    return refuse(kBadParam, why);
  if (plan->one(400) != reinterpret_cast<int64_t>(context))
    return refuse(kBadParam, "a plan of another handle");
  if (state.failure)
    return refuse(state.failure, "asked for by a test");
  const Descriptor &config = plan->other(401), &engine = config.other(300), &graph = engine.other(1300);
  auto run = std::make_unique<Run>();
  run->graph = Graph::of(graph);
  Launch &launch = run->launch;
  launch.engine = engine.one(1301);
  if (config.has(302))
    for (int64_t each : config.list(302))
      launch.isBackwards = Descriptor::at(each).one(601) == 1;
  for (size_t i = 0; i < pack->list(1000).size(); ++i)
    launch.addresses[pack->list(1000)[i]] = static_cast<uint64_t>(pack->list(1001)[i]);
  std::vector<LibraryBytes> bytes;
  for (const auto &[t, isWrite] : run->graph->touched()) {
    if (t.isVirtual)
      continue;
    const auto at = launch.addresses.find(t.id);
    if (at == launch.addresses.end())
      return refuse(kBadParam, "a tensor has no address");
    if (!at->second)
      return refuse(kNullPointer, "the address of a tensor is null");
    if (at->second % (t.isByValue ? t.elementBytes() : static_cast<uint64_t>(t.alignment)))
      return refuse(kMisaligned, "an address is not aligned as its tensor says");
    if (t.isByValue) // an address of the host's, which is read now
      launch.values[t.id] = load(reinterpret_cast<const std::byte *>(at->second), t.number());
    else
      addBytes(bytes, at->second, t, isWrite);
  }
  launch.workspace = static_cast<uint64_t>(pack->one(1003));
  if (const auto used = static_cast<uint64_t>(plan->one(402))) {
    if (!launch.workspace)
      return refuse(kNullPointer, "the engine needs a workspace");
    bytes.push_back({launch.workspace, used, true});
  }
  const int engineNumber = static_cast<int>(launch.engine);
  if (!issue(context->stream, "cudnnBackendExecute", bytes, std::move(run)))
    return refuse(kExecutionFailed, "the driver");
  ++state.executed;
  state.lastEngine = engineNumber;
  return kOk;
}

} // namespace tressel::standin::cudnn
