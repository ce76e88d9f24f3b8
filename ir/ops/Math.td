// Functions of one number: elementwise, integers and bools are converted to f32 where the result is no integer.
include "ir/ops/Base.td"

def NegativeOp : Unary<"negative"> {
  let prebuilt = AllNumbers;
  let summary = "-x, elementwise";
  let scalar = [{ -x }];
  let compute = "Number";
  let numpy = "-x";
  let example = "negative(tensor({1.0, -2, 3}))";
}
def AbsOp : Unary<"abs"> {
  let prebuilt = AllNumbers;
  let summary = "The absolute value, elementwise";
  let scalar = [{ abs(x) }];
  let compute = "Number";
  let numpy = "np.abs(x)";
  let idempotent = 1;
  let example = "abs(tensor({1, -2, 3}, i32))";
}
def SignOp : Unary<"sign"> {
  let summary = "-1, 0 or 1, elementwise; NaN stays NaN";
  let scalar = [{ sign(x) }];
  let compute = "Number";
  let numpy = "np.sign(x)";
  let idempotent = 1;
  let example = "sign(tensor({-0.5, 0, 7}))";
}
def SquareOp : Unary<"square"> {
  let prebuilt = AllNumbers;
  let summary = "x * x, elementwise";
  let scalar = [{ x * x }];
  let compute = "Number";
  let numpy = "np.square(x)";
  let example = "square(tensor({1.0, -2, 3}))";
}
def FloorOp : Unary<"floor"> {
  let summary = "The largest integer not above x, elementwise";
  let scalar = [{ floor(x) }];
  let compute = "Number";
  let numpy = "np.floor(x)";
  let idempotent = 1;
  let example = "floor(tensor({-1.5, 0.2, 2.7}))";
}
def CeilOp : Unary<"ceil"> {
  let summary = "The smallest integer not below x, elementwise";
  let scalar = [{ ceil(x) }];
  let compute = "Number";
  let numpy = "np.ceil(x)";
  let idempotent = 1;
  let example = "ceil(tensor({-1.5, 0.2, 2.7}))";
}
def RoundOp : Unary<"round"> {
  let summary = "The nearest integer, elementwise; halves go to the even one";
  let scalar = [{ round(x) }];
  let compute = "Number";
  let numpy = "np.round(x)";
  let idempotent = 1;
  let example = "round(tensor({0.5, 1.5, 2.7}))";
}
def TruncOp : Unary<"trunc"> {
  let summary = "x without its fraction, elementwise";
  let scalar = [{ trunc(x) }];
  let compute = "Number";
  let numpy = "np.trunc(x)";
  let idempotent = 1;
  let example = "trunc(tensor({-1.5, 0.2, 2.7}))";
}
def SqrtOp : Unary<"sqrt"> {
  let prebuilt = AllFloats;
  let summary = "The square root, elementwise; NaN for negative x";
  let scalar = [{ sqrt(x) }];
  let numpy = "np.sqrt(x)";
  let domains = ["0, 4"];
  let example = "sqrt(tensor({0.0, 4, 9}))";
}
def RsqrtOp : Unary<"rsqrt"> {
  let summary = "1 / sqrt(x), elementwise";
  let scalar = [{ rsqrt(x) }];
  let numpy = "1 / np.sqrt(x)";
  let domains = ["0.25, 4"];
  let example = "rsqrt(tensor({1.0, 4, 16}))";
}
def ReciprocalOp : Unary<"reciprocal"> {
  let summary = "1 / x, elementwise";
  let scalar = [{ 1 / x }];
  let numpy = "1 / x";
  let domains = ["0.25, 4"];
  let example = "reciprocal(tensor({1.0, 2, 4}))";
}
def ExpOp : Unary<"exp"> {
  let prebuilt = AllFloats;
  let summary = "e to the power of x, elementwise";
  let scalar = [{ exp(x) }];
  let numpy = "np.exp(x)";
  let example = "exp(tensor({0.0, 1, 2}))";
}
def Expm1Op : Unary<"expm1"> {
  let summary = "exp(x) - 1, elementwise, exact for small x";
  let scalar = [{ expm1(x) }];
  let numpy = "np.expm1(x)";
  let example = "expm1(tensor({0.0, 1, 2}))";
}
def LogOp : Unary<"log"> {
  let prebuilt = AllFloats;
  let summary = "The natural logarithm, elementwise; NaN for negative x";
  let scalar = [{ log(x) }];
  let numpy = "np.log(x)";
  let domains = ["0.1, 4"];
  let example = "log(tensor({1.0, 2, 10}))";
}
def Log1pOp : Unary<"log1p"> {
  let summary = "log(1 + x), elementwise, exact for small x";
  let scalar = [{ log1p(x) }];
  let numpy = "np.log1p(x)";
  let domains = ["-0.5, 4"];
  let example = "log1p(tensor({0.0, 1, 9}))";
}
def SinOp : Unary<"sin"> {
  let summary = "The sine of x in radians, elementwise";
  let description = [{
    Accurate to the last places up to 1e14 in f32 and 1e10 in f64, to 1e-9 up to 1e14 in f64; the phase of larger x is lost.
  }];
  let scalar = [{ sin(x) }];
  let numpy = "np.sin(x)";
  let example = "sin(tensor({0, 0.5, 1}))";
}
def CosOp : Unary<"cos"> {
  let summary = "The cosine of x in radians, elementwise";
  let description = [{
    Accurate to the last places up to 1e14 in f32 and 1e10 in f64, to 1e-9 up to 1e14 in f64; the phase of larger x is lost.
  }];
  let scalar = [{ cos(x) }];
  let numpy = "np.cos(x)";
  let example = "cos(tensor({0, 0.5, 1}))";
}
def TanhOp : Unary<"tanh"> {
  let prebuilt = AllFloats;
  let summary = "The hyperbolic tangent, elementwise";
  let scalar = [{ tanh(x) }];
  let numpy = "np.tanh(x)";
  let example = "tanh(tensor({-1.0, 0, 1}))";
}
def ErfOp : Unary<"erf"> {
  let summary = "The error function, elementwise";
  let scalar = [{ erf(x) }];
  let numpy = "np.vectorize(math.erf, otypes=[float])(x)";
  let example = "erf(tensor({-1.0, 0, 1}))";
}
def SigmoidOp : Unary<"sigmoid"> {
  let prebuilt = AllFloats;
  let summary = "1 / (1 + exp(-x)), elementwise";
  let scalar = [{ sigmoid(x) }];
  let numpy = "1 / (1 + np.exp(-x))";
  let example = "sigmoid(tensor({-1.0, 0, 1}))";
}
def IsNanOp : Unary<"isnan"> {
  let summary = "Whether x is NaN, elementwise, as bool";
  let scalar = [{ isnan(x) }];
  let element = "Bool";
  let numpy = "np.isnan(x)";
  let example = "isnan(sqrt(tensor({-1.0, 4})))";
}

// --- Powers and logarithms ------------------------------------------------------------------------------------------------
def Exp2Op : Unary<"exp2"> {
  let summary = "2 to the power of x, elementwise";
  let scalar = [{ pow(like(x, 2), x) }];
  let numpy = "np.exp2(x)";
  let example = "exp2(tensor({1.0, 3}))";
}
def Log2Op : Unary<"log2"> {
  let summary = "The logarithm to the base 2, elementwise; NaN for negative x";
  let scalar = [{ log(x) * 1.44269504088896340736 }];
  let numpy = "np.log2(x)";
  let domains = ["0.1, 4"];
  let example = "log2(tensor({2.0, 8}))";
}
def Log10Op : Unary<"log10"> {
  let summary = "The logarithm to the base 10, elementwise; NaN for negative x";
  let scalar = [{ log(x) * 0.43429448190325182765 }];
  let numpy = "np.log10(x)";
  let domains = ["0.1, 4"];
  let example = "log10(tensor({10.0, 1000}))";
}
def CbrtOp : Unary<"cbrt"> {
  let summary = "The cube root, elementwise";
  let scalar = [{ sign(x) * pow(abs(x), like(x, 0.33333333333333333333)) }];
  let numpy = "np.cbrt(x)";
  let example = "cbrt(tensor({-8.0, 27}))";
}

// --- Angles ---------------------------------------------------------------------------------------------------------------
def TanOp : Unary<"tan"> {
  let summary = "The tangent of x in radians, elementwise";
  let description = [{
    Accurate to the last places up to 1e14 in f32 and 1e10 in f64, to 1e-9 up to 1e14 in f64; the phase of larger x is lost.
  }];
  let scalar = [{ tan(x) }];
  let numpy = "np.tan(x)";
  let domains = ["-1.4, 1.4"];
  let example = "tan(tensor({0, 0.5}))";
}
def AsinOp : Unary<"asin"> {
  let summary = "The angle in radians whose sine is x, elementwise; NaN outside [-1, 1]";
  let scalar = [{ asin(x) }];
  let numpy = "np.arcsin(x)";
  let domains = ["-1, 1"];
  let example = "asin(tensor({0, 0.5}))";
}
def AcosOp : Unary<"acos"> {
  let summary = "The angle in radians whose cosine is x, elementwise; NaN outside [-1, 1]";
  let scalar = [{ acos(x) }];
  let numpy = "np.arccos(x)";
  let domains = ["-0.9, 0.9"];
  let example = "acos(tensor({0, 0.5}))";
}
def AtanOp : Unary<"atan"> {
  let summary = "The angle in radians whose tangent is x, elementwise";
  let scalar = [{ atan(x) }];
  let numpy = "np.arctan(x)";
  let example = "atan(tensor({0, 0.5}))";
}
def SinhOp : Unary<"sinh"> {
  let summary = "The hyperbolic sine, elementwise";
  let scalar = [{ sinh(x) }];
  let numpy = "np.sinh(x)";
  let example = "sinh(tensor({0, 0.5}))";
}
def CoshOp : Unary<"cosh"> {
  let summary = "The hyperbolic cosine, elementwise";
  let scalar = [{ cosh(x) }];
  let numpy = "np.cosh(x)";
  let example = "cosh(tensor({0, 0.5}))";
}
def AsinhOp : Unary<"asinh"> {
  let summary = "The inverse of the hyperbolic sine, elementwise";
  let scalar = [{
    auto a = abs(x);
    auto near = log1p(a + a * a / (1 + sqrt(a * a + 1)));
    return sign(x) * select(a > 1e9, log(a) + 0.69314718055994530942, near); // far out the square would overflow
  }];
  let gradient = [{ dy / hypot(x, Expr::scalar(1, dy.dtype())) }];
  let numpy = "np.arcsinh(x)";
  let example = "asinh(tensor({0, 0.5}))";
}
def AcoshOp : Unary<"acosh"> {
  let summary = "The inverse of the hyperbolic cosine, elementwise; NaN below 1";
  let scalar = [{
    auto t = x - 1;
    auto y = select(x > 1e9, log(x) + 0.69314718055994530942, log1p(t + sqrt(t * 2 + t * t)));
    return select(x < 1, sqrt(t), y);
  }];
  let gradient = [{ dy / (sqrt(x - 1) * sqrt(x + 1)) }];
  let numpy = "np.arccosh(x)";
  let domains = ["1, 5"];
  let example = "acosh(tensor({1.0, 2}))";
}
def AtanhOp : Unary<"atanh"> {
  let summary = "The inverse of the hyperbolic tangent, elementwise; NaN outside [-1, 1]";
  let scalar = [{ sign(x) * 0.5 * log1p(abs(x) * 2 / (1 - abs(x))) }];
  let gradient = [{ dy / ((1 - x) * (x + 1)) }];
  let numpy = "np.arctanh(x)";
  let domains = ["-0.9, 0.9"];
  let example = "atanh(tensor({0, 0.5}))";
}

// --- What kind of number ------------------------------------------------------------------------------------------------------
def IsFiniteOp : Unary<"isfinite"> {
  let summary = "Whether x is neither infinite nor NaN, elementwise, as bool";
  let scalar = [{ x - x == 0 }];
  let element = "Bool";
  let numpy = "np.isfinite(x)";
  let example = "isfinite(tensor({1.0, 0}) / 0)";
}
def IsInfOp : Unary<"isinf"> {
  let summary = "Whether x is infinite, elementwise, as bool";
  let scalar = [{ !isnan(x) && isnan(x - x) }];
  let element = "Bool";
  let numpy = "np.isinf(x)";
  let example = "isinf(tensor({1.0, 0}) / 0)";
}
def SignbitOp : Unary<"signbit"> {
  let summary = "Whether x is negative, or the negative zero, elementwise, as bool";
  let scalar = [{ x < 0 || (x == 0 && 1 / x < 0) }];
  let element = "Bool";
  let numpy = "np.signbit(x)";
  let example = "signbit(tensor({-1.0, 1}))";
}
def StopGradientOp : Unary<"stop_gradient"> {
  let summary = "x itself, which gradients do not go through: it counts as a constant";
  let scalar = [{ x }];
  let gradient = [{ Expr() }];
  let isIdentity = "sameType";
  let numpy = "x";
  let example = "stop_gradient(tensor({1.0, 2}))";
}
def PositiveOp : Unary<"positive"> {
  let summary = "x itself, of a number type";
  let scalar = [{ x }];
  let compute = "Number";
  let isIdentity = "sameType";
  let numpy = "+x";
  let example = "positive(tensor({1.0, 2}))";
}
