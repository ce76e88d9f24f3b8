#include "test/support/OpBounds.h"
#include "ir/interpreter/Compare.h"
#include "ir/op/Infer.h"
#include "ir/op/Sym.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

namespace tressel::test {

using op::HostTensor;
using op::OpInfo;
using op::ScalarNode;
using op::ScalarOp;
using op::interp::Evaluation;

namespace {

using Real = long double;
constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

struct Format {
  int bits, lowest, highest; ///< of the significand; exponents of the smallest and the greatest normal number
};
Format formatOf(DType type) {
  switch (type) {
  case DType::f64: return {53, -1022, 1023};
  case DType::f16: return {11, -14, 15};
  case DType::bf16: return {8, -126, 127};
  default: return {24, -126, 127};
  }
}
Real largestOf(DType type) {
  const Format f = formatOf(type);
  return std::ldexp(2 - std::ldexp(Real(1), 1 - f.bits), f.highest);
}
/// A unit in the last place of the type at x.
Real ulpOf(Real x, DType type) {
  const Format f = formatOf(type);
  const int exponent = x == 0 || !std::isfinite(x) ? f.lowest : std::max(f.lowest, std::ilogb(x));
  return std::ldexp(Real(1), exponent - (f.bits - 1));
}

/// A value, and what a kernel may have computed for it.
struct Near {
  Real mid = 0, low = 0, high = 0;
  bool isExact() const { return low == high || std::isnan(mid); }
};
Near exactly(Real x) { return {x, x, x}; }
Near including(Near a, Near b) { // a's value
  return {a.mid, std::fmin(a.low, b.low), std::fmax(a.high, b.high)};
}

/// Off by so many units in the last place of the type besides.
Near rounded(Near x, double ulps, DType type) {
  if (std::isnan(x.mid))
    return exactly(x.mid);
  const Real largest = largestOf(type), smallest = std::ldexp(Real(1), formatOf(type).lowest);
  x.low -= static_cast<Real>(ulps) * ulpOf(x.low, type), x.high += static_cast<Real>(ulps) * ulpOf(x.high, type);
  // Arithmetic on f32 takes what is below its normal numbers for zero.
  if (type == f32 || type == bf16) {
    if (x.low > 0 && x.low < smallest)
      x.low = 0;
    if (x.high < 0 && x.high > -smallest)
      x.high = 0;
  }
  auto overflows = [&](Real &end, bool inward) { // rounding may still be to the greatest number
    const Real limit = inward ? largest * (1 + std::ldexp(Real(1), -formatOf(type).bits)) : largest;
    if (std::abs(end) > limit)
      end = std::copysign(kInfinity, end);
    else if (std::abs(end) > largest)
      end = std::copysign(largest, end);
  };
  overflows(x.low, x.low > 0), overflows(x.high, x.high < 0), overflows(x.mid, true);
  return x;
}

/// The value at the operand, and the least and the greatest of those at the ends of its interval.
template <class F> Near through(F f, Near a) {
  Near r = exactly(f(a.mid));
  if (!a.isExact())
    for (Real at : {a.low, a.high})
      r = including(r, exactly(f(at)));
  return r;
}
template <class F> Near through(F f, Near a, Near b) {
  Near r = exactly(f(a.mid, b.mid));
  for (Real x : {a.low, a.high})
    for (Real y : {b.low, b.high})
      r = including(r, exactly(f(x, y)));
  return r;
}

/// Units in the last place by which a primitive may be off: what MathTest.cpp holds the expansions to, which are the same for GPUs.
double ulpsOf(ScalarOp op, DType type) {
  const bool isDouble = type == f64;
  switch (op) {
  case ScalarOp::Exp:
  case ScalarOp::Log:
  case ScalarOp::Rsqrt: return 1.5;
  case ScalarOp::Expm1:
  case ScalarOp::Log1p: return 2;
  case ScalarOp::Sin:
  case ScalarOp::Cos: return isDouble ? 1.5 : 1;
  case ScalarOp::Tan: return isDouble ? 3 : 1;
  case ScalarOp::Atan:
  case ScalarOp::Logistic: return 3;
  case ScalarOp::Asin:
  case ScalarOp::Acos:
  case ScalarOp::Atan2:
  case ScalarOp::Sinh:
  case ScalarOp::Cosh:
  case ScalarOp::Tanh: return 4;
  case ScalarOp::Erf: return isDouble ? 5 : 6;
  case ScalarOp::Pow: return isDouble ? 100 : 1;
  case ScalarOp::Add:
  case ScalarOp::Sub:
  case ScalarOp::Mul:
  case ScalarOp::Div:
  case ScalarOp::Rem: // the rest is exact, and the divisor may be added to it
  case ScalarOp::Sqrt:
  case ScalarOp::Cast: return 0.5;
  default: return 0; // exact
  }
}

Real signOf(Real x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
Real remainder(Real a, Real b) {
  const Real r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/// A comparison, of which intervals that meet do not tell the result.
template <class F> Near compared(F f, Near a, Near b) {
  const Near r = exactly(f(a.mid, b.mid));
  if ((a.isExact() && b.isExact()) || a.high < b.low || b.high < a.low || std::isnan(a.mid) || std::isnan(b.mid))
    return r;
  return {r.mid, 0, 1};
}

/// One node; nothing where integers are computed with in ways that are not followed here.
std::optional<Near> evaluate(const ScalarNode &node, Near a, Near b, Near c, DType argument) {
  const bool ofFloats = isFloat(argument);
  auto single = [&](Real (*f)(Real)) -> std::optional<Near> {
    return ofFloats ? std::optional(rounded(through(f, a), ulpsOf(node.op, node.dtype), node.dtype)) : std::nullopt;
  };
  auto binary = [&](auto f) -> std::optional<Near> {
    return ofFloats ? std::optional(rounded(through(f, a, b), ulpsOf(node.op, node.dtype), node.dtype)) : std::nullopt;
  };
  switch (node.op) {
  case ScalarOp::Const: {
    if (!isFloat(node.dtype))
      return exactly(static_cast<Real>(node.i));
    Near value = exactly(static_cast<Real>(node.f));
    const bool holds = node.dtype == f64 || static_cast<double>(static_cast<float>(node.f)) == node.f;
    return holds ? value : rounded(value, 0.5, f32);
  }
  case ScalarOp::Cast:
    if (node.dtype == DType::boolean)
      return compared([](Real x, Real y) { return Real(x != y); }, a, exactly(0));
    if (!isFloat(node.dtype))
      return ofFloats && !a.isExact() ? std::nullopt : std::optional(exactly(std::trunc(a.mid)));
    if (isFloat(argument) && formatOf(argument).bits <= formatOf(node.dtype).bits && argument != bf16)
      return a;
    if (argument == bf16 && node.dtype != f16)
      return a;
    return rounded(a, 0.5, node.dtype);
  case ScalarOp::Add: return binary([](Real x, Real y) { return x + y; });
  case ScalarOp::Sub: return binary([](Real x, Real y) { return x - y; });
  case ScalarOp::Mul: return binary([](Real x, Real y) { return x * y; });
  case ScalarOp::Div: return binary([](Real x, Real y) { return x / y; });
  case ScalarOp::Rem: return binary(remainder);
  case ScalarOp::Pow: return binary([](Real x, Real y) { return std::pow(x, y); });
  case ScalarOp::Atan2: return binary([](Real x, Real y) { return std::atan2(x, y); });
  case ScalarOp::Min: return binary([](Real x, Real y) { return std::isnan(x) ? x : std::isnan(y) ? y : std::min(x, y); });
  case ScalarOp::Max: return binary([](Real x, Real y) { return std::isnan(x) ? x : std::isnan(y) ? y : std::max(x, y); });
  case ScalarOp::Neg: return single([](Real x) { return -x; });
  case ScalarOp::Abs: return single([](Real x) { return std::abs(x); });
  case ScalarOp::Sign: return single(signOf);
  case ScalarOp::Floor: return single([](Real x) { return std::floor(x); });
  case ScalarOp::Ceil: return single([](Real x) { return std::ceil(x); });
  case ScalarOp::Round: return single([](Real x) { return std::nearbyint(x); });
  case ScalarOp::Trunc: return single([](Real x) { return std::trunc(x); });
  case ScalarOp::Sqrt: return single([](Real x) { return std::sqrt(x); });
  case ScalarOp::Rsqrt: return single([](Real x) { return 1 / std::sqrt(x); });
  case ScalarOp::Exp: return single([](Real x) { return std::exp(x); });
  case ScalarOp::Expm1: return single([](Real x) { return std::expm1(x); });
  case ScalarOp::Log: return single([](Real x) { return std::log(x); });
  case ScalarOp::Log1p: return single([](Real x) { return std::log1p(x); });
  case ScalarOp::Sin: return single([](Real x) { return std::sin(x); });
  case ScalarOp::Cos: return single([](Real x) { return std::cos(x); });
  case ScalarOp::Tan: return single([](Real x) { return std::tan(x); });
  case ScalarOp::Asin: return single([](Real x) { return std::asin(x); });
  case ScalarOp::Acos: return single([](Real x) { return std::acos(x); });
  case ScalarOp::Atan: return single([](Real x) { return std::atan(x); });
  case ScalarOp::Sinh: return single([](Real x) { return std::sinh(x); });
  case ScalarOp::Cosh: return single([](Real x) { return std::cosh(x); });
  case ScalarOp::Tanh: return single([](Real x) { return std::tanh(x); });
  case ScalarOp::Erf: return single([](Real x) { return std::erf(x); });
  case ScalarOp::Logistic: return single([](Real x) { return 1 / (1 + std::exp(-x)); });
  case ScalarOp::Eq: return compared([](Real x, Real y) { return Real(x == y); }, a, b);
  case ScalarOp::Ne: return compared([](Real x, Real y) { return Real(x != y); }, a, b);
  case ScalarOp::Lt: return compared([](Real x, Real y) { return Real(x < y); }, a, b);
  case ScalarOp::Le: return compared([](Real x, Real y) { return Real(x <= y); }, a, b);
  case ScalarOp::Gt: return compared([](Real x, Real y) { return Real(x > y); }, a, b);
  case ScalarOp::Ge: return compared([](Real x, Real y) { return Real(x >= y); }, a, b);
  case ScalarOp::IsNan: return exactly(std::isnan(a.mid));
  case ScalarOp::Select:
    if (a.isExact())
      return a.mid != 0 ? b : c;
    return a.mid != 0 ? including(b, c) : including(c, b);
  default: break;
  }
  if (node.dtype != DType::boolean)
    return std::nullopt;
  switch (node.op) {
  case ScalarOp::And: return Near{std::min(a.mid, b.mid), std::min(a.low, b.low), std::min(a.high, b.high)};
  case ScalarOp::Or: return Near{std::max(a.mid, b.mid), std::max(a.low, b.low), std::max(a.high, b.high)};
  case ScalarOp::Not: return Near{1 - a.mid, 1 - a.high, 1 - a.low};
  default: return std::nullopt;
  }
}

/// What a result may be, element by element.
using Bounds = std::vector<Near>;

/// Of an elementwise op. Nothing where it has no scalar program of floats.
std::optional<Bounds> boundsOfScalars(const OpCall &call, std::span<const HostTensor> inputs) {
  if (!call.op->elementwise || call.results.size() != 1)
    return std::nullopt;
  const TensorType &result = call.results[0];
  const op::ScalarProgram program = op::recordElementwise(*call.op, call.operands, result, call.attrs);
  Bounds bounds;
  std::vector<Near> values(program.nodes.size());
  op::interp::Index at(result.shape);
  for (int64_t i = 0, n = result.shape.numElements(); i < n; ++i) {
    int64_t rest = i;
    for (int d = at.rank() - 1; d >= 0; --d)
      at[d] = rest % result.shape.extent(d), rest /= result.shape.extent(d);
    for (size_t k = 0; k < program.nodes.size(); ++k) {
      const ScalarNode &node = program.nodes[k];
      auto argument = [&](int which) { return node.args[which] < 0 ? Near() : values[static_cast<size_t>(node.args[which])]; };
      std::optional<Near> value;
      if (node.op == ScalarOp::Operand) {
        const HostTensor &operand = inputs[static_cast<size_t>(node.i)];
        const op::interp::Element e = op::interp::load(operand, op::interp::broadcastPosition(operand.type.shape, at));
        value = exactly(e.isFloat ? static_cast<Real>(e.f) : static_cast<Real>(e.i));
      } else if (node.op == ScalarOp::Index) {
        value = exactly(static_cast<Real>(at[static_cast<int>(node.i)]));
      } else if (node.op == ScalarOp::Size) {
        value = exactly(static_cast<Real>(node.size.number()));
      } else {
        const DType type = node.args[0] < 0 ? node.dtype : program.nodes[static_cast<size_t>(node.args[0])].dtype;
        value = evaluate(node, argument(0), argument(1), argument(2), type);
      }
      if (!value)
        return std::nullopt;
      values[k] = *value;
    }
    const DType last = program.nodes[static_cast<size_t>(program.result)].dtype;
    const Near value = values[static_cast<size_t>(program.result)];
    bounds.push_back(last == result.dtype ? value : rounded(value, 0.5, result.dtype));
  }
  return bounds;
}

/// The op on floats that are f64, each `of` an operand's number and one of its elements; its results, where they are as those of the call but f64.
template <class F> std::optional<Evaluation> inDouble(const OpCall &call, std::span<const HostTensor> inputs, F of) {
  std::vector<HostTensor> wide;
  for (size_t operand = 0; operand < inputs.size(); ++operand) {
    const HostTensor &t = inputs[operand];
    wide.push_back(isFloat(t.type.dtype) ? HostTensor::allocate({f64, t.type.shape}) : t);
    for (int64_t i = 0, n = t.type.shape.numElements(); isFloat(t.type.dtype) && i < n; ++i)
      wide.back().as<double>()[i] = of(operand, op::interp::load(t, i).as<double>());
  }
  const op::Inferred inferred = op::inferTypes(*call.op, [&] {
    std::vector<TensorType> types;
    for (const HostTensor &t : wide)
      types.push_back(t.type);
    return types;
  }(), call.attrs);
  if (!inferred || inferred.types.size() != call.results.size())
    return std::nullopt;
  for (size_t i = 0; i < call.results.size(); ++i)
    if (inferred.types[i].shape != call.results[i].shape || (isFloat(call.results[i].dtype) && inferred.types[i].dtype != f64))
      return std::nullopt;
  Evaluation result = op::interp::run(*call.op, wide, call.attrs);
  return result ? std::optional(std::move(result)) : std::nullopt;
}

bool hasFloatOperands(const OpCall &call) {
  return std::ranges::any_of(call.operands, [](const TensorType &t) { return isFloat(t.dtype); });
}

/// Whether results are elements of operands, or made of their places.
bool moves(const OpInfo &op) {
  if (op.family == op::Family::Shape || op.family == op::Family::Indexing || op.family == op::Family::Ordering || op.isView)
    return op.combine == op::Combine::None && !op.decompose;
  return op.combine == op::Combine::Max || op.combine == op::Combine::Min;
}

/// What NumPy's results are held to in test/oracle/numpy_oracle.py.
op::interp::Tolerance numpyTolerance(DType type) {
  switch (type) {
  case DType::f64: return {.rtol = 1e-12, .atol = 1e-12};
  case DType::f16: return {.rtol = 1.5e-3, .atol = 1e-5};
  case DType::bf16: return {.rtol = 1.2e-2, .atol = 1e-5};
  default: return {.rtol = 4e-6, .atol = 2e-6};
  }
}

Bounds boundsOf(const OpCall &call, std::span<const HostTensor> inputs, size_t number, const Evaluation &want) {
  const OpInfo &op = *call.op;
  const HostTensor &reference = want.outputs[number];
  const DType type = reference.type.dtype, narrow = op::accumulatorType(type);
  const int64_t count = reference.type.shape.numElements();
  auto at = [](const HostTensor &t, int64_t i) { return static_cast<Real>(op::interp::load(t, i).as<double>()); };
  Bounds bounds;
  for (int64_t i = 0; i < count; ++i)
    bounds.push_back(exactly(at(reference, i)));
  if (moves(op))
    return bounds;
  if (auto scalars = boundsOfScalars(call, inputs))
    return *scalars;
  const std::optional<Evaluation> exact =
      hasFloatOperands(call) ? inDouble(call, inputs, [](size_t, double x) { return x; }) : std::nullopt;
  auto exactAt = [&](int64_t i) { return exact ? at(exact->outputs[number], i) : at(reference, i); };
  auto within = [&](int64_t i, Real slack) {
    Near value = exactly(exactAt(i));
    if (std::isfinite(slack))
      value.low -= slack, value.high += slack;
    bounds[static_cast<size_t>(i)] = rounded(rounded(value, 0.5, type), narrow == type ? 0 : 0.5, narrow);
  };
  const Real unit = std::ldexp(Real(1), -formatOf(narrow).bits);
  if (op.combine == op::Combine::Sum) {
    const auto sizes = inDouble(call, inputs, [](size_t, double x) { return std::abs(x); }), ones = inDouble(call, inputs, [](size_t, double) { return 1.0; });
    for (int64_t i = 0; i < count; ++i) {
      const Real terms = op.family == op::Family::Reduction ? 48 + 2 : ones ? at(ones->outputs[number], i) + 1 : 1024;
      within(i, terms * unit * (sizes ? at(sizes->outputs[number], i) : std::abs(exactAt(i))));
    }
    return bounds;
  }
  if (op.combine == op::Combine::Prod) {
    int64_t longest = 1;
    for (const TensorType &t : call.operands)
      longest = std::max(longest, t.shape.numElements());
    for (int64_t i = 0; i < count; ++i)
      within(i, static_cast<Real>(longest) * unit * std::abs(exactAt(i)));
    return bounds;
  }
  const op::interp::Tolerance numpy = numpyTolerance(type);
  // Attention averages its values with weights that are rounded to the type, and what is averaged may cancel: relative to the average of their sizes.
  std::optional<Evaluation> sizes;
  if (std::string_view(op.name) == "scaled_dot_product_attention")
    sizes = inDouble(call, inputs, [](size_t operand, double x) { return operand == 2 ? std::abs(x) : x; });
  auto sizeAt = [&](int64_t i) { return std::abs(sizes ? at(sizes->outputs[number], i) : exactAt(i)); };
  for (int64_t i = 0; i < count; ++i)
    within(i, static_cast<Real>(numpy.atol) + static_cast<Real>(numpy.rtol) * sizeAt(i) + std::abs(at(reference, i) - exactAt(i)));
  return bounds;
}

std::string text(Real x) {
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, "%.9Lg", x);
  return buffer;
}

} // namespace

std::string outsideBounds(const OpCall &call, std::span<const HostTensor> inputs, std::span<const HostTensor> got, const Evaluation &want) {
  for (size_t number = 0; number < got.size(); ++number) {
    const HostTensor &result = got[number], &reference = want.outputs[number];
    if (!result.data)
      continue;
    if (!isFloat(reference.type.dtype) || result.type != reference.type) {
      if (std::string why = op::interp::compare(result, reference); !why.empty())
        return why;
      continue;
    }
    const Bounds bounds = boundsOf(call, inputs, number, want);
    int64_t outside = 0, first = -1;
    for (int64_t i = 0, n = result.type.shape.numElements(); i < n; ++i) {
      const Near &near = bounds[static_cast<size_t>(i)];
      const auto x = static_cast<Real>(op::interp::load(result, i).as<double>());
      const bool fits = std::isnan(near.mid) ? std::isnan(x) : x >= near.low && x <= near.high;
      if (!fits && outside++ == 0)
        first = i;
    }
    if (!outside)
      continue;
    const Near &near = bounds[static_cast<size_t>(first)];
    const auto x = static_cast<Real>(op::interp::load(result, first).as<double>());
    return "result " + std::to_string(number) + ", element " + std::to_string(first) + " of " + reference.type.str() + ": got " + text(x) +
           ", expected " + text(near.mid) + " from " + text(near.low) + " to " + text(near.high) + " (off by " +
           text(std::abs(x - near.mid) / ulpOf(near.mid, reference.type.dtype)) + " units in the last place, the reference gives " +
           text(static_cast<Real>(op::interp::load(reference, first).as<double>())) + "); " + std::to_string(outside) + " of " +
           std::to_string(result.type.shape.numElements()) + " elements";
  }
  return "";
}

} // namespace tressel::test
