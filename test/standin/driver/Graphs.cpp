// CUDA graphs: nodes with edges, instantiated in one of the orders that the edges allow.
#include "Entries.h"

#include <unordered_map>

namespace tressel::standin {
namespace {

// The structures of "CUDA Driver API" whose layout callers fill in.
struct KernelNodeParams { // CUDA_KERNEL_NODE_PARAMS_v2
  Function *function;
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  void **params, **extra;
  void *kernel;
  Context *context;
};
struct FillNodeParams { // CUDA_MEMSET_NODE_PARAMS
  DevicePointer to;
  size_t pitch;
  unsigned value, elementBytes;
  size_t width, height;
};
struct CopyEnd { // half of CUDA_MEMCPY3D
  size_t x, y, z, lod;
  unsigned type;
  const void *host;
  DevicePointer device;
  void *array, *reserved;
  size_t pitch, height;
};
struct CopyNodeParams { // CUDA_MEMCPY3D
  CopyEnd from, to;
  size_t width, height, depth;
};
static_assert(sizeof(KernelNodeParams) == 72 && sizeof(FillNodeParams) == 40 && sizeof(CopyNodeParams) == 200);
constexpr unsigned kHostMemory = 1, kDeviceMemory = 2, kUnified = 4; // CUmemorytype

Result cuGraphCreate(Graph **graph, unsigned flags) {
  return call("cuGraphCreate", Needs::Init, [&](World &world) -> Result {
    if (flags != 0)
      return kInvalidValue;
    auto made = std::make_unique<Graph>();
    *graph = made.get();
    world.graphs[made.get()] = std::move(made);
    return kSuccess;
  });
}

/// A node behind `after`, which `fill` completes.
template <typename Fill> Result addNode(const char *name, Node **handle, Graph *graph, Node *const *after, size_t count, Fill &&fill) {
  return call(name, Needs::Init, [&](World &world) -> Result {
    Graph *known = at(world.graphs, graph);
    if (!known)
      return kInvalidHandle;
    auto node = std::make_unique<Node>();
    for (size_t i = 0; i < count; ++i) {
      if (std::ranges::none_of(known->nodes, [&](const auto &other) { return other.get() == after[i]; }))
        return kInvalidValue;
      if (std::ranges::find(node->after, after[i]) != node->after.end())
        return kInvalidValue; // the same edge twice
      node->after.push_back(after[i]);
    }
    if (world.plant == "no-edge" && !node->after.empty())
      node->after.erase(node->after.begin());
    if (const Result result = fill(world, *node); result != kSuccess)
      return result;
    *handle = node.get();
    known->nodes.push_back(std::move(node));
    return kSuccess;
  });
}

Result setKernel(World &world, Node &node, const KernelNodeParams &p) {
  node.kind = Node::Kind::Kernel;
  const unsigned grid[] = {p.gridX, p.gridY, p.gridZ}, block[] = {p.blockX, p.blockY, p.blockZ};
  const Result result = makeLaunch(world, p.function, grid, block, p.sharedBytes, p.params, node.kernel);
  if (result == kSuccess)
    node.context = node.kernel.module->context;
  return result;
}
Result setCopy(Node &node, const CopyNodeParams &p) {
  node.kind = Node::Kind::Copy;
  auto address = [](const CopyEnd &end) -> uint64_t {
    return end.type == kHostMemory ? reinterpret_cast<uint64_t>(end.host) : end.type == kDeviceMemory || end.type == kUnified ? end.device : 0;
  };
  if (p.from.x || p.from.y || p.from.z || p.to.x || p.to.y || p.to.z || p.height != 1 || p.depth != 1 || p.from.array || p.to.array)
    return kNotSupported; // copies of rows and of parts
  node.copy = {address(p.to), address(p.from), p.width, nullptr};
  return node.copy.to && node.copy.from && p.width ? kSuccess : kInvalidValue;
}
Result setFill(Node &node, const FillNodeParams &p) {
  node.kind = Node::Kind::Fill;
  if ((p.elementBytes != 1 && p.elementBytes != 2 && p.elementBytes != 4) || p.to % p.elementBytes || p.width == 0 || p.height == 0)
    return kInvalidValue;
  node.fill = {p.to, p.pitch, p.value, p.elementBytes, p.width, p.height};
  return kSuccess;
}

Result cuGraphAddKernelNode(Node **node, Graph *graph, Node *const *after, size_t count, const KernelNodeParams *params) {
  return addNode("cuGraphAddKernelNode", node, graph, after, count, [&](World &world, Node &made) { return setKernel(world, made, *params); });
}
Result cuGraphKernelNodeSetAttribute(Node *handle, int attribute, const unsigned *value) {
  return call("cuGraphKernelNodeSetAttribute", Needs::Init, [&](World &world) -> Result {
    for (auto &[key, graph] : world.graphs)
      for (auto &node : graph->nodes)
        if (node.get() == handle)
          return node->kind != Node::Kind::Kernel ? kInvalidValue
                 : attribute == kClusterDimension ? setCluster(world, value, node->kernel)
                                                  : kNotSupported;
    return kInvalidHandle;
  });
}
Result cuGraphAddMemcpyNode(Node **node, Graph *graph, Node *const *after, size_t count, const CopyNodeParams *params, Context *context) {
  return addNode("cuGraphAddMemcpyNode", node, graph, after, count, [&](World &, Node &made) {
    made.context = context;
    return context ? setCopy(made, *params) : kInvalidContext;
  });
}
Result cuGraphAddMemsetNode(Node **node, Graph *graph, Node *const *after, size_t count, const FillNodeParams *params, Context *context) {
  return addNode("cuGraphAddMemsetNode", node, graph, after, count, [&](World &, Node &made) {
    made.context = context;
    return context ? setFill(made, *params) : kInvalidContext;
  });
}
Result cuGraphAddEmptyNode(Node **node, Graph *graph, Node *const *after, size_t count) {
  return addNode("cuGraphAddEmptyNode", node, graph, after, count, [](World &, Node &) { return kSuccess; });
}

Result cuGraphGetNodes(Graph *graph, Node **nodes, size_t *count) {
  return call("cuGraphGetNodes", Needs::Init, [&](World &world) -> Result {
    const Graph *known = at(world.graphs, graph);
    if (!known)
      return kInvalidHandle;
    for (size_t i = 0; nodes && i < std::min(*count, known->nodes.size()); ++i)
      nodes[i] = known->nodes[i].get();
    *count = known->nodes.size();
    return kSuccess;
  });
}
Result cuGraphGetEdges(Graph *graph, Node **from, Node **to, size_t *count) {
  return call("cuGraphGetEdges", Needs::Init, [&](World &world) -> Result {
    const Graph *known = at(world.graphs, graph);
    if (!known)
      return kInvalidHandle;
    size_t found = 0;
    for (const auto &node : known->nodes)
      for (Node *before : node->after) {
        if (from && to && found < *count)
          from[found] = before, to[found] = node.get();
        ++found;
      }
    *count = found;
    return kSuccess;
  });
}
void eraseGraph(World &world, Graph *graph) {
  for (Graph *body : graph->bodies)
    eraseGraph(world, body);
  for (uint64_t word : graph->conditions)
    if (Allocation *a = world.heap.find(word))
      world.heap.free(a, world.findUse(*a, "cuGraphDestroy"));
  world.graphs.erase(graph);
}
Result cuGraphDestroy(Graph *graph) {
  return call("cuGraphDestroy", Needs::Init, [&](World &world) -> Result {
    Graph *known = at(world.graphs, graph);
    if (!known || known->isBody)
      return kInvalidValue;
    eraseGraph(world, known);
    return kSuccess;
  });
}

/// A handle is the address of a word of the card, which the stand-in's cudaGraphSetConditional writes to (Devices.cpp).
Result cuGraphConditionalHandleCreate(uint64_t *handle, Graph *graph, Context *context, unsigned value, unsigned flags) {
  return call("cuGraphConditionalHandleCreate", Needs::Init, [&](World &world) -> Result {
    Graph *known = at(world.graphs, graph);
    if (!known || !context)
      return kInvalidValue;
    if (flags != 0 || value != 0)
      return kNotSupported; // values that every launch begins with
    Allocation *word = world.heap.allocateOnCard(context->card, 4);
    if (!word)
      return kOutOfMemory;
    word->history.add({0, word->bytes}, true, world.hostAccess("its making"), world.host);
    known->conditions.push_back(*handle = word->begin);
    return kSuccess;
  });
}
/// CUgraphNodeParams of a conditional node.
struct ConditionalParams {
  int type, reserved[3];
  uint64_t handle;
  int kind;
  unsigned size;
  Graph **bodies;
  Context *context;
};
Result cuGraphAddNode(Node **handle, Graph *graph, Node *const *after, size_t count, ConditionalParams *params) {
  constexpr int kConditional = 13, kIf = 0, kWhile = 1;
  return addNode("cuGraphAddNode", handle, graph, after, count, [&](World &world, Node &node) -> Result {
    if (params->type != kConditional || params->size != 1 || (params->kind != kIf && params->kind != kWhile))
      return kNotSupported;
    Graph &owner = *at(world.graphs, graph);
    if (!params->context || std::ranges::find(owner.conditions, params->handle) == owner.conditions.end())
      return kInvalidValue;
    node.kind = Node::Kind::Conditional;
    node.context = params->context;
    node.condition = params->handle;
    node.repeats = params->kind == kWhile;
    auto body = std::make_unique<Graph>();
    body->isBody = true;
    node.body = body.get();
    owner.bodies.push_back(body.get());
    world.graphs[body.get()] = std::move(body);
    params->bodies = &owner.bodies.back(); // valid until the next one is added: shorter than a driver's
    return kSuccess;
  });
}

/// Copies of the nodes, in one of the orders that their edges allow.
Result instantiate(World &world, const Graph &graph, GraphExec &made) {
  std::vector<const Node *> rest;
  for (const auto &node : graph.nodes)
    rest.push_back(node.get());
  std::unordered_map<const Node *, uint32_t> chainEnds; // nodes that a chain may go on from
  while (!rest.empty()) {
    // Any of those whose edges come from nodes that are there.
    std::vector<size_t> able;
    for (size_t i = 0; i < rest.size(); ++i)
      if (std::ranges::all_of(rest[i]->after, [&](const Node *before) { return made.copies.contains(before); }))
        able.push_back(i);
    if (able.empty())
      return kInvalidValue; // a cycle
    const size_t chosen = able[world.seed ? world.next(able.size()) : 0];
    const Node *original = rest[chosen];
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(chosen));
    auto node = std::make_unique<Node>(*original);
    if (world.plant == "lost-edge" && !node->after.empty())
      node->after.erase(node->after.begin());
    uint32_t timeline = 0;
    for (Node *&before : node->after) {
      before = made.copies.at(before);
      if (auto end = chainEnds.find(before); !timeline && end != chainEnds.end()) {
        timeline = end->second;
        chainEnds.erase(end);
      }
    }
    if (!timeline)
      made.own.push_back(timeline = world.newTimeline());
    chainEnds[node.get()] = timeline;
    made.timelines.push_back(timeline);
    if (node->kind == Node::Kind::Conditional) {
      node->bodyExec = std::make_shared<GraphExec>();
      if (const Result result = instantiate(world, *node->body, *node->bodyExec); result != kSuccess)
        return result;
      made.own.insert(made.own.end(), node->bodyExec->own.begin(), node->bodyExec->own.end());
    }
    made.copies[original] = node.get();
    made.nodes.push_back(std::move(node));
  }
  return kSuccess;
}
Result cuGraphInstantiateWithFlags(GraphExec **exec, Graph *graph, unsigned long long flags) {
  return call("cuGraphInstantiateWithFlags", Needs::Init, [&](World &world) -> Result {
    const Graph *known = at(world.graphs, graph);
    if (!known)
      return kInvalidHandle;
    if (flags != 0)
      return kNotSupported;
    auto made = std::make_unique<GraphExec>();
    if (const Result result = instantiate(world, *known, *made); result != kSuccess)
      return result;
    *exec = made.get();
    world.execs[made.get()] = std::move(made);
    return kSuccess;
  });
}
Result cuGraphExecDestroy(GraphExec *exec) {
  return call("cuGraphExecDestroy", Needs::Init, [&](World &world) -> Result {
    const GraphExec *known = at(world.execs, exec);
    if (!known)
      return kInvalidValue;
    for (uint32_t timeline : known->own)
      world.retire(timeline);
    world.execs.erase(exec);
    return kSuccess;
  });
}
Result cuGraphLaunch(GraphExec *exec, Stream *handle) {
  return call("cuGraphLaunch", Needs::Init, [&](World &world) -> Result {
    GraphExec *known = at(world.execs, exec);
    Stream *stream = streamAt(world, handle);
    if (!known || !stream)
      return kInvalidHandle;
    if (stream->context->sticky != kSuccess)
      return stream->context->sticky;
    world.launchGraph(*known, *stream);
    return kSuccess;
  });
}

/// Other parameters for a node of an instantiated graph, for launches from now on.
template <typename Set> Result update(const char *name, GraphExec *exec, Node *node, Node::Kind kind, Set &&set) {
  return call(name, Needs::Init, [&](World &world) -> Result {
    GraphExec *known = at(world.execs, exec);
    if (!known)
      return kInvalidHandle;
    const auto copy = known->copies.find(node);
    if (copy == known->copies.end() || copy->second->kind != kind)
      return kInvalidValue;
    Node changed = *copy->second;
    if (const Result result = set(world, changed); result != kSuccess)
      return result;
    *copy->second = std::move(changed);
    return kSuccess;
  });
}
Result cuGraphExecKernelNodeSetParams(GraphExec *exec, Node *node, const KernelNodeParams *params) {
  return update("cuGraphExecKernelNodeSetParams", exec, node, Node::Kind::Kernel, [&](World &world, Node &changed) { return setKernel(world, changed, *params); });
}
Result cuGraphExecMemcpyNodeSetParams(GraphExec *exec, Node *node, const CopyNodeParams *params, Context *context) {
  return update("cuGraphExecMemcpyNodeSetParams", exec, node, Node::Kind::Copy, [&](World &world, Node &changed) -> Result {
    const CopyWork before = changed.copy;
    if (context != changed.context)
      return kInvalidValue;
    if (const Result result = setCopy(changed, *params); result != kSuccess)
      return result;
    // Source and destination stay in the memory of the same card, or the host's.
    auto homeOf = [&](uint64_t address) {
      const Allocation *a = world.heap.find(address);
      return a ? a->card : -1;
    };
    return homeOf(before.from) == homeOf(changed.copy.from) && homeOf(before.to) == homeOf(changed.copy.to) ? kSuccess : kInvalidValue;
  });
}
Result cuGraphExecMemsetNodeSetParams(GraphExec *exec, Node *node, const FillNodeParams *params, Context *context) {
  return update("cuGraphExecMemsetNodeSetParams", exec, node, Node::Kind::Fill,
                [&](World &, Node &changed) { return context == changed.context ? setFill(changed, *params) : kInvalidValue; });
}

#define ENTRY(name) {#name, reinterpret_cast<void *>(&name)}
const Entry kEntries[] = {ENTRY(cuGraphCreate),
                          ENTRY(cuGraphAddKernelNode),
                          ENTRY(cuGraphKernelNodeSetAttribute),
                          ENTRY(cuGraphAddMemcpyNode),
                          ENTRY(cuGraphAddMemsetNode),
                          ENTRY(cuGraphAddEmptyNode),
                          ENTRY(cuGraphGetNodes),
                          ENTRY(cuGraphGetEdges),
                          ENTRY(cuGraphDestroy),
                          ENTRY(cuGraphInstantiateWithFlags),
                          ENTRY(cuGraphExecDestroy),
                          ENTRY(cuGraphLaunch),
                          ENTRY(cuGraphExecKernelNodeSetParams),
                          ENTRY(cuGraphExecMemcpyNodeSetParams),
                          ENTRY(cuGraphExecMemsetNodeSetParams),
                          ENTRY(cuGraphConditionalHandleCreate),
                          ENTRY(cuGraphAddNode)};

} // namespace

std::span<const Entry> graphEntries() { return kEntries; }

} // namespace tressel::standin
