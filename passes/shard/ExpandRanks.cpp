#include "passes/Passes.h"
#include "passes/Util.h"
#include "passes/shard/Parts.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Stage.h"
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
    carried.clear();
    places = acceleratorsOf(machine, devices);
    if (places.size() < static_cast<size_t>(mesh.numAccelerators())) {
      main->emitError("is for a mesh of ")
          << mesh.numAccelerators() << " accelerators, and there are " << places.size();
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
    for (unsigned i : held) // the last first, so that indices stay valid
      (void)main->eraseArgument(i);
    held.clear();
    eraseUnused(block); // a rank reads only some of the parts
    (*main)->removeAttr(graph::kMeshAttr);
    (*main)->removeAttr(graph::kCutAttr);
    if (mesh.time) // build-schedule chooses the order of micro-batches
      (*main)->setAttr(graph::kMicroBatchOrderAttr, orderOf((*main)->removeAttr(graph::kPipelineAttr)));
  }
  StringAttr orderOf(Attribute pipeline) {
    const auto order = cast<DictionaryAttr>(pipeline).getAs<StringAttr>("order");
    return order ? order : StringAttr::get(&getContext(), "");
  }

  /// Makes the program of one rank, on the first accelerator. Keeps the mesh, which its collectives refer to.
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

  /// The attributes of an argument or result for one accelerator: its home there, and its name with a number.
  DictionaryAttr ofPlace(ArrayRef<NamedAttribute> attributes, int64_t accelerator, int64_t number) {
    SmallVector<NamedAttribute> own;
    for (NamedAttribute attribute : attributes) {
      const StringRef name = attribute.getName();
      if (name == graph::kHomeAttr)
        attribute.setValue(StringAttr::get(&getContext(), runtime::nameOf(places[static_cast<size_t>(accelerator)])));
      else if (name == graph::kNameAttr || name == graph::kStateAttr)
        attribute.setValue(StringAttr::get(
            &getContext(), graph::nameOfPart(cast<StringAttr>(attribute.getValue()).getValue(), number)));
      own.push_back(attribute);
    }
    return DictionaryAttr::get(&getContext(), own);
  }

  /// The range of accelerators in the row that have an argument or result: that of its stage (kStageAttr), or all.
  std::pair<int64_t, int64_t> rowsOf(Attribute stage) const {
    if (auto number = dyn_cast_if_present<IntegerAttr>(stage); number && number.getInt() >= 0)
      return {number.getInt() % mesh.inRow, number.getInt() % mesh.inRow + 1};
    return {0, mesh.inRow};
  }

  void takeArguments(func::FuncOp main) {
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      if (!graph::isArgumentOnRanks(main, i))
        continue;
      const BlockArgument argument = main.getArgument(i);
      const auto [from, to] = rowsOf(main.getArgAttr(i, graph::kStageAttr));
      const int64_t first = from * mesh.numPlaces(), end = to * mesh.numPlaces();
      for (int64_t place = first; place < end; ++place)
        (void)main.insertArgument(i + 1 + static_cast<unsigned>(place - first), argument.getType(),
                                  ofPlace(mlir::function_interface_impl::getArgAttrs(main, i), place, place - first),
                                  argument.getLoc());
      SmallVector<Value> each;
      for (int64_t row = 0; row < mesh.inRow; ++row)
        for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
          const int64_t at = to - from == 1 ? mesh.acceleratorOf(rank, 0) : mesh.acceleratorOf(rank, row);
          each.push_back(main.getArgument(i + 1 + static_cast<unsigned>(at)));
        }
      perRank[argument] = std::move(each);
      i += static_cast<unsigned>(end - first);
    }
  }
  void giveResults(func::FuncOp main, Operation *end) {
    for (unsigned i = 0; i < main.getNumResults(); ++i) {
      if (!graph::isResultOnRanks(main, i))
        continue;
      const Value value = end->getOperand(i);
      const auto [from, to] = rowsOf(main.getResultAttr(i, graph::kStageAttr));
      SmallVector<Value> each(static_cast<size_t>((to - from) * mesh.numPlaces()));
      for (int64_t row = from; row < to; ++row)
        for (int64_t rank = mesh.numRanks(); rank-- > 0;) // of micro-batches, which share it, the first
          each[static_cast<size_t>(mesh.acceleratorOf(rank, row - from))] = on(row, rank, value);
      for (auto [k, own] : llvm::enumerate(each)) {
        const unsigned at = i + 1 + static_cast<unsigned>(k);
        (void)main.insertResult(at, own.getType(),
                                ofPlace(mlir::function_interface_impl::getResultAttrs(main, i),
                                        from * mesh.numPlaces() + static_cast<int64_t>(k), static_cast<int64_t>(k)));
        end->insertOperands(at, own);
      }
      (void)main.eraseResult(i);
      end->eraseOperand(i);
      i += static_cast<unsigned>(each.size()) - 1;
    }
  }

private:
  /// Whether ranks compute different sizes, or use their coordinates.
  static bool isUneven(func::FuncOp main, const graph::Mesh &mesh) {
    const std::vector<Size> symbols = graph::symbolsOf(main);
    return llvm::any_of(mesh.axes, [&](const runtime::MeshAxis &axis) {
      return llvm::is_contained(symbols, runtime::rankSymbol(axis));
    });
  }

  /// The rank's value on the accelerator at `row` of the pipeline.
  Value on(int64_t row, int64_t rank, Value value) const {
    if (auto found = carried.find(value); found != carried.end()) { // the value that the micro-batch before has
      const Carried &carry = found->second;
      const int64_t at = mesh.placeOf(rank, carry.axes);
      return at == 0 ? on(row, rank, carry.initial) : on(row, mesh.rankAt(at - 1, carry.axes, rank), carry.sum);
    }
    auto found = perRank.find(value);
    return found == perRank.end() ? value : found->second[indexOf(row, rank)];
  }
  size_t indexOf(int64_t row, int64_t rank) const { return static_cast<size_t>(row * mesh.numRanks() + rank); }
  /// Calls `fn` for each accelerator in the row and each rank.
  void forEach(llvm::function_ref<void(int64_t row, int64_t rank)> fn) const {
    for (int64_t row = 0; row < mesh.inRow; ++row)
      for (int64_t rank = 0; rank < mesh.numRanks(); ++rank)
        fn(row, rank);
  }

  LogicalResult expand(Operation *op) {
    auto over = op->getAttrOfType<ArrayAttr>("over");
    FailureOr<SmallVector<unsigned>> axes = SmallVector<unsigned>();
    if (isa<graph::DealOp, graph::CollectOp, graph::CarryOp, graph::CarriedOp>(op) &&
        failed(axes = graph::axesOf(op, over, mesh)))
      return failure();
    if (auto deal = dyn_cast<graph::DealOp>(op)) {
      const int64_t along = mesh.numAlong(*axes), given = static_cast<int64_t>(deal.getValues().size());
      if (given != 1 && given != along)
        return op->emitOpError("(rule 2) has ") << given << " operands for " << along << " ranks";
      SmallVector<Value> each;
      forEach([&](int64_t row, int64_t rank) {
        each.push_back(
            on(row, rank, deal.getValues()[given == 1 ? 0 : static_cast<unsigned>(mesh.placeOf(rank, *axes))]));
      });
      perRank[deal.getResult()] = std::move(each);
      replaced.insert(op);
      return success();
    }
    if (auto collect = dyn_cast<graph::CollectOp>(op)) {
      if (static_cast<int64_t>(collect.getNumResults()) != mesh.numAlong(*axes))
        return op->emitOpError("(rule 2) has ")
               << collect.getNumResults() << " results for " << mesh.numAlong(*axes) << " ranks";
      for (auto [place, result] : llvm::enumerate(collect.getResults()))
        if (!collect.getOnRanks()) {
          result.replaceAllUsesWith(on(0, mesh.rankAt(static_cast<int64_t>(place), *axes, 0), collect.getValue()));
        } else {
          SmallVector<Value> each;
          forEach([&](int64_t row, int64_t rank) {
            each.push_back(on(row, mesh.rankAt(static_cast<int64_t>(place), *axes, rank), collect.getValue()));
          });
          perRank[result] = std::move(each);
        }
      replaced.insert(op);
      return success();
    }
    if (auto carry = dyn_cast<graph::CarryOp>(op)) {
      for (Operation *user : carry->getUsers())
        if (auto end = dyn_cast<graph::CarriedOp>(user); end && end.getBefore() == carry && end.getOver() == over)
          carried.try_emplace(carry.getResult(), Carried{carry.getInitial(), end.getValue(), *axes});
      if (!carried.contains(carry.getResult()))
        return op->emitOpError("has no 'carried' that says what goes on with it");
      replaced.insert(op);
      return success();
    }
    if (auto end = dyn_cast<graph::CarriedOp>(op)) {
      SmallVector<Value> each;
      forEach([&](int64_t row, int64_t rank) {
        each.push_back(on(row, mesh.rankAt(mesh.numAlong(*axes) - 1, *axes, rank), end.getValue()));
      });
      perRank[end.getResult()] = std::move(each);
      replaced.insert(op);
      return success();
    }
    if (isa<graph::AllReduceOp>(op))
      return op->emitOpError("is to be lowered before ranks are expanded");
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
    const bool isRanked = graph::isOnRanks(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
                            return perRank.contains(operand) || carried.contains(operand);
                          });
    if (!isRanked)
      return success();
    return compute(op);
  }

  /// Clones an op for each accelerator and micro-batch: with a stage, on the accelerator of the stage; without, on each
  /// accelerator that may read it. Clones of micro-batches that would compute the same are merged.
  LogicalResult compute(Operation *op) {
    const std::optional<int64_t> stage = graph::stageOf(op);
    const bool isOnce = op->getNumResults() == 0; // an op without results has effects, so it runs once
    const int64_t from = stage ? *stage % mesh.inRow : 0, to = stage || isOnce ? from + 1 : mesh.inRow;
    SmallVector<Operation *> made;
    for (Value result : op->getResults())
      perRank[result].resize(static_cast<size_t>(mesh.inRow * mesh.numRanks()));
    for (int64_t row = from; row < to; ++row)
      for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
        SmallVector<Value> operands =
            llvm::map_to_vector(op->getOperands(), [&](Value operand) { return on(row, rank, operand); });
        Operation *own = copyFor(op, operands, rank);
        if (!own)
          return failure();
        if (graph::isOnRanks(op))
          graph::setDevice(own, places[static_cast<size_t>(mesh.acceleratorOf(rank, row))]);
        if (Operation *known = likeOneOf(made, own)) {
          own->erase();
          own = known;
          own->removeAttr(graph::kMicroBatchAttr);
        } else {
          made.push_back(own);
          if (mesh.time && graph::isOnRanks(op))
            graph::setMicroBatch(own, mesh.microBatchOf(rank));
          ++numExpanded;
        }
        for (auto [result, value] : llvm::zip_equal(op->getResults(), own->getResults())) {
          SmallVector<Value> &each = perRank.find(result)->second;
          if (to - from == mesh.inRow)
            each[indexOf(row, rank)] = value;
          else
            for (int64_t reader = 0; reader < mesh.inRow; ++reader)
              each[indexOf(reader, rank)] = value;
        }
      }
    replaced.insert(op);
    return success();
  }

  /// The clone in `made` that computes the same on the same accelerator, if micro-batches may share it.
  Operation *likeOneOf(ArrayRef<Operation *> made, Operation *op) const {
    if (!mesh.time)
      return nullptr;
    for (Operation *each : made)
      if (llvm::equal(each->getOperands(), op->getOperands()) &&
          llvm::equal(each->getResultTypes(), op->getResultTypes()) && attributesOf(each) == attributesOf(op))
        return each;
    return nullptr;
  }
  static DictionaryAttr attributesOf(Operation *op) {
    NamedAttrList attributes(op->getAttrDictionary());
    attributes.erase(graph::kMicroBatchAttr);
    return attributes.getDictionary(op->getContext());
  }

  /// The op with the numbers of one rank in place of its coordinates.
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
  graph::Mesh mesh;                                  ///< set during a run
  llvm::DenseMap<Value, SmallVector<Value>> perRank; ///< by accelerator in the row, then by rank
  struct Carried {
    Value initial;
    Value sum; ///< the sum so far, which the next micro-batch adds to
    SmallVector<unsigned> axes;
  };
  llvm::DenseMap<Value, Carried> carried; ///< by result of carry
  llvm::DenseSet<Operation *> replaced;
  SmallVector<unsigned> held; ///< arguments replaced by one per rank
};
} // namespace

std::unique_ptr<Pass> createExpandRanks(const runtime::MachineModel *machine, std::vector<runtime::DeviceRef> devices,
                                        bool onlyUneven) {
  return std::make_unique<ExpandRanks>(machine, std::move(devices), onlyUneven);
}

} // namespace tressel::passes
