#include "codegen/cpu/LoopSchedule.h"

#include "codegen/CostModel.h"
#include "codegen/cpu/LoopCost.h"
#include "tressel/runtime/Dim.h"

#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

namespace tressel::codegen {
namespace {

using op::ScalarOp;

double scoreVectorDim(const LoopPlan &plan, int dim, int maxLanes) {
  const LoopDim &d = plan.dims[static_cast<size_t>(dim)];
  const int64_t size = dim::hint(d.size);
  const int lanes = static_cast<int>(std::clamp<int64_t>(size, 1, maxLanes));
  // Cost per element: all accesses over one vector, and what a horizontal reduction adds.
  double cost = 0;
  for (const Expr &e : plan.exprs)
    if (e.kind == ExprKind::Load)
      cost += accessCost(e.index, plan, dim, lanes);
    else if (e.dims & bit(dim))
      cost += 0.25 * instructionsOf(e);
  for (const Store &s : plan.stores)
    if (s.full || !d.reduced)
      cost += (d.reduced || plan.reductions.empty() ? 1.0 : 0.1) * accessCost(s.index, plan, dim, lanes);
  cost += 1;
  const double vectors = static_cast<double>((size + lanes - 1) / lanes);
  double perElement = cost * vectors / static_cast<double>(std::max<int64_t>(1, size));
  if (d.reduced)
    perElement += 8.0 * static_cast<double>(plan.reductions.size()) / static_cast<double>(std::max<int64_t>(1, size));
  return perElement;
}

/// Whether an access is contiguous along `block` and strided along `vector`, without a lane whose place is read from
/// memory.
bool crosses(const Affine &index, const LoopPlan &plan, int vector, int block) {
  for (const auto &i : index.indirect)
    if (plan.exprs[static_cast<size_t>(i.expr)].dims & (bit(vector) | bit(block)))
      return false;
  const Size c = index.coef[static_cast<size_t>(vector)];
  return index.coef[static_cast<size_t>(block)] == 1 && c != 0 && c != 1;
}

/// Chooses the dimension along which what is strided along the lanes is contiguous, if there is one.
void chooseTiles(const LoopPlan &plan, LoopSchedule &s) {
  if (!plan.reductions.empty() || plan.unitDims >= 0 || s.vectorDim < 0 || s.vectorReduced)
    return;
  constexpr int mostLanes = 32; // a tile of more takes several times the registers there are
  const int lanes = std::min(s.lanes, mostLanes);
  // Each row of the block repeats the code.
  constexpr int mostInstructions = 2500;
  int weight = 0;
  for (const Expr &e : plan.exprs)
    weight += instructionsOf(e);
  if (weight * lanes > mostInstructions)
    return;
  auto fits = [&](int d) { return dim::hint(plan.dims[static_cast<size_t>(d)].size) >= lanes; };
  if (!fits(s.vectorDim))
    return;
  int most = 0;
  for (int d = 0; d < plan.numParallel; ++d) {
    if (d == s.vectorDim || !fits(d))
      continue;
    int crossing = 0;
    for (const Expr &e : plan.exprs)
      crossing += e.kind == ExprKind::Load && e.guard < 0 && crosses(e.index, plan, s.vectorDim, d);
    for (const Store &store : plan.stores)
      crossing += crosses(store.index, plan, s.vectorDim, d);
    if (crossing > most)
      most = crossing, s.blockDim = d;
  }
  if (s.blockDim >= 0)
    s.tiles = true, s.lanes = s.block = lanes;
}

/// Range and grain of a schedule whose units are chosen.
void setGrain(const LoopPlan &plan, LoopSchedule &s, runtime::CpuLevel level) {
  for (const LoopDim &d : plan.dims)
    if (!d.reduced && d.size == 0)
      s.range = 0;
  const double serial = serialSeconds(costsOf(plan, s, level), static_cast<double>(plan.bytes()));
  const double perUnit = serial / static_cast<double>(std::max<int64_t>(1, dim::hint(s.range)));
  const int64_t mostUnits = std::max<int64_t>(1, s.range.numberOr(int64_t(1) << 40));
  // Threads that are awake take a chunk within two microseconds; of a thread that sleeps, the caller does the share.
  constexpr double worthHandingOver = 10e-6;
  s.grain = std::clamp<int64_t>(static_cast<int64_t>(worthHandingOver / std::max(perUnit, 1e-12)), 1, mostUnits);
}

/// Walks tiles: a unit is a few lines along the vector dimension (64 elements: the fastest for 2048 x 512, within 5% for 4096 x 1024), and inside of it
/// the block dimension from end to end: what is touched is used whole before it is gone, whatever the strides are.
void walkTiles(const LoopPlan &plan, LoopSchedule &s, runtime::CpuLevel level) {
  const Size vectorSize = plan.dims[static_cast<size_t>(s.vectorDim)].size;
  s.tile = 64;
  if (!vectorSize.isSymbolic())
    s.tile = std::min(s.tile, vectorSize);
  Size units = dim::ceilDiv(vectorSize, s.tile);
  for (int d = 0; d < plan.numParallel; ++d)
    if (d != s.vectorDim && d != s.blockDim) {
      s.unitDims.push_back(d);
      units = units * plan.dims[static_cast<size_t>(d)].size;
    }
  constexpr int64_t enough = 8; // for the threads
  const Size size = plan.dims[static_cast<size_t>(s.blockDim)].size;
  if (dim::hint(units) >= enough) {
    s.innerDims.push_back(s.blockDim);
  } else {
    s.unitDims.push_back(s.blockDim);
    units *= dim::ceilDiv(size, s.block);
  }
  s.range = units;
  setGrain(plan, s, level);
}

uint64_t reducedDims(const LoopPlan &plan) { return ~((uint64_t(1) << plan.numParallel) - 1); }

/// In a product each block of rows reads a whole operand along the vector dimension. One that a near cache does not hold comes from far away each
/// time, so it is cut into panels that the cache does hold, and all rows pass by a panel before the next one. That is worth it unless
/// the rows themselves, which then pass by each panel, are more.
void walkPanels(const LoopPlan &plan, LoopSchedule &s) {
  constexpr int64_t nearCache = 512 << 10;
  if (plan.reductions.empty() || s.vectorDim < 0 || s.vectorReduced || s.blockDim < 0 || plan.unitDims >= 0 || !s.innerDims.empty())
    return;
  const uint64_t reduced = reducedDims(plan);
  auto sizeOfDim = [&](int d) { return std::max<int64_t>(1, dim::hint(plan.dims[static_cast<size_t>(d)].size)); };
  /// Elements of a load at one point of the dimensions in `outside`.
  auto elementsOf = [&](const Expr &load, uint64_t outside) {
    int64_t n = 1;
    for (int d = 0; d < static_cast<int>(plan.dims.size()); ++d)
      if (load.dims & ~outside & bit(d))
        n *= sizeOfDim(d);
    return std::min(n, std::max<int64_t>(1, dim::hint(plan.buffers[static_cast<size_t>(load.buffer)].elements)));
  };
  int place = 0;
  for (const Expr &e : plan.exprs)
    if (isPanel(plan, s, e))
      for (int k = 0; k < static_cast<int>(s.unitDims.size()); ++k)
        if (e.dims & bit(s.unitDims[static_cast<size_t>(k)]))
          place = std::max(place, k + 1);
  uint64_t outside = 0;
  double rows = 1;
  for (int k = 0; k < static_cast<int>(s.unitDims.size()); ++k) {
    const int d = s.unitDims[static_cast<size_t>(k)];
    if (k < place)
      outside |= bit(d);
    else
      rows *= static_cast<double>((sizeOfDim(d) + (d == s.blockDim ? s.block : 1) - 1) / (d == s.blockDim ? s.block : 1));
  }
  double panels = 0, others = 0; // bytes at one point of what is outside
  for (const Expr &e : plan.exprs)
    if (e.kind == ExprKind::Load && (e.dims & reduced)) {
      const auto bytes = static_cast<double>(elementsOf(e, outside) * sizeOf(plan.buffers[static_cast<size_t>(e.buffer)].dtype));
      (isPanel(plan, s, e) ? panels : others) += (e.dims & bit(s.vectorDim)) && !isPanel(plan, s, e) ? 0 : bytes;
    }
  const int64_t step = int64_t(s.lanes) * s.unroll, width = sizeOfDim(s.vectorDim);
  const int64_t tile = std::max<int64_t>(1, static_cast<int64_t>(nearCache * static_cast<double>(width) / std::max(panels, 1.0)) / step) * step;
  if (panels <= nearCache || tile >= width)
    return;
  const double passes = others > nearCache ? static_cast<double>((width + tile - 1) / tile) : 1;
  if (2 * (passes * others + panels) > rows * panels + others)
    return;
  s.tile = tile, s.tilePlace = place;
}

/// The vector dimension and its lanes.
void chooseVectorDim(const LoopPlan &plan, const CpuFeatures &features, LoopSchedule &s) {
  int64_t widest = 1;
  for (const Expr &e : plan.exprs)
    if ((e.kind == ExprKind::Scalar && e.op != ScalarOp::Const) || e.kind == ExprKind::Load)
      widest = std::max(widest, sizeOf(e.dtype) * (e.dtype == DType::f16 || e.dtype == DType::bf16 ? 2 : 1));
  int maxLanes = static_cast<int>(features.vectorBytes / widest);
  double best = 1e30;
  for (int d = 0; d < static_cast<int>(plan.dims.size()); ++d) {
    if (d < plan.unitDims || (plan.order == TermOrder::OneByOne && plan.dims[static_cast<size_t>(d)].reduced))
      continue;
    const double score = scoreVectorDim(plan, d, maxLanes);
    if (score <= best) // the inner one of two equal ones
      best = score, s.vectorDim = d;
  }
  if (plan.order == TermOrder::AlongLanes) { // as many lanes as the widest type has, whatever types share the nest
    constexpr int widestType = 8;
    maxLanes = features.vectorBytes / widestType;
    s.vectorDim = static_cast<int>(plan.dims.size()) - 1;
  }
  if (s.vectorDim >= 0) // as many as may be needed, where the size is symbolic
    if (const int64_t size = dim::bounds(plan.dims[static_cast<size_t>(s.vectorDim)].size).hi; size > 0)
      s.lanes = static_cast<int>(
          std::min<uint64_t>(static_cast<uint64_t>(maxLanes), std::bit_ceil(static_cast<uint64_t>(size))));
  if (s.lanes <= 1)
    s.vectorDim = -1, s.lanes = 1;
  s.vectorReduced = s.vectorDim >= plan.numParallel;
}

/// What limits how much of a nest is in registers at once.
struct RegisterBudget {
  int accumulators = 0; ///< of one point
  int weight = 0;       ///< instructions within the reduced loops,
  int after = 0;        ///< and per parallel point
  int points = 1;       ///< at once: accumulators take what loads and constants leave
  bool isHeavy() const { return weight > 24; }

  RegisterBudget(const LoopPlan &plan, const CpuFeatures &features) {
    for (const Reduction &r : plan.reductions) {
      const bool arg = r.combine == op::Combine::ArgMax || r.combine == op::Combine::ArgMin;
      accumulators += arg ? 2 : 1;
    }
    for (const Expr &e : plan.exprs)
      (plan.reductions.empty() || (e.dims & reducedDims(plan)) ? weight : after) += instructionsOf(e);
    points = std::max(1, (features.numVectorRegisters - 6) / std::max(1, accumulators));
  }
};

/// Blocks the parallel dimension along which most vector loads are reused.
void chooseBlockDim(const LoopPlan &plan, LoopSchedule &s) {
  int bestReuse = 0;
  for (int d = 0; d < plan.numParallel; ++d) {
    if (d == s.vectorDim || dim::hint(plan.dims[static_cast<size_t>(d)].size) < 2 || d < plan.unitDims)
      continue;
    int reuse = 0;
    for (const Expr &e : plan.exprs)
      if (e.kind == ExprKind::Load && !(e.dims & bit(d)))
        reuse += s.vectorDim >= 0 && (e.dims & bit(s.vectorDim)) ? 2 : 1;
    if (reuse > bestReuse)
      bestReuse = reuse, s.blockDim = d;
  }
}

/// Vectors and rows that are worked on at once.
void chooseUnroll(const LoopPlan &plan, const CpuFeatures &features, const RegisterBudget &budget, Size vectorSize,
                  LoopSchedule &s) {
  int64_t most = budget.isHeavy() ? 2 : 4;
  if (!plan.reductions.empty() && s.blockDim < 0 && !budget.isHeavy())
    most = 8;
  if (s.blockDim >= 0 && features.numVectorRegisters < 32)
    most = 2;
  most = plan.order == TermOrder::AlongLanes ? 4 : std::clamp<int64_t>(most, 1, budget.points);
  const int64_t vectors = std::max<int64_t>(1, (dim::hint(vectorSize) + s.lanes - 1) / s.lanes);
  s.unroll = static_cast<int>((vectors + (vectors + most - 1) / most - 1) / ((vectors + most - 1) / most));
  if (s.tiles)
    s.unroll = 1; // a tile fills the registers
  if (s.blockDim < 0 || s.tiles)
    return;
  const Size size = plan.dims[static_cast<size_t>(s.blockDim)].size;
  // Every row repeats the code; what follows the reduction should not outgrow the instruction cache.
  const int64_t rows = std::clamp<int64_t>(std::min<int64_t>(budget.points, 1 + 600 / (budget.after + 1)) / s.unroll, 1, 8);
  s.block =
      static_cast<int>(size.isSymbolic() ? rows : (size + (size + rows - 1) / rows - 1) / ((size + rows - 1) / rows));
  if (s.block == 1)
    s.blockDim = -1;
}

/// A sum waits four cycles for the one before, and two are added in one.
void chooseChains(const LoopPlan &plan, const RegisterBudget &budget, LoopSchedule &s) {
  constexpr int inFlight = 8;
  const Size size = plan.dims.back().size;
  const int sums = s.unroll * s.block;
  while (!size.isSymbolic() && s.chains * sums * budget.accumulators < inFlight &&
         2 * s.chains * sums <= budget.points && size >= 8 * s.chains)
    s.chains *= 2;
}

/// Units: outer dimensions until there are plenty; the vector dimension is cut only when it is the last one left.
void walkRows(const LoopPlan &plan, LoopSchedule &s, runtime::CpuLevel level, Size vectorSize) {
  const int64_t step = int64_t(s.lanes) * s.unroll;
  const bool pinned = plan.unitDims >= 0;
  Size units = 1;
  for (int d = 0; d < plan.numParallel; ++d) {
    const Size size = plan.dims[static_cast<size_t>(d)].size;
    if (d == s.vectorDim)
      continue;
    const bool unit = pinned ? d < plan.unitDims : size.isSymbolic() || dim::hint(units) < 256;
    if (unit) {
      s.unitDims.push_back(d);
      units = units * (d == s.blockDim ? dim::ceilDiv(size, s.block) : size);
    } else {
      s.innerDims.push_back(d);
    }
  }
  s.tile = vectorSize;
  walkPanels(plan, s);
  if (s.tilePlace >= 0) {
    units *= dim::ceilDiv(vectorSize, s.tile);
  } else if (s.vectorDim >= 0 && !s.vectorReduced && !pinned && s.innerDims.empty() && dim::hint(units) < 256) {
    // About 16k points of the nest per tile, a few hundred nanoseconds at least.
    const int64_t deep = std::max<int64_t>(1, plan.reducedPoints() * s.block);
    int64_t tile = std::max<int64_t>(step, (int64_t(16384) / deep + step - 1) / step * step);
    if (plan.reductions.empty() && units != 1)
      tile = std::max<int64_t>(tile, 8192);
    tile = (tile + step - 1) / step * step;
    if (vectorSize.isSymbolic() || tile < vectorSize) {
      s.tile = tile;
      units *= dim::ceilDiv(vectorSize, tile);
    }
  }
  s.range = units;
  setGrain(plan, s, level);
}

} // namespace

bool isPanel(const LoopPlan &plan, const LoopSchedule &s, const Expr &e) {
  return e.kind == ExprKind::Load && s.blockDim >= 0 && (e.dims & bit(s.vectorDim)) && (e.dims & reducedDims(plan)) && !(e.dims & bit(s.blockDim));
}

bool movesByTiles(const Affine &index, int32_t guard, const LoopPlan &plan, const LoopSchedule &s) {
  return s.tiles && guard < 0 && crosses(index, plan, s.vectorDim, s.blockDim);
}

LoopSchedule scheduleLoops(const LoopPlan &plan, const CpuFeatures &features) {
  LoopSchedule s;
  chooseVectorDim(plan, features, s);
  chooseTiles(plan, s);
  const Size vectorSize = s.vectorDim < 0 ? 1 : plan.dims[static_cast<size_t>(s.vectorDim)].size;
  const RegisterBudget budget(plan, features);
  const bool reduces = !plan.reductions.empty() && !budget.isHeavy();
  if (reduces)
    chooseBlockDim(plan, s);
  chooseUnroll(plan, features, budget, vectorSize, s);
  if (reduces && !s.vectorReduced && plan.order == TermOrder::Free)
    chooseChains(plan, budget, s);
  if (s.tiles)
    walkTiles(plan, s, features.level);
  else
    walkRows(plan, s, features.level, vectorSize);
  return s;
}

} // namespace tressel::codegen
