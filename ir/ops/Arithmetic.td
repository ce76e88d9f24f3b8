// Arithmetic, comparison and logic: elementwise, with broadcasting and promotion.
include "ir/ops/Base.td"

def AddOp : Binary<"add"> {
  let prebuilt = AllNumbers;
  let summary = "a + b, elementwise";
  let scalar = [{ a + b }];
  let numpy = "a + b";
  let commutative = 1;
  let identity = "-0.0";
  let example = "add(tensor({1.0, 2, 3}), 10)";
}
def SubOp : Binary<"sub"> {
  let prebuilt = AllNumbers;
  let summary = "a - b, elementwise";
  let scalar = [{ a - b }];
  let numpy = "a - b";
  let identity = "0.0";
  let example = "sub(tensor({{1.0, 2}, {3, 4}}), tensor({1.0, 2}))";
}
def MulOp : Binary<"mul"> {
  let prebuilt = AllNumbers;
  let summary = "a * b, elementwise";
  let scalar = [{ a * b }];
  let numpy = "a * b";
  let commutative = 1;
  let identity = "1.0";
  let example = "mul(tensor({1.0, 2, 3}), tensor({4.0, 5, 6}))";
}
def DivOp : Binary<"div"> {
  let prebuilt = AllNumbers;
  let summary = "a / b, elementwise; integers give f32";
  let scalar = [{ a / b }];
  let compute = "Float";
  let numpy = "a / b";
  let domains = ["-2, 2", "0.5, 4"];
  let identity = "1.0";
  let example = "div(tensor({1, 2, 3}, i32), 2)";
}
def FloorDivideOp : Binary<"floor_divide"> {
  let summary = "The largest integer not above a / b, elementwise; an integer divided by zero gives 0, a float a / b";
  let scalar = [{ floorQuotient(a, b, cx.result) }];
  let numpy = "np.floor_divide(a, b)";
  let domains = ["-127, 127", "1, 40"];
  let example = "floor_divide(tensor({-7, 7}, i32), 2)";
}
def RemainderOp : Binary<"remainder"> {
  let summary = "a - b * floor(a / b), elementwise: the sign of b; an integer by zero gives 0";
  let description = [{
    Of floats exact while |a / b| is below 2^53; of larger quotients no digit is right.
  }];
  let scalar = [{ a % b }];
  let numpy = "np.remainder(a, b)";
  let domains = ["-9, 9", "1, 4"];
  let example = "remainder(tensor({-7, 7}, i32), 3)";
}
def DivmodOp : Composite<"divmod"> {
  let family = "Elementwise";
  let summary = "floor_divide(a, b) and remainder(a, b) at once";
  let description = [{
    - (C1) the operands' shapes broadcast;
    - (C2) the operands' element types suit the op.
  }];
  let arguments = (ins Tensor:$a, Tensor:$b);
  let results = (outs Tensor:$quotient, Tensor:$rest);
  let compute = "Number";
  let infer = "inferDivmod";
  let decomposition = [{
    return {floor_divide(a, b), remainder(a, b)};
  }];
  let numpy = "np.divmod(a, b)";
  let domains = ["-9, 9", "1, 4"];
  let example = "divmod(tensor({7.0, -7}), 3)";
}
def PowOp : Binary<"pow"> {
  let summary = "a to the power of b, elementwise";
  let scalar = [{ pow(a, b) }];
  let numpy = "np.power(a, b)";
  let domains = ["0.5, 2", "0, 3"];
  let identity = "1.0";
  let example = "pow(tensor({1.0, 2, 3}), 2)";
}
def MinimumOp : Binary<"minimum"> {
  let prebuilt = AllNumbers;
  let summary = "The smaller of a and b, elementwise; NaN if either is";
  let scalar = [{ min(a, b) }];
  let compute = "Any";
  let numpy = "np.minimum(a, b)";
  let commutative = 1;
  let example = "minimum(tensor({1.0, 5, 3}), 4)";
}
def MaximumOp : Binary<"maximum"> {
  let prebuilt = AllNumbers;
  let summary = "The larger of a and b, elementwise; NaN if either is";
  let scalar = [{ max(a, b) }];
  let compute = "Any";
  let numpy = "np.maximum(a, b)";
  let commutative = 1;
  let example = "maximum(tensor({1.0, 5, 3}), 4)";
}

def EqualOp : Comparison<"equal"> {
  let prebuilt = !listconcat(Numbers, ["bool"]);
  let summary = "a == b, elementwise, as bool";
  let scalar = [{ a == b }];
  let numpy = "a == b";
  let commutative = 1;
  let example = "equal(tensor({1.0, 2, 3}), 2)";
}
def NotEqualOp : Comparison<"not_equal"> {
  let prebuilt = !listconcat(Numbers, ["bool"]);
  let summary = "a != b, elementwise, as bool";
  let scalar = [{ a != b }];
  let numpy = "a != b";
  let commutative = 1;
  let example = "not_equal(tensor({1.0, 2, 3}), 2)";
}
def LessOp : Comparison<"less"> {
  let summary = "a < b, elementwise, as bool";
  let scalar = [{ a < b }];
  let numpy = "a < b";
  let example = "less(tensor({1.0, 2, 3}), 2)";
}
def LessEqualOp : Comparison<"less_equal"> {
  let summary = "a <= b, elementwise, as bool";
  let scalar = [{ a <= b }];
  let numpy = "a <= b";
  let example = "less_equal(tensor({1.0, 2, 3}), 2)";
}
def GreaterOp : Comparison<"greater"> {
  let summary = "a > b, elementwise, as bool";
  let scalar = [{ a > b }];
  let numpy = "a > b";
  let example = "greater(tensor({1.0, 2, 3}), 2)";
}
def GreaterEqualOp : Comparison<"greater_equal"> {
  let summary = "a >= b, elementwise, as bool";
  let scalar = [{ a >= b }];
  let numpy = "a >= b";
  let example = "greater_equal(tensor({1.0, 2, 3}), 2)";
}

def LogicalAndOp : Logical<"logical_and"> {
  let arguments = (ins Tensor:$a, Tensor:$b);
  let summary = "Whether both a and b are nonzero, elementwise";
  let scalar = [{ a && b }];
  let numpy = "np.logical_and(a, b)";
  let commutative = 1;
  let example = "logical_and(tensor({0.0, 1, 2}), tensor({1.0, 1, 0}))";
}
def LogicalOrOp : Logical<"logical_or"> {
  let arguments = (ins Tensor:$a, Tensor:$b);
  let summary = "Whether a or b is nonzero, elementwise";
  let scalar = [{ a || b }];
  let numpy = "np.logical_or(a, b)";
  let commutative = 1;
  let example = "logical_or(tensor({0.0, 1, 2}), tensor({0.0, 1, 0}))";
}
def LogicalXorOp : Logical<"logical_xor"> {
  let arguments = (ins Tensor:$a, Tensor:$b);
  let summary = "Whether exactly one of a and b is nonzero, elementwise";
  let scalar = [{ a != b }];
  let numpy = "np.logical_xor(a, b)";
  let commutative = 1;
  let example = "logical_xor(tensor({0.0, 1, 2}), tensor({1.0, 1, 0}))";
}
def LogicalNotOp : Logical<"logical_not"> {
  let arguments = (ins Tensor:$x);
  let summary = "Whether x is zero, elementwise";
  let scalar = [{ !x }];
  let numpy = "np.logical_not(x)";
  let example = "logical_not(tensor({0.0, 1, 2}))";
}

def WhereOp : Elementwise<"where"> {
  let prebuilt = Numbers;
  let summary = "a where the condition is nonzero, b elsewhere";
  let arguments = (ins Tensor:$condition, Tensor:$a, Tensor:$b);
  let boolOperands = 1;
  let scalar = [{ select(condition, a, b) }];
  let numpy = "np.where(condition, a, b)";
  let example = "where(tensor({true, false, true}, bool_), tensor({1.0, 2, 3}), -1)";
}
def ClipOp : Elementwise<"clip"> {
  let prebuilt = Numbers;
  let summary = "x limited to [low, high], elementwise: minimum(maximum(x, low), high)";
  let arguments = (ins Tensor:$x, Tensor:$low, Tensor:$high);
  let scalar = [{ min(max(x, low), high) }];
  let numpy = "np.minimum(np.maximum(x, low), high)";
  let domains = ["-2, 2", "-1, 0", "0, 1"];
  let example = "clip(tensor({-3.0, 2, 9}), 0, 6)";
}
def CastOp : Elementwise<"cast"> {
  let prebuilt = !listconcat(AllNumbers, ["u8", "bool"]);
  let summary = "x converted to another element type";
  let description = "A float becomes an integer by truncation (outside its range the value is unspecified); anything nonzero becomes true.";
  let arguments = (ins Tensor:$x, Type:$dtype);
  let element = "Attr";
  let scalar = [{ x }];
  let isIdentity = "sameType";
  let numpy = "x.astype(dtype)";
  let example = "cast(tensor({-1.5, 0, 2.7}), i32)";
}

// --- Two numbers -----------------------------------------------------------------------------------------------------------
def Atan2Op : Binary<"atan2"> {
  let summary = "The angle in radians of the point (b, a): of a / b in the right quadrant, elementwise";
  let scalar = [{ atan2(a, b) }];
  let compute = "Float";
  let numpy = "np.arctan2(a, b)";
  let example = "atan2(tensor({1.0, -1}), tensor({-1.0, 1}))";
}
def HypotOp : Binary<"hypot"> {
  let summary = "sqrt(a * a + b * b), elementwise, without overflow";
  let scalar = [{
    auto p = abs(a), q = abs(b), large = max(p, q), ratio = min(p, q) / large;
    auto infinite = like(p, 1) / like(p, 0);
    auto length = select(large == 0, large, large * sqrt(ratio * ratio + 1));
    return select(p == infinite || q == infinite, infinite, length);
  }];
  let compute = "Float";
  let commutative = 1;
  let gradient = [{
    const Expr zero = Expr::scalar(0, dy.dtype()), none = equal(y, zero); // no slope at the origin: 0 of those that meet there
    return {where(none, zero, dy * (a / y)), where(none, zero, dy * (b / y))};
  }];
  let numpy = "np.hypot(a, b)";
  let example = "hypot(tensor({3.0, 5}), tensor({4.0, 12}))";
}
def CopysignOp : Binary<"copysign"> {
  let summary = "The size of a with the sign of b, elementwise";
  let scalar = [{ select(b < 0 || (b == 0 && 1 / b < 0), -abs(a), abs(a)) }];
  let compute = "Float";
  let numpy = "np.copysign(a, b)";
  let example = "copysign(tensor({1.0, 2}), tensor({-1.0, 1}))";
}
def LogaddexpOp : Binary<"logaddexp"> {
  let summary = "log(exp(a) + exp(b)), elementwise, without overflow";
  let scalar = [{ select(a == b, a + 0.69314718055994530942, max(a, b) + log1p(exp(-abs(a - b)))) }];
  let compute = "Float";
  let commutative = 1;
  let gradient = [{
    // Of equal infinities the difference is none.
    const Expr first = sigmoid(where(equal(a, b), Expr::scalar(0, dy.dtype()), a - b));
    return {dy * first, dy * (1 - first)};
  }];
  let numpy = "np.logaddexp(a, b)";
  let example = "logaddexp(tensor({0.0, 1}), 1)";
}
def NextafterOp : Composite<"nextafter"> {
  let family = "Elementwise";
  let summary = "The next number after a, towards b, that the element type has, elementwise; b where they are equal";
  let description = [{
    - (C1) the operands' shapes broadcast;
    - (C2) the operands' element types promote to floats.
  }];
  let arguments = (ins Tensor:$a, Tensor:$b);
  let types = [{
    const auto shape = broadcastShapes(a.shape, b.shape);
    if (!shape)
      return fail(1, "shapes do not broadcast");
    const DType type = promote(a.dtype, b.dtype);
    if (!isFloat(type))
      return fail(2, "wants floats (cast them)");
    return result(TensorType{type, *shape});
  }];
  // A little more than half the distance to the neighbours is added, and rounding goes there (Rump, Zimmermann, Boldo, Melquiond:
  // Computing predecessor and successor in rounding to nearest, BIT 2009), in f64, with tiny numbers scaled out of its own
  // subnormal range.
  let decomposition = [{
    const DType type = resultType(0).dtype;
    const int bits = type == DType::f64 ? 53 : type == DType::f32 ? 24 : type == DType::f16 ? 11 : 8;
    const int least = type == DType::f64 ? -1074 : type == DType::f32 ? -149 : type == DType::f16 ? -24 : -133;
    const double unit = std::ldexp(1.0, -bits), largest = std::ldexp(2 - 2 * unit, type == DType::f64 ? 1023 : type == DType::f16 ? 15 : 127);
    auto number = [](double value) { return Expr::scalar(value, DType::f64); };
    Expr x = cast(cast(a, type), DType::f64), y = cast(cast(b, type), DType::f64);
    Expr isTiny = less(abs(x), number(std::ldexp(1.0, -960)));
    Expr v = where(isTiny, x * std::ldexp(1.0, 100), x);
    Expr step = maximum(abs(v) * (unit * (1 + 2 * unit)),
                        where(isTiny, number(std::ldexp(1.0, least + 100)), number(std::ldexp(1.0, least))));
    Expr moved = where(less(x, y), v + step, v - step);
    moved = copysign(where(isTiny, moved * std::ldexp(1.0, -100), moved), where(equal(x, number(0)), y, x));
    moved = where(isinf(x), copysign(number(largest), x), moved);
    return cast(where(logical_or(equal(x, y), isnan(y)), y, moved), type);
  }];
  let samples = ["a: ... m | ... 1", "b: ... m | m"];
  let numpy = "np.nextafter(a.astype(result_type), b.astype(result_type))";
  let example = "nextafter(tensor({1.0, 0}), 2) - tensor({1.0, 0})";
}
def FmodOp : Binary<"fmod"> {
  let summary = "The rest of a / b with the sign of a, elementwise; an integer by zero gives 0";
  let description = [{
    Of floats exact while |a / b| is below 2^53; of larger quotients no digit is right.
  }];
  let scalar = [{
    auto rest = abs(a) % abs(b), floored = a % b;
    auto truncated = select((floored != 0) & ((floored < 0) != (a < 0)), floored - b, floored);
    // The least integer has no absolute value.
    return select((abs(a) < 0) | (abs(b) < 0), truncated, select(a < 0, -rest, rest));
  }];
  let gradient = [{
    return {dy, negative(dy * trunc(a / b))};
  }];
  let numpy = "np.fmod(a, b)";
  let domains = ["-9, 9", "1, 4"];
  let example = "fmod(tensor({-7.0, 7}), 3)";
}

// --- Bits: of integers, and of bools as their logic -----------------------------------------------------------------------------
class Bits<string mnemonic> : Elementwise<mnemonic> {
  let arguments = (ins Tensor:$a, Tensor:$b);
  let compute = "Bits";
}
def BitwiseAndOp : Bits<"bitwise_and"> {
  let summary = "The bits set in both of a and b, elementwise";
  let scalar = [{ a & b }];
  let commutative = 1;
  let numpy = "np.bitwise_and(a, b)";
  let example = "bitwise_and(tensor({5, 6}, i32), 3)";
}
def BitwiseOrOp : Bits<"bitwise_or"> {
  let summary = "The bits set in either of a and b, elementwise";
  let scalar = [{ a | b }];
  let commutative = 1;
  let numpy = "np.bitwise_or(a, b)";
  let example = "bitwise_or(tensor({5, 6}, i32), 3)";
}
def BitwiseXorOp : Bits<"bitwise_xor"> {
  let summary = "The bits set in exactly one of a and b, elementwise";
  let scalar = [{ a ^ b }];
  let commutative = 1;
  let numpy = "np.bitwise_xor(a, b)";
  let example = "bitwise_xor(tensor({5, 6}, i32), 3)";
}
def BitwiseNotOp : Bits<"bitwise_not"> {
  let summary = "All bits of x turned over, elementwise";
  let scalar = [{ ~x }];
  let arguments = (ins Tensor:$x);
  let numpy = "np.bitwise_not(x)";
  let example = "bitwise_not(tensor({0, 5}, i32))";
}
def LeftShiftOp : Binary<"left_shift"> {
  let summary = "a * 2^b, elementwise: b zeros come in from below";
  let scalar = [{ a << b }];
  let compute = "Integer";
  let numpy = "np.left_shift(a, b)";
  let domains = ["-9, 9", "0, 6"];
  let example = "left_shift(tensor({1, 3}, i32), 2)";
}
def RightShiftOp : Binary<"right_shift"> {
  let summary = "The largest integer not above a / 2^b, elementwise: copies of the sign come in from above";
  let scalar = [{ select(a < 0, ~(~a >> b), a >> b) }];
  let compute = "Integer";
  let numpy = "np.right_shift(a, b)";
  let domains = ["-99, 99", "0, 6"];
  let example = "right_shift(tensor({8, -8}, i32), 2)";
}
