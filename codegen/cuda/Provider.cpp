#include "codegen/cuda/Provider.h"

#include "codegen/cuda/Library.h"
#include "codegen/cuda/loops/KernelSource.h"
#include "codegen/loops/FromGraph.h"
#include "codegen/loops/KernelParts.h"
#include "ir/graph/Graph.h"
#include "mlir/IR/TypeUtilities.h"
#include "tressel/runtime/Dim.h"

#include "llvm/ADT/STLExtras.h"

namespace tressel::codegen::cuda {
namespace {

passes::Bid bidOf(const Kernel &kernel) {
  passes::Bid bid;
  bid.seconds = kernel.seconds + kLaunchSeconds;
  bid.params = launchParams(kernel);
  bid.range = dim::max(1, kernel.blocks);
  return bid;
}

class LoopProvider final : public passes::KernelProvider {
public:
  explicit LoopProvider(const Arch &arch) : arch_(arch) {}
  llvm::StringRef name() const override { return kLoopProvider; }
  graph::KernelTarget target() const override { return graph::KernelTarget::Gpu; }
  bool writesEpilogues() const override { return true; }
  std::optional<passes::Bid> bid(const passes::Candidate &candidate, llvm::ArrayRef<bool>) const override {
    if (candidate.ops.size() > 1 && mixesFloats(candidate))
      return std::nullopt;
    auto kernel = planLoops(bodyOf(candidate), arch_);
    if (!kernel)
      return std::nullopt;
    passes::Bid bid = bidOf(*kernel);
    bid.joins = kernel->joins;
    return bid;
  }

private:
  /// The host's kernels mix f32 and f64 in single ops only, and may have to take over what this one bids for.
  static bool mixesFloats(const passes::Candidate &candidate) {
    auto isDouble = [](mlir::Type type) { return mlir::getElementTypeOrSelf(type).isF64(); };
    if (llvm::none_of(candidate.ops, [&](mlir::Operation *op) {
          return llvm::any_of(op->getOperandTypes(), isDouble) || llvm::any_of(op->getResultTypes(), isDouble);
        }))
      return false;
    auto graph = kernelGraphOf(candidate.ops, candidate.inputs, candidate.results);
    auto parts = graph ? planParts(*graph) : std::nullopt;
    return parts && llvm::any_of(*parts, [&](const KernelPart &part) {
             return part.plan.flushesExplicitly() || part.plan.floats() != parts->front().plan.floats();
           });
  }

  const Arch &arch_;
};

class RootProvider final : public passes::KernelProvider {
public:
  explicit RootProvider(const Arch &arch) : arch_(arch) {}
  llvm::StringRef name() const override { return kRootProvider; }
  graph::KernelTarget target() const override { return graph::KernelTarget::Gpu; }
  std::optional<passes::Bid> bid(const passes::Candidate &candidate, llvm::ArrayRef<bool>) const override {
    if (candidate.ops.size() != 1)
      return std::nullopt;
    auto root = planRoot(bodyOf(candidate), arch_);
    if (!root)
      return std::nullopt;
    passes::Bid bid = bidOf(root->kernel);
    bid.takesEpilogue = root->takesEpilogue;
    return bid;
  }

private:
  const Arch &arch_;
};

} // namespace

std::unique_ptr<passes::KernelProvider> makeLoopProvider(const Arch &arch) {
  return std::make_unique<LoopProvider>(arch);
}
std::unique_ptr<passes::KernelProvider> makeRootProvider(const Arch &arch) {
  return std::make_unique<RootProvider>(arch);
}

} // namespace tressel::codegen::cuda
