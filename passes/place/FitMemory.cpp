#include "passes/place/Footprint.h"
#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/ListSchedule.h"
#include "passes/place/MemoryNeeds.h"
#include "passes/Passes.h"
#include "passes/place/StepModel.h"
#include "passes/Util.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "tressel/runtime/MachineModel.h"
#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <limits>

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_FITMEMORY
#include "passes/Passes.h.inc"

namespace {
using residency::Item;

/// The best plan found that fits the step into memory.
struct Way {
  double seconds = std::numeric_limits<double>::infinity();
  residency::Sequence sequence;
  SmallVector<uint32_t> streamed; ///< parameters that are copied to the device in each call
};

/// The op that does not fit where there is no plan.
struct Obstacle {
  Operation *op = nullptr;
  unsigned device = 0;
  int64_t bytes = 0, limit = 0;
};

/// Searches plans that fit a step into `memory` bytes of each device.
class Search {
public:
  Search(func::FuncOp main, MachineCosts &costs, ArrayRef<int64_t> memory, bool rematerialize, int64_t maxWork,
         bool isLate = false)
      : model(main, costs), costs(costs), memory(memory), rematerialize(rematerialize), isLate(isLate) {
    addOrder(main, /*hasMemory=*/true);
    const auto size = static_cast<int64_t>(model.step.tasks.size()) + 1;
    plansLeft = std::max<int64_t>(1, maxWork / size);
  }

  /// Whether the step in its first order needs more than `share` of a device's memory at its peak.
  bool isTight(double share) {
    const residency::Sequence sequence = model.sequenceOf(orders[0]);
    for (unsigned d = 1; d < memory.size(); ++d) {
      const int64_t most = std::max(residency::peakOf(model.step, d, sequence), model.preparePeak(d));
      if (static_cast<double>(most + model.heldOn(d)) > share * static_cast<double>(memory[d]))
        return true;
    }
    return false;
  }

  FailureOr<Way> best(func::FuncOp main, Obstacle &obstacle);

  StepModel model;

private:
  void addOrder(std::vector<Operation *> order);
  void addOrder(func::FuncOp main, bool hasMemory);
  static std::vector<Operation *> withPartsTogether(std::vector<Operation *> order);
  void stream(double share);
  void tryOrders(Way &best, Obstacle &obstacle, bool all);
  int64_t mostOfOneOp(unsigned device) const;

  MachineCosts &costs;
  SmallVector<int64_t> memory; ///< by device
  const bool rematerialize, isLate;
  std::vector<std::vector<Operation *>> orders;
  int64_t plansLeft = 1;
};

void Search::addOrder(std::vector<Operation *> order) {
  if (!llvm::is_contained(orders, order))
    orders.push_back(std::move(order));
}

/// Adds the order of predicted begin times, planned with the devices' memory as bound, or without bound.
void Search::addOrder(func::FuncOp main, bool hasMemory) {
  SmallVector<int64_t> held(memory.size(), hasMemory ? 0 : std::numeric_limits<int64_t>::min() / 4);
  for (unsigned d = 1; d < memory.size() && hasMemory; ++d)
    held[d] = model.heldOn(d);
  std::vector<Operation *> order;
  for (const Planned &p : listSchedule(
           model.ops(), costs, [&](Value v) { return isPageable(main, v); }, held, Effort::Quick, nullptr,
           firstPipelineOrder(main)))
    order.push_back(p.op);
  addOrder(std::move(order));
}

/// The bytes of a join of rows cannot be evicted between its first part and its last. So moves each part to right
/// before the last one, where dependences allow it.
std::vector<Operation *> Search::withPartsTogether(std::vector<Operation *> order) {
  SymbolTableCollection symbols;
  auto reads = [](Operation *op, Operation *part) {
    return llvm::any_of(op->getOperands(), [&](Value operand) { return baseOf(operand).getDefiningOp() == part; });
  };
  const auto joins = llvm::to_vector(llvm::make_filter_range(order, isRowJoin)); // `order` changes below
  for (Operation *join : joins) {
    llvm::SmallPtrSet<Operation *, 8> parts;
    for (Value part : join->getOperands())
      if (Operation *def = baseOf(part).getDefiningOp())
        parts.insert(def);
    auto isPart = [&](Operation *op) { return parts.contains(op); };
    const auto last = std::find_if(order.rbegin(), order.rend(), isPart);
    if (last == order.rend())
      continue;
    auto group = std::prev(last.base());
    for (auto at = group; at != order.begin();) {
      Operation *op = *--at;
      if (!isPart(op) || hasEffects(op, symbols) ||
          std::any_of(at + 1, group, [&](Operation *later) { return reads(later, op); }))
        continue;
      std::rotate(at, at + 1, group);
      --group;
    }
  }
  return order;
}

/// Largest bytes of one op's operands, results and scratch, without resident values.
int64_t Search::mostOfOneOp(unsigned device) const {
  int64_t most = 0;
  for (const residency::Task &task : model.step.tasks) {
    int64_t bytes = task.device == device ? task.scratch : 0;
    llvm::SmallSetVector<uint32_t, 8> values(task.reads.begin(), task.reads.end());
    values.insert(task.writes.begin(), task.writes.end());
    for (uint32_t v : values)
      if (model.step.values[v].device == device && !model.step.values[v].isResident)
        bytes += model.step.values[v].bytes;
    most = std::max(most, bytes);
  }
  return most;
}

/// Chooses the parameters to stream: `share` of their bytes, spread evenly over the step, since copies needed at the
/// same time would be waited for; then further ones, the largest first, until the largest op fits beside the resident
/// ones.
void Search::stream(double share) {
  SmallVector<uint32_t> bySize(model.parameters());
  for (uint32_t v : bySize)
    model.step.values[v].isResident = true;
  llvm::sort(bySize, [&](uint32_t a, uint32_t b) {
    return std::pair(model.step.values[a].bytes, a) > std::pair(model.step.values[b].bytes, b);
  });
  constexpr int64_t kSmall = 64; // of the largest: below, latency dominates the copy
  for (unsigned d = 1; d < memory.size(); ++d) {
    auto largest = llvm::find_if(bySize, [&](uint32_t v) { return model.step.values[v].device == d; });
    if (largest == bySize.end())
      continue;
    // Starts with a deficit: nothing overlaps with a copy that the first ops need.
    double due = share < 1 ? -0.5 * static_cast<double>(model.step.values[*largest].bytes) : 0;
    for (uint32_t v : model.parameters()) { // in the order in which the step reads them
      residency::Value &value = model.step.values[v];
      if (value.device != d || value.isFixed || (share < 1 && value.bytes < model.step.values[*largest].bytes / kSmall))
        continue;
      due += share * static_cast<double>(value.bytes);
      if (due < 0.5 * static_cast<double>(value.bytes) && share < 1)
        continue;
      due -= static_cast<double>(value.bytes);
      value.isResident = false;
    }
    for (uint32_t v : bySize) {
      const int64_t held = model.heldOn(d);
      if (held + std::max(mostOfOneOp(d), model.preparePeak(d)) <= memory[d])
        break;
      if (model.step.values[v].device == d && !model.step.values[v].isFixed)
        model.step.values[v].isResident = false;
    }
  }
}

void Search::tryOrders(Way &best, Obstacle &obstacle, bool all) {
  SmallVector<int64_t> limits(memory.size(), 0);
  for (unsigned d = 1; d < memory.size(); ++d) {
    limits[d] = memory[d] - model.heldOn(d);
    if (limits[d] < 0 || model.preparePeak(d) > limits[d])
      return;
  }
  struct Choice {
    bool byCost;
    double rematerializeBelow;
  };
  const Choice choices[] = {{false, 0}, {true, 0}, {true, 1}, {true, 0.1}, {false, 0.3}};
  for (const std::vector<Operation *> &order : ArrayRef(orders).take_front(all ? orders.size() : 1))
    for (const Choice &choice : choices) {
      if ((choice.rematerializeBelow > 0 && !rematerialize) || (plansLeft <= 0 && !best.sequence.empty()))
        continue;
      --plansLeft;
      residency::Sequence sequence = model.sequenceOf(order);
      bool fits = true;
      for (unsigned d = 1; d < memory.size() && fits; ++d) {
        const residency::Rule rule{limits[d], choice.byCost, choice.rematerializeBelow, isLate};
        if (const std::optional<residency::Misfit> misfit = residency::fit(model.step, d, rule, sequence)) {
          fits = false;
          // Reports the obstacle that lacks the most bytes of all orders: an op that is too large alone, if there is
          // one.
          if (choice.rematerializeBelow == 0 && (!obstacle.op || misfit->bytes - limits[d] > obstacle.bytes - obstacle.limit))
            obstacle = {model.ops()[misfit->task], d, misfit->bytes, limits[d]};
        }
      }
      if (!fits)
        continue;
      const double seconds = residency::secondsOf(model.step, sequence, limits);
      if (seconds < best.seconds || best.sequence.empty()) {
        best.seconds = seconds;
        best.sequence = std::move(sequence);
        best.streamed.clear();
        for (uint32_t v : model.parameters())
          if (!model.step.values[v].isResident)
            best.streamed.push_back(v);
      }
    }
}

FailureOr<Way> Search::best(func::FuncOp main, Obstacle &obstacle) {
  addOrder(main, /*hasMemory=*/false);
  addOrder(IssueOrder(main, /*leastMemory=*/true).step);
  addOrder(std::vector<Operation *>(model.ops().begin(), model.ops().end()));
  for (size_t i = 0, n = orders.size(); i < n; ++i)
    addOrder(withPartsTogether(orders[i]));
  Way way;
  std::vector<SmallVector<uint32_t>> tried;
  // From the least share that must be streamed to all parameters.
  stream(0);
  int64_t bytes = 0, resident = 0;
  for (uint32_t v : model.parameters()) {
    bytes += model.step.values[v].bytes;
    resident += model.step.values[v].isResident ? model.step.values[v].bytes : 0;
  }
  const double least = bytes ? 1 - static_cast<double>(resident) / static_cast<double>(bytes) : 0;
  for (double more : {0.0, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0}) {
    if (plansLeft <= 0 && !way.sequence.empty())
      break;
    stream(least + more * (1 - least));
    SmallVector<uint32_t> streamed;
    for (uint32_t v : model.parameters())
      if (!model.step.values[v].isResident)
        streamed.push_back(v);
    if (llvm::is_contained(tried, streamed))
      continue;
    tried.push_back(streamed);
    tryOrders(way, obstacle, /*all=*/true);
  }
  if (way.sequence.empty() && !model.step.tasks.empty())
    return failure();
  for (uint32_t v : model.parameters())
    model.step.values[v].isResident = !llvm::is_contained(way.streamed, v);
  return way;
}

class FitMemory : public impl::FitMemoryBase<FitMemory> {
public:
  FitMemory(const runtime::MachineModel *machine, Decisions *decisions) : machine(machine), decisions(decisions) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> found = findMain(getOperation());
    if (failed(found))
      return signalPassFailure();
    if (!*found || !machine || machine->devices.size() < 2)
      return;
    main = *found;
    const bool isChosen = main->removeAttr(kChosenAttr) != nullptr;
    auto isElsewhere = [](Operation &op) {
      return isWork(&op) && (graph::isTransfer(&op) || graph::deviceOf(&op).value_or(graph::kHost) != graph::kHost);
    };
    if (llvm::none_of(main.getBody().front(), isElsewhere))
      return;
    Obstacle obstacle;
    while (!fit(obstacle)) {
      if (!obstacle.op)
        obstacle = largestAhead(); // the step fits, so prepare does not
      if (!obstacle.op)
        return signalPassFailure();
      if (!isChosen || !isa<graph::LaunchOp>(obstacle.op)) {
        refuseAt(obstacle);
        return signalPassFailure();
      }
      moveToHost(obstacle.op);
      obstacle = {};
    }
  }

private:
  /// Fits the program into memory. On failure, sets the obstacle and leaves @main unchanged.
  bool fit(Obstacle &obstacle) {
    MachineCosts costs(*machine);
    SmallVector<int64_t> memory;
    for (const runtime::DeviceModel *device : costs.devices())
      memory.push_back(device->memoryBytes);
    // The caller's arguments and results in a device's memory are there all the time.
    for (BlockArgument arg : main.getArguments())
      memory[homeIndexOf(arg, costs)] -= homeIndexOf(arg, costs) ? slotBytesOf(arg.getType()) : 0;
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      if (const unsigned d = costs.indexOf(graph::homeOfResult(main, i).value_or(graph::kHost)).value_or(0);
          d != 0 && !main.getResultAttr(i, graph::kStateAttr))
        memory[d] -= slotBytesOf(main.getResultTypes()[i]);
    // Fragmentation is not modelled, so plan-memory is run if more than this share of a memory is taken.
    constexpr double kCertain = 0.5;
    SmallVector<int64_t> all(memory.size(), 0);
    for (Operation &op : main.getBody().front())
      if (isWork(&op))
        for (Value result : op.getResults())
          all[homeIndexOf(result, costs)] += slotBytesOf(result.getType());
    auto isFine = [&](unsigned d) { return static_cast<double>(all[d]) <= kCertain * static_cast<double>(memory[d]); };
    if (!hasBodies() && llvm::all_of(llvm::seq(1u, static_cast<unsigned>(memory.size())), isFine))
      return true;
    {
      Search search(main, costs, memory, rematerialize, maxWork);
      SmallVector<int64_t> less = memory;
      // plan-memory also decides for programs with bodies, whose memory is only estimated, from above.
      if (!search.isTight(kCertain) || ((hasBodies() || !search.isTight(1)) && isMet(memory, less)))
        return true;
    }
    // If fragmentation makes the plan too large, searches again with less memory, but not so little that an op no
    // longer fits.
    all = memory;
    SmallVector<int64_t> tooLittle(all.size(), 0);
    constexpr int kRounds = 12, kLate = 8; // rounds with overlapping copies come first
    for (int round = 0; round < kRounds; ++round) {
      if (round == kLate) {
        memory = all;
        llvm::fill(tooLittle, 0);
      }
      Search search(main, costs, memory, rematerialize, maxWork, round >= kLate);
      Obstacle now;
      FailureOr<Way> way = search.best(main, now);
      if (failed(way)) {
        if (round == 0) {
          if (!now.op && moveToStep(search.model, costs)) // prepare alone needs too much
            return fit(obstacle);
          obstacle = now.op ? now : largestOp(search.model, all);
          return false;
        }
        for (unsigned d = 1; d < all.size(); ++d)
          if (memory[d] < all[d] && (!now.op || now.device == d)) {
            tooLittle[d] = memory[d];
            memory[d] = (tooLittle[d] + all[d]) / 2;
          }
        continue;
      }
      func::FuncOp backup = main.clone();
      Decisions made;
      Counts counts = describe(search.model, *way, costs, made);
      search.model.apply(way->sequence);
      SmallVector<int64_t> less = memory;
      if (isMet(all, less)) {
        backup.erase();
        numSpilled += counts.spilled, numPrefetched += counts.prefetched, numRematerialized += counts.rematerialized, numStreamed += counts.streamed;
        if (decisions)
          decisions->insert(decisions->end(), made.begin(), made.end());
        return true;
      }
      main.erase();
      getOperation().push_back(backup);
      main = backup;
      for (unsigned d = 1; d < all.size(); ++d)
        memory[d] = std::max(less[d], less[d] < memory[d] ? (tooLittle[d] + memory[d]) / 2 : memory[d]);
    }
    // No op is too large, but fragmentation always takes too much: reports the largest op.
    Search search(main, costs, all, rematerialize, maxWork);
    obstacle = largestOp(search.model, all);
    return false;
  }

  /// Whether a device runs ops with bodies, whose buffers this pass does not see.
  bool hasBodies() {
    return llvm::any_of(main.getBody().front(), [](Operation &op) {
      return isa<graph::ControlOpInterface>(op) && graph::deviceOf(&op).value_or(graph::kHost) != graph::kHost;
    });
  }

  /// Runs plan-memory on a copy. If it needs more than there is, reduces `memory` for the next round.
  bool isMet(ArrayRef<int64_t> all, MutableArrayRef<int64_t> memory) {
    const FailureOr<SmallVector<int64_t>> needs = memoryNeeds(getOperation(), *machine);
    if (failed(needs))
      return true; // the real passes will report the error
    bool isMet = true;
    for (unsigned d = 1; d < all.size(); ++d)
      if ((*needs)[d] > all[d]) {
        memory[d] -= std::max<int64_t>(64, (*needs)[d] - all[d]);
        isMet = false;
      }
    return isMet;
  }

  struct Counts {
    int64_t spilled = 0, prefetched = 0, rematerialized = 0, streamed = 0;
  };
  static std::string nameOf(Operation *op) {
    if (auto launch = dyn_cast<graph::LaunchOp>(op))
      return launch.getKernel().str();
    return op->getName().stripDialect().str();
  }
  /// Records what was decided, value by value.
  Counts describe(const StepModel &model, const Way &way, const MachineCosts &costs, Decisions &made) const {
    Counts counts;
    llvm::MapVector<uint32_t, Counts> of; // by value
    for (auto [kind, index] : way.sequence) {
      if (kind == Item::Spill)
        ++counts.spilled, ++of[index].spilled;
      if (kind == Item::Prefetch && (model.step.values[index].copiedBy == residency::kNone || of[index].streamed++ > 0))
        ++counts.prefetched, ++of[index].prefetched;
      if (kind == Item::Rematerialize)
        ++counts.rematerialized, ++of[model.step.tasks[index].writes[0]].rematerialized;
    }
    counts.streamed = static_cast<int64_t>(way.streamed.size());
    auto note = [&](Value value, const std::string &text) {
      Operation *def = value.getDefiningOp();
      const graph::FileLine line = graph::fileLineOf(value.getLoc());
      made.push_back(
          {"fit-memory", {def ? nameOf(def) : "a value", line.file, static_cast<uint32_t>(line.line)}, text});
    };
    auto times = [](int64_t n) { return n == 1 ? std::string("once") : std::to_string(n) + " times"; };
    for (const auto &[v, count] : of) {
      const residency::Value &value = model.step.values[v];
      const std::string device = costs.devices()[value.device]->name;
      if (llvm::is_contained(way.streamed, v))
        note(model.valueOf(v), "a parameter of " + std::to_string(value.bytes) + " bytes that is streamed to " + device +
                                   " in each call, " + times(count.prefetched) + ", as there is no room to keep it");
      else if (count.spilled + count.prefetched > 0)
        note(model.valueOf(v), std::to_string(value.bytes) + " bytes are evicted from " + device + " and prefetched " +
                                   times(count.prefetched) +
                                   (count.spilled ? ", spilled to the host while others run" : "; the host has them") +
                                   ": as others are needed sooner");
      if (count.rematerialized > 0)
        note(model.valueOf(v), "rematerialized on " + device + " " + times(count.rematerialized) + ": that takes less (" +
                                   runtime::spellSeconds(model.step.tasks[taskOf(model, v)].seconds) +
                                   ") than a spill and a prefetch (" +
                                   runtime::spellSeconds(value.outSeconds + value.inSeconds) + ")");
    }
    if (counts.spilled + counts.prefetched + counts.rematerialized + counts.streamed > 0) {
      std::string devices;
      for (unsigned d = 1; d < costs.devices().size(); ++d)
        devices += (d > 1 ? ", " : "") + costs.devices()[d]->name;
      made.push_back({"fit-memory",
                      {"the program", "", 0},
                      devices + (costs.devices().size() > 2 ? " have" : " has") +
                          " not room for all at once: " + std::to_string(counts.spilled) + " values are spilled and " +
                          std::to_string(counts.prefetched) + " prefetched, " + std::to_string(counts.rematerialized) +
                          " are rematerialized, " + std::to_string(counts.streamed) +
                          " parameters are streamed in each call; predicted: " + runtime::spellSeconds(way.seconds)});
    }
    return counts;
  }
  static uint32_t taskOf(const StepModel &model, uint32_t v) {
    for (auto [i, task] : llvm::enumerate(model.step.tasks))
      if (llvm::is_contained(task.writes, v))
        return static_cast<uint32_t>(i);
    return 0;
  }

  /// Moves what prepare computes on accelerators into the step, where values may be evicted. False if there is nothing
  /// to move.
  bool moveToStep(const StepModel &model, const MachineCosts &costs) const {
    bool any = false;
    for (Operation *op : model.prepareOrder())
      if (isa<graph::LaunchOp>(op) && deviceIndexOf(op, costs) != 0) {
        op->setAttr(kInStepAttr, UnitAttr::get(op->getContext()));
        any = true;
      }
    return any;
  }
  /// The largest op of all on accelerators, including those of prepare.
  Obstacle largestAhead() {
    Obstacle most;
    const MachineCosts costs(*machine);
    for (Operation &op : main.getBody().front())
      if (const unsigned d = isWork(&op) && !graph::isTransfer(&op) ? deviceIndexOf(&op, costs) : 0; d != 0 && !isRowJoin(&op))
        if (const int64_t bytes = footprintOf(&op); !most.op || bytes > most.bytes)
          most = {&op, d, bytes, costs.devices()[d]->memoryBytes};
    return most;
  }
  Obstacle largestOp(const StepModel &model, ArrayRef<int64_t> memory) const {
    Obstacle most;
    const MachineCosts costs(*machine);
    for (Operation *op : model.ops())
      if (const unsigned d = deviceIndexOf(op, costs); d != 0 && !graph::isTransfer(op) && !isRowJoin(op)) {
        const int64_t bytes = footprintOf(op);
        if (!most.op || bytes - memory[d] > most.bytes - most.limit)
          most = {op, d, bytes, memory[d]};
      }
    return most;
  }

  void refuseAt(const Obstacle &obstacle) const {
    const MachineCosts costs(*machine);
    const runtime::DeviceModel &device = *costs.devices()[obstacle.device];
    const int64_t others = obstacle.bytes - footprintOf(obstacle.op);
    std::string more;
    if (obstacle.bytes <= device.memoryBytes)
      more = ", not all of them side by side";
    else if (others > 0)
      more = ", " + std::to_string(others) + " of them for what cannot be evicted meanwhile";
    (void)refuse(obstacle.op, obstacle.bytes, device.name, device.memoryBytes, more);
  }

  /// Moves the op to the host, and inserts transfers of its operands and results.
  void moveToHost(Operation *op) {
    const MachineCosts costs(*machine);
    const runtime::DeviceRef device = graph::deviceOf(op).value_or(graph::kHost);
    if (decisions) {
      const graph::FileLine line = graph::fileLineOf(op->getLoc());
      decisions->push_back({"fit-memory",
                            {nameOf(op), line.file, static_cast<uint32_t>(line.line)},
                            "cpu: " + runtime::nameOf(device) + " has no room for it"});
    }
    graph::setDevice(op, graph::kHost);
    OpBuilder b(op);
    for (OpOperand &operand : op->getOpOperands()) {
      const Value base = baseOf(operand.get());
      if (homeIndexOf(base, costs) == 0)
        continue;
      Operation *def = base.getDefiningOp();
      if (operand.get() == base && def && graph::isTransfer(def) && homeIndexOf(baseOf(def->getOperand(0)), costs) == 0)
        operand.set(def->getOperand(0));
      else
        operand.set(graph::createTransfer(b, op->getLoc(), operand.get(), graph::kHost));
    }
    for (Value result : op->getResults()) {
      Value there;
      for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
        Operation *user = use.getOwner();
        if (graph::isTransfer(user) && graph::destinationOf(user) == graph::kHost) {
          user->getResult(0).replaceAllUsesWith(result);
          user->erase();
        } else if (graph::isTransfer(user) ||
                   (user->hasTrait<OpTrait::IsTerminator>() &&
                    graph::homeOfResult(main, use.getOperandNumber()).value_or(graph::kHost) == graph::kHost)) {
          continue; // reads from the host now
        } else {
          if (!there) {
            b.setInsertionPointAfter(op); // set late, as the op there may have been erased
            there = graph::createTransfer(b, op->getLoc(), result, device);
          }
          use.set(there);
        }
      }
    }
    for (Operation &unused : llvm::make_early_inc_range(llvm::reverse(main.getBody().front())))
      if (graph::isTransfer(&unused) && unused.use_empty())
        unused.erase();
  }

  const runtime::MachineModel *machine;
  Decisions *decisions;
  func::FuncOp main; // set during a run
};
} // namespace

std::unique_ptr<Pass> createFitMemory(const runtime::MachineModel *machine, Decisions *decisions) {
  return std::make_unique<FitMemory>(machine, decisions);
}

} // namespace tressel::passes
