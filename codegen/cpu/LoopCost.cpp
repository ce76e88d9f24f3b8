#include "codegen/cpu/LoopCost.h"

#include "codegen/CostModel.h"
#include "tressel/runtime/Dim.h"

#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

namespace tressel::codegen {

using op::ScalarOp;

/// Instructions of one evaluation, roughly.
int instructionsOf(const Expr &e) {
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

/// What a load or store of one vector along `dim` costs, in vector accesses.
double accessCost(const Affine &index, const LoopPlan &plan, int dim, int lanes) {
  for (const auto &i : index.indirect)
    if (plan.exprs[static_cast<size_t>(i.expr)].dims & bit(dim))
      return lanes;
  const Size c = index.coef[static_cast<size_t>(dim)];
  return c == 0 ? 0.1 : c == 1 ? 1 : lanes;
}

namespace {

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

/// Lines that a cache of so many sets has room for, where a walk reads `width` neighbouring ones every `stride` bytes: lines at a power of two
/// from each other share few sets.
double roomFor(int64_t stride, int64_t width, int64_t sets, int64_t ways) {
  const int64_t apart = stride % 64 || stride < 64 ? 1 : std::gcd(stride / 64, sets);
  return static_cast<double>(std::min(sets, sets / apart * std::min(width, apart)) * ways);
}

/// How one pass over the reduced dimension reads an operand of a product: whole lines of the cache, at the same distance from each other.
class Walk {
public:
  int64_t steps = 0;  ///< 0: it is read along its lines, or in no such way
  int64_t stride = 0; ///< bytes from one step to the next
  int64_t width = 1;  ///< lines at each step

  /// Whether a cache still has the walk's first lines at its end, beside as many others. Both caches are the smaller ones of servers.
  bool fitsFirstCache() const { return fits(64, 8); }
  bool fitsSecondCache() const { return fits(1024, 16); }

private:
  bool fits(int64_t sets, int64_t ways) const { return 2.0 * static_cast<double>(steps * width) <= roomFor(stride, width, sets, ways); }
};

/// Of nests with one reduced dimension; others come by their lines in more than one way. `elements`: how many side by side each step reads.
Walk walkOf(const Affine &index, const LoopPlan &plan, int64_t elementBytes, int64_t elements) {
  Walk walk;
  int reduced = 0; // dimensions
  for (size_t d = static_cast<size_t>(plan.numParallel); d < plan.dims.size(); ++d) {
    const int64_t stride = std::abs(dim::hint(index.coef[d])) * elementBytes, size = dim::hint(plan.dims[d].size);
    reduced += size > 1;
    if (size > 1 && stride >= 64)
      walk.steps = size, walk.stride = stride, walk.width = std::max<int64_t>(1, elements * elementBytes / 64);
  }
  return reduced == 1 ? walk : Walk();
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

/// What the kernel does, in the classes that cost models of generated code tell apart. Instructions of a vector count once; those that
/// take many cycles count by the share of a vector that they fill.
struct LoopCounts {
  double simple = 0;     ///< additions, products, comparisons, selections
  double divisions = 0;  ///< also roots
  double exponentials = 0, sigmoids = 0, errorFunctions = 0; ///< expansions of some 30 instructions, with a division or more
  double logarithms = 0, trigonometric = 0, powers = 0;      ///< of some 40, 60, 120
  double conversions = 0; ///< from and to 16-bit floats
  double scalars = 0;     ///< everything that is not done by vectors
  double loads = 0, farLoads = 0, farthestLoads = 0, memoryLoads = 0; ///< of vectors, from buffers of at most 32 KiB, 1 MiB, 12 MiB, and of more
  double guarded = 0;                                ///< loads of vectors or scalars under a condition
  double gathered = 0, jumped = 0;                   ///< elements that are read one by one; those in another page each
  double tiled = 0;                                  ///< vectors that go through a tile
  double stores = 0, scattered = 0;                  ///< of vectors; elements that are written one by one
  double products = 0;                               ///< vectors multiplied and added to a sum in one instruction
  double reduced = 0, foldings = 0;                  ///< vectors added to a sum; sums whose lanes are added up
  double loops = 0;                                  ///< times that the innermost loop begins
  double units = 0;
};

/// The class that an evaluation counts for, and how often.
double &classOf(const Expr &e, LoopCounts &n, double &weight) {
  weight = 1;
  switch (e.op) {
  case ScalarOp::Div:
  case ScalarOp::Rem:
    weight = isFloat(e.dtype) ? 1 : 8;
    return n.divisions;
  case ScalarOp::Sqrt:
  case ScalarOp::Rsqrt:
    return n.divisions;
  case ScalarOp::Cast:
    return e.dtype == DType::f16 || e.dtype == DType::bf16 ? n.conversions : n.simple;
  default:
    break;
  }
  if (e.op == ScalarOp::Logistic || e.op == ScalarOp::Tanh)
    return n.sigmoids;
  if (e.op == ScalarOp::Erf)
    return n.errorFunctions;
  const int cost = instructionsOf(e);
  return cost >= 120 ? n.powers : cost >= 60 ? n.trigonometric : cost >= 40 ? n.logarithms : cost >= 30 ? n.exponentials : n.simple;
}

LoopCounts countsOf(const LoopPlan &plan, const LoopSchedule &s, runtime::CpuLevel level) {
  LoopCounts n;
  const uint64_t parallelDims = (uint64_t(1) << plan.numParallel) - 1, allDims = (uint64_t(1) << plan.dims.size()) - 1;
  const double filled = std::min(1.0, static_cast<double>(s.lanes) / lanesOf(level));
  auto isVector = [&](uint64_t dims) { return s.vectorDim >= 0 && s.lanes > 1 && (dims & bit(s.vectorDim)); };
  for (const Expr &e : plan.exprs) {
    const double times = evaluations(plan, s, e.dims);
    const bool vector = isVector(e.dims);
    if (e.kind != ExprKind::Load) {
      if (e.kind == ExprKind::Scalar && e.op == ScalarOp::Const)
        continue;
      double weight = 2;
      double &of = e.kind == ExprKind::Scalar ? classOf(e, n, weight) : n.simple;
      if (&of == &n.simple)
        (vector ? of : n.scalars) += times * (vector ? weight : instructionsOf(e));
      else // of one element, a function takes about half the time of a vector's
        of += times * weight * (vector ? filled : 0.5);
      continue;
    }
    const Buffer &buffer = plan.buffers[static_cast<size_t>(e.buffer)];
    const int64_t bytes = dim::hint(buffer.elements) * sizeOf(buffer.dtype);
    const bool far = bytes > (1 << 20);
    n.guarded += e.guard >= 0 ? times : 0;
    const bool isProduct = s.blockDim >= 0 && !s.vectorReduced && e.guard < 0 && e.index.indirect.empty();
    if (!vector) {
      n.scalars += times;
      // The rows of a block, at each step in lines that the walk before no longer left in the first cache: as measured, some 6 ns for each.
      constexpr double jumpsPerLine = 16;
      if (isProduct && (e.dims & bit(s.blockDim)) && !walkOf(e.index, plan, sizeOf(buffer.dtype), 1).fitsFirstCache())
        n.jumped += times / s.block * jumpsPerLine;
    } else if (isProduct && isPanel(plan, s, e) &&
               !walkOf(e.index, plan, sizeOf(buffer.dtype), std::min(dim::hint(s.tile), dim::hint(plan.dims[static_cast<size_t>(s.vectorDim)].size))).fitsSecondCache()) {
      n.memoryLoads += times; // each block of rows finds the panel gone, though it is small enough
    } else if (movesByTiles(e.index, e.guard, plan, s))
      n.tiled += times;
    else if (accessCost(e.index, e.guard, plan, s) > 1)
      (far && jumpsPages(e.index, plan, sizeOf(buffer.dtype)) ? n.jumped : n.gathered) += times * s.lanes;
    else if (far && s.tilePlace >= 0 && isPanel(plan, s, e)) { // it comes from far once, and then stays near while the rows pass by
      const double once = std::min(times, static_cast<double>(bytes) / (s.lanes * sizeOf(buffer.dtype)));
      (bytes > kMemoryBytes ? n.memoryLoads : n.farthestLoads) += once, n.farLoads += times - once;
    } else
      (bytes > kMemoryBytes ? n.memoryLoads : far ? n.farthestLoads : bytes > (1 << 15) ? n.farLoads : n.loads) += times;
  }
  for (const Store &store : plan.stores) {
    const double times = evaluations(plan, s, store.full ? allDims : parallelDims);
    const bool vector = s.vectorDim >= 0 && s.lanes > 1 && (store.full || !s.vectorReduced);
    if (!vector)
      n.scalars += times;
    else if (movesByTiles(store.index, -1, plan, s))
      n.tiled += times;
    else if (accessCost(store.index, -1, plan, s) > 1)
      n.scattered += times * s.lanes;
    else
      n.stores += times;
  }
  const auto rows = static_cast<double>(plan.parallelPoints()), points = rows * static_cast<double>(plan.reducedPoints());
  for (const Reduction &r : plan.reductions) {
    const Expr &body = plan.exprs[static_cast<size_t>(r.body)];
    const bool fused = r.combine == op::Combine::Sum && isFloat(r.accumulate) && body.kind == ExprKind::Scalar &&
                       body.op == ScalarOp::Mul; // one instruction with the product
    n.products += fused ? points / s.lanes : 0;
    n.reduced += fused ? 0 : points / s.lanes;
    n.foldings += s.vectorReduced ? rows : 0;
  }
  // The innermost loop: over the vector dimension, or, where that is parallel and something is reduced, the last reduced one.
  int64_t innermost = 1;
  const bool overVectors = s.vectorDim >= 0 && (s.vectorReduced || plan.reductions.empty());
  if (overVectors) {
    const int64_t step = std::max<int64_t>(1, int64_t(s.lanes) * s.unroll);
    innermost = (dim::hint(plan.dims[static_cast<size_t>(s.vectorDim)].size) + step - 1) / step;
  } else if (!plan.reductions.empty()) {
    innermost = dim::hint(plan.dims.back().size);
  }
  n.loops = evaluations(plan, s, allDims) / static_cast<double>(std::max<int64_t>(1, innermost * (overVectors ? s.unroll : 1)));
  n.units = static_cast<double>(std::max<int64_t>(1, dim::hint(s.range)));
  return n;
}

} // namespace

std::vector<runtime::KernelCost> costsOf(const LoopPlan &plan, const LoopSchedule &s, runtime::CpuLevel level) {
  const LoopCounts n = countsOf(plan, s, level);
  const double counts[] = {n.simple, n.divisions, n.exponentials, n.sigmoids, n.errorFunctions, n.logarithms, n.trigonometric, n.powers,
                           n.conversions, n.scalars, n.loads, n.farLoads, n.farthestLoads, n.memoryLoads, n.guarded, n.gathered, n.jumped, n.tiled,
                           n.stores, n.scattered, n.products, n.reduced, n.foldings, n.loops, n.units};
  const bool moves = n.tiled + n.gathered + n.jumped + n.scattered > 0;
  const char *kind = n.products > 0 ? "generated/contraction" : !plan.reductions.empty() ? "generated/reduction" : moves ? "generated/movement" : "generated/elementwise";
  return {costOf(kind, level, counts)};
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
  const double near = roomFor(stride, 1, 64, 12), far = roomFor(stride, 1, 2048, 16);
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

} // namespace tressel::codegen
