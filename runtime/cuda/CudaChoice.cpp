// Branches and `while` loops as graphs with conditional nodes.
#include "CudaGraph.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>

namespace tressel::runtime::cuda {
namespace {

/// The driver resolves the function when it loads the text; it is no part of the kernel's own code.
constexpr char kSetter[] = R"(
.version 7.0
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry tressel_set_condition(.param .u64 handle, .param .u64 flag, .param .u32 inverted) {
  .reg .b64 %rd<4>;
  .reg .b32 %r<5>;
  .reg .pred %p<2>;
  .param .b64 to;
  .param .b32 value;
  ld.param.u64 %rd1, [handle];
  ld.param.u64 %rd2, [flag];
  ld.param.u32 %r1, [inverted];
  cvta.to.global.u64 %rd3, %rd2;
  ld.global.u8 %r2, [%rd3];
  setp.ne.u32 %p1, %r2, 0;
  selp.u32 %r3, 1, 0, %p1;
  xor.b32 %r4, %r3, %r1;
  st.param.b64 [to], %rd1;
  st.param.b32 [value], %r4;
  call.uni cudaGraphSetConditional, (to, value);
  ret;
}
)";

} // namespace

Function CudaDevice::conditionSetter() {
  if (std::exchange(isConditionTried_, true))
    return conditionSetter_;
  const Driver &driver = machine_.driver();
  card_.use(driver);
  if (driver.cuGraphAddNode && driver.cuGraphConditionalHandleCreate &&
      driver.cuModuleLoadDataEx(&conditionModule_, kSetter, 0, nullptr, nullptr) == kSuccess &&
      driver.cuModuleGetFunction(&conditionSetter_, conditionModule_, "tressel_set_condition") != kSuccess)
    conditionSetter_ = nullptr;
  return conditionSetter_;
}

//--- The graph --------------------------------------------------------------------------------------------------------
std::vector<GraphNode> CudaGraph::endsOf(uint32_t scope) const {
  std::vector<bool> isEnd(commands_.size());
  for (size_t i = 0; i < commands_.size(); ++i)
    isEnd[i] = commands_[i].scope == scope;
  for (const Command &c : commands_)
    if (c.scope == scope)
      for (uint32_t before : c.after)
        isEnd[before] = false;
  std::vector<GraphNode> ends;
  for (size_t i = 0; i < commands_.size(); ++i)
    if (isEnd[i])
      ends.push_back(nodes_[last_[i]].handle);
  return ends;
}

GraphNode CudaGraph::addSetter(const Choice &choice, Graph graph, ConditionalHandle handle,
                               std::span<const GraphNode> after, bool inverted) {
  const void *flag = choice.flag;
  unsigned isInverted = inverted;
  void *values[] = {&handle, &flag, &isInverted};
  KernelNodeParams params;
  params.function = choice.device->conditionSetter();
  params.params = values;
  GraphNode node = nullptr;
  driver_.check(driver_.cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &params), "cuGraphAddKernelNode",
                choice.device->caps().name);
  added(graph, node, after);
  return node;
}

Graph CudaGraph::addConditional(const Choice &choice, ConditionalHandle handle, std::span<const GraphNode> after) {
  NodeParams params;
  params.handle = handle;
  params.kind = choice.repeats;
  params.context = choice.device->card().context;
  GraphNode node = nullptr;
  driver_.check(driver_.cuGraphAddNode(&node, graph_, after.data(), after.size(), &params), "cuGraphAddNode",
                choice.device->caps().name);
  added(graph_, node, after);
  if (!params.bodies || !params.bodies[0])
    throwError<RuntimeError>(choice.device->caps().name, ": the driver made a conditional node without a body");
  return params.bodies[0];
}

void CudaGraph::addChoice(const Choice &choice, std::span<void *const> addresses) {
  choice.device->card().use(driver_);
  const Context context = choice.device->card().context;
  std::vector<ConditionalHandle> handles(3); // by scope
  std::vector<GraphNode> setters;
  auto isThere = [&](uint32_t scope) {
    return choice.repeats ? scope == 1
                          : std::ranges::any_of(commands_, [&](const Command &c) { return c.scope == scope; });
  };
  // The flag's memory may be another value's from then on: no body runs before all have looked at it.
  for (uint32_t scope : {1u, 2u})
    if (isThere(scope)) {
      driver_.check(driver_.cuGraphConditionalHandleCreate(&handles[scope], graph_, context, 0, 0),
                    "cuGraphConditionalHandleCreate", choice.device->caps().name);
      setters.push_back(addSetter(choice, graph_, handles[scope], endsOf(0), /*inverted=*/scope == 2));
    }
  for (uint32_t scope : {1u, 2u}) {
    scopes_.push_back(isThere(scope) ? addConditional(choice, handles[scope], setters) : graph_); // of nothing
    addScope(scope, addresses);
    choice.device->card().use(driver_);
  }
  if (choice.repeats)
    addSetter(choice, scopes_[1], handles[1], endsOf(1), false);
}

//--- The choice -------------------------------------------------------------------------------------------------------
std::unique_ptr<CudaChoice> CudaChoice::make(CudaMachine &machine, std::span<Stream *const> streams,
                                             const GroupChoice &choice) {
  CudaDevice *device = nullptr;
  for (const auto &each : machine.devices())
    if (auto *card = dynamic_cast<CudaDevice *>(each.get()); card && card->caps().device == choice.flag.home.device)
      device = card;
  auto isNode = [&](const GroupCommand &c) {
    const DeviceCommandKind kind = c.command.kind;
    auto *stream = c.stream < streams.size() ? dynamic_cast<CudaStream *>(streams[c.stream]) : nullptr;
    return stream && &stream->device() == device && c.events.empty() &&
           std::ranges::all_of(c.command.regions,
                               [&](const Region &r) { return r.home.device == device->caps().device; }) &&
           (kind == DeviceCommandKind::Copy || kind == DeviceCommandKind::Fill || kind == DeviceCommandKind::Wait ||
            (kind == DeviceCommandKind::Launch && dynamic_cast<const GpuKernel *>(c.command.kernel)));
  };
  if (!device || !areGraphsWanted() || machine.keepsStamps() || !std::ranges::all_of(choice.first, isNode) ||
      !std::ranges::all_of(choice.second, isNode))
    return nullptr;
  {
    std::lock_guard lock(machine.mutex());
    if (!device->conditionSetter())
      return nullptr;
  }
  auto made = std::unique_ptr<CudaChoice>(new CudaChoice(machine, *device));
  made->repeats_ = choice.repeats;
  made->flag_ = choice.flagAddress;
  if (choice.repeats) { // what computes the flag once, then the body and the same again
    made->add(streams, choice.first, 0);
    made->add(streams, choice.second, 1);
    made->add(streams, choice.first, 1);
  } else {
    made->add(streams, choice.first, 1);
    made->add(streams, choice.second, 2);
  }
  return made;
}

CudaChoice::~CudaChoice() {
  stream_.reset(); // waits for its launches
  std::lock_guard lock(machine_.mutex());
  graph_.reset();
}

/// Behind what the scope has already.
void CudaChoice::add(std::span<Stream *const> streams, std::span<const GroupCommand> commands, uint32_t scope) {
  const auto begin = static_cast<uint32_t>(commands_.size());
  std::vector<uint32_t> ends;
  for (uint32_t i = 0; i < begin; ++i)
    if (commands_[i].scope == scope && std::ranges::none_of(commands_, [&](const Recorded &other) {
          return other.scope == scope && std::ranges::find(other.after, i) != other.after.end();
        }))
      ends.push_back(i);
  std::vector<std::pair<const Stream *, uint32_t>> last;
  for (const GroupCommand &c : commands) {
    const auto number = static_cast<uint32_t>(commands_.size());
    Recorded &made = commands_.emplace_back(
        Recorded{c.command, {c.command.regions.begin(), c.command.regions.end()}, c.addresses, {}, scope});
    for (uint32_t before : c.after)
      made.after.push_back(begin + before);
    const Stream *stream = streams[c.stream];
    if (const auto at = std::ranges::find(last, stream, &std::pair<const Stream *, uint32_t>::first);
        at != last.end()) {
      made.after.push_back(std::exchange(at->second, number));
    } else {
      made.after.insert(made.after.end(), ends.begin(), ends.end());
      last.push_back({stream, number});
    }
    std::ranges::sort(made.after);
    made.after.erase(std::ranges::unique(made.after).begin(), made.after.end());
  }
}

bool CudaChoice::submit(std::span<const Event> events, uint64_t tag, Event &end) {
  if (submissions_++ == 0 || isRefused_)
    return false; // loads what is loaded when it is first used; many programs run once
  addresses_.clear();
  for (const Recorded &c : commands_)
    addresses_.insert(addresses_.end(), c.addresses.begin(), c.addresses.end());
  addresses_.push_back(*flag_);
  {
    std::lock_guard lock(machine_.mutex());
    machine_.settleAll();
    if (last_.semaphore && last_.state() == Semaphore::State::Pending)
      return false; // it has one set of status words
    if (!graph_ || !std::ranges::equal(graph_->addresses(), addresses_)) {
      std::vector<CudaGraph::Command> list;
      for (const Recorded &c : commands_)
        list.push_back({&c.command, c.regions, &device_, c.after, c.scope});
      const CudaGraph::Choice choice{repeats_, &device_, *flag_};
      graph_.reset();
      try {
        graph_ = std::make_unique<CudaGraph>(machine_.driver(), std::move(list), addresses_, &choice);
      } catch (const RuntimeError &) { // the driver's
        isRefused_ = true;
        return false;
      }
    }
    graph_->setAddresses(addresses_);
  }
  if (!stream_)
    stream_ = std::make_unique<CudaStream>(machine_, device_, StreamKind::Compute, "choices");
  end = last_ = stream_->submit(*graph_, events, tag);
  return true;
}

std::unique_ptr<ChoiceGroup> CudaMachine::record(std::span<Stream *const> streams, const GroupChoice &choice) {
  return CudaChoice::make(*this, streams, choice);
}

} // namespace tressel::runtime::cuda
