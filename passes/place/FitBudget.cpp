#include "passes/Passes.h"
#include "passes/Util.h"
#include "passes/place/MachineCosts.h"
#include "passes/place/MemoryNeeds.h"
#include "passes/place/StepModel.h"
#include "passes/schedule/IssueOrder.h"

#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Segment.h"
#include "ir/graph/Structure.h"
#include "mlir/IR/OwningOpRef.h"
#include "tressel/runtime/MachineModel.h"
#include "llvm/ADT/MapVector.h"

#include <limits>

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_FITBUDGET
#include "passes/Passes.h.inc"

namespace {
using residency::Item;

/// A sequence of the step with its rematerializations, and its predicted cost.
struct Plan {
  residency::Sequence sequence;
  double seconds = 0;
  ArenaNeeds needs;
};

class FitBudget : public impl::FitBudgetBase<FitBudget> {
public:
  FitBudget(MemoryBudget budget, const runtime::MachineModel *machine, Decisions *decisions)
      : budget(budget), machine(machine), decisions(decisions) {}

  void runOnOperation() override {
    MemoryBudget bound = budget;
    if (!bound.isBound() && bytes >= 0)
      bound = MemoryBudget(static_cast<int64_t>(bytes));
    if (!bound.isBound() && share >= 0)
      bound = MemoryBudget::share(static_cast<double>(share));
    FailureOr<func::FuncOp> found = findMain(getOperation());
    if (failed(found))
      return signalPassFailure();
    if (!*found)
      return;
    main = *found;
    const bool isDropping = dropsValues();
    if (!bound.isBound() && !isDropping)
      return;
    if (failed(checkDevices(bound.isBound())))
      return signalPassFailure();
    if (isElsewhere)
      return; // accelerators: fit-memory handles their memory
    FailureOr<ArenaNeeds> unbounded = ArenaNeeds{};
    const runtime::MachineModel typical = runtime::typicalHostMachine(1);
    MachineCosts costs(machine ? *machine : typical);
    StepModel model(main, costs, /*hostIsBounded=*/true);
    Plan whole = planOf(model, model.sequenceOf(IssueOrder(main).step), std::numeric_limits<int64_t>::max(), 1).value();
    if (bound.isBound()) {
      unbounded = needsOf(isDropping ? &whole : nullptr);
      if (failed(unbounded))
        return signalPassFailure();
    }
    const int64_t limit = bound.bytesOf(unbounded->bytes);
    if (unbounded->bytes <= limit) {
      if (isDropping) {
        describe(model, whole, {});
        model.apply(whole.sequence);
      }
      return;
    }
    const double before = whole.seconds;
    std::vector<Plan> plans = plansOf(model);
    for (Plan &plan : plans) {
      const FailureOr<ArenaNeeds> needs = needsOf(&plan, limit);
      if (failed(needs))
        return signalPassFailure();
      plan.needs = *needs;
      if (needs->bytes > limit)
        continue;
      describe(model, plan, {unbounded->bytes, needs->bytes, limit, before});
      model.apply(plan.sequence);
      setLimit(getOperation(), limit);
      return;
    }
    main.emitError() << "the memory budget of " << limit
                     << " bytes cannot be met: the program's intermediate values take " << unbounded->bytes
                     << " bytes, and " << leastOf(plans, unbounded->bytes)
                     << " at least, computing again what can be; allow that many, or a smaller batch";
    signalPassFailure();
  }

private:
  /// Whether autograd::checkpoint() marks any values.
  bool dropsValues() {
    return llvm::any_of(main.getBody().front(), [](Operation &op) {
      return isWork(&op) && llvm::any_of(graph::droppedOf(&op), [](int64_t segment) { return segment != 0; });
    });
  }
  LogicalResult checkDevices(bool isBounded) {
    isElsewhere = false;
    for (Operation &op : main.getBody().front())
      if (isWork(&op) && (graph::isTransfer(&op) || graph::deviceOf(&op).value_or(graph::kHost) != graph::kHost)) {
        isElsewhere = true;
        if (isBounded)
          return op.emitError() << "is computed on " << runtime::nameOf(graph::deviceOf(&op).value_or(graph::kHost))
                                << ", and a memory budget is for programs on the host alone: the memory of an "
                                   "accelerator is that of the machine model";
      }
    return success();
  }

  void setLimit(ModuleOp module, int64_t limit) {
    module->setAttr(kMemoryBudgetAttr, IntegerAttr::get(IntegerType::get(&getContext(), 64), limit));
  }
  /// Arena bytes of the program with a plan; null: without one. If they exceed `limit` but could be fewer, plan-memory
  /// searches longer.
  FailureOr<ArenaNeeds> needsOf(const Plan *plan, std::optional<int64_t> limit = {}) {
    OwningOpRef<ModuleOp> copy = cast<ModuleOp>(getOperation()->clone());
    if (limit)
      setLimit(*copy, *limit);
    if (plan) {
      ++numPlans;
      const runtime::MachineModel typical = runtime::typicalHostMachine(1);
      MachineCosts costs(machine ? *machine : typical);
      StepModel(*findMain(*copy), costs, /*hostIsBounded=*/true).apply(plan->sequence);
    }
    return arenaNeeds(*copy);
  }
  /// The fewest bytes of any plan, with plan-memory's longest search.
  int64_t leastOf(std::vector<Plan> &plans, int64_t least) {
    for (const Plan &plan : plans)
      least = std::min(least, plan.needs.bytes);
    llvm::stable_sort(plans, [](const Plan &a, const Plan &b) { return a.needs.leastBytes < b.needs.leastBytes; });
    for (const Plan &plan : plans)
      if (plan.needs.leastBytes < least)
        if (const FailureOr<ArenaNeeds> needs = needsOf(&plan, plan.needs.leastBytes); succeeded(needs))
          least = std::min(least, needs->bytes);
    return least;
  }

  /// All plans, the fastest first. Which plans are tried does not depend on the budget, so that a smaller budget never
  /// leads to a plan that takes more.
  std::vector<Plan> plansOf(const StepModel &model) const {
    std::vector<Plan> plans;
    auto add = [&](const residency::Sequence &order, int64_t limit, double farther) {
      if (std::optional<Plan> plan = planOf(model, order, limit, farther);
          plan && llvm::none_of(plans, [&](const Plan &known) { return known.sequence == plan->sequence; }))
        plans.push_back(std::move(*plan));
    };
    constexpr int kSteps = 20;
    for (bool leastMemory : {true, false}) {
      const residency::Sequence order = model.sequenceOf(IssueOrder(main, leastMemory).step);
      const int64_t peak = residency::peakOf(model.step, 0, order);
      for (int k = kSteps - 1; k > 0; --k)
        for (double farther : {1.0, 0.5, 0.0})
          add(order, peak / kSteps * k, farther);
      add(order, std::numeric_limits<int64_t>::max(), 1);
    }
    llvm::stable_sort(plans, [](const Plan &a, const Plan &b) { return a.seconds < b.seconds; });
    return plans;
  }
  /// Nothing if the order does not fit.
  static std::optional<Plan> planOf(const StepModel &model, const residency::Sequence &order, int64_t limit,
                                    double farther) {
    Plan plan{order, 0, {}};
    const residency::Rule rule{
        .limit = limit, .byCost = true, .rematerializeBelow = 1, .farther = farther, .depth = kDepth};
    if (residency::fit(model.step, 0, rule, plan.sequence))
      return std::nullopt;
    plan.seconds = residency::secondsOf(model.step, plan.sequence, {});
    return plan;
  }
  /// Longest chain of rematerializations that the costs follow: as long as a deep network.
  static constexpr int kDepth = 200;

  struct Outcome {
    int64_t unbounded = 0, needs = 0, limit = 0;
    double before = 0;
  };
  void describe(const StepModel &model, const Plan &plan, const Outcome &outcome) {
    llvm::MapVector<uint32_t, int64_t> again; // by task
    for (const Item &item : plan.sequence)
      if (item.kind == Item::Rematerialize)
        ++again[item.index], ++numRematerialized;
    if (!decisions)
      return;
    auto note = [&](Operation *op, const std::string &text) {
      const graph::FileLine line = op ? graph::fileLineOf(op->getLoc()) : graph::FileLine();
      auto launch = dyn_cast_if_present<graph::LaunchOp>(op);
      decisions->push_back({"fit-budget",
                            {launch ? launch.getKernel().str()
                             : op   ? op->getName().stripDialect().str()
                                    : "the program",
                             line.file, static_cast<uint32_t>(line.line)},
                            text});
    };
    for (auto [task, times] : again) {
      const residency::Task &made = model.step.tasks[task];
      int64_t bytes = 0;
      bool isAsked = false;
      for (uint32_t v : made.writes)
        bytes += model.step.values[v].bytes, isAsked |= model.step.values[v].droppedBy != residency::kNone;
      note(model.ops()[task], "computed again " +
                                  (times == 1 ? std::string("once") : std::to_string(times) + " times") + ", in " +
                                  runtime::spellSeconds(made.seconds) + ", rather than keeping " +
                                  std::to_string(bytes) + " bytes" + (isAsked ? ", as checkpoint() asks" : ""));
    }
    const std::string launches = again.size() == 1 ? "1 launch runs" : std::to_string(again.size()) + " launches run";
    if (!outcome.limit)
      note(nullptr, launches + " again for gradients, as checkpoint() asks");
    else
      note(nullptr, "intermediate values take " + std::to_string(outcome.needs) + " bytes instead of " +
                        std::to_string(outcome.unbounded) + ", within the budget of " + std::to_string(outcome.limit) +
                        ": " + launches + " again, for a step of " + runtime::spellSeconds(plan.seconds) +
                        " instead of " + runtime::spellSeconds(outcome.before) + ", as predicted");
  }

  const MemoryBudget budget;
  const runtime::MachineModel *machine;
  Decisions *decisions;
  func::FuncOp main; // set during a run
  bool isElsewhere = false;
};
} // namespace

std::unique_ptr<Pass> createFitBudget(MemoryBudget budget, const runtime::MachineModel *machine, Decisions *decisions) {
  return std::make_unique<FitBudget>(budget, machine, decisions);
}

} // namespace tressel::passes
