#include "codegen/prebuilt/Provider.h"

#include "codegen/CostModel.h"
#include "codegen/prebuilt/Emit.h"
#include "ir/graph/Graph.h"
#include "passes/Util.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>

namespace tressel::codegen {
namespace {

class PrebuiltProvider final : public passes::KernelProvider {
public:
  llvm::StringRef name() const override { return kPrebuiltProvider; }

  std::optional<passes::Bid> bid(const passes::Candidate &candidate, llvm::ArrayRef<bool>) const override {
    if (candidate.ops.size() != 1)
      return std::nullopt;
    mlir::Operation *op = candidate.ops.front();
    std::optional<op::KernelForm> form = passes::kernelFormOf(op);
    if (!form || !hasPrebuilt(form->kernel)) // others are of a library's
      return std::nullopt;
    int64_t bytes = 0;
    for (mlir::Type type : op->getOperandTypes())
      bytes += dim::hint(dim::bytes(graph::fromMlir(type)));
    for (mlir::Type type : op->getResultTypes())
      bytes += dim::hint(dim::bytes(graph::fromMlir(type)));
    const CpuModel &cpu = hostCpuModel();
    // Scalar code with data-dependent branches does a small share of what vectors could.
    constexpr double efficiency = 0.02, secondsPerTask = 40e-6;
    passes::Bid bid;
    bid.seconds = predictSeconds(cpu, form->flops, static_cast<double>(bytes), efficiency) + cpu.callSeconds;
    bid.params = form->kernel;
    const int64_t units = std::max<int64_t>(1, dim::hint(form->range));
    bid.range = dim::max(1, form->range);
    bid.grain = std::clamp<int64_t>(
        static_cast<int64_t>(static_cast<double>(units) * secondsPerTask / (bid.seconds * cpu.threads)), 1, units);
    bid.scratchBytes = form->scratchBytes;
    return bid;
  }
};

} // namespace

std::unique_ptr<passes::KernelProvider> makePrebuiltProvider() { return std::make_unique<PrebuiltProvider>(); }

} // namespace tressel::codegen
