#include "passes/Passes.h"
#include "passes/Util.h"
#include "passes/cluster/ClusterGraph.h"
#include "passes/graph/TurningPoint.h"
#include "passes/schedule/IssueOrder.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Segment.h"
#include "ir/graph/Stage.h"
#include "ir/graph/Structure.h"
#include "mlir/IR/IRMapping.h"
#include "tressel/runtime/Corrections.h"
#include "tressel/runtime/MachineModel.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <limits>
#include <utility>

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_FORMCLUSTERS
#include "passes/Passes.h.inc"

namespace {
using Ops = ArrayRef<Operation *>;

/// How a group of ops would run: the winning bid, its provider and its cost.
struct Work {
  const KernelProvider *provider = nullptr; ///< null: no provider bid
  Bid bid;
  double seconds = std::numeric_limits<double>::infinity();
  /// The ops of a library kernel that generated code follows as an epilogue; empty: one kernel for all.
  SmallVector<Operation *, 2> root;
  runtime::KernelCost runnerUp = {}; ///< runtime::KernelDesc::runnerUp: of the root, if generated code follows it
};

/// The inputs and results of a set of ops, in order of first use and of definition.
struct Boundary {
  SmallVector<Value> inputs, results;
  Boundary(Ops ops) {
    llvm::SmallDenseSet<Operation *> inside(ops.begin(), ops.end());
    llvm::SetVector<Value> unique;
    for (Operation *op : ops)
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp(); !(def && inside.contains(def)) && !isImmediate(op, operand))
          unique.insert(operand);
    inputs = SmallVector<Value>(unique.begin(), unique.end());
    for (Operation *op : ops)
      for (Value result : op->getResults())
        if (writesAllResults(op) ||
            llvm::any_of(result.getUsers(), [&](Operation *user) { return !inside.contains(user); }))
          results.push_back(result);
  }
};

/// Bytes of all inputs and results of a kernel.
int64_t footprintOf(const Boundary &boundary) {
  llvm::SmallDenseSet<Value> bases;
  int64_t bytes = 0;
  for (ArrayRef<Value> list : {ArrayRef<Value>(boundary.inputs), ArrayRef<Value>(boundary.results)})
    for (Value value : list)
      if (Value base = baseOf(value); bases.insert(base).second)
        bytes += bytesOf(base.getType());
  return bytes;
}

/// Collects bids of providers and selects the cheapest.
class Auction {
public:
  Auction(const Providers &providers, const Providers &hostProviders, func::FuncOp main)
      : providers(providers), hostProviders(hostProviders), deterministic(graph::isDeterministic(main)),
        parameterOnly(parameterOnlyValues(main)) {
    llvm::DenseMap<Attribute, Value> states;
    for (BlockArgument arg : main.getArguments())
      if (Attribute state = main.getArgAttr(arg.getArgNumber(), graph::kStateAttr))
        states[state] = arg;
    for (auto [i, next] : llvm::enumerate(main.getBody().front().getTerminator()->getOperands()))
      if (Attribute state = main.getResultAttr(static_cast<unsigned>(i), graph::kStateAttr))
        stateOf[baseOf(next)] = states.lookup(state);
  }

  bool isParameterOnly(Value value) const { return parameterOnly.contains(value); }
  /// Values that are made of parameters and constants alone.
  const llvm::DenseSet<Value> &known() const { return parameterOnly; }
  void noteCluster(Operation *cluster) {
    if (llvm::all_of(cluster->getOperands(), [&](Value v) { return parameterOnly.contains(v); }))
      parameterOnly.insert(cluster->result_begin(), cluster->result_end());
  }
  /// A clone has the same operands, so it is parameter-only if the original is.
  void noteClone(Operation *original, Operation *clone) {
    for (auto [from, to] : llvm::zip(original->getResults(), clone->getResults()))
      if (parameterOnly.contains(from))
        parameterOnly.insert(to);
  }

  Work whole(Ops ops) const {
    Work best;
    Boundary boundary(ops);
    const KernelProvider *only = deterministic && ops.size() > 1 ? winnerOfProducts(ops) : nullptr;
    for (const KernelProvider *provider : providersFor(ops))
      if (std::optional<Bid> bid = only && provider != only ? std::nullopt : ask(*provider, ops, boundary)) {
        Work next{provider, *bid, bid->seconds, {}};
        if (next.seconds < best.seconds)
          std::swap(best, next);
        if (next.provider && (best.runnerUp.kind.empty() || next.seconds - best.seconds < best.runnerUp.seconds))
          best.runnerUp = {next.provider->name().str(), next.seconds - best.seconds};
      }
    return best;
  }

  /// All bids for these ops, the cheapest first: "kernels 12.3 us, generated 45 us".
  std::string bids(Ops ops) const {
    std::vector<std::pair<double, std::string>> all;
    Boundary boundary(ops);
    for (const KernelProvider *provider : providersFor(ops))
      if (std::optional<Bid> bid = ask(*provider, ops, boundary)) {
        const bool wasSeen = llvm::any_of(bid->costs, [](const auto &cost) { return runtime::Corrections::ofHost().isCorrected(cost); });
        all.emplace_back(bid->seconds, provider->name().str() + " " + runtime::spellSeconds(bid->seconds) + (wasSeen ? " (as seen in earlier calls)" : ""));
      }
    llvm::sort(all);
    return llvm::join(llvm::make_second_range(all), ", ");
  }

  /// A bid for a library kernel of `root` with a generated epilogue for the other ops of `ops`.
  Work withEpilogue(const Work &library, Ops root, Ops ops) const {
    Work work;
    const Providers &all = providersFor(ops);
    auto generated = llvm::find_if(all, [](const KernelProvider *p) { return p->writesEpilogues(); });
    if (generated == all.end() || !library.bid.takesEpilogue)
      return work;
    llvm::SmallDenseSet<Operation *> inRoot(root.begin(), root.end());
    SmallVector<Operation *> epilogue =
        llvm::filter_to_vector(ops, [&](Operation *op) { return !inRoot.contains(op); });
    Value value = joint(root, inRoot, epilogue);
    if (!value || llvm::none_of(Boundary(ops).results, [&](Value result) { return mayHold(result, value, epilogue); }))
      return work;
    Boundary rootBoundary(root), boundary(epilogue);
    if (rootBoundary.results.size() != 1 || namesFurtherSizes(root, epilogue))
      return work;
    // Where the provider of the root alone cannot compute this epilogue, another one may.
    const KernelProvider *runs = library.provider;
    const Boundary whole(ops);
    auto takes = [&](const KernelProvider &p) { return p.takes({rootOf(ops), ops, whole.inputs, whole.results}, root); };
    std::optional<Bid> first = ask(*runs, root, rootBoundary), second = ask(**generated, epilogue, boundary);
    if (!takes(*runs)) {
      if (deterministic)
        return work;
      first.reset();
      for (const KernelProvider *other : all)
        if (std::optional<Bid> bid = ask(*other, root, rootBoundary);
            bid && bid->takesEpilogue && (!first || bid->seconds < first->seconds) && takes(*other))
          first = std::move(bid), runs = other;
    }
    if (!first || !second)
      return work;
    work = {runs, *first, first->seconds + second->seconds, SmallVector<Operation *, 2>(root)};
    if (runs == library.provider)
      work.runnerUp = library.runnerUp;
    work.bid.scratchBytes = dim::max(first->scratchBytes, second->scratchBytes);
    work.bid.addCosts(*second);
    return work;
  }

private:
  /// The provider that computes a product must depend on the product alone under `deterministic`, not on the ops fused
  /// with it: each provider adds up the terms in an order of its own. Null: there is no product, or no provider runs it
  /// alone.
  const KernelProvider *winnerOfProducts(Ops ops) const {
    for (Operation *op : ops)
      if (const op::OpInfo *info = graph::infoOf(op); info && op::isProduct(info->family))
        return whole({op}).provider;
    return nullptr;
  }

  /// The providers for the device that the ops are annotated with.
  const Providers &providersFor(Ops ops) const {
    const bool onHost = !hostProviders.empty() && llvm::any_of(ops, [](Operation *op) { return graph::deviceOf(op) == graph::kHost; });
    return onHost ? hostProviders : providers;
  }

  /// Whether the epilogue uses symbols that the root does not: a library kernel only has the symbols of its root as
  /// scalars.
  static bool namesFurtherSizes(Ops root, Ops epilogue) {
    SmallVector<Size> known;
    for (Operation *op : root)
      llvm::append_range(known, graph::symbolsOf(op));
    return llvm::any_of(epilogue, [&](Operation *op) {
      return llvm::any_of(graph::symbolsOf(op), [&](Size symbol) { return !llvm::is_contained(known, symbol); });
    });
  }

  std::optional<Bid> ask(const KernelProvider &provider, Ops ops, const Boundary &boundary) const {
    SmallVector<bool> packable =
        llvm::map_to_vector(boundary.inputs, [&](Value v) { return parameterOnly.contains(v); });
    // Packing speeds up kernels of this host alone; an accelerator would hold the packed and the plain form.
    if (llvm::any_of(ops, [](Operation *op) { return graph::deviceOf(op).value_or(graph::kHost) != graph::kHost; }))
      packable.assign(packable.size(), false);
    return provider.bid({rootOf(ops), ops, boundary.inputs, boundary.results}, packable);
  }

  /// The only value of the root that the epilogue reads, pointwise and over the value's own shape; null if there is no
  /// such value.
  static Value joint(Ops root, const llvm::SmallDenseSet<Operation *> &inRoot, Ops epilogue) {
    Value value;
    llvm::SmallDenseSet<Operation *> inEpilogue(epilogue.begin(), epilogue.end());
    for (Operation *op : root)
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && inEpilogue.contains(def))
          return {};
    for (Operation *op : epilogue)
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && inRoot.contains(def)) {
          if (value && value != operand)
            return {};
          value = operand;
        }
    if (!value)
      return {};
    const Shape shape = graph::fromMlir(value.getType()).shape;
    for (Operation *op : epilogue) {
      std::optional<op::LoopForm> form = loopFormOf(op);
      if (!form || !isPointParallel(*form) || Shape(std::span<const Size>(form->domain)) != shape)
        return {};
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        if (Operation *def = operand.getDefiningOp();
            def && (inRoot.contains(def) || inEpilogue.contains(def)) && !readsPointwise(*form, i))
          return {};
    }
    return value;
  }

public:
  /// Whether a result's buffer can hold the root's value until the epilogue reads it. The next value of a state has the
  /// state's own buffer, unless the epilogue reads the old value: then it would need another buffer and a copy.
  bool mayHold(Value result, Value rootValue, Ops epilogue) const {
    if (cast<RankedTensorType>(result.getType()).getElementTypeBitWidth() !=
            cast<RankedTensorType>(rootValue.getType()).getElementTypeBitWidth() ||
        graph::fromMlir(result.getType()).shape != graph::fromMlir(rootValue.getType()).shape)
      return false;
    const Value state = stateOf.lookup(result);
    return !state || llvm::none_of(epilogue, [&](Operation *op) {
      return llvm::any_of(op->getOperands(), [&](Value operand) { return baseOf(operand) == state; });
    });
  }

private:
  const Providers &providers, &hostProviders;
  const bool deterministic;
  llvm::DenseSet<Value> parameterOnly;
  llvm::DenseMap<Value, Value>
      stateOf; ///< by a state's next value: its old one, or null where the program does not read it
};

/// Ops whose large results only rearrange or broadcast few values: computing them twice costs less than storing them.
bool isCheapToRepeat(Operation *op) {
  std::optional<op::LoopForm> form = loopFormOf(op);
  if (!form || !isPointParallel(*form) || form->alternatives)
    return false;
  for (const op::ScalarNode &node : form->body.nodes)
    if (node.op != op::ScalarOp::Operand && node.op != op::ScalarOp::Const && node.op != op::ScalarOp::Cast &&
        node.op != op::ScalarOp::Index && node.op != op::ScalarOp::Size)
      return false;
  int64_t in = 0, out = 0;
  for (Type type : op->getOperandTypes())
    in += bytesOf(type);
  for (Type type : op->getResultTypes())
    out += bytesOf(type);
  return in * 4 <= out;
}

class FormClusters : public impl::FormClustersBase<FormClusters> {
public:
  FormClusters(Providers providers, Decisions *decisions, const runtime::MachineModel *machine, Providers hostProviders)
      : providers(std::move(providers)), hostProviders(std::move(hostProviders)), decisions(decisions), machine(machine) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> found = findMain(getOperation());
    if (failed(found))
      return signalPassFailure();
    if (!*found)
      return;
    main = *found;
    auction.emplace(providers, hostProviders, main);
    bool allClaimed = true;
    graph::forEachBody(main.getBody().front(), [&](Block &block) {
      allClaimed &= succeeded(cluster(block));
      // A packed operand of an op in a body is packed once, ahead of the step.
      for (Operation &op : llvm::make_early_inc_range(block))
        if (auto control = dyn_cast<graph::ControlOpInterface>(op))
          graph::hoistInvariants(control, [](Operation *inner) { return isa<graph::PackOp>(inner); });
    });
    auction.reset();
    if (!allClaimed)
      signalPassFailure();
  }

private:
  LogicalResult cluster(Block &block) {
    splitWide(block);
    repeatCheap(block);
    turn = 0;
    if (&block == &main.getBody().front())
      turn = turningPointOf(block, auction->known(), kLeastKept).value_or(0);
    graph.emplace(block, maxSearch);
    LogicalResult claimed = grow(block);
    if (succeeded(claimed)) {
      if (&block == &main.getBody().front())
        joinUpdates(block);
      reuniteClones();
      for (ClusterGraph::Group g : graph->inOrder())
        emit(block, g);
    }
    graph.reset();
    work.clear();
    footprints.clear();
    places.clear();
    clones.clear();
    packs.clear();
    erased.clear();
    return claimed;
  }

  /// Splits wide joins in a tree of narrower ones. A kernel checks for each element which joined tensor it lies in, so
  /// a join of thousands is slow to compile and to run. A join of rows that can be computed in place needs no kernel
  /// and stays.
  static void splitWide(Block &block) {
    constexpr size_t kMost = 64;
    constexpr int64_t kAlignment = 64;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (op.getNumOperands() <= kMost || !isComputation(&op))
        continue;
      const op::OpInfo *info = graph::infoOf(&op);
      const std::optional<op::LoopForm> form = loopFormOf(&op);
      const bool staysInPlace = isRowJoin(&op) && llvm::all_of(op.getOperandTypes(), [](Type t) { return bytesOf(t) % kAlignment == 0; });
      if (!info || info->family != op::Family::Shape || !form || !form->alternatives || staysInPlace)
        continue;
      OpBuilder b(&op);
      const op::Attrs attrs = graph::attrsOf(&op, *info);
      auto join = [&](ValueRange values) {
        Operation *made = graph::createOp(b, op.getLoc(), *info, values, attrs);
        graph::copyAnnotations(&op, made);
        return made;
      };
      SmallVector<Value> values(op.getOperands());
      while (values.size() > kMost) {
        SmallVector<Value> parts;
        for (size_t i = 0; i < values.size(); i += kMost) {
          const ArrayRef<Value> part = ArrayRef(values).slice(i, std::min(kMost, values.size() - i));
          parts.push_back(part.size() == 1 ? part.front() : join(part)->getResult(0));
        }
        values = std::move(parts);
      }
      op.getResult(0).replaceAllUsesWith(join(values)->getResult(0));
      op.erase();
    }
  }

  /// Clones ops that are cheap to repeat, one clone per user, so that each can join its user's cluster.
  void repeatCheap(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isComputation(&op) || isRowsOfArgument(&op) || op.getNumResults() != 1 || op.getResult(0).hasOneUse() || !isCheapToRepeat(&op))
        continue;
      SmallVector<Operation *> same{&op};
      llvm::SmallSetVector<Operation *, 8> users(op.getUsers().begin(), op.getUsers().end());
      for (Operation *user : llvm::drop_begin(users)) {
        Operation *clone = op.clone();
        block.getOperations().insertAfter(op.getIterator(), clone);
        user->replaceUsesOfWith(op.getResult(0), clone->getResult(0));
        auction->noteClone(&op, clone);
        same.push_back(clone);
      }
      for (Operation *each : same) // a clone whose users are all outside its segment leaves the segment
        if (graph::segmentOf(each) && llvm::none_of(each->getUsers(), [&](Operation *user) {
              return graph::segmentOf(user) == graph::segmentOf(each);
            }))
          graph::removeSegment(each);
      clones.push_back(std::move(same));
    }
  }

  /// Merges clones that joined no cluster.
  void reuniteClones() {
    for (ArrayRef<Operation *> same : clones) {
      SmallVector<Operation *> alone =
          llvm::filter_to_vector(same, [&](Operation *op) { return graph->opsOf(graph->groupOf(op)).size() == 1; });
      if (alone.empty())
        continue;
      Operation *first = *llvm::min_element(alone, [&](Operation *a, Operation *b) {
        return graph->placeOf(graph->groupOf(a)) < graph->placeOf(graph->groupOf(b));
      });
      for (Operation *op : alone)
        if (op != first) {
          op->getResult(0).replaceAllUsesWith(first->getResult(0));
          erased.insert(op);
        }
    }
  }

  LogicalResult grow(Block &block) {
    bool allClaimed = true;
    SmallVector<Operation *> ops;
    for (Operation &op : block)
      if (isComputation(&op) && !isRowsOfArgument(&op)) {
        ops.push_back(&op);
        work[graph->groupOf(&op)] = auction->whole({&op});
        if (Operation *alone = &op; machine)
          footprints[graph->groupOf(alone)] = footprintOf(Boundary(Ops(alone)));
        if (DictionaryAttr place = graph::placeOf(&op))
          places[graph->groupOf(&op)] = place;
      }
    // A pair that could not be joined may be once both groups have grown: when the other reader of a value is inside
    // too.
    constexpr int sweeps = 3;
    llvm::DenseMap<std::pair<Operation *, Operation *>, size_t> tried; // number of ops of both groups at the last try
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      bool joined = false;
      for (Operation *op : ops)
        for (Value operand : op->getOperands())
          if (Operation *def = operand.getDefiningOp(); def && isComputation(def) && !isRowsOfArgument(def)) {
            const ClusterGraph::Group producer = graph->groupOf(def), consumer = graph->groupOf(op);
            const size_t size = graph->opsOf(producer).size() + graph->opsOf(consumer).size();
            if (producer != consumer && std::exchange(tried[{def, op}], size) != size)
              joined |= tryJoin(producer, consumer);
          }
      if (!joined)
        break;
    }
    for (Operation *op : ops)
      if (!work[graph->groupOf(op)].provider) {
        std::string types;
        llvm::raw_string_ostream os(types);
        llvm::interleaveComma(op->getOperandTypes(), os);
        double bytes = 0;
        for (TypeRange list : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
          for (Type type : list)
            bytes += static_cast<double>(bytesOf(type));
        InFlightDiagnostic error = op->emitError("no kernel can run '")
                                   << graph::infoOf(op)->name << "' on (" << types << ")";
        if (bytes > 1e12)
          error << ", which reads and writes " << static_cast<int64_t>(bytes)
                << " bytes: more than kernels count; take smaller sizes";
        else
          error << "; try another element type, or write it in other ops";
        allClaimed = false;
      }
    return success(allClaimed);
  }

  /// Computes small next values of states that have no other reader in one kernel of several nests, since a launch for
  /// each takes longer than its work. The kernel waits for the operands of all of them, so these must be small too.
  void joinUpdates(Block &block) {
    constexpr int64_t kSmall = 256 * 1024; // bytes of one
    constexpr size_t kMostValues = 96;     // of all, as operands of one launch
    struct Join {
      SmallVector<ClusterGraph::Group> groups;
      SmallVector<Operation *> ops;
      size_t values = 0;
      bool hasDoubles = false; ///< one kernel has one floating-point mode
    };
    SmallVector<Join> joins;
    llvm::DenseSet<ClusterGraph::Group> seen;
    for (OpOperand &next : block.getTerminator()->getOpOperands()) {
      Operation *op = next.get().getDefiningOp();
      if (!op || !main.getResultAttr(next.getOperandNumber(), graph::kStateAttr) || !isComputation(op) ||
          !seen.insert(graph->groupOf(op)).second)
        continue;
      const ClusterGraph::Group group = graph->groupOf(op);
      const auto found = work.find(group);
      Ops ops = graph->opsOf(group);
      const Boundary boundary(ops);
      if (found == work.end() || !found->second.bid.joins || !found->second.root.empty() ||
          !found->second.bid.packs.empty() || footprintOf(boundary) > kSmall ||
          llvm::any_of(boundary.results, [&](Value result) {
            return llvm::any_of(result.getUsers(), [&](Operation *user) {
              return user != block.getTerminator() && graph->groupOf(user) != group;
            });
          }))
        continue;
      const size_t values = boundary.inputs.size() + boundary.results.size();
      bool hasDoubles = false, hasKnownSizes = true;
      for (ArrayRef<Value> list : {ArrayRef<Value>(boundary.inputs), ArrayRef<Value>(boundary.results)})
        for (Value value : list) {
          const auto type = cast<RankedTensorType>(value.getType());
          hasDoubles |= type.getElementType().isF64();
          hasKnownSizes &= type.hasStaticShape();
        }
      if (!hasKnownSizes)
        continue;
      auto fits = llvm::find_if(joins, [&](const Join &join) {
        const ClusterGraph::Group first = join.groups.front();
        return work.find(first)->second.provider == found->second.provider &&
               places.lookup(first) == places.lookup(group) && join.hasDoubles == hasDoubles &&
               join.values + values <= kMostValues;
      });
      Join &join = fits == joins.end() ? joins.emplace_back() : *fits;
      join.groups.push_back(group);
      join.ops.append(ops.begin(), ops.end());
      join.values += values;
      join.hasDoubles = hasDoubles;
    }
    for (Join &join : joins) {
      if (join.groups.size() < 2)
        continue;
      llvm::sort(join.ops, [&](Operation *a, Operation *b) { return graph->indexOfOp(a) < graph->indexOfOp(b); });
      Work all = auction->whole(join.ops);
      double apart = 0;
      for (ClusterGraph::Group group : join.groups)
        apart += work.find(group)->second.seconds;
      if (!all.provider || all.seconds > apart)
        continue;
      // The updates do not depend on each other, so sorting them by place gives a valid order to join them in.
      llvm::sort(join.groups,
                 [&](ClusterGraph::Group a, ClusterGraph::Group b) { return graph->placeOf(a) < graph->placeOf(b); });
      ClusterGraph::Group last = join.groups.back();
      bool isWhole = true;
      for (ClusterGraph::Group group : llvm::reverse(ArrayRef(join.groups).drop_back())) {
        if (graph->blocked(group, last)) {
          isWhole = false;
          continue;
        }
        graph->join(last, group);
        work.erase(group);
      }
      work[last] = isWhole ? std::move(all) : auction->whole(graph->opsOf(last));
    }
  }

  /// Bytes that a cluster may take of the accelerator that it may be placed on: half of its memory, so that the next
  /// cluster fits beside it.
  std::optional<int64_t> roomAt(DictionaryAttr place) const {
    const auto at = place ? place.getAs<StringAttr>(graph::kDeviceAttr) : StringAttr();
    std::optional<int64_t> most;
    for (const runtime::DeviceModel &device : machine->devices)
      if (device.device.kind == runtime::DeviceKind::Gpu && (!at || at == runtime::nameOf(device.device)))
        most = std::max(most.value_or(0), device.memoryBytes / 2);
    return most;
  }
  /// Whether the joined cluster exceeds that room, although the two, one after the other, fit.
  bool isTooLarge(ClusterGraph::Group a, ClusterGraph::Group b, Ops both, DictionaryAttr place, int64_t &bytes) {
    const int64_t apart = std::max(footprints[a], footprints[b]);
    bytes = footprints[a] + footprints[b];
    const std::optional<int64_t> room = roomAt(place);
    if (!room || bytes <= *room)
      return false;
    bytes = footprintOf(Boundary(both));
    return bytes > *room && bytes > apart;
  }

  /// Whether joining would move an op ahead of the turning point to its readers behind it, or keep a value alive in
  /// addition to its operands, because the producer still has other users.
  bool keepsForGradient(Ops producer, Ops consumer) const {
    auto isAhead = [&](Operation *op) { return graph->indexOfOp(op) < turn; };
    if (turn == 0 || llvm::none_of(producer, isAhead) || llvm::any_of(consumer, isAhead))
      return false;
    for (Operation *op : producer)
      for (Operation *user : op->getUsers())
        if (!llvm::is_contained(producer, user) && !llvm::is_contained(consumer, user))
          return true;
    return false;
  }

  bool tryJoin(ClusterGraph::Group producer, ClusterGraph::Group consumer) {
    Ops a = graph->opsOf(producer), b = graph->opsOf(consumer);
    if (static_cast<int64_t>(a.size() + b.size()) > maxOps)
      return false;
    // The time of a bid grows with the operands of the cluster, so growing one of thousands of operands would be
    // quadratic.
    constexpr unsigned kMostOperands = 128;
    unsigned operands = 0;
    for (Ops ops : {a, b})
      for (Operation *op : ops)
        operands += op->getNumOperands();
    if (operands > std::max<unsigned>(kMostOperands, 4 * static_cast<unsigned>(maxOps)))
      return false;
    if (keepsForGradient(a, b))
      return false;
    const DictionaryAttr placeA = places.lookup(producer), placeB = places.lookup(consumer);
    if (placeA && placeB && placeA != placeB)
      return false;
    // Where accelerators have kernels of their own, they compute ops without an annotation: these do not join a cluster
    // on the host.
    auto isHost = [](DictionaryAttr place) {
      const auto device = place ? place.getAs<StringAttr>(graph::kDeviceAttr) : StringAttr();
      return device && device == runtime::nameOf(graph::kHost);
    };
    if (!hostProviders.empty() && isHost(placeA) != isHost(placeB))
      return false;
    SmallVector<Operation *> both;
    both.reserve(a.size() + b.size());
    std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both),
               [&](Operation *x, Operation *y) { return graph->indexOfOp(x) < graph->indexOfOp(y); });
    int64_t bytes = 0;
    if (machine && isTooLarge(producer, consumer, both, placeA ? placeA : placeB, bytes))
      return false;
    const Work &workA = work[producer], &workB = work[consumer];
    Work joined = auction->whole(both);
    for (auto [library, ops] : {std::pair{&workA, a}, std::pair{&workB, b}})
      if (library->provider) {
        Ops root = library->root.empty() ? ops : Ops(library->root);
        if (Work split = auction->withEpilogue(*library, root, both); split.seconds < joined.seconds)
          joined = std::move(split);
      }
    // The error of bids exceeds the cost of storing a value between two kernels. So ops are fused if both ways cost
    // about the same, unless fusing changes the provider of the larger part.
    const KernelProvider *larger = (workA.seconds > workB.seconds ? workA : workB).provider;
    const double margin = joined.provider == larger ? 1.1 : 1;
    if (!joined.provider || joined.seconds > margin * (workA.seconds + workB.seconds) || graph->blocked(producer, consumer))
      return false;
    graph->join(consumer, producer);
    if (placeA)
      places[consumer] = placeA;
    work[consumer] = std::move(joined);
    work.erase(producer);
    if (machine)
      footprints[consumer] = bytes;
    return true;
  }

  void emit(Block &block, ClusterGraph::Group g) {
    Ops ops = graph->opsOf(g);
    Operation *terminator = block.getTerminator();
    if (ops.front() == terminator)
      return;
    auto found = work.find(g);
    if (found == work.end()) { // a view or a constant
      if (isView(ops.front()))
        graph::takePlace(ops.front()); // on the device of its operand
      ops.front()->moveBefore(terminator);
      return;
    }
    if (erased.contains(ops.front())) {
      ops.front()->erase();
      return;
    }
    if (ops.size() == 1 && (isRowView(ops.front()) || canJoinRows(ops.front()))) {
      if (isView(ops.front()))
        graph::takePlace(ops.front()); // on the device of its operand
      ops.front()->moveBefore(terminator);
      return;
    }
    emitCluster(terminator, ops, found->second, places.lookup(g));
    ++numClusters;
    numJoined += ops.size() > 1 ? ops.size() : 0;
  }

  /// Rows that fused with no reader become a view of the operand's bytes, with no copy, if they begin at an aligned
  /// offset and do not keep a much larger value alive.
  static bool isRowView(Operation *op) {
    constexpr int64_t kAlignment = 64, kShare = 4;
    if (!firstRowOf(op))
      return false;
    const Value base = baseOf(op->getResult(0));
    return offsetInBase(op->getResult(0)) % kAlignment == 0 &&
           (isa<BlockArgument>(base) || op->hasAttr(kAsViewAttr) || kShare * bytesOf(op->getResult(0).getType()) >= bytesOf(base.getType()));
  }

  /// Needs no kernel. A reader on another device gets just these rows copied, not the whole argument.
  static bool isRowsOfArgument(Operation *op) {
    return isRowView(op) && isa<BlockArgument>(baseOf(op->getResult(0)));
  }

  /// A join of rows that fused with no reader: each launch computes its rows in place in the result, if its rows have
  /// no other destination and are not parameter-only, as those stay from call to call.
  bool canJoinRows(Operation *op) const {
    constexpr int64_t kAlignment = 64;
    if (!isRowJoin(op) || isa<graph::ControlOpInterface>(op->getParentOp()))
      return false;
    int64_t offset = 0;
    llvm::SmallDenseSet<Value> parts;
    for (Value part : op->getOperands()) {
      if (!isMadeFor(op, part) || !parts.insert(part).second || offset % kAlignment != 0 ||
          auction->isParameterOnly(part))
        return false;
      for (Operation *user : part.getUsers())
        if (user->hasTrait<OpTrait::IsTerminator>() || (user != op && isRowJoin(user)))
          return false;
      offset += bytesOf(part.getType());
    }
    return true;
  }

  /// Whether a cluster makes `part` and its result may lie in the join: no other join, deal or result of the program
  /// needs it.
  static bool isMadeFor(Operation *join, Value part) {
    Value made = part;
    if (auto collect = part.getDefiningOp<graph::CollectOp>()) {
      made = collect.getValue();
      for (Operation *user : made.getUsers())
        if (isa<graph::DealOp>(user) || user->hasTrait<OpTrait::IsTerminator>() || isRowJoin(user))
          return false;
        else if (isa<graph::CollectOp>(user))
          for (Operation *reader : user->getUsers())
            if (reader != join &&
                (isRowJoin(reader) || isa<graph::DealOp>(reader) || reader->hasTrait<OpTrait::IsTerminator>()))
              return false;
    }
    auto maker = made.getDefiningOp<graph::ClusterOp>();
    return maker && maker->getBlock() == join->getBlock();
  }

  void emitCluster(Operation *before, Ops ops, const Work &how, DictionaryAttr place) {
    bool split = !how.root.empty();
    llvm::SmallDenseSet<Operation *> inRoot(how.root.begin(), how.root.end());
    SmallVector<Operation *> ordered(split ? Ops(how.root) : ops);
    if (split)
      llvm::copy_if(ops, std::back_inserter(ordered), [&](Operation *op) { return !inRoot.contains(op); });

    // Inputs in the order: those of the root, its packed ones, those of the epilogue.
    if (decisions)
      decide(ops, how);
    OpBuilder b(before);
    Boundary all(ops), root(split ? Ops(how.root) : ops);
    SmallVector<Value> inputs = root.inputs;
    for (const PackRequest &request : how.bid.packs)
      inputs.push_back(pack(b, root.inputs[request.input], how.provider->name(), request));
    for (Value input : all.inputs)
      if (!llvm::is_contained(root.inputs, input))
        inputs.push_back(input);
    // The first result is the buffer that holds the root's value: the value itself if it is a result.
    SmallVector<Value> results = all.results;
    if (split) {
      const Ops epilogue = Ops(ordered).drop_front(how.root.size());
      auto holds = [&](Value result) { return auction->mayHold(result, root.results.front(), epilogue); };
      auto first = llvm::find(results, root.results.front());
      first = first == results.end() ? llvm::find_if(results, holds) : first;
      std::rotate(results.begin(), first, std::next(first));
    }

    SmallVector<Location> locations{rootOf(ops)->getLoc()};
    llvm::append_range(locations, llvm::map_range(ordered, [](Operation *op) { return op->getLoc(); }));
    auto cluster = graph::ClusterOp::create(b, fuseLocations(&getContext(), locations), ValueRange(results).getTypes(),
                                            inputs, how.provider->name(), how.provider->target(), how.bid.params, how.bid.range,
                                            static_cast<uint64_t>(how.bid.grain), how.bid.scratchBytes, IntegerAttr(),
                                            static_cast<uint64_t>(how.bid.packs.size()));
    graph::setCosts(cluster, how.bid.costs);
    graph::setRunnerUp(cluster, how.runnerUp);
    graph::setPlace(cluster, place);
    graph::setSegments(cluster, ordered, results);
    Block *body = b.createBlock(&cluster.getBody());
    IRMapping map;
    for (Value input : inputs)
      map.map(input, body->addArgument(input.getType(), input.getLoc()));
    for (auto [i, op] : llvm::enumerate(ordered)) {
      for (Value operand : op->getOperands())
        if (isImmediate(op, operand) && !map.contains(operand))
          map.map(operand, b.clone(*operand.getDefiningOp())->getResult(cast<OpResult>(operand).getResultNumber()));
      Operation *inner = b.clone(*op, map);
      graph::takePlace(inner);
      graph::removeSegment(inner);
      if (split && i + 1 == how.root.size())
        cluster.setRootOps(static_cast<int64_t>(body->getOperations().size()));
    }
    graph::YieldOp::create(b, cluster.getLoc(),
                           llvm::map_to_vector(results, [&](Value result) { return map.lookup(result); }));
    auction->noteCluster(cluster);
    for (auto [result, replacement] : llvm::zip(results, cluster.getResults()))
      result.replaceAllUsesWith(replacement);
    for (Operation *op : llvm::reverse(ops))
      op->erase();
  }

  /// Records the provider of a cluster, and why it won.
  void decide(Ops ops, const Work &how) {
    auto named = [](Ops list) {
      return llvm::join(llvm::map_range(list, [](Operation *op) { return op->getName().stripDialect().str(); }), ", ");
    };
    const graph::FileLine line = graph::fileLineOf(rootOf(ops)->getLoc());
    std::string text = ops.size() > 1 ? "one kernel with " + named(llvm::filter_to_vector(ops, [&](Operation *op) {
      return op != rootOf(ops);
    })) + ": " : "";
    if (how.root.empty())
      text += how.provider->name().str() + "; predicted: " + auction->bids(ops);
    else
      text += how.provider->name().str() + ", then generated code while its results are in the cache; predicted for both: " +
              runtime::spellSeconds(how.seconds) + "; for the root alone: " + auction->bids(how.root);
    decisions->push_back({"form-clusters", {rootOf(ops)->getName().stripDialect().str(), line.file, static_cast<uint32_t>(line.line)}, text});
  }

  Value pack(OpBuilder &b, Value operand, StringRef provider, const PackRequest &request) {
    Value &packed = packs[{operand, provider.str() + "\n" + request.params}];
    if (!packed) {
      auto type = RankedTensorType::get({request.bytes}, b.getIntegerType(8, /*isSigned=*/false));
      packed = graph::PackOp::create(b, operand.getLoc(), type, operand, provider, request.params);
      auction->noteCluster(packed.getDefiningOp());
    }
    return packed;
  }

  Providers providers, hostProviders;
  Decisions *decisions;
  const runtime::MachineModel *machine;
  func::FuncOp main;
  std::optional<Auction> auction;
  std::optional<ClusterGraph> graph;
  llvm::DenseMap<ClusterGraph::Group, Work> work;
  llvm::DenseMap<ClusterGraph::Group, int64_t> footprints; ///< lower bound of the bytes that the group needs at once
  static constexpr int64_t kLeastKept = 65536; ///< bytes of residuals below which the turning point is ignored
  size_t turn = 0; ///< ops of the block ahead of its turning point; 0: it has none
  llvm::DenseMap<ClusterGraph::Group, DictionaryAttr> places; ///< what ops are annotated with
  std::vector<SmallVector<Operation *>> clones;
  llvm::DenseSet<Operation *> erased;
  struct PackLess {
    bool operator()(const std::pair<Value, std::string> &a, const std::pair<Value, std::string> &b) const {
      return std::pair(a.first.getAsOpaquePointer(), std::ref(a.second).get()) <
             std::pair(b.first.getAsOpaquePointer(), std::ref(b.second).get());
    }
  };
  std::map<std::pair<Value, std::string>, Value, PackLess> packs;
};
} // namespace

std::unique_ptr<Pass> createFormClusters(Providers providers, Decisions *decisions, const runtime::MachineModel *machine,
                                         Providers hostProviders) {
  return std::make_unique<FormClusters>(std::move(providers), decisions, machine, std::move(hostProviders));
}

} // namespace tressel::passes
