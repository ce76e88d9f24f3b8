#include "passes/IssueOrder.h"
#include "passes/ListSchedule.h"
#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Control.h"
#include "ir/graph/Device.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/MachineModel.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>
#include <limits>

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_FITMEMORY
#include "passes/Passes.h.inc"

namespace {
constexpr size_t kNever = std::numeric_limits<size_t>::max();

int64_t slotBytes(Type type) { return dim::alignUp(bytesOf(type), 64); }

/// One device's memory over a step whose order is known: what has to leave, and when it comes back.
class Memory {
public:
  Memory(std::vector<Operation *> &order, unsigned device, int64_t limit, MachineCosts &costs)
      : order(order), device(device), limit(limit), costs(costs) {}

  /// Most bytes that are live at one op.
  int64_t peak() {
    note();
    std::vector<int64_t> change(order.size() + 1, 0);
    for (const auto &[value, life] : lives)
      change[life.first] += life.bytes, change[life.last() + 1] -= life.bytes;
    int64_t now = 0, most = 0;
    for (int64_t c : change)
      most = std::max(most, now += c);
    return most;
  }

  /// Makes room: a value that is not needed for longest leaves (Belady), and is copied back ahead of its next use.
  /// Fails at the op that does not fit though all else has left.
  LogicalResult fit(int64_t &numOut, int64_t &numBack);

private:
  struct Life {
    int64_t bytes = 0;
    size_t first = 0;
    std::vector<size_t> uses; ///< places in the order, ascending
    size_t last() const { return uses.empty() ? first : uses.back(); }
  };
  /// Values by base that lie in the device's memory.
  void note() {
    lives.clear();
    for (auto [i, op] : llvm::enumerate(order)) {
      for (Value result : op->getResults())
        if (homeIndexOf(result, costs) == device)
          lives[result] = {slotBytes(result.getType()), i, {}};
      for (Value operand : op->getOperands())
        if (auto at = lives.find(baseOf(operand));
            at != lives.end() && (at->second.uses.empty() || at->second.uses.back() != i))
          at->second.uses.push_back(i);
    }
  }

  std::vector<Operation *> &order;
  const unsigned device;
  const int64_t limit;
  MachineCosts &costs;
  llvm::MapVector<Value, Life> lives;
};

LogicalResult Memory::fit(int64_t &numOut, int64_t &numBack) {
  note();
  struct Here {
    Value value;  ///< as it is now: the first, or what was copied back
    Value onHost; ///< a copy there, if there is one
    int64_t bytes;
    size_t next;        ///< use, as an index into Life::uses
    size_t arrived = 0; ///< place in `made` from where on it is here
  };
  std::vector<Operation *> made;          // the new order
  std::vector<int64_t> liveAt;            // by place in it, while the op runs
  llvm::SmallDenseSet<Operation *> early; // copies to the host that were to come later
  llvm::MapVector<Value, Here> here;      // by the value as it was first
  llvm::DenseMap<Value, Here> away;
  int64_t held = 0;
  const runtime::DeviceRef ref = costs.devices()[device]->device;
  llvm::SmallDenseSet<Operation *> wasMade;
  auto append = [&](Operation *op) {
    made.push_back(op);
    wasMade.insert(op);
    liveAt.push_back(held);
  };
  auto nextUse = [&](Value first, const Here &entry) {
    const std::vector<size_t> &uses = lives[first].uses;
    return entry.next < uses.size() ? uses[entry.next] : kNever;
  };
  auto release = [&](Value first) {
    held -= here[first].bytes;
    here.erase(first);
  };
  /// Until `bytes` more fit beside what `op` reads.
  auto makeRoom = [&](int64_t bytes, const llvm::SmallDenseSet<Value> &needed, Operation *op) -> LogicalResult {
    while (held + bytes > limit) {
      Value furthest;
      size_t when = 0;
      for (auto &[first, entry] : here)
        if (size_t next = nextUse(first, entry); !needed.contains(first) && (!furthest || next > when)) {
          furthest = first;
          when = next;
        }
      if (!furthest) {
        int64_t all = bytes;
        for (Value first : needed)
          if (auto at = here.find(first); at != here.end())
            all += at->second.bytes;
        return op->emitError("needs ") << all << " bytes at once on " << costs.devices()[device]->name << ", which has "
                                       << limit << " for them";
      }
      Here entry = here[furthest];
      if (!entry.onHost) { // dirty: it is copied out
        OpBuilder b(op);
        b.setInsertionPointAfterValue(entry.value);
        for (Operation *user : entry.value.getUsers())
          if (graph::isTransfer(user) && graph::destinationOf(user) == graph::kHost) {
            entry.onHost = user->getResult(0);
            if (!wasMade.contains(user) && early.insert(user).second)
              append(user);
          }
        if (!entry.onHost) {
          entry.onHost = graph::createTransfer(b, entry.value.getLoc(), entry.value, graph::kHost);
          append(entry.onHost.getDefiningOp());
          ++numOut;
        }
      }
      release(furthest);
      away[furthest] = entry;
    }
    return success();
  };
  for (size_t i = 0; i < order.size(); ++i) {
    Operation *op = order[i];
    if (early.contains(op))
      continue;
    llvm::SmallDenseSet<Value> needed;
    llvm::SmallSetVector<Value, 4> reads;
    for (Value operand : op->getOperands())
      if (Value base = baseOf(operand); lives.contains(base) && reads.insert(base))
        needed.insert(base);
    // What it reads and is away comes back, as early as there is room.
    for (Value first : reads) {
      auto gone = away.find(first);
      if (gone == away.end())
        continue;
      Here entry = gone->second;
      away.erase(gone);
      if (failed(makeRoom(entry.bytes, needed, op)))
        return failure();
      OpBuilder b(op);
      b.setInsertionPointAfterValue(entry.onHost);
      Value back = graph::createTransfer(b, entry.onHost.getLoc(), entry.onHost, ref);
      ++numBack;
      size_t place = made.size();
      Operation *onHost = entry.onHost.getDefiningOp();
      while (place > 0 && liveAt[place - 1] + entry.bytes <= limit && made[place - 1] != onHost)
        --place;
      made.insert(made.begin() + static_cast<ptrdiff_t>(place), back.getDefiningOp());
      liveAt.insert(liveAt.begin() + static_cast<ptrdiff_t>(place), place ? liveAt[place - 1] : 0);
      for (size_t k = place; k < liveAt.size(); ++k)
        liveAt[k] += entry.bytes;
      held += entry.bytes;
      entry.value = back;
      here[first] = entry;
    }
    int64_t grows = 0;
    for (Value result : op->getResults())
      if (lives.contains(result))
        grows += lives[result].bytes;
    if (failed(makeRoom(grows, needed, op)))
      return failure();
    // It reads what is here now, through the views that it had.
    for (OpOperand &operand : op->getOpOperands()) {
      Value base = baseOf(operand.get());
      auto at = here.find(base);
      if (at == here.end() || at->second.value == base)
        continue;
      SmallVector<Operation *> chain;
      for (Value v = operand.get(); v != base; v = v.getDefiningOp()->getOperand(0))
        chain.push_back(v.getDefiningOp());
      Value now = at->second.value;
      OpBuilder b(op);
      for (Operation *view : llvm::reverse(chain)) {
        Operation *clone = b.clone(*view);
        clone->setOperand(0, now);
        now = clone->getResult(0);
      }
      operand.set(now);
    }
    held += grows;
    append(op);
    for (Value result : op->getResults())
      if (lives.contains(result)) {
        Here entry{result, {}, lives[result].bytes, 0};
        if (graph::isTransfer(op) && homeIndexOf(baseOf(op->getOperand(0)), costs) == 0)
          entry.onHost = op->getOperand(0); // clean
        here[result] = entry;
        if (lives[result].uses.empty())
          release(result);
      }
    for (Value first : reads)
      if (auto at = here.find(first); at != here.end()) {
        while (at->second.next < lives[first].uses.size() && lives[first].uses[at->second.next] <= i)
          ++at->second.next;
        if (nextUse(first, at->second) == kNever)
          release(first);
      }
  }
  order = std::move(made);
  return success();
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
    func::FuncOp main = *found;
    Block &block = main.getBody().front();
    MachineCosts costs(*machine);
    streamParameters(main, costs);
    SmallVector<int64_t> held(costs.devices().size(), 0);
    IssueOrder split(main, /*leastMemory=*/false);
    for (Operation *op : split.prepare)
      for (Value result : op->getResults())
        held[homeIndexOf(result, costs)] += slotBytes(result.getType());
    std::vector<Operation *> order;
    for (const Planned &p : listSchedule(
             split.step, costs, [&](Value v) { return isPageable(main, v); }, held))
      order.push_back(p.op);
    bool changed = false;
    for (unsigned d = 1; d < costs.devices().size(); ++d) {
      const runtime::DeviceModel &device = *costs.devices()[d];
      if (Memory(order, d, 0, costs).peak() + held[d] <= device.memoryBytes)
        continue;
      // Bytes between buffers are lost when these are placed.
      const auto limit = static_cast<int64_t>(static_cast<double>(device.memoryBytes - held[d]) * fill);
      int64_t out = 0, back = 0;
      if (failed(Memory(order, d, limit, costs).fit(out, back)))
        return signalPassFailure();
      changed = true;
      numOut += out, numBack += back;
      if (decisions)
        decisions->push_back({"fit-memory",
                              {"the program", "", 0},
                              device.name + " has not room for all at once: " + std::to_string(out) +
                                  " values are copied out and " + std::to_string(back) + " back"});
    }
    if (!changed)
      return;
    // The order is settled now, as the plan of the memory holds for it alone.
    Operation *terminator = block.getTerminator();
    llvm::SmallDenseSet<Operation *> moved;
    for (Operation *op : split.prepare)
      move(op, terminator, moved);
    for (Operation *op : order)
      move(op, terminator, moved);
    for (Value result : terminator->getOperands())
      if (Operation *def = result.getDefiningOp(); def && !isWork(def))
        move(def, terminator, moved);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isView(&op) && op.use_empty())
        op.erase();
    main->setAttr(kOrderedAttr, UnitAttr::get(&getContext()));
  }

private:
  /// To the end, with the views and constants that it reads before it.
  static void move(Operation *op, Operation *terminator, llvm::SmallDenseSet<Operation *> &moved) {
    if (!moved.insert(op).second)
      return;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && !isWork(def))
        move(def, terminator, moved);
    op->moveBefore(terminator);
  }

  /// Parameters that take the room that the step needs come in each call, when they are needed, and may leave like
  /// other values.
  void streamParameters(func::FuncOp main, const MachineCosts &costs) {
    SmallVector<int64_t> held(costs.devices().size(), 0), most(costs.devices().size(), 0);
    std::vector<std::vector<Operation *>> copies(costs.devices().size());
    IssueOrder split(main, /*leastMemory=*/false);
    for (Operation *op : split.prepare)
      for (Value result : op->getResults()) {
        const unsigned d = homeIndexOf(result, costs);
        held[d] += slotBytes(result.getType());
        if (graph::isTransfer(op) && d != 0)
          copies[d].push_back(op);
      }
    for (Operation *op : split.step) {
      const unsigned d = deviceIndexOf(op, costs);
      llvm::SmallSetVector<Value, 8> values;
      for (Value operand : op->getOperands())
        values.insert(baseOf(operand));
      values.insert(op->result_begin(), op->result_end());
      int64_t bytes = 0;
      for (Value value : values)
        bytes += slotBytes(value.getType());
      most[d] = std::max(most[d], bytes);
    }
    for (unsigned d = 1; d < costs.devices().size(); ++d) {
      const int64_t memory = costs.devices()[d]->memoryBytes;
      // Twice what the largest op needs, so that what comes next comes beside it.
      const auto room =
          static_cast<int64_t>(static_cast<double>(std::max(most[d], std::min(memory / 2, 2 * most[d]))) / fill);
      if (held[d] + room <= memory)
        continue;
      llvm::sort(copies[d], [](Operation *a, Operation *b) {
        const int64_t sizeA = bytesOf(a->getResult(0).getType()), sizeB = bytesOf(b->getResult(0).getType());
        return sizeA != sizeB ? sizeA > sizeB : a->isBeforeInBlock(b);
      });
      for (Operation *copy : copies[d]) {
        if (held[d] + room <= memory)
          break;
        copy->setAttr(kInStepAttr, UnitAttr::get(copy->getContext()));
        held[d] -= slotBytes(copy->getResult(0).getType());
      }
    }
  }

  const runtime::MachineModel *machine;
  Decisions *decisions;
};
} // namespace

std::unique_ptr<Pass> createFitMemory(const runtime::MachineModel *machine, Decisions *decisions) {
  return std::make_unique<FitMemory>(machine, decisions);
}

} // namespace tressel::passes
