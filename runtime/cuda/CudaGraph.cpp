#include "CudaGraph.h"

#include "runtime/schedule/GraphLevels.h"
#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tressel::runtime::cuda {
namespace {

/// Two commands one by one cost as much as a graph (docs/gpu.md).
constexpr size_t kFewestNodes = 3;

bool overlap(const void *a, int64_t aBytes, const void *b, int64_t bBytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return aBytes > 0 && bBytes > 0 && x < y + static_cast<uintptr_t>(bBytes) && y < x + static_cast<uintptr_t>(aBytes);
}

} // namespace

bool areGraphsWanted() {
  const char *graphs = std::getenv("TRESSEL_CUDA_GRAPHS");
  return !graphs || std::strcmp(graphs, "0") != 0;
}

//--- The graph --------------------------------------------------------------------------------------------------------
CudaGraph::CudaGraph(const Driver &driver, std::vector<Command> commands, std::span<void *const> addresses,
                     const Choice *choice)
    : CudaKernel(Form::Graph), driver_(driver), commands_(std::move(commands)), first_(commands_.size()),
      last_(commands_.size()) {
  try {
    build(addresses, choice);
  } catch (...) {
    destroy();
    throw;
  }
}

CudaGraph::~CudaGraph() { destroy(); }

void CudaGraph::destroy() {
  if (exec_)
    driver_.cuGraphExecDestroy(exec_);
  if (graph_)
    driver_.cuGraphDestroy(graph_);
  for (Node &node : nodes_)
    if (node.status)
      commands_[node.command].device->giveStatus(node.status);
}

void CudaGraph::build(std::span<void *const> addresses, const Choice *choice) {
  const CudaDevice *device = choice ? choice->device : commands_.empty() ? nullptr : commands_.front().device;
  if (!device)
    return;
  device->card().use(driver_);
  driver_.check(driver_.cuGraphCreate(&graph_, 0), "cuGraphCreate");
  scopes_.assign(1, graph_);
  addScope(0, addresses);
  if (choice)
    addChoice(*choice, addresses);
  checkEdges(addresses);
  device->card().use(driver_);
  driver_.check(driver_.cuGraphInstantiateWithFlags(&exec_, graph_, 0), concat("instantiating a graph of ", nodes_.size(), " nodes"));
  current_.assign(addresses.begin(), addresses.end());
}

void CudaGraph::addScope(uint32_t scope, std::span<void *const> addresses) {
  for (uint32_t i = 0; i < commands_.size(); ++i)
    if (commands_[i].scope == scope)
      addNodes(i, addresses);
}

void CudaGraph::added(Graph graph, GraphNode node, std::span<const GraphNode> after) {
  const auto place = static_cast<size_t>(std::ranges::find(scopes_, graph) - scopes_.begin());
  edges_.resize(scopes_.size());
  for (GraphNode before : after)
    edges_[place].push_back({before, node});
}

/// What a node is made of; the kernel's parameters point into it.
struct CudaGraph::Params {
  enum class Kind : uint8_t { Nothing, Kernel, Copy, Fill } kind = Kind::Nothing;
  LaunchParams values;
  KernelNodeParams kernel;
  unsigned cluster = 1;
  CopyNodeParams copy;
  FillNodeParams fill;

  /// `part` counts the nodes of a fill.
  Params(const Command &c, std::span<void *const> addresses, int32_t *status, size_t part) {
    const DeviceCommand &command = *c.command;
    if (command.kind == DeviceCommandKind::Launch && command.desc->range.number() > 0) {
      const auto &loaded = static_cast<const GpuKernel &>(*command.kernel);
      kind = Kind::Kernel;
      const GpuKernel::Launch launch =
          loaded.prepare(command.desc->range.number(), addresses, command.scalars, status, values);
      kernel.function = launch.function;
      kernel.gridX = launch.blocks;
      kernel.blockX = launch.threads;
      kernel.sharedBytes = launch.sharedBytes;
      cluster = launch.cluster;
      kernel.params = values.data();
    } else if (command.kind == DeviceCommandKind::Copy && c.regions[0].bytes > 0) {
      kind = Kind::Copy;
      copy.from.address = reinterpret_cast<Address>(addresses[0]);
      copy.to.address = reinterpret_cast<Address>(addresses[1]);
      copy.width = static_cast<size_t>(c.regions[0].bytes);
    } else if (command.kind == DeviceCommandKind::Fill && c.regions[0].bytes > 0) {
      kind = Kind::Fill;
      fill = fillsOf(command, reinterpret_cast<Address>(addresses[0]), c.regions[0].bytes).at(part);
    }
  }
};

void CudaGraph::addNodes(uint32_t index, std::span<void *const> addresses) {
  const Command &c = commands_[index];
  size_t firstAddress = 0;
  for (uint32_t i = 0; i < index; ++i)
    firstAddress += commands_[i].regions.size();
  std::vector<GraphNode> after;
  for (uint32_t before : c.after)
    after.push_back(nodes_[last_[before]].handle);
  c.device->card().use(driver_);
  const std::span<void *const> mine = addresses.subspan(firstAddress, c.regions.size());
  size_t parts = 1;
  if (c.command->kind == DeviceCommandKind::Fill && c.regions[0].bytes > 0)
    parts = fillsOf(*c.command, 0, c.regions[0].bytes).size();
  const Graph graph = scopes_[c.scope];
  first_[index] = static_cast<uint32_t>(nodes_.size());
  for (size_t part = 0; part < parts; ++part) {
    Node &node = nodes_.emplace_back(Node{index, nullptr, firstAddress, nullptr});
    if (c.command->kind == DeviceCommandKind::Launch)
      node.status = c.device->takeStatus();
    const Params params(c, mine, node.status, part);
    Result result = kSuccess;
    switch (params.kind) {
    case Params::Kind::Nothing:
      result = driver_.cuGraphAddEmptyNode(&node.handle, graph, after.data(), after.size());
      break;
    case Params::Kind::Kernel:
      result = driver_.cuGraphAddKernelNode(&node.handle, graph, after.data(), after.size(), &params.kernel);
      if (result == kSuccess && params.cluster != 1) { // which setParams() leaves as it is
        const LaunchAttribute cluster{.value = {.x = params.cluster}};
        result = driver_.cuGraphKernelNodeSetAttribute(node.handle, cluster.id, &cluster.value);
      }
      break;
    case Params::Kind::Copy:
      result = driver_.cuGraphAddMemcpyNode(&node.handle, graph, after.data(), after.size(), &params.copy,
                                            c.device->card().context);
      break;
    case Params::Kind::Fill:
      result = driver_.cuGraphAddMemsetNode(&node.handle, graph, after.data(), after.size(), &params.fill,
                                            c.device->card().context);
      break;
    }
    driver_.check(result, concat("adding node ", nodes_.size() - 1, " of a graph"), c.device->caps().name);
    added(graph, node.handle, after);
    after.assign(1, node.handle);
  }
  last_[index] = static_cast<uint32_t>(nodes_.size() - 1);
}

void CudaGraph::checkEdges(std::span<void *const> addresses) const {
  std::map<GraphNode, uint32_t> numbers;
  for (uint32_t i = 0; i < nodes_.size(); ++i)
    numbers[nodes_[i].handle] = i;
  std::vector<std::pair<uint32_t, uint32_t>> there; // of nodes
  auto distinct = [](std::vector<Edge> edges) {
    std::ranges::sort(edges);
    edges.erase(std::ranges::unique(edges).begin(), edges.end());
    return edges;
  };
  for (size_t scope = 0; scope < scopes_.size(); ++scope) {
    if (scope > 0 && scopes_[scope] == graph_)
      continue; // of nothing
    size_t count = 0;
    driver_.check(driver_.cuGraphGetEdges(scopes_[scope], nullptr, nullptr, &count), "cuGraphGetEdges");
    std::vector<GraphNode> from(count), to(count);
    if (count)
      driver_.check(driver_.cuGraphGetEdges(scopes_[scope], from.data(), to.data(), &count), "cuGraphGetEdges");
    std::vector<Edge> found;
    for (size_t i = 0; i < count; ++i) {
      found.push_back({from[i], to[i]});
      const auto begin = numbers.find(from[i]), end = numbers.find(to[i]);
      if (begin != numbers.end() && end != numbers.end())
        there.push_back({begin->second, end->second});
    }
    const std::vector<Edge> wanted = scope < edges_.size() ? edges_[scope] : std::vector<Edge>();
    if (distinct(wanted) != distinct(found))
      throwError<Error>("a graph of ", nodes_.size(), " nodes has ", found.size(), " edges, where its commands have ",
                        wanted.size());
  }

  // And that they are enough, by the bytes alone: for each command, which ones are certainly before it.
  const size_t numCommands = commands_.size();
  std::vector<std::vector<bool>> isBefore(numCommands, std::vector<bool>(numCommands));
  std::vector<std::vector<uint32_t>> into(numCommands);
  for (const auto &[begin, end] : there)
    if (nodes_[begin].command != nodes_[end].command)
      into[nodes_[end].command].push_back(nodes_[begin].command);
  auto regionsOf = [&](uint32_t i, auto &&use) {
    for (size_t k = 0; k < commands_[i].regions.size(); ++k)
      use(commands_[i].regions[k], addresses[nodes_[first_[i]].firstAddress + k]);
  };
  for (uint32_t i = 0; i < numCommands; ++i) {
    for (uint32_t before : into[i]) {
      isBefore[i][before] = true;
      for (uint32_t k = 0; k < before; ++k)
        if (isBefore[before][k])
          isBefore[i][k] = true;
    }
    for (uint32_t other = 0; other < i; ++other)
      if (!isBefore[i][other] && commands_[i].scope == commands_[other].scope)
        regionsOf(i, [&](const Region &mine, const void *at) {
          regionsOf(other, [&](const Region &theirs, const void *there) {
            if ((mine.access != Access::Read || theirs.access != Access::Read) && overlap(at, mine.bytes, there, theirs.bytes))
              throwError<Error>("commands ", other, " and ", i, " of a graph touch the same bytes, and none of its edges orders them");
          });
        });
  }
}

Result CudaGraph::setParams(const Node &node, std::span<void *const> addresses) const {
  const Command &c = commands_[node.command];
  const Params params(c, addresses.subspan(node.firstAddress, c.regions.size()), node.status, static_cast<size_t>(&node - &nodes_[first_[node.command]]));
  const Context context = c.device->card().context;
  if (const Result result = driver_.cuCtxSetCurrent(context); result != kSuccess)
    return result;
  switch (params.kind) {
  case Params::Kind::Kernel: return driver_.cuGraphExecKernelNodeSetParams(exec_, node.handle, &params.kernel);
  case Params::Kind::Copy: return driver_.cuGraphExecMemcpyNodeSetParams(exec_, node.handle, &params.copy, context);
  case Params::Kind::Fill: return driver_.cuGraphExecMemsetNodeSetParams(exec_, node.handle, &params.fill, context);
  case Params::Kind::Nothing: break;
  }
  return kSuccess;
}

Result CudaGraph::launch(StreamHandle stream) const {
  if (wanted_ != current_) {
    for (const Node &node : nodes_) {
      const auto at = static_cast<std::ptrdiff_t>(node.firstAddress), count = static_cast<std::ptrdiff_t>(commands_[node.command].regions.size());
      if (std::equal(wanted_.begin() + at, wanted_.begin() + at + count, current_.begin() + at))
        continue;
      if (const Result result = setParams(node, wanted_); result != kSuccess)
        return result;
    }
    current_ = wanted_;
    if (const Result result = driver_.cuCtxSetCurrent(commands_.front().device->card().context); result != kSuccess)
      return result;
  }
  return driver_.cuGraphLaunch(exec_, stream);
}

CudaGraph::Failed CudaGraph::failed() const {
  for (const Node &node : nodes_)
    if (node.status)
      if (const int32_t status = *static_cast<volatile int32_t *>(node.status); status != kKernelOk)
        return {commands_[node.command].command->desc, status, commands_[node.command].command->tag};
  return {};
}

//--- The group --------------------------------------------------------------------------------------------------------
CudaGroup::CudaGroup(CudaMachine &machine, std::span<Stream *const> streams, std::span<const GroupCommand> given)
    : StreamGroup(streams, given), machine_(machine), partOf_(given.size()) {
  const auto count = static_cast<uint32_t>(given.size());
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<bool> isNode(count);
  std::vector<uint32_t> previous(count, kNone);
  std::map<const Stream *, uint32_t> last;
  for (uint32_t i = 0; i < count; ++i) {
    const Recorded &c = commands()[i];
    // Pageable memory is read and written when the driver likes: no node of a graph.
    const bool isPinned = std::ranges::none_of(c.regions, [](const Region &r) { return r.home.device.kind == DeviceKind::Cpu && r.home.memory == MemoryKind::Host; });
    const DeviceCommandKind kind = c.command.kind;
    const bool isKind = kind == DeviceCommandKind::Copy || kind == DeviceCommandKind::Fill ||
                        kind == DeviceCommandKind::Wait ||
                        (kind == DeviceCommandKind::Launch && dynamic_cast<const GpuKernel *>(c.command.kernel));
    isNode[i] = isKind && isPinned && dynamic_cast<CudaStream *>(c.stream);
    const auto [at, isFirst] = last.try_emplace(c.stream, i);
    if (!isFirst)
      previous[i] = std::exchange(at->second, i);
  }
  const std::vector<uint32_t> levels = graphLevels(count, [&](uint32_t i) { return isNode[i]; }, [&](uint32_t i, auto &&use) {
    for (uint32_t before : commands()[i].after)
      use(before);
    if (previous[i] != kNone)
      use(previous[i]);
  });
  const uint32_t numLevels = count ? *std::ranges::max_element(levels) + 1 : 0;
  for (uint32_t level = 0; level < numLevels; ++level) { // the graph, then the host's work, which may wait for it
    Part graph;
    for (uint32_t i = 0; i < count; ++i)
      if (levels[i] == level && isNode[i])
        graph.commands.push_back(i);
    graph.isGraph = graph.commands.size() >= kFewestNodes && areGraphsWanted() && !machine.keepsStamps();
    for (uint32_t i : graph.commands)
      if (auto *stream = dynamic_cast<CudaStream *>(commands()[i].stream); std::ranges::find(graph.streams, stream) == graph.streams.end())
        graph.streams.push_back(stream);
    Part rest;
    for (uint32_t i = 0; i < count; ++i)
      if (levels[i] == level && !isNode[i])
        rest.commands.push_back(i);
    for (Part *part : {&graph, &rest})
      if (!part->commands.empty()) {
        for (uint32_t i : part->commands)
          partOf_[i] = static_cast<int>(parts_.size());
        parts_.push_back(std::move(*part));
      }
  }
}

CudaGroup::~CudaGroup() {
  stream_.reset(); // waits for its launches
  std::lock_guard lock(machine_.mutex());
  for (Part &part : parts_)
    part.graph.reset();
}

std::span<void *const> CudaGroup::addressesOf(const Part &part) {
  addresses_.clear();
  for (uint32_t i : part.commands)
    addresses_.insert(addresses_.end(), commands()[i].addresses.begin(), commands()[i].addresses.end());
  return addresses_;
}

std::unique_ptr<CudaGraph> CudaGroup::build(const Part &part) {
  std::vector<CudaGraph::Command> list;
  std::vector<uint32_t> numbers(commands().size(), UINT32_MAX);
  std::map<const Stream *, uint32_t> last;
  for (uint32_t i : part.commands) {
    const Recorded &c = commands()[i];
    const auto number = static_cast<uint32_t>(list.size());
    CudaGraph::Command &made = list.emplace_back(CudaGraph::Command{&c.command, c.regions, &dynamic_cast<CudaStream *>(c.stream)->device(), {}});
    for (uint32_t before : c.after)
      if (numbers[before] != UINT32_MAX)
        made.after.push_back(numbers[before]);
    const auto [at, isFirst] = last.try_emplace(c.stream, number);
    if (!isFirst)
      made.after.push_back(std::exchange(at->second, number));
    std::ranges::sort(made.after);
    made.after.erase(std::ranges::unique(made.after).begin(), made.after.end());
    numbers[i] = number;
  }
  return std::make_unique<CudaGraph>(machine_.driver(), std::move(list), addressesOf(part));
}

void CudaGroup::submit(std::span<const std::span<const Event>> events, uint64_t tag, std::span<Event> ends) {
  for (Part &part : parts_)
    if (!part.isGraph || !submitGraph(part, events, tag, ends))
      for (uint32_t i : part.commands)
        submitOne(i, events, tag, ends);
}

bool CudaGroup::submitGraph(Part &part, std::span<const std::span<const Event>> events, uint64_t tag, std::span<Event> ends) {
  if (part.submissions++ == 0)
    return false; // loads what is loaded when it is first used; many programs run once
  {
    std::lock_guard lock(machine_.mutex());
    machine_.settleAll();
    if (part.last.semaphore && part.last.state() == Semaphore::State::Pending)
      return false; // it has one set of status words
    if (!part.graph) {
      try {
        part.graph = build(part);
      } catch (const RuntimeError &) { // the driver's
        part.isGraph = false;
        return false;
      }
    }
    part.graph->setAddresses(addressesOf(part));
  }
  if (!stream_)
    stream_ = std::make_unique<CudaStream>(machine_, part.streams.front()->device(), StreamKind::Compute, "graphs");
  waits_.clear();
  for (CudaStream *stream : part.streams)
    if (const Event before = stream->last(); before.value)
      waits_.push_back(before);
  const int mine = partOf_[part.commands.front()];
  for (uint32_t i : part.commands) {
    for (uint32_t before : commands()[i].after)
      if (partOf_[before] != mine)
        waits_.push_back(ends[before]);
    for (uint32_t list : commands()[i].events)
      waits_.insert(waits_.end(), events[list].begin(), events[list].end());
  }
  part.last = stream_->submit(*part.graph, waits_, tag);
  for (CudaStream *stream : part.streams) {
    const Event end = stream->submit({.kind = DeviceCommandKind::Wait, .waits = {&part.last, 1}, .tag = tag, .isFree = true});
    for (uint32_t i : part.commands)
      if (commands()[i].stream == stream)
        ends[i] = end;
  }
  return true;
}

std::unique_ptr<CommandGroup> CudaMachine::record(std::span<Stream *const> streams, std::span<const GroupCommand> commands) {
  return std::make_unique<CudaGroup>(*this, streams, commands);
}

} // namespace tressel::runtime::cuda
