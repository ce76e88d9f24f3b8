#include "passes/verify/VerifyEach.h"

#include "passes/verify/ExtractProgram.h"
#include "passes/Util.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Stage.h"
#include "ir/graph/Structure.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Interpreter.h"

#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <cstring>

using namespace mlir;

namespace tressel::passes {

/// Flops and bytes of an op with those nested in it.
static int64_t workOf(Operation *root) {
  int64_t work = 0;
  root->walk([&](Operation *op) {
    work += flopsOf(op);
    for (Type type : op->getResultTypes())
      work += bytesOf(type);
  });
  return work;
}

LogicalResult verifyInPieces(ModuleOp module, const PipelineOptions &options) {
  FailureOr<func::FuncOp> main = findMain(module);
  if (failed(main) || !*main)
    return success();
  PipelineOptions each = options;
  each.inputs.clear();
  each.timings = nullptr;
  SmallVector<Operation *> piece;
  int64_t work = 0;
  auto check = [&]() -> LogicalResult {
    if (piece.empty())
      return success();
    ExtractedProgram program = extractProgram(piece);
    piece.clear();
    work = 0;
    return program.results.empty() ? success() : runPipeline(*program.module, each);
  };
  for (Operation &op : main->getBody().front().without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue; // constants are copied to their uses
    const int64_t own = workOf(&op);
    if (own > options.verifyWork) {
      op.emitRemark("is not checked after each pass: interpreting it takes ")
          << own << " operations, more than " << options.verifyWork;
      if (failed(check()))
        return failure();
      continue;
    }
    if (work + own > options.verifyWork && failed(check()))
      return failure();
    piece.push_back(&op);
    work += own;
  }
  return check();
}

DifferentialCheck::DifferentialCheck(ModuleOp module, const PipelineOptions &options) {
  FailureOr<func::FuncOp> main = findMain(module);
  if (failed(main) || !*main)
    return;
  auto isKnown = [](Type type) { return graph::isSupported(type) && dim::isKnown(graph::fromMlir(type).shape); };
  if (!llvm::all_of(main->getArgumentTypes(), isKnown)) {
    main->emitRemark("results are not compared after each pass: shapes are not known");
    return;
  }
  // Symbolic sizes get small values, so such programs are never too large.
  tooLarge = options.inputs.empty() && graph::symbolsOf(*main).empty() && workOf(*main) > options.verifyWork;
  if (tooLarge)
    return;
  auto slot = [](StringAttr state, StringAttr name, unsigned i) {
    return Slot{state != nullptr, state ? state.str() : name ? name.str() : "out" + std::to_string(i)};
  };
  for (unsigned i = 0; i < main->getNumArguments(); ++i)
    arguments.push_back(slot(main->getArgAttrOfType<StringAttr>(i, graph::kStateAttr),
                             main->getArgAttrOfType<StringAttr>(i, graph::kNameAttr), i));
  for (unsigned i = 0; i < main->getNumResults(); ++i)
    results.push_back(slot(main->getResultAttrOfType<StringAttr>(i, graph::kStateAttr),
                           main->getResultAttrOfType<StringAttr>(i, graph::kNameAttr), i));
  // Different small values, so that an exchange of two symbols is noticed.
  for (int64_t size = 3; Size symbol : graph::symbolsOf(*main)) {
    const dim::Bounds range = dim::bounds(symbol);
    dims.bind(symbol, std::clamp(size, range.lo, range.hi));
    size += 2;
  }
  inputs = options.inputs.empty() ? graph::randomInputs(*main, options.seed, -1, 1, dims) : options.inputs;
  before = interpret(module);
  enabled = before.error.empty();
  if (!enabled)
    main->emitRemark("results are not compared after each pass: ") << before.error;
}

LogicalResult DifferentialCheck::check(ModuleOp module, StringRef pass, Contract contract) {
  if (!enabled)
    return success();
  if (pass == "shard")
    noteRanks(module);
  if (pass == "expand-ranks")
    expandRanks(module);
  if (!enabled)
    return success();
  Results after = interpret(module);
  if (!after.error.empty())
    return module.emitError("after the pass '") << pass << "' the program cannot be interpreted: " << after.error;
  for (auto [i, result] : llvm::enumerate(results)) {
    op::interp::Tolerance tolerance =
        contract == Contract::Exact ? op::interp::kExact : op::interp::looseTolerance(after.values[i].type.dtype);
    if (contract == Contract::Precision)
      tolerance = {1e-2, 1e-2, 0};
    if (std::string why = op::interp::compare(after.values[i], before.values[i], tolerance); !why.empty())
      return module.emitError("the pass '") << pass << "' changed the " << (result.isState ? "state" : "output")
                                            << " \"" << result.name << "\": " << why;
  }
  before = std::move(after);
  return success();
}

void DifferentialCheck::noteRanks(ModuleOp module) {
  FailureOr<func::FuncOp> main = findMain(module);
  FailureOr<graph::Mesh> found = failed(main) || !*main ? FailureOr<graph::Mesh>(failure()) : graph::meshOf(*main);
  if (succeeded(found))
    mesh = *found;
}

/// From here on, each argument or result that lies on the ranks has one argument or result per rank.
void DifferentialCheck::expandRanks(ModuleOp module) {
  FailureOr<func::FuncOp> main = findMain(module);
  if (mesh.empty() || failed(main) || !*main || (*main)->hasAttr(graph::kCutAttr))
    return;
  if ((*main)->hasAttr(graph::kRankProgramAttr)) { // a single rank has no results that could be compared
    enabled = false;
    return;
  }
  auto expand = [&](std::vector<Slot> &slots, std::vector<op::HostTensor> &values, auto attributeOf) {
    std::vector<Slot> newSlots;
    std::vector<op::HostTensor> newValues;
    for (auto [slot, value] : llvm::zip_equal(slots, values)) {
      const auto i = static_cast<unsigned>(newSlots.size());
      if (auto words = dyn_cast_if_present<StringAttr>(attributeOf(i, graph::kShardingAttr))) {
        const auto parts = graph::partsOf(value, graph::parseSharding(words, value.type.rank(), mesh).sharding, mesh);
        // As in ExpandRanks: micro-batches of one accelerator share its arguments.
        const int64_t rows = attributeOf(i, graph::kStageAttr) ? 1 : mesh.inRow;
        for (int64_t row = 0, number = 0; row < rows; ++row)
          for (auto [rank, part] : llvm::enumerate(parts))
            if (mesh.microBatchOf(static_cast<int64_t>(rank)) == 0) {
              newSlots.push_back({slot.isState, graph::nameOfPart(slot.name, number++)});
              newValues.push_back(part);
            }
      } else {
        newSlots.push_back(slot);
        newValues.push_back(value);
      }
    }
    slots = std::move(newSlots);
    values = std::move(newValues);
  };
  expand(arguments, inputs, [&](unsigned i, StringRef name) { return (*main).getArgAttr(i, name); });
  expand(results, before.values, [&](unsigned i, StringRef name) { return (*main).getResultAttr(i, name); });
  mesh = {};
}

DifferentialCheck::Results DifferentialCheck::interpret(ModuleOp module) const {
  FailureOr<func::FuncOp> main = findMain(module);
  if (failed(main))
    return {{}, "the module is not one program"};
  if (!*main) {
    auto programs = module.getOps<sched::ProgramOp>();
    if (programs.empty())
      return {{}, "the module holds neither @main nor a sched.program"};
    return interpretSchedule(module, *programs.begin());
  }
  graph::Interpretation run = graph::interpret(*main, inputs);
  return {std::move(run.outputs), std::move(run.error)};
}

namespace {
/// Executes a schedule in issue order on real bytes, so that a wrong offset gives a wrong result.
class ScheduleMachine {
public:
  ScheduleMachine(ModuleOp module, sched::ProgramOp program, const dim::Values &dims)
      : module(module), program(program), dims(dims) {
    for (auto arena : program.getBody().getOps<sched::ArenaOp>())
      if (arena.getSize())
        memory[arena].assign(static_cast<size_t>(dim::evaluate(*arena.getSize(), dims)), kPoison);
    for (auto buffer : program.getBody().getOps<sched::BufferOpInterface>())
      if (Operation *base = spaceOf(buffer).first; !memory.contains(base))
        memory[base].assign(static_cast<size_t>(dim::evaluate(sched::bytesOf(sched::typeOf(buffer.getBuffer())), dims)),
                            kPoison);
    for (auto constant : program.getBody().getOps<sched::ConstantOp>())
      store(constant.getBuffer(), graph::elementsValue(constant.getValue()).value());
  }

  void store(Value buffer, const op::HostTensor &value) {
    std::memcpy(bytes(buffer), value.data.get(), static_cast<size_t>(value.type.bytes()));
  }
  op::HostTensor load(Value buffer) {
    TensorType type = graph::fromMlir(sched::typeOf(buffer));
    type.shape = dim::evaluate(type.shape, dims);
    op::HostTensor value = op::HostTensor::allocate(type);
    std::memcpy(value.data.get(), bytes(buffer), static_cast<size_t>(value.type.bytes()));
    return value;
  }

  std::string run(Block &phase) {
    for (Operation &op : phase) {
      auto command = cast<sched::CommandOpInterface>(op);
      if (auto launch = dyn_cast<sched::LaunchOp>(op)) {
        if (std::string error = run(launch); !error.empty())
          return error;
      } else if (auto copy = dyn_cast<sched::CopyOp>(op)) {
        op::HostTensor value = load(copy.getSource());
        std::memcpy(bytes(copy.getDestination()), value.data.get(), static_cast<size_t>(value.type.bytes()));
      } else if (op.getNumRegions()) {
        if (std::string error = runBodies(command); !error.empty())
          return error;
      } else {
        return "the interpreter does not know " + op.getName().getStringRef().str();
      }
      (void)command;
    }
    return "";
  }

private:
  static constexpr std::byte kPoison{0xCD};

  int64_t sizeOf(Size size) const { return dim::evaluate(size, dims); }

  std::string runBodies(sched::CommandOpInterface command) {
    auto isSet = [&](Value flag) { return *bytes(flag) != std::byte(0); };
    if (auto branch = dyn_cast<sched::BranchOp>(*command))
      return run((isSet(branch.getFlag()) ? branch.getThen() : branch.getOtherwise()).front());
    std::string error;
    if (auto loop = dyn_cast<sched::WhileOp>(*command)) {
      while ((error = run(loop.getCondition().front())).empty() && isSet(loop.getFlag()))
        if (error = run(loop.getBody().front()); !error.empty())
          return error;
      return error;
    }
    auto loop = cast<sched::LoopOp>(*command);
    const int64_t trips = sizeOf(loop.getTrips());
    for (int64_t i = 0; i < trips && error.empty(); ++i) {
      if (loop.getIndex())
        std::memcpy(bytes(loop.getIndex()), &i, sizeof(i));
      for (Value buffer : loop.getMoving())
        moved[buffer] = i * sizeOf(sched::bytesOf(sched::typeOf(buffer)));
      error = run(loop.getBody().front());
    }
    for (Value buffer : loop.getMoving())
      moved.erase(buffer);
    return error;
  }

  /// The arena, binding or buffer that contains a buffer, and its offset.
  std::pair<Operation *, int64_t> spaceOf(sched::BufferOpInterface buffer) {
    sched::BufferRange range = sched::rangeOf(buffer.getBuffer());
    if (auto slot = dyn_cast<sched::BufferOp>(range.base); slot && slot.getOffset())
      return {slot.getArena().getDefiningOp(), sizeOf(range.offset) + sizeOf(*slot.getOffset())};
    return {range.base, sizeOf(range.offset)};
  }
  std::byte *bytes(Value buffer) {
    auto [base, offset] = spaceOf(cast<sched::BufferOpInterface>(buffer.getDefiningOp()));
    for (auto view = buffer.getDefiningOp<sched::ViewOp>(); view; view = view.getBase().getDefiningOp<sched::ViewOp>())
      offset += moved.lookup(view.getBuffer());
    return memory[base].data() + offset;
  }

  std::string run(sched::LaunchOp launch) {
    auto kernel = symbols.lookupSymbolIn<graph::KernelOp>(module, launch.getKernelAttr());
    std::vector<op::HostTensor> results;
    if (kernel.isExternal()) { // a pack, whose bytes no body reads
      results.push_back(op::HostTensor::allocate(graph::fromMlir(kernel.getResultTypes()[0])));
    } else {
      llvm::DenseMap<Value, op::HostTensor> values;
      for (auto [arg, read] : llvm::zip(kernel.getBody().getArguments(), launch.getReads()))
        values[arg] = load(read);
      for (Operation &op : kernel.getBody().front()) {
        std::vector<op::HostTensor> operands;
        for (Value operand : op.getOperands())
          operands.push_back(values.lookup(operand));
        if (isa<graph::YieldOp>(op)) {
          results = std::move(operands);
          break;
        }
        if (std::optional<op::HostTensor> constant =
                op.getNumResults() == 1 ? graph::constantValue(op.getResult(0)) : std::nullopt) {
          values[op.getResult(0)] = *constant;
          continue;
        }
        graph::Interpretation run = graph::interpret(&op, operands, dims);
        if (!run)
          return run.error;
        for (auto [result, value] : llvm::zip(op.getResults(), run.outputs))
          values[result] = value;
      }
    }
    for (auto [written, value] : llvm::zip(launch.getWrites(), results))
      store(written, value);
    return "";
  }

  ModuleOp module;
  sched::ProgramOp program;
  const dim::Values &dims;
  SymbolTableCollection symbols;
  llvm::DenseMap<Value, int64_t> moved;                 // buffers that a loop moves: offset in bytes at this iteration
  std::map<Operation *, std::vector<std::byte>> memory; // by arena, binding or buffer without a place
};
} // namespace

DifferentialCheck::Results DifferentialCheck::interpretSchedule(ModuleOp module, sched::ProgramOp program) const {
  ScheduleMachine machine(module, program, dims);
  std::map<std::pair<bool, std::string>, Value> bindings; // (is a state, name)
  for (Operation &op : program.getBody().front()) {
    if (auto input = dyn_cast<sched::InputOp>(op))
      bindings[{false, input.getName().str()}] = input.getBuffer();
    else if (auto state = dyn_cast<sched::StateOp>(op))
      bindings[{true, state.getName().str()}] = state.getBuffer();
  }
  for (auto [argument, value] : llvm::zip(arguments, inputs))
    if (Value buffer = bindings[{argument.isState, argument.name}])
      machine.store(buffer, value);
  Results out;
  if (sched::PrepareOp prepare = program.getPrepare())
    out.error = machine.run(prepare.getBody().front());
  if (out.error.empty())
    out.error = machine.run(program.getStep().getBody().front());
  if (!out.error.empty())
    return out;
  for (auto output : program.getBody().getOps<sched::OutputOp>())
    bindings[{false, output.getName().str()}] = output.getBuffer();
  for (const Slot &result : results)
    if (Value buffer = bindings[{result.isState, result.name}])
      out.values.push_back(machine.load(buffer));
    else
      return {{},
              "the schedule has no " + std::string(result.isState ? "state" : "output") + " \"" + result.name + "\""};
  return out;
}

} // namespace tressel::passes
