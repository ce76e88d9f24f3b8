// In which order an accelerator of a pipeline takes micro-batches: 4 stages, 6 micro-batches, 0 to 5 on their way forward,
// a to f on their way back, which takes as long here:
//
//   all forward first                  one forward, one backward
//   012345      a b c d e f            0123   a4b5c d e f
//    012345    a b c d e f              012  a3b4c5d e f
//     012345  a b c d e f                01 a2b3c4d5e f
//      012345a b c d e f                  0a1b2c3d4e5f
//
// Both take (micro-batches + stages - 1) times what a micro-batch takes a stage, but the second keeps what as many
// micro-batches left for their way back as there are stages behind, not all. Where an accelerator has several stages (of 8
// on 4, the first has 0 and 4), its turn comes sooner, and less time is lost: interleaved. What computes gradients of
// weights alone may wait until there is nothing else to do: zero bubble.
//
// Huang and others, "GPipe" (2019); Narayanan and others, "Efficient large-scale language model training on GPU clusters using
// Megatron-LM" (2021); Qi and others, "Zero bubble pipeline parallelism" (2024), of which this is the order that takes no
// more memory than one forward, one backward (ZB-H1).
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
/// What a stage does with one micro-batch, on its way forward or back.
struct Slot {
  int64_t stage = 0;
  bool isBackward = false;
  int64_t microBatch = 0;
  bool operator==(const Slot &) const = default;
};
/// What the accelerator at a place of the row does, in its order.
std::vector<Slot> slotsOf(PipelineOrder order, const PipelineShape &shape, int64_t place);

} // namespace tressel::passes
