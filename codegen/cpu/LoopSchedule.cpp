#include "codegen/cpu/LoopSchedule.h"

#include "codegen/CostModel.h"
#include "tressel/runtime/Dim.h"

#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

namespace tressel::codegen {
namespace {

using op::ScalarOp;

/// Instructions of one evaluation, roughly.
int costOf(const Expr &e) {
  switch (e.kind) {
  case ExprKind::Load:
    return 1;
  case ExprKind::Scalar:
    break;
  default:
    return 2;
  }
  switch (e.op) {
  case ScalarOp::Const:
    return 0;
  case ScalarOp::Div:
  case ScalarOp::Rem:
    return isFloat(e.dtype) ? 8 : 30;
  case ScalarOp::Sqrt:
  case ScalarOp::Rsqrt:
    return 8;
  case ScalarOp::Cast:
    return e.dtype == DType::f16 || e.dtype == DType::bf16 ? 6 : 2;
  case ScalarOp::Exp:
  case ScalarOp::Expm1:
  case ScalarOp::Logistic:
  case ScalarOp::Tanh:
  case ScalarOp::Erf:
    return 30;
  case ScalarOp::Log:
  case ScalarOp::Log1p:
  case ScalarOp::Atan:
  case ScalarOp::Sinh:
  case ScalarOp::Cosh:
    return 40;
  case ScalarOp::Sin:
  case ScalarOp::Cos:
  case ScalarOp::Tan:
  case ScalarOp::Asin:
  case ScalarOp::Acos:
    return 60;
  case ScalarOp::Pow:
  case ScalarOp::Atan2:
    return 120;
  default:
    return 1;
  }
}

uint64_t bit(int d) { return uint64_t(1) << d; }

/// What a load or store of one vector along `dim` costs, in vector accesses.
double accessCost(const Affine &index, const LoopPlan &plan, int dim, int lanes) {
  for (const auto &i : index.indirect)
    if (plan.exprs[static_cast<size_t>(i.expr)].dims & bit(dim))
      return lanes;
  const int64_t c = index.coef[static_cast<size_t>(dim)];
  return c == 0 ? 0.1 : c == 1 ? 1 : lanes;
}

/// The same once the schedule is known: a tile's rows are accesses of whole vectors, each followed by one shuffle per step
/// of the transpose.
double accessCost(const Affine &index, int32_t guard, const LoopPlan &plan, const LoopSchedule &s) {
  if (movesByTiles(index, guard, plan, s))
    return 1 + std::bit_width(static_cast<unsigned>(s.lanes)) - 1;
  return accessCost(index, plan, s.vectorDim, s.lanes);
}

/// Whether a walk along some reduced dimension leaves the page after a step or two: nothing is then fetched ahead.
bool jumpsPages(const Affine &index, const LoopPlan &plan, int64_t elementBytes) {
  for (size_t d = static_cast<size_t>(plan.numParallel); d < plan.dims.size(); ++d)
    if (dim::hint(index.coef[d]) * elementBytes >= 2048)
      return true;
  return false;
}

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
      cost += 0.25 * costOf(e);
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

/// How often code that depends on `dims` runs. It stands in the innermost loop that it depends on, so all loops around
/// that one repeat it. Blocks and vectors run several points at once.
double evaluations(const LoopPlan &plan, const LoopSchedule &s, uint64_t dims) {
  llvm::SmallVector<int, 8> order(s.unitDims.begin(), s.unitDims.end());
  order.append(s.innerDims.begin(), s.innerDims.end());
  if (s.vectorDim >= 0 && !s.vectorReduced)
    order.push_back(s.vectorDim);
  for (int d = plan.numParallel; d < static_cast<int>(plan.dims.size()); ++d)
    if (d != s.vectorDim)
      order.push_back(d);
  if (s.vectorReduced && s.vectorDim >= 0)
    order.push_back(s.vectorDim);
  size_t depth = 0;
  for (size_t k = 0; k < order.size(); ++k)
    if (dims & bit(order[k]))
      depth = k + 1;
  double count = 1;
  for (size_t k = 0; k < depth; ++k) {
    const int d = order[k];
    const int64_t size = dim::hint(plan.dims[static_cast<size_t>(d)].size);
    int64_t step = 1;
    if (d == s.vectorDim)
      step = dims & bit(d) ? s.lanes : int64_t(s.lanes) * s.unroll;
    else if (d == s.blockDim && !(dims & bit(d)))
      step = s.block;
    count *= static_cast<double>((size + step - 1) / step);
  }
  return count;
}

/// Of the whole nest on one thread.
double serialSeconds(const LoopPlan &plan, const LoopSchedule &s) {
  constexpr double instructionsPerSecond = 1.6 * 2.5e9;
  double instructions = 0, badlyReadBytes = 0;
  for (const Expr &e : plan.exprs) {
    const double points = evaluations(plan, s, e.dims);
    double cost = costOf(e);
    const bool vector = s.vectorDim >= 0 && (e.dims & bit(s.vectorDim));
    if (e.kind == ExprKind::Load) {
      // Elements that are read again come from a cache as far away as the buffer is large.
      const Buffer &buffer = plan.buffers[static_cast<size_t>(e.buffer)];
      const int64_t bytes = dim::hint(buffer.elements) * sizeOf(buffer.dtype);
      const bool far = bytes > (1 << 20), jumps = far && jumpsPages(e.index, plan, sizeOf(buffer.dtype));
      const double distance = jumps ? 24 : far ? 4 : bytes > (1 << 15) ? 1.5 : 1;
      badlyReadBytes += jumps ? static_cast<double>(bytes) : 0;
      if (vector) // of a tile, lines are read once and whole
        cost = std::max(1.0, accessCost(e.index, e.guard, plan, s)) *
               (movesByTiles(e.index, e.guard, plan, s) ? 1 : distance);
    }
    instructions += points * cost;
  }
  const uint64_t parallelDims = (uint64_t(1) << plan.numParallel) - 1, allDims = (uint64_t(1) << plan.dims.size()) - 1;
  for (const Store &store : plan.stores) {
    const bool vector = s.vectorDim >= 0 && (store.full || !s.vectorReduced);
    instructions += evaluations(plan, s, store.full ? allDims : parallelDims) *
                    (vector ? std::max(1.0, accessCost(store.index, -1, plan, s)) : 1.0);
  }
  const auto points = static_cast<double>(plan.parallelPoints()) * static_cast<double>(plan.reducedPoints());
  for (const Reduction &r : plan.reductions) {
    const Expr &body = plan.exprs[static_cast<size_t>(r.body)];
    const bool fused = r.combine == op::Combine::Sum && isFloat(r.accumulate) && body.kind == ExprKind::Scalar &&
                       body.op == ScalarOp::Mul; // one instruction with the product
    instructions += fused ? 0 : points / s.lanes;
    if (s.vectorReduced)
      instructions += 10.0 * static_cast<double>(plan.parallelPoints());
  }
  const CpuModel &cpu = hostCpuModel();
  const double bytes = static_cast<double>(plan.bytes()) + 0.25 * badlyReadBytes;
  return std::max(bytes * cpu.threads / cpu.bandwidth(bytes), instructions / instructionsPerSecond);
}

/// Whether an access is contiguous along `block` and strided along `vector`, without a lane whose place is read from
/// memory.
bool crosses(const Affine &index, const LoopPlan &plan, int vector, int block) {
  for (const auto &i : index.indirect)
    if (plan.exprs[static_cast<size_t>(i.expr)].dims & (bit(vector) | bit(block)))
      return false;
  const int64_t c = index.coef[static_cast<size_t>(vector)];
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
    weight += costOf(e);
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
void setGrain(const LoopPlan &plan, LoopSchedule &s) {
  for (const LoopDim &d : plan.dims)
    if (!d.reduced && d.size == 0)
      s.range = 0;
  const double perUnit = serialSeconds(plan, s) / static_cast<double>(std::max<int64_t>(1, dim::hint(s.range)));
  const int64_t mostUnits = dim::isSymbolic(s.range) ? int64_t(1) << 40 : std::max<int64_t>(1, s.range);
  // Threads that are awake take a chunk within two microseconds; of a thread that sleeps, the caller does the share.
  constexpr double worthHandingOver = 10e-6;
  s.grain = std::clamp<int64_t>(static_cast<int64_t>(worthHandingOver / std::max(perUnit, 1e-12)), 1, mostUnits);
}

/// Walks tiles: a unit is a few lines along the vector dimension (64 elements: the fastest for 2048 x 512, within 5% for 4096 x 1024), and inside of it
/// the block dimension from end to end: what is touched is used whole before it is gone, whatever the strides are.
void walkTiles(const LoopPlan &plan, LoopSchedule &s) {
  const int64_t vectorSize = plan.dims[static_cast<size_t>(s.vectorDim)].size;
  s.tile = 64;
  if (!dim::isSymbolic(vectorSize))
    s.tile = std::min(s.tile, vectorSize);
  int64_t units = dim::ceilDiv(vectorSize, s.tile);
  for (int d = 0; d < plan.numParallel; ++d)
    if (d != s.vectorDim && d != s.blockDim) {
      s.unitDims.push_back(d);
      units = dim::mul(units, plan.dims[static_cast<size_t>(d)].size);
    }
  constexpr int64_t enough = 8; // for the threads
  const int64_t size = plan.dims[static_cast<size_t>(s.blockDim)].size;
  if (dim::hint(units) >= enough) {
    s.innerDims.push_back(s.blockDim);
  } else {
    s.unitDims.push_back(s.blockDim);
    units = dim::mul(units, dim::ceilDiv(size, s.block));
  }
  s.range = units;
  setGrain(plan, s);
}

} // namespace

bool movesByTiles(const Affine &index, int32_t guard, const LoopPlan &plan, const LoopSchedule &s) {
  return s.tiles && guard < 0 && crosses(index, plan, s.vectorDim, s.blockDim);
}

LoopSchedule scheduleLoops(const LoopPlan &plan, const CpuFeatures &features) {
  LoopSchedule s;
  int64_t widest = 1;
  for (const Expr &e : plan.exprs)
    if ((e.kind == ExprKind::Scalar && e.op != ScalarOp::Const) || e.kind == ExprKind::Load)
      widest = std::max(widest, sizeOf(e.dtype) * (e.dtype == DType::f16 || e.dtype == DType::bf16 ? 2 : 1));
  const int maxLanes = static_cast<int>(features.vectorBytes / widest);
  double best = 1e30;
  for (int d = 0; d < static_cast<int>(plan.dims.size()); ++d) {
    if (d < plan.unitDims)
      continue;
    const double score = scoreVectorDim(plan, d, maxLanes);
    if (score <= best) // the inner one of two equal ones
      best = score, s.vectorDim = d;
  }
  if (s.vectorDim >= 0) // as many as may be needed, where the size is symbolic
    if (const int64_t size = dim::bounds(plan.dims[static_cast<size_t>(s.vectorDim)].size).hi; size > 0)
      s.lanes = static_cast<int>(
          std::min<uint64_t>(static_cast<uint64_t>(maxLanes), std::bit_ceil(static_cast<uint64_t>(size))));
  if (s.lanes <= 1)
    s.vectorDim = -1, s.lanes = 1;
  s.vectorReduced = s.vectorDim >= plan.numParallel;
  chooseTiles(plan, s);
  const int64_t vectorSize = s.vectorDim < 0 ? 1 : plan.dims[static_cast<size_t>(s.vectorDim)].size;
  const int64_t vectors = std::max<int64_t>(1, (dim::hint(vectorSize) + s.lanes - 1) / s.lanes);

  // Registers: accumulators take what loads and constants leave.
  int accumulators = 0, weight = 0, after = 0; // instructions within the reduced loops, and per parallel point
  for (const Reduction &r : plan.reductions) {
    const bool arg = r.combine == op::Combine::ArgMax || r.combine == op::Combine::ArgMin;
    accumulators += arg ? 2 : 1;
  }
  const uint64_t reducedDims = ~((uint64_t(1) << plan.numParallel) - 1);
  for (const Expr &e : plan.exprs)
    (plan.reductions.empty() || (e.dims & reducedDims) ? weight : after) += costOf(e);
  const bool heavy = weight > 24;
  const int budget = std::max(1, (features.numVectorRegisters - 6) / std::max(1, accumulators));

  if (!plan.reductions.empty() && !heavy) {
    // Block the parallel dimension along which most vector loads are reused.
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
  int64_t most = heavy ? 2 : 4;
  if (!plan.reductions.empty() && s.blockDim < 0 && !heavy)
    most = 8;
  if (s.blockDim >= 0 && features.numVectorRegisters < 32)
    most = 2;
  most = std::clamp<int64_t>(most, 1, budget);
  s.unroll = static_cast<int>((vectors + (vectors + most - 1) / most - 1) / ((vectors + most - 1) / most));
  if (s.tiles)
    s.unroll = 1; // a tile fills the registers
  if (s.blockDim >= 0 && !s.tiles) {
    const int64_t size = plan.dims[static_cast<size_t>(s.blockDim)].size;
    // Every row repeats the code; what follows the reduction should not outgrow the instruction cache.
    const int64_t rows = std::clamp<int64_t>(std::min<int64_t>(budget, 1 + 600 / (after + 1)) / s.unroll, 1, 8);
    s.block = static_cast<int>(dim::isSymbolic(size)
                                   ? rows
                                   : (size + (size + rows - 1) / rows - 1) / ((size + rows - 1) / rows));
    if (s.block == 1)
      s.blockDim = -1;
  }
  if (!plan.reductions.empty() && !s.vectorReduced && !heavy) {
    // A sum waits four cycles for the one before, and two are added in one.
    constexpr int inFlight = 8;
    const int64_t size = plan.dims.back().size;
    const int sums = s.unroll * s.block;
    while (!dim::isSymbolic(size) && s.chains * sums * accumulators < inFlight && 2 * s.chains * sums <= budget &&
           size >= 8 * s.chains)
      s.chains *= 2;
  }

  // Units: outer dimensions until there are plenty; the vector dimension is cut only when it is the last one left.
  const int64_t step = int64_t(s.lanes) * s.unroll;
  const bool pinned = plan.unitDims >= 0;
  if (s.tiles)
    return walkTiles(plan, s), s;
  int64_t units = 1;
  for (int d = 0; d < plan.numParallel; ++d) {
    const int64_t size = plan.dims[static_cast<size_t>(d)].size;
    if (d == s.vectorDim)
      continue;
    const bool unit = pinned ? d < plan.unitDims : dim::isSymbolic(size) || dim::hint(units) < 256;
    if (unit) {
      s.unitDims.push_back(d);
      units = dim::mul(units, d == s.blockDim ? dim::ceilDiv(size, s.block) : size);
    } else {
      s.innerDims.push_back(d);
    }
  }
  s.tile = vectorSize;
  if (s.vectorDim >= 0 && !s.vectorReduced && !pinned && s.innerDims.empty() && dim::hint(units) < 256) {
    // About 16k points of the nest per tile, a few hundred nanoseconds at least.
    const int64_t deep = std::max<int64_t>(1, plan.reducedPoints() * s.block);
    int64_t tile = std::max<int64_t>(step, (int64_t(16384) / deep + step - 1) / step * step);
    if (plan.reductions.empty() && units != 1)
      tile = std::max<int64_t>(tile, 8192);
    tile = (tile + step - 1) / step * step;
    if (dim::isSymbolic(vectorSize) || tile < vectorSize) {
      s.tile = tile;
      units = dim::mul(units, dim::ceilDiv(vectorSize, tile));
    }
  }
  s.range = units;
  setGrain(plan, s);
  return s;
}

/// What it costs to get or put a vector's elements one by one, each from another place: in additions that take as long,
/// per element. A walk along `vectorDim` touches a line of the cache at each step; the next walk finds the lines again
/// where they had room, which those at the same place of a page, say, hardly have. Caches of 64 sets of 12 lines and
/// 2048 of 16, as servers have them; measured with transposes.
static double flopsOfMove(const Affine &index, const LoopPlan &plan, const LoopSchedule &s, int64_t elementBytes) {
  constexpr double inNearCache = 12, atItsEdge = 28, inFarCache = 78, inMemory = 600;
  const int64_t stride = std::abs(dim::hint(index.coef[static_cast<size_t>(s.vectorDim)])) * elementBytes;
  if (!index.indirect.empty() || stride == 0)
    return inNearCache;
  const int64_t size = dim::hint(plan.dims[static_cast<size_t>(s.vectorDim)].size);
  const auto lines = static_cast<double>(stride >= 64 ? size : size * stride / 64);
  auto room = [&](int64_t sets, int64_t ways) {
    const int64_t used = stride % 64 || stride < 64 ? sets : sets / std::gcd(stride / 64, sets);
    return static_cast<double>(used * ways);
  };
  const double near = room(64, 12), far = room(2048, 16);
  return lines <= near ? inNearCache : lines <= 2 * near ? atItsEdge : lines <= far ? inFarCache : inMemory;
}

int64_t flopsOf(const LoopPlan &plan, const LoopSchedule &s) {
  constexpr double flopsOfTile = 3; // per element that goes through a tile, wherever it lies
  double flops = 0;
  auto move = [&](const Affine &index, int32_t guard, uint64_t dims, const Buffer &buffer) {
    if (s.vectorDim >= 0 && s.lanes > 1 && (dims & bit(s.vectorDim)) &&
        accessCost(index, plan, s.vectorDim, s.lanes) > 1)
      flops += evaluations(plan, s, dims) * s.lanes *
               (movesByTiles(index, guard, plan, s) ? flopsOfTile : flopsOfMove(index, plan, s, sizeOf(buffer.dtype)));
  };
  for (const Expr &e : plan.exprs)
    if (e.kind == ExprKind::Scalar) // of a scalar the rest of the vector is idle
      flops += evaluations(plan, s, e.dims) * s.lanes * static_cast<double>(op::scalarFlops(e.op));
    else if (e.kind == ExprKind::Load)
      move(e.index, e.guard, e.dims, plan.buffers[static_cast<size_t>(e.buffer)]);
  const uint64_t parallelDims = (uint64_t(1) << plan.numParallel) - 1, allDims = (uint64_t(1) << plan.dims.size()) - 1;
  for (const Store &store : plan.stores)
    if (store.full || !s.vectorReduced)
      move(store.index, -1, store.full ? allDims : parallelDims, plan.buffers[static_cast<size_t>(store.buffer)]);
  const auto rows = static_cast<double>(plan.parallelPoints()),
             points = rows * static_cast<double>(plan.reducedPoints());
  for (const Reduction &r : plan.reductions) {
    const bool compares = r.combine != op::Combine::Sum && r.combine != op::Combine::Prod; // and looks for NaN
    flops += points * (compares ? 3 : 1);
    if (s.vectorReduced)
      flops += 10.0 * rows * s.lanes; // the vector's elements with each other
  }
  return static_cast<int64_t>(std::min(flops, 9e18));
}

double predictSeconds(const LoopPlan &plan, const LoopSchedule &s) {
  const CpuModel &cpu = hostCpuModel();
  const double serial = serialSeconds(plan, s), threads = static_cast<double>(std::min<int64_t>(cpu.threads, dim::hint(s.range)));
  constexpr double worthSplitting = 20e-6, handingOver = 4e-6; // until another thread is at work, as measured
  const double split = std::max(serial, worthSplitting) / threads + handingOver;
  return (serial < worthSplitting || threads <= 1 ? serial : std::min(serial, split)) + cpu.callSeconds;
}

} // namespace tressel::codegen
