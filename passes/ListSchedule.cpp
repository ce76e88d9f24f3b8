#include "passes/ListSchedule.h"

#include "passes/IssueOrder.h"

#include "ir/graph/Control.h"
#include "ir/graph/Device.h"
#include "ir/graph/Graph.h"

#include <limits>
#include <queue>
#include <set>
#include <tuple>

using namespace mlir;

namespace tressel::passes {

unsigned deviceIndexOf(Operation *work, const MachineCosts &costs) {
  const runtime::DeviceRef device =
      graph::isTransfer(work) ? graph::destinationOf(work) : graph::deviceOf(work).value_or(graph::kHost);
  return costs.indexOf(device).value_or(0);
}

unsigned homeIndexOf(Value base, const MachineCosts &costs) {
  Operation *def = base.getDefiningOp();
  return def && isWork(def) ? deviceIndexOf(def, costs) : 0;
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

std::pair<unsigned, Engine> engineOf(Operation *work, const MachineCosts &costs) {
  const unsigned device = deviceIndexOf(work, costs);
  if (!graph::isTransfer(work))
    return {device, Engine::Compute};
  const unsigned from = homeIndexOf(baseOf(work->getOperand(0)), costs);
  return from == 0 ? std::pair(device, Engine::In) : std::pair(from, Engine::Out);
}

namespace {
constexpr uint32_t kNone = ~0u;

/// Part 1, cost: how long each op takes, on which engine, and how long the way from its begin to the end is.
struct Task {
  Planned planned;
  double seconds = 0, priority = 0;
  uint32_t missing = 0;
  SmallVector<uint32_t, 4> users;
  SmallVector<uint32_t, 4> reads; ///< values
  SmallVector<uint32_t, 2> writes;
};

/// Part 3, memory pressure: what lies on a device until the last reader has ended. Rows that are joined are the
/// whole's: they take memory when they are made, and free it with the whole.
struct Live {
  int64_t bytes = 0, freed = 0;
  unsigned device = 0;
  uint32_t readers = 0;
};

class Scheduler {
public:
  Scheduler(ArrayRef<Operation *> step, MachineCosts &costs, llvm::function_ref<bool(Value)> isPageable,
            ArrayRef<int64_t> held, bool longestWayFirst)
      : costs(costs), held(held) {
    read(step, isPageable);
    for (size_t i = longestWayFirst ? tasks.size() : 0; i-- > 0;) {
      Task &task = tasks[i];
      for (uint32_t user : task.users)
        task.priority = std::max(task.priority, tasks[user].priority);
      task.priority += task.seconds;
    }
  }

  std::vector<Planned> run();
  std::vector<Planned> runInOrder();

private:
  void read(ArrayRef<Operation *> step, llvm::function_ref<bool(Value)> isPageable);

  // Part 2, resources: what is ready on each engine, by priority, then in program order.
  struct Resource {
    std::set<std::pair<double, uint32_t>> ready; ///< (-priority, task)
    uint32_t running = kNone;
  };
  static size_t resourceOf(const Task &task) {
    return task.planned.device * 3 + static_cast<size_t>(task.planned.engine);
  }

  bool fits(const Task &task) const {
    return llvm::all_of(task.writes, [&](uint32_t v) {
      const auto [bytes, freed, device, readers] = values[v];
      return device == 0 || held[device] + bytes <= costs.devices()[device]->memoryBytes;
    });
  }

  MachineCosts &costs;
  std::vector<Task> tasks;
  std::vector<Live> values;
  SmallVector<int64_t> held; ///< by device, now
};

void Scheduler::read(ArrayRef<Operation *> step, llvm::function_ref<bool(Value)> isPageable) {
  llvm::DenseMap<Value, uint32_t> indexOf, writerOf;
  EffectFacts facts;
  uint32_t lastEffect = kNone;
  tasks.resize(step.size());
  for (auto [i, op] : llvm::enumerate(step)) {
    Task &task = tasks[i];
    task.planned.op = op;
    const unsigned device = deviceIndexOf(op, costs);
    std::tie(task.planned.device, task.planned.engine) = engineOf(op, costs);
    auto follow = [&](uint32_t before) {
      if (tasks[before].users.empty() || tasks[before].users.back() != i) {
        tasks[before].users.push_back(static_cast<uint32_t>(i));
        ++task.missing;
      }
    };
    for (Value operand : op->getOperands())
      if (auto at = indexOf.find(baseOf(operand)); at != indexOf.end() && !llvm::is_contained(task.reads, at->second)) {
        task.reads.push_back(at->second);
        ++values[at->second].readers;
        follow(writerOf.lookup(baseOf(operand)));
      }
    for (Value result : op->getResults()) {
      indexOf[result] = static_cast<uint32_t>(values.size());
      writerOf[result] = static_cast<uint32_t>(i);
      task.writes.push_back(static_cast<uint32_t>(values.size()));
      const int64_t bytes = bytesOf(result.getType());
      values.push_back({isRowJoin(op) ? 0 : bytes, isPartOfJoin(result) ? 0 : bytes, device});
    }
    if (graph::isTransfer(op)) {
      const Value from = baseOf(op->getOperand(0));
      const unsigned home = homeIndexOf(from, costs);
      if (const auto way = costs.transfer(home, device, bytesOf(op->getResult(0).getType()),
                                          isPageable(home == 0 ? from : op->getResult(0))))
        task.seconds = way->seconds;
    } else {
      task.seconds = costs.seconds(op, device);
    }
    if (!graph::isTransfer(op) && facts.hasEffects(op)) {
      if (lastEffect != kNone)
        follow(lastEffect);
      lastEffect = static_cast<uint32_t>(i);
    }
  }
}

/// Part 4, core.
std::vector<Planned> Scheduler::run() {
  std::vector<Resource> resources(costs.devices().size() * 3);
  std::vector<Planned> order;
  order.reserve(tasks.size());
  using Event = std::pair<double, uint32_t>;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> ends;
  double now = 0;
  auto makeReady = [&](uint32_t i) {
    Task &task = tasks[i];
    if (!isRowJoin(task.planned.op)) {
      resources[resourceOf(task)].ready.insert({-task.priority, i});
      return;
    }
    task.planned.begin = task.planned.end = now; // nobody has to do anything
    order.push_back(task.planned);
    ends.push({now, i});
  };
  for (auto [i, task] : llvm::enumerate(tasks))
    if (task.missing == 0)
      makeReady(static_cast<uint32_t>(i));
  auto start = [&](Resource &resource, std::set<std::pair<double, uint32_t>>::iterator at) {
    const uint32_t i = at->second;
    Task &task = tasks[i];
    resource.ready.erase(at);
    resource.running = i;
    task.planned.begin = now;
    task.planned.end = now + task.seconds;
    for (uint32_t value : task.writes)
      held[values[value].device] += values[value].bytes;
    order.push_back(task.planned);
    ends.push({task.planned.end, i});
  };
  auto startAll = [&] {
    constexpr int kWindow = 32; // looked at before an engine waits for memory
    for (Resource &resource : resources) {
      if (resource.running != kNone)
        continue;
      int seen = 0;
      for (auto at = resource.ready.begin(); at != resource.ready.end() && seen < kWindow; ++at, ++seen)
        if (fits(tasks[at->second])) {
          start(resource, at);
          break;
        }
    }
  };
  while (order.size() < tasks.size() || !ends.empty()) {
    startAll();
    if (ends.empty()) { // nothing fits: the memory planner finds out whether that is an error
      Resource *first = nullptr;
      for (Resource &resource : resources)
        if (!resource.ready.empty() && (!first || resource.ready.begin()->first < first->ready.begin()->first))
          first = &resource;
      start(*first, first->ready.begin());
    }
    now = ends.top().first;
    while (!ends.empty() && ends.top().first == now) {
      const uint32_t ended = ends.top().second;
      Task &task = tasks[ended];
      ends.pop();
      if (uint32_t &running = resources[resourceOf(task)].running; running == ended)
        running = kNone;
      for (uint32_t value : task.reads)
        if (Live &live = values[value]; --live.readers == 0)
          held[live.device] -= live.freed;
      for (uint32_t user : task.users)
        if (--tasks[user].missing == 0)
          makeReady(user);
    }
  }
  return order;
}

std::vector<Planned> Scheduler::runInOrder() {
  std::vector<double> freeAt(costs.devices().size() * 3, 0), ready(tasks.size(), 0);
  std::vector<Planned> order;
  for (auto [i, task] : llvm::enumerate(tasks)) {
    double &engine = freeAt[resourceOf(task)];
    const bool isJoin = isRowJoin(task.planned.op);
    task.planned.begin = isJoin ? ready[i] : std::max(ready[i], engine);
    task.planned.end = task.planned.begin + task.seconds;
    if (!isJoin)
      engine = task.planned.end;
    for (uint32_t user : task.users)
      ready[user] = std::max(ready[user], task.planned.end);
    order.push_back(task.planned);
  }
  return order;
}
} // namespace

std::vector<Planned> scheduleInOrder(ArrayRef<Operation *> step, MachineCosts &costs,
                                     llvm::function_ref<bool(Value)> isPageable) {
  return Scheduler(step, costs, isPageable, SmallVector<int64_t>(costs.devices().size(), 0), true).runInOrder();
}

static double endOf(ArrayRef<Planned> order) {
  double end = 0;
  for (const Planned &planned : order)
    end = std::max(end, planned.end);
  return end;
}

std::vector<Planned> listSchedule(ArrayRef<Operation *> step, MachineCosts &costs,
                                  llvm::function_ref<bool(Value)> isPageable, ArrayRef<int64_t> held) {
  std::vector<Planned> byWay = Scheduler(step, costs, isPageable, held, /*longestWayFirst=*/true).run();
  // That goes through all chains side by side, which leaves the devices of later stages idle for long: the order that
  // was given goes through one after the other.
  std::set<unsigned> computing;
  for (const Planned &planned : byWay)
    if (planned.engine == Engine::Compute)
      computing.insert(planned.device);
  if (computing.size() < 2)
    return byWay;
  std::vector<Planned> asGiven = Scheduler(step, costs, isPageable, held, /*longestWayFirst=*/false).run();
  return endOf(asGiven) < 0.999 * endOf(byWay) ? asGiven : byWay;
}

} // namespace tressel::passes
