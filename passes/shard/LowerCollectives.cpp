#include "passes/Passes.h"
#include "passes/Util.h"
#include "passes/place/MachineCosts.h"
#include "passes/schedule/IssueOrder.h"
#include "passes/shard/Parts.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Stage.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/MachineModel.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_LOWERCOLLECTIVES
#include "passes/Passes.h.inc"

namespace {
/// Lowers an all_reduce of m bytes among n ranks of one process to copies, in one of three ways. All combine in the
/// same tree, in rank order, so that all ranks get the same bits:
///
///   at once           each rank reads the others' m bytes and combines all: n - 1 copies of m from each
///   in two steps      each rank combines an n-th, and reads the others' results: 2 (n - 1) copies of m / n from each
///   through the host  which combines all: a copy of m from each, and one to each
///
/// A device sends one copy at a time, and each has a latency: for small m, the way with the fewest copies is the
/// fastest.
class LowerCollectives : public impl::LowerCollectivesBase<LowerCollectives> {
public:
  LowerCollectives(const LowerCollectivesOptions &options, const runtime::MachineModel *machine,
                   std::vector<runtime::DeviceRef> devices, Decisions *decisions)
      : LowerCollectivesBase(options), machine(machine), devices(std::move(devices)), decisions(decisions) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!*main)
      return;
    FailureOr<graph::Mesh> mesh = graph::meshOf(*main);
    if (failed(mesh))
      return signalPassFailure();
    bucket(main->getBody().front(), *mesh);
    const bool ofOneRank = (*main)->hasAttr(graph::kRankProgramAttr);
    for (Operation &op : llvm::make_early_inc_range(main->getBody().front()))
      if (auto gather = dyn_cast<graph::AllGatherOp>(op)) {
        if (failed(ofOneRank ? bringForward(gather, *mesh) : lower(gather, *mesh)))
          return signalPassFailure();
      } else if (auto scatter = dyn_cast<graph::ReduceScatterOp>(op)) {
        if (failed(lower(scatter, *mesh, ofOneRank)))
          return signalPassFailure();
      } else if (auto reduce = dyn_cast<graph::AllReduceOp>(op); reduce && !ofOneRank) {
        if (failed(lower(reduce, *mesh)))
          return signalPassFailure();
      }
  }

private:
  //===-- Buckets
  //---------------------------------------------------------------------------------------------------===//
  // For small tensors the latency of a collective exceeds its transfer time, so independent ones are combined as one:
  // gradients, in the order in which they are ready, up to bucketBytes. A reduction that another collective depends on
  // is urgent: it only shares a bucket with other urgent ones, and only up to few bytes.
  struct Bucket {
    SmallVector<graph::AllReduceOp> members;
    int64_t bytes = 0;
    bool isUrgent = false;
    llvm::DenseSet<Operation *> after; ///< ops that depend on a member
  };

  void bucket(Block &block, const graph::Mesh &mesh) {
    llvm::DenseSet<Operation *> leads; // ops that another collective depends on
    for (Operation &op : llvm::reverse(block))
      if (llvm::any_of(op.getUsers(),
                       [&](Operation *user) { return graph::isCollective(user) || leads.contains(user); }))
        leads.insert(&op);
    const int64_t mostBytes = bytesOfBucket(block, leads, mesh);
    constexpr int64_t kLittle = 64 * 1024;
    SmallVector<Bucket> buckets;
    for (Operation &op : block) {
      for (Bucket &bucket : buckets)
        if (llvm::any_of(op.getOperands(), [&](Value operand) { return operand.getDefiningOp() && bucket.after.contains(operand.getDefiningOp()); }))
          bucket.after.insert(&op);
      auto reduce = dyn_cast<graph::AllReduceOp>(op);
      const TensorType type = reduce ? graph::fromMlir(reduce.getValue().getType()) : TensorType();
      if (!reduce || !type.shape.isStatic() || isInTime(reduce, mesh))
        continue;
      const int64_t bytes = type.bytes();
      const bool isUrgent = leads.contains(&op);
      auto takes = [&](Bucket &bucket) {
        graph::AllReduceOp like = bucket.members.front();
        return bucket.isUrgent == isUrgent && bucket.bytes + bytes <= (isUrgent ? kLittle : mostBytes) &&
               !bucket.after.contains(&op) && graph::placeOf(like) == graph::placeOf(reduce) &&
               like.getBy() == reduce.getBy() && like.getOver() == reduce.getOver() &&
               graph::fromMlir(like.getValue().getType()).dtype == type.dtype;
      };
      auto found = llvm::find_if(llvm::reverse(buckets), takes);
      Bucket &into = found == buckets.rend() ? buckets.emplace_back(Bucket{{}, 0, isUrgent, {}}) : *found;
      into.members.push_back(reduce);
      into.bytes += bytes;
      into.after.insert(&op);
    }
    for (Bucket &bucket : buckets)
      join(bucket, mesh);
  }

  /// Bytes per bucket. No work overlaps with the last bucket, and urgent collectives wait for the one in flight, so
  /// buckets should be small: about sixteen in all, as long as the transfer of each takes much longer than its latency.
  /// Within one process, about four: each is many copies, and the destinations combine them in kernels of their own.
  int64_t bytesOfBucket(Block &block, const llvm::DenseSet<Operation *> &leads, const graph::Mesh &mesh) const {
    constexpr int64_t kAll = int64_t(1) << 62;
    if (bucketBytes >= kAll)
      return bucketBytes;
    constexpr double kLatencies = 16;
    int64_t all = 0;
    graph::AllReduceOp any;
    for (auto reduce : block.getOps<graph::AllReduceOp>())
      if (!leads.contains(reduce))
        all += bytesOf(reduce.getValue().getType()), any = reduce;
    const std::vector<runtime::DeviceRef> ranks = acceleratorsOf(machine, devices);
    int64_t least = 0;
    if (machine && ranks.size() > 1) {
      const MachineCosts costs(*machine);
      const auto from = costs.indexOf(ranks[0]), to = costs.indexOf(ranks[1]);
      for (unsigned end : {to.value_or(0), 0u})
        if (const auto copy = from ? costs.transfer(*from, end, 1 << 20, false) : std::nullopt) {
          least = static_cast<int64_t>(kLatencies * copy->latency * copy->rate);
          break;
        }
    }
    const bool ofOneRank = any && any->getParentOfType<func::FuncOp>()->hasAttr(graph::kRankProgramAttr);
    if (machine && ofOneRank && !ranks.empty())
      if (FailureOr<SmallVector<unsigned>> axes = graph::axesOf(any, any.getOver(), mesh); succeeded(axes))
        if (const auto group = groupAlong(*axes, mesh, *machine, ranks.front())) {
          auto seconds = [&](int64_t bytes) {
            return runtime::planCollective(runtime::CollectiveKind::AllReduce, *group, bytes).seconds;
          };
          constexpr int64_t kMuch = int64_t(1) << 30;
          const double latencies = seconds(1);
          least = std::max(least, static_cast<int64_t>(kLatencies * latencies * kMuch / (seconds(kMuch) - latencies)));
        }
    return std::min<int64_t>(bucketBytes, std::max(least, all / (ofOneRank ? 16 : 4)));
  }

  /// Buckets joined before may have made members of this one depend on each other. Keeps those that are still
  /// independent, in order, and recomputes what depends on them.
  static void settle(Bucket &bucket) {
    llvm::SmallDenseSet<Operation *> members(bucket.members.begin(), bucket.members.end());
    Operation *op = *llvm::min_element(bucket.members, [](graph::AllReduceOp a, graph::AllReduceOp b) { return a->isBeforeInBlock(b); });
    bucket.members.clear();
    bucket.after.clear();
    for (size_t left = members.size(); left > 0; op = op->getNextNode()) {
      const bool depends = llvm::any_of(op->getOperands(), [&](Value operand) {
        return operand.getDefiningOp() && bucket.after.contains(operand.getDefiningOp());
      });
      if (members.contains(op)) {
        --left;
        if (!depends)
          bucket.members.push_back(cast<graph::AllReduceOp>(op));
      }
      if (depends || members.contains(op))
        bucket.after.insert(op);
    }
  }

  void join(Bucket &bucket, const graph::Mesh &mesh) {
    settle(bucket);
    if (bucket.members.size() < 2)
      return;
    bucket.bytes = 0;
    for (graph::AllReduceOp member : bucket.members)
      bucket.bytes += bytesOf(member.getValue().getType());
    // Tensors that end at an aligned offset come first, so that most results can be views.
    constexpr int64_t kAlignment = 64;
    llvm::stable_sort(bucket.members, [](graph::AllReduceOp a, graph::AllReduceOp b) {
      auto isRagged = [](graph::AllReduceOp reduce) { return bytesOf(reduce.getValue().getType()) % kAlignment != 0; };
      return isRagged(a) < isRagged(b);
    });
    graph::AllReduceOp last = *llvm::max_element(bucket.members, [](graph::AllReduceOp a, graph::AllReduceOp b) { return a->isBeforeInBlock(b); });
    // Moves ops before the bucket that depend on a member behind it.
    Operation *first = *llvm::min_element(bucket.members, [](graph::AllReduceOp a, graph::AllReduceOp b) { return a->isBeforeInBlock(b); });
    SmallVector<Operation *> waits;
    for (Operation *op = first; op != last; op = op->getNextNode())
      if (bucket.after.contains(op) && !llvm::is_contained(bucket.members, op))
        waits.push_back(op);
    Operation *behind = last;
    for (Operation *op : waits) {
      op->moveAfter(behind);
      behind = op;
    }
    OpBuilder b(last);
    SmallVector<Location> locations = llvm::map_to_vector(bucket.members, [](graph::AllReduceOp member) { return member.getLoc(); });
    PartBuilder parts(b, fuseLocations(&getContext(), locations), mesh, last);
    SmallVector<Value> flat;
    for (graph::AllReduceOp member : bucket.members)
      flat.push_back(parts.make("reshape", member.getValue(), {op::Sizes{graph::fromMlir(member.getValue().getType()).shape.numElements()}}, true));
    // Pads to a number of elements with which each rank's part begins at an aligned offset.
    FailureOr<SmallVector<unsigned>> axes = graph::axesOf(last, last.getOver(), mesh);
    const TensorType type = graph::fromMlir(last.getValue().getType());
    const int64_t unit = failed(axes) ? 1 : mesh.numAlong(*axes) * kAlignment / static_cast<int64_t>(sizeOf(type.dtype)),
                  elements = bucket.bytes / static_cast<int64_t>(sizeOf(type.dtype));
    if (!bucket.isUrgent && elements % unit != 0)
      flat.push_back(parts.make("full", {}, {op::Sizes{unit - elements % unit}, 0.0, type.dtype}, true));
    const Value joined = parts.concat(flat, 0, true);
    auto reduce =
        graph::AllReduceOp::create(b, last.getLoc(), joined.getType(), joined, last.getBy(), last.getOver(), false);
    parts.putOnRanks(reduce);
    int64_t offset = 0;
    for (graph::AllReduceOp member : bucket.members) {
      const Shape shape = graph::fromMlir(member.getValue().getType()).shape;
      const Value own = parts.slice(reduce, 0, offset, shape.numElements(), true);
      if (Operation *slice = own.getDefiningOp(); slice != reduce)
        slice->setAttr(kAsViewAttr, UnitAttr::get(&getContext()));
      member.getResult().replaceAllUsesWith(parts.make("reshape", own, {op::Sizes(shape.begin(), shape.end())}, true));
      offset += shape.numElements();
    }
    for (graph::AllReduceOp member : bucket.members)
      member.erase();
    numJoined += static_cast<unsigned>(bucket.members.size());
    if (decisions) {
      const graph::FileLine line = graph::fileLineOf(reduce.getLoc());
      decisions->push_back({"lower-collectives", {"all_reduce", line.file, static_cast<uint32_t>(line.line)},
                            std::to_string(bucket.members.size()) + " as one of " + std::to_string(bucket.bytes) + " bytes" +
                                (bucket.isUrgent ? ", which another one waits for" : "")});
    }
  }

  /// Whether it combines micro-batches of one accelerator.
  static bool isInTime(graph::AllReduceOp reduce, const graph::Mesh &mesh) {
    return mesh.time && reduce.getOver().size() == 1 &&
           cast<StringAttr>(reduce.getOver()[0]).getValue() == mesh.axes[*mesh.time].name;
  }

  LogicalResult lower(graph::AllGatherOp gather, const graph::Mesh &mesh) {
    FailureOr<SmallVector<unsigned>> axes = graph::axesOf(gather, gather.getOver(), mesh);
    if (failed(axes))
      return failure();
    OpBuilder b(gather);
    PartBuilder parts(b, gather.getLoc(), mesh, gather);
    const auto d = static_cast<unsigned>(gather.getDim());
    const Value joined = parts.concat(parts.collect(gather.getValue(), *axes, /*onRanks=*/true), d, true);
    // Symbolic parts may add up to the whole size without being textually equal to it.
    const Size whole = graph::fromMlir(gather.getType()).shape[static_cast<int>(d)];
    gather.getResult().replaceAllUsesWith(parts.slice(joined, d, 0, whole, true));
    gather.erase();
    ++numLowered;
    return success();
  }

  /// Each rank reads the others' terms of its part and combines them. Between processes, parts must be contiguous.
  LogicalResult lower(graph::ReduceScatterOp scatter, const graph::Mesh &mesh, bool ofOneRank) {
    FailureOr<SmallVector<unsigned>> axes = graph::axesOf(scatter, scatter.getOver(), mesh);
    const std::optional<op::Combine> how = parseCombine(scatter.getBy());
    if (failed(axes))
      return failure();
    if (!how)
      return scatter.emitOpError("combines by \"")
             << scatter.getBy() << "\", which is none of sum, prod, max, min, any, all";
    const auto d = static_cast<unsigned>(scatter.getDim());
    if (ofOneRank && d == 0)
      return success();
    OpBuilder b(scatter);
    PartBuilder parts(b, scatter.getLoc(), mesh, scatter);
    const int64_t ranks = mesh.numAlong(*axes);
    const Shape whole = graph::fromMlir(scatter.getValue().getType()).shape,
                part = graph::fromMlir(scatter.getType()).shape;
    Value made;
    if (!ofOneRank) {
      SmallVector<Value> blocks;
      for (int64_t i = 0; i < ranks; ++i)
        blocks.push_back(parts.slice(scatter.getValue(), d, part[static_cast<int>(d)] * i, part[static_cast<int>(d)],
                                     /*onRanks=*/true));
      made = parts.combine(parts.exchange(blocks, *axes), *how, true);
    } else {
      op::Sizes apart(whole.begin(), whole.end()), together(part.begin(), part.end());
      apart[d] = part[static_cast<int>(d)];
      apart.insert(apart.begin() + d, ranks);
      op::Ints order{static_cast<int64_t>(d)};
      for (int64_t i = 0; i < std::ssize(apart); ++i)
        if (i != static_cast<int64_t>(d))
          order.push_back(i);
      together[0] = together[0] * ranks;
      const Value stacked = parts.make(
          "reshape", parts.make("transpose", parts.make("reshape", scatter.getValue(), {apart}, true), {order}, true),
          {together}, true);
      auto first = graph::ReduceScatterOp::create(b, scatter.getLoc(), scatter.getType(), stacked, scatter.getBy(), 0,
                                                  scatter.getOver());
      graph::setOnRanks(first);
      made = first;
    }
    numLowered += ofOneRank ? 0 : 1;
    scatter.getResult().replaceAllUsesWith(made);
    scatter.erase();
    return success();
  }

  /// A collective between processes concatenates bytes. A join along another dimension is done along the first, and
  /// transposed.
  LogicalResult bringForward(graph::AllGatherOp gather, const graph::Mesh &mesh) {
    FailureOr<SmallVector<unsigned>> axes = graph::axesOf(gather, gather.getOver(), mesh);
    if (failed(axes))
      return failure();
    const auto d = static_cast<size_t>(gather.getDim());
    const Shape part = graph::fromMlir(gather.getValue().getType()).shape,
                whole = graph::fromMlir(gather.getType()).shape;
    const Size n = mesh.numAlong(*axes);
    if (part[static_cast<int>(d)] * n != whole[static_cast<int>(d)])
      return gather.emitError("joins parts of different sizes (")
             << dim::spell(part[static_cast<int>(d)]) << " of " << dim::spell(whole[static_cast<int>(d)])
             << " along dimension " << d
             << "), which ranks in processes of their own do not; cut a dimension that they divide";
    if (d == 0)
      return success();
    OpBuilder b(gather);
    PartBuilder parts(b, gather.getLoc(), mesh, gather);
    op::Sizes first(part.begin(), part.end()), apart{n};
    op::Ints order;
    first[0] = first[0] * n;
    apart.insert(apart.end(), part.begin(), part.end());
    for (size_t i = 1; i < apart.size(); ++i) {
      if (i == d + 1)
        order.push_back(0);
      order.push_back(static_cast<int64_t>(i));
    }
    auto made = graph::AllGatherOp::create(
        b, gather.getLoc(),
        graph::toMlir(&getContext(), {graph::fromMlir(gather.getType()).dtype, Shape(std::span<const Size>(first))}),
        gather.getValue(), 0, gather.getOver());
    graph::setOnRanks(made);
    const Value stacked = parts.make("reshape", made.getResult(), {apart}, true);
    gather.getResult().replaceAllUsesWith(parts.make("reshape", parts.make("transpose", stacked, {order}, true),
                                                     {op::Sizes(whole.begin(), whole.end())}, true));
    gather.erase();
    return success();
  }

  LogicalResult lower(graph::AllReduceOp reduce, const graph::Mesh &mesh) {
    FailureOr<SmallVector<unsigned>> axes = graph::axesOf(reduce, reduce.getOver(), mesh);
    const std::optional<op::Combine> how = parseCombine(reduce.getBy());
    if (failed(axes))
      return failure();
    if (!how)
      return reduce.emitOpError("combines by \"")
             << reduce.getBy() << "\", which is none of sum, prod, max, min, any, all";
    OpBuilder b(reduce);
    PartBuilder parts(b, reduce.getLoc(), mesh, reduce);
    if (isInTime(reduce, mesh)) {
      reduce.getResult().replaceAllUsesWith(
          reduce.getInTurn() ? parts.accumulate(reduce.getValue(), *how, *mesh.time)
                             : parts.combine(parts.collect(reduce.getValue(), *mesh.time, true), *how, true));
      reduce.erase();
      ++numLowered;
      return success();
    }
    const Value value = reduce.getValue();
    const TensorType type = graph::fromMlir(value.getType());
    const int64_t ranks = mesh.numAlong(*axes), bytes = bytesOf(value.getType());
    const Size count = dim::numElements(type.shape);
    const auto part = dim::divideExactly(count, ranks);
    const std::optional<Times> times = timesOf(bytes, ranks);
    // A part must begin at an aligned offset.
    constexpr int64_t kAlignment = 64;
    const bool fits = part && part->isNumber() && part->number() > 0 &&
                      part->number() * static_cast<int64_t>(sizeOf(type.dtype)) % kAlignment == 0;
    // A single group, so the host can combine all, if the program may use it.
    const bool hasTime = mesh.time && mesh.sizeOf(*mesh.time) > 1;
    const bool isAll = !hasTime && mesh.inRow == 1 && mesh.numAlong(*axes) == mesh.numRanks() &&
                       (devices.empty() || llvm::is_contained(devices, graph::kHost));
    const bool inSteps = fits && ranks > 2 && times && times->inSteps < std::min(times->atOnce, isAll ? times->throughHost : times->atOnce);
    const bool throughHost = !inSteps && isAll && times && times->throughHost < times->atOnce;
    Value combined;
    if (throughHost) {
      const Value sum = parts.combine(parts.collect(value, *axes, false), *how, false);
      // back to the collected values
      for (Operation *op = sum.getDefiningOp(); graph::infoOf(op); op = op->getPrevNode())
        graph::setDevice(op, graph::kHost);
      combined = parts.deal(sum, {}, sum.getType());
    } else if (!inSteps) {
      combined = parts.combine(parts.collect(value, *axes, true), *how, true);
    } else {
      const Value flat = parts.make("reshape", value, {op::Sizes{count}}, true);
      SmallVector<Value> blocks;
      for (int64_t i = 0; i < ranks; ++i)
        blocks.push_back(parts.slice(flat, 0, *part * i, *part, true));
      const Value own = parts.combine(parts.exchange(blocks, *axes), *how, true);
      combined = parts.make("reshape", parts.concat(parts.collect(own, *axes, true), 0, true),
                            {op::Sizes(type.shape.begin(), type.shape.end())}, true);
    }
    if (decisions) {
      const graph::FileLine line = graph::fileLineOf(reduce.getLoc());
      std::string text = inSteps ? "in two steps" : throughHost ? "through the host" : "at once";
      if (times)
        text += "; predicted: at once " + runtime::spellSeconds(times->atOnce) + ", in two steps " +
                runtime::spellSeconds(times->inSteps) + ", through the host " + runtime::spellSeconds(times->throughHost);
      decisions->push_back(
          {"lower-collectives",
           {"all_reduce of " + std::to_string(bytes) + " bytes", line.file, static_cast<uint32_t>(line.line)},
           text});
    }
    reduce.getResult().replaceAllUsesWith(combined);
    reduce.erase();
    ++numLowered;
    return success();
  }

  struct Times {
    double atOnce, inSteps, throughHost;
  };
  /// Predicted times of the exchange alone. All pairs of ranks are assumed to have routes like that of the first two.
  std::optional<Times> timesOf(int64_t bytes, int64_t ranks) const {
    const std::vector<runtime::DeviceRef> all = acceleratorsOf(machine, devices);
    if (!machine || all.size() < 2)
      return std::nullopt;
    const MachineCosts costs(*machine);
    constexpr unsigned kHostIndex = 0;
    const auto from = costs.indexOf(all[0]), to = costs.indexOf(all[1]);
    if (!from || !to)
      return std::nullopt;
    auto oneCopy = [&](int64_t each) -> std::optional<double> {
      if (const auto direct = costs.transfer(*from, *to, each, false))
        return direct->seconds;
      const auto up = costs.transfer(*from, kHostIndex, each, false), down = costs.transfer(kHostIndex, *to, each, false);
      return up && down ? std::optional(up->seconds + down->seconds) : std::nullopt;
    };
    const auto whole = oneCopy(bytes), part = oneCopy(bytes / ranks), toHost = together(costs, all, bytes, true),
               back = together(costs, all, bytes, false);
    if (!whole || !part || !toHost || !back)
      return std::nullopt;
    const auto copies = static_cast<double>(ranks - 1);
    return Times{copies * *whole, 2 * copies * *part, *toHost + costs.copySeconds(kHostIndex, bytes * (ranks + 1) / 2) + *back};
  }
  /// Seconds of concurrent copies between all accelerators and the host, which share links.
  static std::optional<double> together(const MachineCosts &costs, ArrayRef<runtime::DeviceRef> all, int64_t bytes, bool toHost) {
    std::vector<double> carried(costs.numLinks(), 0);
    double longest = 0;
    for (runtime::DeviceRef device : all) {
      const auto index = costs.indexOf(device);
      const auto copy = !index ? std::nullopt : toHost ? costs.transfer(*index, 0, bytes, false) : costs.transfer(0, *index, bytes, false);
      if (!copy)
        return std::nullopt;
      longest = std::max(longest, copy->seconds);
      for (uint32_t link : copy->links)
        if (link < carried.size()) {
          carried[link] += static_cast<double>(bytes) / costs.capacities()[link];
          longest = std::max(longest, copy->latency + carried[link]);
        }
    }
    return longest;
  }

  const runtime::MachineModel *machine;
  std::vector<runtime::DeviceRef> devices;
  Decisions *decisions;
};
} // namespace

std::unique_ptr<Pass> createLowerCollectives(const LowerCollectivesOptions &options,
                                             const runtime::MachineModel *machine,
                                             std::vector<runtime::DeviceRef> devices, Decisions *decisions) {
  return std::make_unique<LowerCollectives>(options, machine, std::move(devices), decisions);
}

} // namespace tressel::passes
