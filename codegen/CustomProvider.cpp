#include "codegen/CustomProvider.h"

#include "ir/graph/Graph.h"
#include "ir/op/CustomOp.h"
#include "passes/Util.h"

namespace tressel::codegen {
namespace {

class CustomProvider final : public passes::KernelProvider {
public:
  llvm::StringRef name() const override { return runtime::kCustomProvider; }
  graph::KernelTarget target() const override { return graph::KernelTarget::HostLibrary; }

  std::optional<passes::Bid> bid(const passes::Candidate &candidate, llvm::ArrayRef<bool>) const override {
    mlir::Operation *op = candidate.root;
    const op::OpInfo *info = graph::infoOf(op);
    if (candidate.ops.size() != 1 || !info || !info->custom)
      return std::nullopt;
    const std::vector<TensorType> operands = passes::tableTypes(op->getOperandTypes()),
                                  results = passes::tableTypes(op->getResultTypes());
    op::CustomWork work = op::customWork(*info, operands, results, graph::attrsOf(op, *info));
    for (mlir::Value operand : op->getOperands())
      work.call.buffers.push_back(
          static_cast<int32_t>(llvm::find(candidate.inputs, operand) - candidate.inputs.begin()));
    for (size_t i = 0; i < results.size(); ++i)
      work.call.buffers.push_back(static_cast<int32_t>(candidate.inputs.size() + i));
    // Nothing is known of its arithmetic. It is the only bidder, so any figure will do.
    int64_t bytes = 0;
    for (mlir::TypeRange types : {mlir::TypeRange(op->getOperandTypes()), mlir::TypeRange(op->getResultTypes())})
      for (mlir::Type type : types)
        bytes += passes::bytesOf(type);
    passes::Bid bid;
    bid.seconds = 1e-6 + static_cast<double>(bytes) * 1e-10;
    bid.params = work.call.toJson();
    bid.range = std::max<int64_t>(work.call.range, 1);
    bid.grain = std::max<int64_t>(work.grain.numberOr(1), 1);
    bid.scratchBytes = work.call.scratchBytes;
    return bid;
  }
};

} // namespace

std::unique_ptr<passes::KernelProvider> makeCustomProvider() { return std::make_unique<CustomProvider>(); }

} // namespace tressel::codegen
