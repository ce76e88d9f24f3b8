#include "passes/schedule/IssueOrder.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"

#include <set>

using namespace mlir;

namespace tressel::passes {

/// Whether the operand is read at consecutive rows, in order, from some row on.
static bool movesRows(const op::LoopForm &form, size_t operand, const Shape &from, const Shape &to, int64_t &firstRow) {
  const op::OperandMap &map = form.operands[operand];
  if (!isPointParallel(form) || form.body.nodes.empty() || map.dims.size() != form.domain.size() || map.dims.empty() ||
      !from.isStatic() || !to.isStatic())
    return false;
  for (auto [d, expr] : llvm::enumerate(map.dims)) {
    if (expr.terms.size() != 1 || expr.terms[0].dim != static_cast<int32_t>(d) || expr.terms[0].coef != 1 ||
        expr.indirect >= 0)
      return false;
    if (d > 0 && (expr.offset != 0 || from[static_cast<int>(d)] != to[static_cast<int>(d)]))
      return false;
  }
  if (!map.dims[0].offset.isNumber())
    return false;
  firstRow = map.dims[0].offset.number();
  return true;
}
static bool copiesOnly(const op::LoopForm &form) {
  return form.combine == op::Combine::None &&
         llvm::all_of(form.body.nodes, [](const op::ScalarNode &node) { return node.op == op::ScalarOp::Operand; });
}

std::optional<int64_t> firstRowOf(Operation *op) {
  const op::OpInfo *info = graph::infoOf(op);
  if (!info || info->family != op::Family::Shape || op->getNumOperands() != 1 || op->getNumResults() != 1)
    return std::nullopt;
  std::optional<op::LoopForm> form = loopFormOf(op);
  int64_t row = 0;
  if (!form || form->operands[0].guarded || !copiesOnly(*form) ||
      !movesRows(*form, 0, graph::fromMlir(op->getOperand(0).getType()).shape,
                 graph::fromMlir(op->getResult(0).getType()).shape, row))
    return std::nullopt;
  return row;
}

bool isRowJoin(Operation *op) {
  const op::OpInfo *info = graph::infoOf(op);
  if (!info || info->family != op::Family::Shape || op->getNumOperands() < 2 || op->getNumResults() != 1)
    return false;
  std::optional<op::LoopForm> form = loopFormOf(op);
  if (!form || !form->alternatives || !copiesOnly(*form))
    return false;
  const Shape result = graph::fromMlir(op->getResult(0).getType()).shape;
  int64_t row = 0, expected = 0;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    const Shape part = graph::fromMlir(operand.getType()).shape;
    if (!movesRows(*form, i, part, result, row) || row != -expected)
      return false;
    expected += part.extent(0);
  }
  return true;
}

bool isView(Operation *op) {
  const op::OpInfo *info = graph::infoOf(op);
  if (!info || graph::isTransfer(op))
    return false;
  return info->isView || firstRowOf(op).has_value();
}

int64_t offsetInBase(Value value) {
  int64_t offset = 0;
  while (Operation *def = value.getDefiningOp()) {
    if (!isView(def))
      break;
    if (int64_t row = graph::infoOf(def)->isView ? 0 : *firstRowOf(def)) {
      const TensorType whole = graph::fromMlir(def->getOperand(0).getType());
      if (whole.shape.extent(0) > 0) // an empty value has empty parts only
        offset += row * (whole.bytes() / whole.shape.extent(0));
    }
    value = def->getOperand(0);
  }
  return offset;
}

Value baseOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isView(def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

bool isWork(Operation *op) {
  return isa<graph::LaunchOp, graph::ControlOpInterface>(op) || graph::isTransfer(op) || isRowJoin(op) ||
         graph::isCollective(op);
}

IssueOrder::IssueOrder(func::FuncOp main, bool leastMemory) : block(main.getBody().front()) {
  splitPrepare(main);
  if (leastMemory) {
    settle();
    delayStateWrites(main);
  }
}

IssueOrder::IssueOrder(Block &body) : block(body) {
  for (Operation &op : block)
    if (isWork(&op))
      step.push_back(&op);
  settle();
}

void IssueOrder::settle() {
  std::vector<Operation *> best = step;
  int64_t least = peakOf(step);
  for (std::vector<Operation *> order : {leastMemoryFirst(), shrinkingFirst()})
    if (const int64_t peak = peakOf(order); peak < least) {
      best = std::move(order);
      least = peak;
    }
  step = std::move(best);
}

/// A step that fails must leave its states unchanged, so it may not fail after it has written one. Moves ops that make
/// next values of states behind those that may fail, unless one of these depends on them.
void IssueOrder::delayStateWrites(func::FuncOp main) {
  llvm::SmallDenseSet<Operation *> writers;
  for (auto [i, result] : llvm::enumerate(block.getTerminator()->getOperands()))
    if (main.getResultAttr(static_cast<unsigned>(i), graph::kStateAttr))
      if (Operation *op = baseOf(result).getDefiningOp())
        writers.insert(op);
  if (writers.empty())
    return;
  SymbolTableCollection symbols;
  const auto last = std::find_if(step.rbegin(), step.rend(), [&](Operation *op) { return mayFail(op, symbols); });
  if (last == step.rend())
    return;
  llvm::SmallDenseSet<Operation *> needed; // an op that may fail depends on it
  for (auto at = last; at != step.rend(); ++at)
    if (needed.contains(*at) || mayFail(*at, symbols))
      for (Value base : basesRead(*at))
        if (Operation *def = base.getDefiningOp())
          needed.insert(def);
  llvm::SmallDenseSet<Operation *> delayed;
  std::vector<Operation *> before, after;
  for (auto at = step.begin(); at != last.base(); ++at) {
    const bool follows = llvm::any_of(basesRead(*at), [&](Value base) { return delayed.contains(base.getDefiningOp()); });
    if (follows || (writers.contains(*at) && !needed.contains(*at) && *at != *last))
      delayed.insert(*at);
    (delayed.contains(*at) ? after : before).push_back(*at);
  }
  std::ranges::copy(after, std::ranges::copy(before, step.begin()).out);
}

/// Whether its kernel has symbolic sizes, which prepare does not know.
static bool isSymbolic(graph::LaunchOp launch, SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr());
  return kernel && !graph::symbolsOf(kernel).empty();
}

/// Ops on parameters and constants alone move to prepare, unless they make so much from so little that keeping the
/// results takes more memory than the parameters do.
void IssueOrder::splitPrepare(func::FuncOp main) {
  constexpr int64_t kFree = 64 * 1024, kGrowth = 4;
  SymbolTableCollection symbols;
  EffectFacts facts;
  llvm::DenseSet<Value> parameterOnly = parameterOnlyValues(main);
  for (Value value : parameterOnly)
    if (Operation *def = baseOf(value).getDefiningOp(); !def || !isWork(def))
      prepared.insert(value);
  for (Operation &op : block) {
    if (!isWork(&op))
      continue;
    int64_t in = 0, out = 0;
    auto launch = dyn_cast<graph::LaunchOp>(op);
    bool known = (launch || graph::isTransfer(&op)) && !op.hasAttr(kInStepAttr);
    for (Value operand : op.getOperands()) {
      in += bytesOf(operand.getType());
      known &= prepared.contains(baseOf(operand));
    }
    for (Value result : op.getResults())
      out += bytesOf(result.getType());
    if (launch && known)
      known = !facts.isRandom(launch) && !facts.hasEffects(launch) && !isSymbolic(launch, symbols);
    if (known && out <= kFree + kGrowth * in) {
      prepare.push_back(&op);
      prepared.insert(op.result_begin(), op.result_end());
    } else {
      step.push_back(&op);
    }
  }
}

IssueOrder::Values IssueOrder::stepValues() const {
  Values values;
  for (Operation *op : step)
    for (Value result : op->getResults())
      values[result] = {bytesOf(result.getType()), 0};
  for (Operation *op : step)
    for (Value base : basesRead(op))
      if (auto at = values.find(base); at != values.end())
        ++at->second.readers;
  // A result is computed in the caller's memory, the next value of a state in the state's, so they take no arena
  // memory; what a body yields is never freed.
  const bool isMain = isa<func::FuncOp>(block.getParentOp());
  for (Value result : block.getTerminator()->getOperands())
    if (auto at = values.find(baseOf(result)); at != values.end()) {
      ++at->second.readers;
      at->second.bytes = isMain ? 0 : at->second.bytes;
    }
  return values;
}

SmallVector<Value> IssueOrder::basesRead(Operation *op) {
  llvm::SmallSetVector<Value, 8> bases;
  for (Value operand : op->getOperands())
    bases.insert(baseOf(operand));
  return bases.takeVector();
}

int64_t IssueOrder::growth(Operation *op, const Values &values) {
  int64_t bytes = 0;
  for (Value result : op->getResults())
    bytes += values.lookup(result).bytes;
  for (Value base : basesRead(op))
    if (Live live = values.lookup(base); live.readers == 1)
      bytes -= live.bytes;
  return bytes;
}

void IssueOrder::run(Operation *op, Values &values) {
  for (Value base : basesRead(op))
    if (auto at = values.find(base); at != values.end())
      --at->second.readers;
}

int64_t IssueOrder::peakOf(ArrayRef<Operation *> order) const {
  Values values = stepValues();
  int64_t now = 0, peak = 0;
  for (Operation *op : order) {
    int64_t made = 0;
    for (Value result : op->getResults())
      made += values.lookup(result).bytes;
    peak = std::max(peak, now + made);
    now += growth(op, values);
    run(op, values);
  }
  return peak;
}

IssueOrder::Waits IssueOrder::waitsOf(const Values &values) const {
  Waits waits;
  SymbolTableCollection symbols;
  std::optional<size_t> lastEffect;
  for (auto [i, op] : llvm::enumerate(step)) {
    size_t count = 0;
    for (Value base : basesRead(op))
      if (values.contains(base)) {
        waits.readers[base].push_back(i);
        ++count;
      }
    if (hasEffects(op, symbols)) {
      if (lastEffect) {
        waits.nextEffect[*lastEffect] = i;
        ++count;
      }
      lastEffect = i;
    }
    waits.missing.push_back(count);
  }
  return waits;
}

/// List scheduling for least memory: of the first few ready ops, takes the one that leaves the fewest live bytes.
std::vector<Operation *> IssueOrder::leastMemoryFirst() const {
  constexpr int kWindow = 16;
  Values values = stepValues();
  Waits waits = waitsOf(values);
  std::set<size_t> ready; // in program order
  for (auto [i, count] : llvm::enumerate(waits.missing))
    if (count == 0)
      ready.insert(i);
  std::vector<Operation *> order;
  while (!ready.empty()) {
    auto best = ready.begin();
    int64_t least = growth(step[*best], values);
    int seen = 0;
    for (auto at = ready.begin(); at != ready.end() && seen < kWindow; ++at, ++seen)
      if (int64_t bytes = growth(step[*at], values); bytes < least) {
        best = at;
        least = bytes;
      }
    const size_t place = *best;
    ready.erase(best);
    order.push_back(step[place]);
    run(step[place], values);
    for (Value result : step[place]->getResults())
      for (size_t reader : waits.readers.lookup(result))
        if (--waits.missing[reader] == 0)
          ready.insert(reader);
    if (auto next = waits.nextEffect.find(place); next != waits.nextEffect.end() && --waits.missing[next->second] == 0)
      ready.insert(next->second);
  }
  return order;
}

/// Program order, except that ops which reduce live memory run as soon as they are ready: an optimizer's update that
/// follows all gradients in the program runs when its gradient is ready.
std::vector<Operation *> IssueOrder::shrinkingFirst() const {
  Values values = stepValues();
  Waits waits = waitsOf(values);
  std::vector<uint8_t> isDone(step.size(), 0);
  std::vector<int64_t> growths(step.size(), 0);
  std::set<std::pair<int64_t, size_t>> shrinking; // growth and place of ready ops that reduce memory
  auto look = [&](size_t place) {
    if (isDone[place] || waits.missing[place] > 0)
      return;
    shrinking.erase({growths[place], place});
    growths[place] = growth(step[place], values);
    if (growths[place] < 0)
      shrinking.insert({growths[place], place});
  };
  for (size_t i = 0; i < step.size(); ++i)
    look(i);
  std::vector<Operation *> order;
  for (size_t next = 0; order.size() < step.size();) {
    while (isDone[next])
      ++next;
    const size_t place = shrinking.empty() ? next : shrinking.begin()->second;
    shrinking.erase({growths[place], place});
    isDone[place] = 1;
    order.push_back(step[place]);
    run(step[place], values);
    for (Value result : step[place]->getResults())
      for (size_t reader : waits.readers.lookup(result)) {
        --waits.missing[reader];
        look(reader);
      }
    if (auto after = waits.nextEffect.find(place); after != waits.nextEffect.end()) {
      --waits.missing[after->second];
      look(after->second);
    }
    for (Value base : basesRead(step[place])) // its last reader now frees it
      if (auto at = values.find(base); at != values.end() && at->second.readers == 1)
        for (size_t reader : waits.readers.lookup(base))
          look(reader);
  }
  return order;
}

} // namespace tressel::passes
