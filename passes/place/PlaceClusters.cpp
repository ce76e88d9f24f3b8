#include "passes/Passes.h"
#include "passes/Util.h"
#include "passes/place/Footprint.h"
#include "passes/place/MachineCosts.h"
#include "passes/place/PredictStep.h"
#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/ListSchedule.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"


#include <limits>
#include <numeric>
#include <random>

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
  bool isAnnotated = false;
  int64_t bytes = 0; ///< of all its operands and results
  /// Predicted seconds from its begin to the end of the step, without contention, averaged over devices.
  double rank = 0;
};

/// Operands and results of tasks, by base.
struct Value_ {
  int64_t bytes = 0;
  bool everywhere = false; ///< made by prepare, which copies it to each device that reads it
  /// In the caller's memory, which may not be pinned: an argument, or the destination of a result.
  bool pageable = false;
  unsigned home = kHostIndex; ///< of an argument: the device that has it at the begin of the step
  /// Of a result: the device that must have it at the end; kFree: stays where it is computed, or no result.
  unsigned goal = kFree;
  bool stays = false; ///< a result that the caller keeps on the device that computes it
  uint32_t readers = 0;
};

/// One placement of all tasks, with its predicted times.
struct Plan {
  std::vector<unsigned> device; ///< by task
  std::vector<SmallVector<double>>
      finish; ///< by task and device: predicted finish of its results; filled only for `explain`
  double end = 0;
  bool isFull = false; ///< lack of memory changed a placement, or would have
};

/// Heterogeneous earliest finish time (Topcuoglu, Hariri and Wu, 2002), without insertion: takes tasks by descending
/// rank and places each on the device where its results are ready first.
class Placer {
public:
  /// `devices`: those that compute; empty: all.
  Placer(func::FuncOp main, const runtime::MachineModel &machine, ArrayRef<runtime::DeviceRef> devices)
      : costs(machine), numDevices(static_cast<unsigned>(costs.devices().size())) {
    needsOwnKernels = llvm::any_of(costs.devices(), [](const runtime::DeviceModel *d) { return !d->architecture.empty(); });
    // Accelerators with generated kernels are candidates for every task that they can run. The host computes only what
    // is annotated for it, and the rest.
    for (unsigned d = 0; d < numDevices; ++d)
      if (devices.empty() ? d != kHostIndex || !needsOwnKernels : llvm::is_contained(devices, costs.devices()[d]->device))
        mayCompute.push_back(d);
    collect(main);
    rankTasks();
  }

  /// Reports the first op that fits into no device's memory.
  LogicalResult check() {
    for (Task &task : tasks) {
      auto fits = [&](unsigned d) {
        const int64_t memory = costs.devices()[d]->memoryBytes;
        return task.bytes <= memory || footprintOf(task.op) <= memory;
      };
      if (task.fixed != kFree ? fits(task.fixed) : llvm::any_of(mayCompute, fits))
        continue;
      const runtime::DeviceModel &where = *costs.devices()[task.fixed != kFree ? task.fixed : mayCompute.front()];
      return refuse(task.op, footprintOf(task.op), where.name, where.memoryBytes, task.fixed == kFree ? ", and no other device has enough" : "");
    }
    return success();
  }

  /// Places each task on one of the `allowed` devices, unless it is annotated or does not fit there. `variation`, if
  /// not 0, is a seed that perturbs the predicted finishes. Without `isBounded`, a full memory does not exclude a
  /// device: values are evicted.
  Plan place(ArrayRef<unsigned> allowed, bool explain, unsigned variation = 0, bool isBounded = true) const;

  std::vector<Task> tasks;
  MachineCosts costs;
  const unsigned numDevices;
  std::vector<Operation *> prepared;
  std::vector<unsigned> mayCompute; ///< candidates for tasks without an annotation; the host first, if it is one

private:
  friend class Placement;
  /// Whether accelerators with an architecture of their own have a kernel for a launch, or for all launches of an op
  /// with bodies.
  bool isForAccelerators(Operation *op) {
    if (isa<graph::ControlOpInterface>(op))
      return !op->walk([&](graph::LaunchOp launch) {
                  return isForAccelerators(launch) && graph::deviceOf(launch) != graph::kHost ? WalkResult::advance()
                                                                                              : WalkResult::interrupt();
                }).wasInterrupted();
    auto launch = dyn_cast<graph::LaunchOp>(op);
    auto kernel = launch ? symbols.lookupNearestSymbolFrom<graph::KernelOp>(op, launch.getKernelAttr()) : graph::KernelOp();
    return kernel && kernel.isForGpu();
  }
  bool needsOwnKernels = false; ///< some accelerator has an architecture of its own
  SymbolTableCollection symbols;

  void collect(func::FuncOp main);
  void rankTasks();

  std::vector<Value_> values;
  std::vector<uint32_t> order; ///< tasks, by rank
  std::vector<double> seconds; ///< by task and device
};

void Placer::collect(func::FuncOp main) {
  Block &block = main.getBody().front();
  IssueOrder split(main, /*leastMemory=*/false);
  prepared = split.prepare;
  llvm::DenseMap<Value, uint32_t> indexOf;
  llvm::DenseSet<Value> everywhere = parameterOnlyValues(main);
  for (Operation &op : block)
    if (isWork(&op)) // computed from parameters, but in the step because it is large
      for (Value result : op.getResults())
        everywhere.erase(result);
  for (Operation *op : prepared)
    everywhere.insert(op->result_begin(), op->result_end());
  auto isPageable = [&](Value base) {
    auto arg = dyn_cast<BlockArgument>(base);
    return arg && graph::homeOfArgument(main, arg.getArgNumber()) == graph::kHost &&
           !main.getArgAttr(arg.getArgNumber(), graph::kPinnedAttr);
  };
  auto index = [&](Value base) {
    auto [at, isNew] = indexOf.try_emplace(base, values.size());
    if (isNew) {
      Operation *def = base.getDefiningOp();
      values.push_back({bytesOf(base.getType()), everywhere.contains(base) || (def && !isWork(def)), isPageable(base)});
      values.back().home = def ? kHostIndex : homeIndexOf(base, costs);
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
    task.isAnnotated = graph::deviceOf(op).has_value();
    if (std::optional<runtime::DeviceRef> device = graph::deviceOf(op))
      task.fixed = costs.indexOf(*device).value_or(kHostIndex);
    else if (facts.hasEffects(op) || (needsOwnKernels && !isForAccelerators(op)))
      task.fixed = kHostIndex;
  }
  for (OpOperand &result : block.getTerminator()->getOpOperands())
    if (auto at = indexOf.find(baseOf(result.get())); at != indexOf.end()) {
      const std::optional<runtime::DeviceRef> home = graph::homeOfResult(main, result.getOperandNumber());
      if (!home) {
        values[at->second].stays = true;
        continue;
      }
      values[at->second].goal = costs.indexOf(*home).value_or(kHostIndex);
      values[at->second].pageable |=
          *home == graph::kHost && !main.getResultAttr(result.getOperandNumber(), graph::kPinnedAttr);
    }
  seconds.resize(tasks.size() * numDevices);
  for (auto [i, task] : llvm::enumerate(tasks))
    for (unsigned d = 0; d < numDevices; ++d)
      seconds[i * numDevices + d] = costs.seconds(task.op, d);
}

void Placer::rankTasks() {
  // Transfer seconds, averaged over devices, times the probability that two random devices differ.
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
  std::vector<double> after(values.size(), 0); // longest time from the value to the end of the step
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

/// Places all tasks, one by one, each on the device where its results are ready first.
class Placement {
public:
  Placement(const Placer &placer, ArrayRef<unsigned> allowed, bool explain, unsigned variation, bool isBounded);
  Plan run() &&;

private:
  /// When each engine is free. For a link: the time that all bytes put on it so far take. Tasks are not placed in the
  /// order of time, so which transfers overlap on a link is unknown.
  struct Engines : std::vector<double> {
    explicit Engines(size_t numEngines, size_t numLinks) : std::vector<double>(numEngines, 0), links(numLinks, 0) {}
    std::vector<double> links;
  };
  /// One task tried on one device.
  struct Attempt {
    unsigned device = kFree;
    double end = 0;         ///< of the task
    double finish = kNever; ///< when its results are where the program wants them
    /// Values that are copied to the device for it, and when each arrives.
    SmallVector<std::pair<uint32_t, double>> arrivals;
    Engines engines;
  };

  double &there(uint32_t value, unsigned device) { return there_[value * placer_.numDevices + device]; }
  unsigned computing(unsigned device) const { return placer_.costs.engine(device, runtime::StreamKind::Compute); }
  double seconds(uint32_t task, unsigned device) const { return placer_.seconds[task * placer_.numDevices + device]; }
  double varied(double finish) {
    constexpr double kSpread = 0.1;
    return varies_ ? finish * (1 + kSpread * (static_cast<double>(random_()) / 4294967296.0 - 0.5)) : finish;
  }
  /// When a transfer that begins at `begin` ends.
  double carry(const MachineCosts::Transfer &way, int64_t bytes, double begin, Engines &on) const;
  /// When a copy of the value arrives; by way of the host where there is no direct route.
  double copy(uint32_t value, unsigned from, unsigned to, Engines &on);
  /// Copies the operands of the task to the device and adds their bytes to `more`. Returns when the last one arrives.
  double bring(const Task &task, Attempt &attempt, int64_t &more);
  void finish(uint32_t t, double ready, Attempt &attempt);
  /// Nothing if the device has no room for it, or an operand cannot be copied there.
  std::optional<Attempt> tryOn(uint32_t t, unsigned device);
  Attempt best(uint32_t t);
  /// The first device that can run it at all, for a task that has room on none.
  Attempt withoutRoom(uint32_t t);
  void commit(uint32_t t, Attempt attempt);

  const Placer &placer_;
  const std::vector<Value_> &values_;
  const ArrayRef<unsigned> allowed_;
  const bool explain_, varies_, isBounded_;
  std::mt19937 random_;
  Plan plan_;
  std::vector<double> there_;    ///< when a device's memory has a value, by value and device
  std::vector<unsigned> home_;   ///< the device that made it
  std::vector<uint32_t> unread_; ///< tasks not yet placed that read it
  std::vector<int64_t> held_;    ///< bytes, by device
  Engines engines_;
};

Placement::Placement(const Placer &placer, ArrayRef<unsigned> allowed, bool explain, unsigned variation, bool isBounded)
    : placer_(placer), values_(placer.values), allowed_(allowed), explain_(explain), varies_(variation != 0), isBounded_(isBounded), random_(variation),
      there_(values_.size() * placer.numDevices, kNever), held_(placer.numDevices, 0), engines_(placer.costs.numEngines(), placer.costs.numLinks()) {
  plan_.device.assign(placer.tasks.size(), kHostIndex);
  if (explain)
    plan_.finish.resize(placer.tasks.size());
  for (uint32_t v = 0; v < values_.size(); ++v) {
    unread_.push_back(values_[v].readers);
    home_.push_back(values_[v].home);
    there(v, home_[v]) = 0; // arguments; those of results are set when their task is placed
  }
}

double Placement::carry(const MachineCosts::Transfer &way, int64_t bytes, double begin, Engines &on) const {
  double end = begin + way.seconds;
  for (uint32_t link : way.links)
    if (link < on.links.size()) {
      on.links[link] += static_cast<double>(bytes) / placer_.costs.capacities()[link];
      end = std::max(end, on.links[link]);
    }
  return end;
}

double Placement::copy(uint32_t v, unsigned from, unsigned to, Engines &on) {
  const Value_ &value = values_[v];
  auto leg = placer_.costs.transfer(from, to, value.bytes, value.pageable);
  double begin = there(v, from);
  if (!leg) {
    if (from == kHostIndex || to == kHostIndex)
      return kNever;
    begin = there(v, kHostIndex) < kNever ? there(v, kHostIndex) : copy(v, from, kHostIndex, on);
    leg = placer_.costs.transfer(kHostIndex, to, value.bytes, false);
    if (begin == kNever || !leg)
      return kNever;
  }
  double &engine = on[leg->engine];
  return engine = carry(*leg, value.bytes, std::max(begin, engine), on);
}

double Placement::bring(const Task &task, Attempt &attempt, int64_t &more) {
  const unsigned d = attempt.device;
  double ready = 0;
  for (uint32_t v : task.reads) {
    double at = there(v, d);
    if (values_[v].everywhere) {
      if (d != kHostIndex && at == kNever) {
        more += values_[v].bytes;
        attempt.arrivals.push_back({v, 0});
      }
      continue;
    }
    if (at == kNever) {
      at = copy(v, home_[v], d, attempt.engines);
      attempt.arrivals.push_back({v, at});
      more += values_[v].bytes;
    }
    ready = std::max(ready, at);
  }
  return ready;
}

void Placement::finish(uint32_t t, double ready, Attempt &attempt) {
  const unsigned d = attempt.device;
  Engines &on = attempt.engines;
  attempt.end = attempt.finish = std::max(ready, on[computing(d)]) + seconds(t, d);
  for (uint32_t v : placer_.tasks[t].writes)
    if (const Value_ &value = values_[v]; value.goal != kFree && d != value.goal)
      if (auto back = placer_.costs.transfer(d, value.goal, value.bytes, value.pageable)) {
        double &engine = on[back->engine];
        attempt.finish = std::max(attempt.finish, engine = carry(*back, value.bytes, std::max(engine, attempt.end), on));
      }
  on[computing(d)] = attempt.end;
}

std::optional<Placement::Attempt> Placement::tryOn(uint32_t t, unsigned d) {
  const Task &task = placer_.tasks[t];
  Attempt attempt{.device = d, .arrivals = {}, .engines = engines_};
  int64_t more = 0;
  const double ready = bring(task, attempt, more);
  for (uint32_t v : task.writes)
    more += values_[v].bytes;
  if (const int64_t memory = placer_.costs.devices()[d]->memoryBytes; task.fixed == kFree && d != kHostIndex && held_[d] + more > memory) {
    plan_.isFull = true;
    if (isBounded_ || task.bytes > memory)
      return std::nullopt;
  }
  if (ready == kNever && task.fixed == kFree)
    return std::nullopt;
  finish(t, ready, attempt);
  return attempt;
}

Placement::Attempt Placement::best(uint32_t t) {
  const Task &task = placer_.tasks[t];
  std::optional<Attempt> best;
  double bestFinish = kNever;
  if (explain_)
    plan_.finish[t].assign(placer_.numDevices, kNever);
  for (unsigned d = 0; d < placer_.numDevices; ++d) {
    const bool may = task.fixed != kFree ? task.fixed == d : llvm::is_contained(allowed_, d);
    if (!may && !(explain_ && task.fixed == kFree))
      continue;
    std::optional<Attempt> attempt = tryOn(t, d);
    if (!attempt)
      continue;
    if (explain_)
      plan_.finish[t][d] = attempt->finish;
    if (const double finish = varied(attempt->finish); may && (!best || finish < bestFinish)) {
      best = std::move(attempt);
      bestFinish = finish;
    }
  }
  return best ? std::move(*best) : withoutRoom(t);
}

Placement::Attempt Placement::withoutRoom(uint32_t t) {
  const Task &task = placer_.tasks[t];
  const unsigned d = task.fixed != kFree ? task.fixed : placer_.mayCompute.front();
  Attempt attempt{.device = d, .arrivals = {}, .engines = engines_};
  double ready = 0;
  for (uint32_t v : task.reads)
    if (there(v, d) == kNever && !values_[v].everywhere) {
      attempt.arrivals.push_back({v, copy(v, home_[v], d, attempt.engines)});
      ready = std::max(ready, attempt.arrivals.back().second);
    }
  attempt.end = attempt.finish = attempt.engines[computing(d)] = std::max(ready, attempt.engines[computing(d)]) + seconds(t, d);
  return attempt;
}

void Placement::commit(uint32_t t, Attempt attempt) {
  const Task &task = placer_.tasks[t];
  const unsigned d = attempt.device;
  plan_.device[t] = d;
  plan_.end = std::max(plan_.end, attempt.finish);
  engines_ = std::move(attempt.engines);
  for (auto [v, at] : attempt.arrivals) {
    there(v, d) = at;
    held_[d] += values_[v].bytes;
  }
  for (uint32_t v : task.writes) {
    home_[v] = d;
    there(v, kHostIndex) = kNever;
    there(v, d) = attempt.end;
    held_[d] += values_[v].bytes;
    if (values_[v].goal != kFree)
      there(v, values_[v].goal) = d == values_[v].goal ? attempt.end : attempt.finish;
  }
  for (uint32_t v : task.reads)
    if (--unread_[v] == 0 && !values_[v].everywhere && values_[v].goal == kFree && !values_[v].stays)
      for (unsigned each = 0; each < placer_.numDevices; ++each)
        if (there(v, each) < kNever)
          held_[each] -= values_[v].bytes;
}

Plan Placement::run() && {
  for (uint32_t t : placer_.order)
    commit(t, best(t));
  return std::move(plan_);
}

Plan Placer::place(ArrayRef<unsigned> allowed, bool explain, unsigned variation, bool isBounded) const {
  return Placement(*this, allowed, explain, variation, isBounded).run();
}

class PlaceClusters : public impl::PlaceClustersBase<PlaceClusters> {
public:
  PlaceClusters(Providers providers, const runtime::MachineModel *machine, Decisions *decisions,
                std::vector<runtime::DeviceRef> devices)
      : providers(std::move(providers)), machine(machine), decisions(decisions), devices(std::move(devices)) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> found = findMain(getOperation());
    if (failed(found))
      return signalPassFailure();
    if (!*found || !machine || machine->devices.size() < 2)
      return;
    settleStates(*found);
    Placer placer(*found, *machine, devices);
    if (failed(placer.check()))
      return signalPassFailure();
    auto isAnnotated = [](Operation &op) { return graph::isTransfer(&op) || graph::deviceOf(&op); };
    if (llvm::none_of(found->getBody().front(), isAnnotated) && llvm::is_contained(placer.mayCompute, kHostIndex))
      (*found)->setAttr(kChosenAttr, UnitAttr::get(&getContext()));
    if (placer.tasks.empty())
      return;
    std::vector<Candidate> candidates = candidatesOf(placer);
    const bool isFree = llvm::any_of(placer.tasks, [](const Task &task) { return task.fixed == kFree; });
    if (isFree)
      tryOut(placer, candidates);
    const Candidate &chosen =
        *llvm::min_element(candidates, [](const Candidate &a, const Candidate &b) { return a.seconds < b.seconds; });
    const Plan &best = chosen.plan;
    for (auto [i, task] : llvm::enumerate(placer.tasks)) {
      if (decisions)
        explain(placer, task, best, i);
      graph::setDevice(task.op, placer.costs.devices()[best.device[i]]->device);
      numPlaced += best.device[i] != kHostIndex;
    }
    if (decisions && isFree) {
      std::string text = chosen.name + "; predicted: ";
      for (const Candidate &each : candidates)
        text += (&each == &candidates[0] ? "" : ", ") + each.name + " " +
                (each.seconds < kNever ? runtime::spellSeconds(each.seconds) : "does not fit");
      decisions->push_back({"place-clusters", {"the program", "", 0}, text});
    }
  }

private:
  /// Chooses the home of states that may lie on any device: the only accelerator, if its kernels compute their next
  /// values and they take at most half of its memory; otherwise the host.
  void settleStates(func::FuncOp main) {
    SmallVector<const runtime::DeviceModel *> accelerators;
    for (const runtime::DeviceModel &device : machine->devices)
      if (!runtime::isHost(device.device))
        accelerators.push_back(&device);
    const runtime::DeviceModel *accelerator = accelerators.size() == 1 ? accelerators.front() : nullptr;
    struct State {
      unsigned argument;
      std::optional<unsigned> next; ///< the result that is its next value
    };
    SmallVector<State> there, here;
    int64_t bytes = 0;
    SymbolTableCollection symbols;
    Operation *terminator = main.getBody().front().getTerminator();
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      if (main.getArgAttr(i, graph::kHomeAttr) != StringAttr::get(&getContext(), graph::kComputed))
        continue;
      State state{i, {}};
      for (unsigned k = 0; k < main.getNumResults(); ++k)
        if (main.getResultAttr(k, graph::kStateAttr) == main.getArgAttr(i, graph::kStateAttr))
          state.next = k;
      auto launch =
          state.next ? baseOf(terminator->getOperand(*state.next)).getDefiningOp<graph::LaunchOp>() : graph::LaunchOp();
      auto kernel =
          launch ? symbols.lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr()) : graph::KernelOp();
      const bool isThere = accelerator && kernel && kernel.isForGpu();
      (isThere ? there : here).push_back(state);
      bytes += isThere ? bytesOf(main.getArgument(i).getType()) : 0;
    }
    if (accelerator && bytes > accelerator->memoryBytes / 2) {
      here.append(there);
      there.clear();
    }
    auto settle = [&](const State &state, const runtime::DeviceModel *device) {
      if (!device) {
        main.removeArgAttr(state.argument, graph::kHomeAttr);
        if (state.next)
          main.removeResultAttr(*state.next, StringAttr::get(&getContext(), graph::kHomeAttr));
        return;
      }
      const auto name = StringAttr::get(&getContext(), runtime::nameOf(device->device));
      main.setArgAttr(state.argument, graph::kHomeAttr, name);
      if (state.next)
        main.setResultAttr(*state.next, graph::kHomeAttr, name);
    };
    for (const State &state : here)
      settle(state, nullptr);
    for (const State &state : there)
      settle(state, accelerator);
    if (decisions && !there.empty())
      decisions->push_back({"place-clusters",
                            {"the program", "", 0},
                            std::to_string(there.size()) + " states stay in the memory of " + accelerator->name +
                                " from step to step, " + std::to_string(bytes) + " bytes"});
  }

  struct Candidate {
    std::string name;
    Plan plan;
    double seconds = 0; ///< predicted, of the step
  };

  /// Earliest finish is greedy, one op at a time: it never pays for a transfer that pays off only over many ops, and it
  /// uses devices that contend with each other. So placements on one device, and on subsets of the devices, are
  /// candidates too.
  std::vector<Candidate> candidatesOf(const Placer &placer) const {
    std::vector<Candidate> candidates;
    auto add = [&](std::string name, ArrayRef<unsigned> devices, unsigned variation = 0) {
      Candidate next{std::move(name), placer.place(devices, decisions != nullptr, variation)};
      next.seconds = next.plan.end;
      for (const Candidate &other : candidates)
        if (other.plan.device == next.plan.device && devices.size() > 1)
          return;
      candidates.push_back(std::move(next));
    };
    const std::vector<unsigned> &all = placer.mayCompute;
    add("each op where it finishes first", all);
    for (unsigned d : all)
      add("all on " + placer.costs.devices()[d]->name, d);
    constexpr size_t kJudged = 2000; // tasks: with more, candidates that need evictions are not tried
    const bool isFull = llvm::any_of(candidates, [](const Candidate &c) { return c.plan.isFull; });
    for (unsigned d = 0; d < all.size() && isFull && placer.tasks.size() <= kJudged; ++d) {
      const ArrayRef<unsigned> devices = d == kHostIndex ? ArrayRef<unsigned>(all) : ArrayRef<unsigned>(all).slice(d, 1);
      candidates.push_back({d == kHostIndex ? std::string("each where it finishes first though memory is short")
                                            : "all on " + placer.costs.devices()[d]->name + " though its memory is short",
                            placer.place(devices, decisions != nullptr, 0, /*isBounded=*/false)});
      candidates.back().seconds = candidates.back().plan.end;
    }
    constexpr size_t kMany = 5000; // tasks: more candidates take seconds
    if (placer.tasks.size() > kMany)
      return candidates;
    for (size_t first : {0, 1})
      for (size_t count = 2; first + count <= all.size(); ++count)
        if (count < all.size()) {
          const ArrayRef<unsigned> some = ArrayRef(all).slice(first, count);
          std::string names;
          for (unsigned d : some)
            names += (names.empty() ? "" : d == some.back() ? " and " : ", ") + placer.costs.devices()[d]->name;
          add("each on one of " + names, some);
        }
    constexpr size_t kSome = 500; // tasks
    constexpr unsigned kVariations = 8;
    for (unsigned v = 1; v <= kVariations && placer.tasks.size() <= kSome; ++v)
      add("variation " + std::to_string(v) + " of the first", all, v);
    return candidates;
  }

  /// Predicts the candidates by running the passes that follow on copies of the program: they know when values are
  /// copied, which transfers share links and what is evicted; for the best two also which launches are cut into row
  /// blocks.
  void tryOut(const Placer &placer, std::vector<Candidate> &candidates) {
    constexpr size_t kAll = 2000, kRows = 500, kBest = 2; // tasks, tasks, candidates
    if (placer.tasks.size() > kAll || candidates.size() < 2)
      return;
    auto secondsOf = [&](const Candidate &candidate, bool inRows) {
      for (auto [task, device] : llvm::zip_equal(placer.tasks, candidate.plan.device))
        graph::setDevice(task.op, placer.costs.devices()[device]->device);
      return predictedStep(getOperation(), *machine, inRows ? &providers : nullptr);
    };
    for (Candidate &candidate : candidates)
      candidate.seconds = secondsOf(candidate, /*inRows=*/false);
    if (std::optional<Candidate> moved = moveSingly(placer, candidates, secondsOf))
      candidates.push_back(std::move(*moved));
    if (placer.tasks.size() > kRows)
      return;
    std::vector<std::pair<double, size_t>> order;
    for (auto [i, candidate] : llvm::enumerate(candidates))
      if (candidate.seconds < kNever)
        order.push_back({candidate.seconds, i});
    llvm::sort(order);
    for (auto [seconds, i] : ArrayRef(order).take_front(kBest))
      candidates[i].seconds = std::min(seconds, secondsOf(candidates[i], /*inRows=*/true));
  }

  /// A local search for programs of few tasks: starts from the best candidate and moves one task at a time where that
  /// shortens the step.
  static std::optional<Candidate> moveSingly(const Placer &placer, ArrayRef<Candidate> candidates,
                                             llvm::function_ref<double(const Candidate &, bool)> secondsOf) {
    constexpr size_t kFew = 32, kTrials = 96;
    if (placer.tasks.size() > kFew)
      return std::nullopt;
    Candidate moved = *llvm::min_element(
        candidates, [](const Candidate &a, const Candidate &b) { return a.seconds < b.seconds; });
    moved.name = "the best of these with single kernels moved";
    size_t trials = 0;
    bool isBetter = false;
    for (bool again = moved.seconds < kNever; again;) {
      again = false;
      for (auto [task, device] : llvm::zip_equal(placer.tasks, moved.plan.device))
        for (unsigned d : placer.mayCompute) {
          const unsigned before = device;
          if (d == before || task.fixed != kFree || trials >= kTrials || task.bytes > placer.costs.devices()[d]->memoryBytes)
            continue;
          device = d;
          ++trials;
          if (const double seconds = secondsOf(moved, false); seconds < 0.999 * moved.seconds) {
            moved.seconds = seconds;
            isBetter = again = true;
          } else {
            device = before;
          }
        }
    }
    return isBetter ? std::optional(std::move(moved)) : std::nullopt;
  }

  void explain(const Placer &placer, const Task &task, const Plan &plan, size_t i) {
    const graph::FileLine line = graph::fileLineOf(task.op->getLoc());
    std::string name = task.op->getName().stripDialect().str();
    if (auto launch = dyn_cast<graph::LaunchOp>(task.op))
      name = launch.getKernel().str();
    const unsigned device = plan.device[i];
    std::string text = placer.costs.devices()[device]->name;
    if (task.isAnnotated) {
      text += ", as annotated";
    } else if (task.fixed != kFree) {
      text += isa<graph::ControlOpInterface>(task.op)
                  ? ": it has effects, or no accelerator has kernels for all of its bodies"
                  : ": it has effects, or no accelerator has a kernel for it";
    } else {
      for (unsigned d = 0; d < placer.numDevices; ++d) {
        const double finish = plan.finish[i][d];
        text += (d ? ", on " : "; done on ") + placer.costs.devices()[d]->name + " " +
                (finish < kNever ? "at " + runtime::spellSeconds(finish) : "never: it does not fit");
      }
    }
    decisions->push_back({"place-clusters", {name, line.file, static_cast<uint32_t>(line.line)}, text});
  }

  Providers providers;
  const runtime::MachineModel *machine;
  Decisions *decisions;
  std::vector<runtime::DeviceRef> devices;
};
} // namespace

std::unique_ptr<Pass> createPlaceClusters(Providers providers, const runtime::MachineModel *machine,
                                          Decisions *decisions, std::vector<runtime::DeviceRef> devices) {
  return std::make_unique<PlaceClusters>(std::move(providers), machine, decisions, std::move(devices));
}

} // namespace tressel::passes
