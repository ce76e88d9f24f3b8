#include "codegen/bitcode/Provider.h"

#include "codegen/CostModel.h"
#include "codegen/bitcode/Emit.h"
#include "ir/graph/Graph.h"
#include "passes/Util.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>

namespace tressel::codegen {
namespace {

class BitcodeProvider final : public passes::KernelProvider {
public:
  explicit BitcodeProvider(runtime::CpuLevel level) : level_(level) {}

  llvm::StringRef name() const override { return kBitcodeProvider; }
  graph::KernelTarget target() const override { return graph::KernelTarget::Host; }

  std::optional<passes::Bid> bid(const passes::Candidate &candidate, llvm::ArrayRef<bool>) const override {
    if (candidate.ops.size() != 1)
      return std::nullopt;
    mlir::Operation *op = candidate.ops.front();
    std::optional<op::KernelForm> form = passes::kernelFormOf(op);
    if (!form || !hasBitcodeKernel(form->kernel)) // others are of a library's
      return std::nullopt;
    int64_t bytes = 0;
    for (mlir::Type type : op->getOperandTypes())
      bytes += dim::hint(dim::bytes(graph::fromMlir(type)));
    for (mlir::Type type : op->getResultTypes())
      bytes += dim::hint(dim::bytes(graph::fromMlir(type)));
    // A unit of most kernels is a line. Those that order lines take short ones by insertion, which compares each pair (kernels/Sort.cpp).
    constexpr double shortLine = 48;
    const int64_t units = std::max<int64_t>(1, dim::hint(form->range));
    auto elements = [](mlir::Value value) { return static_cast<double>(dim::hint(dim::numElements(graph::fromMlir(value.getType()).shape))); };
    const double line = elements(op->getResult(0)) / static_cast<double>(units);
    const double second = op->getNumOperands() > 1 ? elements(op->getOperand(1)) : 0;
    const bool isShort = line <= shortLine;
    const double counts[] = {isShort ? form->flops : 0, isShort ? static_cast<double>(units) * line * line : 0, isShort ? 0 : form->flops,
                             static_cast<double>(units), static_cast<double>(bytes) / 64, second};
    passes::Bid bid;
    std::string model = "bitcode/" + form->kernel.substr(0, form->kernel.rfind('_'));
    if (!hasCostModel(model))
      model = "bitcode/other";
    bid.costs = {costOf(model, level_, counts)};
    bid.params = form->kernel;
    bid.range = dim::max(1, form->range);
    bid.grain = 2 * grainFor(serialSeconds(bid.costs, static_cast<double>(bytes)), units);
    bid.grain = std::min(bid.grain, units);
    bid.seconds = predictSeconds(bid.costs, static_cast<double>(bytes), (units + bid.grain - 1) / bid.grain);
    bid.scratchBytes = form->scratchBytes;
    return bid;
  }

private:
  const runtime::CpuLevel level_;
};

} // namespace

std::unique_ptr<passes::KernelProvider> makeBitcodeProvider(runtime::CpuLevel level) { return std::make_unique<BitcodeProvider>(level); }

} // namespace tressel::codegen
