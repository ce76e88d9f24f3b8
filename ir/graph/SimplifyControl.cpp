// Canonicalization of the ops with bodies.
#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "ir/op/LoopForm.h"
#include "ir/op/OpInfo.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tressel::graph {

/// Replaces the op by the ops of a body.
static void inlineBody(Operation *op, Block &body, ValueRange arguments) {
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), arguments))
    argument.replaceAllUsesWith(value);
  Operation *yield = body.getTerminator();
  op->replaceAllUsesWith(yield->getOperands());
  op->getBlock()->getOperations().splice(op->getIterator(), body.getOperations(), body.begin(), std::prev(body.end()));
  op->erase();
}

/// Resolves a constant condition, or a loop that never runs.
static bool resolve(ControlOpInterface op) {
  if (auto cond = dyn_cast<CondOp>(*op)) {
    DenseElementsAttr value;
    if (!matchPattern(cond.getCondition(), m_Constant(&value)))
      return false;
    Region &taken = *value.getValues<bool>().begin() ? cond.getThen() : cond.getOtherwise();
    inlineBody(op, taken.front(), SmallVector<Value>(cond.getInvariants()));
    return true;
  }
  if (auto loop = dyn_cast<WhileOp>(*op)) {
    DenseElementsAttr value;
    if (!matchPattern(loop.getCondition().front().back().getOperand(0), m_Constant(&value)) ||
        *value.getValues<bool>().begin())
      return false;
    op->replaceAllUsesWith(SmallVector<Value>(loop.getCarried()));
    op->erase();
    return true;
  }
  auto scan = cast<ScanOp>(*op);
  if (scan.getTrips() != 0)
    return false;
  OpBuilder b(op);
  SmallVector<Value> results(scan.getCarried());
  for (Type type : TypeRange(scan.getResultTypes()).drop_front(results.size())) {
    if (!cast<RankedTensorType>(type).hasStaticShape())
      return false;
    results.push_back(createConstant(b, op->getLoc(), fromMlir(type), {}));
  }
  op->replaceAllUsesWith(results);
  op->erase();
  return true;
}

//--- Loops that count ------------------------------------------------------------------------------------------------------

/// The value of a scalar integer that is a constant, or an invariant or carried argument whose initial value is one.
static std::optional<int64_t> integerOf(Value value) {
  DenseElementsAttr constant;
  if (!matchPattern(value, m_Constant(&constant)) || constant.getNumElements() != 1 || !isa<IntegerType>(constant.getElementType()) ||
      constant.getElementType().getIntOrFloatBitWidth() == 1)
    return std::nullopt;
  const APInt number = *constant.getValues<APInt>().begin();
  const bool isUnsigned = constant.getElementType().isUnsignedInteger();
  return isUnsigned ? static_cast<int64_t>(number.getZExtValue()) : number.getSExtValue();
}

/// An op that is one scalar instruction on two scalars.
struct ScalarCall {
  op::ScalarOp instruction;
  Value left, right;
};
static std::optional<ScalarCall> scalarCallOf(Value value) {
  Operation *def = value.getDefiningOp();
  const op::OpInfo *info = def ? infoOf(def) : nullptr;
  if (!info || !info->loopForm || def->getNumOperands() != 2 || def->getNumResults() != 1)
    return std::nullopt;
  SmallVector<TensorType> operands{fromMlir(def->getOperand(0).getType()), fromMlir(def->getOperand(1).getType())};
  const TensorType result = fromMlir(def->getResult(0).getType());
  const auto form = info->loopForm(*info, operands, std::span(&result, 1), attrsOf(def, *info));
  if (!form || !form->domain.empty())
    return std::nullopt;
  const auto &nodes = form->body.nodes;
  const op::ScalarNode &top = nodes[static_cast<size_t>(form->body.result)];
  auto operandOf = [&](int32_t arg) {
    if (arg < 0 || nodes[static_cast<size_t>(arg)].op != op::ScalarOp::Operand)
      return Value();
    return def->getOperand(static_cast<unsigned>(nodes[static_cast<size_t>(arg)].i));
  };
  ScalarCall call{top.op, operandOf(top.args[0]), operandOf(top.args[1])};
  return call.left && call.right ? std::optional(call) : std::nullopt;
}

/// The number of iterations of a loop, if a carried integer counts from a constant start by a constant step to a
/// constant limit.
static std::optional<int64_t> tripsOf(WhileOp loop) {
  auto op = cast<ControlOpInterface>(*loop);
  Block &condition = loop.getCondition().front(), &body = loop.getBody().front();
  const auto test = scalarCallOf(condition.back().getOperand(0));
  if (!test)
    return std::nullopt;
  auto known = [&](Value value) -> std::optional<int64_t> {
    if (auto argument = dyn_cast<BlockArgument>(value))
      if (Value before = op.invariantOf(argument))
        return integerOf(before);
    return integerOf(value);
  };
  // Matches counter < limit, and limit > counter.
  op::ScalarOp compare = test->instruction;
  Value counted = test->left, limited = test->right;
  if (!isa<BlockArgument>(counted) || known(counted)) {
    std::swap(counted, limited);
    compare = compare == op::ScalarOp::Gt ? op::ScalarOp::Lt : compare == op::ScalarOp::Ge ? op::ScalarOp::Le : op::ScalarOp::Const;
  }
  auto counter = dyn_cast<BlockArgument>(counted);
  if (!counter || counter.getArgNumber() >= op.numCarried() || (compare != op::ScalarOp::Lt && compare != op::ScalarOp::Le))
    return std::nullopt;
  const unsigned number = counter.getArgNumber();
  const auto next = scalarCallOf(body.getTerminator()->getOperand(number));
  if (!next || next->instruction != op::ScalarOp::Add)
    return std::nullopt;
  const bool isLeft = next->left == body.getArgument(number);
  if (!isLeft && next->right != body.getArgument(number))
    return std::nullopt;
  const auto start = integerOf(op.carried(number)), limit = known(limited), step = known(isLeft ? next->right : next->left);
  const unsigned bits = cast<RankedTensorType>(counter.getType()).getElementType().getIntOrFloatBitWidth();
  // Only for counters far from overflow.
  const int64_t most = (int64_t(1) << std::min(bits - 2, 60u)) - 1;
  if (!start || !limit || !step || *step <= 0 || std::max({std::abs(*start), std::abs(*limit), *step}) > most)
    return std::nullopt;
  const int64_t last = *limit - (compare == op::ScalarOp::Lt);
  return *start > last ? 0 : (last - *start) / *step + 1;
}

/// Turns a while with a known number of iterations into a scan, which needs no condition, has a predictable time, and
/// can be differentiated.
static bool countLoop(ControlOpInterface op) {
  auto loop = dyn_cast<WhileOp>(*op);
  if (!loop || !isMemoryEffectFree(&loop.getCondition().front().back()) ||
      llvm::any_of(loop.getCondition().front().without_terminator(), [](Operation &inner) { return !isMemoryEffectFree(&inner); }))
    return false;
  const std::optional<int64_t> trips = tripsOf(loop);
  if (!trips)
    return false;
  OpBuilder b(loop);
  auto scan = ScanOp::create(b, loop.getLoc(), loop.getResultTypes(), *trips, loop.getCarried(), ValueRange(), loop.getInvariants());
  scan->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  scan.getBody().takeBody(loop.getBody());
  scan.getBody().insertArgument(0u, RankedTensorType::get({}, b.getI64Type()), loop.getLoc());
  loop->replaceAllUsesWith(scan->getResults());
  loop->erase();
  return true;
}

namespace {
/// Modifies the operands, results and body arguments of one op.
class Parts {
public:
  explicit Parts(ControlOpInterface op) : op(op) {}

  bool sinkConstants() {
    bool changed = false;
    for (unsigned i = 0; i < op.numInvariants(); ++i) {
      Operation *constant = op.invariant(i).getDefiningOp();
      if (!constant || !isSmallConstant(constant))
        continue;
      for (Region &region : op->getRegions()) {
        BlockArgument argument = region.getArgument(op.firstInvariant() + i);
        if (argument.use_empty())
          continue;
        OpBuilder b = OpBuilder::atBlockBegin(&region.front());
        argument.replaceAllUsesWith(b.clone(*constant)->getResult(0));
        changed = true;
      }
    }
    return changed;
  }

  /// Merges equal invariants, and makes carried values that no iteration changes invariants.
  bool mergeInvariants() {
    bool changed = false;
    Operation *yield = op.repeats() ? op->getRegions().back().front().getTerminator() : nullptr;
    for (unsigned i = 0; i < op.numCarried(); ++i) {
      unsigned number = op.firstCarried() + i;
      if (yield->getOperand(i) != op->getRegions().back().getArgument(number))
        continue;
      changed |= !op->getResult(i).use_empty();
      op->getResult(i).replaceAllUsesWith(op.carried(i));
      bool used = llvm::any_of(op->getRegions(), [&](Region &region) {
        return llvm::any_of(region.getArgument(number).getUsers(), [&](Operation *user) { return user != yield; });
      });
      if (!used)
        continue;
      addInvariant(op, op.carried(i));
      for (Region &region : op->getRegions())
        region.getArgument(number).replaceUsesWithIf(region.getArguments().back(),
                                                     [&](OpOperand &use) { return use.getOwner() != yield; });
      changed = true;
    }
    llvm::DenseMap<Value, unsigned> first;
    for (unsigned i = 0; i < op.numInvariants(); ++i) {
      auto [at, isNew] = first.try_emplace(op.invariant(i), i);
      if (isNew)
        continue;
      for (Region &region : op->getRegions()) {
        BlockArgument argument = region.getArgument(op.firstInvariant() + i);
        changed |= !argument.use_empty();
        argument.replaceAllUsesWith(region.getArgument(op.firstInvariant() + at->second));
      }
    }
    return changed;
  }

  /// Drops carried values and further results without a reader, then operands that no body uses.
  bool dropUnused() {
    llvm::BitVector dead = deadResults();
    bool changed = dead.any();
    for (Region &region : op->getRegions()) {
      if (!op.repeats() || &region == &op->getRegions().back())
        region.front().getTerminator()->eraseOperands(dead);
      // Erased after the yields: the argument of one dead value may be yielded for another.
      for (unsigned i = 0; i < op.numCarried(); ++i)
        if (dead[i])
          eraseWithUsers(region.getArgument(op.firstCarried() + i));
    }
    if (changed) {
      for (unsigned i = op.numCarried(); i-- > 0;)
        if (dead[i]) {
          for (Region &region : op->getRegions())
            region.eraseArgument(op.firstCarried() + i);
          op.getCarriedMutable().erase(i);
        }
      recreate(dead);
    }
    changed |= dropOperands(op.firstInvariant(), op.numInvariants(), &ControlOpInterface::getInvariantsMutable);
    changed |= dropOperands(op.firstSlice(), op.numSlices(), &ControlOpInterface::getSlicesMutable);
    return changed;
  }

private:
  static bool isSmallConstant(Operation *op) {
    constexpr int64_t kMost = 256; // bytes; larger constants stay in memory once
    DenseElementsAttr value;
    return matchPattern(op, m_Constant(&value)) && (value.isSplat() || fromMlir(value.getType()).bytes() <= kMost);
  }

  /// Results whose value reaches no user of the op, no live result of it, and no condition.
  llvm::BitVector deadResults() {
    llvm::BitVector dead(op->getNumResults(), true);
    for (OpResult result : op->getResults())
      if (!result.use_empty())
        dead.reset(result.getResultNumber());
    if (op.numCarried() == 0)
      return dead;
    llvm::DenseSet<Value> live;
    SmallVector<Value> work;
    auto mark = [&](Value value) {
      if (live.insert(value).second)
        work.push_back(value);
    };
    Operation *yield = op->getRegions().back().front().getTerminator();
    auto markResult = [&](unsigned i) {
      dead.reset(i);
      mark(yield->getOperand(i));
    };
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      if (!dead[i])
        markResult(i);
    for (Region &region : op->getRegions()) {
      if (&region != &op->getRegions().back())
        llvm::for_each(region.front().getTerminator()->getOperands(), mark);
      for (Operation &inner : region.front().without_terminator())
        if (!isMemoryEffectFree(&inner))
          llvm::for_each(inner.getOperands(), mark);
    }
    while (!work.empty()) {
      Value value = work.pop_back_val();
      if (Operation *def = value.getDefiningOp()) {
        llvm::for_each(def->getOperands(), mark);
      } else {
        unsigned number = cast<BlockArgument>(value).getArgNumber();
        if (number >= op.firstCarried() && number < op.firstSlice() && dead[number - op.firstCarried()])
          markResult(number - op.firstCarried());
      }
    }
    return dead;
  }

  /// Erases all ops that depend on a value, which are all dead.
  static void eraseWithUsers(Value value) {
    while (!value.use_empty()) {
      Operation *user = *value.user_begin();
      for (Value result : user->getResults())
        eraseWithUsers(result);
      user->erase();
    }
  }

  bool dropOperands(unsigned firstArgument, unsigned count, MutableOperandRange (ControlOpInterface::*range)()) {
    bool changed = false;
    for (unsigned i = count; i-- > 0;) {
      bool used = llvm::any_of(op->getRegions(),
                               [&](Region &region) { return !region.getArgument(firstArgument + i).use_empty(); });
      if (used)
        continue;
      for (Region &region : op->getRegions())
        region.eraseArgument(firstArgument + i);
      (op.*range)().erase(i);
      changed = true;
    }
    return changed;
  }

  /// Recreates the op without these results.
  void recreate(const llvm::BitVector &dead) {
    OpBuilder b(op);
    SmallVector<Type> types;
    for (OpResult result : op->getResults())
      if (!dead[result.getResultNumber()])
        types.push_back(result.getType());
    OperationState state(op->getLoc(), op->getName());
    state.addOperands(op->getOperands());
    state.addTypes(types);
    state.addAttributes(op->getDiscardableAttrDictionary().getValue());
    state.propertiesAttr = op->getPropertiesAsAttribute();
    for (Region &region : op->getRegions())
      state.addRegion()->takeBody(region);
    Operation *made = b.create(state);
    unsigned next = 0;
    for (OpResult result : op->getResults())
      if (!dead[result.getResultNumber()])
        result.replaceAllUsesWith(made->getResult(next++));
    op->erase();
    op = cast<ControlOpInterface>(made);
  }

  ControlOpInterface op;
};
} // namespace

bool simplifyControl(ControlOpInterface op) {
  if (resolve(op) || countLoop(op))
    return true;
  Parts parts(op);
  bool changed = parts.sinkConstants();
  changed |= parts.mergeInvariants();
  changed |= parts.dropUnused();
  return changed;
}

bool hoistInvariants(ControlOpInterface op, llvm::function_ref<bool(Operation *)> wanted) {
  if (!op.repeats())
    return false;
  bool changed = false;
  for (Region &region : op->getRegions())
    for (Operation &inner : llvm::make_early_inc_range(region.front().without_terminator())) {
      bool known = inner.getNumOperands() > 0 && llvm::all_of(inner.getOperands(), [&](Value operand) {
                     auto argument = dyn_cast<BlockArgument>(operand);
                     return (argument && op.invariantOf(argument)) || matchPattern(operand, m_Constant());
                   });
      if (!known || !wanted(&inner))
        continue;
      OpBuilder b(op);
      Operation *outside = b.clone(inner);
      for (OpOperand &operand : outside->getOpOperands()) {
        if (auto argument = dyn_cast<BlockArgument>(operand.get()))
          operand.set(op.invariantOf(argument));
        else
          operand.set(
              b.clone(*operand.get().getDefiningOp())->getResult(cast<OpResult>(operand.get()).getResultNumber()));
      }
      outside->moveBefore(op); // behind constants
      for (auto [result, moved] : llvm::zip(inner.getResults(), outside->getResults())) {
        addInvariant(op, moved);
        result.replaceAllUsesWith(region.front().getArguments().back());
      }
      inner.erase();
      changed = true;
    }
  return changed;
}

} // namespace tressel::graph
