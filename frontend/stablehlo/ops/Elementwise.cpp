// Elementwise ops: arithmetic, comparison, choice, conversion, and chlo's functions.
#include "frontend/stablehlo/OpImporter.h"
#include "frontend/stablehlo/OpTable.h"

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
    {"chlo.erf", "erf"},
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
  n.out(0, n.emit(isBool(n.in(0)) ? "logical_not" : "bitwise_invert", {n.in(0)}));
}

/// An op with an attribute that asks for a precision: the best is given anyway.
template <const char *Op> void function(N &n) {
  n.wantInputs(1);
  n.ignore("result_accuracy");
  n.out(0, n.emit(Op, {n.in(0)}));
}
constexpr char kExp[] = "exp", kLog[] = "log", kSin[] = "sin", kCos[] = "cos", kTanh[] = "tanh", kSigmoid[] = "sigmoid";

void tangent(N &n) {
  n.wantInputs(1);
  n.ignore("result_accuracy");
  if (op::findOp("tan"))
    return n.out(0, n.emit("tan", {n.in(0)}));
  n.out(0, n.emit("div", {n.emit("sin", {n.in(0)}), n.emit("cos", {n.in(0)})}));
}
void complementaryErf(N &n) {
  n.wantInputs(1);
  n.out(0, n.emit("sub", {like(n, n.in(0), 1), n.emit("erf", {n.in(0)})}));
}
void cubeRoot(N &n) {
  n.wantInputs(1);
  n.ignore("result_accuracy");
  V x = n.in(0);
  n.out(0, n.emit("mul", {n.emit("sign", {x}), n.emit("pow", {n.emit("abs", {x}), like(n, x, 1.0 / 3)})}));
}

/// Towards zero, where Tressel's own rounds down.
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
/// With the sign of the dividend, where Tressel's own has that of the divisor.
void remainder(N &n) {
  n.wantInputs(2);
  n.sameElementType(n.in(0), n.in(1));
  V a = n.in(0), b = n.in(1);
  V rest = n.emit("remainder", {a, b});
  if (!isSigned(typeOf(a).dtype))
    return n.out(0, rest);
  V apart = n.emit("not_equal", {n.emit("less", {a, like(n, a, 0)}), n.emit("less", {b, like(n, b, 0)})});
  V inexact = n.emit("not_equal", {rest, like(n, rest, 0)});
  n.out(0, n.emit("where", {n.emit("logical_and", {apart, inexact}), n.emit("sub", {rest, b}), rest}));
}
void roundAwayFromZero(N &n) {
  n.wantInputs(1);
  V x = n.in(0), whole = n.emit("trunc", {x});
  V half = n.emit("greater_equal", {n.emit("abs", {n.emit("sub", {x, whole})}), like(n, x, 0.5)});
  n.out(0, n.emit("where", {half, n.emit("add", {whole, n.emit("sign", {x})}), whole}));
}
void isFinite(N &n) {
  n.wantInputs(1);
  V x = n.in(0);
  n.out(0, n.emit("less", {n.emit("abs", {x}), like(n, x, std::numeric_limits<double>::infinity())}));
}

void compare(N &n) {
  static constexpr std::pair<std::string_view, std::string_view> kDirections[] = {
      {"EQ", "equal"},      {"NE", "not_equal"}, {"LT", "less"},
      {"LE", "less_equal"}, {"GT", "greater"},   {"GE", "greater_equal"}};
  n.wantInputs(2);
  n.sameElementType(n.in(0), n.in(1));
  if (n.word("compare_type", "NOTYPE") == "TOTALORDER")
    n.unsupported("compare_type TOTALORDER outside of a sort");
  std::string direction = n.word("comparison_direction");
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
    {"stablehlo.tan", tangent},
    {"chlo.tan", tangent},
    {"chlo.erfc", complementaryErf},
    {"stablehlo.tanh", function<kTanh>},
    {"stablehlo.logistic", function<kSigmoid>},
    {"stablehlo.cbrt", cubeRoot},
    {"stablehlo.divide", divide},
    {"stablehlo.remainder", remainder},
    {"stablehlo.round_nearest_afz", roundAwayFromZero},
    {"stablehlo.is_finite", isFinite},
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
