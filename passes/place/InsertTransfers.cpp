#include "passes/schedule/IssueOrder.h"
#include "passes/place/MachineCosts.h"
#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_INSERTTRANSFERS
#include "passes/Passes.h.inc"

namespace {
using runtime::DeviceRef;

class InsertTransfers : public impl::InsertTransfersBase<InsertTransfers> {
public:
  explicit InsertTransfers(const runtime::MachineModel *machine) : machine(machine) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> found = findMain(getOperation());
    if (failed(found))
      return signalPassFailure();
    if (!*found || !machine || machine->devices.size() < 2)
      return;
    main = *found;
    costs = std::make_shared<MachineCosts>(*machine);
    settleResults();
    copies.clear();
    views.clear();
    read.clear();
    Block &block = found->getBody().front();
    for (Operation &op : block)
      if (isa<graph::ControlOpInterface>(op) && deviceOf(&op) != graph::kHost)
        bringConstants(&op);
    for (Operation &op : block)
      if (isWork(&op) || op.hasTrait<OpTrait::IsTerminator>())
        for (OpOperand &operand : op.getOpOperands())
          read[{baseOf(operand.get()), nameOf(placeOf(operand))}].insert(operand.get());
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (graph::isTransfer(&op) || (!isWork(&op) && !op.hasTrait<OpTrait::IsTerminator>()))
        continue;
      for (OpOperand &operand : op.getOpOperands()) {
        Value there = on(operand.get(), placeOf(operand), &op);
        if (!there)
          return signalPassFailure();
        operand.set(there);
      }
    }
    // Erases views without users: their readers now read views of a copy.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isView(&op) && op.use_empty())
        op.erase();
  }

private:
  static DeviceRef deviceOf(Operation *op) {
    if (graph::isTransfer(op))
      return graph::destinationOf(op);
    return graph::deviceOf(op).value_or(graph::kHost);
  }
  /// The device that has a value: the host for constants, its home for an argument.
  DeviceRef homeOf(Value base) {
    if (Operation *op = base.getDefiningOp())
      return isWork(op) ? deviceOf(op) : graph::kHost;
    return graph::homeOfArgument(main, cast<BlockArgument>(base).getArgNumber());
  }
  /// The device on which an operand is needed.
  DeviceRef placeOf(OpOperand &operand) {
    Operation *op = operand.getOwner();
    return op->hasTrait<OpTrait::IsTerminator>() ? *graph::homeOfResult(main, operand.getOperandNumber())
                                                 : deviceOf(op);
  }
  /// Resolves results that stay where they are computed, as devices are known now.
  void settleResults() {
    for (OpOperand &result : main.getBody().front().getTerminator()->getOpOperands()) {
      const unsigned i = result.getOperandNumber();
      if (graph::homeOfResult(main, i))
        continue;
      const DeviceRef home = homeOf(baseOf(result.get()));
      if (home == graph::kHost)
        main.removeResultAttr(i, StringAttr::get(&getContext(), graph::kHomeAttr));
      else
        main.setResultAttr(i, graph::kHomeAttr, nameOf(home));
    }
  }

  /// The value in the memory of `device`, for `user`; null if there is no route.
  Value on(Value value, DeviceRef device, Operation *user) {
    Value base = baseOf(value);
    if (homeOf(base) == device)
      return value;
    if (value == base || isReadInParts(base, device))
      return copyOf(value, device, user);
    Value &there = views[{value, nameOf(device)}];
    if (there)
      return there;
    Operation *view = value.getDefiningOp();
    Value operand = on(view->getOperand(0), device, user);
    if (!operand)
      return {};
    OpBuilder b(view->getContext());
    b.setInsertionPointAfterValue(operand);
    Operation *clone = b.clone(*view);
    clone->setOperand(0, operand);
    return views[{value, nameOf(device)}] = clone->getResult(0);
  }

  /// Whether to copy the views instead of the whole: all readers on the device read views that together have fewer
  /// bytes (some of the rows), or the views cover all and are so large that separate copies take hardly longer, so that
  /// the reader of the first part need not wait for the last.
  bool isReadInParts(Value base, DeviceRef device) {
    int64_t bytes = 0, count = 0;
    for (Value value : read[{base, nameOf(device)}]) {
      bytes += bytesOf(value.getType());
      ++count;
    }
    const int64_t all = bytesOf(base.getType());
    if (bytes != all || count < 2)
      return bytes < all;
    constexpr double kHardlyLonger = 1.05;
    const auto from = costs->indexOf(homeOf(base)), to = costs->indexOf(device);
    const auto one = from && to ? costs->transfer(*from, *to, all, false) : std::nullopt;
    return one && one->seconds + static_cast<double>(count - 1) * one->latency <= kHardlyLonger * one->seconds;
  }

  /// The copy on `device`, shared by all its readers there.
  Value copyOf(Value value, DeviceRef device, Operation *user) {
    if (Value there = copies.lookup({value, nameOf(device)}))
      return there;
    const DeviceRef home = homeOf(baseOf(value));
    Value from = value;
    if (!machine->route(home, device)) {
      if (home == graph::kHost || device == graph::kHost || !machine->route(home, graph::kHost) ||
          !machine->route(graph::kHost, device)) {
        user->emitError("needs a value from ")
            << runtime::nameOf(home) << " on " << runtime::nameOf(device) << ", but the machine '" << machine->name
            << "' has no route there, nor one through the host";
        return {};
      }
      from = copyOf(value, graph::kHost, user);
    }
    OpBuilder b(value.getContext());
    b.setInsertionPointAfterValue(from);
    ++numTransfers;
    return copies[{value, nameOf(device)}] = graph::createTransfer(b, value.getLoc(), from, device);
  }
  /// A key for devices: equal devices have equal texts.
  StringAttr nameOf(DeviceRef device) { return StringAttr::get(&getContext(), runtime::nameOf(device)); }

  /// Constants in bodies lie on the host too: they become invariants of the op with the body.
  static void bringConstants(Operation *control) {
    for (Region &region : control->getRegions()) {
      for (Operation &op : llvm::make_early_inc_range(region.front()))
        if (isa<graph::ControlOpInterface>(op))
          bringConstants(&op); // into this body
      for (Operation &op : llvm::make_early_inc_range(region.front()))
        if (op.hasTrait<OpTrait::ConstantLike>() && !op.use_empty())
          op.moveBefore(control);
    }
    graph::captureInvariants(cast<graph::ControlOpInterface>(control));
  }

  const runtime::MachineModel *machine;
  func::FuncOp main;                   ///< set during a run
  std::shared_ptr<MachineCosts> costs; ///< set during a run
  llvm::DenseMap<std::pair<Value, Attribute>, Value> copies, views;
  llvm::DenseMap<std::pair<Value, Attribute>, llvm::SetVector<Value>> read; ///< by base and device
};
} // namespace

std::unique_ptr<Pass> createInsertTransfers(const runtime::MachineModel *machine) {
  return std::make_unique<InsertTransfers>(machine);
}

} // namespace tressel::passes
