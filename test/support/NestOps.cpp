#include "test/support/NestOps.h"
#include "ir/graph/Control.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "ir/interpreter/Element.h"
#include "passes/verify/ExtractProgram.h"
#include "test/support/Blur.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace tressel::test {
namespace {

using mlir::Block;
using mlir::Operation;
using mlir::Value;
using op::HostTensor;

constexpr int kMaxNesting = 3;
constexpr int64_t kMaxTrips = 4;

HostTensor scalarOf(DType type, op::interp::Element value) {
  HostTensor tensor = HostTensor::allocate({type, {}});
  op::interp::store(tensor, 0, value);
  return tensor;
}

/// One change of a program: a run of ops moves into a body.
class Nesting {
public:
  Nesting(RandomGraph &graph, const Computed &computed, llvm::ArrayRef<Operation *> wanted, Random &random)
      : graph_(graph), main_(*graph.module->getOps<mlir::func::FuncOp>().begin()), computed_(computed), wanted_(wanted),
        random_(random), b_(graph.module->getContext()) {
    auto &body = main_.getBody().front();
    for (auto [argument, input] : llvm::zip_equal(body.getArguments(), graph.inputs)) {
      computed_[argument] = input;
      dim::unify(graph::fromMlir(argument.getType()).shape, input.type.shape, sizes_, true);
    }
  }

  /// False if there was nothing to move.
  bool change() {
    if (!chooseRun())
      return false;
    b_.setInsertionPoint(run_.front());
    loc_ = run_.front()->getLoc();
    const double kind = random_.unit();
    Operation *made = kind < 0.35 ? makeBranch() : kind < 0.6 ? makeWhile() : makeScan();
    for (Operation *op = made; auto control = llvm::dyn_cast<graph::ControlOpInterface>(op); op = op->getParentOp())
      graph::captureInvariants(control);
    return true;
  }

private:
  //===-- The run ------------------------------------------------------------------------------------------------===//

  bool chooseRun() {
    std::vector<Block *> blocks;
    graph::forEachBody(main_.getBody().front(), [&](Block &block) {
      // Not the conditions: they see to it that loops end.
      if (auto loop = llvm::dyn_cast<graph::WhileOp>(block.getParentOp());
          loop && &loop.getCondition().front() == &block)
        return;
      int depth = 0;
      for (Operation *op = block.getParentOp(); op != main_; op = op->getParentOp())
        ++depth;
      if (depth < kMaxNesting)
        blocks.push_back(&block);
    });
    Operation *centre = !wanted_.empty() && random_.chance(0.7) ? random_.pick(wanted_) : nullptr;
    Block *block = centre                ? centre->getBlock()
                   : random_.chance(0.5) ? blocks.back()
                                         : random_.pick(blocks); // @main last
    std::vector<Operation *> ops;
    Operation *counter = llvm::isa<graph::WhileOp>(block->getParentOp())
                             ? block->getTerminator()->getOperand(0).getDefiningOp()
                             : nullptr;
    for (Operation &op : block->without_terminator())
      if (&op != counter && !(counter && llvm::is_contained(op.getUsers(), counter)))
        ops.push_back(&op);
    if (ops.empty())
      return false;
    const auto count = static_cast<int64_t>(ops.size());
    const auto at = centre ? llvm::find(ops, centre) - ops.begin() : random_.below(count);
    int64_t length = random_.between(1, random_.chance(0.3) ? 20 : 8);
    const int64_t first = std::max<int64_t>(0, at - random_.below(length));
    length = std::min(length, count - first);
    run_.assign(ops.begin() + first, ops.begin() + first + length);
    const llvm::SmallPtrSet<Operation *, 16> inside(run_.begin(), run_.end());
    for (Operation *op : run_) {
      for (Value operand : op->getOperands()) // values of bodies in the run come in as operands of the ops with bodies
        if (!operand.getDefiningOp() || !inside.contains(operand.getDefiningOp()))
          captured_.insert(operand);
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.contains(user); }))
          results_.push_back(result);
    }
    return !results_.empty() && llvm::any_of(run_, [](Operation *op) { return graph::infoOf(op) != nullptr; });
  }

  /// The run's ops, then the yield; its results outside become `outside`.
  void moveRun(Block *body) {
    for (Operation *op : run_)
      op->moveBefore(body, body->end());
  }
  static void replaceOutside(Value value, Value with, Operation *op) {
    value.replaceUsesWithIf(with, [&](mlir::OpOperand &use) { return !op->isProperAncestor(use.getOwner()); });
  }
  static void replaceInside(Value value, Value with, Block *body) {
    value.replaceUsesWithIf(
        with, [&](mlir::OpOperand &use) { return body->getParent()->isAncestor(use.getOwner()->getParentRegion()); });
  }

  //===-- Values -------------------------------------------------------------------------------------------------===//

  Value call(const char *name, mlir::ValueRange operands,
             std::initializer_list<std::pair<const char *, op::Attr>> given = {}) {
    const op::OpInfo &op = *op::findOp(name);
    op::Attrs attrs(op.attrs.size());
    for (const auto &[attr, value] : given)
      attrs[static_cast<size_t>(op.attrIndex(attr))] = value;
    std::vector<TensorType> types;
    for (Value operand : operands)
      types.push_back(graph::fromMlir(operand.getType()));
    if (!op::completeAttrs(op, attrs).empty() || !op.infer(op, types, attrs))
      return {};
    return graph::createOp(b_, loc_, op, operands, attrs)->getResult(0);
  }
  Value constant(const HostTensor &tensor) {
    return graph::createConstant(b_, loc_, tensor.type, {tensor.data.get(), static_cast<size_t>(tensor.type.bytes())});
  }
  Value number(int64_t value) { return constant(scalarOf(i64, value)); }

  /// A new input of the program, now and then a constant.
  Value newInput(const TensorType &declared, const HostTensor &contents) {
    if (declared.shape.isStatic() && random_.chance(0.2))
      return constant(contents);
    graph_.inputs.push_back(contents);
    return main_.getBody().front().addArgument(graph::toMlir(b_.getContext(), declared), loc_);
  }

  TensorType typeOf(Value value) const { return graph::fromMlir(value.getType()); }
  TensorType sizedTypeOf(Value value) const {
    TensorType type = typeOf(value);
    return {type.dtype, dim::evaluate(type.shape, sizes_)};
  }
  /// Other contents that serve the same ops: the same elements, some of them in other places.
  HostTensor contentsLike(Value value) {
    const TensorType type = sizedTypeOf(value);
    auto known = computed_.find(value);
    if (known == computed_.end()) // of a body's argument
      return randomTensor(type, random_, {0, 1});
    HostTensor tensor = HostTensor::allocate(type);
    const int64_t n = type.shape.numElements(), shift = n ? random_.below(n) : 0;
    for (int64_t i = 0; i < n; ++i)
      op::interp::store(tensor, i,
                        op::interp::load(known->second, random_.chance(0.8) ? (i + shift) % n : random_.below(n)));
    return tensor;
  }
  /// Another value of the type of `value`, known where the run begins.
  Value otherLike(Value value) {
    if (random_.chance(0.5)) {
      std::vector<Value> same;
      Operation *at = &*b_.getInsertionPoint();
      for (Value argument : at->getBlock()->getArguments())
        same.push_back(argument);
      for (Operation &op : *at->getBlock()) {
        if (&op == at)
          break;
        same.insert(same.end(), op.result_begin(), op.result_end());
      }
      std::erase_if(same, [&](Value v) { return v.getType() != value.getType() || v == value; });
      if (!same.empty())
        return random_.pick(same);
    }
    return newInput(typeOf(value), contentsLike(value));
  }

  /// Whether any element is true, or larger than a number that stands somewhere in it.
  Value conditionOn(Value value, Value like) {
    const DType dtype = typeOf(value).dtype;
    if (dtype == bool_)
      return call("any", value);
    auto known = computed_.find(like);
    double limit = 0;
    if (known != computed_.end() && known->second.type.shape.numElements() > 0)
      limit = op::interp::load(known->second, random_.below(known->second.type.shape.numElements())).as<double>();
    limit -= isFloat(dtype) ? 0.01 + 0.1 * random_.unit() : 0;
    Value larger = call("greater", {value, constant(scalarOf(dtype, limit))});
    return larger ? call("any", larger) : Value();
  }
  Value condition() {
    if (!captured_.empty() && random_.chance(0.5)) {
      Value value = random_.pick(captured_.getArrayRef());
      if (Value computed = conditionOn(value, value))
        return computed;
    }
    return newInput({bool_, {}}, scalarOf(bool_, random_.chance(0.5)));
  }
  Value trips() { return newInput({i64, {}}, scalarOf(i64, random_.between(0, kMaxTrips))); }

  //===-- Branches -----------------------------------------------------------------------------------------------===//

  Operation *makeBranch() {
    std::vector<mlir::Type> types;
    for (Value result : results_)
      types.push_back(result.getType());
    Value flag = condition();
    // Made before the op: values of the other branch that are computed outside.
    mlir::IRMapping others;
    const bool clones = random_.chance(0.6);
    if (clones) {
      const size_t certain =
          captured_.empty() ? 0 : static_cast<size_t>(random_.below(static_cast<int64_t>(captured_.size())));
      for (size_t i = 0; i < captured_.size(); ++i)
        if (i == certain || random_.chance(0.3))
          others.map(captured_[i], otherLike(captured_[i]));
    } else {
      for (Value result : results_)
        others.map(result, otherLike(result));
    }
    auto op = graph::CondOp::create(b_, loc_, types, flag, mlir::ValueRange{});
    const unsigned taken = random_.chance(0.5);
    Block *bodies[2] = {b_.createBlock(&op.getThen()), b_.createBlock(&op.getOtherwise())};
    b_.setInsertionPointToEnd(bodies[1 - taken]);
    if (clones)
      for (Operation *each : run_)
        b_.clone(*each, others);
    graph::YieldOp::create(b_, loc_, llvm::map_to_vector(results_, [&](Value v) { return others.lookup(v); }));
    moveRun(bodies[taken]);
    for (auto [result, outside] : llvm::zip_equal(results_, op.getResults()))
      replaceOutside(result, outside, op);
    b_.setInsertionPointToEnd(bodies[taken]);
    graph::YieldOp::create(b_, loc_, results_);
    return op;
  }

  //===-- Loops --------------------------------------------------------------------------------------------------===//

  /// What goes from iteration to iteration: where it starts, and what the body yields, given the carried arguments.
  struct Carried {
    Value start;
    Value replaced;               ///< the value that the argument stands for in the body; may be null
    std::optional<size_t> result; ///< of the run: the next value
    size_t next = 0;              ///< else the argument that is the next value
    bool mixes = false;           ///< the result with what was carried
  };

  /// The run's results that are carried, and pairs of values that swap places.
  void planCarried(const std::vector<bool> &isCarried, const llvm::DenseSet<Value> &taken) {
    llvm::DenseSet<Value> replaced = taken;
    auto isFree = [&](Value v) { return !replaced.contains(v); };
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!isCarried[i])
        continue;
      Carried plan{{}, {}, i};
      for (Value value : captured_)
        if (value.getType() == results_[i].getType() && isFree(value) && random_.chance(0.7)) {
          plan.start = plan.replaced = value;
          replaced.insert(value);
          break;
        }
      if (!plan.start) {
        plan.start = otherLike(results_[i]);
        plan.mixes = random_.chance(0.5);
      }
      carried_.push_back(plan);
    }
    for (Value value : captured_)
      if (isFree(value) && random_.chance(carried_.size() > 2 ? 0.2 : 0.6)) {
        const size_t at = carried_.size();
        carried_.push_back({value, value, {}, at + 1});
        carried_.push_back({otherLike(value), {}, {}, at});
        replaced.insert(value);
      }
  }

  /// The run with what it yields: `index` is the iteration's number, and the carried arguments begin at `first`.
  llvm::SmallVector<Value> fillBody(Block *body, Value index, unsigned first) {
    moveRun(body);
    for (size_t i = 0; i < carried_.size(); ++i)
      if (carried_[i].replaced)
        replaceInside(carried_[i].replaced, body->getArgument(first + static_cast<unsigned>(i)), body);
    b_.setInsertionPointToEnd(body);
    llvm::SmallVector<Value> next;
    for (size_t i = 0; i < carried_.size(); ++i) {
      if (!carried_[i].result) {
        next.push_back(body->getArgument(first + static_cast<unsigned>(carried_[i].next)));
        continue;
      }
      Value result = results_[*carried_[i].result], old = body->getArgument(first + static_cast<unsigned>(i));
      if (carried_[i].mixes) {
        Value mixed;
        if (random_.chance(0.5))
          mixed = call(random_.chance(0.5) ? "minimum" : "maximum", {result, old});
        else if (Value early = call("less", {index, number(random_.between(1, 2))}))
          mixed = call("where", random_.chance(0.5) ? mlir::ValueRange{early, result, old}
                                                    : mlir::ValueRange{early, old, result});
        if (mixed && mixed.getType() == result.getType())
          result = mixed;
      }
      next.push_back(result);
    }
    return next;
  }

  Operation *makeWhile() {
    planCarried(std::vector<bool>(results_.size(), true), {});
    llvm::SmallVector<Value> starts{number(0)};
    llvm::SmallVector<mlir::Type> types;
    for (const Carried &carried : carried_)
      starts.push_back(carried.start);
    for (Value start : starts)
      types.push_back(start.getType());
    Value limit = trips();
    // With a bound it has a gradient.
    mlir::IntegerAttr bound;
    if (random_.chance(0.6))
      bound = b_.getI64IntegerAttr(random_.between(kMaxTrips, kMaxTrips + 2));
    auto op = graph::WhileOp::create(b_, loc_, types, starts, mlir::ValueRange{}, bound);
    Block *condition = b_.createBlock(&op.getCondition()), *body = b_.createBlock(&op.getBody());
    for (Block *block : {condition, body})
      for (Value start : starts)
        block->addArgument(start.getType(), loc_);
    b_.setInsertionPointToEnd(condition);
    // The limit may come to be any number when the loop is moved into a body.
    Value more = call("less", {condition->getArgument(0), call("minimum", {limit, number(kMaxTrips)})});
    if (random_.chance(0.3)) {
      const auto at = static_cast<unsigned>(random_.between(1, static_cast<int64_t>(starts.size()) - 1));
      if (Value also = conditionOn(condition->getArgument(at), starts[at]))
        more = call("logical_and", {more, also});
    }
    graph::YieldOp::create(b_, loc_, more);
    llvm::SmallVector<Value> next = fillBody(body, body->getArgument(0), 1);
    next.insert(next.begin(), call("add", {body->getArgument(0), number(1)}));
    for (size_t i = 0; i < carried_.size(); ++i)
      if (carried_[i].result)
        replaceOutside(results_[*carried_[i].result], op.getResult(1 + static_cast<unsigned>(i)), op);
    graph::YieldOp::create(b_, loc_, next);
    return op;
  }

  /// How often a scan runs: as often as there are slices in a value at hand, a symbol, or a number.
  Size chooseTrips() {
    std::vector<Size> sizes;
    for (Value value : captured_)
      for (Size size : typeOf(value).shape)
        if (dim::isSymbol(size) && dim::evaluate(size, sizes_) <= 2 * kMaxTrips)
          sizes.push_back(size);
    return !sizes.empty() && random_.chance(0.6) ? random_.pick(sizes)
                                                 : Size(random_.between(random_.chance(0.1) ? 0 : 1, kMaxTrips));
  }

  Operation *makeScan() {
    const Size trips = chooseTrips();
    const int64_t count = dim::evaluate(trips, sizes_);
    // A result is carried, or one for each iteration, of which its place outside takes the sum, say.
    std::vector<bool> isCarried;
    for (Value result : results_)
      isCarried.push_back(random_.chance(0.4) || typeOf(result).rank() == kMaxRank);
    llvm::SmallVector<Value> slices, sliced;
    llvm::DenseSet<Value> taken;
    for (Value value : captured_) {
      if (slices.size() > 2 || typeOf(value).rank() == kMaxRank || !random_.chance(0.6))
        continue;
      const TensorType all = graph::fromMlir(graph::stackedType(value.getType(), trips));
      HostTensor contents = HostTensor::allocate({all.dtype, dim::evaluate(all.shape, sizes_)});
      for (int64_t i = 0; i < count; ++i) {
        const HostTensor slice = contentsLike(value);
        std::copy_n(slice.data.get(), slice.type.bytes(), contents.data.get() + i * slice.type.bytes());
      }
      slices.push_back(newInput(all, contents));
      sliced.push_back(value);
      taken.insert(value);
    }
    planCarried(isCarried, taken);
    llvm::SmallVector<Value> starts;
    llvm::SmallVector<mlir::Type> types;
    for (const Carried &carried : carried_) {
      starts.push_back(carried.start);
      types.push_back(carried.start.getType());
    }
    llvm::SmallVector<Value> stacked;
    for (size_t i = 0; i < results_.size(); ++i)
      if (!isCarried[i]) {
        stacked.push_back(results_[i]);
        types.push_back(graph::stackedType(results_[i].getType(), trips));
      }
    auto op = graph::ScanOp::create(b_, loc_, types, graph::sizeAttr(b_.getContext(), trips), starts, slices,
                                    mlir::ValueRange{});
    Block *body = b_.createBlock(&op.getBody());
    body->addArgument(mlir::RankedTensorType::get({}, b_.getI64Type()), loc_);
    for (Value value : starts)
      body->addArgument(value.getType(), loc_);
    for (Value value : sliced)
      body->addArgument(value.getType(), loc_);
    llvm::SmallVector<Value> next = fillBody(body, body->getArgument(0), 1);
    for (size_t i = 0; i < sliced.size(); ++i)
      replaceInside(sliced[i], body->getArgument(1 + static_cast<unsigned>(starts.size() + i)), body);
    graph::YieldOp::create(b_, loc_, llvm::to_vector(llvm::concat<Value>(next, stacked)));

    for (size_t i = 0; i < carried_.size(); ++i)
      if (carried_[i].result)
        replaceOutside(results_[*carried_[i].result], op.getResult(static_cast<unsigned>(i)), op);
    b_.setInsertionPointAfter(op);
    for (size_t i = 0; i < stacked.size(); ++i) {
      Value all = op.getResult(static_cast<unsigned>(carried_.size() + i));
      replaceOutside(stacked[i], fromStacked(all, stacked[i].getType()), op);
    }
    return op;
  }

  /// Of slices along the first dimension, one of their type.
  Value fromStacked(Value stacked, mlir::Type type) {
    const char *reductions[] = {"max", "min", "mean", "any", "sum"};
    for (int64_t i = random_.below(4), tries = 0; tries < 5; ++i, ++tries)
      if (Value one = call(reductions[i % 5], stacked, {{"axis", op::Ints{0}}}); one && one.getType() == type)
        return one;
    Value index = constant(scalarOf(i64, 0)); // the first slice
    return call("take", {stacked, index}, {{"axis", int64_t(0)}});
  }

  RandomGraph &graph_;
  mlir::func::FuncOp main_;
  Computed computed_;
  llvm::ArrayRef<Operation *> wanted_;
  Random &random_;
  mlir::OpBuilder b_;
  mlir::Location loc_ = mlir::UnknownLoc::get(b_.getContext());
  dim::Values sizes_;
  std::vector<Operation *> run_;
  llvm::SetVector<Value> captured_;  ///< what the run takes from outside
  llvm::SmallVector<Value> results_; ///< what it gives
  std::vector<Carried> carried_;
};

} // namespace

int nestOps(RandomGraph &graph, Random &random, std::vector<Operation *> wanted) {
  auto mainOf = [](RandomGraph &g) { return *g.module->getOps<mlir::func::FuncOp>().begin(); };
  Computed computed;
  if (!isHarmless(mainOf(graph), graph.inputs, random.bits(), computed))
    return 0;
  int made = 0;
  for (int64_t tries = 0, changes = random.between(1, 4); tries < 3 * changes && made < changes; ++tries) {
    RandomGraph changed;
    mlir::IRMapping map;
    changed.module =
        mlir::OwningOpRef<mlir::ModuleOp>(mlir::cast<mlir::ModuleOp>(graph.module->getOperation()->clone(map)));
    changed.inputs = graph.inputs;
    Computed known;
    for (const auto &[value, tensor] : computed)
      known[map.lookup(value)] = tensor;
    std::vector<Operation *> mapped;
    for (Operation *op : wanted)
      mapped.push_back(map.lookup(op));
    if (!Nesting(changed, known, mapped, random).change())
      continue;
    passes::setSignature(mainOf(changed));
    Computed now;
    if (!isHarmless(mainOf(changed), changed.inputs, random.bits(), now))
      continue;
    graph = std::move(changed);
    computed = std::move(now);
    wanted = mapped;
    std::erase_if(wanted, [&](Operation *op) { return op->getParentOp() != mainOf(graph); });
    ++made;
  }
  return made;
}

} // namespace tressel::test
