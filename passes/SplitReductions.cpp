#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Control.h"
#include "ir/graph/Device.h"
#include "ir/graph/Graph.h"
#include "ir/op/Infer.h"
#include "tressel/runtime/Dim.h"

using namespace mlir;

namespace tressel::passes {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "passes/Passes.h.inc"

namespace {

class SplitReductions : public impl::SplitReductionsBase<SplitReductions> {
public:
  using SplitReductionsBase::SplitReductionsBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findMain(getOperation());
    if (failed(main))
      return signalPassFailure();
    if (!*main)
      return;
    graph::forEachBody(main->getBody().front(), [&](Block &block) {
      for (Operation &op : llvm::make_early_inc_range(block))
        if (const op::OpInfo *info = graph::infoOf(&op); info && info->family == op::Family::Reduction)
          split(&op, *info);
    });
  }

private:
  /// What the choice is made by. A size that is not known may be large.
  static int64_t elements(const Shape &shape, uint32_t mask) {
    constexpr int64_t perSymbol = 16;
    int64_t n = 1;
    for (int d = 0; d < shape.rank(); ++d)
      if (mask >> d & 1)
        n = dim::mul(n, dim::isConstant(shape[d]) ? shape[d] : dim::hint(shape[d]) * perSymbol);
    return n;
  }

  /// The axes of the partial results; none if they are not worth it.
  uint32_t inner(const Shape &shape, uint32_t reduced) const {
    const uint32_t all = (1u << shape.rank()) - 1;
    if (elements(shape, all & ~reduced) >= minUnits || elements(shape, reduced) < minElements)
      return 0;
    uint32_t outer = 0;
    for (int d = 0; d < shape.rank() && elements(shape, outer) < minUnits; ++d)
      outer |= reduced & 1u << d;
    const uint32_t rest = reduced & ~outer;
    return elements(shape, outer) > 1 && elements(shape, rest) > 1 ? rest : 0;
  }

  void split(Operation *op, const op::OpInfo &info) {
    if (info.combine == op::Combine::ArgMax || info.combine == op::Combine::ArgMin)
      return; // a place is no partial result
    op::Attrs attrs = graph::attrsOf(op, info);
    const TensorType x = graph::fromMlir(op->getOperand(0).getType()),
                     result = graph::fromMlir(op->getResult(0).getType());
    if (op::accumulatorType(result.dtype) != result.dtype)
      return; // partial results would be rounded
    const uint32_t partial = inner(x.shape, op::normalizeAxes(op::maybeInts(attrs[0]), x.rank()).value_or(0));
    if (partial == 0)
      return;
    op::Ints axes;
    for (int d = 0; d < x.rank(); ++d)
      if (partial >> d & 1)
        axes.push_back(d);
    // The dimensions that are reduced already have size 1 in the second.
    OpBuilder b(op);
    Operation *first = graph::createOp(b, op->getLoc(), info, op->getOperands(), {axes, true});
    graph::copyDevice(op, first);
    op->setOperand(0, first->getResult(0));
    ++numSplit;
  }
};
} // namespace

} // namespace tressel::passes
