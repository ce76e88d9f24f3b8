// The order in which an accelerator of a pipeline takes micro-batches. 4 stages, 6 micro-batches, 0 to 5 forward and a
// to f backward, where both ways take as long:
//
//   all forward first                  one forward, one backward
//   012345      a b c d e f            0123   a4b5c d e f
//    012345    a b c d e f              012  a3b4c5d e f
//     012345  a b c d e f                01 a2b3c4d5e f
//      012345a b c d e f                  0a1b2c3d4e5f
//
// Both take (micro-batches + stages - 1) times the time of a micro-batch on a stage. The second keeps the residuals of
// at most as many micro-batches as there are stages from its own to the last, the first those of all. Interleaved: an
// accelerator has several stages (of 8 on 4, the first has 0 and 4), so its first micro-batch comes sooner and the
// bubble is smaller. Zero bubble: gradients of weights are computed when the accelerator has nothing else to do.
//
// Huang and others, "GPipe" (2019); Narayanan and others, "Efficient large-scale language model training on GPU
// clusters using Megatron-LM" (2021); Qi and others, "Zero bubble pipeline parallelism" (2024), of which this is the
// order that takes no more memory than one forward, one backward (ZB-H1).
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tressel::passes {

enum class PipelineOrder : uint8_t { OneForwardOneBackward, ZeroBubble, AllForwardFirst };
inline constexpr PipelineOrder kPipelineOrders[] = {PipelineOrder::OneForwardOneBackward, PipelineOrder::ZeroBubble,
                                                    PipelineOrder::AllForwardFirst};

/// "1f1b" or "interleaved", "zero-bubble", "gpipe".
std::optional<PipelineOrder> parsePipelineOrder(llvm::StringRef name);
llvm::StringRef nameOf(PipelineOrder order, bool isInterleaved);

struct PipelineShape {
  int64_t inRow = 1, stages = 1, microBatches = 1;
  int64_t stagesOf(int64_t place) const { return (stages - place + inRow - 1) / inRow; }
  bool isInterleaved() const { return stages > inRow; }
};
/// The work of a stage on one micro-batch, forward or backward.
struct Slot {
  int64_t stage = 0;
  bool isBackward = false;
  int64_t microBatch = 0;
  bool operator==(const Slot &) const = default;
};
/// The work of the accelerator at `place` of the row, in order.
std::vector<Slot> slotsOf(PipelineOrder order, const PipelineShape &shape, int64_t place);

} // namespace tressel::passes
