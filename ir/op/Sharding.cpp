// Sharding rules: those that records name, and the two general ones, derived from an op's loop form or decomposition.
#include "ir/op/ShardingRule.h"

#include "ir/op/Expr.h"
#include "ir/op/Infer.h"
#include "ir/op/TableSupport.h"

#include <algorithm>
#include <numeric>

namespace tressel::op {

namespace {
using Factor = ShardingRule::Factor;

/// Builds a rule.
class RuleBuilder {
public:
  RuleBuilder(std::span<const TensorType> operands, std::span<const TensorType> results) {
    for (const TensorType &t : operands)
      rule.operands.emplace_back(t.shape.size());
    for (const TensorType &t : results)
      rule.results.emplace_back(t.shape.size());
  }
  int factor(Size size, Combine combine = Combine::None) {
    rule.factors.push_back({size, combine});
    return static_cast<int>(rule.factors.size()) - 1;
  }
  int whole(Size size) {
    rule.factors.push_back({size, Combine::None, true});
    return static_cast<int>(rule.factors.size()) - 1;
  }
  void operand(size_t i, int dim, int factor) { rule.operands[i][static_cast<size_t>(dim)].push_back(factor); }
  void result(size_t i, int dim, int factor) { rule.results[i][static_cast<size_t>(dim)].push_back(factor); }
  ShardingRule rule;
};
} // namespace

ShardingRule shardingWhole(const OpInfo &, std::span<const TensorType> operands, std::span<const TensorType> results,
                           const Attrs &) {
  RuleBuilder b(operands, results);
  for (size_t i = 0; i < results.size(); ++i)
    for (int d = 0; d < results[i].rank(); ++d)
      b.result(i, d, b.whole(results[i].shape[d]));
  return b.rule;
}

/// Whether an index expression is exactly one dimension of the domain.
static bool isDimension(const IndexExpr &expr) {
  return expr.terms.size() == 1 && expr.terms[0].coef == 1 && expr.offset == 0 && expr.indirect < 0;
}

ShardingRule shardingOfLoop(const OpInfo &op, std::span<const TensorType> operands, std::span<const TensorType> results,
                            const Attrs &attrs) {
  const auto form = results.size() == 1 ? op.loopForm(op, operands, results, attrs) : std::nullopt;
  if (!form || form->operands.size() != operands.size())
    return shardingWhole(op, operands, results, attrs);
  RuleBuilder b(operands, results);
  const bool findsPlaces = form->combine == Combine::ArgMax || form->combine == Combine::ArgMin;
  for (size_t d = 0; d < form->domain.size(); ++d) {
    const bool reduced = d >= static_cast<size_t>(form->numParallel);
    b.factor(form->domain[d], reduced ? form->combine : Combine::None);
    b.rule.factors.back().isWhole = reduced && findsPlaces;
  }
  for (const ScalarNode &node : form->body.nodes)
    if (node.op == ScalarOp::Index) // its value depends on the position in the whole tensor
      b.rule.factors[static_cast<size_t>(node.i)].isWhole = true;
  for (int d = 0; d < form->numParallel; ++d)
    b.result(0, d, d);
  for (size_t i = 0; i < operands.size(); ++i) {
    std::vector<int> uses(form->domain.size(), 0);
    for (int d = 0; d < operands[i].rank(); ++d) {
      const IndexExpr &expr = form->operands[i].dims[static_cast<size_t>(d)];
      for (const IndexExpr::Term &term : expr.terms)
        ++uses[static_cast<size_t>(term.dim)];
      const bool fits =
          isDimension(expr) && dim::equal(operands[i].shape[d], form->domain[static_cast<size_t>(expr.terms[0].dim)]);
      if (fits)
        b.operand(i, d, expr.terms[0].dim);
      else
        for (const IndexExpr::Term &term : expr.terms)
          b.rule.factors[static_cast<size_t>(term.dim)].isWhole = true;
    }
    for (size_t d = 0; d < uses.size(); ++d)
      b.rule.factors[d].isWhole |= uses[d] > 1; // a diagonal: the dimension indexes an operand twice
  }
  b.rule.shapeAttr = op.attrIndex("shape");
  return b.rule;
}

ShardingRule shardingOfRandom(const OpInfo &op, std::span<const TensorType> operands,
                              std::span<const TensorType> results, const Attrs &attrs) {
  ShardingRule rule = shardingOfLoop(op, operands, results, attrs);
  if (!rule.factors.empty()) {
    rule.factors[0].isWhole = false; // a part of the rows has consecutive linear indices
    rule.firstAttr = op.attrIndex("first");
  }
  return rule;
}

ShardingRule shardingOfReshape(const OpInfo &op, std::span<const TensorType> operands,
                               std::span<const TensorType> results, const Attrs &) {
  const Shape &from = operands[0].shape, &to = results[0].shape;
  RuleBuilder b(operands, results);
  b.rule.shapeAttr = op.attrIndex("shape");
  if (!dim::isKnown(from) || !dim::isKnown(to))
    return shardingWhole(op, operands, results, {});
  // Finds runs of dimensions on both sides with the same number of elements. In each run one side is a single
  // dimension, or its factors are whole.
  for (int i = 0, j = 0; i < from.rank() || j < to.rank();) {
    const int firstFrom = i, firstTo = j;
    Size left = i < from.rank() ? from[i++] : Size(1), right = j < to.rank() ? to[j++] : Size(1);
    while (!dim::equal(left, right)) {
      const auto isLess = dim::less(left, right);
      const bool wantsLeft = isLess ? *isLess : dim::divideExactly(right, left).has_value();
      if (wantsLeft && i < from.rank())
        left *= from[i++];
      else if (j < to.rank())
        right *= to[j++];
      else if (i < from.rank())
        left *= from[i++];
      else
        break;
    }
    const int numFrom = i - firstFrom, numTo = j - firstTo;
    if (numFrom == 1 && dim::equal(left, right))
      for (int d = firstTo; d < j; ++d) {
        const int f = b.factor(to[d]);
        b.result(0, d, f);
        if (to[d] != 1)
          b.operand(0, firstFrom, f);
      }
    else if (numTo == 1 && dim::equal(left, right))
      for (int d = firstFrom; d < i; ++d) {
        if (from[d] == 1)
          continue;
        const int f = b.factor(from[d]);
        b.operand(0, d, f);
        b.result(0, firstTo, f);
      }
    else
      for (int d = firstTo; d < j; ++d)
        b.result(0, d, b.whole(to[d]));
    // A dimension with several factors can only be cut along the outermost one.
    for (ShardingRule::Dims *dims : {&b.rule.operands[0], &b.rule.results[0]})
      for (std::vector<int> &list : *dims)
        for (size_t k = 1; k < list.size(); ++k)
          b.rule.factors[static_cast<size_t>(list[k])].isWhole = true;
  }
  for (int d = 0; d < to.rank(); ++d)
    if (b.rule.results[0][static_cast<size_t>(d)].empty())
      b.result(0, d, b.whole(to[d]));
  return b.rule;
}

ShardingRule shardingAlongAxis(const OpInfo &op, std::span<const TensorType> operands,
                               std::span<const TensorType> results, const Attrs &attrs) {
  const int rank = operands[0].rank(),
            axis = *normalizeAxis(integer(attrs[static_cast<size_t>(op.attrIndex("axis"))]), rank);
  RuleBuilder b(operands, results);
  for (int d = 0; d < rank; ++d) {
    const int f = d == axis ? -1 : b.factor(operands[0].shape[d]);
    if (f >= 0)
      b.operand(0, d, f);
    for (size_t r = 0; r < results.size(); ++r)
      b.result(r, d, f >= 0 ? f : b.whole(results[r].shape[d]));
  }
  return b.rule;
}

ShardingRule shardingPutAlongAxis(const OpInfo &, std::span<const TensorType> operands,
                                  std::span<const TensorType> results, const Attrs &attrs) {
  const Shape &x = operands[0].shape;
  const int rank = x.rank(), axis = *normalizeAxis(integer(attrs[0]), rank);
  RuleBuilder b(operands, results);
  for (int d = 0; d < rank; ++d) {
    const int f = d == axis ? b.whole(x[d]) : b.factor(x[d]);
    b.result(0, d, f);
    if (d == axis)
      continue;
    for (size_t i = 0; i < 3; ++i) // the others broadcast to x
      if (const int own = d - rank + operands[i].rank(); own >= 0 && dim::equal(operands[i].shape[own], x[d]))
        b.operand(i, own, f);
  }
  return b.rule;
}

ShardingRule shardingGatherNd(const OpInfo &, std::span<const TensorType> operands, std::span<const TensorType> results,
                              const Attrs &attrs) {
  const Shape &x = operands[0].shape, &indices = operands[1].shape;
  const int batch = static_cast<int>(integer(attrs[0])), depth = static_cast<int>(indices.back().number());
  RuleBuilder b(operands, results);
  int at = 0;
  for (int d = 0; d + 1 < indices.rank(); ++d) {
    const int f = b.factor(indices[d]);
    b.operand(1, d, f);
    if (d < batch)
      b.operand(0, d, f);
    b.result(0, at++, f);
  }
  for (int d = batch + depth; d < x.rank(); ++d) {
    const int f = b.factor(x[d]);
    b.operand(0, d, f);
    b.result(0, at++, f);
  }
  return b.rule;
}

ShardingRule shardingScatterNd(const OpInfo &, std::span<const TensorType> operands,
                               std::span<const TensorType> results, const Attrs &attrs) {
  const Shape &x = operands[0].shape, &indices = operands[1].shape;
  const int depth = static_cast<int>(indices.back().number()), lead = indices.rank() - 1;
  RuleBuilder b(operands, results);
  for (int d = 0; d < x.rank(); ++d) {
    const int f = d < depth ? b.whole(x[d]) : b.factor(x[d]);
    b.result(0, d, f);
    if (d < depth)
      continue;
    b.operand(0, d, f);
    b.operand(2, lead + d - depth, f);
  }
  if (std::get<std::string>(attrs[0]) == "add") { // updates of several ranks are added up
    b.rule.onceOperand = 0;
    for (int d = 0; d < lead; ++d) {
      const int f = b.factor(indices[d], operands[0].dtype == DType::boolean ? Combine::Any : Combine::Sum);
      b.operand(1, d, f);
      b.operand(2, d, f);
    }
  }
  return b.rule;
}

ShardingRule shardingOfSqueeze(const OpInfo &op, std::span<const TensorType> operands,
                               std::span<const TensorType> results, const Attrs &attrs) {
  ShardingRule rule = shardingOfReshape(op, operands, results, attrs);
  if (!maybeInts(attrs[0]))
    rule.leastPart = 2; // a part of size 1 would be squeezed as well
  return rule;
}

/// dynamic_slice and dynamic_update_slice: a dimension read or written as a whole can only start at 0, so it may be
/// cut.
ShardingRule shardingOfWindow(const OpInfo &, std::span<const TensorType> operands, std::span<const TensorType> results,
                              const Attrs &) {
  const bool updates = operands.size() > 2;
  const Shape &x = operands[0].shape, &window = updates ? operands[1].shape : results[0].shape;
  RuleBuilder b(operands, results);
  for (int d = 0; d < x.rank(); ++d) {
    const bool isAll = dim::equal(x[d], window[d]) && updates; // of the other op, the window's sizes are an attribute
    const int f = isAll ? b.factor(x[d]) : b.whole(results[0].shape[d]);
    b.result(0, d, f);
    if (isAll) {
      b.operand(0, d, f);
      b.operand(1, d, f);
    }
  }
  return b.rule;
}

/// Convolutions without a loop form (several groups) are only cut along the batch. `sums`: the op sums over it.
static ShardingRule ofImages(const OpInfo &op, std::span<const TensorType> operands,
                             std::span<const TensorType> results, bool sums) {
  ShardingRule rule = shardingWhole(op, operands, results, {});
  if (sums) {
    rule.factors.push_back({operands[0].shape[0], Combine::Sum});
    const int f = static_cast<int>(rule.factors.size()) - 1;
    rule.operands[0][0] = rule.operands[1][0] = {f};
  } else {
    const int f = rule.results[0][0][0];
    rule.factors[static_cast<size_t>(f)].isWhole = false;
    rule.operands[0][0] = {f};
  }
  return rule;
}

ShardingRule shardingOfConv(const OpInfo &op, std::span<const TensorType> operands, std::span<const TensorType> results,
                            const Attrs &attrs) {
  if (op.loopForm(op, operands, results, attrs))
    return shardingOfLoop(op, operands, results, attrs);
  return ofImages(op, operands, results, op.family == Family::ConvolutionByWeights);
}

ShardingRule shardingOfConvByData(const OpInfo &op, std::span<const TensorType> operands,
                                  std::span<const TensorType> results, const Attrs &attrs) {
  ShardingRule rule = ofImages(op, operands, results, false);
  if (integer(attrs[static_cast<size_t>(op.attrIndex("groups"))]) != 1)
    return rule;
  // x [n, c, ...] and w [c, f, ...] give [n, f, ...]: a sum over c.
  const int channels = imageDims(op, attrs, operands[0].rank()).channels;
  const int f = rule.results[0][static_cast<size_t>(channels)][0];
  rule.factors[static_cast<size_t>(f)].isWhole = false;
  rule.operands[1][1] = {f};
  rule.factors.push_back({operands[1].shape[0], Combine::Sum});
  rule.operands[0][static_cast<size_t>(channels)] = rule.operands[1][0] = {static_cast<int>(rule.factors.size()) - 1};
  return rule;
}

namespace {
/// Runs a decomposition on types, and joins dimensions that must be cut together into classes.
class FactorTracer : public Emitter {
public:
  struct Traced {
    TensorType type;
    std::vector<std::vector<int>> dims; ///< class of each dimension
  };
  Ref input(const TensorType &type) {
    Traced value{type, {}};
    for (Size size : type.shape)
      value.dims.push_back({fresh(size)});
    return add(std::move(value));
  }
  std::vector<Ref> emit(const OpInfo &op, std::span<const Ref> inputs, const Attrs &attrs) override {
    std::vector<TensorType> operands;
    for (Ref input : inputs)
      operands.push_back(at(input).type);
    Attrs complete = attrs;
    completeAttrs(op, complete);
    const Inferred inferred = op.infer(op, operands, complete);
    const ShardingRule rule = shardingOf(op, operands, inferred.types, complete);
    std::vector<int> classOf; // class of each factor of the op
    for (const Factor &f : rule.factors) {
      classOf.push_back(fresh(f.size));
      Class &made = classes_[static_cast<size_t>(classOf.back())];
      made.isReduced = f.combine != Combine::None || f.fromParts;
      made.isWhole = f.isWhole || rule.firstAttr >= 0;
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      for (size_t d = 0; d < at(inputs[i]).dims.size(); ++d) {
        const std::vector<int> &have = at(inputs[i]).dims[d], &wanted = rule.operands[i][d];
        const bool fits = have.size() == wanted.size();
        for (size_t k = 0; fits && k < have.size(); ++k)
          unite(have[k], classOf[static_cast<size_t>(wanted[k])]);
        if (!fits && operands[i].shape[static_cast<int>(d)] != 1) {
          for (int c : have)
            keepWhole(c);
          for (int f : wanted)
            keepWhole(classOf[static_cast<size_t>(f)]);
        }
      }
    std::vector<Ref> results;
    for (size_t r = 0; r < inferred.types.size(); ++r) {
      Traced value{inferred.types[r], rule.results[r]};
      for (std::vector<int> &list : value.dims)
        for (int &f : list)
          f = classOf[static_cast<size_t>(f)];
      results.push_back(add(std::move(value)));
    }
    return results;
  }
  Ref constant(double, DType type) override { return add({{type, {}}, {}}); }
  Ref constant(const HostTensor &value) override {
    const Ref ref = input(value.type);
    for (const std::vector<int> &list : at(ref).dims)
      keepWhole(list[0]);
    return ref;
  }
  TensorType typeOf(Ref value) override { return at(value).type; }

  const Traced &at(Ref ref) const { return values_[reinterpret_cast<uintptr_t>(ref) - 1]; }
  int rootOf(int c) const {
    while (classes_[static_cast<size_t>(c)].parent != c)
      c = classes_[static_cast<size_t>(c)].parent;
    return c;
  }
  /// `fromParts`: the traced op can be computed from results of its parts.
  Factor factorOf(int root, bool fromParts) const {
    const Class &c = classes_[static_cast<size_t>(root)];
    return {c.size, Combine::None, c.isWhole || (c.isReduced && !fromParts), c.isReduced && !c.isWhole && fromParts};
  }

private:
  struct Class {
    int parent;
    Size size;
    bool isWhole = false, isReduced = false;
  };
  int fresh(Size size) {
    classes_.push_back({static_cast<int>(classes_.size()), size});
    return classes_.back().parent;
  }
  void keepWhole(int c) { classes_[static_cast<size_t>(rootOf(c))].isWhole = true; }
  void unite(int a, int b) {
    a = rootOf(a), b = rootOf(b);
    if (a == b)
      return;
    classes_[static_cast<size_t>(a)].isWhole |=
        classes_[static_cast<size_t>(b)].isWhole ||
        !dim::equal(classes_[static_cast<size_t>(a)].size, classes_[static_cast<size_t>(b)].size);
    classes_[static_cast<size_t>(a)].isReduced |= classes_[static_cast<size_t>(b)].isReduced;
    classes_[static_cast<size_t>(b)].parent = a;
  }
  Ref add(Traced value) {
    values_.push_back(std::move(value));
    return reinterpret_cast<Ref>(values_.size());
  }
  std::vector<Traced> values_;
  std::vector<Class> classes_;
};
} // namespace

ShardingRule shardingOfDecomposition(const OpInfo &op, std::span<const TensorType> operands,
                                     std::span<const TensorType> results, const Attrs &attrs) {
  if (!op.decompose || op.attrIndex("shape") >= 0 || op.attrIndex("sizes") >= 0)
    return shardingWhole(op, operands, results, attrs);
  FactorTracer tracer;
  std::vector<Emitter::Ref> inputs, outputs;
  for (const TensorType &t : operands)
    inputs.push_back(tracer.input(t));
  outputs = op.decompose(op, tracer, inputs, attrs);
  RuleBuilder b(operands, results);
  std::vector<std::pair<int, int>> known; // class leaders and their factors
  auto factorOf = [&](int c) {
    const int root = tracer.rootOf(c);
    for (auto [other, factor] : known)
      if (other == root)
        return factor;
    b.rule.factors.push_back(tracer.factorOf(root, op.fromParts != nullptr));
    known.push_back({root, static_cast<int>(b.rule.factors.size()) - 1});
    return known.back().second;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    for (int d = 0; d < operands[i].rank(); ++d) {
      const int f = factorOf(tracer.at(inputs[i]).dims[static_cast<size_t>(d)][0]);
      if (!b.rule.factors[static_cast<size_t>(f)].isWhole)
        b.operand(i, d, f);
    }
  for (size_t r = 0; r < outputs.size(); ++r)
    for (int d = 0; d < results[r].rank(); ++d) {
      const std::vector<int> &list = tracer.at(outputs[r]).dims[static_cast<size_t>(d)];
      if (list.size() == 1) {
        b.result(r, d, factorOf(list[0]));
        continue;
      }
      for (int c : list)
        b.rule.factors[static_cast<size_t>(factorOf(c))].isWhole = true;
      b.result(r, d, b.whole(results[r].shape[d]));
    }
  // Dimensions may be tied only through attributes with sizes that the decomposition reads. Decomposing with half of a
  // factor's size shows that.
  for (size_t f = 0; f < b.rule.factors.size(); ++f) {
    auto half = [&](std::span<const TensorType> types, const std::vector<ShardingRule::Dims> &dims) {
      std::vector<TensorType> parts(types.begin(), types.end());
      for (size_t i = 0; i < parts.size(); ++i)
        for (int d = 0; d < parts[i].rank(); ++d)
          if (const std::vector<int> &list = dims[i][static_cast<size_t>(d)];
              !list.empty() && list[0] == static_cast<int>(f))
            parts[i].shape[d] = dim::ceilDiv(parts[i].shape[d], 2);
      return parts;
    };
    Factor &factor = b.rule.factors[f];
    if (factor.isWhole || factor.size == 1)
      continue;
    const Inferred inferred = inferTypes(op, half(operands, b.rule.operands), attrs);
    factor.isWhole = !inferred || inferred.types != half(results, b.rule.results);
  }
  return b.rule;
}

ShardingRule shardingOf(const OpInfo &op, std::span<const TensorType> operands, std::span<const TensorType> results,
                        const Attrs &attrs) {
  return (op.sharding ? op.sharding : shardingWhole)(op, operands, results, attrs);
}

} // namespace tressel::op
