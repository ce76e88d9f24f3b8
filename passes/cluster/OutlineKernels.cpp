#include "passes/Passes.h"
#include "passes/Util.h"
#include "passes/cluster/Traffic.h"

#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Segment.h"
#include "ir/graph/Stage.h"
#include "ir/graph/Structure.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "passes/Passes.h.inc"

namespace {
class OutlineKernels : public impl::OutlineKernelsBase<OutlineKernels> {
public:
  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!*main)
      return;
    known.clear();
    counts.clear();
    packedFrom.clear();
    builder.emplace(*main);
    graph::forEachBody(main->getBody().front(), [&](Block &block) { outline(block); });
  }

private:
  void outline(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isa<graph::ClusterOp, graph::PackOp>(op))
        continue;
      // Attributes on the device, segments and results go to the launch, as kernels may be shared.
      const std::pair<StringRef, Attribute> ofLaunch[] = {{graph::kSegmentsAttr, op.removeAttr(graph::kSegmentsAttr)},
                                                          {graph::kDroppedAttr, op.removeAttr(graph::kDroppedAttr)}};
      const DictionaryAttr place = graph::takePlace(&op);
      graph::KernelOp kernel = kernelFor(&op);
      OpBuilder b(&op);
      auto launch = graph::LaunchOp::create(b, op.getLoc(), op.getResultTypes(),
                                            FlatSymbolRefAttr::get(kernel.getSymNameAttr()), op.getOperands());
      graph::setPlace(launch, place);
      for (auto [name, attribute] : ofLaunch)
        if (attribute)
          launch->setAttr(name, attribute);
      if (isa<graph::PackOp>(op))
        packedFrom[launch.getResult(0)] = op.getOperand(0);
      op.replaceAllUsesWith(launch.getResults());
      op.erase();
    }
  }

  /// The hash covers ops one by one and ignores how values connect them; equal hashes are compared in full.
  static size_t hashOf(Operation *op) {
    llvm::hash_code hash = llvm::hash_combine(op->getName(), op->getAttrDictionary());
    for (Type type : op->getOperandTypes())
      hash = llvm::hash_combine(hash, type);
    for (Type type : op->getResultTypes())
      hash = llvm::hash_combine(hash, type);
    for (Region &region : op->getRegions())
      for (Operation &inner : region.getOps())
        hash = llvm::hash_combine(hash, hashOf(&inner));
    return hash;
  }

  graph::KernelOp kernelFor(Operation *op) {
    auto type = FunctionType::get(&getContext(), op->getOperandTypes(), op->getResultTypes());
    std::vector<Known> &bucket = known[hashOf(op)];
    for (Known &k : bucket) {
      bool equal = k.name == op->getName() && k.attrs == op->getAttrDictionary() && k.kernel.getFunctionType() == type;
      if (equal && op->getNumRegions())
        equal = OperationEquivalence::isRegionEquivalentTo(&k.kernel.getBody(), &op->getRegion(0),
                                                           OperationEquivalence::IgnoreLocations);
      if (equal) {
        ++numShared;
        return k.kernel;
      }
    }
    graph::KernelOp kernel = makeKernel(op, type);
    bucket.push_back({kernel, op->getName(), op->getAttrDictionary()});
    ++numKernels;
    return kernel;
  }

  graph::KernelOp makeKernel(Operation *op, FunctionType type) {
    OpBuilder &b = *builder;
    auto create = [&](StringRef name, StringRef provider, graph::KernelTarget target, StringRef params) {
      OperationState state(UnknownLoc::get(&getContext()), graph::KernelOp::getOperationName());
      state.addRegion();
      auto &properties = state.getOrAddProperties<graph::KernelOp::Properties>();
      properties.sym_name = b.getStringAttr(uniqueName(name));
      properties.function_type = TypeAttr::get(type);
      properties.provider = b.getStringAttr(provider);
      properties.target = graph::KernelTargetAttr::get(&getContext(), target);
      properties.params = b.getStringAttr(params);
      return cast<graph::KernelOp>(b.create(state));
    };
    int64_t bytes = 0, flops = 0;
    for (Value operand : op->getOperands())
      bytes += isReadPacked(operand, op) ? 0 : bytesOf(operand.getType());
    for (Type result : op->getResultTypes())
      bytes += bytesOf(result);
    if (auto pack = dyn_cast<graph::PackOp>(op)) {
      graph::KernelOp kernel = create("pack", pack.getProvider(), graph::KernelTarget::HostLibrary, pack.getParams());
      kernel.setBytes(static_cast<uint64_t>(bytes));
      return kernel;
    }
    auto cluster = cast<graph::ClusterOp>(op);
    bytes += bytesReadAgain(cluster.getBody().front());
    for (Operation &inner : cluster.getBody().front())
      flops += flopsOf(&inner);
    graph::KernelOp kernel = create(describe(cluster), cluster.getProvider(), cluster.getTarget(), cluster.getParams());
    kernel.setRange(cluster.getRange());
    kernel.setGrain(cluster.getGrain());
    kernel.setScratch(cluster.getScratch());
    kernel.setPacks(cluster.getPacks());
    if (cluster.getRootOps())
      kernel.setRootOps(*cluster.getRootOps());
    kernel.setFlops(static_cast<uint64_t>(flops));
    kernel.setBytes(static_cast<uint64_t>(bytes));
    graph::setCosts(kernel, graph::costsOf(cluster));
    graph::setRunnerUp(kernel, graph::runnerUpOf(cluster));
    IRMapping map;
    cluster.getBody().cloneInto(&kernel.getBody(), map);
    // Locations stay on the launch, as the kernel may serve several launches.
    kernel->walk([&](Operation *inner) { inner->setLoc(UnknownLoc::get(&getContext())); });
    for (BlockArgument arg : kernel.getBody().getArguments())
      arg.setLoc(UnknownLoc::get(&getContext()));
    return kernel;
  }

  /// Whether `op` also has the operand in packed form, which it reads instead.
  bool isReadPacked(Value operand, Operation *op) const {
    auto cluster = dyn_cast<graph::ClusterOp>(op);
    return cluster && cluster.getPacks() > 0 &&
           llvm::any_of(op->getOperands(), [&](Value packed) { return packedFrom.lookup(packed) == operand; });
  }

  /// "matmul_add_relu", at most five names.
  static std::string describe(graph::ClusterOp cluster) {
    constexpr int kMost = 5;
    std::string name;
    int count = 0;
    for (Operation &op : cluster.getBody().front())
      if (isComputation(&op) && ++count <= kMost)
        name += (name.empty() ? "" : "_") + std::string(graph::infoOf(&op)->name);
    if (count > kMost)
      name += "_and_" + std::to_string(count - kMost) + "_more";
    return name.empty() ? "copy" : name;
  }
  std::string uniqueName(StringRef base) { return (base + "_" + std::to_string(counts[base]++)).str(); }

  struct Known {
    graph::KernelOp kernel;
    OperationName name; ///< of a cluster or a pack
    DictionaryAttr attrs;
  };
  std::map<size_t, std::vector<Known>> known;
  llvm::StringMap<int> counts;
  llvm::DenseMap<Value, Value> packedFrom; ///< by packed value: the original
  std::optional<OpBuilder> builder;
};
} // namespace
} // namespace tressel::passes
