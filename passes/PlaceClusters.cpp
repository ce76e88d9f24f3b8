#include "passes/IssueOrder.h"
#include "passes/MachineCosts.h"
#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Control.h"
#include "ir/graph/Device.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"

#include <limits>
#include <numeric>

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_PLACECLUSTERS
#include "passes/Passes.h.inc"

namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr unsigned kFree = ~0u, kHostIndex = 0;

/// A launch, or an op with bodies, of the step.
struct Task {
  Operation *op = nullptr;
  SmallVector<uint32_t, 4> reads, writes; ///< values
  unsigned fixed = kFree;                 ///< the device it is annotated with, or the only one that can run it
  int64_t bytes = 0;                      ///< of all that it reads and writes
  double rank = 0;                        ///< seconds from its begin to the end of the step, at best, on average
};

/// What tasks read and write, by base.
struct Value_ {
  int64_t bytes = 0;
  bool everywhere = false; ///< made by prepare, which copies it to whoever reads it
  bool pageable = false;   ///< the caller's memory, not promised to be pinned: of an argument, or where a result goes
  bool isResult = false;   ///< comes back to the host at the end
  uint32_t readers = 0;
};

/// How one way to place all tasks goes.
struct Plan {
  std::vector<unsigned> device; ///< by task
  std::vector<SmallVector<double>>
      finish; ///< by task and device: when its result would have been there; where asked for
  double end = 0;
};

/// Heterogeneous earliest finish time (Topcuoglu, Hariri and Wu, 2002), without insertion: tasks in the order of how
/// much depends on them, each where its result is there first.
class Placer {
public:
  Placer(func::FuncOp main, const runtime::MachineModel &machine)
      : costs(machine), numDevices(static_cast<unsigned>(costs.devices().size())) {
    collect(main);
    rankTasks();
  }

  /// Fails with an error at the op that fits nowhere.
  LogicalResult check() {
    for (Task &task : tasks) {
      auto fits = [&](unsigned d) { return task.bytes <= costs.devices()[d]->memoryBytes; };
      if (task.fixed != kFree ? fits(task.fixed) : llvm::any_of(llvm::seq(0u, numDevices), fits))
        continue;
      const runtime::DeviceModel &where = *costs.devices()[task.fixed != kFree ? task.fixed : kHostIndex];
      return task.op->emitError("reads and writes ")
             << task.bytes << " bytes, but the memory of " << where.name << " has " << where.memoryBytes
             << (task.fixed == kFree ? ", and no other has more" : "");
    }
    return success();
  }

  /// Every task on one of the devices that `allowed` has, unless it is fixed or does not fit there.
  Plan place(ArrayRef<unsigned> allowed, bool explain) const;

  std::vector<Task> tasks;
  MachineCosts costs;
  const unsigned numDevices;
  std::vector<Operation *> prepared;

private:
  void collect(func::FuncOp main);
  void rankTasks();

  std::vector<Value_> values;
  std::vector<uint32_t> order; ///< tasks, by rank
  mutable std::vector<double> seconds;
};

void Placer::collect(func::FuncOp main) {
  Block &block = main.getBody().front();
  IssueOrder split(main, /*leastMemory=*/false);
  prepared = split.prepare;
  llvm::DenseMap<Value, uint32_t> indexOf;
  llvm::DenseSet<Value> everywhere = parameterOnlyValues(main);
  for (Operation &op : block)
    if (isWork(&op)) // made from parameters, but in each step, because it is large
      for (Value result : op.getResults())
        everywhere.erase(result);
  for (Operation *op : prepared)
    everywhere.insert(op->result_begin(), op->result_end());
  auto isPageable = [&](Value base) {
    auto arg = dyn_cast<BlockArgument>(base);
    return arg && !main.getArgAttr(arg.getArgNumber(), graph::kPinnedAttr);
  };
  auto index = [&](Value base) {
    auto [at, isNew] = indexOf.try_emplace(base, values.size());
    if (isNew) {
      Operation *def = base.getDefiningOp();
      values.push_back({bytesOf(base.getType()), everywhere.contains(base) || (def && !isWork(def)), isPageable(base)});
    }
    return at->second;
  };
  EffectFacts facts;
  std::vector<Operation *> step = split.step;
  for (Operation *op : step) {
    Task &task = tasks.emplace_back();
    task.op = op;
    for (Value operand : op->getOperands())
      if (uint32_t value = index(baseOf(operand)); !llvm::is_contained(task.reads, value)) {
        task.reads.push_back(value);
        ++values[value].readers;
        task.bytes += values[value].bytes;
      }
    for (Value result : op->getResults()) {
      task.writes.push_back(index(result));
      task.bytes += values[task.writes.back()].bytes;
    }
    if (std::optional<runtime::DeviceRef> device = graph::deviceOf(op))
      task.fixed = costs.indexOf(*device).value_or(kHostIndex);
    else if (isa<graph::ControlOpInterface>(op) || facts.hasEffects(op))
      task.fixed = kHostIndex;
  }
  for (OpOperand &result : block.getTerminator()->getOpOperands())
    if (auto at = indexOf.find(baseOf(result.get())); at != indexOf.end()) {
      values[at->second].isResult = true;
      values[at->second].pageable |= !main.getResultAttr(result.getOperandNumber(), graph::kPinnedAttr);
    }
  seconds.resize(tasks.size() * numDevices);
  for (auto [i, task] : llvm::enumerate(tasks))
    for (unsigned d = 0; d < numDevices; ++d)
      seconds[i * numDevices + d] = costs.seconds(task.op, d);
}

void Placer::rankTasks() {
  // On average over devices; a value changes its device as often as two picked at random differ.
  auto moving = [&](const Value_ &value) {
    double sum = 0;
    unsigned count = 0;
    for (unsigned d = 1; d < numDevices; ++d)
      if (auto t = costs.transfer(kHostIndex, d, value.bytes, false)) {
        sum += t->seconds;
        ++count;
      }
    return count ? sum / count * (1 - 1.0 / numDevices) : 0;
  };
  std::vector<double> after(values.size(), 0); // what follows the value
  for (size_t i = tasks.size(); i-- > 0;) {
    Task &task = tasks[i];
    for (unsigned d = 0; d < numDevices; ++d)
      task.rank += seconds[i * numDevices + d] / numDevices;
    if (task.fixed != kFree)
      task.rank = seconds[i * numDevices + task.fixed];
    double longest = 0;
    for (uint32_t value : task.writes)
      longest = std::max(longest, after[value]);
    task.rank += longest;
    for (uint32_t value : task.reads)
      if (!values[value].everywhere)
        after[value] = std::max(after[value], task.rank + moving(values[value]));
  }
  order.resize(tasks.size());
  std::iota(order.begin(), order.end(), 0u);
  llvm::sort(order,
             [&](uint32_t a, uint32_t b) { return std::pair(-tasks[a].rank, a) < std::pair(-tasks[b].rank, b); });
}

Plan Placer::place(ArrayRef<unsigned> allowed, bool explain) const {
  Plan plan;
  plan.device.assign(tasks.size(), kHostIndex);
  if (explain)
    plan.finish.resize(tasks.size());
  // When a value is in a device's memory; where it was made; how many have yet to read it.
  std::vector<double> there(values.size() * numDevices, kNever);
  std::vector<unsigned> home(values.size(), kHostIndex);
  std::vector<uint32_t> unread(values.size());
  struct Engines {
    double compute = 0, in = 0, out = 0;
  };
  std::vector<Engines> engines(numDevices);
  std::vector<int64_t> held(numDevices, 0);
  for (size_t v = 0; v < values.size(); ++v) {
    unread[v] = values[v].readers;
    there[v * numDevices + kHostIndex] = 0; // arguments; what tasks make is set then
  }
  // Copies `v` to device `to`, by way of the host where no route leads there. `commit`: for good.
  auto copy = [&](uint32_t v, unsigned from, unsigned to, std::vector<Engines> &on, auto &self) -> double {
    const auto leg = costs.transfer(from, to, values[v].bytes, values[v].pageable);
    double begin = there[v * numDevices + from];
    if (!leg) {
      if (from == kHostIndex || to == kHostIndex)
        return kNever;
      const double before = there[v * numDevices + kHostIndex];
      const double onHost = before < kNever ? before : self(v, from, kHostIndex, on, self);
      const auto second = costs.transfer(kHostIndex, to, values[v].bytes, false);
      if (onHost == kNever || !second)
        return kNever;
      double &engine = on[second->engine].in;
      return engine = std::max(onHost, engine) + second->seconds;
    }
    double &engine = leg->isIn ? on[leg->engine].in : on[leg->engine].out;
    return engine = std::max(begin, engine) + leg->seconds;
  };
  std::vector<Engines> tried(numDevices);
  SmallVector<std::pair<uint32_t, double>> arrivals, bestArrivals;
  for (uint32_t t : order) {
    const Task &task = tasks[t];
    unsigned best = kFree;
    double bestFinish = kNever, bestEnd = 0;
    std::vector<Engines> bestEngines;
    if (explain)
      plan.finish[t].assign(numDevices, kNever);
    for (unsigned d = 0; d < numDevices; ++d) {
      const bool may = task.fixed != kFree ? task.fixed == d : llvm::is_contained(allowed, d);
      if (!may && !(explain && task.fixed == kFree))
        continue;
      tried = engines;
      arrivals.clear();
      double ready = 0;
      int64_t more = 0;
      for (uint32_t v : task.reads) {
        double at = there[v * numDevices + d];
        if (values[v].everywhere) {
          more += d != kHostIndex && at == kNever ? values[v].bytes : 0;
          if (d != kHostIndex && at == kNever)
            arrivals.push_back({v, 0});
          continue;
        }
        if (at == kNever) {
          at = copy(v, home[v], d, tried, copy);
          arrivals.push_back({v, at});
          more += values[v].bytes;
        }
        ready = std::max(ready, at);
      }
      for (uint32_t v : task.writes)
        more += values[v].bytes;
      if (task.fixed == kFree && d != kHostIndex && held[d] + more > costs.devices()[d]->memoryBytes)
        continue;
      if (ready == kNever && task.fixed == kFree)
        continue;
      const double end = std::max(ready, tried[d].compute) + seconds[t * numDevices + d];
      double finish = end;
      for (uint32_t v : task.writes)
        if (values[v].isResult && d != kHostIndex)
          if (auto back = costs.transfer(d, kHostIndex, values[v].bytes, values[v].pageable))
            finish = std::max(finish, tried[d].out = std::max(tried[d].out, end) + back->seconds);
      tried[d].compute = end;
      if (explain)
        plan.finish[t][d] = finish;
      if (may && (best == kFree || finish < bestFinish)) {
        best = d, bestFinish = finish, bestEnd = end;
        bestArrivals = arrivals;
        bestEngines = tried;
      }
    }
    if (best == kFree) { // nowhere else is room
      best = task.fixed != kFree ? task.fixed : kHostIndex;
      tried = engines;
      double ready = 0;
      bestArrivals.clear();
      for (uint32_t v : task.reads)
        if (there[v * numDevices + best] == kNever && !values[v].everywhere) {
          const double at = copy(v, home[v], best, tried, copy);
          bestArrivals.push_back({v, at});
          ready = std::max(ready, at);
        }
      bestEnd = bestFinish = tried[best].compute =
          std::max(ready, tried[best].compute) + seconds[t * numDevices + best];
      bestEngines = tried;
    }
    plan.device[t] = best;
    plan.end = std::max(plan.end, bestFinish);
    engines = bestEngines;
    for (auto [v, at] : bestArrivals) {
      there[v * numDevices + best] = at;
      held[best] += values[v].bytes;
    }
    for (uint32_t v : task.writes) {
      home[v] = best;
      there[v * numDevices + kHostIndex] = kNever;
      there[v * numDevices + best] = bestEnd;
      held[best] += values[v].bytes;
      if (values[v].isResult)
        there[v * numDevices + kHostIndex] = best == kHostIndex ? bestEnd : bestFinish;
    }
    for (uint32_t v : task.reads)
      if (--unread[v] == 0 && !values[v].everywhere && !values[v].isResult)
        for (unsigned d = 0; d < numDevices; ++d)
          if (there[v * numDevices + d] < kNever)
            held[d] -= values[v].bytes;
  }
  return plan;
}

class PlaceClusters : public impl::PlaceClustersBase<PlaceClusters> {
public:
  PlaceClusters(const runtime::MachineModel *machine, Decisions *decisions) : machine(machine), decisions(decisions) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> found = findMain(getOperation());
    if (failed(found))
      return signalPassFailure();
    if (!*found || !machine || machine->devices.size() < 2)
      return;
    Placer placer(*found, *machine);
    if (failed(placer.check()))
      return signalPassFailure();
    // Earliest finish looks at one op at a time: it never pays for the way to a device where only many ops together
    // make up for it. So everything in one place is tried as well.
    std::vector<unsigned> all(placer.numDevices);
    std::iota(all.begin(), all.end(), 0u);
    Plan best = placer.place(all, decisions != nullptr);
    std::string tried = "each op where it finishes first " + runtime::spellSeconds(best.end),
                chosen = "each op where it finishes first";
    for (unsigned d : all) {
      Plan plan = placer.place(d, decisions != nullptr);
      const std::string name = "all on " + placer.costs.devices()[d]->name;
      tried += ", " + name + " " + runtime::spellSeconds(plan.end);
      if (plan.end < best.end) {
        best = std::move(plan);
        chosen = name;
      }
    }
    for (auto [i, task] : llvm::enumerate(placer.tasks)) {
      if (decisions)
        explain(placer, task, best, i);
      graph::setDevice(task.op, placer.costs.devices()[best.device[i]]->device);
      numPlaced += best.device[i] != kHostIndex;
    }
    if (decisions && !placer.tasks.empty())
      decisions->push_back({"place-clusters", {"the program", "", 0}, chosen + "; predicted: " + tried});
  }

private:
  void explain(const Placer &placer, const Task &task, const Plan &plan, size_t i) {
    const graph::FileLine line = graph::fileLineOf(task.op->getLoc());
    std::string name = task.op->getName().stripDialect().str();
    if (auto launch = dyn_cast<graph::LaunchOp>(task.op))
      name = launch.getKernel().str();
    const unsigned device = plan.device[i];
    std::string text = placer.costs.devices()[device]->name;
    if (graph::deviceOf(task.op)) {
      text += ", as annotated";
    } else if (task.fixed != kFree) {
      text += isa<graph::ControlOpInterface>(task.op) ? ": control flow stays there unless it is annotated"
                                                      : ": it has effects";
    } else {
      for (unsigned d = 0; d < placer.numDevices; ++d) {
        const double finish = plan.finish[i][d];
        text += (d ? ", on " : "; done on ") + placer.costs.devices()[d]->name + " " +
                (finish < kNever ? "at " + runtime::spellSeconds(finish) : "never: it does not fit");
      }
    }
    decisions->push_back({"place-clusters", {name, line.file, static_cast<uint32_t>(line.line)}, text});
  }

  const runtime::MachineModel *machine;
  Decisions *decisions;
};
} // namespace

std::unique_ptr<Pass> createPlaceClusters(const runtime::MachineModel *machine, Decisions *decisions) {
  return std::make_unique<PlaceClusters>(machine, decisions);
}

} // namespace tressel::passes
