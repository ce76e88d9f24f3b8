// Folding for every op of the table, by its OpInfo.
#include "ir/graph/Graph.h"
#include "ir/graph/TableOp.h"
#include "ir/interpreter/Evaluate.h"

#include <cmath>

using namespace mlir;

namespace tressel::graph {

/// Whether all elements of a constant equal `value`, with the same sign of zero.
static bool isSplatOf(Attribute attr, double value) {
  auto dense = dyn_cast_if_present<DenseElementsAttr>(attr);
  if (!dense || !dense.isSplat())
    return false;
  if (isa<FloatType>(dense.getElementType())) {
    double element = dense.getSplatValue<APFloat>().convertToDouble();
    return element == value && std::signbit(element) == std::signbit(value);
  }
  APInt element = dense.getSplatValue<APInt>();
  if (dense.getElementType().isInteger(1))
    return element.getBoolValue() == (value != 0);
  bool isSigned = !dense.getElementType().isUnsignedInteger();
  return (isSigned ? static_cast<double>(element.getSExtValue()) : static_cast<double>(element.getZExtValue())) == value;
}

static void setAttrs(Operation *op, const op::OpInfo &info, const op::Attrs &attrs) {
  for (size_t i = 0; i < attrs.size(); ++i) {
    StringRef name = info.attrs[i].name;
    if (Attribute value = toMlirAttr(op->getContext(), attrs[i]))
      op->setAttr(name, value);
    else
      op->removeAttr(name);
  }
}

/// Folds f(x, c) to x.
static OpFoldResult foldIdentity(Operation *op, const op::OpInfo &info) {
  if (!info.identity || op->getNumOperands() != 2)
    return {};
  Type result = op->getResult(0).getType();
  for (unsigned constant : {1u, 0u}) {
    // Taken from the op, not from the folder: operands of a commutative op may have been swapped since.
    Value other = op->getOperand(1 - constant);
    Attribute value;
    if ((constant == 1 || info.commutative) && other.getType() == result &&
        matchPattern(op->getOperand(constant), m_Constant(&value)) && isSplatOf(value, *info.identity))
      return other;
  }
  return {};
}

/// Folds an op on the result of another op of its kind. Changes `op` in place (true), or sets the value it equals.
static bool foldChain(Operation *op, const op::OpInfo &info, OpFoldResult &value) {
  if (op->getNumOperands() != 1)
    return false;
  Operation *inner = op->getOperand(0).getDefiningOp();
  const op::OpInfo *innerInfo = inner ? infoOf(inner) : nullptr;
  if (!innerInfo || inner->getNumOperands() != 1)
    return false;
  op::Attrs attrs = attrsOf(op, info);
  if (innerInfo == &info) {
    op::Attrs innerAttrs = attrsOf(inner, info), merged;
    if (info.idempotent && innerAttrs == attrs && inner->getResult(0).getType() == op->getResult(0).getType()) {
      value = inner->getResult(0);
      return false;
    }
    if (info.compose && info.compose(innerAttrs, attrs, merged)) {
      setAttrs(op, info, merged);
      op->setOperand(0, inner->getOperand(0));
      return true;
    }
  }
  // A view of a view reads the base directly, unless the shape of its result depends on the shape between.
  if (info.isView && innerInfo->isView) {
    TensorType source = fromMlir(inner->getOperand(0).getType());
    op::Inferred direct = info.infer(info, {&source, 1}, attrs);
    if (direct && toMlir(op->getContext(), direct.types.front()) == op->getResult(0).getType()) {
      op->setOperand(0, inner->getOperand(0));
      return true;
    }
  }
  return false;
}

/// Evaluates ops whose operands are constants and whose results are small.
static LogicalResult foldConstants(Operation *op, const op::OpInfo &info, ArrayRef<Attribute> operands,
                                   SmallVectorImpl<OpFoldResult> &results) {
  if ((!info.evaluate && !info.decompose) || info.custom || op::isSymbolic(attrsOf(op, info)))
    return failure(); // a custom kernel must run when the program does
  for (Type type : op->getResultTypes())
    if (!cast<ShapedType>(type).hasStaticShape() || fromMlir(type).bytes() > kMaxFoldedBytes)
      return failure();
  constexpr int64_t kMaxOperandBytes = 1 << 20; // bounds the time of compilation
  std::vector<op::HostTensor> inputs;
  for (auto [value, attr] : llvm::zip(op->getOperands(), operands)) {
    if (!attr || fromMlir(value.getType()).bytes() > kMaxOperandBytes)
      return failure();
    std::optional<op::HostTensor> tensor = elementsValue(attr);
    if (!tensor)
      return failure();
    inputs.push_back(std::move(*tensor));
  }
  op::interp::Evaluation evaluation = op::interp::run(info, inputs, attrsOf(op, info));
  if (!evaluation)
    return failure(); // for example an index outside: the program reports it with its line when it runs
  for (const op::HostTensor &t : evaluation.outputs)
    results.push_back(elementsAttr(op->getContext(), t));
  return success();
}

LogicalResult foldTableOp(Operation *op, const op::OpInfo &info, ArrayRef<Attribute> operands,
                          SmallVectorImpl<OpFoldResult> &results) {
  if (info.isIdentity && op->getNumOperands() == 1) {
    TensorType from = fromMlir(op->getOperand(0).getType()), to = fromMlir(op->getResult(0).getType());
    if (info.isIdentity(info, {&from, 1}, {&to, 1}, attrsOf(op, info))) {
      results.push_back(op->getOperand(0));
      return success();
    }
  }
  if (OpFoldResult same = foldIdentity(op, info)) {
    results.push_back(same);
    return success();
  }
  if (succeeded(foldConstants(op, info, operands, results)))
    return success();
  OpFoldResult value;
  if (foldChain(op, info, value))
    return success(); // changed in place
  if (value) {
    results.push_back(value);
    return success();
  }
  // Constants become the second operand, so that equal ops are recognized.
  if (info.commutative && op->getNumOperands() == 2 && operands[0] && !operands[1]) {
    Value first = op->getOperand(0);
    op->setOperand(0, op->getOperand(1));
    op->setOperand(1, first);
    return success();
  }
  return failure();
}

} // namespace tressel::graph
