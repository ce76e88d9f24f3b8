#include "ir/graph/ControlGradient.h"

#include "ir/graph/BuilderEmitter.h"
#include "ir/graph/Segment.h"
#include "ir/graph/Structure.h"
#include "ir/op/Exprs.h"
#include "ir/op/Table.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tressel::graph {

//--- Residuals ------------------------------------------------------------------------------------------------------------

/// The scan with further results, whose body also yields these values.
static ScanOp withMoreResults(ScanOp scan, ArrayRef<Value> yielded) {
  if (yielded.empty())
    return scan;
  OpBuilder b(scan);
  SmallVector<Type> types(scan.getResultTypes());
  for (Value value : yielded)
    types.push_back(stackedType(value.getType(), scan.getTrips()));
  auto made = ScanOp::create(b, scan.getLoc(), types, scan.getTripsAttr(), scan.getCarried(), scan.getSlices(), scan.getInvariants());
  made->setDiscardableAttrs(scan->getDiscardableAttrDictionary());
  made.getBody().takeBody(scan.getBody());
  Operation *yield = made.getBody().front().getTerminator();
  yield->insertOperands(yield->getNumOperands(), yielded);
  scan->replaceAllUsesWith(made->getResults().take_front(scan->getNumResults()));
  scan->erase();
  return made;
}

/// A scan with as many trips as the bound, whose body runs while the condition holds.
static ScanOp boundedScan(WhileOp loop) {
  OpBuilder b(loop);
  const Location loc = loop.getLoc();
  auto scan = ScanOp::create(b, loc, loop.getResultTypes(), static_cast<int64_t>(*loop.getBound()), loop.getCarried(), ValueRange(),
                             loop.getInvariants());
  scan->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  scan.getBody().takeBody(loop.getCondition());
  Block &body = scan.getBody().front();
  const SmallVector<Value> values(body.getArguments());
  body.insertArgument(0u, RankedTensorType::get({}, b.getI64Type()), loc);
  Operation *yield = body.getTerminator();
  b.setInsertionPoint(yield);
  auto cond = CondOp::create(b, loc, loop.getResultTypes(), yield->getOperand(0), values);
  cond->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  cond.getThen().takeBody(loop.getBody());
  Block *same = b.createBlock(&cond.getOtherwise());
  for (Value value : values)
    same->addArgument(value.getType(), loc);
  YieldOp::create(b, loc, same->getArguments().take_front(loop.getCarried().size()));
  yield->setOperands(cond->getResults());
  loop->replaceAllUsesWith(scan->getResults());
  loop->erase();
  return scan;
}

/// A value with the maximal number of dimensions cannot be stacked. Reshapes it to merge two dimensions; its readers
/// read a reshape back.
static Value withoutADimension(Value value) {
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(value);
  const TensorType type = fromMlir(value.getType());
  op::Sizes whole(type.shape.begin(), type.shape.end()), merged(whole.begin() + 1, whole.end());
  merged[0] *= whole[0];
  const op::OpInfo &reshape = *op::findOp("reshape");
  Operation *flat = createOp(b, value.getLoc(), reshape, value, {merged});
  Value again = createOp(b, value.getLoc(), reshape, flat->getResult(0), {whole})->getResult(0);
  value.replaceAllUsesExcept(again, flat);
  return flat->getResult(0);
}

ControlOpInterface exposeResiduals(ControlOpInterface op) {
  if (auto loop = dyn_cast<WhileOp>(*op); loop && loop.getBound())
    op = boundedScan(loop);
  for (Region &region : op->getRegions())
    for (Operation &inner : llvm::make_early_inc_range(region.front().without_terminator()))
      if (auto control = dyn_cast<ControlOpInterface>(inner))
        exposeResiduals(control);
  auto scan = dyn_cast<ScanOp>(*op);
  if (!scan)
    return op;
  Block &body = scan.getBody().front();
  const unsigned numCarried = op.numCarried();
  llvm::DenseSet<Value> stacked;
  for (Value value : body.getTerminator()->getOperands().drop_front(numCarried))
    stacked.insert(value);
  SmallVector<Value> more;
  auto expose = [&](Value value) {
    if (fromMlir(value.getType()).rank() == kMaxRank)
      value = withoutADimension(value);
    if (stacked.insert(value).second)
      more.push_back(value);
  };
  for (unsigned i = 0; i < numCarried; ++i)
    expose(body.getArgument(op.firstCarried() + i));
  // An op that depends only on constants, the number of the iteration and invariants is recomputed where needed.
  llvm::DenseSet<Value> repeatable;
  for (BlockArgument argument : body.getArguments())
    if (argument.getArgNumber() < op.firstCarried() || op.invariantOf(argument))
      repeatable.insert(argument);
  for (Operation &inner : llvm::make_early_inc_range(body.without_terminator())) {
    const bool again = inner.getNumRegions() == 0 && isMemoryEffectFree(&inner) &&
                       llvm::all_of(inner.getOperands(), [&](Value operand) { return repeatable.contains(operand); });
    const bool isDropped = droppedBy(&inner) != 0 && isMemoryEffectFree(&inner);
    for (Value result : inner.getResults())
      if (again)
        repeatable.insert(result);
      else if (!isDropped) // a dropped value is recomputed from kept ones
        expose(result);
  }
  return cast<ControlOpInterface>(*withMoreResults(scan, more));
}

//--- Blocks ---------------------------------------------------------------------------------------------------------------

namespace {
using Ref = op::Emitter::Ref;
using Values = SmallVector<Value>;

Ref refOf(Value value) { return value.getAsOpaquePointer(); }
std::vector<Ref> refsOf(ValueRange values) {
  std::vector<Ref> refs;
  for (Value value : values)
    refs.push_back(refOf(value));
  return refs;
}
Values valuesOf(std::span<const Ref> refs) {
  Values values;
  for (Ref ref : refs)
    values.push_back(BuilderEmitter::value(ref));
  return values;
}

bool isFloat(Value value) { return tressel::isFloat(fromMlir(value.getType()).dtype); }

/// Builds single ops and constants at the builder's insertion point.
class Build : op::expr::Fragment {
public:
  Build(OpBuilder &b, Location loc) : Fragment(emitter_), emitter_(b, loc) {}
  Value zerosLike(Value value) { return make(op::expr::zeros(fromMlir(value.getType()))); }
  Value zeros(Type type) { return make(op::expr::zeros(fromMlir(type))); }
  Value add(Value a, Value c) { return make(take(refOf(a)) + take(refOf(c))); }
  Value reversed(Value stacked) { return make(flip(take(refOf(stacked)), {0})); }
  /// count - 1 - index.
  Value fromEnd(Value index, Size count) {
    return make(op::expr::Expr::number(dim::max(0, count - 1)) - take(refOf(index)));
  }

private:
  Value make(const op::expr::Expr &expr) { return BuilderEmitter::value(emit(expr)); }
  BuilderEmitter emitter_;
};

/// A tape over the ops of a block.
class BlockTape final : public op::Tape {
public:
  BlockTape(OpBuilder &b, BuilderEmitter &emitter, ArrayRef<Value> inputs, GradientContext &context)
      : Tape(emitter, refsOf(inputs)), b_(b), emitter_(emitter), context_(context) {}

  void note(Block &block) {
    for (Operation &op : block)
      if (!op.hasTrait<OpTrait::IsTerminator>())
        note(&op);
  }
  Values gradients(ArrayRef<Value> results, ArrayRef<Value> cotangents, ArrayRef<Value> inputs) {
    return valuesOf(backward(refsOf(results), refsOf(cotangents), refsOf(inputs)));
  }

private:
  using Tape::note;
  void note(Operation *op) {
    const std::vector<Ref> operands = refsOf(op->getOperands()), results = refsOf(op->getResults());
    const op::OpInfo *info = infoOf(op);
    if (info && !info->custom)
      return note(*info, operands, results, attrsOf(op, *info), op->getLoc().getAsOpaquePointer());
    note([this, op](const op::GradientCall &call) { return pullBackOf(op, call); }, operands, results, op->getLoc().getAsOpaquePointer());
  }
  std::vector<Ref> pullBackOf(Operation *op, const op::GradientCall &call) {
    const Values given = valuesOf(call.cotangents);
    if (auto control = dyn_cast<ControlOpInterface>(op))
      return refsOf(pullBack(b_, control, given, ArrayRef(call.wanted.data(), call.wanted.size()), context_));
    if (std::optional<Values> made = context_.pullBack(b_, op, given))
      return refsOf(*made);
    throw op::expr::NoGradient(op->getName().stripDialect().str());
  }
  void enter(const void *loc) override { emitter_.setLoc(Location::getFromOpaquePointer(loc)); }

  OpBuilder &b_;
  BuilderEmitter &emitter_;
  GradientContext &context_;
};
} // namespace

SmallVector<Value> gradientsOf(OpBuilder &b, Block &block, ArrayRef<Value> results, ArrayRef<Value> cotangents, ArrayRef<Value> inputs,
                               GradientContext &context) {
  BuilderEmitter emitter(b, results.empty() ? b.getUnknownLoc() : results.front().getLoc());
  BlockTape tape(b, emitter, inputs, context);
  tape.note(block);
  return tape.gradients(results, cotangents, inputs);
}

//--- Ops with bodies ------------------------------------------------------------------------------------------------------

namespace {
/// Builds the scan that runs backward over a scan.
class ReverseScan {
public:
  ReverseScan(OpBuilder &b, ScanOp scan, ArrayRef<Value> given, ArrayRef<uint8_t> wanted, GradientContext &context)
      : b_(b), scan_(scan), op_(cast<ControlOpInterface>(*scan)), body_(scan.getBody().front()), given_(given), wanted_(wanted),
        context_(context), build_(b, scan.getLoc()) {}

  Values run() {
    findActive();
    // Recorded into a separate block, which reads values of the forward body until these are replaced.
    Block backward;
    index_ = backward.addArgument(body_.getArgument(0).getType(), scan_.getLoc());
    Values results, cotangents, carriedNext, sums, stacked;
    {
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToEnd(&backward);
      Operation *yield = body_.getTerminator();
      const unsigned numCarried = op_.numCarried();
      for (unsigned i = 0; i < yield->getNumOperands(); ++i) {
        const bool isCarried = i < numCarried;
        if (isCarried ? !isActive_[i] : !given_[i])
          continue;
        results.push_back(yield->getOperand(i));
        cotangents.push_back(backward.addArgument(yield->getOperand(i).getType(), scan_.getLoc()));
        (isCarried ? carried_ : sliceArguments_).push_back(cotangents.back());
        if (!isCarried)
          slices_.push_back(given_[i]);
      }
      Values inputs = arguments();
      Values made = gradientsOf(b_, body_, results, cotangents, inputs, context_);
      unsigned next = 0;
      for (unsigned i = 0; i < numCarried; ++i)
        if (isActive_[i])
          carriedNext.push_back(orZeros(made[next], inputs[next])), ++next;
      for (unsigned i = 0; i < op_.numSlices(); ++i)
        if (isWanted(sliceOperand(i)))
          stacked.push_back(orZeros(made[next], inputs[next])), ++next;
      for (unsigned i = 0; i < op_.numInvariants(); ++i)
        if (isWanted(invariantOperand(i))) {
          BlockArgument sum = backward.addArgument(op_.invariant(i).getType(), scan_.getLoc());
          carried_.push_back(sum);
          carriedNext.push_back(made[next] ? build_.add(sum, made[next]) : Value(sum));
          ++next;
        }
    }
    replaceForwardValues(backward);
    return create(backward, carriedNext, stacked);
  }

private:
  unsigned carriedOperand(unsigned i) { return op_.getCarriedMutable()[i].getOperandNumber(); }
  unsigned sliceOperand(unsigned i) { return op_.getSlicesMutable()[i].getOperandNumber(); }
  unsigned invariantOperand(unsigned i) { return op_.getInvariantsMutable()[i].getOperandNumber(); }
  bool isWanted(unsigned operand) const { return wanted_[operand] != 0; }
  Value orZeros(Value value, Value like) { return value ? value : build_.zerosLike(like); }

  /// Arguments of the body that have cotangents: carried values, slices, invariants.
  Values arguments() {
    Values found;
    for (unsigned i = 0; i < op_.numCarried(); ++i)
      if (isActive_[i])
        found.push_back(body_.getArgument(op_.firstCarried() + i));
    for (unsigned i = 0; i < op_.numSlices(); ++i)
      if (isWanted(sliceOperand(i)))
        found.push_back(body_.getArgument(op_.firstSlice() + i));
    for (unsigned i = 0; i < op_.numInvariants(); ++i)
      if (isWanted(invariantOperand(i)))
        found.push_back(body_.getArgument(op_.firstInvariant() + i));
    return found;
  }
  /// A carried value that starts independent of the inputs may depend on them from the second iteration on.
  void findActive() {
    isActive_.resize(op_.numCarried());
    for (unsigned i = 0; i < op_.numCarried(); ++i)
      isActive_[i] = isWanted(carriedOperand(i)) && isFloat(op_.carried(i));
    for (bool changed = true; changed;) {
      changed = false;
      llvm::DenseSet<Value> active;
      for (Value argument : arguments())
        active.insert(argument);
      for (Operation &inner : body_.without_terminator())
        if (llvm::any_of(inner.getOperands(), [&](Value operand) { return active.contains(operand); }))
          for (Value result : inner.getResults())
            if (isFloat(result))
              active.insert(result);
      for (unsigned i = 0; i < op_.numCarried(); ++i)
        if (!isActive_[i] && active.contains(body_.getTerminator()->getOperand(i)))
          isActive_[i] = changed = true;
    }
  }

  /// Replaces forward values that the backward body reads by slices and invariants, or recomputes them.
  void replaceForwardValues(Block &backward) {
    llvm::MapVector<Value, Value> replaced;
    auto isForward = [&](Value value) { return value.getParentBlock() == &body_; };
    std::function<Value(Value)> standIn = [&](Value value) {
      if (auto known = replaced.find(value); known != replaced.end())
        return known->second;
      Value made;
      if (auto argument = dyn_cast<BlockArgument>(value); argument && op_.invariantOf(argument)) {
        made = backward.addArgument(value.getType(), value.getLoc());
        invariants_.push_back(op_.invariantOf(argument));
        invariantArguments_.push_back(made);
      } else if (argument && argument.getArgNumber() < op_.firstCarried()) {
        made = build_.fromEnd(index_, scan_.getTrips());
      } else if (argument && argument.getArgNumber() >= op_.firstSlice()) {
        made = slice(backward, op_.slice(argument.getArgNumber() - op_.firstSlice()), value);
      } else if (Value stacked = stackOf(value)) {
        made = slice(backward, stacked, value);
      } else {
        Operation *def = value.getDefiningOp();
        assert(def && "the residuals are exposed");
        SmallVector<Value> operands;
        for (Value operand : def->getOperands())
          operands.push_back(standIn(operand));
        Operation *again = b_.clone(*def);
        removeSegment(again);
        again->setOperands(operands);
        made = again->getResult(cast<OpResult>(value).getResultNumber());
      }
      replaced[value] = made;
      return made;
    };
    SmallVector<OpOperand *> uses;
    for (Operation &op : backward)
      for (OpOperand &operand : op.getOpOperands())
        if (isForward(operand.get()))
          uses.push_back(&operand);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(&backward);
    for (OpOperand *use : uses)
      use->set(standIn(use->get()));
  }
  Value slice(Block &backward, Value stacked, Value like) {
    slices_.push_back(stacked);
    sliceArguments_.push_back(backward.addArgument(like.getType(), like.getLoc()));
    return sliceArguments_.back();
  }
  Value stackOf(Value value) {
    auto yielded = body_.getTerminator()->getOperands();
    for (unsigned i = op_.numCarried(); i < yielded.size(); ++i)
      if (yielded[i] == value)
        return scan_->getResult(i);
    return {};
  }

  Values create(Block &backward, ArrayRef<Value> carriedNext, ArrayRef<Value> stacked) {
    const Location loc = scan_.getLoc();
    Values init, slices;
    for (unsigned i = 0; i < op_.numCarried(); ++i)
      if (isActive_[i])
        init.push_back(given_[i] ? given_[i] : build_.zeros(scan_->getResult(i).getType()));
    for (size_t i = init.size(); i < carried_.size(); ++i)
      init.push_back(build_.zeros(carried_[i].getType()));
    for (Value value : slices_)
      slices.push_back(build_.reversed(value));
    SmallVector<Type> types;
    for (Value value : init)
      types.push_back(value.getType());
    for (Value value : stacked)
      types.push_back(stackedType(value.getType(), scan_.getTrips()));
    auto made = ScanOp::create(b_, loc, types, scan_.getTripsAttr(), init, slices, invariants_);
    made->setDiscardableAttrs(scan_->getDiscardableAttrDictionary());
    removeSegment(made);
    {
      OpBuilder::InsertionGuard guard(b_);
      Block *block = b_.createBlock(&made.getBody());
      block->getOperations().splice(block->end(), backward.getOperations());
      auto add = [&](Value old) { old.replaceAllUsesWith(block->addArgument(old.getType(), loc)); };
      Values yielded(carriedNext);
      llvm::append_range(yielded, stacked);
      b_.setInsertionPointToEnd(block);
      YieldOp::create(b_, loc, yielded); // before arguments are replaced, as it may yield them
      add(index_);
      llvm::for_each(carried_, add);
      llvm::for_each(sliceArguments_, add);
      llvm::for_each(invariantArguments_, add);
    }
    captureInvariants(cast<ControlOpInterface>(*made));
    if (context_.again())
      made = cast<ScanOp>(*exposeResiduals(cast<ControlOpInterface>(*made)));
    // In operand order.
    Values cotangents(scan_->getNumOperands());
    unsigned next = 0;
    for (unsigned i = 0; i < op_.numCarried(); ++i)
      if (isActive_[i]) {
        if (isWanted(carriedOperand(i)))
          cotangents[carriedOperand(i)] = made->getResult(next);
        ++next;
      }
    for (unsigned i = 0; i < op_.numInvariants(); ++i)
      if (isWanted(invariantOperand(i)))
        cotangents[invariantOperand(i)] = made->getResult(next++);
    for (unsigned i = 0; i < op_.numSlices(); ++i)
      if (isWanted(sliceOperand(i)))
        cotangents[sliceOperand(i)] = build_.reversed(made->getResult(next++));
    return cotangents;
  }

  OpBuilder &b_;
  ScanOp scan_;
  ControlOpInterface op_;
  Block &body_;
  const ArrayRef<Value> given_;
  const ArrayRef<uint8_t> wanted_;
  GradientContext &context_;
  Build build_;
  SmallVector<bool> isActive_; ///< by carried value
  Value index_;
  /// operands and body arguments of the reverse scan
  Values carried_, slices_, sliceArguments_, invariants_, invariantArguments_;
};

/// Executes the taken body again, and differentiates it.
Values pullBackCond(OpBuilder &b, CondOp cond, ArrayRef<Value> given, ArrayRef<uint8_t> wanted, GradientContext &context) {
  const Location loc = cond.getLoc();
  auto op = cast<ControlOpInterface>(*cond);
  SmallVector<Type> types;
  Values outside(cond.getInvariants()), known;
  const unsigned first = 1; // index of the first invariant among the operands
  for (unsigned i = 0; i < op.numInvariants(); ++i)
    if (wanted[first + i])
      types.push_back(op.invariant(i).getType());
  for (Value cotangent : given)
    if (cotangent)
      outside.push_back(cotangent);
  auto made = CondOp::create(b, loc, types, cond.getCondition(), outside);
  made->setDiscardableAttrs(cond->getDiscardableAttrDictionary());
  removeSegment(made);
  for (auto [from, to] : llvm::zip(cond->getRegions(), made->getRegions())) {
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(&to);
    for (Value value : outside)
      block->addArgument(value.getType(), loc);
    IRMapping map;
    Block &body = from.front();
    for (BlockArgument argument : body.getArguments())
      map.map(argument, block->getArgument(argument.getArgNumber()));
    for (Operation &inner : body.without_terminator())
      if (isMemoryEffectFree(&inner) || inner.getNumResults() > 0)
        b.clone(inner, map);
    Values inputs, results, cotangents;
    for (unsigned i = 0; i < op.numInvariants(); ++i)
      if (wanted[first + i])
        inputs.push_back(block->getArgument(i));
    unsigned next = op.numInvariants();
    for (unsigned i = 0; i < given.size(); ++i)
      if (given[i]) {
        results.push_back(map.lookup(body.getTerminator()->getOperand(i)));
        cotangents.push_back(block->getArgument(next++));
      }
    Values yielded = gradientsOf(b, *block, results, cotangents, inputs, context);
    for (auto [value, input] : llvm::zip(yielded, inputs))
      if (!value)
        value = Build(b, loc).zerosLike(input);
    YieldOp::create(b, loc, yielded);
  }
  captureInvariants(cast<ControlOpInterface>(*made));
  Values cotangents(cond->getNumOperands());
  unsigned next = 0;
  for (unsigned i = 0; i < op.numInvariants(); ++i)
    if (wanted[first + i])
      cotangents[first + i] = made->getResult(next++);
  return cotangents;
}
} // namespace

SmallVector<Value> pullBack(OpBuilder &b, ControlOpInterface op, ArrayRef<Value> cotangents, ArrayRef<uint8_t> wanted, GradientContext &context) {
  if (auto cond = dyn_cast<CondOp>(*op))
    return pullBackCond(b, cond, cotangents, wanted, context);
  if (auto scan = dyn_cast<ScanOp>(*op))
    return ReverseScan(b, scan, cotangents, wanted, context).run();
  throw op::expr::NoGradient("a while loop that may run any number of times",
                              "give while_loop() an upper bound, {.max_trips = n}, or count with for_loop()");
}

} // namespace tressel::graph
