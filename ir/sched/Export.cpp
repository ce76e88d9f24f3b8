#include "ir/sched/Export.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "tressel/runtime/Dim.h"
#include "tressel/runtime/Ranks.h"
#include "tressel/runtime/VerifySchedule.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/ErrorHandling.h"

#include <cstring>

using namespace mlir;

namespace tressel::sched {

std::string epilogueSymbol(StringRef kernel) { return (kernel + "_epilogue").str(); }

/// The symbols of the sizes, in the order of the inputs that determine them. Symbols of the mesh are excluded, as they
/// get their values otherwise.
static std::vector<Size> symbolsOf(const runtime::Schedule &s) {
  std::vector<Size> symbols;
  auto isOfMesh = [&](Size size) {
    return llvm::any_of(
        s.mesh, [&](const runtime::MeshAxis &axis) { return size == axis.size || size == runtime::rankSymbol(axis); });
  };
  for (const runtime::ValueDesc &input : s.inputs)
    for (Size size : input.type.shape)
      if (dim::isSymbol(size) && !isOfMesh(size) && !llvm::is_contained(symbols, size))
        symbols.push_back(size);
  return symbols;
}

static int64_t alignedTo64(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// The enumerators are duplicated so that the runtime needs no MLIR; these assertions keep them equal.
static_assert(int(StreamKind::Communication) == int(runtime::StreamKind::Communication) &&
              int(graph::KernelTarget::GpuLibrary) == int(runtime::KernelTarget::GpuLibrary) &&
              int(MemoryKind::Host) == int(runtime::MemoryKind::Host) &&
              int(StateKind::Derived) == int(runtime::StateKind::Derived) &&
              int(WaitReason::Rank) == int(runtime::WaitReason::Rank) &&
              int(DeviceKind::Gpu) == int(runtime::DeviceKind::Gpu) &&
              int(CollectiveKind::Broadcast) == int(runtime::CollectiveKind::Broadcast) &&
              int(Reduction::Max) == int(runtime::Reduction::Max));

namespace {
/// Walks a program once, filling the tables of the flat schedule.
class Exporter {
public:
  explicit Exporter(ProgramOp program) : program(program), module(program->getParentOfType<ModuleOp>()) {}

  FailureOr<Exported> run() {
    runtime::Schedule &s = out.schedule;
    s.name = program.getSymName().str();
    s.peakBytes = program.getPeakBytes().value_or(0);
    s.peakLowerBoundBytes = program.getPeakLowerBoundBytes().value_or(0);
    s.inFlight = static_cast<uint32_t>(program.getInFlight());
    s.locations.emplace_back();
    if (auto mesh = program.getMesh())
      for (auto [name, size] : llvm::zip(mesh->getNames(), mesh->getSizes()))
        s.mesh.push_back({name.str(), size});
    for (Operation &op : program.getBody().front())
      if (failed(declare(op)))
        return failure();
    if (PrepareOp prepare = program.getPrepare())
      exportPhase(prepare.getBody().front(), s.prepare, out.prepare);
    exportPhase(program.getStep().getBody().front(), s.step, out.step);
    s.dims = symbolsOf(s);
    return std::move(out);
  }

private:
  static runtime::DeviceRef device(DeviceKind kind, uint64_t index) {
    return {static_cast<runtime::DeviceKind>(kind), static_cast<uint16_t>(index)};
  }

  static runtime::Home home(DeviceKind kind, uint64_t index, bool pinned) {
    runtime::Home home = runtime::homeOn(device(kind, index));
    if (runtime::isHost(home) && pinned)
      home.memory = runtime::MemoryKind::Pinned;
    return home;
  }

  LogicalResult declare(Operation &op) {
    runtime::Schedule &s = out.schedule;
    if (auto stream = dyn_cast<StreamOp>(op)) {
      indices[stream.getStream()] = static_cast<uint32_t>(s.streams.size());
      s.streams.push_back({device(stream.getDevice(), stream.getIndex()),
                           static_cast<runtime::StreamKind>(stream.getKind()), stream.getName().str()});
    } else if (auto group = dyn_cast<GroupOp>(op)) {
      Group &to = groups[group.getGroup()];
      for (Value member : group.getStreams())
        to.members.push_back(indices.lookup(member));
      if (group.getAxes())
        for (uint32_t axis = 0; axis < s.mesh.size(); ++axis)
          if (llvm::any_of(*group.getAxes(),
                           [&](Attribute name) { return cast<StringAttr>(name).getValue() == s.mesh[axis].name; }))
            to.axes.push_back(axis);
    } else if (auto arena = dyn_cast<ArenaOp>(op)) {
      if (!arena.getSize())
        return op.emitOpError("has no size: memory is not planned yet");
      indices[arena.getArena()] = static_cast<uint32_t>(s.arenas.size());
      s.arenas.push_back({device(arena.getDevice(), arena.getIndex()),
                          static_cast<runtime::MemoryKind>(arena.getMemory()), *arena.getSize()});
    } else if (auto buffer = dyn_cast<BufferOpInterface>(op)) {
      return declareBuffer(buffer);
    }
    return success();
  }

  LogicalResult declareBuffer(BufferOpInterface op) {
    runtime::Schedule &s = out.schedule;
    TensorType type = graph::fromMlir(op.getTensorType());
    runtime::BufferDesc desc{.bytes = dim::bytes(type), .type = type};
    if (auto input = dyn_cast<InputOp>(*op)) {
      desc.space = runtime::Space::Input;
      desc.index = static_cast<uint32_t>(s.inputs.size());
      s.inputs.push_back({input.getName().str(), type, home(input.getDevice(), input.getIndex(), input.getPinned())});
    } else if (auto output = dyn_cast<OutputOp>(*op)) {
      desc.space = runtime::Space::Output;
      desc.index = static_cast<uint32_t>(s.outputs.size());
      s.outputs.push_back(
          {output.getName().str(), type, home(output.getDevice(), output.getIndex(), output.getPinned())});
    } else if (auto state = dyn_cast<StateOp>(*op)) {
      desc.space = runtime::Space::State;
      desc.index = static_cast<uint32_t>(s.states.size());
      s.states.push_back({state.getName().str(), type, static_cast<runtime::StateKind>(state.getKind()),
                          home(state.getDevice(), state.getIndex(), op->hasAttr(kPinnedStateAttr))});
    } else if (isa<ConstantOp>(*op)) {
      desc.space = runtime::Space::Constant;
      desc.index = static_cast<uint32_t>(s.constants.size());
      s.constants.push_back({constantEnd, desc.bytes.number()});
      constantEnd += alignedTo64(desc.bytes.number());
    } else if (auto slot = dyn_cast<BufferOp>(*op)) {
      if (!slot.getOffset())
        return op.emitOpError("has no place in its arena: memory is not planned yet");
      desc.index = indices.lookup(slot.getArena());
      desc.offset = *slot.getOffset();
    } else {
      auto view = cast<ViewOp>(*op);
      const runtime::BufferDesc &base = s.buffers[indices.lookup(view.getBase())];
      desc.space = base.space;
      desc.index = base.index;
      desc.offset = base.offset + view.getOffset();
    }
    indices[op.getBuffer()] = static_cast<uint32_t>(s.buffers.size());
    s.buffers.push_back(desc);
    out.buffers.push_back(op);
    return success();
  }

  uint32_t kernel(LaunchOp launch) {
    auto [at, isNew] = kernels.insert({launch.getKernelAttr().getAttr(), out.schedule.kernels.size()});
    if (!isNew)
      return at->second;
    auto op = symbols.lookupSymbolIn<graph::KernelOp>(module, launch.getKernelAttr());
    runtime::KernelDesc desc;
    desc.symbol = op.getSymName().str();
    desc.provider = op.getProvider().str();
    desc.target = static_cast<runtime::KernelTarget>(op.getTarget());
    desc.params = op.getParams().str();
    if (op.getRootOps())
      desc.epilogue = epilogueSymbol(op.getSymName());
    desc.numInputs = static_cast<int32_t>(op.getArgumentTypes().size());
    desc.range = op.getRange();
    desc.grain = static_cast<int64_t>(op.getGrain());
    desc.scratchBytes = op.getScratch();
    desc.flops = static_cast<int64_t>(op.getFlops());
    desc.bytes = static_cast<int64_t>(op.getBytes());
    desc.costs = graph::costsOf(op);
    desc.runnerUp = graph::runnerUpOf(op);
    desc.moves = graph::movesElements(op);
    desc.floats = graph::floatModeOf(op);
    out.schedule.kernels.push_back(std::move(desc));
    return at->second;
  }

  /// A kernel's scalars: the symbols in its body, in the order in which code generation reads them.
  const std::vector<Size> &scalars(LaunchOp launch) {
    auto [at, isNew] = kernelSymbols.try_emplace(launch.getKernelAttr().getAttr());
    if (isNew)
      at->second = graph::symbolsOf(symbols.lookupSymbolIn<graph::KernelOp>(module, launch.getKernelAttr()));
    return at->second;
  }

  uint32_t collective(CollectiveOp part) {
    auto [at, isNew] = collectives.insert({part.getName(), static_cast<uint32_t>(out.schedule.collectives.size())});
    if (isNew) {
      const Group &group = groups[part.getGroup()];
      out.schedule.collectives.push_back(
          {part.getName().str(), group.members, static_cast<runtime::CollectiveKind>(part.getKind()),
           static_cast<runtime::Reduction>(part.getReduction()), static_cast<uint32_t>(part.getRoot()), group.axes});
    }
    return at->second;
  }

  /// A kernel of the provider "host", named after the function, with a number appended if it is called with different
  /// signatures.
  uint32_t hostFunction(HostCallOp call) {
    const auto index = static_cast<uint32_t>(out.schedule.kernels.size());
    auto [at, isNew] = hostFunctions.insert({(call.getFunction() + "|" + call.getParams()).str(), index});
    if (isNew) {
      const bool isUsed = llvm::any_of(out.schedule.kernels, [&](const runtime::KernelDesc &k) { return k.symbol == call.getFunction(); });
      out.schedule.kernels.push_back({.symbol = call.getFunction().str() + (isUsed ? "#" + std::to_string(index) : ""),
                                      .provider = "host",
                                      .target = runtime::KernelTarget::HostFunction,
                                      .params = call.getParams().str()});
    }
    return at->second;
  }

  uint32_t location(CommandOpInterface op) {
    std::string what = op->getName().stripDialect().str();
    if (auto launch = dyn_cast<LaunchOp>(*op)) {
      auto callee = symbols.lookupSymbolIn<graph::KernelOp>(module, launch.getKernelAttr());
      what = graph::describeBody(callee.getBody(), callee.getProvider());
    }
    graph::FileLine at = graph::fileLineOf(op->getLoc());
    std::string key = what + "\n" + at.file + "\n" + std::to_string(at.line);
    auto [found, isNew] = locations.insert({key, static_cast<uint32_t>(out.schedule.locations.size())});
    if (isNew)
      out.schedule.locations.push_back({what, at.file, at.line});
    return found->second;
  }

  static uint64_t fillBits(FillOp fill) {
    if (auto value = dyn_cast<FloatAttr>(fill.getValue()))
      return value.getValue().bitcastToAPInt().getZExtValue();
    return cast<IntegerAttr>(fill.getValue()).getValue().getZExtValue();
  }

  void exportPhase(Block &block, runtime::CommandList &to, std::vector<Operation *> &ops) {
    for (auto op : block.getOps<CommandOpInterface>()) {
      runtime::Command c;
      c.stream = static_cast<uint16_t>(indices.lookup(op.getStream()));
      if (auto launch = dyn_cast<LaunchOp>(*op)) {
        c.kind = runtime::CommandKind::Launch;
        c.kernel = kernel(launch);
        c.firstScalar = static_cast<uint32_t>(to.scalars.size());
        for (Size symbol : scalars(launch))
          to.scalars.push_back(symbol);
        c.numScalars = static_cast<uint16_t>(to.scalars.size() - c.firstScalar);
      } else if (auto fill = dyn_cast<FillOp>(*op)) {
        c.kind = runtime::CommandKind::Fill;
        c.fillValue = fillBits(fill);
      } else if (auto part = dyn_cast<CollectiveOp>(*op)) {
        c.kind = runtime::CommandKind::Collective;
        c.kernel = collective(part);
      } else if (auto call = dyn_cast<HostCallOp>(*op)) {
        c.kind = runtime::CommandKind::HostCall;
        c.kernel = hostFunction(call);
      } else if (op->getNumRegions()) {
        exportBodies(op, c);
      } else {
        c.kind = runtime::CommandKind::Copy;
      }
      c.firstOperand = static_cast<uint32_t>(to.operands.size());
      for (Value read : op.getReads())
        to.operands.push_back({indices.lookup(read), runtime::Access::Read});
      for (Value written : op.getWrites())
        to.operands.push_back({indices.lookup(written), runtime::Access::Write});
      if (auto loop = dyn_cast<LoopOp>(*op)) {
        c.firstScalar = static_cast<uint32_t>(to.scalars.size());
        to.scalars.push_back(loop.getTrips());
        for (auto [buffer, stride] : movedBy(loop)) {
          to.operands.push_back({buffer, runtime::Access::Read});
          to.scalars.push_back(stride);
        }
        c.numScalars = static_cast<uint16_t>(to.scalars.size() - c.firstScalar);
      }
      c.numOperands = static_cast<uint16_t>(to.operands.size() - c.firstOperand);
      c.firstWait = static_cast<uint32_t>(to.waits.size());
      for (auto [event, reason] : llvm::zip(op.getAfter(), op.getReasons()))
        to.waits.push_back({commands.lookup(event), static_cast<runtime::WaitReason>(reason)});
      c.numWaits = static_cast<uint16_t>(to.waits.size() - c.firstWait);
      c.loc = location(op);
      commands[op.getEvent()] = static_cast<uint32_t>(to.commands.size());
      to.commands.push_back(c);
      ops.push_back(op);
    }
  }

  void exportBodies(CommandOpInterface op, runtime::Command &c) {
    c.kind = isa<BranchOp>(op)  ? runtime::CommandKind::Branch
             : isa<WhileOp>(op) ? runtime::CommandKind::While
                                : runtime::CommandKind::Loop;
    c.body = static_cast<uint32_t>(out.schedule.bodies.size());
    out.schedule.bodies.resize(c.body + op->getNumRegions());
    out.bodies.resize(out.schedule.bodies.size());
    for (auto [i, region] : llvm::enumerate(op->getRegions())) {
      runtime::CommandList body; // `bodies` may be reallocated meanwhile
      std::vector<Operation *> ops;
      exportPhase(region.front(), body, ops);
      out.schedule.bodies[c.body + i] = std::move(body);
      out.bodies[c.body + i] = std::move(ops);
    }
  }

  /// The buffers that the loop moves and its body accesses, with their strides.
  llvm::MapVector<uint32_t, Size> movedBy(LoopOp loop) {
    llvm::MapVector<uint32_t, Size> moved;
    loop.getBody().walk([&](CommandOpInterface command) {
      for (OperandRange operands : {command.getReads(), command.getWrites()})
        for (Value buffer : operands)
          if (Value moving = loop.movingOf(buffer))
            moved.insert({indices.lookup(buffer), bytesOf(typeOf(moving))});
    });
    return moved;
  }

  ProgramOp program;
  ModuleOp module;
  SymbolTableCollection symbols; // caches lookups: a scan of the module per launch would be quadratic
  Exported out;
  DenseMap<Value, uint32_t> indices;  // of streams, arenas and buffers
  DenseMap<Value, uint32_t> commands; // by event
  DenseMap<StringAttr, uint32_t> kernels;
  DenseMap<StringAttr, std::vector<Size>> kernelSymbols;
  llvm::StringMap<uint32_t> locations, collectives, hostFunctions;
  struct Group {
    std::vector<uint32_t> members, axes;
  };
  DenseMap<Value, Group> groups;
  int64_t constantEnd = 0;
};
} // namespace

FailureOr<Exported> exportWithOps(ProgramOp program) { return Exporter(program).run(); }

runtime::Schedule exportSchedule(ProgramOp program) {
  FailureOr<Exported> exported = exportWithOps(program);
  if (failed(exported))
    llvm::report_fatal_error("exportSchedule: the program's memory is not planned");
  return std::move(exported->schedule);
}

/// Makes the ownership of a blob's bytes shared, so that the bytes outlive the context.
static std::shared_ptr<const void> shareOwner(AsmResourceBlob &blob) {
  struct Owner {
    AsmResourceBlob::DeleterFn deleter;
    ArrayRef<char> data;
    size_t alignment;
    ~Owner() { deleter(const_cast<char *>(data.data()), data.size(), alignment); }
  };
  if (!blob.getDeleter())
    return nullptr; // not owned by the context
  std::shared_ptr<Owner> owner(new Owner{std::move(blob.getDeleter()), blob.getData(), blob.getDataAlignment()});
  blob.getDeleter() = [owner](void *, size_t, size_t) {};
  return owner;
}

runtime::Blob exportConstants(ProgramOp program) {
  runtime::Blob blob;
  for (auto constant : program.getBody().getOps<ConstantOp>()) {
    auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue());
    if (AsmResourceBlob *held = resource ? resource.getRawHandle().getBlob() : nullptr) {
      const ArrayRef<char> raw = held->getData();
      blob.add(std::as_bytes(std::span(raw.data(), raw.size())), shareOwner(*held));
    } else {
      const op::HostTensor value = *graph::elementsValue(constant.getValue());
      blob.add({value.data.get(), static_cast<size_t>(value.type.bytes())}, value.data);
    }
  }
  return blob;
}

LogicalResult verifySchedule(ProgramOp program) {
  FailureOr<Exported> exported = exportWithOps(program);
  if (failed(exported))
    return failure();
  std::vector<runtime::Violation> violations = runtime::verifySchedule(exported->schedule);
  for (const runtime::Violation &v : violations) {
    auto opsOf = [&](int64_t body) -> const std::vector<Operation *> & {
      if (body >= 0)
        return exported->bodies[static_cast<size_t>(body)];
      return v.phase == runtime::Phase::Prepare ? exported->prepare : exported->step;
    };
    const std::vector<Operation *> &ops = opsOf(v.body);
    auto at = [](const std::vector<Operation *> &list, int64_t index) -> Operation * {
      return index >= 0 && index < static_cast<int64_t>(list.size()) ? list[static_cast<size_t>(index)] : nullptr;
    };
    Operation *op = at(ops, v.command);
    if (!op)
      op = at(exported->buffers, v.buffer);
    InFlightDiagnostic error = (op ? op : program.getOperation())->emitError(v.message);
    if (Operation *other = at(opsOf(v.otherBody), v.otherCommand))
      error.attachNote(other->getLoc()) << "the other command";
    if (Operation *buffer = at(exported->buffers, v.buffer); buffer && buffer != op)
      error.attachNote(buffer->getLoc()) << "the buffer";
  }
  return success(violations.empty());
}

} // namespace tressel::sched
