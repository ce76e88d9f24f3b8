// How a loop plan runs on a GPU: what a thread does, which threads work together, what a block covers.
#pragma once

#include "codegen/cuda/loops/Loops.h"

namespace tressel::codegen::cuda {

/// Parallel points (or vectors of them) are numbered, `order` saying which dimension is the fastest. A block has the
/// next threads / group of them. `group` threads share the reductions of a point: neighbours in a warp if `groupFast`,
/// so that they read neighbours along the reduced dimensions; else the block is group x points, and neighbours are
/// points.
///
/// Tiles: for plans without reductions that read along one dimension and write along another. A block moves a tile of
/// 32 x 32 elements of each such operand through shared memory.
struct GpuSchedule {
  int threads = 128;      ///< per block; a power of two
  std::vector<int> order; ///< the parallel dimensions, the fastest first
  int vectorDim = -1;     ///< the fastest, or the last reduced one; -1: none
  int vector = 1;         ///< elements of it per thread, side by side
  int group = 1;
  bool groupFast = true;
  int kept =
      0; ///< > 0: a thread's reduced indices are so many (vectors), unrolled, and what is read stays in registers
  int unroll = 1;                 ///< reduced indices (vectors) of a thread per step of its loop
  int tileDim = -1;               ///< the dimension that tiles are read along; -1: no tiles
  std::vector<int32_t> tiled;     ///< loads that go through shared memory
  Size points = 1, blocks = 1;
  double seconds = 0;             ///< predicted for the architecture's typical card

  bool vectorReduced(const LoopPlan &plan) const { return vectorDim >= plan.numParallel; }
  std::string str() const;
};

inline constexpr int kTile = 32, kTileThreads = 256;

/// Of a long sum, whose terms one thread adds one after the other, rounding is kept apart.
bool isLongSum(const Reduction &r, const LoopPlan &plan, const GpuSchedule &schedule);

GpuSchedule scheduleLoops(const LoopPlan &plan, const Arch &arch, const LoopTuning &tuning);

/// Whether no thread waits for another: then blocks of other nests may stand beside it.
inline bool mayBeNest(const LoopPlan &plan, const GpuSchedule &schedule) {
  return plan.reductions.empty() && schedule.tileDim < 0 && schedule.group == 1;
}

} // namespace tressel::codegen::cuda
