#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "ir/sched/Sched.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

#include <set>

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_BUILDSCHEDULE
#include "passes/Passes.h.inc"

namespace {
bool isView(Operation *op) {
  const op::OpInfo *info = graph::infoOf(op);
  return info && info->isView;
}
/// The value whose bytes a chain of views shows.
Value baseOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isView(def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

/// Which launches run in prepare, and in which order those of the step run.
class Order {
public:
  Order(func::FuncOp main) : block(main.getBody().front()) {
    for (Operation &op : block)
      if (auto launch = dyn_cast<graph::LaunchOp>(op))
        launches.push_back(launch);
    splitPrepare(main);
    std::vector<graph::LaunchOp> greedy = leastMemoryFirst();
    if (peakOf(greedy) < peakOf(step))
      step = std::move(greedy);
  }

  std::vector<graph::LaunchOp> prepare, step;
  bool isPrepared(Value base) const { return prepared.contains(base); }

private:
  /// Work on parameters and constants moves unless it makes so much of so little that keeping the result costs more
  /// memory than the program had parameters.
  void splitPrepare(func::FuncOp main) {
    constexpr int64_t kFree = 64 * 1024, kGrowth = 4;
    SymbolTableCollection symbols;
    for (Value value : parameterOnlyValues(main))
      if (!baseOf(value).getDefiningOp<graph::LaunchOp>())
        prepared.insert(value);
    for (graph::LaunchOp launch : launches) {
      int64_t in = 0, out = 0;
      bool known = !isRandom(launch, symbols) && !isSymbolic(launch, symbols);
      for (Value operand : launch.getInputs()) {
        in += bytesOf(operand.getType());
        known &= prepared.contains(baseOf(operand));
      }
      for (Value result : launch.getResults())
        out += bytesOf(result.getType());
      if (known && out <= kFree + kGrowth * in) {
        prepare.push_back(launch);
        prepared.insert(launch.result_begin(), launch.result_end());
      } else {
        step.push_back(launch);
      }
    }
  }

  /// Whether its kernel takes sizes of the call, which prepare does not know.
  static bool isSymbolic(graph::LaunchOp launch, SymbolTableCollection &symbols) {
    auto kernel = symbols.lookupNearestSymbolFrom<graph::KernelOp>(launch, launch.getKernelAttr());
    return kernel && !graph::symbolsOf(kernel).empty();
  }

  /// Bytes of arena memory that launches of the step make, by value, with the number of launches that read each.
  struct Live {
    int64_t bytes = 0, readers = 0;
  };
  llvm::DenseMap<Value, Live> stepValues() const {
    llvm::DenseMap<Value, Live> values;
    for (graph::LaunchOp launch : step)
      for (Value result : launch.getResults())
        values[result] = {bytesOf(result.getType()), 0};
    for (graph::LaunchOp launch : step)
      for (Value base : basesRead(launch))
        if (auto at = values.find(base); at != values.end())
          ++at->second.readers;
    for (Value result : block.getTerminator()->getOperands())
      if (auto at = values.find(baseOf(result)); at != values.end())
        ++at->second.readers; // never freed
    return values;
  }
  static SmallVector<Value> basesRead(graph::LaunchOp launch) {
    llvm::SmallSetVector<Value, 8> bases;
    for (Value operand : launch.getInputs())
      bases.insert(baseOf(operand));
    return bases.takeVector();
  }
  static int64_t growth(graph::LaunchOp launch, const llvm::DenseMap<Value, Live> &values) {
    int64_t bytes = 0;
    for (Value result : launch.getResults())
      bytes += values.lookup(result).bytes;
    for (Value base : basesRead(launch))
      if (Live live = values.lookup(base); live.readers == 1)
        bytes -= live.bytes;
    return bytes;
  }
  static void run(graph::LaunchOp launch, llvm::DenseMap<Value, Live> &values) {
    for (Value base : basesRead(launch))
      if (auto at = values.find(base); at != values.end())
        --at->second.readers;
  }

  int64_t peakOf(ArrayRef<graph::LaunchOp> order) const {
    llvm::DenseMap<Value, Live> values = stepValues();
    int64_t now = 0, peak = 0;
    for (graph::LaunchOp launch : order) {
      int64_t made = 0;
      for (Value result : launch.getResults())
        made += values.lookup(result).bytes;
      peak = std::max(peak, now + made);
      now += growth(launch, values);
      run(launch, values);
    }
    return peak;
  }

  /// List scheduling: of the first few that are ready, the launch that leaves the least memory live.
  std::vector<graph::LaunchOp> leastMemoryFirst() const {
    constexpr int kWindow = 16;
    llvm::DenseMap<Value, Live> values = stepValues();
    llvm::DenseMap<Operation *, size_t> missing;
    llvm::DenseMap<Value, SmallVector<size_t>> readers;
    std::set<size_t> ready; // in program order
    for (auto [i, launch] : llvm::enumerate(step)) {
      size_t count = 0;
      for (Value base : basesRead(launch))
        if (values.contains(base)) {
          readers[base].push_back(i);
          ++count;
        }
      missing[launch] = count;
      if (count == 0)
        ready.insert(i);
    }
    std::vector<graph::LaunchOp> order;
    while (!ready.empty()) {
      auto best = ready.begin();
      int64_t least = growth(step[*best], values);
      int seen = 0;
      for (auto at = ready.begin(); at != ready.end() && seen < kWindow; ++at, ++seen)
        if (int64_t bytes = growth(step[*at], values); bytes < least) {
          best = at;
          least = bytes;
        }
      graph::LaunchOp launch = step[*best];
      ready.erase(best);
      order.push_back(launch);
      run(launch, values);
      for (Value result : launch.getResults())
        for (size_t reader : readers.lookup(result))
          if (--missing[step[reader]] == 0)
            ready.insert(reader);
    }
    return order;
  }

  Block &block;
  std::vector<graph::LaunchOp> launches;
  llvm::DenseSet<Value> prepared;
};

class BuildSchedule : public impl::BuildScheduleBase<BuildSchedule> {
public:
  using BuildScheduleBase::BuildScheduleBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> found = findMain(getOperation());
    if (failed(found))
      return signalPassFailure();
    if (!*found)
      return;
    main = *found;
    buffers.clear();
    stateBuffers.clear();
    symbols = std::make_shared<SymbolTableCollection>();
    if (failed(checkOps()))
      return signalPassFailure();
    Order order(main);
    declare(order);
    issue(order);
    main.erase();
  }

private:
  LogicalResult checkOps() {
    for (Operation &op : main.getBody().front())
      if (!isa<graph::LaunchOp, func::ReturnOp>(op) && !isView(&op) && !matchPattern(&op, m_Constant()))
        return op.emitOpError("cannot be scheduled: run form-clusters and outline-kernels first");
    for (BlockArgument arg : main.getArguments())
      if (!attrOf(arg.getArgNumber(), true, graph::kNameAttr) && !attrOf(arg.getArgNumber(), true, graph::kStateAttr))
        return main.emitError("argument ") << arg.getArgNumber() << " needs tressel.name or tressel.state";
    return success();
  }
  StringAttr attrOf(unsigned i, bool isArg, StringRef name) {
    return isArg ? main.getArgAttrOfType<StringAttr>(i, name) : main.getResultAttrOfType<StringAttr>(i, name);
  }

  //===-- Declarations -------------------------------------------------------------------------------------------===//

  sched::BufferType bufferType() { return b.getType<sched::BufferType>(); }
  Value view(Value base, Type type) {
    if (sched::typeOf(base) == type)
      return base;
    return sched::ViewOp::create(b, base.getLoc(), bufferType(), base, 0, cast<RankedTensorType>(type),
                                 "v" + std::to_string(numViews++));
  }
  /// The buffer of a value; that of a view is made when it is first asked for.
  Value bufferOf(Value value) {
    if (Value buffer = buffers.lookup(value))
      return buffer;
    Value base = bufferOf(baseOf(value));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(base);
    return buffers[value] = view(base, value.getType());
  }

  void declare(const Order &order) {
    b = OpBuilder(main);
    program = sched::ProgramOp::create(b, main.getLoc(), "main", IntegerAttr(), IntegerAttr());
    b.createBlock(&program.getBody());
    for (int64_t s = 0; s < std::max<int64_t>(streams, 1); ++s)
      streamValues.push_back(sched::StreamOp::create(b, main.getLoc(), b.getType<sched::StreamType>(),
                                                     sched::StreamKind::Compute, sched::DeviceKind::Cpu, 0,
                                                     s == 0 ? "cpu" : "cpu" + std::to_string(s)));
    arena = sched::ArenaOp::create(b, main.getLoc(), b.getType<sched::ArenaType>(), sched::MemoryKind::Device,
                                   sched::DeviceKind::Cpu, 0, IntegerAttr(), "memory");
    Operation *ret = main.getBody().front().getTerminator();
    llvm::DenseSet<Attribute> written;
    for (unsigned i = 0; i < ret->getNumOperands(); ++i)
      if (StringAttr state = attrOf(i, false, graph::kStateAttr)) {
        auto arg = dyn_cast<BlockArgument>(ret->getOperand(i));
        if (!arg || attrOf(arg.getArgNumber(), true, graph::kStateAttr) != state)
          written.insert(state);
      }
    for (BlockArgument arg : main.getArguments()) {
      auto type = cast<RankedTensorType>(arg.getType());
      if (StringAttr state = attrOf(arg.getArgNumber(), true, graph::kStateAttr)) {
        auto kind = written.contains(state) ? sched::StateKind::Mutable : sched::StateKind::Parameter;
        buffers[arg] = stateBuffers[state] = sched::StateOp::create(b, arg.getLoc(), bufferType(), kind, state, type);
      } else {
        buffers[arg] = sched::InputOp::create(b, arg.getLoc(), bufferType(),
                                              attrOf(arg.getArgNumber(), true, graph::kNameAttr).getValue(), type);
      }
    }
    for (unsigned i = 0; i < ret->getNumOperands(); ++i) {
      auto type = cast<RankedTensorType>(ret->getOperand(i).getType());
      if (StringAttr state = attrOf(i, false, graph::kStateAttr)) {
        Value &buffer = stateBuffers[state]; // a state may be written without being read
        if (!buffer)
          buffer = sched::StateOp::create(b, main.getLoc(), bufferType(), sched::StateKind::Mutable, state, type);
        destinations.push_back(buffer);
      } else {
        StringAttr name = attrOf(i, false, graph::kNameAttr);
        destinations.push_back(sched::OutputOp::create(b, main.getLoc(), bufferType(),
                                                       name ? name.str() : "out" + std::to_string(i), type));
      }
    }
    for (Operation &op : main.getBody().front())
      if (ElementsAttr value; matchPattern(&op, m_Constant(&value)) && !op.use_empty()) // kernels hold their own
        buffers[op.getResult(0)] = sched::ConstantOp::create(b, op.getLoc(), bufferType(), value);
    declareDerived(order);
    declareStep(order);
  }

  /// What prepare makes: kept if the step or the caller sees it, else in the arena.
  void declareDerived(const Order &order) {
    llvm::DenseSet<Value> kept;
    for (graph::LaunchOp launch : order.step)
      for (Value operand : launch.getInputs())
        kept.insert(baseOf(operand));
    for (Value result : main.getBody().front().getTerminator()->getOperands())
      kept.insert(baseOf(result));
    int count = 0;
    for (graph::LaunchOp launch : order.prepare)
      for (Value result : launch.getResults()) {
        auto type = cast<RankedTensorType>(result.getType());
        if (kept.contains(result))
          buffers[result] = sched::StateOp::create(b, result.getLoc(), bufferType(), sched::StateKind::Derived,
                                                   "derived." + std::to_string(count++), type);
        else
          buffers[result] = slot(result.getLoc(), type);
      }
  }

  Value slot(Location loc, RankedTensorType type) {
    return sched::BufferOp::create(b, loc, bufferType(), arena, IntegerAttr(), type, "t" + std::to_string(numSlots++));
  }

  /// What the step makes: in the bytes of the output or state that it becomes, where that is safe; else in the arena.
  void declareStep(const Order &order) {
    Operation *ret = main.getBody().front().getTerminator();
    done.assign(ret->getNumOperands(), false);
    llvm::DenseMap<Value, unsigned> direct; // by base
    llvm::DenseSet<Value> prepared;
    for (graph::LaunchOp launch : order.prepare)
      prepared.insert(launch.result_begin(), launch.result_end());
    for (bool states : {false, true}) // a value that is both is computed in the output and copied to the state
      for (unsigned i = 0; i < ret->getNumOperands(); ++i) {
        Value base = baseOf(ret->getOperand(i));
        auto launch = base.getDefiningOp<graph::LaunchOp>();
        bool isState = destinations[i].getDefiningOp<sched::StateOp>() != nullptr;
        if (isState != states || !launch || prepared.contains(base) || direct.contains(base) ||
            (isState && !mayWriteEarly(destinations[i], launch, order)))
          continue;
        direct[base] = i;
        done[i] = true;
      }
    for (graph::LaunchOp launch : order.step)
      for (Value result : launch.getResults()) {
        if (auto at = direct.find(result); at != direct.end())
          buffers[result] = view(destinations[at->second], result.getType());
        else
          buffers[result] = slot(result.getLoc(), cast<RankedTensorType>(result.getType()));
      }
  }

  /// Whether nobody needs the old value of a state once `launch` writes the new one.
  bool mayWriteEarly(Value state, graph::LaunchOp launch, const Order &order) {
    Value old;
    for (BlockArgument arg : main.getArguments())
      if (buffers.lookup(arg) == state)
        old = arg;
    if (!old)
      return true;
    for (Value result : main.getBody().front().getTerminator()->getOperands())
      if (baseOf(result) == old)
        return false;
    bool written = false;
    for (graph::LaunchOp other : order.step) {
      for (auto [i, operand] : llvm::enumerate(other.getInputs()))
        if (baseOf(operand) == old) {
          auto kernel = symbols->lookupNearestSymbolFrom<graph::KernelOp>(other, other.getKernelAttr());
          if (written || (other == launch && !(kernel && mayOverwrite(kernel, static_cast<unsigned>(i)))))
            return false;
        }
      written |= other == launch;
    }
    return true;
  }

  //===-- Commands -----------------------------------------------------------------------------------------------===//

  void emit(graph::LaunchOp launch, Value stream) {
    auto operands = [&](ValueRange values) {
      return llvm::map_to_vector(values, [&](Value v) { return bufferOf(v); });
    };
    SmallVector<Value> reads = operands(launch.getInputs()), writes = operands(launch.getResults());
    sched::LaunchOp::create(b, launch.getLoc(), b.getType<sched::EventType>(), launch.getKernelAttr(), reads, writes,
                            stream, ValueRange{}, b.getDenseI32ArrayAttr({}));
  }
  void copy(Location loc, Value from, Value to) {
    sched::CopyOp::create(b, loc, b.getType<sched::EventType>(), from, to, streamValues[0], ValueRange{},
                          b.getDenseI32ArrayAttr({}));
    ++numCopies;
  }

  void issue(const Order &order) {
    if (!order.prepare.empty()) {
      auto prepare = sched::PrepareOp::create(b, main.getLoc());
      OpBuilder::InsertionGuard guard(b);
      b.createBlock(&prepare.getBody());
      for (graph::LaunchOp launch : order.prepare)
        emit(launch, streamValues[0]);
      numPrepared += order.prepare.size();
    }
    auto step = sched::StepOp::create(b, main.getLoc());
    b.createBlock(&step.getBody());
    // A launch follows what it reads on that stream if it comes next there, else goes to the stream with least work.
    std::vector<int64_t> load(streamValues.size());
    std::vector<Operation *> last(streamValues.size());
    for (graph::LaunchOp launch : order.step) {
      size_t best = 0;
      for (size_t s = 1; s < load.size(); ++s)
        if (load[s] < load[best])
          best = s;
      for (Value operand : launch.getInputs())
        for (size_t s = 0; s < last.size(); ++s)
          if (last[s] && baseOf(operand).getDefiningOp() == last[s]) {
            best = s;
            break;
          }
      emit(launch, streamValues[best]);
      last[best] = launch;
      for (Value operand : launch.getOperands())
        load[best] += bytesOf(operand.getType());
    }
    copyResults();
    streamValues.clear();
    destinations.clear();
    numSlots = numViews = 0;
  }

  void copyResults() {
    // Outputs first, as they may show the old value of a state; then old values that become another state's, through a
    // slot, so that states can be exchanged; then states.
    Operation *ret = main.getBody().front().getTerminator();
    SmallVector<std::pair<Value, Value>> late;
    for (unsigned i = 0; i < ret->getNumOperands(); ++i)
      if (!done[i] && !destinations[i].getDefiningOp<sched::StateOp>())
        copy(main.getLoc(), bufferOf(ret->getOperand(i)), destinations[i]);
    for (unsigned i = 0; i < ret->getNumOperands(); ++i) {
      if (done[i] || !destinations[i].getDefiningOp<sched::StateOp>())
        continue;
      Value from = bufferOf(ret->getOperand(i));
      auto source = dyn_cast<sched::StateOp>(sched::rangeOf(from).base);
      if (source && source.getBuffer() == destinations[i])
        continue; // the state itself
      if (source && source.getKind() == sched::StateKind::Mutable) {
        Value kept;
        {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointAfterValue(arena);
          kept = slot(main.getLoc(), cast<RankedTensorType>(ret->getOperand(i).getType()));
        }
        copy(main.getLoc(), from, kept);
        from = kept;
      }
      late.push_back({from, destinations[i]});
    }
    for (auto [from, to] : late)
      copy(main.getLoc(), from, to);
  }

  func::FuncOp main;
  sched::ProgramOp program;
  OpBuilder b{static_cast<MLIRContext *>(nullptr)};
  std::shared_ptr<SymbolTableCollection> symbols; // of one run
  SmallVector<Value> streamValues, destinations;  // by stream, by result
  std::vector<bool> done;                         // by result: nothing to copy
  Value arena;
  int numSlots = 0, numViews = 0;
  llvm::DenseMap<Value, Value> buffers;
  llvm::DenseMap<Attribute, Value> stateBuffers;
};
} // namespace
} // namespace tressel::passes
