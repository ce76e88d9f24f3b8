#include "codegen/cpu/GeneratedProvider.h"

#include "codegen/CostModel.h"
#include "codegen/cpu/KernelSource.h"
#include "codegen/cpu/LoopCost.h"
#include "tressel/runtime/Dim.h"

namespace tressel::codegen {
namespace {

class GeneratedProvider final : public passes::KernelProvider {
public:
  explicit GeneratedProvider(const Target &target) : target_(target) {}

  llvm::StringRef name() const override { return "generated"; }
  graph::KernelTarget target() const override { return graph::KernelTarget::Host; }
  bool writesEpilogues() const override { return true; }

  std::optional<passes::Bid> bid(const passes::Candidate &candidate, llvm::ArrayRef<bool>) const override {
    auto graph = kernelGraphOf(candidate.ops, candidate.inputs, candidate.results);
    if (!graph)
      return std::nullopt;
    auto plan = buildLoopPlan(*graph);
    if (!plan)
      return std::nullopt;
    // One kernel has one floating-point mode: f32 by itself has its subnormal numbers flushed by the processor.
    if (plan->flushesExplicitly() && candidate.ops.size() > 1)
      return std::nullopt;
    const LoopSchedule schedule = scheduleLoops(*plan, target_.features());
    passes::Bid bid;
    bid.costs = costsOf(*plan, schedule, target_.level());
    bid.range = dim::max(1, schedule.range);
    bid.grain = std::max<int64_t>(1, schedule.grain);
    const int64_t units = std::max<int64_t>(1, dim::hint(bid.range));
    bid.seconds = predictSeconds(bid.costs, static_cast<double>(plan->bytes()), (units + bid.grain - 1) / bid.grain);
    return bid;
  }

private:
  const Target &target_;
};

} // namespace

std::unique_ptr<passes::KernelProvider> makeGeneratedProvider(const Target &target) {
  return std::make_unique<GeneratedProvider>(target);
}

} // namespace tressel::codegen
