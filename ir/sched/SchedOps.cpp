// Syntax, names and verifiers of the ops.
#include "ir/sched/Sched.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "mlir/IR/Builders.h"
#include "tressel/runtime/Dim.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

//===-- Syntax
//-------------------------------------------------------------------------------------------------------===//

// The name of a stream or buffer is that of its SSA result. `named "x"` is printed only if the printer had to change it
// (duplicates, characters that SSA names cannot have).
static ParseResult parseResultName(OpAsmParser &parser, StringAttr &name) {
  std::string text;
  if (succeeded(parser.parseOptionalKeyword("named"))) {
    if (parser.parseString(&text))
      return failure();
  } else if (StringRef result = parser.getResultName(0).first; !result.empty() && !llvm::isDigit(result[0])) {
    text = result.str();
  }
  name = parser.getBuilder().getStringAttr(text);
  return success();
}
static void printResultName(OpAsmPrinter &p, Operation *op, StringAttr name) {
  std::string printed;
  llvm::raw_string_ostream os(printed);
  p.printOperand(op->getResult(0), os);
  StringRef shown = StringRef(printed).drop_front(); // the %
  if (shown != name && !(name.empty() && !shown.empty() && llvm::isDigit(shown[0]))) {
    p << " named ";
    p.printString(name);
  }
}

// `after %e0 data, %e1 war`
static ParseResult parseAfter(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &events,
                              DenseI32ArrayAttr &reasons) {
  SmallVector<int32_t> values;
  if (succeeded(parser.parseOptionalKeyword("after"))) {
    auto one = [&]() -> ParseResult {
      StringRef word;
      SMLoc loc;
      if (parser.parseOperand(events.emplace_back()))
        return failure();
      loc = parser.getCurrentLocation();
      if (parser.parseKeyword(&word))
        return failure();
      auto reason = tressel::sched::symbolizeWaitReason(word);
      if (!reason)
        return parser.emitError(loc, "expected a reason to wait (data, war, pace or rank), found '") << word << "'";
      values.push_back(static_cast<int32_t>(*reason));
      return success();
    };
    if (parser.parseCommaSeparatedList(one))
      return failure();
  }
  reasons = parser.getBuilder().getDenseI32ArrayAttr(values);
  return success();
}
static void printAfter(OpAsmPrinter &p, Operation *, OperandRange events, DenseI32ArrayAttr reasons) {
  if (events.empty())
    return;
  p << " after ";
  llvm::interleaveComma(llvm::enumerate(events), p, [&](auto item) {
    auto reason = tressel::sched::symbolizeWaitReason(static_cast<uint32_t>(reasons[item.index()]));
    p << item.value() << ' ' << (reason ? tressel::sched::stringifyWaitReason(*reason) : "?");
  });
}

using tressel::graph::parseSize;
using tressel::graph::printSize;
#define GET_OP_CLASSES
#include "ir/sched/SchedOps.cpp.inc"

namespace tressel::sched {

static void nameResult(OpAsmSetValueNameFn set, Value value, StringRef name) {
  if (!name.empty())
    set(value, name);
}
void StreamOp::getAsmResultNames(OpAsmSetValueNameFn set) { nameResult(set, getStream(), getName()); }
void GroupOp::getAsmResultNames(OpAsmSetValueNameFn set) { nameResult(set, getGroup(), getName()); }
void ArenaOp::getAsmResultNames(OpAsmSetValueNameFn set) { nameResult(set, getArena(), getName()); }
void InputOp::getAsmResultNames(OpAsmSetValueNameFn set) { nameResult(set, getBuffer(), getName()); }
void OutputOp::getAsmResultNames(OpAsmSetValueNameFn set) { nameResult(set, getBuffer(), getName()); }
void StateOp::getAsmResultNames(OpAsmSetValueNameFn set) { nameResult(set, getBuffer(), getName()); }
void ConstantOp::getAsmResultNames(OpAsmSetValueNameFn set) { nameResult(set, getBuffer(), "constant"); }
void BufferOp::getAsmResultNames(OpAsmSetValueNameFn set) { nameResult(set, getBuffer(), getName()); }
void ViewOp::getAsmResultNames(OpAsmSetValueNameFn set) { nameResult(set, getBuffer(), getName()); }

//===-- Buffers
//------------------------------------------------------------------------------------------------------===//

RankedTensorType InputOp::getTensorType() { return cast<RankedTensorType>(getType()); }
RankedTensorType OutputOp::getTensorType() { return cast<RankedTensorType>(getType()); }
RankedTensorType StateOp::getTensorType() { return cast<RankedTensorType>(getType()); }
RankedTensorType ConstantOp::getTensorType() { return cast<RankedTensorType>(getValue().getType()); }
RankedTensorType BufferOp::getTensorType() { return cast<RankedTensorType>(getType()); }
RankedTensorType ViewOp::getTensorType() { return cast<RankedTensorType>(getType()); }

RankedTensorType typeOf(Value buffer) { return cast<BufferOpInterface>(buffer.getDefiningOp()).getTensorType(); }

Size bytesOf(RankedTensorType type) { return dim::bytes(graph::fromMlir(type)); }

BufferRange rangeOf(Value buffer) {
  BufferRange range{nullptr, 0, bytesOf(typeOf(buffer))};
  while (auto view = buffer.getDefiningOp<ViewOp>()) {
    range.offset += view.getOffset();
    buffer = view.getBase();
  }
  range.base = buffer.getDefiningOp();
  return range;
}

LogicalResult detail::verifyBuffer(Operation *op) {
  auto buffer = cast<BufferOpInterface>(op);
  if (auto constant = dyn_cast<ConstantOp>(op); constant && !isa<RankedTensorType>(constant.getValue().getType()))
    return op->emitOpError("holds ") << constant.getValue().getType() << ", but a buffer holds a ranked tensor";
  RankedTensorType type = buffer.getTensorType();
  if (!graph::isSupported(type) || !dim::isKnown(graph::fromMlir(type).shape))
    return op->emitOpError("needs a tensor of known sizes and a type that Tressel has, not ") << type;
  if (!type.hasStaticShape() && isa<StateOp, ConstantOp>(op))
    return op->emitOpError("has a fixed size for all calls, not ") << type;
  return success();
}

LogicalResult GroupOp::verify() {
  if (getAxes() && getStreams().size() != 1)
    return emitOpError("(rule 1) over axes of the mesh has one stream, that of this rank, not ") << getStreams().size();
  return success();
}

LogicalResult BufferOp::verify() {
  if (!getOffset())
    return success();
  // With symbolic sizes, the verifier of schedules checks what cannot be decided here, for each call.
  const Size offset = *getOffset(), end = offset + bytesOf(getTensorType());
  if (dim::bounds(offset).hi < 0 || !dim::equal(dim::mod(offset, 64), 0))
    return emitOpError("(rule 1) lies at ") << dim::str(offset) << ", which is no multiple of 64";
  auto arena = getArena().getDefiningOp<ArenaOp>();
  if (!arena || !arena.getSize() || dim::less(*arena.getSize(), end).value_or(false))
    return emitOpError("(rule 2) ends at ") << dim::str(end) << ", outside its arena";
  return success();
}

LogicalResult ViewOp::verify() {
  auto base = getBase().getDefiningOp<BufferOpInterface>();
  const Size offset = getOffset();
  if (!base || dim::bounds(offset).lo < 0 ||
      dim::less(bytesOf(base.getTensorType()), offset + bytesOf(getTensorType())).value_or(false))
    return emitOpError("(rule 1) reaches beyond its base");
  return success();
}

//===-- Commands
//-----------------------------------------------------------------------------------------------------===//

OperandRange CopyOp::getReads() { return getODSOperands(0); }
OperandRange CopyOp::getWrites() { return getODSOperands(1); }
OperandRange FillOp::getReads() { return getOperation()->getOperands().take_front(0); }
OperandRange FillOp::getWrites() { return getODSOperands(0); }

OperandRange CollectiveOp::getReads() { return getODSOperands(1); }
OperandRange CollectiveOp::getWrites() { return getODSOperands(2); }
LogicalResult HostCallOp::verify() {
  if (getFunction().empty())
    return emitOpError("(rule 1) calls a function without a name");
  return success();
}

OperandRange BranchOp::getReads() { return getODSOperands(0); }
OperandRange BranchOp::getWrites() { return getOperation()->getOperands().take_front(0); }
OperandRange WhileOp::getReads() { return getODSOperands(0); }
OperandRange WhileOp::getWrites() { return getOperation()->getOperands().take_front(0); }
OperandRange LoopOp::getReads() { return getOperation()->getOperands().take_front(0); }
OperandRange LoopOp::getWrites() { return getODSOperands(0); }

template <typename OpT> static LogicalResult verifyFlag(OpT op) {
  RankedTensorType type = typeOf(op.getFlag());
  if (!type.getElementType().isInteger(1) || bytesOf(type) != 1)
    return op.emitOpError("(rule 1) the flag must be one bool, not ") << type;
  return success();
}
LogicalResult BranchOp::verify() { return verifyFlag(*this); }
LogicalResult WhileOp::verify() { return verifyFlag(*this); }

LogicalResult LoopOp::verify() {
  if (getIndex() && (!typeOf(getIndex()).getElementType().isInteger(64) || bytesOf(typeOf(getIndex())) != 8))
    return emitOpError("(rule 1) the index must be one i64, not ") << typeOf(getIndex());
  for (Value buffer : getMoving()) {
    auto view = buffer.getDefiningOp<ViewOp>();
    if (!view)
      return emitOpError("(rule 2) moves a buffer that is no view");
    Size base = bytesOf(typeOf(view.getBase())), end = view.getOffset() + getTrips() * bytesOf(typeOf(buffer));
    if (dim::less(base, end).value_or(false))
      return emitOpError("(rule 2) moves a buffer to byte ")
             << dim::str(end) << " of the " << dim::str(base) << " bytes that it is a part of";
  }
  return success();
}

Value LoopOp::movingOf(Value buffer) {
  for (;;) {
    if (llvm::is_contained(getMoving(), buffer))
      return buffer;
    auto view = buffer.getDefiningOp<ViewOp>();
    if (!view)
      return {};
    buffer = view.getBase();
  }
}

static SmallVector<Value> touchedBy(CommandOpInterface command, bool writes) {
  OperandRange own = writes ? command.getWrites() : command.getReads();
  SmallVector<Value> touched(own);
  auto loop = dyn_cast<LoopOp>(*command);
  for (Region &region : command->getRegions())
    for (auto inner : region.getOps<CommandOpInterface>())
      for (Value buffer : touchedBy(inner, writes)) {
        Value moving = loop ? loop.movingOf(buffer) : Value();
        touched.push_back(moving ? moving.getDefiningOp<ViewOp>().getBase() : buffer);
      }
  if (command->getNumRegions()) {
    llvm::SmallSetVector<Value, 8> unique(touched.begin(), touched.end());
    touched = unique.takeVector();
  }
  return touched;
}
SmallVector<Value> readsOf(CommandOpInterface command) { return touchedBy(command, false); }
SmallVector<Value> writesOf(CommandOpInterface command) { return touchedBy(command, true); }

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<graph::KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("(rule 1) ") << getKernelAttr() << " is not a tressel.kernel of this module";
  auto types = [](OperandRange buffers) {
    return llvm::map_to_vector(buffers, [](Value b) -> Type { return typeOf(b); });
  };
  auto type = FunctionType::get(getContext(), types(getReads()), types(getWrites()));
  if (type != kernel.getFunctionType())
    return emitOpError("(rule 2) has buffers of ") << type << " but the kernel is " << kernel.getFunctionType();
  return success();
}

LogicalResult CopyOp::verify() {
  if (bytesOf(typeOf(getSource())) != bytesOf(typeOf(getDestination())))
    return emitOpError("(rule 1) copies ")
           << dim::str(bytesOf(typeOf(getSource()))) << " bytes to "
           << dim::str(bytesOf(typeOf(getDestination())));
  return success();
}

LogicalResult FillOp::verify() {
  auto value = dyn_cast<TypedAttr>(getValue());
  if (!value || value.getType() != typeOf(getDestination()).getElementType())
    return emitOpError("(rule 1) the value must have the buffer's element type");
  return success();
}

LogicalResult detail::verifyCommand(Operation *op) {
  auto command = cast<CommandOpInterface>(op);
  if (command.getAfter().size() != command.getReasons().size())
    return op->emitOpError("needs one reason per event");
  for (Value event : command.getAfter())
    if (event.getParentBlock() != op->getBlock())
      return op->emitOpError("waits for a command of another body: only commands of the same one can be waited for");
  for (int32_t reason : command.getReasons())
    if (!symbolizeWaitReason(static_cast<uint32_t>(reason)))
      return op->emitOpError("has an unknown reason to wait, number ") << reason;
  return success();
}

//===-- The program
//--------------------------------------------------------------------------------------------------===//

PrepareOp ProgramOp::getPrepare() {
  auto ops = getBody().getOps<PrepareOp>();
  return ops.empty() ? PrepareOp() : *ops.begin();
}
StepOp ProgramOp::getStep() { return *getBody().getOps<StepOp>().begin(); }

/// Why a command of this phase may not write `base`; empty if it may.
static StringRef whyNotWritten(Operation *base, bool inPrepare) {
  if (isa<InputOp>(base))
    return "an input";
  if (isa<ConstantOp>(base))
    return "a constant";
  if (isa<OutputOp>(base))
    return inPrepare ? "an output, in prepare" : "";
  if (auto state = dyn_cast<StateOp>(base)) {
    if (state.getKind() == StateKind::Parameter)
      return "a parameter";
    if (state.getKind() == StateKind::Derived && !inPrepare)
      return "a derived state, outside prepare";
    if (state.getKind() == StateKind::Mutable && inPrepare)
      return "a mutable state, in prepare";
  }
  return "";
}

static LogicalResult verifyAxes(GroupOp group, std::optional<MeshAttr> mesh) {
  if (!group.getAxes())
    return success();
  SmallVector<Attribute> seen;
  const ArrayAttr axes = *group.getAxes();
  for (Attribute axis : axes) {
    if (!mesh || !llvm::is_contained(mesh->getNames(), axis) || llvm::is_contained(seen, axis))
      return group.emitOpError("(rule 5) of a program: ")
             << axis << " is no axis of the program's mesh, or stands twice";
    seen.push_back(axis);
  }
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  int prepares = 0, steps = 0;
  llvm::StringSet<> inputs, outputs, states;
  llvm::StringMap<CollectiveOp> collectives;
  for (Operation &op : getBody().front()) {
    bool isPrepare = isa<PrepareOp>(op), isStep = isa<StepOp>(op);
    bool declares = isa<StreamOp, GroupOp, ArenaOp>(op) || isa<BufferOpInterface>(op);
    if (!isPrepare && !isStep && !declares)
      return op.emitOpError("(rule 1) of a program: neither a declaration nor prepare nor step");
    if (steps || (prepares && !isStep))
      return op.emitOpError("(rule 1) of a program: declarations come first, then prepare, then step");
    prepares += isPrepare;
    steps += isStep;
    if (auto group = dyn_cast<GroupOp>(op))
      if (failed(verifyAxes(group, getMesh())))
        return failure();
    auto unique = [&](llvm::StringSet<> &seen, StringRef name, StringRef what) -> LogicalResult {
      if (!seen.insert(name).second)
        return op.emitOpError("(rule 2) of a program: a second ") << what << " \"" << name << "\"";
      return success();
    };
    LogicalResult named = success();
    if (auto input = dyn_cast<InputOp>(op))
      named = unique(inputs, input.getName(), "input");
    else if (auto output = dyn_cast<OutputOp>(op))
      named = unique(outputs, output.getName(), "output");
    else if (auto state = dyn_cast<StateOp>(op))
      named = unique(states, state.getName(), "state");
    if (failed(named))
      return failure();
    if (!isPrepare && !isStep)
      continue;
    WalkResult parts = op.walk([&](CollectiveOp part) {
      CollectiveOp first = collectives.try_emplace(part.getName(), part).first->second;
      if (part.getKind() == first.getKind() && part.getReduction() == first.getReduction() && part.getRoot() == first.getRoot() &&
          part.getGroup() == first.getGroup())
        return WalkResult::advance();
      part.emitOpError("(rule 4) of a program: another \"") << part.getName() << "\" is of another kind, group or root";
      return WalkResult::interrupt();
    });
    if (parts.wasInterrupted())
      return failure();
    WalkResult written = op.walk([&](CommandOpInterface command) {
      for (Value buffer : command.getWrites())
        if (StringRef why = whyNotWritten(rangeOf(buffer).base, isPrepare); !why.empty()) {
          command.emitOpError("(rule 3) of a program: writes ") << why;
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    if (written.wasInterrupted())
      return failure();
  }
  if (!steps)
    return emitOpError("(rule 1) needs a step");
  return success();
}

} // namespace tressel::sched
