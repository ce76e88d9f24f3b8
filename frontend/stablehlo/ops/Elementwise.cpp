// Elementwise ops: arithmetic, comparison, choice, conversion, and chlo's functions.
#include "frontend/stablehlo/Body.h"
#include "frontend/stablehlo/OpImporter.h"
#include "frontend/stablehlo/OpTable.h"

#include <cmath>
#include <limits>

namespace tressel::stablehlo {

namespace {
using N = OpImporter;
using V = mlir::Value;

constexpr Renamed kRenamed[] = {
    {"stablehlo.subtract", "sub"},
    {"stablehlo.maximum", "maximum"},
    {"stablehlo.minimum", "minimum"},
    {"stablehlo.power", "pow"},
    {"stablehlo.atan2", "atan2"},
    {"stablehlo.abs", "abs"},
    {"stablehlo.negate", "negative"},
    {"stablehlo.sign", "sign"},
    {"stablehlo.ceil", "ceil"},
    {"stablehlo.floor", "floor"},
    {"stablehlo.round_nearest_even", "round"},
    {"stablehlo.sqrt", "sqrt"},
    {"stablehlo.rsqrt", "rsqrt"},
    {"stablehlo.log_plus_one", "log1p"},
    {"stablehlo.exponential_minus_one", "expm1"},
    {"stablehlo.is_finite", "isfinite"},
    {"stablehlo.remainder", "fmod"},
    {"stablehlo.shift_left", "left_shift"},
    {"chlo.erf", "erf"},
    {"chlo.is_inf", "isinf"},
    {"chlo.next_after", "nextafter"},
    {"chlo.square", "square"},
    {"chlo.asin", "asin"},
    {"chlo.acos", "acos"},
    {"chlo.atan", "atan"},
    {"chlo.sinh", "sinh"},
    {"chlo.cosh", "cosh"},
    {"chlo.asinh", "asinh"},
    {"chlo.acosh", "acosh"},
    {"chlo.atanh", "atanh"},
};

bool isBool(V v) { return typeOf(v).dtype == bool_; }
V like(N &n, V v, double value) { return n.scalar(typeOf(v).dtype, value); }

/// A binary op that is another one on bools.
template <const char *Op, const char *OnBools> void binary(N &n) {
  n.wantInputs(2);
  n.sameElementType(n.in(0), n.in(1));
  n.out(0, n.emit(isBool(n.in(0)) ? OnBools : Op, n.inputs(0, 2)));
}
constexpr char kAdd[] = "add", kMul[] = "mul", kOr[] = "logical_or", kAnd[] = "logical_and", kXor[] = "logical_xor",
               kBitAnd[] = "bitwise_and", kBitOr[] = "bitwise_or", kBitXor[] = "bitwise_xor";

void invert(N &n) {
  n.wantInputs(1);
  n.out(0, n.emit(isBool(n.in(0)) ? "logical_not" : "bitwise_not", {n.in(0)}));
}

/// An op with an attribute that asks for a precision: the best is given anyway.
template <const char *Op> void function(N &n) {
  n.wantInputs(1);
  n.ignore("result_accuracy");
  n.out(0, n.emit(Op, {n.in(0)}));
}
constexpr char kExp[] = "exp", kLog[] = "log", kSin[] = "sin", kCos[] = "cos", kTanh[] = "tanh", kSigmoid[] = "sigmoid",
               kTan[] = "tan", kCbrt[] = "cbrt";

void complementaryErf(N &n) {
  n.wantInputs(1);
  n.out(0, n.emit("sub", {like(n, n.in(0), 1), n.emit("erf", {n.in(0)})}));
}
/// Of f32 by the polynomials of Giles, Approximating the erfinv function, 2010; of f64 improved by Newton's method.
void inverseErf(N &n) {
  n.wantInputs(1);
  if (!isFloat(typeOf(n.in(0)).dtype))
    n.fail("wants floats, not " + typeOf(n.in(0)).str());
  const DType type = typeOf(n.in(0)).dtype, computed = type == f64 ? f64 : f32;
  V x = n.cast(n.in(0), computed);
  auto add = [&](V a, V b) { return n.emit("add", {a, b}); };
  auto mul = [&](V a, V b) { return n.emit("mul", {a, b}); };
  auto number = [&](double v) { return n.scalar(computed, v); };
  auto polynomial = [&](V at, std::initializer_list<double> coefficients) {
    V sum = number(0);
    for (double c : coefficients)
      sum = add(mul(sum, at), number(c));
    return sum;
  };
  V w = n.emit("negative", {n.emit("log1p", {n.emit("negative", {mul(x, x)})})});
  V middle = polynomial(add(w, number(-2.5)), {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                                               0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941});
  V tail = polynomial(add(n.emit("sqrt", {w}), number(-3)),
                      {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
                       0.00943887047, 1.00167406, 2.83297682});
  V y = mul(x, n.emit("where", {n.emit("less", {w, number(5)}), middle, tail}));
  for (int step = 0; step < (computed == f64 ? 2 : 0); ++step) {
    V slope = n.emit("exp", {n.emit("negative", {mul(y, y)})});
    V error = n.emit("sub", {n.emit("erf", {y}), x});
    y = n.emit("sub", {y, n.emit("div", {mul(error, number(0.88622692545275801365)), slope})});
  }
  V isEnd = n.emit("equal", {n.emit("abs", {x}), number(1)});
  V end = mul(x, number(std::numeric_limits<double>::infinity()));
  n.out(0, n.cast(n.emit("where", {isEnd, end, y}), type));
}

void shiftRightArithmetic(N &n) {
  n.wantInputs(2);
  n.sameElementType(n.in(0), n.in(1));
  if (!isSigned(typeOf(n.in(0)).dtype))
    n.unsupported("of integers without sign");
  n.out(0, n.emit("right_shift", n.inputs(0, 2)));
}
/// An arithmetic shift, with the copies of the sign bit that it shifts in cleared.
void shiftRightLogical(N &n) {
  n.wantInputs(2);
  n.sameElementType(n.in(0), n.in(1));
  V x = n.in(0), by = n.in(1), moved = n.emit("right_shift", {x, by});
  const int bits = 8 * static_cast<int>(sizeOf(typeOf(x).dtype));
  if (!isSigned(typeOf(x).dtype))
    return n.out(0, moved);
  V signs = n.emit("right_shift", {like(n, x, -std::ldexp(1.0, bits - 1)), by});
  V own = n.emit("bitwise_not", {n.emit("left_shift", {signs, like(n, x, 1)})});
  V inRange =
      n.emit("logical_and", {n.emit("greater_equal", {by, like(n, x, 0)}), n.emit("less", {by, like(n, x, bits)})});
  n.out(0, n.emit("where", {inRange, n.emit("bitwise_and", {moved, own}), like(n, x, 0)}));
}

/// Integer division towards zero; Tressel's own op rounds down.
V quotientOfInts(N &n, V a, V b) {
  if (!isSigned(typeOf(a).dtype))
    return n.emit("floor_divide", {a, b});
  V down = n.emit("floor_divide", {a, b});
  V rest = n.emit("sub", {a, n.emit("mul", {down, b})});
  V apart = n.emit("not_equal", {n.emit("less", {a, like(n, a, 0)}), n.emit("less", {b, like(n, b, 0)})});
  V inexact = n.emit("not_equal", {rest, like(n, rest, 0)});
  return n.emit("add", {down, n.cast(n.emit("logical_and", {apart, inexact}), typeOf(a).dtype)});
}
void divide(N &n) {
  n.wantInputs(2);
  n.sameElementType(n.in(0), n.in(1));
  n.out(0, isInteger(typeOf(n.in(0)).dtype) ? quotientOfInts(n, n.in(0), n.in(1)) : n.emit("div", n.inputs(0, 2)));
}
void roundAwayFromZero(N &n) {
  n.wantInputs(1);
  V x = n.in(0), whole = n.emit("trunc", {x});
  V half = n.emit("greater_equal", {n.emit("abs", {n.emit("sub", {x, whole})}), like(n, x, 0.5)});
  n.out(0, n.emit("where", {half, n.emit("add", {whole, n.emit("sign", {x})}), whole}));
}
/// Comparison in the total order, NaN last. It equals the sort order of floats once zeros, and NaNs, are canonicalized.
V compareTotally(N &n, const std::string &direction) {
  for (mlir::Value operand : n.operation()->getOperands())
    if (!isCanonicalFloat(operand, typeOf(n.in(0)).dtype))
      n.unsupported("compare_type TOTALORDER of floats whose zeros and NaNs have not been made equal");
  auto isNan = [&](V v) { return n.emit("isnan", {v}); };
  auto invert = [&](V v) { return n.emit("logical_not", {v}); };
  auto less = [&](V a, V b) {
    return n.emit("logical_or", {n.emit("less", {a, b}), n.emit("logical_and", {isNan(b), invert(isNan(a))})});
  };
  V a = n.in(0), b = n.in(1);
  V same = n.emit("logical_or", {n.emit("equal", {a, b}), n.emit("logical_and", {isNan(a), isNan(b)})});
  if (direction == "EQ" || direction == "NE")
    return direction == "EQ" ? same : invert(same);
  if (direction == "LT" || direction == "GE")
    return direction == "LT" ? less(a, b) : invert(less(a, b));
  if (direction == "GT" || direction == "LE")
    return direction == "GT" ? less(b, a) : invert(less(b, a));
  n.fail("comparison_direction " + direction + " is unknown");
}

void compare(N &n) {
  static constexpr std::pair<std::string_view, std::string_view> kDirections[] = {
      {"EQ", "equal"},      {"NE", "not_equal"}, {"LT", "less"},
      {"LE", "less_equal"}, {"GT", "greater"},   {"GE", "greater_equal"}};
  n.wantInputs(2);
  n.sameElementType(n.in(0), n.in(1));
  const bool isTotal = n.word("compare_type", "NOTYPE") == "TOTALORDER" && isFloat(typeOf(n.in(0)).dtype);
  std::string direction = n.word("comparison_direction");
  if (isTotal)
    return n.out(0, compareTotally(n, direction));
  for (auto [theirs, ours] : kDirections)
    if (direction == theirs)
      return n.out(0, n.emit(ours, n.inputs(0, 2)));
  n.fail("comparison_direction " + direction + " is unknown");
}
void select(N &n) {
  n.wantInputs(3);
  n.sameElementType(n.in(1), n.in(2));
  n.out(0, n.emit("where", n.inputs(0, 3)));
}
void clamp(N &n) {
  n.wantInputs(3);
  n.sameElementType(n.in(0), n.in(1));
  n.sameElementType(n.in(1), n.in(2));
  n.out(0, n.emit("clip", {n.in(1), n.in(0), n.in(2)}));
}
void convert(N &n) {
  n.wantInputs(1);
  n.out(0, n.cast(n.in(0), n.resultType().dtype));
}
void reducePrecision(N &n) {
  n.wantInputs(1);
  const int64_t exponent = n.integer("exponent_bits"), mantissa = n.integer("mantissa_bits");
  DType type = typeOf(n.in(0)).dtype;
  DType to = exponent == 8 && mantissa == 7     ? bf16
             : exponent == 5 && mantissa == 10  ? f16
             : exponent == 8 && mantissa == 23  ? f32
             : exponent == 11 && mantissa == 52 ? f64
                                                : bool_;
  if (to == bool_)
    n.unsupported(std::to_string(exponent) + " bits of exponent and " + std::to_string(mantissa) + " of mantissa");
  n.out(0, sizeOf(to) >= sizeOf(type) ? n.in(0) : n.cast(n.cast(n.in(0), to), type));
}
void same(N &n) {
  for (int i = 0; i < n.numInputs(); ++i)
    n.out(i, n.in(i));
}

constexpr OpEntry kTable[] = {
    {"stablehlo.add", binary<kAdd, kOr>},
    {"stablehlo.multiply", binary<kMul, kAnd>},
    {"stablehlo.and", binary<kBitAnd, kAnd>},
    {"stablehlo.or", binary<kBitOr, kOr>},
    {"stablehlo.xor", binary<kBitXor, kXor>},
    {"stablehlo.not", invert},
    {"stablehlo.exponential", function<kExp>},
    {"stablehlo.log", function<kLog>},
    {"stablehlo.sine", function<kSin>},
    {"stablehlo.cosine", function<kCos>},
    {"stablehlo.tan", function<kTan>},
    {"chlo.tan", function<kTan>},
    {"chlo.erfc", complementaryErf},
    {"chlo.erf_inv", inverseErf},
    {"stablehlo.tanh", function<kTanh>},
    {"stablehlo.logistic", function<kSigmoid>},
    {"stablehlo.cbrt", function<kCbrt>},
    {"stablehlo.divide", divide},
    {"stablehlo.shift_right_arithmetic", shiftRightArithmetic},
    {"stablehlo.shift_right_logical", shiftRightLogical},
    {"stablehlo.round_nearest_afz", roundAwayFromZero},
    {"stablehlo.compare", compare},
    {"stablehlo.select", select},
    {"stablehlo.clamp", clamp},
    {"stablehlo.convert", convert},
    {"stablehlo.reduce_precision", reducePrecision},
    {"stablehlo.optimization_barrier", same},
};
} // namespace

std::span<const Renamed> renamedOps() { return kRenamed; }
std::span<const OpEntry> elementwiseOps() { return kTable; }

} // namespace tressel::stablehlo
