// How a loop plan is executed: which dimension runs over vector lanes, how much is unrolled and blocked into registers,
// and what a unit of work is.
#pragma once

#include "codegen/loops/KernelSignature.h"
#include "codegen/loops/LoopPlan.h"
#include "codegen/loops/ScalarEmitter.h"

namespace tressel::codegen {

struct LoopSchedule {
  int vectorDim = -1; ///< -1: no dimension is worth it
  int lanes = 1;
  int unroll = 1;    ///< vectors side by side
  int blockDim = -1; ///< a parallel dimension of which several indices run together, to reuse loads
  int block = 1;
  /// Loads and stores that are contiguous along blockDim, not along vectorDim, move whole tiles of lanes x block
  /// elements, which are transposed in registers.
  bool tiles = false;
  int chains = 1; ///< indices of the innermost reduced dimension side by side, each with sums of its own
  Size tile;      ///< elements of a parallel vector dimension per unit; its size: all of them
  std::vector<int> unitDims;  ///< parallel dimensions whose points (or blocks) make the units, outermost first
  int tilePlace = -1; ///< so many of unitDims are outside of the tiles of the vector dimension: units that follow each other share a tile. -1: all of them
  std::vector<int> innerDims; ///< further parallel dimensions, looped over inside a unit
  Size range = 1;             ///< units of work
  int64_t grain = 1;
  bool vectorReduced = false; ///< vectorDim is a reduced dimension
};

/// Whether a load (with `guard`, or -1) or a store at `index` goes by tiles of `schedule`.
bool movesByTiles(const Affine &index, int32_t guard, const LoopPlan &plan, const LoopSchedule &schedule);

/// Whether `e` reads an operand of a product that all rows of the block dimension share, along the vector dimension.
bool isPanel(const LoopPlan &plan, const LoopSchedule &schedule, const Expr &e);

LoopSchedule scheduleLoops(const LoopPlan &plan, const CpuFeatures &features);

} // namespace tressel::codegen
