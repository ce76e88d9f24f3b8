#include "test/support/Blur.h"
#include "ir/graph/Graph.h"
#include "ir/interpreter/Compare.h"
#include "ir/interpreter/Element.h"
#include "ir/interpreter/Interpreter.h"

#include <cmath>
#include <cstring>

namespace tressel::test {

using op::HostTensor;

constexpr double kLargest = 1e3; ///< no value is larger, so that nothing overflows a few ops later, f16 neither

/// What one op may round away, relative to its result.
static double shareOf(DType type) {
  switch (type) {
  case DType::f64:
    return 0x1p-48;
  case DType::f32:
    return 0x1p-20;
  case DType::f16:
    return 0x1p-9;
  case DType::bf16:
    return 0x1p-6;
  default:
    return 0;
  }
}

/// What may be left where many terms cancel: a part of the largest. Only of what sums: results of fewer elements,
/// products.
static double residueOf(const op::OpInfo &op, std::span<const HostTensor> operands, const HostTensor &result) {
  int64_t elements = 0;
  double largest = 0;
  for (const HostTensor &operand : operands) {
    elements = std::max(elements, operand.type.shape.numElements());
    for (int64_t i = 0, n = operand.type.shape.numElements(); i < n; ++i)
      if (const double x = std::abs(op::interp::load(operand, i).as<double>()); std::isfinite(x))
        largest = std::max(largest, x);
  }
  const int64_t count = result.type.shape.numElements();
  if (op.combine != op::Combine::Sum && !(op.decompose && count < elements))
    return 0;
  // Sums on the way may be larger than what is summed: running totals show them. Roundings of many terms add up like steps at random.
  for (int64_t i = 0; i < count; ++i)
    if (const double x = std::abs(op::interp::load(result, i).as<double>()); std::isfinite(x))
      largest = std::max(largest, x);
  const auto terms = static_cast<double>(count < elements ? elements / std::max<int64_t>(1, count) : elements);
  return largest * (result.type.dtype == DType::f64 ? 0x1p-48 : 0x1p-22) * std::max(1.0, std::sqrt(terms) / 16);
}

void Blur::apply(const op::OpInfo &op, std::span<const HostTensor> operands, HostTensor &result) {
  const DType type = result.type.dtype;
  if (!isFloat(type))
    return;
  double share = shareOf(type);
  for (const HostTensor &operand : operands) // an op of many rounds in the types on its way
    share = op.decompose ? std::max(share, shareOf(operand.type.dtype)) : share;
  // A zero that a function of floats or a sum gives may be almost one elsewhere, which counts once it is a condition.
  const bool rounds = op.compute == op::ComputeClass::Float || op.decompose || op.combine == op::Combine::Sum;
  const double offset = !rounds ? 0 : std::max(type == f16 ? 1e-7 : 1e-20, residueOf(op, operands, result));
  HostTensor blurred = HostTensor::allocate(result.type);
  for (int64_t i = 0, n = result.type.shape.numElements(); i < n; ++i) {
    const double x = op::interp::load(result, i).as<double>();
    // Never by next to nothing: a single element that hardly moves hides that what follows depends on its rounding.
    const double amount = 2 * random_.unit() - 1;
    op::interp::store(blurred, i, x + sign_ * (x * share * (amount + (amount < 0 ? -1 : 1)) / 2 + offset));
  }
  result = std::move(blurred);
}

bool isHarmless(const HostTensor &exact, const HostTensor &blurred) {
  op::interp::Tolerance tolerance = op::interp::looseTolerance(exact.type.dtype);
  tolerance.rtol /= 4;
  tolerance.atol /= 4;
  if (isFloat(exact.type.dtype))
    for (int64_t i = 0, n = exact.type.shape.numElements(); i < n; ++i)
      if (!(std::abs(op::interp::load(exact, i).as<double>()) <= kLargest))
        return false;
  return op::interp::compare(blurred, exact, tolerance).empty();
}

bool inDomain(const op::OpInfo &op, size_t index, const HostTensor &tensor) {
  if (op.domains.empty() || (op.family == op::Family::Indexing && index > 0))
    return true;
  if (tensor.type.dtype == DType::boolean) // both are drawn whatever the domain; a result that is infinite is seen as such
    return true;
  op::Domain domain = domainOf(op, index);
  if (!isFloat(tensor.type.dtype)) // as randomTensor has it: at least one whole number
    domain = {std::ceil(domain.low), std::max(std::ceil(domain.low), std::floor(domain.high))};
  for (int64_t i = 0, n = tensor.type.shape.numElements(); i < n; ++i) {
    const double x = op::interp::load(tensor, i).as<double>();
    if (!(x >= domain.low && x <= domain.high))
      return false;
  }
  return true;
}

bool isHarmless(mlir::func::FuncOp function, llvm::ArrayRef<HostTensor> inputs, uint64_t seed, Computed &computed,
                bool anyOperands) {
  std::vector<HostTensor> exact; // in the order of evaluation
  bool harmless = true;
  graph::Interpretation run = graph::interpret(function, inputs, [&](mlir::Operation *op, auto operands, auto results) {
    const op::OpInfo *info = graph::infoOf(op);
    for (size_t i = 0; info && !anyOperands && i < operands.size(); ++i)
      harmless &= inDomain(*info, i, operands[i]);
    for (auto [value, result] : llvm::zip_equal(op->getResults(), results)) {
      exact.push_back(result);
      computed[value] = result;
    }
  });
  for (Blur::Direction direction : {Blur::Up, Blur::Down}) {
    if (!run || !harmless)
      return false;
    Blur blur(seed, direction);
    size_t next = 0;
    run = graph::interpret(function, inputs, [&](mlir::Operation *op, auto operands, auto results) {
      const op::OpInfo *info = graph::infoOf(op);
      for (HostTensor &result : results) {
        if (info)
          blur.apply(*info, {operands.data(), operands.size()}, result);
        harmless =
            harmless && next < exact.size() && exact[next].type == result.type && isHarmless(exact[next], result);
        ++next;
      }
    });
    harmless &= next == exact.size();
  }
  return run && harmless;
}

} // namespace tressel::test
