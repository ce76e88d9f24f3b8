#include "passes/Passes.h"
#include "passes/Util.h"

#include "ir/graph/Control.h"
#include "ir/graph/DeviceAttr.h"
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
  /// Product of the masked dimensions. An unknown size counts as large.
  static int64_t elements(const Shape &shape, uint32_t mask) {
    constexpr int64_t perSymbol = 16;
    int64_t n = 1;
    for (int d = 0; d < shape.rank(); ++d)
      if (mask >> d & 1)
        n *= dim::hint(shape[d]) * (shape[d].isNumber() ? 1 : perSymbol);
    return n;
  }

  /// The axes reduced in the first step, whose results are the partial ones; none if the split does not pay off.
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

  bool isWorthIt(const Shape &shape, uint32_t reduced) const {
    return elements(shape, ((1u << shape.rank()) - 1) & ~reduced) < minUnits && elements(shape, reduced) >= minElements;
  }

  /// Splits the longest reduced dimension in two; the outer one is reduced in the second step. False if that does not
  /// pay off, or the sizes do not allow it. Types in which partial results would be rounded are converted first.
  bool splitDimension(Operation *op, const op::OpInfo &info, const op::Attrs &attrs, const TensorType &x, DType type) {
    const uint32_t reduced = op::normalizeAxes(op::maybeInts(attrs[0]), x.rank()).value_or(0), all = (1u << x.rank()) - 1;
    const int64_t units = elements(x.shape, all & ~reduced);
    if (!isWorthIt(x.shape, reduced) || !x.shape.isStatic())
      return false;
    int longest = -1;
    for (int d = 0; d < x.rank(); ++d)
      if ((reduced >> d & 1) && (longest < 0 || x.shape[d] > x.shape[longest]))
        longest = d;
    constexpr int64_t leastPart = 256; // elements that one group of threads reduces
    const int64_t size = x.shape.extent(longest), most = std::min(size, elements(x.shape, reduced) / leastPart);
    int64_t parts = 1;
    for (int64_t k = 2; k <= most && units * parts < minUnits; ++k)
      if (size % k == 0)
        parts = k;
    if (parts == 1)
      return false;
    op::Sizes shape;
    op::Ints axes;
    for (int d = 0; d < x.rank(); ++d) {
      if (d == longest)
        shape.push_back(parts);
      if (reduced >> d & 1)
        axes.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(d == longest ? x.shape[d] / parts : x.shape[d]);
    }
    OpBuilder b(op);
    auto reshaped = [&](Value value, const op::Sizes &to) -> Value {
      if (std::ranges::equal(graph::fromMlir(value.getType()).shape, to))
        return value;
      return graph::createOp(b, op->getLoc(), *op::findOp("reshape"), value, {to})->getResult(0);
    };
    const DType wide = op::accumulatorType(type);
    auto made = [&](const op::OpInfo &what, Value value, const op::Attrs &with) {
      Operation *each = graph::createOp(b, op->getLoc(), what, value, with);
      graph::copyAnnotations(op, each);
      return each->getResult(0);
    };
    auto converted = [&](Value value, DType to) {
      return graph::fromMlir(value.getType()).dtype == to ? value : made(*op::findOp("cast"), value, {to});
    };
    const Value first = made(info, converted(reshaped(op->getOperand(0), shape), wide), {axes, false});
    // Partial results have the dimensions that stay, and the outer part of the longest one. With the other reduced
    // dimensions kept at size 1, the second step has the op's own attributes.
    op::Sizes rest;
    for (int d = 0; d < x.rank(); ++d)
      rest.push_back(d == longest ? Size(parts) : reduced >> d & 1 ? Size(1) : x.shape[d]);
    op->getResult(0).replaceAllUsesWith(converted(made(info, reshaped(first, rest), attrs), type));
    op->erase();
    ++numSplit;
    return true;
  }

  void split(Operation *op, const op::OpInfo &info) {
    if (info.combine == op::Combine::ArgMax || info.combine == op::Combine::ArgMin)
      return; // the index of an element is no partial result that can be combined
    op::Attrs attrs = graph::attrsOf(op, info);
    const TensorType x = graph::fromMlir(op->getOperand(0).getType()),
                     result = graph::fromMlir(op->getResult(0).getType());
    if (splitDimensions && splitDimension(op, info, attrs, x, result.dtype))
      return;
    if (op::accumulatorType(result.dtype) != result.dtype)
      return; // partial results would be rounded
    const uint32_t partial = inner(x.shape, op::normalizeAxes(op::maybeInts(attrs[0]), x.rank()).value_or(0));
    if (partial == 0)
      return;
    op::Ints axes;
    for (int d = 0; d < x.rank(); ++d)
      if (partial >> d & 1)
        axes.push_back(d);
    // In the second step the dimensions that were reduced have size 1.
    OpBuilder b(op);
    Operation *first = graph::createOp(b, op->getLoc(), info, op->getOperands(), {axes, true});
    graph::copyAnnotations(op, first);
    op->setOperand(0, first->getResult(0));
    ++numSplit;
  }
};
} // namespace

} // namespace tressel::passes
