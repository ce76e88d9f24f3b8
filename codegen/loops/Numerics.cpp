// What numbers the code of a loop plan gives: its floating-point mode (runtime/FloatMode.h), and how long its sums may be.
#include "codegen/loops/LoopPlan.h"

namespace tressel::codegen {

using op::ScalarOp;

namespace {

/// The types whose arithmetic the mode of f32, or that of f64, changes.
struct Computes {
  bool single = false, full = false;
  void in(DType type) {
    single |= isFloat(type) && type != DType::f64;
    full |= type == DType::f64;
  }
};

Computes computesIn(const LoopPlan &plan) {
  Computes computes;
  for (const Expr &x : plan.exprs) {
    if (x.kind != ExprKind::Scalar || x.args[0] < 0)
      continue;
    const DType from = plan.exprs[static_cast<size_t>(x.args[0])].dtype;
    switch (x.op) {
    case ScalarOp::Const:
    case ScalarOp::Select:
    case ScalarOp::Neg:
    case ScalarOp::Abs:
    case ScalarOp::IsNan:
      break; // bits as they are
    case ScalarOp::Cast:
      // f64 is sensitive to the mode of f32 where it can be as small: as bf16, and where a number is told from zero.
      if (from == DType::f64)
        computes.full |= x.dtype == DType::bf16 || x.dtype == DType::boolean;
      if (x.dtype == DType::f64)
        computes.full |= from == DType::bf16;
      computes.single |= from == DType::f32 && (x.dtype == DType::f64 || x.dtype == DType::boolean);
      computes.single |= from == DType::f64 && x.dtype == DType::f32;
      break;
    default:
      computes.in(from);
      computes.in(x.dtype);
    }
  }
  for (const Reduction &r : plan.reductions)
    computes.in(r.accumulate);
  return computes;
}

} // namespace

runtime::FloatMode LoopPlan::floats() const {
  const Computes computes = computesIn(*this);
  if (computes.full || (computes.single && keepSubnormals))
    return runtime::FloatMode::Keep;
  return computes.single ? runtime::FloatMode::Flush : runtime::FloatMode::Any;
}

bool LoopPlan::flushesExplicitly() const {
  const Computes computes = computesIn(*this);
  return computes.single && computes.full && !keepSubnormals;
}

int64_t LoopPlan::sumBlock() const {
  if (order != TermOrder::Free)
    return kSumBlock;
  uint64_t all = 0;
  for (size_t d = 0; d < dims.size(); ++d)
    all |= uint64_t(dims[d].size != 1) << d;
  const uint64_t reduced = all & ~((uint64_t(1) << numParallel) - 1);
  // In a product of matrices two operands run along the sum, each for other results, and none is read at each point of the nest.
  uint64_t first = 0;
  bool isProduct = false;
  for (const Expr &x : exprs) {
    if (x.kind != ExprKind::Load || !(x.dims & reduced))
      continue;
    if ((x.dims & all) == all)
      return kSumBlock;
    isProduct |= first && (x.dims & all) != first;
    first = x.dims & all;
  }
  return isProduct ? kProductBlock : kSumBlock;
}

} // namespace tressel::codegen
