#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/ListSchedule.h"
#include "passes/Passes.h"
#include "passes/place/RowBlocks.h"
#include "passes/Util.h"

#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "tressel/runtime/Dim.h"

#include "llvm/ADT/EquivalenceClasses.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_SPLITPRODUCERS
#include "passes/Passes.h.inc"

namespace {
/// Cuts one launch into launches of row blocks, together with the transfers around it.
class Cut {
public:
  Cut(graph::LaunchOp launch, int64_t blocks, RowBlocks &kernels, const llvm::DenseSet<Value> &parameterOnly)
      : launch(launch), parameterOnly(parameterOnly) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr());
    const std::optional<RowForm> form = kernels.isBlock(kernel) ? std::nullopt : rowFormOf(kernel);
    if (!form || form->rows < blocks)
      return;
    // Blocks must begin at multiples of 64 bytes, as buffers do.
    int64_t step = 1;
    auto align = [&](Type type) {
      const TensorType tensor = graph::fromMlir(type);
      const int64_t rowBytes = tensor.bytes() / tensor.shape.extent(0);
      step = std::lcm(step, 64 / std::gcd(rowBytes, int64_t(64)));
    };
    for (auto [type, isByRow] : llvm::zip_equal(kernel.getArgumentTypes(), form->byRow))
      if (isByRow)
        align(type);
    for (Type type : kernel.getResultTypes())
      align(type);
    const int64_t size = dim::alignUp((form->rows + blocks - 1) / blocks, step).number();
    if (2 * size > form->rows)
      return;
    for (int64_t row = 0; row < form->rows; row += size) {
      rows.push_back({row, std::min(row + size, form->rows)});
      parts.push_back(kernels.blockOf(kernel, *form, rows.back().second - row));
      if (!parts.back() || !findPacks(kernel, kernels.packersOf(parts.back())))
        return;
    }
    byRow = form->byRow;
    isPossible = true;
  }
  explicit operator bool() const { return isPossible; }

  void apply() {
    std::vector<SmallVector<Value>> operands(rows.size());
    for (auto [i, operand] : llvm::enumerate(launch.getOperands())) {
      SmallVector<Value> pieces = byRow[i] ? rowsOf(operand) : SmallVector<Value>(rows.size(), operand);
      for (auto [list, piece] : llvm::zip_equal(operands, pieces))
        list.push_back(piece);
    }
    std::vector<SmallVector<Value>> results(launch.getNumResults());
    OpBuilder b(launch);
    for (auto [i, part] : llvm::enumerate(parts)) {
      for (const Pack &pack : packs[i])
        operands[i][pack.operand] = packedFor(pack);
      auto made = graph::LaunchOp::create(b, launch.getLoc(), part.getResultTypes(),
                                          FlatSymbolRefAttr::get(part.getSymNameAttr()), operands[i]);
      graph::copyAnnotations(launch, made);
      for (auto [list, result] : llvm::zip_equal(results, made.getResults()))
        list.push_back(result);
    }
    for (auto [whole, pieces] : llvm::zip_equal(launch.getResults(), results))
      replace(whole, pieces, launch);
    launch.erase();
  }

private:
  /// Finds how to pack the packed operands, those that no op of the body reads, for a block: it may need another form
  /// of packing than the whole.
  bool findPacks(graph::KernelOp kernel, ArrayRef<graph::KernelOp> packers) {
    auto packer = packers.begin();
    packs.emplace_back();
    for (auto [i, arg] : llvm::enumerate(kernel.getBody().getArguments())) {
      if (!arg.use_empty() || packer == packers.end())
        continue;
      Operation *def = launch.getOperand(static_cast<unsigned>(i)).getDefiningOp();
      const bool isCopied = def && graph::isTransfer(def);
      auto pack = dyn_cast_or_null<graph::LaunchOp>(isCopied ? def->getOperand(0).getDefiningOp() : def);
      if (!pack || pack.getNumOperands() != 1 ||
          graph::KernelOp(*packer).getArgumentTypes()[0] != pack.getOperand(0).getType())
        return false;
      packs.back().push_back({static_cast<unsigned>(i), pack, isCopied ? def : nullptr, *packer++});
    }
    return packer == packers.end();
  }
  struct Pack {
    unsigned operand;
    graph::LaunchOp whole; ///< the launch that packs it for the whole
    Operation *transfer;   ///< transfer of the packed operand; null if there is none
    graph::KernelOp packer;
  };
  static Value packedFor(Pack pack) {
    graph::LaunchOp found = pack.whole;
    if (found.getKernel() != pack.packer.getSymName()) {
      found = nullptr;
      for (Operation *user : pack.whole.getOperand(0).getUsers())
        if (auto other = dyn_cast<graph::LaunchOp>(user); other && other.getKernel() == pack.packer.getSymName())
          found = other;
    }
    OpBuilder b(pack.whole);
    b.setInsertionPointAfter(pack.whole);
    if (!found) {
      found = graph::LaunchOp::create(b, pack.whole.getLoc(), pack.packer.getResultTypes(),
                                      FlatSymbolRefAttr::get(pack.packer.getSymNameAttr()), pack.whole.getOperands());
      graph::copyAnnotations(pack.whole, found);
    }
    if (!pack.transfer)
      return found.getResult(0);
    const runtime::DeviceRef device = graph::destinationOf(pack.transfer);
    for (Operation *user : found->getUsers())
      if (graph::isTransfer(user) && graph::destinationOf(user) == device)
        return user->getResult(0);
    b.setInsertionPointAfter(found);
    return graph::createTransfer(b, pack.transfer->getLoc(), found.getResult(0), device);
  }

  Value join(OpBuilder &b, ArrayRef<Value> pieces, Operation *like) {
    Operation *made = graph::createOp(b, like->getLoc(), *op::findOp("concat"), pieces, {int64_t(0)});
    graph::setDevice(made, graph::isTransfer(like) ? graph::destinationOf(like)
                                                   : graph::deviceOf(like).value_or(graph::kHost));
    return made->getResult(0);
  }

  /// The rows of a value for each block. If a transfer brings it to the device, the transfer is cut into these pieces.
  SmallVector<Value> rowsOf(Value value) { return rowsOf(value, launch); }
  SmallVector<Value> rowsOf(Value value, Operation *reader) {
    Operation *def = value.getDefiningOp();
    if (def && isRowJoin(def) && isCutAlike(def))
      return SmallVector<Value>(def->getOperands());
    if (!def || !graph::isTransfer(def) || parameterOnly.contains(def->getOperand(0)))
      return slices(value, reader);
    SmallVector<Value> pieces = rowsOf(def->getOperand(0), def); // its operand may have been transferred too
    OpBuilder b(def);
    for (Value &piece : pieces)
      piece = graph::createTransfer(b, def->getLoc(), piece, graph::destinationOf(def));
    if (!def->hasOneUse()) {
      Value whole = join(b, pieces, def);
      def->getResult(0).replaceAllUsesExcept(whole, reader);
    }
    replaced.push_back(def);
    return pieces;
  }
  bool isCutAlike(Operation *join) const {
    return join->getNumOperands() == rows.size() &&
           llvm::all_of(llvm::zip_equal(join->getOperands(), rows), [](auto pair) {
             auto [piece, range] = pair;
             return graph::fromMlir(piece.getType()).shape[0] == range.second - range.first;
           });
  }
  SmallVector<Value> slices(Value value, Operation *before) {
    OpBuilder b(before);
    const TensorType type = graph::fromMlir(value.getType());
    SmallVector<Value> pieces;
    for (auto [from, to] : rows) {
      op::Sizes starts(static_cast<size_t>(type.rank()), 0), limits(type.shape.begin(), type.shape.end());
      starts[0] = from, limits[0] = to;
      pieces.push_back(
          graph::createOp(b, value.getLoc(), *op::findOp("slice"), value, {starts, limits, op::Ints()})->getResult(0));
    }
    return pieces;
  }
  /// Replaces the whole value, which `maker` made, by the pieces: transfers copy them one by one, other readers read
  /// their join.
  void replace(Value whole, ArrayRef<Value> pieces, Operation *maker) {
    Value joined;
    for (OpOperand &use : llvm::make_early_inc_range(whole.getUses())) {
      Operation *user = use.getOwner();
      if (!graph::isTransfer(user)) {
        if (!joined) {
          OpBuilder after(maker);
          joined = join(after, pieces, maker);
        }
        use.set(joined);
        continue;
      }
      OpBuilder b(user);
      SmallVector<Value> copies;
      for (Value piece : pieces)
        copies.push_back(graph::createTransfer(b, user->getLoc(), piece, graph::destinationOf(user)));
      replace(user->getResult(0), copies, user);
      user->erase();
    }
  }

public:
  /// Erases ops that the cut left unused, unless they are in `gone` already. To be called after `apply` of all cuts.
  void clean(llvm::DenseSet<Operation *> &gone) {
    auto erase = [&](Operation *op) {
      if (op && !gone.contains(op) && op->use_empty()) {
        gone.insert(op);
        op->erase();
      }
    };
    for (Operation *op : llvm::reverse(replaced)) // users before the ops that they read
      erase(op);
    for (ArrayRef<Pack> list : packs)
      for (const Pack &pack : list) {
        erase(pack.transfer);
        erase(pack.whole);
      }
  }

private:
  graph::LaunchOp launch;
  const llvm::DenseSet<Value> &parameterOnly; ///< copied ahead of the step
  bool isPossible = false;
  SmallVector<std::pair<int64_t, int64_t>> rows;
  SmallVector<graph::KernelOp> parts;
  SmallVector<bool> byRow;
  SmallVector<SmallVector<Pack>> packs; ///< by block
  SmallVector<Operation *> replaced;    ///< transfers that were replaced by transfers of pieces
};

class SplitProducers : public impl::SplitProducersBase<SplitProducers> {
public:
  SplitProducers(Providers providers, const runtime::MachineModel *machine, Decisions *decisions,
                 std::optional<int64_t> most)
      : providers(std::move(providers)), machine(machine), decisions(decisions) {
    if (most)
      maxTrials = *most;
  }

  void runOnOperation() override {
    FailureOr<func::FuncOp> found = findMain(getOperation());
    if (failed(found))
      return signalPassFailure();
    if (!*found || !machine || machine->devices.size() < 2 || (*found)->hasAttr(kOrderedAttr))
      return;
    main = *found;
    Block *block = &main.getBody().front();
    const auto count = static_cast<int64_t>(block->getOperations().size());
    if (llvm::none_of(*block, [](Operation &op) { return graph::isTransfer(&op); }))
      return;
    RowBlocks kernels(providers);
    costs = std::make_shared<MachineCosts>(*machine);
    constexpr int64_t kOps = 200'000; // bound on the ops of all trials: some seconds
    trials = std::clamp<int64_t>(kOps / count, 0, maxTrials);
    Length end;
    for (bool again = true; again && trials > 0;) {
      again = false;
      std::vector<int64_t> exposed = exposedLaunches(end);
      // Tries several launches at once first: the step may not get shorter before all its devices end earlier, and a
      // chain over devices is only pipelined if each launch of it is cut.
      std::vector<std::vector<int64_t>> sets{exposed};
      llvm::sort(sets[0]); // producers of rows are cut before their readers
      for (std::vector<int64_t> chains : {chainsOf(exposed), chainsOf({})})
        if (!llvm::is_contained(sets, chains))
          sets.push_back(std::move(chains));
      llvm::erase_if(sets, [](const auto &set) { return set.size() < 2; });
      Best best{end};
      for (const std::vector<int64_t> &set : sets)
        tryBlocks(set, {2, 4, 8, 16}, best, kernels);
      for (size_t next = 0; best.blocks == 0 && next < exposed.size(); ++next)
        tryBlocks(exposed[next], {4, 16}, best, kernels);
      if (best.blocks == 0)
        break;
      again = true;
      explain(best, end.longest);
      split(best.places, best.blocks, kernels);
      numSplit += best.places.size();
    }
    removeUnusedKernels();
    costs.reset();
    forms.clear();
  }

private:
  /// Length of a plan: the end of the last device, and the mean over devices, as the former may not improve before the
  /// last of several devices does.
  struct Length {
    double longest = std::numeric_limits<double>::infinity(), mean = longest;
  };

  /// The trial that gave the shortest step.
  struct Best {
    Length length;
    int64_t blocks = 0;
    std::vector<int64_t> places;
  };
  void tryBlocks(ArrayRef<int64_t> places, ArrayRef<int64_t> counts, Best &best, RowBlocks &kernels) {
    for (int64_t blocks : counts) {
      if (trials <= 0)
        return;
      --trials;
      func::FuncOp backup = main.clone();
      const Length with = split(places, blocks, kernels);
      if (isShorter(with, best.length))
        best = {with, blocks, places.vec()};
      main.erase();
      getOperation().push_back(backup);
      main = backup;
    }
  }

  std::vector<Planned> plan() { return planStep(main, IssueOrder(main, /*leastMemory=*/false), *costs, Effort::Quick); }

  /// Launches on the critical path next to a transfer that they wait for or that waits for them; as positions in the
  /// block, the last first.
  std::vector<int64_t> exposedLaunches(Length &end) {
    std::vector<Planned> plans = plan();
    end = lengthOf(plans);
    llvm::DenseMap<Operation *, const Planned *> planOf;
    std::map<unsigned, std::vector<const Planned *>> byEngine;
    std::vector<const Planned *> lastOf(costs->devices().size(), nullptr);
    for (const Planned &p : plans) {
      planOf[p.op] = &p;
      if (isRowJoin(p.op))
        continue;
      byEngine[p.engine].push_back(&p);
      if (const Planned *&last = lastOf[p.device]; !last || p.end > last->end)
        last = &p;
    }
    std::vector<Operation *> found;
    for (const Planned *last : lastOf)
      follow(last, planOf, byEngine, found);
    llvm::DenseMap<Operation *, int64_t> placeOf;
    for (auto [i, op] : llvm::enumerate(main.getBody().front()))
      placeOf[&op] = static_cast<int64_t>(i);
    std::vector<int64_t> places;
    for (Operation *op : found)
      if (!llvm::is_contained(places, placeOf[op]))
        places.push_back(placeOf[op]);
    return places;
  }

  /// Follows the critical path backward from `at`: to the op whose result it waited for, or the one before it on its
  /// engine.
  void follow(const Planned *at, llvm::DenseMap<Operation *, const Planned *> &planOf,
              std::map<unsigned, std::vector<const Planned *>> &byEngine,
              std::vector<Operation *> &found) {
    while (at) {
      const Planned *before = nullptr;
      auto consider = [&](Operation *op) {
        const Planned *p = op ? planOf.lookup(op) : nullptr;
        if (p && p->end <= at->begin && (!before || p->end > before->end))
          before = p;
      };
      for (Value operand : at->op->getOperands()) {
        Operation *def = baseOf(operand).getDefiningOp();
        if (def && isRowJoin(def))
          for (Value piece : def->getOperands())
            consider(baseOf(piece).getDefiningOp());
        else
          consider(def);
      }
      if (before && before->end == at->begin) { // it waited for data, not for its engine
        if (graph::isTransfer(at->op) && isa<graph::LaunchOp>(before->op))
          found.push_back(before->op);
        if (graph::isTransfer(before->op) && isa<graph::LaunchOp>(at->op))
          found.push_back(at->op);
      }
      const auto &queue = byEngine[at->engine];
      auto place = llvm::lower_bound(queue, at, [](const Planned *a, const Planned *b) { return a->begin < b->begin; });
      if (place != queue.begin())
        consider((*std::prev(place))->op);
      at = before;
    }
  }

  /// Launches connected by rows with those at `places` (none: with any launch), directly or through other launches and
  /// transfers; as positions in the block, in order. All of them can be cut into the same rows.
  std::vector<int64_t> chainsOf(ArrayRef<int64_t> places) {
    llvm::DenseMap<Operation *, int64_t> placeOf;
    llvm::EquivalenceClasses<int64_t> chains;
    llvm::SmallDenseSet<int64_t> longer;
    const llvm::DenseSet<Value> parameterOnly = parameterOnlyValues(main); // computed ahead of the step
    for (auto [i, op] : llvm::enumerate(main.getBody().front())) {
      auto launch = dyn_cast<graph::LaunchOp>(op);
      if (!launch || llvm::any_of(launch.getResults(), [&](Value v) { return parameterOnly.contains(v); }))
        continue;
      const auto place = static_cast<int64_t>(i);
      placeOf[&op] = place;
      chains.insert(place);
      const std::optional<RowForm> &form = formOf(launch);
      if (!form)
        continue;
      for (auto [operand, isByRow] : llvm::zip_equal(launch.getOperands(), form->byRow)) {
        Operation *def = operand.getDefiningOp();
        if (def && graph::isTransfer(def))
          def = def->getOperand(0).getDefiningOp();
        auto from = dyn_cast_or_null<graph::LaunchOp>(def);
        if (!isByRow || !from || !placeOf.contains(from) || !formOf(from))
          continue;
        chains.unionSets(placeOf[from], place);
        longer.insert(placeOf[from]);
        longer.insert(place);
      }
    }
    std::vector<int64_t> all;
    for (const auto &[op, place] : placeOf)
      if (places.empty() ? longer.contains(place)
                         : llvm::any_of(places, [&](int64_t p) { return chains.isEquivalent(p, place); }))
        all.push_back(place);
    llvm::sort(all);
    return all;
  }
  const std::optional<RowForm> &formOf(graph::LaunchOp launch) {
    auto [at, isNew] = forms.try_emplace(launch.getKernelAttr().getAttr());
    if (isNew)
      at->second = rowFormOf(SymbolTable::lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr()));
    return at->second;
  }

  graph::LaunchOp launchAt(int64_t place) {
    return dyn_cast<graph::LaunchOp>(*std::next(main.getBody().front().begin(), place));
  }

  /// Cuts the launches and returns the new length of the step; infinity if none of them can be cut.
  Length split(ArrayRef<int64_t> places, int64_t blocks, RowBlocks &kernels) {
    std::vector<graph::LaunchOp> launches;
    for (int64_t place : places)
      launches.push_back(launchAt(place));
    const llvm::DenseSet<Value> parameterOnly = parameterOnlyValues(main);
    std::vector<std::unique_ptr<Cut>> cuts;
    for (graph::LaunchOp launch : launches) {
      cuts.push_back(std::make_unique<Cut>(launch, blocks, kernels, parameterOnly));
      if (*cuts.back())
        cuts.back()->apply();
      else
        cuts.pop_back();
    }
    if (cuts.empty())
      return {};
    llvm::DenseSet<Operation *> gone;
    for (auto &cut : cuts)
      cut->clean(gone);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(main.getBody().front())))
      if (op.use_empty() && (isRowJoin(&op) || isView(&op)))
        op.erase(); // a transfer was replaced by those of its pieces
    return lengthOf(plan());
  }

  Length lengthOf(ArrayRef<Planned> plans) const {
    std::vector<double> ends(costs->devices().size(), 0);
    for (const Planned &p : plans)
      if (!isRowJoin(p.op))
        ends[p.device] = std::max(ends[p.device], p.end);
    return {*llvm::max_element(ends),
            std::accumulate(ends.begin(), ends.end(), 0.0) / static_cast<double>(ends.size())};
  }
  bool isShorter(const Length &a, const Length &b) const {
    const double least = leastGain * b.longest;
    if (a.longest > b.longest)
      return false;
    return b.longest - a.longest >= least || b.mean - a.mean >= least / static_cast<double>(costs->devices().size());
  }

  void explain(const Best &best, double before) {
    if (!decisions)
      return;
    for (int64_t place : best.places) {
      graph::LaunchOp launch = launchAt(place);
      const graph::FileLine line = graph::fileLineOf(launch.getLoc());
      std::string text = "in " + std::to_string(best.blocks) + " blocks of rows, each copied by itself";
      if (best.places.size() > 1)
        text += ", with " + std::to_string(best.places.size() - 1) + " other" +
                (best.places.size() > 2 ? " launches" : " launch");
      decisions->push_back({"split-producers",
                            {launch.getKernel().str(), line.file, static_cast<uint32_t>(line.line)},
                            text + ": the step takes " + runtime::spellSeconds(best.length.longest) + ", not " +
                                runtime::spellSeconds(before)});
    }
  }

  void removeUnusedKernels() {
    llvm::DenseSet<Attribute> used;
    getOperation().walk([&](graph::LaunchOp launch) { used.insert(launch.getKernelAttr().getAttr()); });
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<graph::KernelOp>()))
      if (!used.contains(kernel.getSymNameAttr()))
        kernel.erase();
  }

  Providers providers;
  const runtime::MachineModel *machine;
  Decisions *decisions;
  func::FuncOp main;
  int64_t trials = 0;
  // Set during a run.
  std::shared_ptr<MachineCosts> costs;
  llvm::DenseMap<Attribute, std::optional<RowForm>> forms; ///< by kernel
};
} // namespace

std::unique_ptr<Pass> createSplitProducers(Providers providers, const runtime::MachineModel *machine,
                                           Decisions *decisions, std::optional<int64_t> maxTrials) {
  return std::make_unique<SplitProducers>(std::move(providers), machine, decisions, maxTrials);
}

} // namespace tressel::passes
