#include "passes/Passes.h"
#include "passes/Util.h"
#include "passes/cluster/Traffic.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_SETTLEKERNELS
#include "passes/Passes.h.inc"

namespace {

using Ops = ArrayRef<Operation *>;

class SettleKernels : public impl::SettleKernelsBase<SettleKernels> {
public:
  SettleKernels() = default;
  explicit SettleKernels(Providers hostProviders) : hostProviders(std::move(hostProviders)) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!*main)
      return;
    SymbolTable symbols(getOperation());
    llvm::DenseMap<graph::KernelOp, graph::KernelOp> ofHost;
    llvm::DenseSet<graph::KernelOp> elsewhere; // also launched on an accelerator
    llvm::SetVector<graph::LaunchOp, std::vector<graph::LaunchOp>> onHost;
    main->walk([&](graph::LaunchOp launch) {
      auto kernel = symbols.lookup<graph::KernelOp>(launch.getKernel());
      if (!kernel.isForGpu())
        return;
      if (deviceOf(launch) == graph::kHost)
        onHost.insert(launch);
      else
        elsewhere.insert(kernel);
    });
    llvm::DenseMap<graph::KernelOp, std::vector<Part>> inParts;
    for (graph::LaunchOp launch : onHost) {
      auto kernel = symbols.lookup<graph::KernelOp>(launch.getKernel());
      if (auto parts = inParts.find(kernel); parts != inParts.end()) {
        launchParts(launch, parts->second);
        continue;
      }
      graph::KernelOp &host = ofHost[kernel];
      if (!host) {
        host = kernel;
        if (elsewhere.contains(kernel)) {
          host = kernel.clone();
          host.setSymName((kernel.getSymName() + "_host").str());
          symbols.insert(host, Block::iterator(kernel));
        }
        if (!settle(host)) {
          if (std::vector<Part> parts = apart(kernel, symbols); !parts.empty()) {
            launchParts(launch, parts);
            inParts[kernel] = std::move(parts);
            if (host != kernel)
              host.erase();
            ofHost.erase(kernel);
            continue;
          }
          launch.emitError("no kernel of the host can run '")
              << graph::describeBody(kernel.getBody(), kernel.getProvider()) << "'";
          return signalPassFailure();
        }
        ++numSettled;
      }
      launch.setKernelAttr(FlatSymbolRefAttr::get(host.getSymNameAttr()));
    }
    for (const auto &[kernel, parts] : inParts)
      if (!elsewhere.contains(kernel))
        graph::KernelOp(kernel).erase();
    for (graph::KernelOp kernel : elsewhere)
      kernel->setAttr(kAlignedAttr, UnitAttr::get(&getContext()));
  }

private:
  /// The op's device; an op in a body without one runs on the device of the op with the body.
  static runtime::DeviceRef deviceOf(Operation *op) {
    for (; op && !isa<func::FuncOp>(op); op = op->getParentOp())
      if (auto device = graph::deviceOf(op))
        return *device;
    return graph::kHost;
  }

  /// A kernel for ops of a kernel that exchange no values with its other ops.
  struct Part {
    graph::KernelOp kernel;
    SmallVector<unsigned> inputs, results; ///< indices into those of the whole
  };
  /// Splits a kernel that was joined for accelerators and that no provider of the host runs as one. Empty if all its
  /// ops exchange values, or if no provider runs some part.
  std::vector<Part> apart(graph::KernelOp whole, SymbolTable &symbols) {
    Block &body = whole.getBody().front();
    llvm::EquivalenceClasses<Operation *> groups;
    for (Operation &op : body.without_terminator()) {
      groups.insert(&op);
      for (Value operand : op.getOperands())
        if (Operation *def = operand.getDefiningOp(); def && !def->hasTrait<OpTrait::ConstantLike>())
          groups.unionSets(&op, def);
    }
    const SmallVector<Value> yielded(body.getTerminator()->getOperands());
    llvm::MapVector<Operation *, Part> found; // by leader of the group, in the order of results
    for (auto [i, value] : llvm::enumerate(yielded)) {
      Operation *def = value.getDefiningOp();
      if (!def)
        return {};
      found[groups.getLeaderValue(def)].results.push_back(static_cast<unsigned>(i));
    }
    std::vector<Part> parts;
    if (found.size() < 2 || whole.getRootOps())
      return parts;
    for (auto &[leader, part] : found) {
      graph::KernelOp kernel = whole.clone();
      kernel.setSymName((whole.getSymName() + "_part").str());
      symbols.insert(kernel, Block::iterator(whole)); // inserting may rename the kernel
      Block &own = kernel.getBody().front();
      SmallVector<Value> results;
      for (unsigned i : part.results)
        results.push_back(own.getTerminator()->getOperand(i));
      own.getTerminator()->setOperands(results);
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(own)))
        if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty())
          op.erase();
      llvm::BitVector unused(own.getNumArguments());
      int64_t bytes = 0, flops = 0;
      for (BlockArgument argument : own.getArguments())
        if (argument.use_empty()) {
          unused.set(argument.getArgNumber());
        } else {
          part.inputs.push_back(argument.getArgNumber());
          bytes += bytesOf(argument.getType());
        }
      for (Value result : results)
        bytes += bytesOf(result.getType());
      bytes += bytesReadAgain(own);
      for (Operation &op : own)
        flops += flopsOf(&op);
      own.eraseArguments(unused);
      kernel.setFunctionType(FunctionType::get(&getContext(), own.getArgumentTypes(), ValueRange(results).getTypes()));
      kernel.setBytes(static_cast<uint64_t>(bytes));
      kernel.setFlops(static_cast<uint64_t>(flops));
      part.kernel = kernel;
      parts.push_back(part);
      ++numSettled;
      if (settle(kernel))
        continue;
      for (Part &made : parts)
        made.kernel.erase();
      return {};
    }
    return parts;
  }
  static void launchParts(graph::LaunchOp launch, ArrayRef<Part> parts) {
    OpBuilder b(launch);
    for (const Part &part : parts) {
      graph::KernelOp kernel = part.kernel;
      SmallVector<Value> inputs;
      for (unsigned i : part.inputs)
        inputs.push_back(launch.getInputs()[i]);
      auto own = graph::LaunchOp::create(b, launch.getLoc(), kernel.getResultTypes(), FlatSymbolRefAttr::get(kernel.getSymNameAttr()), inputs);
      if (Attribute device = launch->getAttr(graph::kDeviceAttr))
        own->setAttr(graph::kDeviceAttr, device);
      for (auto [i, result] : llvm::zip_equal(part.results, own.getResults()))
        launch.getResult(i).replaceAllUsesWith(result);
    }
    launch.erase();
  }

  struct Offer {
    const KernelProvider *provider = nullptr;
    Bid bid;
  };
  Offer cheapest(Ops ops, ArrayRef<Value> results,
                 llvm::function_ref<bool(const KernelProvider &, const Bid &)> suits) const {
    llvm::SetVector<Value> inputs;
    llvm::SmallDenseSet<Operation *> inside(ops.begin(), ops.end());
    for (Operation *op : ops)
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp(); !(def && inside.contains(def)) && !isImmediate(op, operand))
          inputs.insert(operand);
    const SmallVector<bool> packable(inputs.size(), false);
    Offer best;
    for (const KernelProvider *provider : hostProviders)
      if (auto bid = provider->bid({rootOf(ops), ops, inputs.getArrayRef(), results}, packable);
          bid && bid->packs.empty() && suits(*provider, *bid) && (!best.provider || bid->seconds < best.bid.seconds))
        best = {provider, *bid};
    return best;
  }

  /// Assigns the kernel to the cheapest provider of the host; false if none bids.
  bool settle(graph::KernelOp kernel) const {
    SmallVector<Operation *> ops, root, epilogue;
    int64_t position = 0;
    for (Operation &op : kernel.getBody().front().without_terminator()) {
      const bool inRoot = position++ < static_cast<int64_t>(kernel.getRootOps().value_or(0));
      if (!isComputation(&op))
        continue;
      ops.push_back(&op);
      (inRoot ? root : epilogue).push_back(&op);
    }
    const SmallVector<Value> results(kernel.getBody().front().getTerminator()->getOperands());
    auto anyone = [](const KernelProvider &, const Bid &) { return true; };
    Offer all = cheapest(ops, results, anyone), first, second;
    if (!root.empty() && !epilogue.empty()) {
      first = cheapest(root, SmallVector<Value>(root.back()->getResults()),
                       [](const KernelProvider &, const Bid &bid) { return bid.takesEpilogue; });
      second = cheapest(epilogue, results, [](const KernelProvider &p, const Bid &) { return p.writesEpilogues(); });
    }
    const bool apart = first.provider && second.provider &&
                       (!all.provider || first.bid.seconds + second.bid.seconds < all.bid.seconds);
    if (!apart && !all.provider)
      return false;
    const Offer &chosen = apart ? first : all;
    kernel.setProvider(chosen.provider->name());
    kernel.setTarget(chosen.provider->target());
    kernel.setParams(chosen.bid.params);
    kernel.setRange(chosen.bid.range);
    kernel.setGrain(static_cast<uint64_t>(chosen.bid.grain));
    kernel.setScratch(apart ? dim::max(first.bid.scratchBytes, second.bid.scratchBytes) : chosen.bid.scratchBytes);
    Bid whole = chosen.bid;
    if (apart)
      whole.addCosts(second.bid);
    graph::setCosts(kernel, whole.costs);
    graph::setRunnerUp(kernel, {});
    if (!apart)
      kernel.removeRootOpsAttr();
    return true;
  }

  Providers hostProviders;
};
} // namespace

std::unique_ptr<Pass> createSettleKernels(Providers hostProviders) {
  return std::make_unique<SettleKernels>(std::move(hostProviders));
}

} // namespace tressel::passes
