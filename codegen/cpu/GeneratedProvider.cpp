#include "codegen/cpu/GeneratedProvider.h"

#include "codegen/CostModel.h"
#include "codegen/cpu/KernelSource.h"
#include "codegen/cpu/LoopCost.h"
#include "codegen/loops/KernelParts.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>

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
    auto parts = planParts(*graph);
    if (!parts)
      return std::nullopt;
    passes::Bid bid;
    double bytes = 0;
    int64_t chunks = 0;
    for (const KernelPart &part : *parts) {
      // One kernel has one floating-point mode: f32 by itself has its subnormal numbers flushed by the processor.
      if (part.plan.floats() != parts->front().plan.floats() ||
          (part.plan.flushesExplicitly() && candidate.ops.size() > 1))
        return std::nullopt;
      const LoopSchedule schedule = scheduleLoops(part.plan, target_.features());
      for (runtime::KernelCost &cost : costsOf(part.plan, schedule, target_.level())) {
        const auto same = std::ranges::find(bid.costs, cost.kind, &runtime::KernelCost::kind);
        if (same == bid.costs.end())
          bid.costs.push_back(std::move(cost));
        else
          same->seconds += cost.seconds;
      }
      bytes += static_cast<double>(part.plan.bytes());
      bid.range = dim::max(1, schedule.range);
      bid.grain = std::max<int64_t>(1, schedule.grain);
      chunks += (std::max<int64_t>(1, dim::hint(bid.range)) + bid.grain - 1) / bid.grain;
    }
    if (parts->size() > 1)
      bid.range = chunks, bid.grain = 1;
    bid.joins = parts->front().plan.reductions.empty();
    bid.seconds = predictSeconds(bid.costs, bytes, chunks);
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
