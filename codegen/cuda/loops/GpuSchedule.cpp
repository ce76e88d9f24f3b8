#include "codegen/cuda/loops/GpuSchedule.h"

#include "codegen/cuda/loops/PlanEmitter.h"
#include "tressel/runtime/Error.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>

namespace tressel::codegen::cuda {
namespace {

using op::ScalarOp;

uint64_t bit(int d) { return uint64_t(1) << d; }

/// Sizes for which the choice is made. Of those that are symbolic the large ones, as small ones take no time.
class Typical {
public:
  explicit Typical(const LoopPlan &plan) {
    for (int64_t size : {int64_t(1) << 10, int64_t(1) << 15, int64_t(1) << 20}) {
      symbol_ = size;
      double points = 1;
      for (const LoopDim &d : plan.dims)
        points *= static_cast<double>((*this)(d.size));
      if (points >= 1 << 20)
        break;
    }
  }
  int64_t operator()(Size size) const {
    if (!size.isSymbolic())
      return size.number();
    std::vector<Size> symbols;
    dim::collectSymbols(size, symbols);
    dim::Values values;
    for (Size symbol : symbols) {
      const dim::Bounds bounds = dim::bounds(symbol);
      values.bind(symbol, std::clamp(symbol_, bounds.lo, bounds.hi));
    }
    try {
      return dim::evaluate(size, values);
    } catch (const Error &) { // it leaves 64 bits: no such tensor is ever made
      return most;
    }
  }

private:
  static constexpr int64_t most = int64_t(1) << 50;
  int64_t symbol_;
};

/// What the table of architectures does not say of the typical card: rough figures of data sheets.
struct Card {
  double bandwidth; ///< bytes per second
  double clock;     ///< Hz
  int lanes;        ///< of f32 per multiprocessor
};
Card cardOf(const Arch &arch) {
  return arch.card == "sm_80"    ? Card{2.0e12, 1.4e9, 64}
         : arch.card == "sm_90"  ? Card{3.3e12, 1.7e9, 128}
         : arch.card == "sm_100" ? Card{7.7e12, 1.9e9, 128}
                                 : Card{1.8e12, 2.4e9, 128};
}

/// Instructions of one evaluation, roughly.
double instructionsOf(const Expr &e) {
  switch (e.kind) {
  case ExprKind::Scalar:
    break;
  case ExprKind::Reduced:
    return 0;
  case ExprKind::Load:
  case ExprKind::Index:
  case ExprKind::InRange:
    return 2;
  case ExprKind::Checked:
    return 6;
  }
  const double flops = e.op == ScalarOp::Const ? 0 : static_cast<double>(op::scalarFlops(e.op));
  return e.dtype == DType::f64 ? 4 * flops : flops;
}

/// The candidate's cost, in parts of which the longest is most of it.
class Costs {
public:
  Costs(const LoopPlan &plan, const Arch &arch) : typical(plan), plan_(plan), arch_(arch), card_(cardOf(arch)) {
    for (size_t d = 0; d < plan.dims.size(); ++d)
      (plan.dims[d].reduced ? reduced_ : points_) *= static_cast<double>(typical(plan.dims[d].size));
    for (const Store &s : plan.stores)
      anyFull_ |= s.full;
    // Of an operand at most as many elements as there are points to read them for: rows of a table, a slice.
    std::vector<double> touched(plan.buffers.size(), 0);
    for (const Expr &x : plan.exprs)
      if (x.kind == ExprKind::Load) {
        double times = 1;
        for (size_t d = 0; d < plan.dims.size(); ++d)
          if (x.dims >> d & 1)
            times *= static_cast<double>(typical(plan.dims[d].size));
        touched[static_cast<size_t>(x.buffer)] += times;
      }
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      const auto elements = static_cast<double>(typical(plan.buffers[i].elements));
      const bool input = static_cast<int32_t>(i) < plan.numInputs;
      bytes_ +=
          (input ? std::min(elements, touched[i]) : elements) * static_cast<double>(sizeOf(plan.buffers[i].dtype));
    }
  }
  double seconds(const GpuSchedule &s) const;

  const Typical typical;

private:
  /// Accesses of a warp: how many, and the sectors of 32 bytes that all of them touch.
  struct Traffic {
    double requests = 0, sectors = 0, fetched = 0;
  };
  void access(const GpuSchedule &s, const Affine &index, double evaluations, int64_t bytes, bool tiled,
              Traffic &t) const;
  int64_t hintOf(int dim) const { return typical(plan_.dims[static_cast<size_t>(dim)].size); }
  int64_t coefOf(const Affine &a, int dim) const {
    return std::min(std::abs(typical(a.coef[static_cast<size_t>(dim)])), int64_t(1) << 40);
  }

  const LoopPlan &plan_;
  const Arch &arch_;
  const Card card_;
  double points_ = 1, reduced_ = 1, bytes_ = 0;
  bool anyFull_ = false;
};

void Costs::access(const GpuSchedule &s, const Affine &index, double evaluations, int64_t bytes, bool tiled,
                   Traffic &t) const {
  const int last = static_cast<int>(plan_.dims.size()) - 1;
  const bool alongReduced = s.group > 1 && s.groupFast;
  const int fast = tiled ? s.tileDim : alongReduced ? last : s.order.empty() ? -1 : s.order.front();
  const int step = fast == s.vectorDim ? s.vector : 1;
  int piece = 1;
  if (s.vectorDim >= 0 && coefOf(index, s.vectorDim) == 1) {
    piece = static_cast<int>(std::min<int64_t>(s.vector, 16 / bytes));
    for (size_t d = 0; d < index.coef.size(); ++d)
      while (piece > 1 && static_cast<int>(d) != s.vectorDim && dim::mod(index.coef[d], piece) != 0)
        piece /= 2;
    while (piece > 1 && dim::mod(index.offset, piece) != 0)
      piece /= 2;
    for (const auto &i : index.indirect)
      if (plan_.exprs[static_cast<size_t>(i.expr)].dims & bit(s.vectorDim))
        piece = 1;
  }
  bool scattered = false; // neighbours read where an index says
  if (fast >= 0)
    for (const auto &i : index.indirect)
      scattered |= (plan_.exprs[static_cast<size_t>(i.expr)].dims & bit(fast)) != 0;
  const double width = static_cast<double>(piece * bytes);
  auto touched = [&](double lanes, double stride) {
    if (scattered)
      return lanes;
    return stride <= 32 ? std::max(1.0, lanes * stride / 32) : lanes * std::ceil(width / 32);
  };
  double sectors = 1;
  bool alone = false; // a sector that others do not need the neighbour of: memory gives two at a time
  if (fast >= 0) {
    const double stride = static_cast<double>(coefOf(index, fast) * step * bytes);
    double lanes = std::min(32.0, std::ceil(static_cast<double>(hintOf(fast)) / step));
    if (alongReduced)
      lanes = std::min(lanes, double(s.group));
    else
      lanes = std::min(lanes, double(s.threads / s.group));
    // What comes after the last lane of the dimension: the next one may go on where it ends.
    int next = -1;
    if (lanes < 32 && alongReduced && !s.order.empty())
      next = s.order.front();
    else if (lanes < 32 && !alongReduced && s.order.size() > 1 && s.threads / s.group > lanes)
      next = s.order[1];
    if (next >= 0 && static_cast<double>(coefOf(index, next) * bytes) <= stride * lanes)
      sectors = touched(32, stride);
    else
      sectors = touched(lanes, stride) * (32 / lanes), alone = stride > 0 && touched(lanes, stride) < 2;
  }
  const double requests = evaluations / 32 / piece;
  t.requests += requests;
  t.sectors += requests * std::max(1.0, sectors);
  // What one thread reads again soon is in its multiprocessor's cache.
  double again = 1;
  if (s.vectorDim >= 0 && coefOf(index, s.vectorDim) == 1 && piece < s.vector && s.vectorDim == fast)
    again = std::min(static_cast<double>(s.vector / piece), 32.0 / static_cast<double>(bytes));
  if (s.group == 1 && last >= plan_.numParallel && coefOf(index, last) > 0 && coefOf(index, last) * bytes < 32 &&
      sectors > 8)
    again = 0.5 * 32 / static_cast<double>(coefOf(index, last) * bytes);
  if (again > 1)
    again = std::max(1.0, 0.8 * again);
  t.fetched += (alone ? 1.3 : 1) * 32 * requests * std::max(1.0, sectors) / std::max(1.0, again);
}

double Costs::seconds(const GpuSchedule &s) const {
  if (points_ == 0) // nothing is launched
    return 0;
  const uint64_t reducedDims = (bit(static_cast<int>(plan_.dims.size())) - 1) & ~(bit(plan_.numParallel) - 1);
  const bool alongR = s.vectorReduced(plan_) && s.vector > 1;
  const double vectors = alongR ? reduced_ / s.vector : reduced_;
  double points = points_;
  if (!alongR && s.vectorDim >= 0)
    points = points_ / static_cast<double>(hintOf(s.vectorDim)) *
             std::ceil(static_cast<double>(hintOf(s.vectorDim)) / s.vector);
  const double threads = points * s.group, own = std::ceil(vectors / s.group);
  const double passes = plan_.numStages + anyFull_;
  auto evaluations = [&](uint64_t dims, double times) {
    double n = threads;
    if (dims & reducedDims)
      n *= own * (s.kept ? 1 : times);
    if (s.vectorDim >= 0 && (dims & bit(s.vectorDim)))
      n *= s.vector;
    return n;
  };
  Traffic t;
  double instructions = threads * (10 + 8.0 * static_cast<double>(s.order.size()));
  for (size_t e = 0; e < plan_.exprs.size(); ++e) {
    const Expr &x = plan_.exprs[e];
    const double n = evaluations(x.dims, std::max(1.0, passes - 0.5));
    instructions += n * instructionsOf(x);
    if (x.kind == ExprKind::Load && plan_.buffers[static_cast<size_t>(x.buffer)].elements != 0)
      access(s, x.index, n, sizeOf(x.dtype), llvm::is_contained(s.tiled, static_cast<int32_t>(e)), t);
  }
  for (const Store &store : plan_.stores) {
    uint64_t dims = bit(plan_.numParallel) - 1;
    if (store.full)
      dims |= reducedDims;
    double n = evaluations(dims, 1);
    if (!store.full)
      n /= s.group;
    access(s, store.index, n, sizeOf(plan_.buffers[static_cast<size_t>(store.buffer)].dtype), false, t);
    instructions += 2 * n;
  }
  // Putting parts together.
  double together = 0;
  for (const Reduction &r : plan_.reductions) {
    const double step = r.combine == op::Combine::Sum || r.combine == op::Combine::Prod ? 1 : 4;
    instructions += evaluations(reducedDims | (alongR || s.vectorDim < 0 ? 0 : bit(s.vectorDim)), 1) * step;
    if (s.group == 1)
      continue;
    const int sums = alongR ? 1 : s.vector;
    const double rounds = std::countr_zero(static_cast<unsigned>(s.group));
    if (s.groupFast) {
      together += std::min(rounds, 5.0) * (24 + step) + (s.group > 32 ? 80 + (rounds - 5) * (24 + step) : 0);
      instructions += threads * (rounds * (2 + step) + (s.group > 32 ? 8 : 0));
    } else {
      together += (rounds + 1) * (50 + 4 * sums);
      instructions += threads * sums * 12;
    }
  }
  if (!s.tiled.empty())
    together += 60, instructions += threads * 6 * static_cast<double>(s.tiled.size());

  const double blocks = std::ceil(points * s.group / s.threads);
  const double registers =
      32 + 1.5 * s.kept * s.vector * static_cast<double>(std::max<size_t>(1, plan_.reductions.size() > 0));
  const double resident =
      std::max(1.0, std::floor(std::min({double(arch_.maxThreads) / s.threads, double(arch_.maxBlocks),
                                         arch_.registers / (std::min(registers, 255.0) * s.threads)})));
  const double used = std::min(blocks, double(arch_.multiprocessors));
  const double waves = std::ceil(blocks / (resident * arch_.multiprocessors));
  const double hidden = own / (s.kept ? std::max(1, s.kept) : s.group == 1 ? 2 : s.unroll);
  const double latency =
      700 * (s.kept ? 1 + 0.03 * s.kept : hidden * passes + 1) + together + 4 * instructions / threads;
  const double parts[] = {
      bytes_ / card_.bandwidth,
      t.fetched / std::min(3 * card_.bandwidth, used * 64 * card_.clock),
      std::max(t.requests, t.sectors / 4) / (used * card_.clock),
      instructions / (used * card_.lanes * card_.clock),
      waves * latency / card_.clock,
      blocks * 100 / (arch_.multiprocessors * card_.clock), // beginning them
  };
  double sum = 0, longest = 0;
  for (double p : parts)
    sum += p, longest = std::max(longest, p);
  return longest + 0.1 * (sum - longest);
}

class Chooser {
public:
  Chooser(const LoopPlan &plan, const Arch &arch, const LoopTuning &tuning)
      : plan_(plan), tuning_(tuning), costs_(plan, arch),
        reduces_(static_cast<size_t>(plan.numParallel) < plan.dims.size()) {}

  GpuSchedule run() {
    if (plan_.numParallel == 0)
      parallel(-1);
    for (int d = 0; d < plan_.numParallel; ++d)
      parallel(d);
    if (reduces_)
      rows();
    else
      tiles();
    if (!best_)
      throw InternalError("a loop nest without a schedule");
    return *best_;
  }

private:
  Size sizeOf(int d) const { return plan_.dims[static_cast<size_t>(d)].size; }
  double hintOf(int d) const { return static_cast<double>(costs_.typical(sizeOf(d))); }
  std::vector<int> orderFrom(int fast) const {
    std::vector<int> order;
    if (fast >= 0)
      order.push_back(fast);
    for (int d = plan_.numParallel; d-- > 0;)
      if (d != fast)
        order.push_back(d);
    return order;
  }
  Size reducedSize() const {
    Size n = 1;
    for (size_t d = static_cast<size_t>(plan_.numParallel); d < plan_.dims.size(); ++d)
      n *= plan_.dims[d].size;
    return n;
  }
  /// Whether accesses along the dimension are at most 16 bytes for vectors of so many elements: then neighbours in a
  /// warp read neighbouring bytes.
  bool worthVectors(int dim, int vector) const {
    int64_t widest = 0;
    auto add = [&](const Affine &index, DType type) {
      if (dim::equal(index.coef[static_cast<size_t>(dim)], 1))
        widest = std::max(widest, tressel::sizeOf(type));
    };
    for (const Expr &x : plan_.exprs)
      if (x.kind == ExprKind::Load)
        add(x.index, x.dtype);
    for (const Store &s : plan_.stores)
      add(s.index, plan_.buffers[static_cast<size_t>(s.buffer)].dtype);
    return tuning_.aligned && widest > 0 && widest * vector <= 16;
  }
  bool tooMuchCode(int vector) const { return plan_.exprs.size() * static_cast<size_t>(vector) > 2000; }
  /// Reduced indices of a thread that are unrolled; 0: too many.
  void keep(GpuSchedule &s) const {
    const dim::Bounds all = dim::bounds(reducedSize()); // the others of those that there may be count for nothing
    if (all.lo < 1 || all.hi >= dim::kMaxSize)
      return;
    const int64_t vectors = s.vectorReduced(plan_) ? all.hi / s.vector : all.hi,
                  own = (vectors + s.group - 1) / s.group;
    // Few registers where more threads can share the row instead.
    int64_t most = s.group == 1 || !s.groupFast ? 16 : s.group >= 512 ? 32 : s.group >= 128 ? 16 : 8;
    for (const Expr &x : plan_.exprs)
      if (tressel::sizeOf(x.dtype) == 8 && isFloat(x.dtype))
        most = std::min<int64_t>(most, 8);
    if (plan_.exprs.size() > 100) // the code is so many times as long
      most = std::min<int64_t>(most, 4);
    if (own * s.vector <= most)
      s.kept = static_cast<int>(own);
  }
  void consider(GpuSchedule s) {
    if (s.vector > 1 && s.vectorDim < 0)
      return;
    if (s.kept == 0 && s.group > 1)
      s.unroll = s.vector >= 8 ? 2 : 4;
    const int perBlock = s.threads / s.group;
    Size points = 1;
    for (int d : s.order)
      points *= (d == s.vectorDim ? dim::ceilDiv(sizeOf(d), s.vector) : sizeOf(d));
    s.points = points, s.blocks = dim::ceilDiv(points, perBlock);
    if (s.group > 1 && !s.groupFast) {
      int64_t bytes = 0;
      for (const Reduction &r : plan_.reductions)
        bytes += int64_t(s.threads) * s.vector *
                 (tressel::sizeOf(r.accumulate) + (r.combine >= op::Combine::ArgMax ? 8 : 0));
      if (bytes > kMaxStaticShared)
        return;
    }
    offer(std::move(s));
  }
  void offer(GpuSchedule s) {
    if (reducedSize() == 0 && s.group > 1)
      return;
    if (s.blocks.isNumber() && s.blocks > INT32_MAX)
      return;
    // What was asked for counts as far as it is possible.
    int wrong = 0;
    wrong += tuning_.threads > 0 && s.threads != tuning_.threads;
    wrong += reduces_ && tuning_.threadsPerRow > 0 && s.group != tuning_.threadsPerRow;
    wrong += tuning_.vector > 0 && s.vector != tuning_.vector;
    s.seconds = costs_.seconds(s);
    if (!best_ || std::make_pair(wrong, s.seconds) < std::make_pair(bestWrong_, best_->seconds))
      best_ = std::move(s), bestWrong_ = wrong;
  }

  std::vector<int> threadCounts() const {
    if (tuning_.threads)
      return {tuning_.threads};
    return {32, 64, 128, 256};
  }

  /// Neighbours in a warp are neighbours along a parallel dimension.
  void parallel(int fast) {
    for (int vector : {1, 2, 4, 8, 16}) {
      if (vector > 1 && (fast < 0 || !worthVectors(fast, vector) || hintOf(fast) < vector || tooMuchCode(vector)))
        continue;
      const bool whole = vector == 1 || dim::mod(sizeOf(fast), vector) == 0;
      GpuSchedule s;
      s.order = orderFrom(fast);
      s.vectorDim = vector > 1 ? fast : -1, s.vector = vector;
      for (int threads : threadCounts()) {
        s.threads = threads, s.group = 1, s.kept = 0;
        if (reduces_ && whole)
          keep(s);
        consider(s);
      }
      if (!reduces_ || !whole || fast < 0)
        continue;
      for (int columns : {4, 8, 16, 32, 64})
        for (int group : {2, 4, 8, 16, 32, 64, 128, 256}) {
          const int threads = columns * group;
          // Less than a sector of memory at a time only where there is no more.
          if (columns * vector < 8 && columns * vector < hintOf(fast))
            continue;
          if (threads < kWarp || threads > kMaxBlockThreads || (tuning_.threads && threads != tuning_.threads))
            continue;
          s.threads = threads, s.group = group, s.groupFast = false, s.kept = 0;
          keep(s);
          consider(s);
        }
      s.groupFast = true;
    }
  }

  /// Neighbours in a warp are neighbours along the last reduced dimension.
  void rows() {
    const int last = static_cast<int>(plan_.dims.size()) - 1;
    for (int vector : {1, 2, 4, 8, 16}) {
      if (vector > 1 &&
          (!worthVectors(last, vector) || dim::mod(sizeOf(last), vector) != 0 || dim::equal(sizeOf(last), 0)))
        continue;
      for (int group = 2; group <= kMaxBlockThreads; group *= 2)
        for (int threads : {32, 64, 128, 256, 512, 1024}) {
          if (threads < group || (threads > 256 && threads > group) || (tuning_.threads && threads != tuning_.threads))
            continue;
          GpuSchedule s;
          s.order = orderFrom(-1);
          s.vectorDim = vector > 1 ? last : -1, s.vector = vector;
          s.threads = threads, s.group = group;
          keep(s);
          constexpr size_t light = 16; // expressions and values a thread holds: of 1024 threads each has 64 registers
          if (threads > 512 && (plan_.exprs.size() > light || s.kept > 8))
            continue;
          consider(s);
        }
    }
  }

  void tiles() {
    for (int write = 0; write < plan_.numParallel; ++write) {
      auto along = [&](const Store &s) { return dim::equal(s.index.coef[static_cast<size_t>(write)], 1); };
      if (!llvm::all_of(plan_.stores, along) || hintOf(write) < 8)
        continue;
      for (int read = 0; read < plan_.numParallel; ++read) {
        if (read == write || hintOf(read) < 8)
          continue;
        GpuSchedule s;
        s.order = orderFrom(write);
        s.threads = kTileThreads;
        s.tileDim = read;
        int64_t bytes = 0;
        for (size_t e = 0; e < plan_.exprs.size(); ++e) {
          const Expr &x = plan_.exprs[e];
          const auto indirectAlong = [&](int d) {
            return llvm::any_of(x.index.indirect,
                                [&](const auto &i) { return plan_.exprs[static_cast<size_t>(i.expr)].dims >> d & 1; });
          };
          if (x.kind != ExprKind::Load || !dim::equal(x.index.coef[static_cast<size_t>(read)], 1) ||
              indirectAlong(read) || plan_.buffers[static_cast<size_t>(x.buffer)].elements == 0)
            continue;
          const Size other = x.index.coef[static_cast<size_t>(write)];
          if (!indirectAlong(write) && (dim::equal(other, 0) || dim::equal(other, 1)))
            continue;
          const int64_t size = kTile * (kTile + 1) * tressel::sizeOf(x.dtype);
          if (bytes + size > kMaxStaticShared)
            continue;
          bytes += size;
          s.tiled.push_back(static_cast<int32_t>(e));
        }
        if (s.tiled.empty())
          continue;
        s.blocks = 1;
        for (int d : s.order)
          s.blocks = s.blocks * (d == write || d == read ? dim::ceilDiv(sizeOf(d), kTile) : sizeOf(d));
        s.points = s.blocks;
        offer(std::move(s));
      }
    }
  }

  const LoopPlan &plan_;
  const LoopTuning tuning_;
  const Costs costs_;
  const bool reduces_;
  std::optional<GpuSchedule> best_;
  int bestWrong_ = 0;
};

} // namespace

std::string GpuSchedule::str() const {
  std::ostringstream s;
  s << "threads " << threads << " order";
  for (int d : order)
    s << ' ' << d;
  s << " vector d" << vectorDim << " x " << vector << " group " << group << (groupFast ? " fast" : " slow") << " kept "
    << kept << " unroll " << unroll << " tile d" << tileDim;
  for (int32_t e : tiled)
    s << " %" << e;
  return s.str();
}

bool isLongSum(const Reduction &r, const LoopPlan &plan, const GpuSchedule &s) {
  if (r.combine != op::Combine::Sum || !isFloat(r.accumulate))
    return false;
  Size terms = 1;
  for (size_t d = static_cast<size_t>(plan.numParallel); d < plan.dims.size(); ++d)
    terms *= plan.dims[d].size;
  const int64_t together = int64_t(s.group) * (s.vectorReduced(plan) ? s.vector : 1);
  return dim::bounds(terms).hi / together > plan.sumBlock();
}

GpuSchedule scheduleLoops(const LoopPlan &plan, const Arch &arch, const LoopTuning &tuning) {
  return Chooser(plan, arch, tuning).run();
}

} // namespace tressel::codegen::cuda
