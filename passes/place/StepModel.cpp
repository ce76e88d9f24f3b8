#include "passes/place/StepModel.h"

#include "passes/schedule/IssueOrder.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Segment.h"
#include "ir/graph/Structure.h"

#include <algorithm>
#include <limits>

using namespace mlir;

namespace tressel::passes {

using residency::Item;
using residency::kNone;

StepModel::StepModel(func::FuncOp main, MachineCosts &costs, bool hostIsBounded) : main(main), costs(costs) {
  step.hostIsBounded = hostIsBounded;
  IssueOrder split(main, /*leastMemory=*/false);
  // A copy to a device that only prepare reads is issued right before its reader.
  llvm::DenseSet<Operation *> inPrepare(split.prepare.begin(), split.prepare.end()), placed;
  auto isIn = [&](Operation *op) { return graph::isTransfer(op) && deviceIndexOf(op, costs) != 0; };
  auto put = [&](Operation *op, auto &self) -> void {
    if (!placed.insert(op).second)
      return;
    for (Value operand : op->getOperands())
      if (Operation *def = baseOf(operand).getDefiningOp(); def && inPrepare.contains(def))
        self(def, self);
    prepare.push_back(op);
  };
  auto isReadByPrepare = [&](Operation *op) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) { return inPrepare.contains(user) || isView(user); });
  };
  for (Operation *op : split.prepare)
    if (!isIn(op) || !isReadByPrepare(op)) {
      put(op, put);
      for (Operation *user : op->getUsers()) // results are copied out at once
        if (inPrepare.contains(user) && graph::isTransfer(user) && deviceIndexOf(user, costs) == 0)
          put(user, put);
    }
  for (Operation *op : split.prepare)
    put(op, put);
  opOf = split.step;
  readValues();
  readTasks();
}

uint32_t StepModel::add(Value value, unsigned device) {
  auto [at, isNew] = indexOf.try_emplace(value, static_cast<uint32_t>(values.size()));
  if (!isNew)
    return at->second;
  values.push_back({value, {}});
  residency::Value &made = step.values.emplace_back();
  made.bytes = slotBytesOf(value.getType());
  made.device = device;
  if (device != 0) {
    const int64_t bytes = bytesOf(value.getType());
    const auto out = costs.transfer(device, 0, bytes, false), in = costs.transfer(0, device, bytes, false);
    if (out && in) {
      made.outSeconds = out->seconds, made.inSeconds = in->seconds;
      made.outEngine = costs.engine(device, runtime::StreamKind::CopyOut);
      made.inEngine = costs.engine(device, runtime::StreamKind::CopyIn);
    } else {
      made.isFixed = true;
    }
  } else if (step.hostIsBounded) {
    made.outSeconds = made.inSeconds = std::numeric_limits<double>::infinity();
  }
  return at->second;
}

void StepModel::readValues() {
  // Rows of a join are one value with the whole, as they lie in its bytes.
  for (Operation *op : llvm::reverse(opOf))
    if (isRowJoin(op) && step.isBounded(deviceIndexOf(op, costs))) {
      const uint32_t whole = add(op->getResult(0), deviceIndexOf(op, costs));
      for (Value part : op->getOperands()) {
        indexOf[baseOf(part)] = whole;
        // If the whole was prefetched, an op that reads one part reads its rows of the whole: see rowsOf. That is not
        // implemented for parts of parts.
        Operation *def = part.getDefiningOp();
        step.values[whole].isFixed |= !def || isView(def) || isRowJoin(def) || values[whole].value != op->getResult(0);
      }
    }
  llvm::DenseSet<Value> ofPrepare;
  for (Operation *op : prepare)
    for (Value result : op->getResults())
      if (homeIndexOf(result, costs) != 0)
        ofPrepare.insert(result);
  for (Operation *op : opOf) {
    for (Value operand : op->getOperands())
      if (const Value base = baseOf(operand); ofPrepare.erase(base)) {
        const uint32_t v = add(base, homeIndexOf(base, costs));
        step.values[v].isResident = step.values[v].isOnHost = true;
        values[v].source = graph::isTransfer(base.getDefiningOp()) &&
                                   homeIndexOf(baseOf(base.getDefiningOp()->getOperand(0)), costs) == 0
                               ? base.getDefiningOp()->getOperand(0)
                               : Value();
        prepared.push_back(v);
      }
    for (Value result : op->getResults())
      add(result, homeIndexOf(result, costs));
  }
  fixResults();
}

void StepModel::fixResults() {
  // The caller reads it from there, so it may not be evicted. An output is computed in the caller's memory, which
  // FitMemory counts.
  for (OpOperand &result : main.getBody().front().getTerminator()->getOpOperands()) {
    const Value base = baseOf(result.get());
    auto at = indexOf.find(base);
    const unsigned home = homeIndexOf(base, costs);
    if (at == indexOf.end() || !step.isBounded(home))
      continue;
    residency::Value &value = step.values[at->second];
    value.isFixed = true;
    // On the host the next value of a state normally is computed in the state's bytes, so it takes none here.
    if ((home == 0 || !main.getResultAttr(result.getOperandNumber(), graph::kStateAttr)) && !isPartOfJoin(base) &&
        !value.isResident && bytesOf(base.getType()) == bytesOf(result.get().getType()))
      value.bytes = 0;
  }
}

void StepModel::readTasks() {
  EffectFacts facts;
  SymbolTableCollection symbols;
  llvm::DenseMap<std::pair<Attribute, std::pair<unsigned, unsigned>>, bool> overwritten;
  for (auto [i, op] : llvm::enumerate(opOf)) {
    const auto index = static_cast<uint32_t>(i);
    taskOf[op] = index;
    residency::Task &task = step.tasks.emplace_back();
    task.device = deviceIndexOf(op, costs);
    for (Value result : op->getResults())
      task.writes.push_back(indexOf.lookup(result));
    if (isRowJoin(op) && step.isBounded(task.device))
      continue;
    for (Value operand : op->getOperands())
      if (auto at = indexOf.find(baseOf(operand)); at != indexOf.end() && !llvm::is_contained(task.reads, at->second))
        task.reads.push_back(at->second);
    if (isRowJoin(op))
      continue;
    const auto [device, stream] = streamOf(op, costs);
    task.engine = costs.engine(device, stream);
    if (graph::isTransfer(op)) {
      const Value from = baseOf(op->getOperand(0));
      const unsigned home = homeIndexOf(from, costs);
      if (const auto way = costs.transfer(home, task.device, bytesOf(op->getResult(0).getType()),
                                          isPageable(main, home == 0 ? from : op->getResult(0))))
        task.seconds = way->seconds;
      const uint32_t to = task.writes[0];
      residency::Value &value = step.values[to];
      if (home == 0 && task.device != 0 && values[to].value == op->getResult(0)) {
        auto source = indexOf.find(from);
        value.onHost = source == indexOf.end() ? kNone : source->second;
        value.isOnHost = true;
        value.copiedBy = index;
        value.inSeconds = task.seconds;
        values[to].source = op->getOperand(0);
      } else if (home != 0 && task.device == 0 && op->getOperand(0) == from) {
        if (auto source = indexOf.find(from); source != indexOf.end() && values[source->second].value == from &&
                                              step.values[source->second].copiedOutBy == kNone)
          step.values[source->second].copiedOutBy = index;
      }
      continue;
    }
    task.seconds = costs.seconds(op, task.device);
    for (int64_t segment : graph::segmentsOf(op))
      task.segments.push_back(static_cast<uint32_t>(segment));
    if (!task.segments.empty())
      for (auto [v, segment] : llvm::zip_equal(task.writes, graph::droppedOf(op)))
        if (segment != 0 && step.isBounded(step.values[v].device) && !step.values[v].isFixed)
          step.values[v].droppedBy = static_cast<uint32_t>(segment);
    // Random numbers are a function of the seed, an operand: a second run gives the same.
    // On the host a state is written after all ops that may fail, so such an op cannot be repeated later.
    task.mayRematerialize = !facts.hasEffects(op) && (task.device != 0 || !mayFail(op, symbols));
    auto launch = dyn_cast<graph::LaunchOp>(op);
    if (!launch) {
      task.scratch = step.isBounded(task.device) ? bodyBytes(op) : 0;
      continue;
    }
    if (!step.isBounded(task.device))
      continue;
    auto mayTake = [&](unsigned operand, unsigned result) {
      auto [at, isNew] = overwritten.try_emplace({launch.getKernelAttr(), {operand, result}});
      if (isNew) {
        auto kernel = symbols.lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr());
        at->second = kernel && mayOverwrite(kernel, operand, result);
      }
      return at->second;
    };
    // If several results may overwrite an operand, the largest does.
    for (auto [r, result] : llvm::enumerate(task.writes)) {
      const int64_t bytes = step.values[result].bytes;
      if (bytes == 0 || (!task.overwrites.empty() && bytes <= step.values[task.writes[task.overwriter]].bytes))
        continue;
      llvm::SmallVector<uint32_t, 2> taken;
      for (uint32_t v : task.reads) {
        if (step.values[v].bytes != bytes)
          continue;
        bool takes = true;
        for (OpOperand &operand : op->getOpOperands())
          if (auto at = indexOf.find(baseOf(operand.get())); at != indexOf.end() && at->second == v)
            takes &= offsetInBase(operand.get()) == 0 && mayTake(operand.getOperandNumber(), static_cast<unsigned>(r));
        if (takes)
          taken.push_back(v);
      }
      if (!taken.empty())
        task.overwrites = std::move(taken), task.overwriter = static_cast<uint32_t>(r);
    }
  }
}

/// Bytes in a device's memory for the bodies of an op while they run, without its own operands and results.
int64_t StepModel::bodyBytes(Operation *op) {
  int64_t most = 0;
  for (Region &region : op->getRegions()) {
    IssueOrder order(region.front());
    llvm::DenseMap<Value, size_t> last;
    for (auto [i, inner] : llvm::enumerate(order.step))
      for (Value operand : inner->getOperands())
        last[baseOf(operand)] = i;
    int64_t now = 0;
    std::vector<int64_t> freed(order.step.size() + 1, 0);
    for (auto [i, inner] : llvm::enumerate(order.step)) {
      for (Value result : inner->getResults())
        if (llvm::none_of(result.getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); })) {
          now += slotBytesOf(result.getType());
          freed[std::max(i, last.lookup(result)) + 1] += slotBytesOf(result.getType());
        }
      most = std::max(most, now + bodyBytes(inner));
      now -= freed[i + 1];
    }
  }
  return most;
}

int64_t StepModel::heldOn(unsigned device) const {
  int64_t bytes = 0;
  for (uint32_t v : prepared)
    if (step.values[v].device == device && step.values[v].isResident)
      bytes += step.values[v].bytes;
  return bytes;
}

int64_t StepModel::preparePeak(unsigned device) const {
  llvm::DenseMap<Value, size_t> last;
  for (auto [i, op] : llvm::enumerate(prepare))
    for (Value operand : op->getOperands())
      last[baseOf(operand)] = i;
  auto isTemporary = [&](Value value) {
    if (homeIndexOf(value, costs) != device)
      return false;
    auto at = indexOf.find(value);
    return at == indexOf.end() ||
           (!step.values[at->second].isResident && (!values[at->second].source || last.contains(value)));
  };
  SymbolTableCollection symbols;
  std::vector<int64_t> freed(prepare.size() + 1, 0);
  int64_t now = 0, most = 0;
  for (auto [i, op] : llvm::enumerate(prepare)) {
    int64_t inPlace = 0;
    if (auto launch = dyn_cast<graph::LaunchOp>(op);
        launch && launch.getNumResults() == 1 && isTemporary(launch.getResult(0)))
      for (OpOperand &operand : op->getOpOperands())
        if (last.lookup(operand.get()) == i && isTemporary(operand.get()) &&
            llvm::count(op->getOperands(), operand.get()) == 1 &&
            slotBytesOf(operand.get().getType()) == slotBytesOf(launch.getResult(0).getType()))
          if (auto kernel = symbols.lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr());
              kernel && mayOverwrite(kernel, operand.getOperandNumber()))
            inPlace = slotBytesOf(launch.getResult(0).getType());
    for (Value result : op->getResults())
      if (isTemporary(result)) {
        now += slotBytesOf(result.getType());
        freed[std::max(i, last.lookup(result)) + 1] += slotBytesOf(result.getType());
      }
    most = std::max(most, now - inPlace);
    now -= freed[i + 1];
  }
  return most;
}

residency::Sequence StepModel::sequenceOf(ArrayRef<Operation *> order) const {
  residency::Sequence sequence;
  sequence.reserve(order.size());
  for (Operation *op : order)
    sequence.push_back({Item::Run, taskOf.lookup(op)});
  return sequence;
}

struct StepModel::Apply {
  StepModel &model;
  Operation *terminator;
  std::vector<Value> now, onHost; ///< by value
  llvm::SmallDenseSet<Operation *> moved;
  llvm::DenseMap<uint32_t, SmallVector<Value>>
      operandsOf; ///< by task, as the step names them; a value of them may be evicted later

  explicit Apply(StepModel &model) : model(model), terminator(model.main.getBody().front().getTerminator()) {
    for (const Known &known : model.values) {
      now.push_back(known.value);
      onHost.push_back(known.source);
    }
  }

  /// Moves the op to the end, with the views and constants that it reads before it.
  void move(Operation *op) {
    if (!moved.insert(op).second)
      return;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && !isWork(def))
        move(def);
    op->moveBefore(terminator);
  }
  /// The rows of `whole` that correspond to `part` of a join, where `whole` is a copy of the join's result.
  Value rowsOf(Value whole, Operation *join, Value part) {
    const TensorType type = graph::fromMlir(whole.getType());
    op::Sizes starts(static_cast<size_t>(type.rank()), 0), limits(type.shape.begin(), type.shape.end());
    for (Value each : join->getOperands()) {
      const Size rows = graph::fromMlir(each.getType()).shape[0];
      limits[0] = starts[0] + rows;
      if (each == part)
        break;
      starts[0] += rows;
    }
    OpBuilder b(terminator);
    return graph::createOp(b, part.getLoc(), *op::findOp("slice"), whole, {starts, limits, op::Ints()})->getResult(0);
  }
  /// The operand's current copy, through the same views.
  Value current(Value operand) {
    const Value base = baseOf(operand);
    auto at = model.indexOf.find(base);
    if (at == model.indexOf.end() || now[at->second] == model.values[at->second].value)
      return operand;
    SmallVector<Operation *> chain;
    for (Value v = operand; v != base; v = v.getDefiningOp()->getOperand(0))
      chain.push_back(v.getDefiningOp());
    Value value = now[at->second];
    if (const Value first = model.values[at->second].value; first != base)
      value = rowsOf(value, first.getDefiningOp(), base);
    OpBuilder b(terminator);
    for (Operation *view : llvm::reverse(chain)) {
      Operation *clone = b.clone(*view);
      clone->setOperand(0, value);
      value = clone->getResult(0);
    }
    return value;
  }
  Value transfer(Value value, Location loc, runtime::DeviceRef device) {
    OpBuilder b(terminator);
    return graph::createTransfer(b, loc, value, device);
  }
  void run(Operation *op) {
    const uint32_t task = model.taskOf.lookup(op);
    if (model.step.tasks[task].mayRematerialize)
      operandsOf[task] = llvm::to_vector(op->getOperands());
    for (OpOperand &operand : op->getOpOperands())
      operand.set(current(operand.get()));
    move(op);
    for (uint32_t v : model.step.tasks[task].reads)
      if (model.step.values[v].copiedOutBy == task)
        onHost[v] = op->getResult(0);
  }
  void rematerialize(uint32_t task) {
    OpBuilder b(terminator);
    Operation *clone = b.clone(*model.opOf[task]);
    if (auto operands = operandsOf.find(task); operands != operandsOf.end())
      clone->setOperands(operands->second);
    for (OpOperand &operand : clone->getOpOperands()) {
      operand.set(current(operand.get()));
      if (Operation *def = operand.get().getDefiningOp(); def && !isWork(def))
        move(def); // else it would move ahead with its next reader
    }
    clone->moveBefore(terminator);
    for (auto [v, result] : llvm::zip_equal(model.step.tasks[task].writes, clone->getResults()))
      now[v] = result;
  }
  void prefetch(uint32_t v) {
    const residency::Value &value = model.step.values[v];
    const Value first = model.values[v].value;
    if (value.copiedBy != kNone && now[v] == first && !moved.contains(first.getDefiningOp()))
      return run(model.opOf[value.copiedBy]);
    Value source = onHost[v];
    if (Operation *def = source.getDefiningOp(); def && !isWork(def))
      move(def);
    now[v] = transfer(source, first.getLoc(), model.costs.devices()[value.device]->device);
    if (llvm::is_contained(model.prepared, v)) // else it would belong to prepare
      now[v].getDefiningOp()->setAttr(kInStepAttr, UnitAttr::get(first.getContext()));
  }
  void spill(uint32_t v) { onHost[v] = transfer(now[v], model.values[v].value.getLoc(), graph::kHost); }
};

void StepModel::apply(ArrayRef<Item> sequence) {
  Apply to(*this);
  llvm::DenseSet<Operation *> inPrepare(prepare.begin(), prepare.end());
  for (Operation *op : prepare) {
    to.move(op);
    for (Value result : op->getResults()) {
      auto at = indexOf.find(result);
      if (at == indexOf.end() || step.values[at->second].isResident)
        continue;
      // A parameter that is streamed needs a copy on the host. If the device computed it, it is copied out once; if it
      // lies in the caller's memory, which may not be pinned, it is copied to pinned memory.
      const uint32_t v = at->second;
      if (values[v].source)
        to.onHost[v] = to.transfer(values[v].source, result.getLoc(), graph::kHost);
      else
        to.spill(v);
    }
  }
  for (const Item &item : sequence) {
    if (item.kind == Item::Run)
      to.run(opOf[item.index]);
    else if (item.kind == Item::Rematerialize)
      to.rematerialize(item.index);
    else if (item.kind == Item::Prefetch)
      to.prefetch(item.index);
    else
      to.spill(item.index);
  }
  Operation *terminator = to.terminator;
  for (Value result : terminator->getOperands())
    if (Operation *def = result.getDefiningOp(); def && !isWork(def))
      to.move(def);
  // Erases views without users, and copies ahead of the step of parameters that are now streamed.
  llvm::DenseSet<Operation *> streamed;
  for (uint32_t v : prepared)
    if (Operation *def = values[v].value.getDefiningOp(); !step.values[v].isResident && graph::isTransfer(def))
      streamed.insert(def);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*terminator->getBlock())))
    if (op.use_empty() && (isView(&op) || streamed.contains(&op)))
      op.erase();
  main->setAttr(kOrderedAttr, UnitAttr::get(main.getContext()));
}

} // namespace tressel::passes
