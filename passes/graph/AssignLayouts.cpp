#include "passes/graph/MinCut.h"
#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/op/Infer.h"
#include "tressel/runtime/Dim.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <numeric>

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "passes/Passes.h.inc"

namespace {

/// A permutation: dimension i of the value in this order is dimension order[i] of the original value.
using Order = op::Ints;

Order same(int rank) {
  Order order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}
bool isSame(const Order &order) { return std::ranges::is_sorted(order); }

/// The order that moves dimension `dim` to the end.
Order lastOrder(int rank, int dim) {
  Order order = same(rank);
  std::rotate(order.begin() + dim, order.begin() + dim + 1, order.end());
  return order;
}

/// Composition: the order, relative to the original value, of a value in order `first` that is then permuted by
/// `second`.
Order composed(const Order &first, const Order &second) {
  Order order;
  for (int64_t d : second)
    order.push_back(first[static_cast<size_t>(d)]);
  return order;
}

Order inverse(const Order &order) {
  Order result(order.size());
  for (auto [i, d] : llvm::enumerate(order))
    result[static_cast<size_t>(d)] = static_cast<int64_t>(i);
  return result;
}

/// The order without dimensions of size 1, which do not affect where elements lie in memory.
Order essence(const Shape &shape, const Order &order) {
  Order essential;
  for (int64_t d : order)
    if (shape[static_cast<int>(d)] != 1)
      essential.push_back(d);
  return essential;
}

Shape permuted(const Shape &shape, const Order &order) {
  Shape result;
  for (int64_t d : order)
    result.push_back(shape[static_cast<int>(d)]);
  return result;
}

TensorType typeOf(Value v) { return graph::fromMlir(v.getType()); }

/// The type with leading dimensions of size 1 up to `rank`.
TensorType padded(TensorType type, size_t rank) {
  Shape shape;
  for (size_t i = type.shape.size(); i < rank; ++i)
    shape.push_back(1);
  for (Size size : type.shape)
    shape.push_back(size);
  return {type.dtype, shape};
}

/// The type of an operand in an order; an empty order leaves it unchanged.
TensorType inOrder(TensorType type, const Order &order) {
  if (order.empty())
    return type;
  type = padded(type, order.size());
  type.shape = permuted(type.shape, order);
  return type;
}

/// A splat constant in an order; null if `v` is no splat.
Value splatInOrder(OpBuilder &b, Value v, const Order &order) {
  DenseElementsAttr splat;
  if (!matchPattern(v, m_Constant(&splat)) || !splat.isSplat())
    return {};
  const RankedTensorType type = graph::toMlir(b.getContext(), inOrder(typeOf(v), order));
  return v.getDefiningOp()
      ->getDialect()
      ->materializeConstant(b, splat.resizeSplat(type), type, v.getLoc())
      ->getResult(0);
}

/// The value behind a chain of transposes, and the order that these make of it.
struct Source {
  Value base;
  Order order;
};
Source sourceOf(Value v) {
  Source source{v, same(typeOf(v).rank())};
  while (Operation *def = source.base.getDefiningOp()) {
    std::optional<Order> order = permutationOf(def);
    if (!order)
      break;
    source = {def->getOperand(0), composed(*order, source.order)};
  }
  return source;
}

/// An op that can run with the dimension of channels last.
struct Choice {
  Operation *op;
  Order order;        ///< the order that makes channels its last dimension
  op::Reordered last; ///< the op rewritten for that order
  MinCut::Node node = MinCut::first;
  /// Whether its channels are the last dimension already.
  bool isLast() const { return isSame(order); }
};

/// Finds the ops around convolutions that can run with channels last, and the dimension of the channels in each value.
class Channels {
public:
  explicit Channels(Block &block) : block(block) {
    for (Operation &op : block)
      if (const op::OpInfo *info = graph::infoOf(&op); info && info->family == op::Family::Convolution && info->reorder) {
        const int rank = typeOf(op.getResult(0)).rank();
        choose(&op, op::imageDims(*info, graph::attrsOf(&op, *info), rank).channels);
      }
    while (!todo.empty()) {
      const auto [value, dim] = todo.pop_back_val();
      spread(value, dim);
    }
  }

  llvm::MapVector<Operation *, Choice> choices;

private:
  /// The rank of the op's iteration space, to which an order applies.
  static int orderRank(Operation *op, const op::OpInfo &info) {
    const bool reduces = info.family == op::Family::Reduction;
    return typeOf(reduces ? op->getOperand(0) : Value(op->getResult(0))).rank();
  }

  void note(Value value, int64_t dim) {
    // Matrices have no layout to choose, so networks of matrices are not visited.
    if (dim >= 0 && typeOf(value).rank() >= 3 && dims.try_emplace(value, static_cast<int>(dim)).second)
      todo.push_back({value, static_cast<int>(dim)});
  }

  void spread(Value value, int dim) {
    if (Operation *def = value.getDefiningOp(); def && def->getBlock() == &block) {
      if (std::optional<Order> order = permutationOf(def))
        note(def->getOperand(0), (*order)[static_cast<size_t>(dim)]);
      else
        chooseBy(def, [&](const op::Reordered &r) { return !r.result.empty() && r.result.back() == dim; }, dim);
    }
    for (Operation *user : value.getUsers()) {
      if (user->getBlock() != &block)
        continue;
      if (std::optional<Order> order = permutationOf(user)) {
        note(user->getResult(0), llvm::find(*order, dim) - order->begin());
        continue;
      }
      const auto operand = static_cast<size_t>(llvm::find(user->getOperands(), value) - user->operand_begin());
      const int64_t missing = [&]() -> int64_t {
        const op::OpInfo *info = graph::infoOf(user);
        return info && user->getNumResults() == 1 ? std::max(0, orderRank(user, *info) - typeOf(value).rank()) : 0;
      }();
      chooseBy(user,
               [&](const op::Reordered &r) {
                 const Order &order = r.operands[operand];
                 return !order.empty() &&
                        order.back() == dim + static_cast<int64_t>(order.size()) - typeOf(value).rank();
               },
               static_cast<int>(dim + missing));
    }
  }

  /// Registers the choice for the order that `fits`, if there is one. Most likely it is that with dimension `guess`
  /// last, which is tried first.
  void chooseBy(Operation *op, llvm::function_ref<bool(const op::Reordered &)> fits, int guess) {
    const op::OpInfo *info = graph::infoOf(op);
    if (!info || !info->reorder || info->hasEffects || op->getNumResults() != 1 || choices.contains(op))
      return;
    const int rank = orderRank(op, *info);
    SmallVector<int> tries{guess};
    for (int d = 0; d < rank; ++d)
      if (d != guess)
        tries.push_back(d);
    for (int d : tries)
      if (d < rank)
        if (std::optional<op::Reordered> r = reordered(op, *info, lastOrder(rank, d)); r && fits(*r))
          return choose(op, d);
  }

  void choose(Operation *op, int dim) {
    const op::OpInfo &info = *graph::infoOf(op);
    const Order order = lastOrder(orderRank(op, info), dim);
    std::optional<op::Reordered> r = reordered(op, info, order);
    if (!r || !isSound(op, info, *r))
      return;
    note(op->getResult(0), r->result.empty() ? -1 : r->result.back());
    for (auto [operand, wanted] : llvm::zip_equal(op->getOperands(), r->operands))
      if (!wanted.empty())
        note(operand, wanted.back() - static_cast<int64_t>(wanted.size()) + typeOf(operand).rank());
    choices.insert({op, Choice{op, order, std::move(*r)}});
  }

  static std::optional<op::Reordered> reordered(Operation *op, const op::OpInfo &info, const Order &order) {
    return info.reorder(info, tableTypes(op->getOperandTypes()), tableTypes(op->getResultTypes()),
                        graph::attrsOf(op, info), order);
  }

  /// Whether the reordered op infers the type that the record promises: with symbolic sizes it may not.
  static bool isSound(Operation *op, const op::OpInfo &info, const op::Reordered &r) {
    std::vector<TensorType> types;
    for (auto [operand, order] : llvm::zip_equal(op->getOperands(), r.operands))
      types.push_back(inOrder(typeOf(operand), order));
    const op::Inferred inferred = info.infer(info, types, r.attrs);
    TensorType wanted = typeOf(op->getResult(0));
    if (!r.result.empty())
      wanted.shape = permuted(wanted.shape, r.result);
    return inferred && inferred.types[0] == wanted;
  }

  Block &block;
  llvm::DenseMap<Value, int> dims;
  SmallVector<std::pair<Value, int>> todo;
};

/// Costs of ops and transposes, from the providers' bids.
class Costs {
public:
  Costs(const Providers &providers, const llvm::DenseSet<Value> &parameterOnly)
      : providers(providers), parameterOnly(parameterOnly) {}

  int64_t ofOp(Operation *op) const {
    return units(cheapestBid(providers, op, [&](Value v) { return parameterOnly.contains(v); }));
  }
  /// Cost of the op with channels last, with new values as operands.
  int64_t ofLast(const Choice &choice) const {
    Block scratch;
    OpBuilder b(choice.op->getContext());
    b.setInsertionPointToEnd(&scratch);
    SmallVector<Value> operands;
    llvm::DenseSet<Value> packable;
    for (auto [operand, order] : llvm::zip_equal(choice.op->getOperands(), choice.last.operands)) {
      operands.push_back(splatInOrder(b, operand, order));
      if (!operands.back())
        operands.back() = scratch.addArgument(graph::toMlir(b.getContext(), inOrder(typeOf(operand), order)),
                                              choice.op->getLoc());
      if (parameterOnly.contains(operand))
        packable.insert(operands.back());
    }
    Operation *op = graph::createOp(b, choice.op->getLoc(), *graph::infoOf(choice.op), operands, choice.last.attrs);
    return units(cheapestBid(providers, op, [&](Value v) { return packable.contains(v); }));
  }
  /// Cost of passing on `v` in order `to` when it is stored in order `from`. If only dimensions of size 1 move, it is a
  /// view, which still separates two kernels. A transpose costs twice its bid and some launches more: its bid does not
  /// show that it separates kernels, and small gains are within the error of bids.
  int64_t ofChange(Value v, const Order &from, const Order &to) {
    const Shape shape = typeOf(v).shape;
    if (parameterOnly.contains(v) || isInlineConstant(v))
      return 0;
    if (essence(shape, from) != essence(shape, to))
      return ofTransposing(v, to);
    return permuted(shape, from) == permuted(shape, to) ? 0 : kSeam;
  }
  int64_t ofTransposing(Value v, const Order &order) {
    if (parameterOnly.contains(v) || isInlineConstant(v))
      return 0;
    int64_t &cost = transposes[{v.getType(), order}];
    if (cost == 0) {
      Block scratch;
      OpBuilder b(v.getContext());
      b.setInsertionPointToEnd(&scratch);
      Operation *op = graph::createOp(b, v.getLoc(), *op::findOp("transpose"),
                                      Value(scratch.addArgument(v.getType(), v.getLoc())), {order});
      cost = std::min(MinCut::never, 2 * units(cheapestBid(providers, op, [](Value) { return false; })) + 4 * kSeam);
    }
    return cost;
  }

private:
  static constexpr int64_t kSeam = 500'000; ///< half a microsecond: a launch, and reading results from memory

  /// Picoseconds. Integers, so that sums do not depend on their order.
  static int64_t units(const std::optional<Bid> &bid) {
    constexpr double longest = 1e15;
    return bid ? static_cast<int64_t>(std::clamp(bid->seconds * 1e12, 1.0, longest)) : MinCut::never;
  }

  struct Less {
    bool operator()(const std::pair<Type, Order> &a, const std::pair<Type, Order> &b) const {
      return std::pair(a.first.getAsOpaquePointer(), std::ref(a.second).get()) <
             std::pair(b.first.getAsOpaquePointer(), std::ref(b.second).get());
    }
  };
  const Providers &providers;
  const llvm::DenseSet<Value> &parameterOnly;
  std::map<std::pair<Type, Order>, int64_t, Less> transposes;
};

/// Selects the ops that run with channels last by a minimum cut: the first side has original ops, the second those with
/// channels last.
class Decision {
public:
  Decision(Channels &channels, Costs &costs) : choices(channels.choices), costs(costs) {
    for (auto &[op, choice] : choices) {
      choice.node = cut.add();
      if (choice.isLast()) {
        cut.pay(choice.node, MinCut::second, MinCut::never);
      } else if (std::optional<op::LoopForm> form = loopFormOf(op); !form || !isPointParallel(*form)) {
        cut.pay(choice.node, MinCut::second, costs.ofOp(op));
        cut.pay(MinCut::first, choice.node, costs.ofLast(choice));
      }
    }
    for (auto &[op, choice] : choices) {
      needOperands(choice);
      needResult(choice);
    }
    for (const Version &version : versions)
      price(version);
    cut.solve();
  }
  bool takes(const Choice &choice) const { return !choice.isLast() && cut.isSecond(choice.node); }

private:
  /// A value in an order that some op reads.
  struct Version {
    Value base;
    Order order;
    SmallVector<MinCut::Node> whenFirst, whenSecond; ///< readers, by the side on which they read this version
  };

  void want(Value base, const Order &order, MinCut::Node by, bool whenSecond) {
    const auto [at, isNew] =
        places.try_emplace({base.getAsOpaquePointer(), order}, versions.size());
    if (isNew)
      versions.push_back({base, order, {}, {}});
    Version &version = versions[at->second];
    (whenSecond ? version.whenSecond : version.whenFirst).push_back(by);
  }

  void needOperands(const Choice &choice) {
    for (auto [operand, order] : llvm::zip_equal(choice.op->getOperands(), choice.last.operands)) {
      const TensorType type = typeOf(operand);
      if (order.size() > type.shape.size()) { // broadcast: aligned at the last dimensions
        const Shape wide = padded(type, order.size()).shape;
        if (!choice.isLast() && essence(wide, order) != essence(wide, same(wide.rank())))
          cut.pay(MinCut::first, choice.node, costs.ofTransposing(operand, same(type.rank())));
        continue;
      }
      const Source source = sourceOf(operand);
      if (!choice.isLast())
        want(source.base, source.order, choice.node, false);
      want(source.base, order.empty() ? source.order : composed(source.order, order), choice.node, true);
    }
  }

  /// Users without a choice read the result in its original order.
  void needResult(const Choice &choice) {
    const Value result = choice.op->getResult(0);
    SmallVector<Source> todo{{result, same(typeOf(result).rank())}};
    while (!todo.empty()) {
      const Source source = todo.pop_back_val();
      for (Operation *user : source.base.getUsers()) {
        if (std::optional<Order> order = permutationOf(user))
          todo.push_back({user->getResult(0), composed(source.order, *order)});
        else if (!choices.contains(user))
          want(result, source.order, MinCut::first, false);
      }
    }
  }

  void price(const Version &version) {
    const Value base = version.base;
    auto found = choices.find(base.getDefiningOp());
    const bool chosen = base.getDefiningOp() && found != choices.end();
    const Order asIs = same(typeOf(base).rank());
    const Order &last = chosen && !found->second.last.result.empty() ? found->second.last.result : asIs;
    const int64_t ofFirst = costs.ofChange(base, asIs, version.order),
                  ofSecond = costs.ofChange(base, last, version.order), ofEither = std::min(ofFirst, ofSecond);
    const MinCut::Node producer = chosen ? found->second.node : MinCut::first;
    // A node that is on the first side if some reader of this version is on the first side. It then costs the
    // conversion from the order of the producer's side. Likewise for the second side.
    if (!version.whenFirst.empty() && ofSecond > 0) {
      const MinCut::Node needed = cut.add();
      for (MinCut::Node node : version.whenFirst)
        cut.pay(node, needed, MinCut::never);
      cut.pay(needed, MinCut::second, ofEither);
      cut.pay(needed, producer, ofSecond - ofEither);
    }
    if (!version.whenSecond.empty() && ofFirst > 0) {
      const MinCut::Node needed = cut.add();
      for (MinCut::Node node : version.whenSecond)
        cut.pay(needed, node, MinCut::never);
      cut.pay(MinCut::first, needed, ofEither);
      cut.pay(producer, needed, ofFirst - ofEither);
    }
  }

  llvm::MapVector<Operation *, Choice> &choices;
  Costs &costs;
  MinCut cut;
  std::vector<Version> versions;
  std::map<std::pair<const void *, Order>, size_t> places;
};

class AssignLayouts : public impl::AssignLayoutsBase<AssignLayouts> {
public:
  explicit AssignLayouts(Providers providers) : providers(std::move(providers)) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!*main)
      return;
    const llvm::DenseSet<Value> parameterOnly = parameterOnlyValues(*main);
    graph::forEachBody(main->getBody().front(), [&](Block &block) {
      Channels channels(block);
      if (channels.choices.empty())
        return;
      Costs costs(providers, parameterOnly);
      const Decision decision(channels, costs);
      rewrite(block, channels, decision);
    });
  }

private:
  void rewrite(Block &block, Channels &channels, const Decision &decision) {
    std::vector<Operation *> returns; // transposes that restore the original order of results
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto found = channels.choices.find(&op);
      if (found == channels.choices.end() || !decision.takes(found->second))
        continue;
      const op::Reordered &last = found->second.last;
      SmallVector<Value> operands;
      for (auto [operand, order] : llvm::zip_equal(op.getOperands(), last.operands))
        operands.push_back(order.empty() ? operand : valueInOrder(operand, order));
      OpBuilder b(&op);
      Operation *made = graph::createOp(b, op.getLoc(), *graph::infoOf(&op), operands, last.attrs);
      graph::copyAnnotations(&op, made);
      Value result = made->getResult(0);
      if (!last.result.empty() && !isSame(last.result)) {
        Operation *back = transpose(b, result, inverse(last.result));
        graph::copyAnnotations(&op, back);
        returns.push_back(back);
        result = back->getResult(0);
      }
      op.getResult(0).replaceAllUsesWith(result);
      op.erase();
      ++numMoved;
    }
    for (Operation *back : returns) {
      const Value value = back->getOperand(0);
      if (!back->use_empty() && essence(typeOf(value).shape, *permutationOf(back)) ==
                                    essence(typeOf(value).shape, same(typeOf(value).rank()))) {
        OpBuilder b(back);
        back->getResult(0).replaceAllUsesWith(reshape(b, value, typeOf(back->getResult(0)).shape));
      }
      if (back->use_empty())
        back->erase();
      else
        ++numTransposes;
    }
    made.clear();
  }

  /// The operand in the order.
  Value valueInOrder(Value v, const Order &order) {
    OpBuilder b(&getContext());
    b.setInsertionPointAfterValue(v);
    if (Value splat = splatInOrder(b, v, order))
      return splat;
    Source source{v, order};
    if (order.size() == typeOf(v).shape.size()) {
      source = sourceOf(v);
      source.order = composed(source.order, order);
    }
    Value &value = made[{source.base, source.order}];
    if (value)
      return value;
    b.setInsertionPointAfterValue(source.base);
    value = source.base;
    const Shape shape = padded(typeOf(value), order.size()).shape;
    if (essence(shape, source.order) == essence(shape, same(shape.rank()))) {
      if (const Shape wanted = permuted(shape, source.order); wanted != typeOf(value).shape)
        value = reshape(b, value, wanted);
      return value;
    }
    if (shape != typeOf(value).shape)
      value = reshape(b, value, shape);
    if (!isSame(source.order)) {
      value = transpose(b, value, source.order)->getResult(0);
      ++numTransposes;
    }
    return value;
  }

  static Operation *transpose(OpBuilder &b, Value v, const Order &order) {
    return graph::createOp(b, v.getLoc(), *op::findOp("transpose"), v, {order});
  }
  static Value reshape(OpBuilder &b, Value v, const Shape &shape) {
    return graph::createOp(b, v.getLoc(), *op::findOp("reshape"), v, {op::Sizes(shape.begin(), shape.end())})
        ->getResult(0);
  }

  Providers providers;
  struct Less {
    bool operator()(const std::pair<Value, Order> &a, const std::pair<Value, Order> &b) const {
      return std::pair(a.first.getAsOpaquePointer(), std::ref(a.second).get()) <
             std::pair(b.first.getAsOpaquePointer(), std::ref(b.second).get());
    }
  };
  std::map<std::pair<Value, Order>, Value, Less> made;
};
} // namespace

std::unique_ptr<Pass> createAssignLayouts(Providers providers) {
  return std::make_unique<AssignLayouts>(std::move(providers));
}

} // namespace tressel::passes
