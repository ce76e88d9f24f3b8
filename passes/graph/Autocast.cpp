#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
#include "ir/graph/Graph.h"
#include "ir/op/OpInfo.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_AUTOCAST
#include "passes/Passes.h.inc"

namespace {
class Autocast : public impl::AutocastBase<Autocast> {
public:
  using AutocastBase::AutocastBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!*main || type.empty())
      return;
    if (!parseDType(type.getValue(), half) || (half != f16 && half != bf16)) {
      getOperation().emitError("products cannot be computed in '") << type.getValue() << "'; the types of half the width are f16 and bf16";
      return signalPassFailure();
    }
    graph::forEachBody(main->getBody().front(), [&](Block &block) {
      for (Operation &op : llvm::make_early_inc_range(block))
        if (const op::OpInfo *info = graph::infoOf(&op); info && op::isProduct(info->family))
          convert(&op, *info);
    });
  }

private:
  static bool isF32(Value value) { return graph::fromMlir(value.getType()).dtype == f32; }

  void convert(Operation *op, const op::OpInfo &info) {
    if (!llvm::all_of(op->getOperands(), isF32) || !llvm::all_of(op->getResults(), isF32))
      return;
    const op::Attrs attrs = graph::attrsOf(op, info);
    std::vector<TensorType> types;
    for (Value operand : op->getOperands())
      types.push_back({half, graph::fromMlir(operand.getType()).shape});
    const op::Inferred inferred = info.infer(info, types, attrs);
    if (!inferred || llvm::any_of(inferred.types, [&](const TensorType &t) { return t.dtype != half; }))
      return; // the op does not take or give that type
    OpBuilder b(op);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(narrow(b, op, operand));
    Operation *made = graph::createOp(b, op->getLoc(), info, operands, attrs);
    graph::copyAnnotations(op, made);
    for (auto [old, now] : llvm::zip_equal(op->getResults(), made->getResults()))
      old.replaceAllUsesWith(castTo(b, op, now, f32));
    op->erase();
    ++numConverted;
  }

  /// The operand in the narrow type. If it was widened from that type, the value before widening is used.
  Value narrow(OpBuilder &b, Operation *op, Value value) {
    if (Operation *def = value.getDefiningOp())
      if (const op::OpInfo *info = graph::infoOf(def); info == &cast() && graph::fromMlir(def->getOperand(0).getType()).dtype == half)
        return def->getOperand(0);
    return castTo(b, op, value, half);
  }
  static Value castTo(OpBuilder &b, Operation *op, Value value, DType to) {
    Operation *made = graph::createOp(b, op->getLoc(), cast(), value, {to});
    graph::copyAnnotations(op, made);
    return made->getResult(0);
  }
  static const op::OpInfo &cast() { return *op::findOp("cast"); }

  DType half = bf16;
};
} // namespace

} // namespace tressel::passes
