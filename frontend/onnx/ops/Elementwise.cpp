// Arithmetic, comparisons, activations: ops that work element by element.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"
#include "tressel/runtime/Dim.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tressel::onnx {

namespace {
using N = NodeImporter;

/// One operand, one op of the same meaning.
template <const char *Op> void unary(N &n) { n.out(0, n.emit(Op, {n.in(0)})); }
template <const char *Op> void unaryFloat(N &n) {
  n.requireFloat(n.in(0));
  unary<Op>(n);
}
/// Operands of one type, broadcast against each other.
template <const char *Op> void binary(N &n) {
  n.sameType(n.in(0), n.in(1));
  n.out(0, n.emit(Op, {n.in(0), n.in(1)}));
}
/// Any number of operands.
Value variadic(N &n, const char *op) {
  Value v = n.in(0);
  for (int i = 1; i < n.numInputs(); ++i) {
    n.sameType(v, n.in(i));
    v = n.emit(op, {v, n.in(i)});
  }
  return v;
}
template <const char *Op> void variadicOp(N &n) { n.out(0, variadic(n, Op)); }

constexpr char kAdd[] = "add", kSub[] = "sub", kMul[] = "mul", kMax[] = "maximum", kMin[] = "minimum";
constexpr char kAnd[] = "logical_and", kOr[] = "logical_or", kXor[] = "logical_xor", kNot[] = "logical_not";
constexpr char kEqual[] = "equal", kGreater[] = "greater", kLess[] = "less", kGreaterEqual[] = "greater_equal",
               kLessEqual[] = "less_equal";
constexpr char kNeg[] = "negative", kAbs[] = "abs", kSign[] = "sign", kFloor[] = "floor", kCeil[] = "ceil",
               kRound[] = "round", kSqrt[] = "sqrt", kExp[] = "exp", kLog[] = "log", kTanh[] = "tanh", kErf[] = "erf",
               kSigmoid[] = "sigmoid", kRelu[] = "relu", kSin[] = "sin", kCos[] = "cos", kIsNan[] = "isnan",
               kAsin[] = "asin", kAcos[] = "acos", kAtan[] = "atan", kSinh[] = "sinh", kCosh[] = "cosh",
               kAsinh[] = "asinh", kAcosh[] = "acosh", kAtanh[] = "atanh", kReciprocal[] = "reciprocal", kSoftplus[] = "softplus";

Value like(N &n, const Value &v, double x) { return n.scalar(v.dtype(), x); }
Value add(N &n, Value a, Value b) { return n.emit("add", {a, b}); }
Value mul(N &n, Value a, Value b) { return n.emit("mul", {a, b}); }
Value div(N &n, Value a, Value b) { return n.emit("div", {a, b}); }
Value where(N &n, Value c, Value a, Value b) { return n.emit("where", {c, a, b}); }

/// Certainly not negative.
bool isCount(const Value &v) {
  if (!v.host || v.dtype() != i64)
    return false;
  for (int64_t i = 0; i < v.type.shape.numElements(); ++i)
    if (dim::bounds(v.size(i)).lo < 0)
      return false;
  return true;
}
/// ONNX divides integers towards zero.
void divide(N &n) {
  const Value &a = n.in(0), &b = n.in(1);
  n.sameType(a, b);
  const bool floors = a.dtype() == u8 || (isCount(a) && isCount(b));
  if (isFloat(a.dtype()) || floors || a.dtype() == bool_)
    return n.out(0, floors ? n.emit("floor_divide", {a, b}) : div(n, a, b));
  Value magnitude = n.emit("floor_divide", {n.emit("abs", {a}), n.emit("abs", {b})});
  n.out(0, mul(n, mul(n, n.emit("sign", {a}), n.emit("sign", {b})), magnitude));
}

void mod(N &n) {
  const Value &a = n.in(0), &b = n.in(1);
  n.sameType(a, b);
  bool cSign = n.intAttr("fmod", 0) != 0;
  if (!cSign && isFloat(a.dtype()))
    n.fail("floating-point operands need fmod = 1");
  if (!cSign)
    return n.out(0, n.emit("remainder", {a, b}));
  Value magnitude = n.emit("remainder", {n.emit("abs", {a}), n.emit("abs", {b})});
  n.out(0, where(n, n.emit("less", {a, like(n, a, 0)}), n.emit("negative", {magnitude}), magnitude));
}

/// The result has the base's type, whatever the exponent's is.
void power(N &n) {
  const Value &base = n.in(0), &exponent = n.in(1);
  if (!isFloat(base.dtype()) && isFloat(exponent.dtype())) {
    // 9 to the power of 3.0 is 729 exactly; pow of floats may fall short of it by a rounding, and truncation would
    // show.
    Value p = n.emit("pow", {n.cast(base, f64), n.cast(exponent, f64)}), whole = n.emit("round", {p});
    Value close =
        n.emit("less", {n.emit("abs", {n.emit("sub", {p, whole})}), mul(n, n.emit("abs", {whole}), like(n, p, 1e-12))});
    return n.out(0, n.cast(where(n, close, whole, p), base.dtype()));
  }
  n.out(0, n.emit("pow", {base, n.cast(exponent, base.dtype())}));
}

void mean(N &n) {
  Value sum = variadic(n, "add");
  n.out(0, mul(n, sum, like(n, sum, 1.0 / n.numInputs())));
}

void identity(N &n) { n.out(0, n.in(0)); }
/// Inference: nothing is dropped, and the mask, if asked for, keeps everything.
void dropout(N &n) {
  n.ignoreAttr("ratio");
  n.ignoreAttr("seed");
  n.ignoreAttr("is_test");
  const bool drops = !n.has(1) || n.knownScalar(n.in(1)).value_or(1) != 0;
  if (n.has(2) && n.knownScalar(n.in(2)).value_or(1) != 0 && drops)
    n.unsupported("training mode, which drops at random");
  n.out(0, n.in(0));
  if (n.wants(1))
    n.out(1, n.broadcastTo(n.scalar(n.opset() >= 10 ? bool_ : n.in(0).dtype(), 1), n.in(0).type.shape));
}

void castTo(N &n, DType to) {
  n.ignoreAttr("saturate"); // concerns the 8-bit floats only
  n.ignoreAttr("round_mode");
  n.out(0, n.cast(n.in(0), to));
}
void castOp(N &n) { castTo(n, n.typeAttr("to")); }
void castLike(N &n) { castTo(n, n.in(1).dtype()); }

void clip(N &n) {
  Value v = n.in(0);
  auto bound = [&](const char *op, const char *attr, int i) {
    if (n.opset() < 11 && n.hasAttr(attr))
      v = n.emit(op, {v, like(n, v, n.floatAttr(attr))});
    else if (n.opset() >= 11 && n.has(i)) {
      n.sameType(v, n.in(i));
      v = n.emit(op, {v, n.reshape(n.in(i), {})});
    }
  };
  bound("maximum", "min", 1);
  bound("minimum", "max", 2);
  n.out(0, v);
}

void leakyRelu(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  n.out(0, n.emit("leaky_relu", {x}, {{"alpha", n.floatAttr("alpha", 0.01)}}));
}
void prelu(N &n) {
  const Value &x = n.in(0);
  n.sameType(x, n.in(1));
  n.out(0, where(n, n.emit("less", {x, like(n, x, 0)}), mul(n, x, n.in(1)), x));
}
/// scale * (x > 0 ? x : alpha * (exp(x / width) - 1))
void expLinear(N &n, double scale, double alpha, double width) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  Value zero = like(n, x, 0), low = n.emit("minimum", {x, zero});
  if (width != 1)
    low = div(n, low, like(n, x, width));
  Value v = where(n, n.emit("greater", {x, zero}), x, mul(n, n.emit("expm1", {low}), like(n, x, alpha)));
  n.out(0, scale == 1 ? v : mul(n, v, like(n, x, scale)));
}
void elu(N &n) {
  n.requireFloat(n.in(0));
  n.out(0, n.emit("elu", {n.in(0)}, {{"alpha", n.floatAttr("alpha", 1)}}));
}
void selu(N &n) {
  double alpha = n.floatAttr("alpha", 1.67326319217681884765625);
  expLinear(n, n.floatAttr("gamma", 1.05070102214813232421875), alpha, 1);
}
void celu(N &n) {
  double alpha = n.floatAttr("alpha", 1);
  expLinear(n, 1, alpha, alpha);
}
Value hardSigmoidOf(N &n, const Value &x, double alpha, double beta) {
  n.requireFloat(x);
  return n.emit("hard_sigmoid", {x}, {{"alpha", alpha}, {"beta", beta}});
}
void hardSigmoid(N &n) {
  double alpha = n.floatAttr("alpha", 0.2);
  n.out(0, hardSigmoidOf(n, n.in(0), alpha, n.floatAttr("beta", 0.5)));
}
void hardSwish(N &n) { n.out(0, mul(n, n.in(0), hardSigmoidOf(n, n.in(0), 1.0 / 6, 0.5))); }
void swish(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  double alpha = n.floatAttr("alpha", 1);
  n.out(0, alpha == 1 ? n.emit("silu", {x}) : mul(n, x, n.emit("sigmoid", {mul(n, x, like(n, x, alpha))})));
}
void mish(N &n) { n.out(0, mul(n, n.in(0), n.emit("tanh", {n.emit("softplus", {n.in(0)})}))); }
void softsign(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  n.out(0, div(n, x, add(n, n.emit("abs", {x}), like(n, x, 1))));
}
void thresholdedRelu(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  n.out(0, where(n, n.emit("greater", {x, like(n, x, n.floatAttr("alpha", 1))}), x, like(n, x, 0)));
}
void shrink(N &n) {
  const Value &x = n.in(0);
  double lambda = n.floatAttr("lambd", 0.5), bias = n.floatAttr("bias", 0);
  Value above = n.emit("greater", {x, like(n, x, lambda)}), below = n.emit("less", {x, like(n, x, -lambda)});
  Value low = where(n, below, add(n, x, like(n, x, bias)), like(n, x, 0));
  n.out(0, where(n, above, n.emit("sub", {x, like(n, x, bias)}), low));
}
void gelu(N &n) {
  std::string kind = n.stringAttr("approximate", "none");
  if (kind != "none" && kind != "tanh")
    n.fail("attribute 'approximate' is '" + kind + "', which is neither 'none' nor 'tanh'");
  n.requireFloat(n.in(0));
  n.out(0, n.emit(kind == "tanh" ? "gelu_tanh" : "gelu", {n.in(0)}));
}
void tangent(N &n) {
  n.requireFloat(n.in(0));
  n.out(0, div(n, n.emit("sin", {n.in(0)}), n.emit("cos", {n.in(0)})));
}
void isInf(N &n) {
  const Value &x = n.in(0);
  n.requireFloat(x);
  double inf = std::numeric_limits<double>::infinity();
  bool negative = n.intAttr("detect_negative", 1) != 0, positive = n.intAttr("detect_positive", 1) != 0;
  Value below = n.emit("equal", {x, like(n, x, -inf)}), above = n.emit("equal", {x, like(n, x, inf)});
  if (negative && positive)
    return n.out(0, n.emit("logical_or", {below, above}));
  if (!negative && !positive)
    return n.out(0, n.broadcastTo(n.scalar(bool_, 0), x.type.shape));
  n.out(0, negative ? below : above);
}
void whereOp(N &n) {
  if (n.in(0).dtype() != bool_)
    n.fail("the condition must be bool, not " + n.in(0).type.str());
  n.sameType(n.in(1), n.in(2));
  n.out(0, where(n, n.in(0), n.in(1), n.in(2)));
}
/// Operands that are bool already; the dialect would accept others.
template <const char *Op> void logical(N &n) {
  for (int i = 0; i < n.numInputs(); ++i)
    if (n.in(i).dtype() != bool_)
      n.fail("operands must be bool, not " + n.in(i).type.str());
  n.numInputs() == 1 ? unary<Op>(n) : binary<Op>(n);
}

// Before version 7 broadcasting was asked for by attributes; those versions are not in the table.
constexpr OpEntry kTable[] = {
    {"Add", 7, binary<kAdd>},
    {"Sub", 7, binary<kSub>},
    {"Mul", 7, binary<kMul>},
    {"Div", 7, divide},
    {"Mod", 10, mod},
    {"Pow", 7, power},
    {"Max", 8, variadicOp<kMax>},
    {"Min", 8, variadicOp<kMin>},
    {"Sum", 8, variadicOp<kAdd>},
    {"Mean", 8, mean},
    {"And", 7, logical<kAnd>},
    {"Or", 7, logical<kOr>},
    {"Xor", 7, logical<kXor>},
    {"Not", 1, logical<kNot>},
    {"Equal", 7, binary<kEqual>},
    {"Greater", 7, binary<kGreater>},
    {"Less", 7, binary<kLess>},
    {"GreaterOrEqual", 12, binary<kGreaterEqual>},
    {"LessOrEqual", 12, binary<kLessEqual>},
    {"Where", 9, whereOp},
    {"Neg", 6, unary<kNeg>},
    {"Abs", 6, unary<kAbs>},
    {"Sign", 9, unary<kSign>},
    {"Floor", 6, unaryFloat<kFloor>},
    {"Ceil", 6, unaryFloat<kCeil>},
    {"Round", 11, unaryFloat<kRound>},
    {"Sqrt", 6, unaryFloat<kSqrt>},
    {"Exp", 6, unaryFloat<kExp>},
    {"Log", 6, unaryFloat<kLog>},
    {"Tanh", 6, unaryFloat<kTanh>},
    {"Erf", 9, unaryFloat<kErf>},
    {"Sigmoid", 6, unaryFloat<kSigmoid>},
    {"Relu", 6, unary<kRelu>},
    {"Reciprocal", 6, unaryFloat<kReciprocal>},
    {"Softplus", 1, unaryFloat<kSoftplus>},
    {"Sin", 7, unaryFloat<kSin>},
    {"Cos", 7, unaryFloat<kCos>},
    {"Tan", 7, tangent},
    {"Asin", 7, unaryFloat<kAsin>},
    {"Acos", 7, unaryFloat<kAcos>},
    {"Atan", 7, unaryFloat<kAtan>},
    {"Sinh", 9, unaryFloat<kSinh>},
    {"Cosh", 9, unaryFloat<kCosh>},
    {"Asinh", 9, unaryFloat<kAsinh>},
    {"Acosh", 9, unaryFloat<kAcosh>},
    {"Atanh", 9, unaryFloat<kAtanh>},
    {"IsNaN", 9, unaryFloat<kIsNan>},
    {"IsInf", 10, isInf},
    {"Identity", 1, identity},
    {"Dropout", 7, dropout},
    {"Cast", 6, castOp},
    {"CastLike", 15, castLike},
    {"Clip", 6, clip},
    {"LeakyRelu", 6, leakyRelu},
    {"PRelu", 7, prelu},
    {"Elu", 6, elu},
    {"Selu", 6, selu},
    {"Celu", 12, celu},
    {"HardSigmoid", 6, hardSigmoid},
    {"HardSwish", 14, hardSwish},
    {"Swish", 24, swish},
    {"Mish", 18, mish},
    {"Softsign", 1, softsign},
    {"ThresholdedRelu", 10, thresholdedRelu},
    {"Shrink", 9, shrink},
    {"Gelu", 20, gelu},
};
} // namespace

std::span<const OpEntry> elementwiseOps() { return kTable; }

} // namespace tressel::onnx
