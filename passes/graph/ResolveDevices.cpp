#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Segment.h"
#include "ir/graph/Stage.h"
#include "tressel/runtime/MachineModel.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_RESOLVEDEVICES
#include "passes/Passes.h.inc"

namespace {
using runtime::DeviceRef;

class ResolveDevices : public impl::ResolveDevicesBase<ResolveDevices> {
public:
  ResolveDevices(const runtime::MachineModel *machine, std::vector<DeviceRef> devices)
      : machine(machine), devices(std::move(devices)) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!*main)
      return;
    follows.clear();
    moves.clear();
    if (failed(checkNames(*main)) || failed(checkHomes(*main)) || failed(resolve(main->getBody().front())))
      return signalPassFailure();
    followResults(*main);
    for (Operation *move : moves) {
      move->getResult(0).replaceAllUsesWith(move->getOperand(0));
      move->erase();
    }
    if (!machine || machine->devices.size() < 2) // only one device: annotations have no meaning
      main->walk([](Operation *op) { op->removeAttr(graph::kDeviceAttr); });
  }

private:
  /// Rejects annotations of unknown names, which no pass would obey.
  static LogicalResult checkNames(func::FuncOp main) {
    auto isMisspelt = [](NamedAttribute attribute, ArrayRef<StringRef> known) {
      return attribute.getName().getValue().starts_with("tressel.") && !llvm::is_contained(known, attribute.getName().getValue());
    };
    const StringRef ofOps[] = {graph::kDeviceAttr, graph::kSegmentAttr, graph::kKeptAttr, graph::kStageAttr,
                               graph::kBackwardAttr};
    const StringRef ofValues[] = {graph::kNameAttr, graph::kStateAttr,    graph::kPinnedAttr,
                                  graph::kHomeAttr, graph::kShardingAttr, graph::kStageAttr};
    auto checkValues = [&](unsigned count, auto attributesOf, StringRef what) -> LogicalResult {
      for (unsigned i = 0; i < count; ++i)
        for (NamedAttribute attribute : attributesOf(i))
          if (isMisspelt(attribute, ofValues))
            return main.emitError() << what << " " << i << " has the attribute " << attribute.getName()
                                    << ", which means nothing there; known are " << llvm::join(ArrayRef(ofValues), ", ");
      return success();
    };
    if (failed(checkValues(main.getNumArguments(), [&](unsigned i) { return mlir::function_interface_impl::getArgAttrs(main, i); }, "argument")) ||
        failed(checkValues(main.getNumResults(), [&](unsigned i) { return mlir::function_interface_impl::getResultAttrs(main, i); }, "result")))
      return failure();
    WalkResult walked = main.getBody().walk([&](Operation *op) {
      for (NamedAttribute attribute : op->getDiscardableAttrs())
        if (isMisspelt(attribute, ofOps)) {
          op->emitError("has the attribute ") << attribute.getName() << ", which means nothing on an op; known are "
                                              << llvm::join(ArrayRef(ofOps), ", ");
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  /// Checks that the machine has the homes of arguments and results. With a single device no home is needed.
  LogicalResult checkHomes(func::FuncOp main) const {
    auto check = [&](Attribute home, const char *what, unsigned i, bool mayFollow) -> LogicalResult {
      if (!home)
        return success();
      auto name = dyn_cast<StringAttr>(home);
      if (name && ((mayFollow && name == graph::kComputed) || (name == graph::kRanks && main->hasAttr(graph::kMeshAttr))))
        return success();
      const std::optional<DeviceRef> device = name ? graph::parseDevice(name) : std::nullopt;
      if (!device)
        return main.emitError() << what << " " << i << " is at home on " << home
                                << "; devices are \"cpu\", \"gpu0\", \"gpu1\" and so on";
      if (*device == graph::kHost || (machine && machine->devices.size() > 1 && machine->find(*device)))
        return success();
      return main.emitError() << what << " " << i << " is at home on " << name.getValue()
                              << ", which the machine does not have";
    };
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (failed(check(main.getArgAttr(i, graph::kHomeAttr), "argument", i,
                       main.getArgAttr(i, graph::kStateAttr) != nullptr)))
        return failure();
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      if (failed(check(main.getResultAttr(i, graph::kHomeAttr), "result", i, true)))
        return failure();
    return success();
  }

  /// A result that the program moves to a device as its last op gets that device as its home. Homes of states are left
  /// to place-clusters.
  void followResults(func::FuncOp main) {
    if (!machine || machine->devices.size() < 2)
      for (unsigned i = 0; i < main.getNumArguments(); ++i)
        if (main.getArgAttr(i, graph::kHomeAttr) == StringAttr::get(&getContext(), graph::kComputed))
          main.removeArgAttr(i, graph::kHomeAttr);
    for (OpOperand &result : main.getBody().front().getTerminator()->getOpOperands()) {
      const unsigned i = result.getOperandNumber();
      if (graph::homeOfResult(main, i))
        continue;
      Operation *def = result.get().getDefiningOp();
      if (def && graph::isTransfer(def) && !main.getResultAttr(i, graph::kStateAttr))
        main.setResultAttr(i, graph::kHomeAttr, def->getAttr("device"));
      else if (!machine || machine->devices.size() < 2)
        main.removeResultAttr(i, StringAttr::get(&getContext(), graph::kHomeAttr));
    }
  }

  /// Determines the device of each op: its annotation, else the device to which its operands were moved.
  LogicalResult resolve(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (graph::isTransfer(&op)) {
        Attribute to = op.getAttr("device");
        // A transfer whose result only the caller reads may lead to any device: nothing is computed there.
        const bool isLast =
            llvm::all_of(op.getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
        if (failed(check(&op, to, isLast)) || failed(checkTransfer(&op)))
          return failure();
        follows[op.getResult(0)] = to;
        moves.push_back(&op);
        continue;
      }
      if (Attribute named = op.getAttr(graph::kDeviceAttr)) {
        if (failed(check(&op, named)))
          return failure();
      } else if (Attribute device = followed(&op)) {
        if (isView(&op))
          follows[op.getResult(0)] = device;
        else if (!op.hasTrait<OpTrait::ConstantLike>())
          annotate(&op, device);
      }
      // An op with bodies has no device by itself. If the program may not use the host, it is placed on the first
      // device that it may use.
      if (isa<graph::ControlOpInterface>(op) && !op.hasAttr(graph::kDeviceAttr) && !mayUse(graph::kHost) &&
          !EffectFacts().hasEffects(&op))
        annotate(&op, StringAttr::get(&getContext(), runtime::nameOf(devices.front())));
      if (isa<graph::ControlOpInterface>(op) && failed(resolveBodies(&op)))
        return failure();
    }
    return success();
  }

  static bool isView(Operation *op) {
    const op::OpInfo *info = graph::infoOf(op);
    return info && info->isView;
  }

  void annotate(Operation *op, Attribute device) {
    op->setAttr(graph::kDeviceAttr, device);
    for (Value result : op->getResults())
      follows[result] = device;
  }

  /// The device to which operands were moved, if all that were moved agree.
  Attribute followed(Operation *op) const {
    Attribute found;
    for (Value operand : op->getOperands())
      if (Attribute device = follows.lookup(operand)) {
        if (found && found != device)
          return {};
        found = device;
      }
    return found;
  }

  /// The op's name, and its name in the C++ frontend if that differs.
  static std::string spellControl(Operation *control) {
    auto scan = dyn_cast<graph::ScanOp>(control);
    const bool isForLoop = scan && scan.getSlices().empty() && scan->getNumResults() == scan.getCarried().size();
    return "'" + control->getName().stripDialect().str() + "'" + (isForLoop ? " (for_loop)" : "");
  }

  /// All ops of a body are computed on the device of the op with the body.
  LogicalResult resolveBodies(Operation *control) {
    Attribute device = control->getAttr(graph::kDeviceAttr);
    const Attribute here = device ? device : StringAttr::get(&getContext(), "cpu");
    WalkResult walked = control->walk([&](Operation *inner) {
      if (inner == control || inner->hasTrait<OpTrait::IsTerminator>() || inner->hasTrait<OpTrait::ConstantLike>())
        return WalkResult::advance();
      const bool moves = graph::isTransfer(inner);
      if (moves && failed(checkTransfer(inner)))
        return WalkResult::interrupt();
      Attribute wanted = inner->getAttr(moves ? StringRef("device") : StringRef(graph::kDeviceAttr));
      if (wanted && wanted != here) {
        const std::string what = spellControl(control);
        inner->emitError("is to be ") << (moves ? "moved to " : "computed on ") << cast<StringAttr>(wanted).getValue()
                                      << ", but stands in a body of " << what << ", which is computed as a whole on "
                                      << cast<StringAttr>(here).getValue() << "; name the device around the whole "
                                      << what;
        return WalkResult::interrupt();
      }
      if (moves)
        this->moves.push_back(inner);
      else if (device)
        inner->setAttr(graph::kDeviceAttr, device);
      return WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }

  bool mayUse(DeviceRef device) const { return devices.empty() || llvm::is_contained(devices, device); }

  /// A transfer is computed on no device: an annotation on it may only repeat its destination.
  LogicalResult checkTransfer(Operation *op) {
    Attribute named = op->getAttr(graph::kDeviceAttr), to = op->getAttr("device");
    if (!named || named == to)
      return success();
    return op->emitError("moves its operand to ")
           << to << ", but is annotated with " << named << "; leave the annotation " << graph::kDeviceAttr << " out";
  }

  LogicalResult check(Operation *op, Attribute named, bool anywhere = false) {
    auto name = dyn_cast_if_present<StringAttr>(named);
    const std::optional<DeviceRef> device = name ? graph::parseDevice(name) : std::nullopt;
    if (!device)
      return op->emitError("names the device ") << named << "; devices are \"cpu\", \"gpu0\", \"gpu1\" and so on";
    const op::OpInfo *info = graph::infoOf(op);
    const bool hasEffects = info && info->hasEffects;
    if (!anywhere && !mayUse(*device) && !(*device == graph::kHost && hasEffects)) {
      InFlightDiagnostic error =
          op->emitError(graph::isTransfer(op) ? "moves its operand to " : "is to be computed on ")
          << name.getValue() << ", but the program may only use ";
      for (auto [i, each] : llvm::enumerate(devices))
        error << (i ? ", " : "") << runtime::nameOf(each);
      return error;
    }
    if (*device == graph::kHost)
      return success();
    if (hasEffects)
      return op->emitError("is to be computed on ")
             << name.getValue() << ", but does more than compute its results, and that only the host does";
    if (device->kind == runtime::DeviceKind::Cpu)
      return op->emitError("is to be computed on ")
             << name.getValue() << ", but a program has one host, cpu; the others are of other processes";
    if (machine && machine->find(*device))
      return success();
    InFlightDiagnostic error = op->emitError("is to be computed on ") << name.getValue() << ", which ";
    if (!machine)
      return error
             << "this machine does not have; choose one that has it (--device sim:2gpu-pcie3, say, or use_machine)";
    error << "the machine '" << machine->name << "' does not have; it has ";
    for (auto [i, each] : llvm::enumerate(machine->devices))
      error << (i ? ", " : "") << each.name;
    return error;
  }

  const runtime::MachineModel *machine;
  std::vector<DeviceRef> devices;           ///< devices that the program may use; empty: all
  llvm::DenseMap<Value, Attribute> follows; ///< device of values that were moved, and of values computed from them
  SmallVector<Operation *> moves;
};
} // namespace

std::unique_ptr<Pass> createResolveDevices(const runtime::MachineModel *machine, std::vector<DeviceRef> devices) {
  return std::make_unique<ResolveDevices>(machine, std::move(devices));
}

} // namespace tressel::passes
