#include "passes/shard/Bodies.h"

#include "passes/Util.h"

#include "ir/graph/Graph.h"
#include "ir/op/LoopForm.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;

namespace tressel::passes {

using op::ScalarOp;

/// Whether the scalar program is linear in these operands: classifies its nodes as independent of them, linear in them,
/// or neither.
static bool isLinear(const op::ScalarProgram &body, llvm::function_ref<bool(unsigned)> operands) {
  enum class Kind : uint8_t { Other, Linear, Neither };
  std::vector<Kind> kinds;
  for (const op::ScalarNode &node : body.nodes) {
    SmallVector<Kind, 3> args;
    for (int32_t arg : node.args)
      if (arg >= 0)
        args.push_back(kinds[static_cast<size_t>(arg)]);
    const bool hasLinear = llvm::is_contained(args, Kind::Linear);
    Kind kind = llvm::is_contained(args, Kind::Neither) || hasLinear ? Kind::Neither : Kind::Other;
    if (node.op == ScalarOp::Operand)
      kind = operands(static_cast<unsigned>(node.i)) ? Kind::Linear : Kind::Other;
    else if (kind == Kind::Neither && !llvm::is_contained(args, Kind::Neither) && isFloat(node.dtype))
      switch (node.op) {
      case ScalarOp::Add:
      case ScalarOp::Sub:
        kind = args[0] == args[1] ? Kind::Linear : Kind::Neither;
        break;
      case ScalarOp::Neg:
      case ScalarOp::Cast:
        kind = Kind::Linear;
        break;
      case ScalarOp::Mul:
        kind = args[0] != args[1] ? Kind::Linear : Kind::Neither;
        break;
      case ScalarOp::Div:
        kind = args[1] == Kind::Other ? Kind::Linear : Kind::Neither;
        break;
      case ScalarOp::Select:
        kind = args[0] == Kind::Other && args[1] == args[2] ? Kind::Linear : Kind::Neither;
        break;
      default:
        break;
      }
    kinds.push_back(kind);
  }
  return body.result >= 0 && kinds[static_cast<size_t>(body.result)] == Kind::Linear;
}

bool isLinearIn(Operation *op, llvm::function_ref<bool(unsigned)> operands) {
  const op::OpInfo *info = graph::infoOf(op);
  if (!info || info->hasEffects || op->getNumResults() != 1)
    return false;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (operands(i) && !isFloat(graph::fromMlir(op->getOperand(i).getType()).dtype))
      return false;
  if (info->isView)
    return operands(0);
  const std::optional<op::LoopForm> form = loopFormOf(op);
  if (!form || (form->combine != op::Combine::None && form->combine != op::Combine::Sum))
    return false;
  if (form->alternatives) // each element comes from one of several operands
    return llvm::all_of(llvm::seq(0u, op->getNumOperands()), operands);
  for (auto [i, map] : llvm::enumerate(form->operands)) // each rank would add what it reads out of bounds
    if (operands(static_cast<unsigned>(i)) && map.guarded && map.outside != 0)
      return false;
  return isLinear(form->body, operands);
}

namespace {

class Analysis {
public:
  Analysis(graph::ScanOp scan, llvm::function_ref<const op::ShardingRule *(Operation *)> ruleOf)
      : scan(scan), body(scan.getBody().front()), ruleOf(ruleOf) {}

  BodyRule run() {
    linkEnds();
    for (Operation &op : body.without_terminator())
      follow(op);
    settle();
    keepApart();
    for (auto &[number, ops] : reductions())
      checkTerms(number, ops);
    return take();
  }

private:
  unsigned numberOf(Value value, unsigned d) {
    auto [at, isNew] = dims.try_emplace({value, d}, count);
    if (isNew)
      classes.insert(count++);
    return at->second;
  }
  unsigned find(unsigned number) const { return classes.getLeaderValue(number); }
  void join(unsigned a, unsigned b) { classes.unionSets(a, b); }
  void keepWhole(unsigned number) { whole.insert(isSettled ? find(number) : number); }
  void keepWhole(Value value) {
    for (unsigned d = 0; d < rankOf(value); ++d)
      keepWhole(numberOf(value, d));
  }
  bool isWhole(unsigned number) const { return whole.contains(find(number)); }
  /// Fixes the classes; nothing is joined afterwards.
  void settle() {
    llvm::DenseSet<unsigned> leaders;
    for (unsigned number : whole)
      leaders.insert(find(number));
    whole = std::move(leaders);
    isSettled = true;
  }
  static unsigned rankOf(Value value) {
    return static_cast<unsigned>(cast<RankedTensorType>(value.getType()).getRank());
  }
  /// Joins the dimensions of `a`, from `from` on, with those of `b`.
  void link(Value a, unsigned from, Value b) {
    for (unsigned d = 0; d < rankOf(b); ++d)
      join(numberOf(a, d + from), numberOf(b, d));
    for (unsigned d = 0; d < from; ++d)
      keepWhole(numberOf(a, d));
  }

  /// Joins operands and results of the scan with arguments and yields of its body.
  void linkEnds() {
    Operation *yield = body.getTerminator();
    const unsigned numCarried = static_cast<unsigned>(scan.getCarried().size()),
                   numSlices = static_cast<unsigned>(scan.getSlices().size());
    keepWhole(body.getArgument(0));
    for (unsigned i = 0; i < numCarried; ++i) {
      link(scan.getCarried()[i], 0, body.getArgument(1 + i));
      link(scan.getResult(i), 0, body.getArgument(1 + i));
      link(yield->getOperand(i), 0, body.getArgument(1 + i));
    }
    for (unsigned i = 0; i < numSlices; ++i)
      link(scan.getSlices()[i], 1, body.getArgument(1 + numCarried + i));
    for (auto [i, value] : llvm::enumerate(scan.getInvariants()))
      link(value, 0, body.getArgument(1 + numCarried + numSlices + static_cast<unsigned>(i)));
    for (unsigned i = numCarried; i < scan.getNumResults(); ++i)
      link(scan.getResult(i), 1, yield->getOperand(i));
  }

  void follow(Operation &op) {
    if (op.hasTrait<OpTrait::ConstantLike>()) {
      DenseElementsAttr value;
      if (!matchPattern(&op, m_Constant(&value)) || !value.isSplat())
        keepWhole(op.getResult(0));
      return;
    }
    const op::ShardingRule *rule = op.getNumRegions() == 0 ? ruleOf(&op) : nullptr;
    if (!rule) {
      for (Value value : op.getOperands())
        keepWhole(value);
      for (Value value : op.getResults())
        keepWhole(value);
      return;
    }
    SmallVector<unsigned> &own = factors[&op];
    for (const op::ShardingRule::Factor &factor : rule->factors) {
      own.push_back(count);
      classes.insert(count++);
      const bool mayReduce =
          factor.combine == op::Combine::Sum && rule->onceOperand < 0 && !graph::infoOf(&op)->isMean;
      if (factor.isWhole || factor.fromParts || rule->firstAttr >= 0 ||
          (factor.combine != op::Combine::None && !mayReduce))
        keepWhole(own.back());
    }
    leastPart = std::max(leastPart, rule->leastPart);
    auto relate = [&](const std::vector<op::ShardingRule::Dims> &all, ValueRange values) {
      for (auto [list, value] : llvm::zip_equal(all, values))
        for (auto [d, of] : llvm::enumerate(list)) {
          const unsigned dim = numberOf(value, static_cast<unsigned>(d));
          if (of.empty())
            keepWhole(dim);
          else
            join(dim, own[static_cast<size_t>(of.front())]);
          for (int inner : llvm::drop_begin(of, std::min<size_t>(1, of.size())))
            keepWhole(own[static_cast<size_t>(inner)]);
        }
    };
    relate(rule->operands, op.getOperands());
    relate(rule->results, op.getResults());
  }

  /// Two dimensions of one value must not be cut along the same axes.
  void keepApart() {
    llvm::DenseMap<std::pair<Value, unsigned>, unsigned> seen; // by value and factor
    for (const auto &[at, number] : dims)
      if (!seen.try_emplace({at.first, find(number)}, at.second).second)
        keepWhole(number);
  }

  /// The ops that reduce over each factor.
  llvm::MapVector<unsigned, SmallVector<Operation *>> reductions() {
    llvm::MapVector<unsigned, SmallVector<Operation *>> found;
    for (Operation &op : body.without_terminator())
      if (auto own = factors.find(&op); own != factors.end())
        for (auto [factor, number] : llvm::zip_equal(ruleOf(&op)->factors, own->second))
          if (factor.combine != op::Combine::None)
            found[find(number)].push_back(&op);
    return found;
  }

  /// Marks the values that hold terms of sums over the factor: the results of `ops`, and all that is computed from
  /// them. If one of these is not linear in its terms, or has the factor as a dimension, the factor stays whole.
  void checkTerms(unsigned factor, ArrayRef<Operation *> ops) {
    if (isWhole(factor))
      return;
    llvm::SetVector<Value> terms;
    for (Operation *op : ops)
      terms.insert(op->result_begin(), op->result_end());
    Operation *yield = body.getTerminator();
    const unsigned numCarried = static_cast<unsigned>(scan.getCarried().size());
    for (size_t k = 0; k < terms.size(); ++k)
      for (OpOperand &use : terms[k].getUses())
        if (use.getOwner() != yield)
          terms.insert(use.getOwner()->result_begin(), use.getOwner()->result_end());
        else if (use.getOperandNumber() < numCarried)
          terms.insert(body.getArgument(1 + use.getOperandNumber()));
    auto isTerm = [&](Value value) { return terms.contains(value); };
    const bool holds =
        llvm::all_of(terms, [&](Value value) {
          for (unsigned d = 0; d < rankOf(value); ++d)
            if (find(numberOf(value, d)) == factor)
              return false;
          if (auto argument = dyn_cast<BlockArgument>(value)) { // a carried value, which must begin with zero
            const unsigned i = argument.getArgNumber() - 1;
            return isTerm(yield->getOperand(i)) && isZero(scan.getCarried()[i]);
          }
          Operation *op = value.getDefiningOp();
          const bool reduces = llvm::is_contained(ops, op);
          return reduces ? llvm::none_of(op->getOperands(), isTerm)
                         : isLinearIn(op, [&](unsigned i) { return isTerm(op->getOperand(i)); });
        });
    if (!holds)
      return keepWhole(factor);
    for (unsigned i = 0; i < scan.getNumResults(); ++i)
      if (isTerm(yield->getOperand(i)))
        termsOf.push_back({factor, i});
    reduced.insert(factor);
  }
  /// Whether a value is zero everywhere.
  static bool isZero(Value value) {
    DenseElementsAttr elements;
    if (matchPattern(value, m_Constant(&elements)))
      return elements.isSplat() && isa<FloatType>(elements.getElementType()) &&
             elements.getSplatValue<APFloat>().isPosZero();
    Operation *def = value.getDefiningOp(); // a constant, or an op that fills a tensor with one
    const std::optional<op::LoopForm> form = def ? loopFormOf(def) : std::nullopt;
    if (!form || !form->operands.empty() || form->body.result < 0)
      return false;
    const op::ScalarNode *node = &form->body.nodes[static_cast<size_t>(form->body.result)];
    while (node->op == ScalarOp::Cast)
      node = &form->body.nodes[static_cast<size_t>(node->args[0])];
    return node->op == ScalarOp::Const && (isFloat(node->dtype) ? node->f == 0 && !std::signbit(node->f) : node->i == 0);
  }

  BodyRule take() {
    BodyRule made;
    made.rule.isEven = true;
    made.rule.leastPart = leastPart;
    made.rule.terms.resize(scan.getNumResults());
    llvm::DenseMap<unsigned, int> places;
    auto placeOf = [&](unsigned number, Size size) {
      auto [at, isNew] = places.try_emplace(find(number), static_cast<int>(made.rule.factors.size()));
      if (isNew)
        made.rule.factors.push_back({size, reduced.contains(find(number)) ? op::Combine::Sum : op::Combine::None,
                                     isWhole(number)});
      return at->second;
    };
    auto dimsOf = [&](ValueRange values) {
      std::vector<op::ShardingRule::Dims> all;
      for (Value value : values) {
        op::ShardingRule::Dims &list = all.emplace_back(rankOf(value));
        const Shape shape = graph::fromMlir(value.getType()).shape;
        for (unsigned d = 0; d < list.size(); ++d)
          if (const unsigned number = numberOf(value, d); !isWhole(number))
            list[d] = {placeOf(number, shape[static_cast<int>(d)])};
      }
      return all;
    };
    made.rule.operands = dimsOf(scan.getOperands());
    made.rule.results = dimsOf(scan.getResults());
    for (auto [factor, result] : termsOf)
      if (auto at = places.find(find(factor)); at != places.end())
        made.rule.terms[result].push_back(at->second);
    for (auto [at, number] : dims)
      if (at.first.getParentBlock() == &body) {
        SmallVector<int, 4> &of = made.dimsOf[at.first];
        of.resize(rankOf(at.first), -1);
        if (auto place = places.find(find(number)); place != places.end())
          of[at.second] = place->second;
      }
    for (auto &[op, own] : factors) {
      SmallVector<int, 4> &of = made.factorsOf[op];
      for (unsigned number : own) {
        auto at = places.find(find(number));
        of.push_back(at == places.end() ? -1 : at->second);
      }
    }
    return made;
  }

  graph::ScanOp scan;
  Block &body;
  llvm::function_ref<const op::ShardingRule *(Operation *)> ruleOf;
  unsigned count = 0;
  llvm::EquivalenceClasses<unsigned> classes; ///< of dimensions, and of factors of the body's ops
  llvm::DenseMap<std::pair<Value, unsigned>, unsigned> dims;
  llvm::DenseMap<Operation *, SmallVector<unsigned>> factors;
  llvm::DenseSet<unsigned> whole, reduced; ///< by leader of a class, once classes are fixed
  bool isSettled = false;
  SmallVector<std::pair<unsigned, unsigned>> termsOf; ///< factor, and result of the scan
  int leastPart = 1;
};

} // namespace

BodyRule ruleOfBody(graph::ScanOp scan, llvm::function_ref<const op::ShardingRule *(Operation *)> ruleOf) {
  return Analysis(scan, ruleOf).run();
}

} // namespace tressel::passes
