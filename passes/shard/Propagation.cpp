#include "passes/shard/Propagation.h"

#include "passes/Util.h"

#include "ir/graph/Graph.h"
#include "tressel/runtime/Dim.h"

using namespace mlir;

namespace tressel::passes {

using graph::Sharding;
using Axes = SmallVector<unsigned, 2>;

Sharding Propagation::of(Value value) const {
  auto found = known.find(value);
  return found == known.end() ? Sharding::whole(static_cast<int>(cast<RankedTensorType>(value.getType()).getRank()))
                              : found->second.sharding;
}

const op::ShardingRule *Propagation::ruleOf(Operation *op) {
  if (auto scan = dyn_cast<graph::ScanOp>(op)) {
    if (bodies.try_emplace(op).second && !graph::deviceOf(op) && !EffectFacts().hasEffects(op)) {
      auto made = std::make_unique<BodyRule>(ruleOfBody(scan, [&](Operation *inner) { return ruleOf(inner); }));
      bodies[op] = std::move(made); // looked up again, as the map may have grown meanwhile
    }
    const std::unique_ptr<BodyRule> &body = bodies[op];
    return body ? &body->rule : nullptr;
  }
  const op::OpInfo *info = graph::infoOf(op);
  if (!info || info->hasEffects || graph::deviceOf(op))
    return nullptr;
  std::unique_ptr<op::ShardingRule> &rule = rules[op];
  if (!rule)
    rule = std::make_unique<op::ShardingRule>(op::shardingOf(
        *info, tableTypes(op->getOperandTypes()), tableTypes(op->getResultTypes()), graph::attrsOf(op, *info)));
  return rule.get();
}

Sharding Propagation::shardingOf(const op::ShardingRule::Dims &dims, const Cut &cut) {
  Sharding sharding = Sharding::whole(static_cast<int>(dims.size()));
  for (auto [d, factors] : llvm::enumerate(dims))
    if (!factors.empty())
      sharding.dims[d] = cut.axes[static_cast<size_t>(factors.front())];
  return sharding;
}

LogicalResult Propagation::pin(Value value, StringRef text, Location loc, const Twine &what) {
  const int rank = static_cast<int>(cast<RankedTensorType>(value.getType()).getRank());
  graph::ParsedSharding parsed = graph::parseSharding(text, rank, mesh);
  if (!parsed.error.empty())
    return mlir::emitError(loc) << what << " is to be cut as \"" << text << "\", which " << parsed.error;
  // A dimension with fewer elements than ranks stays whole, and so does a symbolic size that the ranks do not divide.
  const Shape shape = graph::fromMlir(value.getType()).shape;
  for (auto [d, axes] : llvm::enumerate(parsed.sharding.dims)) {
    // Axes of one rank are dropped: their exchange would do nothing but separate ops that could be one kernel.
    llvm::erase_if(axes, [&](unsigned axis) { return mesh.sizeOf(axis) == 1 && !mesh.liesInTime(axis); });
    const Size size = shape[static_cast<int>(d)];
    const int64_t ranks = mesh.numAlong(axes);
    if (ofOneRank && !dim::divideExactly(size, ranks)) {
      if (isa<BlockArgument>(value))
        return mlir::emitError(loc) << what << " is to be cut as \"" << text << "\", but dimension " << d << " of "
                                    << graph::fromMlir(value.getType()).str() << " has no equal parts for " << ranks
                                    << " ranks, which run one program";
      axes.clear();
    }
    // Keeps as many axes, from the first on, as there are elements for: a small batch gets no micro-batches.
    for (int64_t left = ranks; size.isNumber() ? size.number() < left : !dim::divideExactly(size, left);
         left = mesh.numAlong(axes)) {
      if (axes.empty())
        break;
      axes.pop_back();
    }
  }
  known[value] = {parsed.sharding, true};
  return success();
}

/// States without an annotation are whole: what is learned is the same on all ranks.
LogicalResult Propagation::annotate() {
  auto textOf = [&](Attribute attribute) { return dyn_cast_if_present<StringAttr>(attribute); };
  llvm::DenseMap<Attribute, StringAttr> ofState;
  for (BlockArgument argument : main.getArguments()) {
    const unsigned i = argument.getArgNumber();
    const Attribute state = main.getArgAttr(i, graph::kStateAttr), given = main.getArgAttr(i, graph::kShardingAttr);
    const StringAttr text = textOf(given);
    if (given && !text)
      return main.emitError("argument ") << i << " is to be cut as " << given << ", which is no text";
    if (state)
      ofState[state] = text;
    const auto name = main.getArgAttrOfType<StringAttr>(i, state ? graph::kStateAttr : graph::kNameAttr);
    if (text && !text.getValue().empty()) {
      if (failed(pin(argument, text, argument.getLoc(),
                     Twine(state ? "the state '" : "the input '") + (name ? name.getValue() : "") + "'")))
        return failure();
    } else if (state || graph::isArgumentOnRanks(main, i)) {
      known[argument] = {of(argument), true};
    }
  }
  for (Operation &op : main.getBody().front())
    if (graph::isShardAnnotation(&op)) {
      if (failed(pin(op.getResult(0), cast<StringAttr>(op.getAttr("axes")).getValue(), op.getLoc(),
                     "what is given to 'shard'")))
        return failure();
    } else if (op.hasTrait<OpTrait::ConstantLike>()) {
      known[op.getResult(0)] = {of(op.getResult(0)), true};
    }
  return success();
}

/// Records a sharding if it extends the known one of `value`; returns whether it changed.
bool Propagation::propose(Value value, const Sharding &wanted) {
  Known &now = known.try_emplace(value, Known{of(value), false}).first->second;
  if (now.pinned)
    return false;
  bool changed = false;
  for (auto [d, axes] : llvm::enumerate(wanted.dims)) {
    Axes &have = now.sharding.dims[d];
    const bool extends = axes.size() > have.size() && std::equal(have.begin(), have.end(), axes.begin());
    const ArrayRef<unsigned> more = extends ? ArrayRef(axes).drop_front(have.size()) : ArrayRef<unsigned>();
    if (more.empty() || llvm::any_of(more, [&](unsigned axis) { return now.sharding.uses(axis); }))
      continue;
    have = axes;
    changed = true;
  }
  return changed;
}

bool Propagation::mayCut(const op::ShardingRule &rule, unsigned factor, ArrayRef<unsigned> axes) const {
  const op::ShardingRule::Factor &f = rule.factors[factor];
  const int64_t ranks = mesh.numAlong(axes);
  if (f.isWhole ||
      f.size.numberOr(ranks * rule.leastPart) < ranks * rule.leastPart) // some ranks would get too few elements or none
    return false;
  const bool isEven = dim::divideExactly(f.size, ranks).has_value();
  if ((ofOneRank || rule.isEven) && !isEven) // ranks share kernels, which have one size
    return false;
  if (!isEven &&
      !f.size.isNumber()) // a call may have fewer elements than ranks, and symbolic parts do not add up textually
    return false;
  // Parts of a dimension with several factors begin where the parts of its first factor do only if all have equal size.
  for (const auto *list : {&rule.operands, &rule.results})
    for (const op::ShardingRule::Dims &dims : *list)
      for (const std::vector<int> &factors : dims)
        if (factors.size() > 1 && factors.front() == static_cast<int>(factor) && !isEven)
          return false;
  return true;
}

Cut Propagation::cutOf(Operation *op) {
  Cut cut;
  const op::ShardingRule *rule = ruleOf(op);
  if (!rule)
    return cut;
  cut.axes.resize(rule->factors.size());
  // The shardings wanted for each factor, with the bytes of the values that want them. The one with most bytes is
  // chosen, as it leaves most bytes in place.
  struct Wish {
    unsigned factor;
    Axes axes;
    int64_t bytes;
  };
  SmallVector<Wish> wishes;
  auto collect = [&](const std::vector<op::ShardingRule::Dims> &all, ValueRange values) {
    for (auto [dims, value] : llvm::zip_equal(all, values)) {
      const Sharding sharding = of(value);
      for (auto [d, factors] : llvm::enumerate(dims)) {
        if (factors.empty() || sharding.dims[d].empty())
          continue;
        const auto factor = static_cast<unsigned>(factors.front());
        auto same = llvm::find_if(
            wishes, [&](const Wish &wish) { return wish.factor == factor && wish.axes == sharding.dims[d]; });
        if (same == wishes.end())
          same = wishes.insert(wishes.end(), {factor, sharding.dims[d], 0});
        same->bytes += bytesOf(value.getType());
      }
    }
  };
  collect(rule->operands, op->getOperands());
  collect(rule->results, op->getResults());
  // Ties: the first factor.
  llvm::sort(wishes, [](const Wish &a, const Wish &b) {
    return std::tuple(-a.bytes, a.factor, ArrayRef(a.axes)) < std::tuple(-b.bytes, b.factor, ArrayRef(b.axes));
  });
  llvm::SmallDenseSet<unsigned> used;
  for (Wish &wish : wishes) {
    if (!cut.axes[wish.factor].empty())
      continue;
    // As many axes as are free and fit, from the first on.
    Axes axes;
    for (unsigned axis : wish.axes) {
      axes.push_back(axis);
      if (used.contains(axis) || !mayCut(*rule, wish.factor, axes)) {
        axes.pop_back();
        break;
      }
    }
    used.insert(axes.begin(), axes.end());
    cut.axes[wish.factor] = std::move(axes);
  }
  return cut;
}

bool Propagation::follow(Operation *op) {
  const op::ShardingRule *rule = ruleOf(op);
  if (!rule)
    return false;
  const Cut cut = cutOf(op);
  if (!cut.isCut())
    return false;
  bool changed = false;
  for (auto [dims, value] : llvm::zip_equal(rule->operands, op->getOperands()))
    changed |= propose(value, shardingOf(dims, cut));
  for (auto [dims, value] : llvm::zip_equal(rule->results, op->getResults()))
    changed |= propose(value, shardingOf(dims, cut));
  return changed;
}

LogicalResult Propagation::run() {
  if (failed(annotate()))
    return failure();
  Block &block = main.getBody().front();
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation &op : block)
      changed |= follow(&op);
    for (Operation &op : llvm::reverse(block))
      changed |= follow(&op);
  }
  return success();
}

} // namespace tressel::passes
