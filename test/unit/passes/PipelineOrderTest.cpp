// Orders of micro-batches: each slot once, in an order that ends, in the time of the textbooks.
#include "passes/schedule/PipelineOrder.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

using namespace tressel::passes;

namespace {
struct Outcome {
  double seconds = 0;                ///< 0: it does not end
  std::vector<int64_t> mostInFlight; ///< by place: micro-batches and stages that went forward and not yet back
};

/// Each accelerator takes its slots one after the other, each when what it waits for is there.
Outcome play(PipelineOrder order, const PipelineShape &shape, double forward, double backward) {
  std::vector<std::vector<Slot>> slots;
  for (int64_t place = 0; place < shape.inRow; ++place)
    slots.push_back(slotsOf(order, shape, place));
  std::map<std::tuple<int64_t, bool, int64_t>, double> ends;
  std::vector<size_t> next(slots.size(), 0);
  std::vector<double> now(slots.size(), 0);
  std::vector<int64_t> inFlight(slots.size(), 0);
  Outcome result;
  result.mostInFlight.resize(slots.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t place = 0; place < slots.size(); ++place)
      while (next[place] < slots[place].size()) {
        const Slot &slot = slots[place][next[place]];
        std::vector<std::tuple<int64_t, bool, int64_t>> waits;
        if (!slot.isBackward && slot.stage > 0)
          waits.emplace_back(slot.stage - 1, false, slot.microBatch);
        if (slot.isBackward)
          waits.emplace_back(slot.stage, false, slot.microBatch);
        if (slot.isBackward && slot.stage + 1 < shape.stages)
          waits.emplace_back(slot.stage + 1, true, slot.microBatch);
        double begin = now[place];
        bool isReady = true;
        for (const auto &wait : waits) {
          isReady &= ends.contains(wait);
          begin = isReady ? std::max(begin, ends.at(wait)) : begin;
        }
        if (!isReady)
          break;
        now[place] = begin + (slot.isBackward ? backward : forward);
        EXPECT_TRUE(ends.emplace(std::tuple(slot.stage, slot.isBackward, slot.microBatch), now[place]).second);
        inFlight[place] += slot.isBackward ? -1 : 1;
        result.mostInFlight[place] = std::max(result.mostInFlight[place], inFlight[place]);
        ++next[place];
        moved = true;
      }
  }
  if (std::ssize(ends) == 2 * shape.stages * shape.microBatches)
    result.seconds = *std::max_element(now.begin(), now.end());
  return result;
}

TEST(PipelineOrderTest, TakesAsLongAsTheTextbooksSay) {
  const PipelineShape shape{.inRow = 4, .stages = 4, .microBatches = 16};
  const Outcome one = play(PipelineOrder::OneForwardOneBackward, shape, 1, 2), all = play(PipelineOrder::AllForwardFirst, shape, 1, 2);
  EXPECT_EQ(one.seconds, (16 + 4 - 1) * 3);
  EXPECT_EQ(all.seconds, (16 + 4 - 1) * 3);
  EXPECT_EQ(one.mostInFlight, (std::vector<int64_t>{4, 3, 2, 1}));
  EXPECT_EQ(all.mostInFlight, (std::vector<int64_t>{16, 16, 16, 16}));
}

TEST(PipelineOrderTest, TwoStagesOfAnAcceleratorHalveTheBubble) {
  const PipelineShape shape{.inRow = 4, .stages = 8, .microBatches = 16};
  EXPECT_EQ(play(PipelineOrder::OneForwardOneBackward, shape, 0.5, 1).seconds, 16 * 3 + (4 - 1) * 3 / 2.0);
}

TEST(PipelineOrderTest, EveryShapeEnds) {
  for (PipelineOrder order : kPipelineOrders)
    for (int64_t inRow = 1; inRow <= 5; ++inRow)
      for (int64_t stages = 1; stages <= 11; ++stages)
        for (int64_t microBatches = 1; microBatches <= 9; ++microBatches)
          EXPECT_GT(play(order, {.inRow = std::min(inRow, stages), .stages = stages, .microBatches = microBatches}, 1, 2).seconds, 0)
              << inRow << " accelerators, " << stages << " stages, " << microBatches << " micro-batches";
}

TEST(PipelineOrderTest, NamesAreReadAndWritten) {
  for (PipelineOrder order : kPipelineOrders)
    for (bool isInterleaved : {false, true})
      EXPECT_EQ(parsePipelineOrder(nameOf(order, isInterleaved)), order);
  EXPECT_FALSE(parsePipelineOrder("2f2b"));
}
} // namespace
