#include "ir/graph/Control.h"

#include "ir/graph/Graph.h"
#include "ir/graph/Structure.h"
#include "tressel/runtime/Dim.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

#include "ir/graph/ControlInterfaces.cpp.inc"

using tressel::graph::parseSize;
using tressel::graph::printSize;

#define GET_OP_CLASSES
#include "ir/graph/Control.cpp.inc"

namespace tressel::graph {

//===-- Types ----------------------------------------------------------------------------------------------------===//

RankedTensorType sliceType(Type stacked) {
  TensorType type = fromMlir(stacked);
  type.shape = Shape(std::span(type.shape.begin() + 1, type.shape.end()));
  return toMlir(stacked.getContext(), type);
}

RankedTensorType stackedType(Type slice, Size count) {
  TensorType type = fromMlir(slice);
  Shape shape;
  shape.push_back(count);
  for (Size size : type.shape)
    shape.push_back(size);
  return toMlir(slice.getContext(), {type.dtype, shape});
}

static bool isFlag(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isInteger(1) && tensor.hasStaticShape() && tensor.getNumElements() == 1;
}

//===-- Parts ----------------------------------------------------------------------------------------------------===//

static MutableOperandRange none(Operation *op) { return MutableOperandRange(op, op->getNumOperands(), 0); }

MutableOperandRange CondOp::getCarriedMutable() { return none(*this); }
MutableOperandRange CondOp::getSlicesMutable() { return none(*this); }
bool CondOp::hasIndex() { return false; }
bool CondOp::repeats() { return false; }
bool CondOp::runsBodies() { return false; }

MutableOperandRange WhileOp::getSlicesMutable() { return none(*this); }
bool WhileOp::hasIndex() { return false; }
bool WhileOp::repeats() { return true; }
bool WhileOp::runsBodies() { return false; }

bool ScanOp::hasIndex() { return true; }
bool ScanOp::repeats() { return true; }
bool ScanOp::runsBodies() { return dim::bounds(getTrips()).lo > 0; }

//===-- Verifiers ------------------------------------------------------------------------------------------------===//

/// Checks each body: its arguments must match the interface, and it must end with a yield.
static LogicalResult verifyBodies(ControlOpInterface op, int rule) {
  SmallVector<Type> expected;
  if (op.hasIndex())
    expected.push_back(RankedTensorType::get({}, IntegerType::get(op->getContext(), 64)));
  for (unsigned i = 0; i < op.numCarried(); ++i)
    expected.push_back(op.carried(i).getType());
  for (unsigned i = 0; i < op.numSlices(); ++i)
    expected.push_back(sliceType(op.slice(i).getType()));
  for (unsigned i = 0; i < op.numInvariants(); ++i)
    expected.push_back(op.invariant(i).getType());
  for (Region &region : op->getRegions()) {
    Block &body = region.front();
    if (TypeRange(body.getArgumentTypes()) != TypeRange(expected))
      return op->emitOpError("(rule ") << rule << ") the arguments of its bodies must have the types " << expected
                                       << ", not " << body.getArgumentTypes();
    if (body.empty() || !isa<YieldOp>(body.back()))
      return op->emitOpError("(rule ") << rule << ") its bodies must end in tressel.yield";
  }
  return success();
}

static LogicalResult verifyYield(Region &region, TypeRange types, int rule) {
  Operation &yield = region.front().back();
  if (yield.getOperandTypes() == types)
    return success();
  return yield.emitOpError("(rule ") << rule << ") must yield the types " << types << ", not "
                                     << yield.getOperandTypes();
}

LogicalResult CondOp::verify() {
  if (!isFlag(getCondition().getType()))
    return emitOpError("(rule 1) the condition must be one bool, not ") << getCondition().getType();
  return success();
}

LogicalResult CondOp::verifyRegions() {
  if (failed(verifyBodies(*this, 2)))
    return failure();
  for (Region &region : (*this)->getRegions())
    if (failed(verifyYield(region, getResultTypes(), 3)))
      return failure();
  return success();
}

LogicalResult WhileOp::verifyRegions() {
  if (const auto bound = static_cast<int64_t>(getBound().value_or(0)); bound < 0)
    return emitOpError("(rule 4) cannot run at most ") << bound << " times";
  if (failed(verifyBodies(*this, 1)))
    return failure();
  Operation &flag = getCondition().front().back();
  if (flag.getNumOperands() != 1 || !isFlag(flag.getOperand(0).getType()))
    return flag.emitOpError("(rule 2) the condition must yield one bool, not ") << flag.getOperandTypes();
  if (TypeRange(getCarried()) != getResultTypes())
    return emitOpError("(rule 3) its results are the carried values ")
           << getCarried().getTypes() << ", not " << getResultTypes();
  return verifyYield(getBody(), getCarried().getTypes(), 3);
}

LogicalResult ScanOp::verify() {
  const Size trips = getTrips();
  if (trips.numberOr(0) < 0)
    return emitOpError("(rule 1) cannot run ") << dim::str(trips) << " times";
  for (Value slices : getSlices())
    if (auto type = cast<RankedTensorType>(slices.getType()); type.getRank() == 0 || fromMlir(type).shape[0] != trips)
      return emitOpError("(rule 2) runs ") << dim::str(trips) << " times, but a slice is taken from each of " << type;
  return success();
}

LogicalResult ScanOp::verifyRegions() {
  if (failed(verifyBodies(*this, 3)))
    return failure();
  Operation &yield = getBody().front().back();
  const TypeRange yielded = yield.getOperandTypes(), carried = getCarried().getTypes();
  SmallVector<Type> results(carried);
  for (Type type : yielded.drop_front(std::min(carried.size(), yielded.size())))
    results.push_back(stackedType(type, getTrips()));
  if (yielded.take_front(std::min(carried.size(), yielded.size())) != carried)
    return yield.emitOpError("(rule 4) must yield the carried types ")
           << getCarried().getTypes() << " first, not " << yield.getOperandTypes();
  if (TypeRange(results) != getResultTypes())
    return yield.emitOpError("(rule 4) makes results of the types ") << results << ", not " << getResultTypes();
  return success();
}

//===-- Operations on all ops with bodies
//--------------------------------------------------------------------------===//
// ---------------------------------------------------------------------------===//

void forEachBody(Block &block, llvm::function_ref<void(Block &)> fn) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (isa<ControlOpInterface>(op))
      for (Region &region : op.getRegions())
        forEachBody(region.front(), fn);
  fn(block);
}

void addInvariant(ControlOpInterface op, Value value) {
  op.getInvariantsMutable().append(value);
  for (Region &region : op->getRegions())
    region.front().addArgument(value.getType(), value.getLoc());
}

void captureInvariants(ControlOpInterface op) {
  // getUsedValuesDefinedAbove does not work here: the op may be in a body that is not part of an op yet.
  llvm::SetVector<Value> captured;
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Region *home = operand.getParentRegion(); !home || !region.isAncestor(home))
          captured.insert(operand);
    });
  for (Value value : captured) {
    addInvariant(op, value);
    for (Region &region : op->getRegions())
      value.replaceUsesWithIf(region.front().getArguments().back(), [&](OpOperand &use) {
        Region *home = use.getOwner()->getParentRegion();
        return home && region.isAncestor(home);
      });
  }
}

void registerControlOps(Dialect &dialect) {
  auto add = [&]<typename... Ops>() { (RegisteredOperationName::insert<Ops>(dialect), ...); };
  add.template operator()<CondOp, WhileOp, ScanOp>();
}

} // namespace tressel::graph
