#include "passes/schedule/PipelineOrder.h"

#include <algorithm>

namespace tressel::passes {

std::optional<PipelineOrder> parsePipelineOrder(llvm::StringRef name) {
  if (name == "1f1b" || name == "interleaved")
    return PipelineOrder::OneForwardOneBackward;
  if (name == "zero-bubble")
    return PipelineOrder::ZeroBubble;
  if (name == "gpipe")
    return PipelineOrder::AllForwardFirst;
  return std::nullopt;
}

llvm::StringRef nameOf(PipelineOrder order, bool isInterleaved) {
  switch (order) {
  case PipelineOrder::OneForwardOneBackward:
    return isInterleaved ? "interleaved" : "1f1b";
  case PipelineOrder::ZeroBubble:
    return "zero-bubble";
  case PipelineOrder::AllForwardFirst:
    return "gpipe";
  }
  return "";
}

/// Rounds of `atOnce` micro-batches, one per accelerator in the row: a round goes through one stage of this
/// accelerator, then through its next one; backward, through the last stage first.
static std::vector<Slot> passOf(const PipelineShape &shape, int64_t place, bool isBackward, int64_t atOnce) {
  const int64_t own = shape.stagesOf(place);
  std::vector<Slot> slots;
  for (int64_t first = 0; first < shape.microBatches; first += atOnce)
    for (int64_t k = 0; k < own; ++k)
      for (int64_t m = first; m < first + atOnce; ++m) // the last round may be shorter
        slots.push_back({place + (isBackward ? own - 1 - k : k) * shape.inRow, isBackward, m});
  return slots;
}

std::vector<Slot> slotsOf(PipelineOrder order, const PipelineShape &shape, int64_t place) {
  // Accelerators with different numbers of stages cannot alternate in lockstep.
  const bool allFirst = order == PipelineOrder::AllForwardFirst || (shape.isInterleaved() && shape.stages % shape.inRow != 0);
  const int64_t atOnce = allFirst ? shape.microBatches : shape.inRow;
  const std::vector<Slot> forward = passOf(shape, place, false, atOnce), backward = passOf(shape, place, true, atOnce);
  // Micro-batches before the first backward one: one per accelerator behind this one, or two where stages are
  // interleaved, and then a round for each stage of this accelerator but the last.
  const int64_t behind = shape.inRow - 1 - place;
  int64_t ahead = shape.isInterleaved() ? 2 * behind + (shape.stagesOf(place) - 1) * shape.inRow : behind;
  if (allFirst)
    ahead = std::ssize(forward);
  std::vector<Slot> slots;
  auto f = forward.begin(), b = backward.begin();
  while (f != forward.end() || b != backward.end()) {
    if (f != forward.end() && (f - forward.begin() < ahead || f - forward.begin() - ahead <= b - backward.begin()))
      slots.push_back(*f++);
    else
      slots.push_back(*b++);
  }
  std::erase_if(slots, [&](const Slot &slot) { return slot.microBatch >= shape.microBatches; });
  return slots;
}

} // namespace tressel::passes
