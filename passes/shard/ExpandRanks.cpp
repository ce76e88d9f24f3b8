#include "passes/Passes.h"
#include "passes/Util.h"
#include "passes/shard/Parts.h"

#include "ir/graph/Graph.h"
#include "ir/op/Infer.h"
#include "mlir/IR/IRMapping.h"
#include "tressel/runtime/Dim.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_EXPANDRANKS
#include "passes/Passes.h.inc"

namespace {
class ExpandRanks : public impl::ExpandRanksBase<ExpandRanks> {
public:
  ExpandRanks(const runtime::MachineModel *machine, std::vector<runtime::DeviceRef> devices, bool onlyUneven)
      : machine(machine), devices(std::move(devices)), onlyUneven(onlyUneven) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!*main)
      return;
    FailureOr<graph::Mesh> found = graph::meshOf(*main);
    if (failed(found))
      return signalPassFailure();
    if (found->empty() || (onlyUneven && ((*main)->hasAttr(graph::kRankProgramAttr) || !isUneven(*main, *found))))
      return;
    if ((*main)->hasAttr(graph::kRankProgramAttr))
      return settleRank(*main);
    mesh = *found;
    perRank.clear();
    places = acceleratorsOf(machine, devices);
    if (places.size() < static_cast<size_t>(mesh.numRanks())) {
      main->emitError("is for a mesh of ") << mesh.numRanks() << " accelerators, and there are " << places.size();
      return signalPassFailure();
    }
    Block &block = main->getBody().front();
    takeArguments(*main);
    const auto ops = llvm::map_to_vector(block, [](Operation &op) { return &op; });
    for (Operation *op : ops)
      if (failed(expand(op)))
        return signalPassFailure();
    for (Operation *op : llvm::reverse(ops))
      if (replaced.contains(op))
        op->erase();
    replaced.clear();
    for (unsigned i : held) // the last first
      (void)main->eraseArgument(i);
    held.clear();
    eraseUnused(block); // a rank takes one of many parts
    (*main)->removeAttr(graph::kMeshAttr);
    (*main)->removeAttr(graph::kCutAttr);
  }

  /// The program of one rank: on the first accelerator. Its mesh stays, for its collectives.
  void settleRank(func::FuncOp main) {
    const std::vector<runtime::DeviceRef> all = acceleratorsOf(machine, devices);
    if (all.empty()) {
      main.emitError("is the program of one rank, which runs on an accelerator, and there is none");
      return signalPassFailure();
    }
    const runtime::DeviceRef own = all.front();
    const auto name = StringAttr::get(&getContext(), runtime::nameOf(own)),
               home = StringAttr::get(&getContext(), graph::kHomeAttr),
               onHost = StringAttr::get(&getContext(), graph::kOnHostAttr),
               sharding = StringAttr::get(&getContext(), graph::kShardingAttr);
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      if (main.removeArgAttr(i, onHost))
        main.removeArgAttr(i, home);
      else if (graph::isArgumentOnRanks(main, i))
        main.setArgAttr(i, home, name);
      main.removeArgAttr(i, sharding);
    }
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      if (main.removeResultAttr(i, onHost))
        main.removeResultAttr(i, home);
      else if (graph::isResultOnRanks(main, i))
        main.setResultAttr(i, home, name);
      main.removeResultAttr(i, sharding);
    }
    main.walk([&](Operation *op) {
      if (graph::isOnRanks(op))
        graph::setDevice(op, own);
    });
    main->removeAttr(graph::kCutAttr);
  }

  /// The attributes of a rank's part: it lies on the rank's accelerator, and has the value's name with the rank's number.
  DictionaryAttr ofRank(ArrayRef<NamedAttribute> attributes, int64_t rank) {
    SmallVector<NamedAttribute> own;
    for (NamedAttribute attribute : attributes) {
      const StringRef name = attribute.getName();
      if (name == graph::kHomeAttr)
        attribute.setValue(StringAttr::get(&getContext(), runtime::nameOf(places[static_cast<size_t>(rank)])));
      else if (name == graph::kNameAttr || name == graph::kStateAttr)
        attribute.setValue(StringAttr::get(&getContext(), graph::nameOfPart(cast<StringAttr>(attribute.getValue()).getValue(), rank)));
      own.push_back(attribute);
    }
    return DictionaryAttr::get(&getContext(), own);
  }

  void takeArguments(func::FuncOp main) {
    const auto ranks = static_cast<unsigned>(mesh.numRanks());
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      if (!graph::isArgumentOnRanks(main, i))
        continue;
      const BlockArgument argument = main.getArgument(i);
      for (unsigned rank = 0; rank < ranks; ++rank)
        (void)main.insertArgument(i + 1 + rank, argument.getType(), ofRank(mlir::function_interface_impl::getArgAttrs(main, i), rank), argument.getLoc());
      for (unsigned rank = 0; rank < ranks; ++rank)
        perRank[argument].push_back(main.getArgument(i + 1 + rank));
      i += ranks;
    }
  }
  void giveResults(func::FuncOp main, Operation *end) {
    const auto ranks = static_cast<unsigned>(mesh.numRanks());
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      if (!graph::isResultOnRanks(main, i))
        continue;
      const Value value = end->getOperand(i);
      for (unsigned rank = 0; rank < ranks; ++rank) {
        (void)main.insertResult(i + 1 + rank, on(rank, value).getType(), ofRank(mlir::function_interface_impl::getResultAttrs(main, i), rank));
        end->insertOperands(i + 1 + rank, on(rank, value));
      }
      (void)main.eraseResult(i);
      end->eraseOperand(i);
      i += ranks - 1;
    }
  }

private:
  /// Whether ranks compute different sizes, or know their place.
  static bool isUneven(func::FuncOp main, const graph::Mesh &mesh) {
    const std::vector<Size> symbols = graph::symbolsOf(main);
    return llvm::any_of(mesh.axes, [&](const runtime::MeshAxis &axis) {
      return llvm::is_contained(symbols, runtime::rankSymbol(axis));
    });
  }

  Value on(int64_t rank, Value value) const {
    auto found = perRank.find(value);
    return found == perRank.end() ? value : found->second[static_cast<size_t>(rank)];
  }

  LogicalResult expand(Operation *op) {
    const int64_t ranks = mesh.numRanks();
    if (auto deal = dyn_cast<graph::DealOp>(op)) {
      FailureOr<SmallVector<unsigned>> axes = graph::axesOf(op, deal.getOver(), mesh);
      const int64_t along = failed(axes) ? 0 : mesh.numAlong(*axes),
                    given = static_cast<int64_t>(deal.getValues().size());
      if (failed(axes) || (given != 1 && given != along))
        return failed(axes) ? failure()
                            : op->emitOpError("(rule 2) has ") << given << " operands for " << along << " ranks";
      for (int64_t rank = 0; rank < ranks; ++rank)
        perRank[deal.getResult()].push_back(
            on(rank, deal.getValues()[given == 1 ? 0 : static_cast<unsigned>(mesh.placeOf(rank, *axes))]));
      replaced.insert(op);
      return success();
    }
    if (auto collect = dyn_cast<graph::CollectOp>(op)) {
      FailureOr<SmallVector<unsigned>> axes = graph::axesOf(op, collect.getOver(), mesh);
      if (failed(axes))
        return failure();
      if (static_cast<int64_t>(collect.getNumResults()) != mesh.numAlong(*axes))
        return op->emitOpError("(rule 2) has ")
               << collect.getNumResults() << " results for " << mesh.numAlong(*axes) << " ranks";
      for (auto [place, result] : llvm::enumerate(collect.getResults()))
        if (!collect.getOnRanks())
          result.replaceAllUsesWith(on(mesh.rankAt(static_cast<int64_t>(place), *axes, 0), collect.getValue()));
        else
          for (int64_t rank = 0; rank < ranks; ++rank)
            perRank[result].push_back(on(mesh.rankAt(static_cast<int64_t>(place), *axes, rank), collect.getValue()));
      replaced.insert(op);
      return success();
    }
    if (isa<graph::AllReduceOp>(op))
      return op->emitOpError("is to be lowered before ranks are expanded");
    const bool isRanked = graph::isOnRanks(op) ||
                          llvm::any_of(op->getOperands(), [&](Value operand) { return perRank.contains(operand); });
    if (!isRanked)
      return success();
    if (op->hasTrait<OpTrait::IsTerminator>()) {
      auto main = cast<func::FuncOp>(op->getParentOp());
      giveResults(main, op);
      if (llvm::any_of(op->getOperands(), [&](Value operand) { return perRank.contains(operand); }))
        return op->emitOpError("returns a value of the ranks, which the program does not have");
      for (unsigned i = main.getNumArguments(); i-- > 0;)
        if (graph::isArgumentOnRanks(main, i))
          held.push_back(i);
      return success();
    }
    for (int64_t rank = 0; rank < ranks; ++rank) {
      SmallVector<Value> operands =
          llvm::map_to_vector(op->getOperands(), [&](Value operand) { return on(rank, operand); });
      Operation *made = copyFor(op, operands, rank);
      if (!made)
        return failure();
      if (graph::isOnRanks(op))
        graph::setDevice(made, places[static_cast<size_t>(rank)]);
      for (auto [result, own] : llvm::zip_equal(op->getResults(), made->getResults()))
        perRank[result].push_back(own);
      ++numExpanded;
    }
    replaced.insert(op);
    return success();
  }

  /// The op with the numbers of one rank.
  Operation *copyFor(Operation *op, ArrayRef<Value> operands, int64_t rank) {
    OpBuilder b(op);
    const op::OpInfo *info = graph::infoOf(op);
    if (!info || graph::symbolsOf(op).empty()) {
      Operation *made = b.clone(*op);
      made->setOperands(operands);
      return made;
    }
    const dim::Values coordinates = graph::coordinatesOf(rank, mesh);
    op::Attrs attrs = graph::attrsOf(op, *info);
    for (op::Attr &attr : attrs)
      if (Size *size = std::get_if<Size>(&attr))
        *size = dim::substitute(*size, coordinates);
      else if (auto *sizes = std::get_if<op::Sizes>(&attr))
        for (Size &size : *sizes)
          size = dim::substitute(size, coordinates);
    const op::Inferred inferred = op::inferTypes(*info, tableTypes(ValueRange(operands).getTypes()), attrs);
    if (!inferred) {
      op->emitError("cannot be computed on rank ") << rank << " of the mesh: " << inferred.error;
      return nullptr;
    }
    Operation *made = graph::createOp(b, op->getLoc(), *info, operands, attrs);
    graph::copyAnnotations(op, made);
    return made;
  }

  const runtime::MachineModel *machine;
  std::vector<runtime::DeviceRef> devices, places;
  bool onlyUneven;
  graph::Mesh mesh; ///< of one run
  llvm::DenseMap<Value, SmallVector<Value>> perRank;
  llvm::DenseSet<Operation *> replaced;
  SmallVector<unsigned> held; ///< arguments of which each rank has its own now
};
} // namespace

std::unique_ptr<Pass> createExpandRanks(const runtime::MachineModel *machine, std::vector<runtime::DeviceRef> devices,
                                        bool onlyUneven) {
  return std::make_unique<ExpandRanks>(machine, std::move(devices), onlyUneven);
}

} // namespace tressel::passes
