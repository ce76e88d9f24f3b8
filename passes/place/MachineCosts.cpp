#include "passes/place/MachineCosts.h"
#include "passes/shard/Parts.h"

#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Structure.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/KernelHistory.h"

#include <limits>

using namespace mlir;

namespace tressel::passes {

using runtime::DeviceKind;
using runtime::DeviceModel;
using runtime::DeviceRef;

MachineCosts::MachineCosts(const runtime::MachineModel &machine) : machine(machine) {
  for (const DeviceModel &device : machine.devices)
    if (device.device == DeviceRef{} || device.device.kind == DeviceKind::Gpu)
      all.push_back(&device);
  for (const DeviceModel *device : all) {
    const std::vector<runtime::EngineModel> own = device->allEngines();
    for (size_t kind = 0; kind < runtime::kNumStreamKinds; ++kind) {
      auto at = llvm::find_if(own, [&](const runtime::EngineModel &engine) {
        return llvm::is_contained(engine.kinds, static_cast<runtime::StreamKind>(kind));
      });
      // lanes run on the compute engine
      engines.push_back(engineCount + static_cast<unsigned>(at == own.end() ? 0 : at - own.begin()));
    }
    engineCount += static_cast<unsigned>(own.size());
  }
  for (const runtime::LinkModel &link : machine.links)
    capacity.push_back(link.bytesPerSecond);
  for (const DeviceModel *device : all)
    capacity.push_back(device->bytesPerSecond);
  llvm::DenseMap<std::pair<uint8_t, uint16_t>, unsigned> places;
  auto keyOf = [](DeviceRef device) { return std::pair(static_cast<uint8_t>(device.kind), device.index); };
  for (auto [i, device] : llvm::enumerate(all))
    places[keyOf(device->device)] = static_cast<unsigned>(i);
  routes.resize(all.size() * all.size());
  for (const runtime::RouteModel &model : machine.routes) {
    const auto from = places.find(keyOf(model.from)), to = places.find(keyOf(model.to));
    if (from == places.end() || to == places.end())
      continue;
    Route &route = routes[from->second * all.size() + to->second];
    route.exists = true;
    route.pinned = std::min(all[from->second]->bytesPerSecond, all[to->second]->bytesPerSecond);
    for (uint32_t link : model.links) {
      route.latency += machine.links[link].latencySeconds;
      route.pinned = std::min(route.pinned, machine.links[link].bytesPerSecond);
      route.links.push_back(link);
    }
    for (unsigned end : {from->second, to->second})
      route.links.push_back(static_cast<uint32_t>(machine.links.size() + end));
    route.pageable =
        model.pageableBytesPerSecond > 0 ? std::min(route.pinned, model.pageableBytesPerSecond) : route.pinned;
  }
}

std::optional<unsigned> MachineCosts::indexOf(DeviceRef device) const {
  for (auto [i, model] : llvm::enumerate(all))
    if (model->device == device)
      return static_cast<unsigned>(i);
  return std::nullopt;
}

double MachineCosts::seconds(Operation *work, unsigned device) {
  if (auto launch = dyn_cast<graph::LaunchOp>(work)) {
    auto [at, isNew] = ofKernel.try_emplace({launch.getKernelAttr(), device});
    if (!isNew)
      return at->second;
    const DeviceModel &model = *all[device];
    auto kernel = symbols.lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr());
    if (!kernel) { // created since the last query
      symbols.invalidateSymbolTable(launch->getParentOfType<ModuleOp>());
      kernel = symbols.lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr());
    }
    return ofKernel[{launch.getKernelAttr(), device}] = kernelSeconds(launch, kernel, model);
  }
  if (graph::isCollective(work))
    return collectiveSeconds(work, device);
  auto bodies = work->getRegions();
  if (auto scan = dyn_cast<graph::ScanOp>(work))
    return static_cast<double>(dim::hint(scan.getTrips())) * bodySeconds(bodies[0], device);
  if (isa<graph::WhileOp>(work))
    return 2 * bodySeconds(bodies[0], device) + bodySeconds(bodies[1], device);
  double longest = 0;
  for (Region &body : bodies)
    longest = std::max(longest, bodySeconds(body, device));
  return longest;
}

double MachineCosts::kernelSeconds(graph::LaunchOp launch, graph::KernelOp kernel, const DeviceModel &model) const {
  if (machine.history) {
    std::vector<TensorType> types;
    for (TypeRange list : {TypeRange(launch.getOperandTypes()), TypeRange(launch.getResultTypes())})
      for (Type type : list)
        types.push_back(graph::fromMlir(type));
    if (auto measured = runtime::measuredSeconds(machine, model, graph::keyOf(kernel),
                                                 runtime::shapeOf(types, launch.getNumOperands())))
      return *measured;
  }
  const Type first = launch.getNumOperands()  ? launch.getOperand(0).getType()
                     : launch.getNumResults() ? launch.getResult(0).getType()
                                              : Type();
  const int64_t range = dim::hint(kernel.getRange()),
                grain = std::max<int64_t>(1, static_cast<int64_t>(kernel.getGrain()));
  return model.commandSeconds + runtime::workSeconds(model, {.type = first ? graph::fromMlir(first).dtype : f32,
                                                             .flops = static_cast<double>(kernel.getFlops()),
                                                             .bytes = static_cast<double>(kernel.getBytes()),
                                                             .provider = kernel.getProvider(),
                                                             .moves = graph::movesElements(kernel),
                                                             .tasks = (range + grain - 1) / grain,
                                                             .costs = graph::costsOf(kernel)});
}

/// As in simulate(), which also reports a machine that has too few accelerators or no route between them.
double MachineCosts::collectiveSeconds(Operation *op, unsigned device) const {
  FailureOr<graph::Mesh> mesh = graph::meshOf(op->getParentOfType<func::FuncOp>());
  FailureOr<SmallVector<unsigned>> axes = failed(mesh) ? FailureOr<SmallVector<unsigned>>(failure())
                                                       : graph::axesOf(op, graph::axesOfCollective(op), *mesh);
  if (failed(axes) || axes->empty() || mesh->numAlong(*axes) == 1)
    return 0;
  const auto kind = isa<graph::AllGatherOp>(op)       ? runtime::CollectiveKind::AllGather
                    : isa<graph::ReduceScatterOp>(op) ? runtime::CollectiveKind::ReduceScatter
                                                      : runtime::CollectiveKind::AllReduce;
  const Value whole = kind == runtime::CollectiveKind::ReduceScatter ? op->getOperand(0) : op->getResult(0);
  const auto group = groupAlong(*axes, *mesh, machine, all[device]->device);
  return group ? runtime::planCollective(kind, *group, bytesOf(whole.getType())).seconds : 0;
}

double MachineCosts::bodySeconds(Region &body, unsigned device) {
  double sum = 0;
  for (Operation &op : body.front())
    if (isa<graph::LaunchOp, graph::ControlOpInterface>(op))
      sum += seconds(&op, device);
  return sum;
}

std::optional<MachineCosts::Transfer> MachineCosts::transfer(unsigned from, unsigned to, int64_t bytes,
                                                             bool pageable) const {
  const Route &route = routes[from * all.size() + to];
  if (!route.exists)
    return std::nullopt;
  Transfer t;
  t.latency = route.latency;
  t.rate = pageable && (from == 0 || to == 0) ? route.pageable : route.pinned;
  t.seconds = route.latency + static_cast<double>(bytes) / t.rate;
  t.links = route.links;
  t.engine = from == 0 ? engine(to, runtime::StreamKind::CopyIn) : engine(from, runtime::StreamKind::CopyOut);
  return t;
}

} // namespace tressel::passes
