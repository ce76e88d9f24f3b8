#include "passes/Passes.h"
#include "passes/Util.h"
#include "passes/schedule/PipelineOrder.h"
#include "passes/shard/Parts.h"
#include "passes/shard/Reductions.h"
#include "passes/shard/Stages.h"

#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Stage.h"
#include "ir/graph/Structure.h"
#include "ir/op/Infer.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/MachineModel.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_SHARD
#include "passes/Passes.h.inc"

namespace {
using graph::Sharding;
using Axes = SmallVector<unsigned, 2>;

/// A version of a value that the ranks have.
struct OnRanks {
  Value local;
  Sharding sharding;
  Axes partial; ///< along these axes each rank has a term of the value; the terms must still be combined
  op::Combine combine = op::Combine::None;
};

Axes axesOf(const Sharding &sharding) {
  Axes axes;
  for (const auto &list : sharding.dims)
    axes.append(list.begin(), list.end());
  return axes;
}

class Partition {
public:
  /// `ofStages`: ops that were annotated with a stage.
  Partition(func::FuncOp main, const graph::Mesh &mesh, Propagation &propagation,
            const llvm::DenseSet<Operation *> &ofStages)
      : main(main), block(main.getBody().front()), mesh(mesh), propagation(propagation), ofStages(ofStages),
        ofOneRank(main->hasAttr(graph::kRankProgramAttr)) {}

  LogicalResult run() {
    if (failed(takeArguments()))
      return failure();
    classify();
    const auto ops = llvm::map_to_vector(block, [](Operation &op) { return &op; });
    for (Operation *op : ops)
      if (ranks.contains(op)) {
        if (failed(compute(op)))
          return failure();
      } else {
        for (OpOperand &operand : op->getOpOperands())
          if (isOnRanks(operand)) {
            Sharding sharding = shardingOfResult(operand.getOperandNumber());
            if (mesh.time) // an accelerator has all of its micro-batches
              for (auto &axes : sharding.dims)
                axes.truncate(static_cast<size_t>(llvm::find(axes, *mesh.time) - axes.begin()));
            main.setResultAttr(operand.getOperandNumber(), graph::kShardingAttr, StringAttr::get(main.getContext(), sharding.str(mesh)));
            operand.set(onRanks(operand.get(), sharding, op));
          } else {
            operand.set(inProgram(operand.get(), op));
          }
      }
    for (Operation *op : ops) // ops that the program also computes for itself
      if (kept.contains(op))
        for (OpOperand &operand : op->getOpOperands())
          if (!op->use_empty())
            operand.set(inProgram(operand.get(), op));
    for (Operation *op : llvm::reverse(ops))
      if (ranks.contains(op) && op->use_empty() && (op->getNumResults() > 0 || llvm::is_contained(done, op)))
        op->erase();
    eraseUnused(block);
    for (Operation &op : block)
      if (!graph::isOnRanks(&op) && !graph::isCollective(&op))
        graph::takeStage(&op);
    giveArguments();
    return success();
  }

private:
  /// Whether the result is returned in the ranks' memory.
  bool isOnRanks(OpOperand &operand) {
    return operand.getOwner()->hasTrait<OpTrait::IsTerminator>() && graph::isResultOnRanks(main, operand.getOperandNumber());
  }
  /// The sharding of a result: that of the state, or else as it was propagated.
  Sharding shardingOfResult(unsigned i) {
    if (const Attribute state = main.getResultAttr(i, graph::kStateAttr))
      for (BlockArgument argument : main.getArguments())
        if (main.getArgAttr(argument.getArgNumber(), graph::kStateAttr) == state)
          return propagation.of(argument);
    return propagation.of(block.getTerminator()->getOperand(i));
  }

  /// Appends a temporary argument, of the part's type, for each argument in the ranks' memory; giveArguments puts it in
  /// place.
  LogicalResult takeArguments() {
    for (unsigned i = 0, count = main.getNumArguments(); i < count; ++i) {
      if (!graph::isArgumentOnRanks(main, i))
        continue;
      const BlockArgument argument = block.getArgument(i);
      const Sharding sharding = propagation.of(argument);
      if (mesh.time && sharding.uses(*mesh.time))
        return main.emitError("argument ")
               << i << " is to lie on the accelerators in parts along '" << mesh.axes[*mesh.time].name << "' (cut as \""
               << sharding.str(mesh) << "\"), whose parts one accelerator has one after the other; leave that axis out";
      const TensorType part = graph::partOf(graph::fromMlir(argument.getType()), sharding, mesh);
      for (const runtime::MeshAxis &axis : mesh.axes)
        for (Size size : part.shape) {
          std::vector<Size> symbols;
          dim::collectSymbols(size, symbols);
          if (llvm::is_contained(symbols, runtime::rankSymbol(axis)))
            return main.emitError("argument ") << i << " is to lie on the ranks in parts of different sizes (" << part.str() << ", cut as \"" << sharding.str(mesh)
                                               << "\"); cut a dimension that '" << axis.name << "' divides, or leave it on the host";
        }
      const Value local = block.addArgument(graph::toMlir(main.getContext(), part), argument.getLoc());
      held.push_back({i, local, sharding});
      known[argument].push_back({local, sharding, {}, op::Combine::None});
    }
    return success();
  }
  void giveArguments() {
    for (Held &each : held) {
      BlockArgument argument = block.getArgument(each.index);
      argument.setType(each.local.getType());
      each.local.replaceAllUsesWith(argument);
      main.setArgAttr(each.index, graph::kShardingAttr, StringAttr::get(main.getContext(), each.sharding.str(mesh)));
    }
    block.eraseArguments(block.getNumArguments() - static_cast<unsigned>(held.size()), static_cast<unsigned>(held.size()));
    main.setFunctionType(FunctionType::get(main.getContext(), block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
  }

  /// Finds the ops that ranks compute: those that are cut, those between two such, and those that feed one and make a
  /// large result of small operands, whose result need not be copied then.
  void classify() {
    if (ofOneRank) { // there is no program beside the ranks
      for (Operation &op : block)
        if (!op.hasTrait<OpTrait::ConstantLike>() && !op.hasTrait<OpTrait::IsTerminator>())
          ranks.insert(&op);
      return;
    }
    llvm::DenseSet<Operation *> cut, feeds;
    for (Operation &op : llvm::reverse(block)) {
      if (!propagation.ruleOf(&op) || op.hasTrait<OpTrait::ConstantLike>())
        continue;
      if (propagation.cutOf(&op).isCut())
        cut.insert(&op);
      if (llvm::any_of(op.getUses(), [&](OpOperand &use) {
            return cut.contains(use.getOwner()) || feeds.contains(use.getOwner()) || isOnRanks(use);
          }))
        feeds.insert(&op);
    }
    llvm::DenseSet<Operation *> follows;
    for (Operation &op : block) {
      const bool isAfter = llvm::any_of(op.getOperands(), [&](Value operand) {
        Operation *def = operand.getDefiningOp();
        return def ? cut.contains(def) || follows.contains(def) : known.contains(operand);
      });
      if (isAfter)
        follows.insert(&op);
      const bool isOfStage = ofStages.contains(&op) && propagation.ruleOf(&op);
      if (cut.contains(&op) || isOfStage || (feeds.contains(&op) && (isAfter || makesMuch(&op))))
        ranks.insert(&op);
      if (ranks.contains(&op) && !cut.contains(&op) && !isAfter)
        kept.insert(&op);
    }
  }
  static bool makesMuch(Operation *op) {
    int64_t in = 0, out = 0;
    for (Value operand : op->getOperands())
      in += isInlineConstant(operand) ? 0 : bytesOf(operand.getType());
    for (Type type : op->getResultTypes())
      out += bytesOf(type);
    return in <= out;
  }

  /// The attributes of the op on a rank's part; none if inferring the types from parts of the operands does not give
  /// parts of the results: a convolution with groups of different sizes, or a dimension that meets one cut more finely.
  std::optional<op::Attrs> attrsOfPart(Operation *op, const op::ShardingRule &rule, const Cut &cut) {
    const op::OpInfo &info = *graph::infoOf(op);
    auto partsOf = [&](ValueRange values, ArrayRef<op::ShardingRule::Dims> dims) {
      return llvm::map_to_vector(llvm::zip_equal(dims, values), [&](auto each) {
        return graph::partOf(graph::fromMlir(std::get<1>(each).getType()),
                             Propagation::shardingOf(std::get<0>(each), cut), mesh);
      });
    };
    op::Attrs attrs = graph::attrsOf(op, info);
    const SmallVector<TensorType> expected = partsOf(op->getResults(), rule.results);
    if (rule.shapeAttr >= 0)
      attrs[static_cast<size_t>(rule.shapeAttr)] = op::Sizes(expected[0].shape.begin(), expected[0].shape.end());
    if (const Shape whole = graph::fromMlir(op->getResult(0).getType()).shape; rule.firstAttr >= 0 && !whole.empty()) {
      Size first = graph::firstOf(whole[0], cut.axes[0], mesh);
      for (Size size : std::span(whole.begin() + 1, whole.end()))
        first *= size;
      Size &attr = std::get<Size>(attrs[static_cast<size_t>(rule.firstAttr)]);
      attr = attr + first;
    }
    const op::Inferred inferred = op::inferTypes(info, partsOf(op->getOperands(), rule.operands), attrs);
    if (!inferred || !llvm::equal(inferred.types, expected))
      return std::nullopt;
    return attrs;
  }

  using AttrsOfOps = llvm::DenseMap<Operation *, op::Attrs>;
  static Cut cutOfBody(const BodyRule &body, Operation *op, const Cut &cut) {
    Cut own;
    for (int factor : body.factorsOf.at(op))
      own.axes.push_back(factor < 0 ? Axes() : cut.axes[static_cast<size_t>(factor)]);
    return own;
  }
  /// The attributes of all ops of a body on their parts; none if one of them has none.
  std::optional<AttrsOfOps> attrsOfPart(graph::ScanOp scan, const Cut &cut) {
    AttrsOfOps all;
    const BodyRule &body = propagation.bodyOf(scan);
    for (Operation &op : scan.getBody().front())
      if (body.factorsOf.contains(&op)) {
        std::optional<op::Attrs> attrs = attrsOfPart(&op, *propagation.ruleOf(&op), cutOfBody(body, &op, cut));
        if (!attrs)
          return std::nullopt;
        all.try_emplace(&op, std::move(*attrs));
      }
    return all;
  }
  Type partInBody(const BodyRule &body, Value value, const Cut &cut) const {
    Sharding sharding = Sharding::whole(rankOf(value));
    if (auto dims = body.dimsOf.find(value); dims != body.dimsOf.end())
      for (auto [axes, factor] : llvm::zip_equal(sharding.dims, dims->second))
        if (factor >= 0)
          axes = cut.axes[static_cast<size_t>(factor)];
    return graph::toMlir(value.getContext(), graph::partOf(graph::fromMlir(value.getType()), sharding, mesh));
  }
  Operation *makePart(OpBuilder &b, graph::ScanOp scan, ValueRange operands, const AttrsOfOps &attrs, const Cut &cut) {
    const BodyRule &rule = propagation.bodyOf(scan);
    auto made = cast<graph::ScanOp>(b.cloneWithoutRegions(*scan.getOperation()));
    made->setOperands(operands);
    for (auto [dims, result] : llvm::zip_equal(rule.rule.results, made->getResults()))
      result.setType(graph::toMlir(result.getContext(), graph::partOf(graph::fromMlir(result.getType()),
                                                                      Propagation::shardingOf(dims, cut), mesh)));
    IRMapping parts;
    OpBuilder::InsertionGuard guard(b);
    Block &body = scan.getBody().front(), *own = b.createBlock(&made.getBody());
    for (BlockArgument argument : body.getArguments())
      parts.map(argument, own->addArgument(partInBody(rule, argument, cut), argument.getLoc()));
    for (Operation &op : body) {
      if (auto of = attrs.find(&op); of != attrs.end()) {
        const auto given = llvm::map_to_vector(op.getOperands(), [&](Value value) { return parts.lookup(value); });
        Operation *part = graph::createOp(b, op.getLoc(), *graph::infoOf(&op), given, of->second);
        graph::copyAnnotations(&op, part);
        parts.map(op.getResults(), part->getResults());
        continue;
      }
      Operation *copy = b.clone(op, parts);
      if (DenseElementsAttr value; matchPattern(copy, m_Constant(&value)))
        if (const auto type = cast<RankedTensorType>(partInBody(rule, op.getResult(0), cut)); type != value.getType()) {
          copy->setAttr("value", value.resizeSplat(type));
          copy->getResult(0).setType(type);
        }
    }
    return made;
  }

  /// Computes an op without a rule on whole values, on each rank.
  void computeWhole(Operation *op) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(onRanks(operand, Sharding::whole(rankOf(operand)), op));
    Operation *made = OpBuilder(op).clone(*op);
    made->setOperands(operands);
    graph::setOnRanks(made);
    for (auto [result, own] : llvm::zip_equal(op->getResults(), made->getResults()))
      known[result].push_back({own, Sharding::whole(rankOf(result)), {}, op::Combine::None});
    if (op->getNumResults() == 0)
      done.push_back(op);
  }
  static int rankOf(Value value) { return static_cast<int>(cast<RankedTensorType>(value.getType()).getRank()); }

  LogicalResult compute(Operation *op) {
    if (!propagation.ruleOf(op)) {
      computeWhole(op);
      return success();
    }
    const op::ShardingRule &rule = *propagation.ruleOf(op);
    Cut cut = propagation.cutOf(op);
    OpBuilder b(op);
    PartBuilder parts(b, op->getLoc(), mesh, op);
    if (graph::isShardAnnotation(op)) { // only an annotation
      const Sharding wanted = propagation.of(op->getResult(0));
      const Value local = onRanks(op->getOperand(0), wanted, op); // this adds to `known`
      known[op->getResult(0)].push_back({local, wanted, {}, op::Combine::None});
      return success();
    }
    auto scan = dyn_cast<graph::ScanOp>(op);
    std::optional<op::Attrs> attrs;
    std::optional<AttrsOfOps> attrsInBody;
    auto fits = [&] {
      if (scan)
        return (attrsInBody = attrsOfPart(scan, cut)).has_value();
      return (attrs = attrsOfPart(op, rule, cut)).has_value();
    };
    if (!fits()) { // the op cannot be cut: each rank computes all of it
      for (Axes &axes : cut.axes)
        axes.clear();
      if (!fits())
        return op->emitError("has a rule of sharding that does not fit it; this is a bug of Tressel");
    }
    auto partialOf = [&](size_t result) {
      Axes partial;
      for (auto [f, factor] : llvm::enumerate(rule.factors))
        if (factor.combine != op::Combine::None &&
            (rule.terms.empty() || llvm::is_contained(rule.terms[result], static_cast<int>(f))))
          partial.append(cut.axes[f].begin(), cut.axes[f].end());
      return partial;
    };
    op::Combine how = op::Combine::None;
    for (auto [factor, axes] : llvm::zip_equal(rule.factors, cut.axes))
      if (factor.combine != op::Combine::None && !axes.empty())
        how = factor.combine;
    SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      operands.push_back(onRanks(operand, Propagation::shardingOf(rule.operands[i], cut), op));
    if (const Axes partial = partialOf(0); rule.onceOperand >= 0 && !partial.empty()) {
      Value &once = operands[static_cast<size_t>(rule.onceOperand)];
      const TensorType type = graph::fromMlir(once.getType());
      const Value zeros =
          parts.make("full", {}, {op::Sizes(type.shape.begin(), type.shape.end()), 0.0, type.dtype}, true);
      if (ofOneRank) {
        once = onFirst(parts, once, zeros, partial);
      } else {
        SmallVector<Value> choices(static_cast<size_t>(mesh.numAlong(partial)), zeros);
        choices.front() = once;
        once = parts.deal(choices, partial, once.getType());
      }
    }
    Operation *made = scan ? makePart(b, scan, operands, *attrsInBody, cut)
                           : graph::createOp(b, op->getLoc(), *graph::infoOf(op), operands, *attrs);
    graph::copyAnnotations(op, made);
    graph::setOnRanks(made);
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      const Axes partial = partialOf(i);
      known[result].push_back({made->getResult(static_cast<unsigned>(i)), Propagation::shardingOf(rule.results[i], cut),
                               partial, partial.empty() ? op::Combine::None : how});
    }
    return success();
  }

  /// The rank's row-major number among the ranks along some axes.
  Size placeOn(ArrayRef<unsigned> axes) const {
    Size place = 0;
    for (unsigned axis : axes)
      place = place * mesh.sizeOf(axis) + runtime::rankSymbol(mesh.axes[axis]);
    return place;
  }
  /// In the program of one rank: its part along a dimension that the ranks along the axes divide. Sliced as one row of
  /// a reshape to as many rows as ranks, so that the bounds do not depend on symbolic sizes.
  Value ownPart(PartBuilder &parts, Value value, unsigned d, ArrayRef<unsigned> axes) const {
    if (axes.empty())
      return value;
    const Shape shape = graph::fromMlir(value.getType()).shape;
    op::Sizes part(shape.begin(), shape.end()), rows = part;
    part[d] = *dim::divideExactly(part[d], mesh.numAlong(axes));
    rows[d] = part[d];
    rows.insert(rows.begin() + d, mesh.numAlong(axes));
    return parts.make("reshape", parts.slice(parts.make("reshape", value, {rows}, true), d, placeOn(axes), 1, true),
                      {part}, true);
  }
  /// `value` on the ranks with coordinates 0 along the axes, `other` on all others.
  Value onFirst(PartBuilder &parts, Value value, Value other, const Axes &axes) const {
    const Size place = placeOn(axes);
    const Value at = parts.make("dim_size", {}, {place, i64}, true),
                first = parts.make("full", {}, {op::Sizes(), 0.0, i64}, true);
    return parts.make("where", {parts.make("equal", {at, first}, {}, true), value, other}, {}, true);
  }

  /// The value with the sharding that `user` needs, on the ranks.
  Value onRanks(Value value, const Sharding &wanted, Operation *user) {
    Operation *def = value.getDefiningOp();
    if (def && def->hasTrait<OpTrait::ConstantLike>() && wanted.isWhole() &&
        (ofOneRank || !user->hasTrait<OpTrait::IsTerminator>()))
      return value; // every rank has it
    SmallVector<OnRanks, 1> &variants = known[value];
    for (const OnRanks &variant : variants)
      if (variant.partial.empty() && variant.sharding == wanted)
        return variant.local;
    OpBuilder b(user);
    PartBuilder parts(b, value.getLoc(), mesh, user);
    OnRanks made;
    if (variants.empty()) {
      made = {scatter(parts, value, wanted), wanted, {}, op::Combine::None};
    } else {
      made = settled(variants, wanted);
      made = reshard(parts, value, made, wanted);
    }
    known[value].push_back(made);
    return made.local;
  }

  /// Distributes a value of the program over the ranks.
  Value scatter(PartBuilder &parts, Value value, const Sharding &wanted) {
    const TensorType whole = graph::fromMlir(value.getType());
    const Axes axes = axesOf(wanted);
    if (ofOneRank) {
      for (auto [d, list] : llvm::enumerate(wanted.dims))
        value = ownPart(parts, value, static_cast<unsigned>(d), list);
      return value;
    }
    SmallVector<Value> each;
    for (int64_t place = 0; place < mesh.numAlong(axes); ++place) {
      Value part = value;
      for (auto [d, list] : llvm::enumerate(wanted.dims)) {
        const Size size = whole.shape[static_cast<int>(d)];
        part = parts.slice(part, static_cast<unsigned>(d), parts.at(graph::firstOf(size, list, mesh), place, axes),
                           parts.at(graph::partOf(size, list, mesh), place, axes), /*onRanks=*/false);
      }
      each.push_back(part);
    }
    return parts.deal(each, axes, graph::toMlir(value.getContext(), graph::partOf(whole, wanted, mesh)));
  }

  /// A version without terms left to combine: an existing one, or the first version with its terms combined.
  OnRanks settled(SmallVector<OnRanks, 1> &variants, const Sharding &wanted) {
    for (const OnRanks &variant : variants)
      if (variant.partial.empty())
        return variant;
    OnRanks value = variants.front();
    // Right after the value is computed, so that the exchange overlaps with later ops.
    OpBuilder at(value.local.getContext());
    at.setInsertionPointAfterValue(value.local);
    PartBuilder parts(at, value.local.getLoc(), mesh, value.local.getDefiningOp());
    const size_t all = value.partial.size();
    reduceInTime(parts, value);
    Axes rest;
    for (unsigned axis : value.partial)
      if (!reduceScatter(parts, value, axis, wanted))
        rest.push_back(axis);
    const bool isWhole = rest.size() == value.partial.size();
    if (!rest.empty())
      reduce(parts, value, rest);
    value.partial.clear();
    if (isWhole && all > 0)
      variants.push_back(value); // other readers need it as well
    return value;
  }
  void reduce(PartBuilder &parts, OnRanks &value, ArrayRef<unsigned> axes, bool inTurn = false) {
    OpBuilder &b = parts.builder();
    auto reduce = graph::AllReduceOp::create(b, value.local.getLoc(), value.local.getType(), value.local,
                                             nameOf(value.combine), graph::namesOf(b.getContext(), axes, mesh), inTurn);
    parts.putOnRanks(reduce);
    value.local = reduce;
  }
  /// Combines the terms of the micro-batches of each accelerator first.
  void reduceInTime(PartBuilder &parts, OnRanks &value) {
    if (!mesh.time || !llvm::is_contained(value.partial, *mesh.time))
      return;
    llvm::erase(value.partial, *mesh.time);
    if (mesh.sizeOf(*mesh.time) == 1)
      return;
    // In the order of micro-batches, so that only one term at a time is kept. Under `deterministic` in a tree instead,
    // as accelerators combine, so that the bits do not depend on their number.
    reduce(parts, value, *mesh.time, /*inTurn=*/!graph::isDeterministic(main));
  }

  /// If the sum is wanted in parts along this axis, each rank only combines its part: a reduce_scatter.
  bool reduceScatter(PartBuilder &parts, OnRanks &value, unsigned axis, const Sharding &wanted) {
    for (auto [d, list] : llvm::enumerate(wanted.dims)) {
      Axes longer = value.sharding.dims[d];
      longer.push_back(axis);
      const Size size = graph::fromMlir(value.local.getType()).shape[static_cast<int>(d)];
      const auto part = dim::divideExactly(size, mesh.sizeOf(axis));
      if (list.size() < longer.size() || !std::equal(longer.begin(), longer.end(), list.begin()) || !part)
        continue;
      OpBuilder &b = parts.builder();
      TensorType type = graph::fromMlir(value.local.getType());
      type.shape[static_cast<int>(d)] = *part;
      auto scatter =
          graph::ReduceScatterOp::create(b, value.local.getLoc(), graph::toMlir(b.getContext(), type), value.local,
                                         nameOf(value.combine), d, graph::namesOf(b.getContext(), axis, mesh));
      parts.putOnRanks(scatter);
      value.local = scatter;
      value.sharding.dims[d] = longer;
      return true;
    }
    return false;
  }

  /// Cuts a rank's part again, into one block for each rank along an axis.
  SmallVector<Value> blocksOf(PartBuilder &parts, Value local, unsigned d, unsigned axis) {
    const Size size = graph::fromMlir(local.getType()).shape[static_cast<int>(d)];
    SmallVector<Value> blocks;
    for (int64_t place = 0; place < mesh.sizeOf(axis); ++place)
      blocks.push_back(parts.slice(local, d, parts.at(graph::firstOf(size, axis, mesh), place, axis),
                                   parts.at(graph::partOf(size, axis, mesh), place, axis), /*onRanks=*/true));
    return blocks;
  }

  OnRanks reshard(PartBuilder &parts, Value whole, OnRanks value, const Sharding &wanted) {
    auto agrees = [&](size_t d) {
      const Axes &have = value.sharding.dims[d], &want = wanted.dims[d];
      return std::mismatch(have.begin(), have.end(), want.begin(), want.end()).first - have.begin();
    };
    // An axis moves from one dimension to another: an all-to-all of blocks.
    for (size_t from = 0; from < wanted.dims.size(); ++from)
      for (size_t to = 0; to < wanted.dims.size(); ++to) {
        Axes &have = value.sharding.dims[from], &there = value.sharding.dims[to];
        if (ofOneRank || from == to || have.empty() || static_cast<size_t>(agrees(from)) == have.size() ||
            static_cast<size_t>(agrees(to)) != there.size() || there.size() == wanted.dims[to].size() ||
            wanted.dims[to][there.size()] != have.back())
          continue;
        const unsigned axis = have.back();
        const TensorType local = graph::fromMlir(value.local.getType());
        Axes outer(have.begin(), have.end() - 1);
        if (!dim::divideExactly(local.shape[static_cast<int>(to)], mesh.sizeOf(axis)) ||
            !dim::divideExactly(
                graph::partOf(graph::fromMlir(whole.getType()).shape[static_cast<int>(from)], outer, mesh),
                mesh.sizeOf(axis)))
          continue;
        value.local = parts.concat(parts.exchange(blocksOf(parts, value.local, static_cast<unsigned>(to), axis), axis),
                                   static_cast<unsigned>(from), true);
        have = outer;
        there.push_back(axis);
      }
    for (size_t d = 0; d < wanted.dims.size(); ++d) { // gather dimensions that have too many axes
      Axes &have = value.sharding.dims[d];
      const auto stays = static_cast<size_t>(agrees(d));
      if (have.size() == stays)
        continue;
      const Axes goes(have.begin() + static_cast<ptrdiff_t>(stays), have.end());
      value.local = gather(
          parts, value.local, static_cast<unsigned>(d), goes,
          partOf(graph::fromMlir(whole.getType()).shape[static_cast<int>(d)], ArrayRef(have).take_front(stays), mesh));
      have.truncate(stays);
    }
    for (size_t d = 0; d < wanted.dims.size(); ++d) // cut dimensions that have too few
      for (Axes &have = value.sharding.dims[d]; have.size() < wanted.dims[d].size();) {
        const unsigned axis = wanted.dims[d][have.size()];
        const TensorType local = graph::fromMlir(value.local.getType());
        if (ofOneRank) {
          value.local = ownPart(parts, value.local, static_cast<unsigned>(d), axis);
        } else {
          TensorType part = local;
          part.shape[static_cast<int>(d)] = graph::partOf(local.shape[static_cast<int>(d)], axis, mesh);
          value.local = parts.deal(blocksOf(parts, value.local, static_cast<unsigned>(d), axis), axis,
                                   graph::toMlir(whole.getContext(), part));
        }
        have.push_back(axis);
      }
    return value;
  }

  /// Gathers the parts of a dimension into the whole, of `size`.
  Value gather(PartBuilder &parts, Value local, unsigned d, const Axes &axes, Size size) const {
    TensorType type = graph::fromMlir(local.getType());
    type.shape[static_cast<int>(d)] = size;
    OpBuilder &b = parts.builder();
    auto made = graph::AllGatherOp::create(b, local.getLoc(), graph::toMlir(b.getContext(), type), local, d,
                                           graph::namesOf(b.getContext(), axes, mesh));
    parts.putOnRanks(made);
    return made;
  }

  /// The whole value, for an op of the program itself.
  Value inProgram(Value value, Operation *user) {
    Operation *def = value.getDefiningOp();
    if (def ? !ranks.contains(def) || kept.contains(def) : !graph::isArgumentOnRanks(main, cast<BlockArgument>(value).getArgNumber()))
      return value;
    Value &there = whole[value];
    if (there)
      return there;
    OpBuilder b(user);
    PartBuilder parts(b, value.getLoc(), mesh);
    SmallVector<OnRanks, 1> &variants = known[value];
    OnRanks from = variants.front();
    if (!from.partial.empty() && llvm::any_of(value.getUsers(), [&](Operation *each) { return ranks.contains(each); }))
      from = settled(variants, from.sharding); // the ranks need the combined value too
    for (const OnRanks &variant : variants)
      if (variant.partial.empty() && variant.sharding.isWhole())
        from = variant;
    if (mesh.time && llvm::is_contained(from.partial, *mesh.time)) {
      OpBuilder at(from.local.getContext());
      at.setInsertionPointAfterValue(from.local);
      PartBuilder behind(at, from.local.getLoc(), mesh, from.local.getDefiningOp());
      reduceInTime(behind, from);
    }
    const Axes cut = axesOf(from.sharding);
    Axes all = from.partial;
    all.append(cut);
    SmallVector<Value> values = parts.collect(from.local, all, /*onRanks=*/false);
    for (size_t d = from.sharding.dims.size(); d-- > 0;) { // parts of the last dimension are adjacent
      const auto n = static_cast<size_t>(mesh.numAlong(from.sharding.dims[d]));
      SmallVector<Value> joined;
      for (size_t i = 0; i < values.size(); i += n)
        joined.push_back(parts.concat(ValueRange(values).slice(i, n), static_cast<unsigned>(d), false));
      values = std::move(joined);
    }
    there = values.size() == 1 ? values.front() : parts.combine(values, from.combine, false);
    return there;
  }

  func::FuncOp main;
  Block &block;
  const graph::Mesh &mesh;
  Propagation &propagation;
  const llvm::DenseSet<Operation *> &ofStages;
  bool ofOneRank;                ///< graph::kRankProgramAttr
  SmallVector<Operation *> done; ///< ops without results that the ranks compute
  struct Held {
    unsigned index;
    Value local;
    Sharding sharding;
  };
  SmallVector<Held> held; ///< arguments in the memory of ranks
  llvm::DenseSet<Operation *> ranks; ///< ops that the ranks compute
  llvm::DenseSet<Operation *> kept;  ///< ops that both the ranks and the program compute
  llvm::DenseMap<Value, SmallVector<OnRanks, 1>> known;
  llvm::DenseMap<Value, Value> whole; ///< values gathered for the program
};

class Shard : public impl::ShardBase<Shard> {
public:
  Shard(const runtime::MachineModel *machine, std::vector<runtime::DeviceRef> devices, Decisions *decisions)
      : machine(machine), devices(std::move(devices)), decisions(decisions) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (*main && failed(shard(*main)))
      signalPassFailure();
  }

private:
  LogicalResult shard(func::FuncOp main) {
    FailureOr<graph::Mesh> mesh = graph::meshOf(main);
    if (failed(mesh) || failed(checkDevices(main, *mesh)))
      return failure();
    if (mesh->empty())
      main->removeAttr(graph::kRankProgramAttr);
    const bool ofOneRank = main->hasAttr(graph::kRankProgramAttr);
    if (ofOneRank)
      bringToRanks(main);
    llvm::DenseSet<Operation *> ofStages;
    if (!mesh->time)
      forgetStages(main);
    else if (failed(assignStages(main, ofStages)))
      return failure();
    if (!mesh->empty() && (mesh->numRanks() > 1 || mesh->inRow > 1 || ofOneRank)) {
      auto propagation = std::make_unique<Propagation>(main, *mesh);
      if (failed(propagation->run()))
        return failure();
      if (reduceFromParts(main, *mesh, propagation.get(), machine, devices, decisions)) {
        propagation = std::make_unique<Propagation>(main, *mesh);
        if (failed(propagation->run()))
          return failure();
      }
      splitMeans(main, *propagation);
      if (failed(Partition(main, *mesh, *propagation, ofStages).run()))
        return failure();
      main->setAttr(graph::kCutAttr, UnitAttr::get(&getContext()));
    } else {
      reduceFromParts(main, *mesh, nullptr, machine, devices, nullptr);
      main->removeAttr(graph::kMeshAttr);
      main->removeAttr(graph::kPipelineAttr);
      forgetStages(main);
    }
    for (Operation &op : llvm::make_early_inc_range(main.getBody().front()))
      if (graph::isShardAnnotation(&op)) {
        op.getResult(0).replaceAllUsesWith(op.getOperand(0));
        op.erase();
      }
    const auto sharding = StringAttr::get(&getContext(), graph::kShardingAttr), home = StringAttr::get(&getContext(), graph::kHomeAttr);
    const bool isCut = main->hasAttr(graph::kCutAttr);
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      if (!isCut && graph::isArgumentOnRanks(main, i))
        main.removeArgAttr(i, home);
      if (!graph::isArgumentOnRanks(main, i))
        main.removeArgAttr(i, sharding);
    }
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      if (!isCut && graph::isResultOnRanks(main, i))
        main.removeResultAttr(i, home);
    note(main, *mesh);
    return success();
  }

  /// The arguments and results of a rank's program are its parts, in the memory in which the whole would be.
  static void bringToRanks(func::FuncOp main) {
    MLIRContext *context = main.getContext();
    const auto home = StringAttr::get(context, graph::kHomeAttr), ranks = StringAttr::get(context, graph::kRanks),
               onHost = StringAttr::get(context, graph::kOnHostAttr);
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (!graph::isArgumentOnRanks(main, i)) {
        main.setArgAttr(i, home, ranks);
        main.setArgAttr(i, onHost, UnitAttr::get(context));
      }
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      if (!graph::isResultOnRanks(main, i)) {
        main.setResultAttr(i, home, ranks);
        main.setResultAttr(i, onHost, UnitAttr::get(context));
      }
  }

  LogicalResult checkDevices(func::FuncOp main, const graph::Mesh &mesh) {
    if (mesh.empty())
      return success();
    if (auto pipeline = main->getAttrOfType<DictionaryAttr>(graph::kPipelineAttr))
      if (auto order = pipeline.get("order");
          order && (!isa<StringAttr>(order) || !parsePipelineOrder(cast<StringAttr>(order))))
        return main.emitError("has a pipeline in the order ")
               << order << "; orders are \"1f1b\" (\"interleaved\" is the same), \"zero-bubble\" and \"gpipe\"";
    const size_t have = acceleratorsOf(machine, devices).size();
    if (main->hasAttr(graph::kRankProgramAttr)) {
      if (have > 0)
        return success();
      return main.emitError("is the program of one rank of a mesh (")
             << mesh.str()
             << "), which runs on an accelerator, and there is none: name a machine with some, as sim:dgx-h100";
    }
    if (static_cast<size_t>(mesh.numAccelerators()) <= have)
      return success();
    return main.emitError("is for a mesh of ")
           << mesh.numAccelerators() << " accelerators (" << mesh.str()
           << (mesh.inRow > 1 ? ", " + std::to_string(mesh.inRow) + " in a row" : "") << "), but "
           << (machine ? "the machine '" + machine->name + "' has " : std::string("this machine has ")) << have
           << (devices.empty() ? "" : " among those that the program may use");
  }

  void note(func::FuncOp main, const graph::Mesh &mesh) {
    int64_t onRanks = 0, once = 0;
    for (Operation &op : main.getBody().front()) {
      if (auto reduce = dyn_cast<graph::AllReduceOp>(op)) {
        ++numReduced;
        if (decisions) {
          const graph::FileLine line = graph::fileLineOf(op.getLoc());
          std::string over;
          for (Attribute axis : reduce.getOver())
            over += (over.empty() ? "" : ", ") + cast<StringAttr>(axis).str();
          decisions->push_back({"shard",
                                {"all_reduce", line.file, static_cast<uint32_t>(line.line)},
                                reduce.getBy().str() + " of " + std::to_string(bytesOf(reduce.getValue().getType())) +
                                    " bytes over " + over});
        }
      } else if (graph::isOnRanks(&op)) {
        ++onRanks;
      } else if (isComputation(&op)) {
        ++once;
      }
    }
    numOnRanks += static_cast<unsigned>(onRanks);
    if (decisions && !mesh.empty())
      decisions->push_back({"shard",
                            {"the program", "", 0},
                            "mesh " + mesh.str() + ": " + std::to_string(onRanks) + " ops on each rank, " +
                                std::to_string(once) + " once"});
  }

  const runtime::MachineModel *machine;
  std::vector<runtime::DeviceRef> devices;
  Decisions *decisions;
};
} // namespace

std::vector<runtime::DeviceRef> acceleratorsOf(const runtime::MachineModel *machine,
                                               ArrayRef<runtime::DeviceRef> devices) {
  std::vector<runtime::DeviceRef> found;
  if (!devices.empty())
    for (runtime::DeviceRef device : devices) {
      if (device.kind == runtime::DeviceKind::Gpu)
        found.push_back(device);
    }
  else if (machine)
    for (const runtime::DeviceModel &device : machine->devices)
      if (device.device.kind == runtime::DeviceKind::Gpu)
        found.push_back(device.device);
  return found;
}

std::unique_ptr<Pass> createShard(const runtime::MachineModel *machine, std::vector<runtime::DeviceRef> devices,
                                  Decisions *decisions) {
  return std::make_unique<Shard>(machine, std::move(devices), decisions);
}

} // namespace tressel::passes
