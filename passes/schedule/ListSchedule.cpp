#include "passes/schedule/ListSchedule.h"

#include "passes/schedule/IssueOrder.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Stage.h"

#include "tressel/runtime/Explain.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <random>
#include <set>
#include <tuple>

using namespace mlir;

namespace tressel::passes {
using runtime::StreamKind;

unsigned deviceIndexOf(Operation *work, const MachineCosts &costs) {
  const runtime::DeviceRef device =
      graph::isTransfer(work) ? graph::destinationOf(work) : graph::deviceOf(work).value_or(graph::kHost);
  return costs.indexOf(device).value_or(0);
}

unsigned homeIndexOf(Value base, const MachineCosts &costs) {
  if (Operation *def = base.getDefiningOp())
    return isWork(def) ? deviceIndexOf(def, costs) : 0;
  auto arg = cast<BlockArgument>(base);
  auto main = dyn_cast_or_null<func::FuncOp>(arg.getOwner()->getParentOp());
  return main ? costs.indexOf(graph::homeOfArgument(main, arg.getArgNumber())).value_or(0) : 0;
}

bool isPageable(func::FuncOp main, Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return !main.getArgAttr(arg.getArgNumber(), graph::kPinnedAttr);
  for (OpOperand &use : value.getUses()) {
    if (use.getOwner()->hasTrait<OpTrait::IsTerminator>())
      return !main.getResultAttr(use.getOperandNumber(), graph::kPinnedAttr);
    if (isRowJoin(use.getOwner()))
      return isPageable(main, use.getOwner()->getResult(0));
  }
  return false;
}

bool isPartOfJoin(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) { return isRowJoin(user); });
}

std::pair<unsigned, StreamKind> streamOf(Operation *work, const MachineCosts &costs) {
  const unsigned device = deviceIndexOf(work, costs);
  if (graph::isCollective(work))
    return {device, StreamKind::Communication};
  if (!graph::isTransfer(work))
    return {device, StreamKind::Compute};
  const unsigned from = homeIndexOf(baseOf(work->getOperand(0)), costs);
  if (from == device)
    return {device, StreamKind::Compute};
  return from == 0 ? std::pair(device, StreamKind::CopyIn) : std::pair(from, StreamKind::CopyOut);
}

namespace {
constexpr uint32_t kNone = ~0u;
constexpr double kNever = std::numeric_limits<double>::infinity();

/// Part 1, cost: how long each op takes, and on which engine.
struct Task {
  Planned planned;
  double seconds = 0; ///< of a transfer: when no other is active
  std::optional<MachineCosts::Transfer> way;
  int64_t bytes = 0; ///< of a transfer
  SmallVector<uint32_t, 4> before, users;
  SmallVector<uint32_t, 4> reads; ///< values
  SmallVector<uint32_t, 2> writes;
  bool isJoin = false; ///< needs no engine and no time
  bool isLazy = false; ///< in a pipeline: lowest priority
};

/// Part 3, memory pressure: bytes on a device until the last reader has ended. A joined row takes its bytes of the
/// whole when it is computed, and frees them with the whole.
struct Live {
  int64_t bytes = 0, freed = 0;
  unsigned device = 0;
  uint32_t readers = 0;
};

struct Problem {
  Problem(ArrayRef<Operation *> step, MachineCosts &costs, llvm::function_ref<bool(Value)> isPageable,
          ArrayRef<int64_t> held);
  /// Adds the dependences that make micro-batches follow the order of a pipeline. False, and nothing is added, if they
  /// would form a cycle, or if no task belongs to a micro-batch.
  bool order(PipelineOrder pipeline);
  /// The share of the time until `end` in which engines with micro-batches are idle.
  double bubbleOf(double end) const;
  /// The tasks in topological order; fewer than all if there is a cycle.
  std::vector<uint32_t> sorted() const;
  size_t resourceOf(uint32_t task) const { return tasks[task].planned.engine; }

  const MachineCosts &costs;
  std::vector<Task> tasks;
  std::vector<Live> values;
  ArrayRef<int64_t> held; ///< resident bytes, by device
  PipelineShape pipeline;
  /// Tasks that make next values of states, tasks that may fail, and what the latter depend on. A step that fails must
  /// leave its states unchanged, so BuildSchedule writes a state in place only behind all tasks that may fail.
  std::vector<uint32_t> stateWriters, checks, beforeChecks;

private:
  void findChecks(ArrayRef<Operation *> step, EffectFacts &facts);
  void follow(uint32_t before, uint32_t after) {
    if (llvm::is_contained(tasks[after].before, before))
      return;
    tasks[before].users.push_back(after);
    tasks[after].before.push_back(before);
  }
  bool hasMicroBatch(const Task &task) const {
    return !task.way && !task.isJoin && task.planned.device != 0 && graph::microBatchOf(task.planned.op);
  }
};

Problem::Problem(ArrayRef<Operation *> step, MachineCosts &costs, llvm::function_ref<bool(Value)> isPageable,
                 ArrayRef<int64_t> held)
    : costs(costs), tasks(step.size()), held(held) {
  llvm::DenseMap<Value, uint32_t> indexOf, writerOf;
  EffectFacts facts;
  uint32_t lastEffect = kNone;
  for (auto [i, op] : llvm::enumerate(step)) {
    Task &task = tasks[i];
    task.planned.op = op;
    task.isJoin = isRowJoin(op);
    const unsigned device = deviceIndexOf(op, costs);
    std::tie(task.planned.device, task.planned.stream) = streamOf(op, costs);
    task.planned.engine = costs.engine(task.planned.device, task.planned.stream);
    for (Value operand : op->getOperands())
      if (auto at = indexOf.find(baseOf(operand)); at != indexOf.end() && !llvm::is_contained(task.reads, at->second)) {
        task.reads.push_back(at->second);
        ++values[at->second].readers;
        follow(writerOf.lookup(baseOf(operand)), static_cast<uint32_t>(i));
      }
    for (Value result : op->getResults()) {
      indexOf[result] = static_cast<uint32_t>(values.size());
      writerOf[result] = static_cast<uint32_t>(i);
      task.writes.push_back(static_cast<uint32_t>(values.size()));
      const int64_t bytes = bytesOf(result.getType());
      values.push_back({task.isJoin ? 0 : bytes, isPartOfJoin(result) ? 0 : bytes, device});
    }
    if (graph::isTransfer(op)) {
      const Value from = baseOf(op->getOperand(0));
      const unsigned home = homeIndexOf(from, costs);
      task.bytes = bytesOf(op->getResult(0).getType());
      if (home == device)
        task.seconds = costs.copySeconds(device, task.bytes);
      else if ((task.way = costs.transfer(home, device, task.bytes, isPageable(home == 0 ? from : op->getResult(0)))))
        task.seconds = task.way->seconds;
    } else {
      task.seconds = task.isJoin ? 0 : costs.seconds(op, device);
      if (facts.hasEffects(op)) {
        if (lastEffect != kNone)
          follow(lastEffect, static_cast<uint32_t>(i));
        lastEffect = static_cast<uint32_t>(i);
      }
    }
  }
  findChecks(step, facts);
}

void Problem::findChecks(ArrayRef<Operation *> step, EffectFacts &facts) {
  auto main = step.empty() ? func::FuncOp() : dyn_cast<func::FuncOp>(step.front()->getParentOp());
  if (!main)
    return;
  llvm::SmallDenseSet<Operation *> writers;
  for (auto [i, result] : llvm::enumerate(main.getBody().front().getTerminator()->getOperands()))
    if (main.getResultAttr(static_cast<unsigned>(i), graph::kStateAttr))
      if (Operation *op = baseOf(result).getDefiningOp()) {
        writers.insert(op);
        if (isRowJoin(op))
          for (Value part : op->getOperands())
            writers.insert(part.getDefiningOp());
      }
  std::vector<bool> isBefore(tasks.size());
  for (size_t i = tasks.size(); i-- > 0;) { // `step` is in topological order
    const bool mayFail = facts.mayFail(step[i]);
    if (mayFail || isBefore[i]) {
      (mayFail ? checks : beforeChecks).push_back(static_cast<uint32_t>(i));
      for (uint32_t before : tasks[i].before)
        isBefore[before] = true;
    } else if (writers.contains(step[i])) {
      stateWriters.push_back(static_cast<uint32_t>(i));
    }
  }
}

double Problem::bubbleOf(double end) const {
  llvm::SmallDenseMap<size_t, double> busy; // by engine
  llvm::SmallDenseSet<size_t> inPipeline;
  for (auto [i, task] : llvm::enumerate(tasks)) {
    busy[resourceOf(static_cast<uint32_t>(i))] += task.seconds;
    if (hasMicroBatch(task))
      inPipeline.insert(resourceOf(static_cast<uint32_t>(i)));
  }
  double sum = 0;
  for (size_t engine : inPipeline)
    sum += busy.lookup(engine);
  return inPipeline.empty() || end <= 0 ? 0 : 1 - sum / (static_cast<double>(inPipeline.size()) * end);
}

std::vector<uint32_t> Problem::sorted() const {
  SmallVector<size_t> missing;
  std::vector<uint32_t> ready;
  for (auto [i, task] : llvm::enumerate(tasks)) {
    missing.push_back(task.before.size());
    if (task.before.empty())
      ready.push_back(static_cast<uint32_t>(i));
  }
  for (size_t done = 0; done < ready.size(); ++done)
    for (uint32_t next : tasks[ready[done]].users)
      if (--missing[next] == 0)
        ready.push_back(next);
  return ready;
}

bool Problem::order(PipelineOrder wanted) {
  struct Of {
    int64_t stage, microBatch;
    bool isBackward;
  };
  std::vector<std::optional<Of>> of(tasks.size());
  pipeline = {};
  std::map<size_t, int64_t> placeOf; // by engine: its first stage
  const bool hasStages =
      llvm::any_of(tasks, [&](const Task &task) { return hasMicroBatch(task) && graph::stageOf(task.planned.op); });
  for (auto [i, task] : llvm::enumerate(tasks)) {
    // An op that each stage computes for itself is not in the order.
    if (!hasMicroBatch(task) || (hasStages && !graph::stageOf(task.planned.op)))
      continue;
    const int64_t stage = graph::stageOf(task.planned.op).value_or(0);
    of[i] = {stage, *graph::microBatchOf(task.planned.op), graph::isBackward(task.planned.op)};
    pipeline.stages = std::max(pipeline.stages, stage + 1);
    pipeline.microBatches = std::max(pipeline.microBatches, of[i]->microBatch + 1);
    auto [known, isNew] = placeOf.try_emplace(task.planned.engine, stage);
    known->second = std::min(known->second, stage);
  }
  for (auto [engine, place] : placeOf)
    pipeline.inRow = std::max(pipeline.inRow, place + 1);
  // Nor is one that an earlier micro-batch depends on, such as statistics of the whole batch.
  std::vector<int64_t> firstReached(tasks.size(), std::numeric_limits<int64_t>::max());
  for (size_t i = tasks.size(); i-- > 0;) {
    for (uint32_t user : tasks[i].users)
      firstReached[i] =
          std::min({firstReached[i], firstReached[user], of[user] ? of[user]->microBatch : firstReached[user]});
    if (of[i] && firstReached[i] < of[i]->microBatch)
      of[i].reset();
  }
  if (llvm::none_of(of, [](const std::optional<Of> &each) { return each.has_value(); }))
    return false;
  // Backward tasks that another stage depends on for the same micro-batch; the others compute gradients of weights.
  std::vector<bool> isAwaited(tasks.size());
  for (size_t i = tasks.size(); i-- > 0;) {
    if (of[i] && !of[i]->isBackward)
      continue;
    for (uint32_t user : tasks[i].users)
      if (!isAwaited[i])
        isAwaited[i] = of[i] && of[user] ? of[user]->microBatch == of[i]->microBatch && of[user]->isBackward &&
                                               (of[user]->stage != of[i]->stage || isAwaited[user])
                       : of[user] ? of[user]->isBackward
                                  : isAwaited[user];
  }
  const std::vector<Task> before(tasks);
  for (auto [engine, place] : placeOf) {
    std::map<std::tuple<int64_t, bool, int64_t>, SmallVector<uint32_t>> inSlot, lazy;
    for (uint32_t i = 0; i < tasks.size(); ++i)
      if (of[i] && tasks[i].planned.engine == engine) {
        const bool waits = wanted == PipelineOrder::ZeroBubble && of[i]->isBackward && !isAwaited[i];
        tasks[i].isLazy = waits;
        (waits ? lazy : inSlot)[{of[i]->stage, of[i]->isBackward, of[i]->microBatch}].push_back(i);
      }
    const SmallVector<uint32_t> *last = nullptr;
    for (const Slot &slot : slotsOf(wanted, pipeline, place)) {
      auto found = inSlot.find({slot.stage, slot.isBackward, slot.microBatch});
      if (found == inSlot.end())
        continue;
      const SmallVector<uint32_t> &tasksOf = found->second;
      auto within = [](ArrayRef<uint32_t> some, const SmallVector<uint32_t> &all) {
        return llvm::any_of(some, [&](uint32_t each) { return llvm::is_contained(all, each); });
      };
      SmallVector<uint32_t> first;
      for (uint32_t i : tasksOf)
        if (!within(tasks[i].before, tasksOf))
          first.push_back(i);
      auto follows = [&](const SmallVector<uint32_t> &some) {
        for (uint32_t i : some)
          if (!within(tasks[i].users, some))
            for (uint32_t next : first)
              follow(i, next);
      };
      if (last)
        follows(*last);
      // Gradients of weights may not be delayed so far that they keep more memory than in one forward, one backward.
      if (!slot.isBackward)
        if (auto waiting = lazy.find({slot.stage, true, slot.microBatch - pipeline.inRow}); waiting != lazy.end())
          follows(waiting->second);
      last = &tasksOf;
    }
  }
  if (sorted().size() == tasks.size())
    return true;
  tasks = before;
  return false;
}

/// Part 4, core: one pass over the step, from its begin to its end, or with all dependences reversed from its end to
/// its begin.
class Walk {
public:
  enum class Kind : uint8_t { Forward, Backward, InOrder };
  /// `patience`: an engine stays idle if a more urgent task will be ready soon, within this share of the time of the
  /// ready task.
  Walk(const Problem &problem, ArrayRef<double> urgency, Kind kind, double patience = 0)
      : p(problem), tasks(problem.tasks), urgency(urgency), kind(kind), patience(patience), begin(tasks.size()), end(tasks.size()),
        resources(problem.costs.numEngines()), issued(problem.costs.devices().size(), 0), held(problem.held),
        readers(kind == Kind::Forward ? problem.values.size() : 0), load(problem.costs.capacities().size()) {
    order.reserve(tasks.size());
    run();
  }

  const Problem &p;
  ArrayRef<Task> tasks;
  ArrayRef<double> urgency; ///< by task; empty: earlier in the step is more urgent
  Kind kind;
  double patience;
  std::vector<double> begin, end; ///< seconds; backward: counted from the end of the step
  std::vector<uint32_t> order;    ///< in the order of their begin
  double length = 0;

private:
  /// Part 2, resources: ready tasks of each engine, the most urgent first.
  struct Resource {
    std::set<std::pair<double, uint32_t>> ready; ///< (-urgency, position in the given order)
    std::set<std::pair<double, uint32_t>> soon;  ///< likewise, tasks that wait only for running ones; with patience
    uint32_t running = kNone;
    std::vector<uint32_t> queue; ///< InOrder: all tasks, which must begin in this order
    size_t next = 0;
  };
  using Ready = std::set<std::pair<double, uint32_t>>::iterator;
  /// A transfer whose latency is over.
  struct Flow {
    uint32_t task;
    double left, rate = 0, since = 0, finish = kNever;
  };

  void run();
  void makeReady(uint32_t task);
  void expect(uint32_t task);
  bool isWorthWaiting(const Resource &resource, const Task &ready) const;
  std::pair<double, uint32_t> keyOf(uint32_t task) const {
    return {urgency.empty() ? 0 : -urgency[task],
            kind == Kind::Backward ? static_cast<uint32_t>(tasks.size()) - 1 - task : task};
  }
  void start(Resource &resource, Ready at);
  void startAll();
  void finish(uint32_t task);
  void shareLinks();
  uint32_t taskOf(Ready at) const {
    return kind == Kind::Backward ? static_cast<uint32_t>(tasks.size()) - 1 - at->second : at->second;
  }
  bool fits(const Task &task) const {
    return llvm::all_of(task.writes, [&](uint32_t v) {
      const Live &value = p.values[v];
      return value.device == 0 || held[value.device] + value.bytes <= p.costs.devices()[value.device]->memoryBytes;
    });
  }

  std::vector<Resource> resources;
  std::vector<uint32_t> missing;
  std::vector<uint32_t> unbegun; ///< with patience, by task: dependences that have not begun
  std::vector<double> expected;  ///< with patience, by task: latest end of those that have begun
  SmallVector<double> issued;    ///< by device: when its host has issued what has begun
  SmallVector<int64_t> held;     ///< by device: bytes at this time
  std::vector<uint32_t> readers;
  using Event = std::pair<double, uint32_t>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  std::vector<Flow> flows;
  std::vector<double> load;
  double now = 0;
  size_t numEnded = 0;
};

void Walk::makeReady(uint32_t i) {
  const Task &task = tasks[i];
  if (task.isJoin) {
    begin[i] = now;
    order.push_back(i);
    events.push({now, i});
    if (patience > 0)
      expect(i);
    return;
  }
  Resource &resource = resources[p.resourceOf(i)];
  resource.ready.insert(keyOf(i));
  if (patience > 0)
    resource.soon.erase(keyOf(i));
}

/// A task has begun. Tasks that now wait only for running ones will be ready when the last of these ends.
void Walk::expect(uint32_t i) {
  for (uint32_t next : tasks[i].users) {
    expected[next] = std::max(expected[next], begin[i] + tasks[i].seconds);
    if (--unbegun[next] == 0 && !tasks[next].isJoin)
      resources[p.resourceOf(next)].soon.insert(keyOf(next));
  }
}

bool Walk::isWorthWaiting(const Resource &resource, const Task &ready) const {
  constexpr int kWindow = 8;
  int seen = 0;
  for (auto at = resource.soon.begin(); at != resource.soon.end() && seen < kWindow && *at < *resource.ready.begin(); ++at, ++seen)
    if (const double wait = expected[taskOf(at)] - now; wait > 0 && wait <= patience * ready.seconds)
      return true;
  return false;
}

void Walk::start(Resource &resource, Ready at) {
  const uint32_t i = taskOf(at);
  const Task &task = tasks[i];
  resource.ready.erase(at);
  resource.running = i;
  ++resource.next;
  begin[i] = now;
  if (kind != Kind::Backward) {
    double &host = issued[task.planned.device];
    begin[i] = std::max(now, host += p.costs.devices()[task.planned.device]->issueSeconds);
  }
  if (kind == Kind::Forward)
    for (uint32_t value : task.writes)
      held[p.values[value].device] += p.values[value].bytes;
  order.push_back(i);
  events.push({begin[i] + (task.way ? task.way->latency : task.seconds), i});
  if (patience > 0)
    expect(i);
}

void Walk::startAll() {
  constexpr int kWindow = 32; // ready tasks tried before an engine stays idle for lack of memory
  for (Resource &resource : resources) {
    if (resource.running != kNone || resource.ready.empty())
      continue;
    if (kind == Kind::InOrder) {
      if (resource.queue[resource.next] == taskOf(resource.ready.begin()))
        start(resource, resource.ready.begin());
      continue;
    }
    if (patience > 0 && isWorthWaiting(resource, tasks[taskOf(resource.ready.begin())]))
      continue;
    int seen = 0;
    for (auto at = resource.ready.begin(); at != resource.ready.end() && seen < kWindow; ++at, ++seen)
      if (kind == Kind::Backward || fits(tasks[taskOf(at)])) {
        start(resource, at);
        break;
      }
  }
}

void Walk::finish(uint32_t i) {
  const Task &task = tasks[i];
  end[i] = now;
  length = std::max(length, now);
  ++numEnded;
  if (uint32_t &running = resources[p.resourceOf(i)].running; running == i)
    running = kNone;
  if (kind == Kind::Forward)
    for (uint32_t value : task.reads)
      if (--readers[value] == 0)
        held[p.values[value].device] -= p.values[value].freed;
  for (uint32_t next : kind == Kind::Backward ? task.before : task.users)
    if (--missing[next] == 0)
      makeReady(next);
}

/// Max-min fair rates, one flow after the other: always the one that gets the least.
void Walk::shareLinks() {
  const ArrayRef<double> capacity = p.costs.capacities();
  std::fill(load.begin(), load.end(), 0.0);
  bool isCrowded = false;
  for (const Flow &flow : flows)
    for (uint32_t link : tasks[flow.task].way->links)
      isCrowded |= (load[link] += tasks[flow.task].way->rate) > capacity[link] * (1 + 1e-9);
  SmallVector<double> rates;
  for (const Flow &flow : flows)
    rates.push_back(isCrowded ? 0 : tasks[flow.task].way->rate);
  if (isCrowded) {
    SmallVector<double> left(capacity);
    for (size_t n = 0; n < flows.size(); ++n) {
      SmallVector<int> users(capacity.size(), 0);
      for (auto [flow, rate] : llvm::zip_equal(flows, rates))
        if (rate == 0)
          for (uint32_t link : tasks[flow.task].way->links)
            ++users[link];
      size_t slowest = flows.size();
      double least = kNever;
      for (auto [k, flow] : llvm::enumerate(flows)) {
        if (rates[k] > 0)
          continue;
        double rate = tasks[flow.task].way->rate;
        for (uint32_t link : tasks[flow.task].way->links)
          rate = std::min(rate, left[link] / users[link]);
        if (rate < least)
          least = rate, slowest = k;
      }
      if (slowest == flows.size())
        break;
      rates[slowest] = std::max(least, 1.0); // rounding may go below zero
      for (uint32_t link : tasks[flows[slowest].task].way->links)
        left[link] -= rates[slowest];
    }
  }
  for (auto [flow, rate] : llvm::zip_equal(flows, rates)) {
    if (rate == flow.rate)
      continue;
    flow.left -= flow.rate * (now - flow.since);
    flow.since = now;
    flow.rate = rate;
    flow.finish = now + std::max(0.0, flow.left) / rate;
  }
}

void Walk::run() {
  for (size_t v = 0; v < readers.size(); ++v)
    readers[v] = p.values[v].readers;
  missing.resize(tasks.size());
  if (patience > 0) {
    expected.assign(tasks.size(), 0);
    for (const Task &task : tasks)
      unbegun.push_back(static_cast<uint32_t>(task.before.size()));
  }
  for (size_t k = 0; k < tasks.size(); ++k) {
    const auto i = static_cast<uint32_t>(kind == Kind::Backward ? tasks.size() - 1 - k : k);
    missing[i] = static_cast<uint32_t>((kind == Kind::Backward ? tasks[i].users : tasks[i].before).size());
    if (kind == Kind::InOrder && !tasks[i].isJoin)
      resources[p.resourceOf(i)].queue.push_back(i);
    if (missing[i] == 0)
      makeReady(i);
  }
  while (numEnded < tasks.size()) {
    startAll();
    double next = events.empty() ? kNever : events.top().first;
    for (const Flow &flow : flows)
      next = std::min(next, flow.finish);
    if (next == kNever) { // nothing fits: plan-memory decides whether that is an error
      Resource *first = nullptr;
      for (Resource &resource : resources)
        if (!resource.ready.empty() && (!first || *resource.ready.begin() < *first->ready.begin()))
          first = &resource;
      start(*first, first->ready.begin());
      continue;
    }
    now = next;
    bool changed = false;
    while (!events.empty() && events.top().first <= now) {
      const uint32_t i = events.top().second;
      events.pop();
      if (tasks[i].way && tasks[i].bytes > 0) {
        flows.push_back({i, static_cast<double>(tasks[i].bytes)});
        changed = true;
      } else {
        finish(i);
      }
    }
    for (size_t k = 0; k < flows.size();) {
      if (flows[k].finish > now) {
        ++k;
        continue;
      }
      const uint32_t i = flows[k].task;
      flows.erase(flows.begin() + static_cast<ptrdiff_t>(k));
      changed = true;
      finish(i);
    }
    if (changed)
      shareLinks();
  }
}

/// Keeps the shortest of the plans that are tried.
class Search {
public:
  explicit Search(const Problem &problem) : p(problem) {}

  /// Makes a plan by these priorities; returns whether it is the best so far. `rule` names them in messages.
  bool consider(std::vector<double> urgency, const char *rule, double patience = 0) {
    double write = -kNever;
    for (uint32_t i : p.stateWriters)
      write = std::max(write, urgency[i]);
    for (uint32_t i : p.beforeChecks)
      urgency[i] = std::max(urgency[i], write);
    for (uint32_t i : p.checks)
      urgency[i] = std::max(urgency[i], std::nextafter(write, kNever));
    constexpr double kWhole = 1e6; // seconds: longer than any step
    for (auto [task, each] : llvm::zip_equal(p.tasks, urgency))
      if (task.isLazy && each > -kWhole)
        each -= 2 * kWhole;
    Walk walk(p, urgency, Walk::Kind::Forward, patience);
    ++numWalks;
    const double length = lengthOf(walk);
    if (numWalks == 1)
      firstSeconds = walk.length;
    if (length >= bestLength)
      return false;
    bestLength = length;
    bestSeconds = walk.length;
    bestRule = rule;
    begin = std::move(walk.begin);
    end = std::move(walk.end);
    order = std::move(walk.order);
    best = std::move(urgency);
    return true;
  }

  /// Justification (Valls, Ballestin and Quintanilla, "Justification and RCPSP", 2005): plans backward and forward in
  /// turn, each with priorities from the other. A task that ends late in the backward plan has the longest path left,
  /// contention for engines included.
  bool justify() {
    Walk back(p, end, Walk::Kind::Backward);
    ++numWalks;
    return consider(std::move(back.end), "the longest way to the end in a plan from the end to the begin");
  }

  /// Copies in the order of first use by computing tasks, regardless of their critical path: so engines have work
  /// early. `place`: position of each task in the order of computing.
  bool bringAsUsed(ArrayRef<uint32_t> place) {
    std::vector<double> urgency(p.tasks.size());
    const std::vector<uint32_t> sorted = p.sorted();
    for (size_t i : llvm::reverse(sorted)) {
      const Task &task = p.tasks[i];
      urgency[i] = -static_cast<double>(place[i]);
      if ((!task.way && !task.isJoin) || task.users.empty())
        continue;
      urgency[i] = -kNever;
      for (uint32_t user : task.users)
        urgency[i] = std::max(urgency[i], urgency[user]);
    }
    return consider(std::move(urgency), "the first use of what is copied");
  }
  bool bringAsUsed() {
    std::vector<uint32_t> place(p.tasks.size());
    for (auto [k, i] : llvm::enumerate(order))
      place[i] = static_cast<uint32_t>(k);
    return bringAsUsed(place);
  }
  /// Lets engines stay idle for more urgent tasks.
  bool wait() { return consider(best, "waiting for what is more urgent", 1); }
  /// Repeats these until none helps, for at most `most` walks in all.
  void improve(size_t most) {
    for (bool again = true; again && numWalks < most;) {
      again = justify();
      again |= bringAsUsed();
      again |= wait();
    }
  }

  /// A summary of what was tried, for decisions.
  std::string how() const {
    std::string text = "begin by " + std::string(bestRule) + ": " + runtime::spellSeconds(bestSeconds);
    if (bestSeconds < firstSeconds)
      text += ", by the longest way to the end " + runtime::spellSeconds(firstSeconds);
    return text + "; orders tried: " + std::to_string(numWalks);
  }
  size_t walks() const { return numWalks; }
  double seconds() const { return bestSeconds; }
  ArrayRef<double> urgency() const { return best; }

  std::vector<Planned> result() const {
    std::vector<Planned> plan;
    for (uint32_t i : order) {
      plan.push_back(p.tasks[i].planned);
      plan.back().begin = begin[i], plan.back().end = end[i];
    }
    return plan;
  }

private:
  /// The last end, plus a small weight of the mean end of all devices, as more work may follow there.
  double lengthOf(const Walk &walk) const {
    std::vector<double> ends(p.costs.devices().size(), 0);
    for (auto [task, end] : llvm::zip_equal(p.tasks, walk.end))
      ends[task.planned.device] = std::max(ends[task.planned.device], end);
    double sum = 0;
    for (double end : ends)
      sum += end;
    return walk.length + 1e-4 * sum / static_cast<double>(ends.size());
  }

  const Problem &p;
  double bestLength = kNever, bestSeconds = 0, firstSeconds = 0;
  const char *bestRule = "";
  std::vector<double> begin, end, best;
  std::vector<uint32_t> order;
  size_t numWalks = 0;
};

} // namespace

std::vector<Planned> scheduleInOrder(ArrayRef<Operation *> step, MachineCosts &costs,
                                     llvm::function_ref<bool(Value)> isPageable) {
  const SmallVector<int64_t> held(costs.devices().size(), 0);
  const Problem problem(step, costs, isPageable, held);
  const Walk walk(problem, {}, Walk::Kind::InOrder);
  std::vector<Planned> plan;
  for (auto [task, begin, end] : llvm::zip_equal(problem.tasks, walk.begin, walk.end)) {
    plan.push_back(task.planned);
    plan.back().begin = begin, plan.back().end = end;
  }
  return plan;
}

std::optional<PipelineOrder> firstPipelineOrder(func::FuncOp main) {
  auto name = main->getAttrOfType<StringAttr>(graph::kMicroBatchOrderAttr);
  return name ? std::optional(parsePipelineOrder(name).value_or(kPipelineOrders[0])) : std::nullopt;
}

std::vector<Planned> planStep(func::FuncOp main, const IssueOrder &order, MachineCosts &costs, Effort effort,
                              std::string *how) {
  auto pageable = [&](Value value) { return isPageable(main, value); };
  if (main->hasAttr(kOrderedAttr))
    return scheduleInOrder(order.step, costs, pageable);
  SmallVector<int64_t> held(costs.devices().size(), 0);
  for (Operation *op : order.prepare)
    for (Value result : op->getResults())
      held[homeIndexOf(result, costs)] += bytesOf(result.getType());
  const std::optional<PipelineOrder> first = firstPipelineOrder(main);
  auto plan = [&](std::optional<PipelineOrder> pipeline, std::string *said) {
    return listSchedule(order.step, costs, pageable, held, effort, said, pipeline);
  };
  const bool isNamed = first && parsePipelineOrder(main->getAttrOfType<StringAttr>(graph::kMicroBatchOrderAttr));
  if (!first || isNamed || effort == Effort::Quick)
    return plan(first, how);
  constexpr double kAsLong = 0.99;
  std::vector<Planned> best;
  std::string all;
  for (PipelineOrder each : kPipelineOrders) {
    std::string said;
    std::vector<Planned> planned = plan(each, &said);
    all += (all.empty() ? "" : "; ") + said;
    if (best.empty() || lengthOf(planned) < kAsLong * lengthOf(best))
      best = std::move(planned);
  }
  if (how)
    *how = all + "; the order of " + runtime::spellSeconds(lengthOf(best)) + " is taken";
  return best;
}

double lengthOf(ArrayRef<Planned> plan) {
  double end = 0;
  for (const Planned &planned : plan)
    end = std::max(end, planned.end);
  return end;
}

std::vector<Planned> listSchedule(ArrayRef<Operation *> step, MachineCosts &costs,
                                  llvm::function_ref<bool(Value)> isPageable, ArrayRef<int64_t> held, Effort effort,
                                  std::string *how, std::optional<PipelineOrder> pipeline) {
  Problem problem(step, costs, isPageable, held);
  const bool isInOrder = pipeline && problem.order(*pipeline);
  const size_t size = problem.tasks.size();
  std::vector<double> way(size, 0);
  llvm::SmallDenseSet<unsigned> computing;
  bool moves = false;
  const std::vector<uint32_t> sorted = problem.sorted();
  for (size_t i : llvm::reverse(sorted)) {
    const Task &task = problem.tasks[i];
    for (uint32_t user : task.users)
      way[i] = std::max(way[i], way[user]);
    way[i] += task.seconds;
    moves |= task.way.has_value();
    if (!task.way && !task.isJoin)
      computing.insert(task.planned.device);
  }
  Search search(problem);
  const llvm::scope_exit explained([&] {
    if (!how)
      return;
    *how = search.how();
    if (pipeline && isInOrder)
      *how = (llvm::Twine("of micro-batches in the order ") + nameOf(*pipeline, problem.pipeline.isInterleaved()) +
              " take " + runtime::spellSeconds(search.seconds()) + ", of which accelerators do nothing for " +
              llvm::formatv("{0:P0}", problem.bubbleOf(search.seconds())).str() + " (bubble), " + *how)
                 .str();
    else if (pipeline)
      *how = "in any order, as micro-batches wait for one another, " + *how;
  });
  search.consider(way, "the longest way to the end");
  if (!moves && computing.size() < 2 && !isInOrder)
    return search.result(); // one engine: all orders take the same time
  // Longest path first advances all chains together, so devices of later stages stay idle for long. The given order
  // advances one chain after the other.
  search.consider(std::vector<double>(size, 0), "their order in the program");
  std::vector<uint32_t> given(size);
  std::iota(given.begin(), given.end(), 0u);
  search.bringAsUsed(given);
  constexpr size_t kQuick = 200'000, kThorough = 400'000; // bound of tasks visited in all walks
  search.improve(std::min<size_t>(3 + kQuick / (size + 1), 16));
  if (effort == Effort::Quick)
    return search.result();
  std::mt19937 random(1);
  const size_t most = std::min<size_t>(kThorough / (size + 1), 500);
  for (size_t trial = 0; search.walks() < most; ++trial) {
    std::vector<double> urgency(search.urgency());
    const double spread = trial % 3 == 1 ? 0.3 : 0.05;
    for (double &each : urgency)
      each *= 1 + spread * (static_cast<double>(random()) / 4294967296.0 - 0.5);
    constexpr double kPatience[] = {0, 0, 1, 0.2};
    if (search.consider(std::move(urgency), "a variation of another order, at random", kPatience[trial % 4]))
      search.improve(most);
  }
  return search.result();
}

} // namespace tressel::passes
