#include "passes/schedule/IssueOrder.h"
#include "passes/schedule/ListSchedule.h"
#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/graph/Mesh.h"
#include "ir/graph/Structure.h"
#include "ir/sched/Sched.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

#include <limits>
#include <map>
#include <set>

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_BUILDSCHEDULE
#include "passes/Passes.h.inc"

namespace {
class BuildSchedule : public impl::BuildScheduleBase<BuildSchedule> {
public:
  BuildSchedule(const BuildScheduleOptions &options, const runtime::MachineModel *machine, Decisions *decisions)
      : BuildScheduleBase(options), machine(machine), decisions(decisions) {}

  void runOnOperation() override {
    FailureOr<func::FuncOp> found = findMain(getOperation());
    if (failed(found))
      return signalPassFailure();
    if (!*found)
      return;
    main = *found;
    buffers.clear();
    stateBuffers.clear();
    firstPhase = nullptr;
    symbols = std::make_shared<SymbolTableCollection>();
    if (failed(checkOps()))
      return signalPassFailure();
    if (isOnSeveralDevices())
      costs = std::make_shared<MachineCosts>(*machine);
    for (Operation &op : main.getBody().front())
      if (graph::isCollective(&op) && !costs) {
        op.emitOpError("is exchanged by accelerators, and the machine has none");
        return signalPassFailure();
      }
    IssueOrder order(main, /*leastMemory=*/!costs && !main->hasAttr(kOrderedAttr));
    if (costs)
      planDevices(order);
    declare(order);
    issue(order);
    main.erase();
    if (costs)
      for (auto each : llvm::make_early_inc_range(program.getBody().getOps<sched::ArenaOp>()))
        if (each.getArena().use_empty())
          each.erase();
    costs.reset();
    planned.clear();
    streamValues.clear();
    deviceStreams.clear();
    arenas.clear();
    pinned = nullptr;
    groups.clear();
    numSlots = numViews = numCollectives = 0;
  }

private:
  /// @main or a body while it is scheduled. A body is treated like a program: its carried values are states, read by
  /// the arguments and assigned by the terminator; its other yields are outputs.
  struct Scope {
    Block *block;
    SmallVector<Value> destinations; ///< buffers, by operand of the terminator
    /// by operand of the terminator: a carried value or state, whose old value an argument may still show
    std::vector<bool> isState;
    std::vector<bool> done; ///< by operand: computed in its destination, so no copy is needed
  };

  LogicalResult checkOps() {
    WalkResult scheduled = main.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == main || isWork(op) || op->hasTrait<OpTrait::IsTerminator>() || isView(op) ||
          matchPattern(op, m_Constant()))
        return WalkResult::advance();
      op->emitOpError("cannot be scheduled: run form-clusters and outline-kernels first");
      return WalkResult::interrupt();
    });
    if (scheduled.wasInterrupted())
      return failure();
    for (BlockArgument arg : main.getArguments())
      if (!attrOf(arg.getArgNumber(), true, graph::kNameAttr) && !attrOf(arg.getArgNumber(), true, graph::kStateAttr))
        return main.emitError("argument ") << arg.getArgNumber() << " needs tressel.name or tressel.state";
    return success();
  }
  StringAttr attrOf(unsigned i, bool isArg, StringRef name) {
    return isArg ? main.getArgAttrOfType<StringAttr>(i, name) : main.getResultAttrOfType<StringAttr>(i, name);
  }

  //===-- Several devices ----------------------------------------------------------------------------------------===//

  bool isOnSeveralDevices() {
    auto isElsewhere = [](Operation &op) {
      return isWork(&op) && (graph::isTransfer(&op) || graph::isCollective(&op) ||
                             graph::deviceOf(&op).value_or(graph::kHost) != graph::kHost);
    };
    auto isAtHomeElsewhere = [&](auto count, auto homeOf) {
      return llvm::any_of(llvm::seq(0u, count), [&](unsigned i) { return homeOf(i) != graph::kHost; });
    };
    return machine && machine->devices.size() > 1 &&
           (llvm::any_of(main.getBody().front(), isElsewhere) ||
            isAtHomeElsewhere(main.getNumArguments(), [&](unsigned i) { return graph::homeOfArgument(main, i); }) ||
            isAtHomeElsewhere(main.getNumResults(), [&](unsigned i) { return homeOfResult(i); }));
  }
  /// insert-transfers has resolved the homes that were "computed".
  runtime::DeviceRef homeOfResult(unsigned i) { return graph::homeOfResult(main, i).value_or(graph::kHost); }
  /// The step is ordered by the predicted begin of its ops.
  void planDevices(IssueOrder &order) {
    std::string how;
    planned = planStep(main, order, *costs, Effort::Thorough, &how);
    if (decisions && !how.empty())
      decisions->push_back({"build-schedule", {"the program", "", 0}, "commands " + how});
    for (auto [op, plan] : llvm::zip_equal(order.step, planned))
      op = plan.op;
  }
  Value streamOf(Operation *op) {
    if (!costs)
      return streamValues[0];
    if (inBody)
      return deviceStreams[{here, runtime::StreamKind::Compute}];
    return deviceStreams[passes::streamOf(op, *costs)];
  }
  void declareDevices() {
    std::set<std::pair<unsigned, runtime::StreamKind>> used;
    Block &block = main.getBody().front();
    bool stages = false;
    for (Operation &op : block)
      if (isWork(&op) && !isRowJoin(&op)) {
        used.insert(passes::streamOf(&op, *costs));
        if (graph::isTransfer(&op)) {
          const Value from = baseOf(op.getOperand(0));
          stages |= isStaged(from) || isStaged(op.getResult(0));
        }
      }
    // a result that is not computed in its destination is copied there
    for (unsigned i = 0; i < main.getNumResults(); ++i)
      used.insert({costs->indexOf(homeOfResult(i)).value_or(0), runtime::StreamKind::Compute});
    deviceStreams[{0, runtime::StreamKind::Compute}] = streamValues[0];
    arenas.assign(costs->devices().size(), Value());
    arenas[0] = arena;
    for (auto [d, device] : llvm::enumerate(costs->devices())) {
      const auto index = static_cast<unsigned>(d);
      constexpr std::pair<runtime::StreamKind, const char *> kStreams[] = {
          {runtime::StreamKind::Compute, ""},
          {runtime::StreamKind::CopyIn, ".in"},
          {runtime::StreamKind::CopyOut, ".out"},
          {runtime::StreamKind::Communication, ".comm"}};
      for (auto [kind, suffix] : kStreams)
        if (used.contains({index, kind}) && !deviceStreams.contains({index, kind}))
          deviceStreams[{index, kind}] = sched::StreamOp::create(b, main.getLoc(), b.getType<sched::StreamType>(),
                                                                 static_cast<sched::StreamKind>(kind), kindOf(index),
                                                                 device->device.index, device->name + suffix);
    }
    for (Operation &op : block)
      if (graph::isCollective(&op))
        if (Value &group = groups[graph::axesOfCollective(&op)]; !group)
          group = sched::GroupOp::create(b, op.getLoc(), b.getType<sched::GroupType>(), streamOf(&op),
                                         graph::axesOfCollective(&op), "group" + std::to_string(groups.size() - 1));
    if (stages)
      pinned = sched::ArenaOp::create(b, main.getLoc(), b.getType<sched::ArenaType>(), sched::MemoryKind::Pinned,
                                      sched::DeviceKind::Cpu, 0, IntegerAttr(), "pinned");
    for (auto [d, device] : llvm::enumerate(costs->devices()))
      if (d > 0 && llvm::any_of(used, [&](auto engine) { return engine.first == d; }))
        arenas[d] = sched::ArenaOp::create(b, main.getLoc(), b.getType<sched::ArenaType>(), sched::MemoryKind::Device,
                                           sched::DeviceKind::Gpu, device->device.index, IntegerAttr(), device->name + ".memory");
  }
  /// Whether a value of the host is copied from or to an accelerator, so that it should be pinned: copy engines access
  /// pinned memory directly.
  bool isStaged(Value value) {
    Operation *def = value.getDefiningOp();
    if (!def || !isWork(def) || homeIndexOf(value, *costs) != 0)
      return false;
    return graph::isTransfer(def) || isTransferred(value) ||
           (isRowJoin(def) && llvm::any_of(def->getOperands(), [&](Value part) { return isStaged(part); }));
  }
  bool isTransferred(Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return graph::isTransfer(user) || (isView(user) && isTransferred(user->getResult(0)));
    });
  }
  static sched::DeviceKind kindOf(runtime::DeviceRef device) { return static_cast<sched::DeviceKind>(device.kind); }
  static bool isPinned(runtime::DeviceRef home, Attribute promise) { return promise && home == graph::kHost; }
  sched::DeviceKind kindOf(unsigned device) { return device == 0 ? sched::DeviceKind::Cpu : sched::DeviceKind::Gpu; }
  uint64_t indexOf(unsigned device) { return costs ? costs->devices()[device]->device.index : 0; }
  unsigned homeOf(Value value) { return !costs ? 0 : inBody ? here : homeIndexOf(value, *costs); }

  //===-- Declarations -------------------------------------------------------------------------------------------===//

  sched::BufferType bufferType() { return b.getType<sched::BufferType>(); }
  Value view(Value base, Type type, int64_t offset = 0) {
    return offset == 0 && sched::typeOf(base) == type ? base : newView(base, type, offset);
  }
  Value newView(Value base, Type type, int64_t offset = 0) {
    OpBuilder::InsertionGuard guard(b);
    if (firstPhase)
      b.setInsertionPointAfterValue(base);
    return sched::ViewOp::create(b, base.getLoc(), bufferType(), base, offset, cast<RankedTensorType>(type),
                                 "v" + std::to_string(numViews++));
  }
  /// The buffer of a value; the view op for a view is created at first use.
  Value bufferOf(Value value) {
    if (Value buffer = buffers.lookup(value))
      return buffer;
    Value base = bufferOf(baseOf(value));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(base);
    return buffers[value] = view(base, value.getType(), offsetInBase(value));
  }

  /// The mesh of a program of one rank.
  sched::MeshAttr meshOfRanks() {
    FailureOr<graph::Mesh> mesh =
        main->hasAttr(graph::kRankProgramAttr) ? graph::meshOf(main) : FailureOr<graph::Mesh>(failure());
    if (failed(mesh))
      return {};
    SmallVector<StringAttr> names;
    SmallVector<Size> sizes;
    for (const runtime::MeshAxis &axis : mesh->axes)
      names.push_back(b.getStringAttr(axis.name)), sizes.push_back(axis.size);
    return sched::MeshAttr::get(b.getContext(), names, sizes);
  }

  void declare(const IssueOrder &order) {
    b = OpBuilder(main);
    program = sched::ProgramOp::create(b, main.getLoc(), "main", IntegerAttr(), IntegerAttr(), meshOfRanks());
    b.createBlock(&program.getBody());
    for (int64_t s = 0; s < std::max<int64_t>(streams, 1); ++s)
      streamValues.push_back(sched::StreamOp::create(b, main.getLoc(), b.getType<sched::StreamType>(),
                                                     sched::StreamKind::Compute, sched::DeviceKind::Cpu, 0,
                                                     s == 0 ? "cpu" : "cpu" + std::to_string(s)));
    arena = sched::ArenaOp::create(b, main.getLoc(), b.getType<sched::ArenaType>(), sched::MemoryKind::Device,
                                   sched::DeviceKind::Cpu, 0, IntegerAttr(), "memory");
    if (costs)
      declareDevices();
    Operation *ret = main.getBody().front().getTerminator();
    llvm::DenseSet<Attribute> written;
    for (unsigned i = 0; i < ret->getNumOperands(); ++i)
      if (StringAttr state = attrOf(i, false, graph::kStateAttr)) {
        auto arg = dyn_cast<BlockArgument>(ret->getOperand(i));
        if (!arg || attrOf(arg.getArgNumber(), true, graph::kStateAttr) != state)
          written.insert(state);
      }
    scope = {&main.getBody().front(), {}, {}, {}};
    for (BlockArgument arg : main.getArguments()) {
      auto type = cast<RankedTensorType>(arg.getType());
      const runtime::DeviceRef home = graph::homeOfArgument(main, arg.getArgNumber());
      if (StringAttr state = attrOf(arg.getArgNumber(), true, graph::kStateAttr)) {
        auto kind = written.contains(state) ? sched::StateKind::Mutable : sched::StateKind::Parameter;
        buffers[arg] = stateBuffers[state] =
            sched::StateOp::create(b, arg.getLoc(), bufferType(), kind, state, kindOf(home), home.index, type);
      } else {
        buffers[arg] = sched::InputOp::create(
            b, arg.getLoc(), bufferType(), attrOf(arg.getArgNumber(), true, graph::kNameAttr).getValue(),
            isPinned(home, main.getArgAttr(arg.getArgNumber(), graph::kPinnedAttr)), kindOf(home), home.index, type);
      }
    }
    for (unsigned i = 0; i < ret->getNumOperands(); ++i) {
      auto type = cast<RankedTensorType>(ret->getOperand(i).getType());
      const runtime::DeviceRef home = homeOfResult(i);
      if (StringAttr state = attrOf(i, false, graph::kStateAttr)) {
        Value &buffer = stateBuffers[state]; // a state may be written without being read
        if (!buffer)
          buffer = sched::StateOp::create(b, main.getLoc(), bufferType(), sched::StateKind::Mutable, state,
                                          kindOf(home), home.index, type);
        scope.destinations.push_back(buffer);
      } else {
        StringAttr name = attrOf(i, false, graph::kNameAttr);
        scope.destinations.push_back(sched::OutputOp::create(
            b, main.getLoc(), bufferType(), name ? name.str() : "out" + std::to_string(i),
            isPinned(home, main.getResultAttr(i, graph::kPinnedAttr)), kindOf(home), home.index, type));
      }
    }
    for (Value destination : scope.destinations)
      scope.isState.push_back(destination.getDefiningOp<sched::StateOp>() != nullptr);
    graph::forEachBody(main.getBody().front(), [&](Block &block) {
      for (Operation &op : block)
        // constants that are immediates of kernels have no uses
        if (ElementsAttr value; matchPattern(&op, m_Constant(&value)) && !op.use_empty())
          buffers[op.getResult(0)] = sched::ConstantOp::create(b, op.getLoc(), bufferType(), value);
    });
    declareDerived(order);
    declareStep(order, scope);
  }

  /// Declares the results of prepare: derived states if the step or the caller reads them, else buffers of the arena.
  void declareDerived(const IssueOrder &order) {
    llvm::DenseSet<Value> kept;
    for (Operation *op : order.step)
      for (Value operand : op->getOperands())
        kept.insert(baseOf(operand));
    for (Value result : main.getBody().front().getTerminator()->getOperands())
      kept.insert(baseOf(result));
    int count = 0;
    for (Operation *op : order.prepare)
      for (Value result : op->getResults()) {
        auto type = cast<RankedTensorType>(result.getType());
        if (!kept.contains(result)) {
          buffers[result] = slot(result);
          continue;
        }
        auto state = sched::StateOp::create(b, result.getLoc(), bufferType(), sched::StateKind::Derived,
                                            "derived." + std::to_string(count++), kindOf(homeOf(result)), indexOf(homeOf(result)), type);
        if (costs && isStaged(result))
          state->setAttr(sched::kPinnedStateAttr, b.getUnitAttr());
        buffers[result] = state;
      }
  }

  Value slot(Value result) {
    Value in = arena;
    if (costs)
      in = !inBody && isStaged(result) ? pinned : arenas[homeOf(result)];
    return slot(result.getLoc(), cast<RankedTensorType>(result.getType()), in);
  }
  /// A new buffer in the arena of the device for which the program or body is scheduled.
  Value slot(Location loc, RankedTensorType type) { return slot(loc, type, costs ? arenas[here] : arena); }
  Value slot(Location loc, RankedTensorType type, Value in) {
    OpBuilder::InsertionGuard guard(b);
    if (firstPhase)
      b.setInsertionPoint(firstPhase);
    return sched::BufferOp::create(b, loc, bufferType(), in, IntegerAttr(), type, "t" + std::to_string(numSlots++));
  }

  /// Declares the results of the step, or of a body: in the bytes of the output or state that they become, where that
  /// is safe; else in the arena.
  void declareStep(const IssueOrder &order, Scope &scope) {
    Operation *ret = scope.block->getTerminator();
    scope.done.assign(ret->getNumOperands(), false);
    llvm::DenseMap<Value, unsigned> direct; // by base
    llvm::DenseSet<Value> prepared;
    for (Operation *op : order.prepare)
      prepared.insert(op->result_begin(), op->result_end());
    Places places;
    if (llvm::is_contained(scope.isState, true))
      places = placesOf(order);
    for (bool states : {false, true}) // a value that is both is computed in the output, and copied to the state
      for (unsigned i = 0; i < ret->getNumOperands(); ++i) {
        Value base = baseOf(ret->getOperand(i));
        Operation *op = base.getDefiningOp();
        if (scope.isState[i] != states || !op || op->getBlock() != scope.block || !isWork(op) ||
            prepared.contains(base) || direct.contains(base) || isPartOfJoin(base) ||
            bytesOf(base.getType()) != bytesOf(ret->getOperand(i).getType()) || // only some rows of it are returned
            (states && !mayWriteEarly(scope, scope.destinations[i], base, places)))
          continue;
        direct[base] = i;
        scope.done[i] = true;
      }
    auto declare = [&](Value result) {
      if (auto at = direct.find(result); at != direct.end())
        buffers[result] = view(scope.destinations[at->second], result.getType());
      else
        buffers[result] = slot(result);
    };
    for (Operation *op : llvm::reverse(order.step)) // a join of joins before its parts
      if (isRowJoin(op)) {
        if (!buffers.contains(op->getResult(0)))
          declare(op->getResult(0));
        int64_t offset = 0;
        for (Value part : op->getOperands()) {
          buffers[part] = newView(buffers[op->getResult(0)], part.getType(), offset);
          offset += bytesOf(part.getType());
        }
      }
    for (Operation *op : order.step)
      for (Value result : op->getResults())
        if (!buffers.contains(result))
          declare(result);
  }

  /// Positions of a step's ops, and the first position behind all ops that may fail. In a body nothing needs to be
  /// preserved for a failure: its carried values are then discarded.
  struct Places {
    llvm::DenseMap<Operation *, size_t> of;
    size_t safe = 0;
  };
  Places placesOf(const IssueOrder &order) {
    Places places;
    for (auto [i, op] : llvm::enumerate(order.step)) {
      places.of[op] = i;
      if (!inBody && mayFail(op, *symbols))
        places.safe = i + 1;
    }
    return places;
  }

  /// Range of bytes of a value within its base.
  struct Bytes {
    int64_t begin = 0, end = 0;
    /// For symbolic sizes: all bytes.
    static Bytes of(Value value, int64_t begin) {
      return cast<RankedTensorType>(value.getType()).hasStaticShape() ? Bytes{begin, begin + bytesOf(value.getType())}
                                                                      : Bytes{0, std::numeric_limits<int64_t>::max()};
    }
    bool meets(const Bytes &other) const { return begin < other.end && other.begin < end; }
    bool operator==(const Bytes &) const = default;
  };
  /// Whether the op that makes `next` may write it to the bytes of `state` at once: no later op reads the old value,
  /// and no later op may fail, since a failed step must leave its states unchanged. For a join of rows this holds for
  /// each part, which lies `first` bytes behind the begin of the state.
  bool mayWriteEarly(const Scope &scope, Value state, Value next, const Places &places, int64_t first = 0) {
    Operation *def = next.getDefiningOp();
    if (def && isRowJoin(def))
      return cast<RankedTensorType>(next.getType()).hasStaticShape() &&
             llvm::all_of(def->getOperands(), [&](Value part) {
               const int64_t begin = first;
               first += bytesOf(part.getType());
               return mayWriteEarly(scope, state, part, places, begin);
             });
    const auto writes = places.of.find(def);
    if (writes == places.of.end() || writes->second < places.safe)
      return false;
    const Bytes bytes = Bytes::of(next, first);
    return llvm::all_of(scope.block->getArguments(), [&](BlockArgument arg) {
      return buffers.lookup(arg) != state || isGoneBy(arg, bytes, writes->second, cast<OpResult>(next), places);
    });
  }
  bool isGoneBy(Value old, const Bytes &bytes, size_t writes, OpResult next, const Places &places) {
    const Bytes own = Bytes::of(old, offsetInBase(old));
    return !own.meets(bytes) || llvm::all_of(old.getUses(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (isView(user))
        return isGoneBy(user->getResult(0), bytes, writes, next, places);
      const auto at = places.of.find(user); // a user that is no command of the step shows the value to the end
      return at != places.of.end() &&
             (at->second < writes || (at->second == writes && own == bytes && mayReplace(use, next)));
    });
  }

  /// Whether a result may be computed in the bytes of an operand.
  bool mayReplace(OpOperand &operand, OpResult result) {
    if (auto launch = dyn_cast<graph::LaunchOp>(operand.getOwner())) {
      auto kernel = symbols->lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr());
      return kernel && mayOverwrite(kernel, operand.getOperandNumber(), result.getResultNumber());
    }
    if (graph::isTransfer(operand.getOwner()) || graph::isCollective(operand.getOwner()) ||
        isRowJoin(operand.getOwner()))
      return false;
    // The initial value of a carried one.
    auto control = cast<graph::ControlOpInterface>(operand.getOwner());
    return result.getResultNumber() < control.numCarried() &&
           &control.getCarriedMutable()[result.getResultNumber()] == &operand && isa<BlockArgument>(operand.get());
  }

  //===-- Commands -----------------------------------------------------------------------------------------------===//

  void emit(Operation *op, Value stream) {
    if (auto launch = dyn_cast<graph::LaunchOp>(op))
      return emitLaunch(launch, stream);
    if (graph::isTransfer(op)) {
      sched::CopyOp::create(b, op->getLoc(), b.getType<sched::EventType>(), bufferOf(op->getOperand(0)),
                            bufferOf(op->getResult(0)), stream, ValueRange{}, b.getDenseI32ArrayAttr({}));
      ++numCopies;
      return;
    }
    if (isRowJoin(op))
      return;
    if (graph::isCollective(op))
      return emitCollective(op, stream);
    // A body is scheduled for the device of its op.
    llvm::SaveAndRestore device(here, inBody || !costs ? here : deviceIndexOf(op, *costs));
    if (auto cond = dyn_cast<graph::CondOp>(op))
      emitBranch(cond, stream);
    else if (auto loop = dyn_cast<graph::WhileOp>(op))
      emitWhile(loop, stream);
    else
      emitScan(cast<graph::ScanOp>(op), stream);
  }
  void emitLaunch(graph::LaunchOp launch, Value stream) {
    auto operands = [&](ValueRange values) {
      return llvm::map_to_vector(values, [&](Value v) { return bufferOf(v); });
    };
    SmallVector<Value> reads = operands(launch.getInputs()), writes = operands(launch.getResults());
    SmallVector<std::pair<Value, Value>> back;
    if (auto kernel = symbols->lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr());
        kernel && kernel->hasAttr(kAlignedAttr)) {
      for (Value &read : reads)
        if (mayLieUnaligned(read)) {
          Value whole = slot(launch.getLoc(), sched::typeOf(read));
          copy(launch.getLoc(), read, whole, stream);
          read = whole;
        }
      for (Value &write : writes)
        if (mayLieUnaligned(write)) {
          Value whole = slot(launch.getLoc(), sched::typeOf(write));
          back.push_back({whole, write});
          write = whole;
        }
    }
    sched::LaunchOp::create(b, launch.getLoc(), b.getType<sched::EventType>(), launch.getKernelAttr(), reads, writes,
                            stream, ValueRange{}, b.getDenseI32ArrayAttr({}));
    for (auto [from, to] : back)
      copy(launch.getLoc(), from, to, stream);
  }
  void emitCollective(Operation *op, Value stream) {
    const bool isGather = isa<graph::AllGatherOp>(op);
    const auto kind = isGather                          ? sched::CollectiveKind::AllGather
                      : isa<graph::ReduceScatterOp>(op) ? sched::CollectiveKind::ReduceScatter
                                                        : sched::CollectiveKind::AllReduce;
    const auto how = op->getAttrOfType<StringAttr>("by");
    const auto by = llvm::StringSwitch<sched::Reduction>(how ? how.getValue() : "sum")
                        .Case("prod", sched::Reduction::Product)
                        .Cases({"max", "any"}, sched::Reduction::Max)
                        .Cases({"min", "all"}, sched::Reduction::Min)
                        .Default(sched::Reduction::Sum);
    sched::CollectiveOp::create(b, op->getLoc(), b.getType<sched::EventType>(), kind, by, 0,
                                (isGather ? "gather." : "reduce.") + std::to_string(numCollectives++),
                                groups[graph::axesOfCollective(op)], bufferOf(op->getOperand(0)),
                                bufferOf(op->getResult(0)), stream, ValueRange{}, b.getDenseI32ArrayAttr({}));
  }
  /// Whether a buffer may begin at an offset that is no multiple of 64 bytes; only views can.
  bool mayLieUnaligned(Value buffer) const {
    constexpr int64_t kAlignment = 64;
    for (auto view = buffer.getDefiningOp<sched::ViewOp>(); view; view = view.getBase().getDefiningOp<sched::ViewOp>())
      if (!dim::divideExactly(view.getOffset(), kAlignment) ||
          (movingViews.contains(view.getResult()) &&
           !dim::divideExactly(sched::bytesOf(sched::typeOf(view.getResult())), kAlignment)))
        return true;
    return false;
  }
  void copy(Location loc, Value from, Value to, Value stream) {
    sched::CopyOp::create(b, loc, b.getType<sched::EventType>(), from, to, stream, ValueRange{},
                          b.getDenseI32ArrayAttr({}));
    ++numCopies;
  }
  /// A copy within the memory of a device.
  void copyOn(unsigned device, Location loc, Value from, Value to) {
    copy(loc, from, to, costs ? deviceStreams[{device, runtime::StreamKind::Compute}] : streamValues[0]);
  }

  void issue(const IssueOrder &order) {
    if (!order.prepare.empty()) {
      auto prepare = sched::PrepareOp::create(b, main.getLoc());
      firstPhase = prepare;
      OpBuilder::InsertionGuard guard(b);
      b.createBlock(&prepare.getBody());
      for (Operation *op : order.prepare)
        emit(op, streamOf(op));
      numPrepared += order.prepare.size();
    }
    auto step = sched::StepOp::create(b, main.getLoc());
    if (!firstPhase)
      firstPhase = step;
    b.createBlock(&step.getBody());
    issueStep(order, scope);
  }

  void issueStep(const IssueOrder &order, const Scope &scope) {
    if (costs) {
      for (auto [i, op] : llvm::enumerate(order.step)) {
        Block *block = b.getInsertionBlock();
        Operation *last = block->empty() ? nullptr : &block->back();
        emit(op, streamOf(op));
        if (!inBody && !block->empty() && &block->back() != last)
          block->back().setAttr(sched::kPlannedAttr, plannedTimes(planned[i]));
      }
      return copyResults(scope);
    }
    // A launch goes to the stream whose last command is its operand's, else to the stream with the least work.
    std::vector<int64_t> load(streamValues.size());
    std::vector<Operation *> last(streamValues.size());
    for (Operation *op : order.step) {
      size_t best = 0;
      for (size_t s = 1; s < load.size(); ++s)
        if (load[s] < load[best])
          best = s;
      for (Value operand : op->getOperands())
        for (size_t s = 0; s < last.size(); ++s)
          if (last[s] && baseOf(operand).getDefiningOp() == last[s]) {
            best = s;
            break;
          }
      if (hasEffects(op, *symbols))
        best = 0; // a common stream keeps their order
      emit(op, streamValues[best]);
      last[best] = op;
      for (Value operand : op->getOperands())
        load[best] += bytesOf(operand.getType());
    }
    copyResults(scope);
  }

  /// Begin and end in picoseconds.
  Attribute plannedTimes(const Planned &plan) {
    return b.getDenseI64ArrayAttr({static_cast<int64_t>(plan.begin * 1e12), static_cast<int64_t>(plan.end * 1e12)});
  }

  void copyResults(const Scope &scope) {
    // Outputs first, as they may show the old value of a state. Then old values that become the next value of another
    // state, through a buffer so that states can be exchanged. Then states.
    Operation *ret = scope.block->getTerminator();
    const Location loc = ret->getLoc();
    llvm::SmallDenseSet<Operation *> states; // states that get a next value
    for (unsigned i = 0; i < ret->getNumOperands(); ++i)
      if (scope.isState[i])
        states.insert(sched::rangeOf(scope.destinations[i]).base);
    auto deviceOf = [&](unsigned i) { return inBody || !costs ? here : costs->indexOf(homeOfResult(i)).value_or(0); };
    SmallVector<std::tuple<unsigned, Value, Value>> late;
    for (unsigned i = 0; i < ret->getNumOperands(); ++i)
      if (!scope.done[i] && !scope.isState[i])
        copyOn(deviceOf(i), loc, bufferOf(ret->getOperand(i)), scope.destinations[i]);
    for (unsigned i = 0; i < ret->getNumOperands(); ++i) {
      if (scope.done[i] || !scope.isState[i])
        continue;
      Value from = bufferOf(ret->getOperand(i));
      Operation *source = sched::rangeOf(from).base;
      if (source == sched::rangeOf(scope.destinations[i]).base)
        continue; // unchanged
      if (states.contains(source) && isa<BlockArgument>(baseOf(ret->getOperand(i)))) {
        Value kept =
            slot(loc, cast<RankedTensorType>(ret->getOperand(i).getType()), costs ? arenas[deviceOf(i)] : arena);
        copyOn(deviceOf(i), loc, from, kept);
        from = kept;
      }
      late.push_back({deviceOf(i), from, scope.destinations[i]});
    }
    for (auto [device, from, to] : late)
      copyOn(device, loc, from, to);
  }

  //===-- Bodies -------------------------------------------------------------------------------------------------===//

  void emitBranch(graph::CondOp cond, Value stream) {
    auto branch =
        sched::BranchOp::create(b, cond.getLoc(), b.getType<sched::EventType>(), bufferOf(cond.getCondition()), stream,
                                ValueRange{}, b.getDenseI32ArrayAttr({}));
    for (auto [from, to] : llvm::zip(cond->getRegions(), branch->getRegions()))
      scheduleBody(cond, from.front(), to, resultsOf(cond), 0);
  }

  void emitWhile(graph::WhileOp loop, Value stream) {
    copyCarried(loop);
    Value flag = slot(loop.getLoc(),
                      cast<RankedTensorType>(loop.getCondition().front().getTerminator()->getOperand(0).getType()));
    auto repeated = sched::WhileOp::create(b, loop.getLoc(), b.getType<sched::EventType>(), flag, stream, ValueRange{},
                                           b.getDenseI32ArrayAttr({}));
    scheduleBody(loop, loop.getCondition().front(), repeated.getCondition(), {flag}, 0);
    scheduleBody(loop, loop.getBody().front(), repeated.getBody(), resultsOf(loop), loop.getCarried().size());
  }

  void emitScan(graph::ScanOp scan, Value stream) {
    copyCarried(scan);
    if (scan.getTrips() == 0)
      return;
    Block &body = scan.getBody().front();
    BlockArgument number = body.getArgument(0);
    Value index = number.use_empty() ? Value() : slot(scan.getLoc(), cast<RankedTensorType>(number.getType()));
    buffers[number] = index;
    // Slices of operands and places of stacked results are views that move by their own size.
    SmallVector<Value> moving, destinations = resultsOf(scan);
    auto part = [&](Value whole, Type type) {
      moving.push_back(newView(whole, type));
      movingViews.insert(moving.back());
      return moving.back();
    };
    graph::ControlOpInterface control = scan;
    for (unsigned i = 0; i < control.numSlices(); ++i) {
      BlockArgument argument = body.getArgument(control.firstSlice() + i);
      buffers[argument] = part(bufferOf(control.slice(i)), argument.getType());
    }
    for (unsigned i = control.numCarried(); i < destinations.size(); ++i)
      destinations[i] = part(destinations[i], body.getTerminator()->getOperand(i).getType());
    auto loop =
        sched::LoopOp::create(b, scan.getLoc(), b.getType<sched::EventType>(), scan.getTripsAttr(), index, moving,
                              stream, ValueRange{}, b.getDenseI32ArrayAttr({}));
    scheduleBody(scan, body, loop.getBody(), destinations, control.numCarried());
  }

  SmallVector<Value> resultsOf(Operation *op) {
    return llvm::map_to_vector(op->getResults(), [&](Value result) { return bufferOf(result); });
  }

  /// Copies initial values of carried ones to the buffers of the results.
  void copyCarried(graph::ControlOpInterface op) {
    for (unsigned i = 0; i < op.numCarried(); ++i)
      if (Value from = bufferOf(op.carried(i)), to = bufferOf(op->getResult(i)); from != to)
        copyOn(here, op.getLoc(), from, to);
  }

  /// The first `numStates` destinations belong to carried values.
  void scheduleBody(graph::ControlOpInterface op, Block &block, Region &to, SmallVector<Value> destinations,
                    size_t numStates) {
    for (unsigned i = 0; i < op.numCarried(); ++i)
      buffers[block.getArgument(op.firstCarried() + i)] = bufferOf(op->getResult(i));
    for (unsigned i = 0; i < op.numInvariants(); ++i)
      buffers[block.getArgument(op.firstInvariant() + i)] = bufferOf(op.invariant(i));
    Scope scope{&block, std::move(destinations), {}, {}};
    for (size_t i = 0; i < scope.destinations.size(); ++i)
      scope.isState.push_back(i < numStates);
    llvm::SaveAndRestore body(inBody, true);
    IssueOrder order(block);
    declareStep(order, scope);
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&to);
    issueStep(order, scope);
  }

  func::FuncOp main;
  sched::ProgramOp program;
  OpBuilder b{static_cast<MLIRContext *>(nullptr)};
  std::shared_ptr<SymbolTableCollection> symbols; // set during a run
  const runtime::MachineModel *machine;
  Decisions *decisions;
  std::shared_ptr<MachineCosts> costs; ///< set for a program on several devices
  std::vector<Planned> planned;      ///< by op of the step
  std::map<std::pair<unsigned, runtime::StreamKind>, Value> deviceStreams;
  SmallVector<Value> arenas; ///< by device
  Value pinned;              ///< arena of values of the host that are copied from or to accelerators
  unsigned here = 0;         ///< device for which commands are created
  bool inBody = false;
  SmallVector<Value> streamValues;
  Scope scope;                     // of @main
  Operation *firstPhase = nullptr; // declarations are inserted before it
  Value arena;
  int numSlots = 0, numViews = 0, numCollectives = 0;
  llvm::MapVector<Attribute, Value> groups; ///< by axes of the collective
  llvm::DenseMap<Value, Value> buffers;
  llvm::DenseSet<Value> movingViews; ///< views that a loop moves
  llvm::DenseMap<Attribute, Value> stateBuffers;
};
} // namespace

std::unique_ptr<Pass> createBuildSchedule(const BuildScheduleOptions &options, const runtime::MachineModel *machine,
                                          Decisions *decisions) {
  return std::make_unique<BuildSchedule>(options, machine, decisions);
}

} // namespace tressel::passes
