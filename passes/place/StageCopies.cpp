#include "passes/schedule/ListSchedule.h"
#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "tressel/runtime/Explain.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_STAGECOPIES
#include "passes/Passes.h.inc"

namespace {
class StageCopies : public impl::StageCopiesBase<StageCopies> {
public:
  StageCopies(const runtime::MachineModel *machine, Decisions *decisions) : machine(machine), decisions(decisions) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> found = findMain(getOperation());
    if (failed(found))
      return signalPassFailure();
    if (!*found || !machine || machine->devices.size() < 2)
      return;
    func::FuncOp main = *found;
    MachineCosts costs(*machine);
    const std::vector<int64_t> in = pageable(main, costs, /*in=*/true), out = pageable(main, costs, /*in=*/false);
    constexpr size_t kMany = 20'000; // ops: with more, a plan takes too long
    if ((in.empty() && out.empty()) || main.getBody().front().getOperations().size() > kMany)
      return;
    const double before = lengthOf(planOf(main, costs));
    // Staging costs time of host threads that could compute, so staging all copies is not always best.
    double best = before * (1 - leastGain);
    func::FuncOp chosen;
    size_t count = 0;
    for (auto [stageIn, stageOut] : {std::pair(true, true), std::pair(true, false), std::pair(false, true)}) {
      if ((stageIn && in.empty()) || (stageOut && out.empty()))
        continue;
      func::FuncOp tried = main.clone();
      stage(tried, stageIn ? in : std::vector<int64_t>(), stageOut ? out : std::vector<int64_t>());
      getOperation().push_back(tried);
      const double length = lengthOf(planOf(tried, costs));
      tried->remove();
      if (length >= best) {
        tried.erase();
        continue;
      }
      best = length;
      if (chosen)
        chosen.erase();
      chosen = tried;
      count = (stageIn ? in.size() : 0) + (stageOut ? out.size() : 0);
    }
    if (!chosen)
      return;
    numStaged += count;
    main.erase();
    getOperation().push_back(chosen);
    if (decisions)
      decisions->push_back(
          {"stage-copies",
           {"the program", "", 0},
           std::to_string(count) +
               " copies from or to memory that is not pinned go by way of pinned memory: the step takes " +
               runtime::spellSeconds(best) + ", not " + runtime::spellSeconds(before)});
  }

private:
  static std::vector<Planned> planOf(func::FuncOp main, MachineCosts &costs) {
    return planStep(main, IssueOrder(main, /*leastMemory=*/false), costs, Effort::Quick);
  }

  /// Positions in the block of the step's transfers from or to pageable memory that are faster by way of pinned memory.
  static std::vector<int64_t> pageable(func::FuncOp main, const MachineCosts &costs, bool in) {
    llvm::DenseMap<Operation *, int64_t> placeOf;
    for (auto [i, op] : llvm::enumerate(main.getBody().front()))
      placeOf[&op] = static_cast<int64_t>(i);
    std::vector<int64_t> places;
    for (Operation *op : IssueOrder(main, /*leastMemory=*/false).step) {
      if (!graph::isTransfer(op))
        continue;
      const Value from = op->getOperand(0), to = op->getResult(0);
      const unsigned home = homeIndexOf(baseOf(from), costs), device = deviceIndexOf(op, costs);
      if ((home == 0) != in || (home != 0 && device != 0) || from != baseOf(from) || !isPageable(main, in ? from : to))
        continue;
      const int64_t bytes = bytesOf(to.getType());
      const auto direct = costs.transfer(home, device, bytes, true),
                 pinned = costs.transfer(home, device, bytes, false);
      if (direct && costs.copySeconds(0, bytes) + pinned->seconds < direct->seconds)
        places.push_back(placeOf[op]);
    }
    return places;
  }

  static void stage(func::FuncOp main, ArrayRef<int64_t> in, ArrayRef<int64_t> out) {
    std::vector<Operation *> ops;
    for (Operation &op : main.getBody().front())
      ops.push_back(&op);
    OpBuilder b(main.getContext());
    llvm::DenseMap<Value, Value> staged; // one staged copy for all readers
    for (int64_t place : in) {
      Operation *transfer = ops[static_cast<size_t>(place)];
      Value &copy = staged[transfer->getOperand(0)];
      if (!copy) {
        b.setInsertionPointAfterValue(transfer->getOperand(0));
        copy = graph::createTransfer(b, transfer->getLoc(), transfer->getOperand(0), graph::kHost);
      }
      transfer->setOperand(0, copy);
    }
    for (int64_t place : out) {
      Operation *transfer = ops[static_cast<size_t>(place)];
      b.setInsertionPointAfter(transfer);
      Value copy = graph::createTransfer(b, transfer->getLoc(), transfer->getResult(0), graph::kHost);
      transfer->getResult(0).replaceUsesWithIf(copy, [](OpOperand &use) {
        return use.getOwner()->hasTrait<OpTrait::IsTerminator>(); // other readers on the host read the pinned copy
      });
    }
  }

  const runtime::MachineModel *machine;
  Decisions *decisions;
};
} // namespace

std::unique_ptr<Pass> createStageCopies(const runtime::MachineModel *machine, Decisions *decisions) {
  return std::make_unique<StageCopies>(machine, decisions);
}

} // namespace tressel::passes
