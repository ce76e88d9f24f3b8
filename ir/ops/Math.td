// Functions of one number: elementwise, integers and bools are converted to f32 where the result is no integer.
include "ir/ops/Base.td"

def NegativeOp : Unary<"negative"> {
  let summary = "-x, elementwise";
  let scalar = [{ -x }];
  let compute = "Number";
  let numpy = "-x";
  let example = "negative(tensor({1, -2, 3}))";
}
def AbsOp : Unary<"abs"> {
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
  let summary = "x * x, elementwise";
  let scalar = [{ x * x }];
  let compute = "Number";
  let numpy = "np.square(x)";
  let example = "square(tensor({1, -2, 3}))";
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
  let summary = "The square root, elementwise; NaN for negative x";
  let scalar = [{ sqrt(x) }];
  let numpy = "np.sqrt(x)";
  let domains = ["0, 4"];
  let example = "sqrt(tensor({0, 4, 9}))";
}
def RsqrtOp : Unary<"rsqrt"> {
  let summary = "1 / sqrt(x), elementwise";
  let scalar = [{ rsqrt(x) }];
  let numpy = "1 / np.sqrt(x)";
  let domains = ["0.25, 4"];
  let example = "rsqrt(tensor({1, 4, 16}))";
}
def ReciprocalOp : Unary<"reciprocal"> {
  let summary = "1 / x, elementwise";
  let scalar = [{ 1 / x }];
  let numpy = "1 / x";
  let domains = ["0.25, 4"];
  let example = "reciprocal(tensor({1, 2, 4}))";
}
def ExpOp : Unary<"exp"> {
  let summary = "e to the power of x, elementwise";
  let scalar = [{ exp(x) }];
  let numpy = "np.exp(x)";
  let example = "exp(tensor({0, 1, 2}))";
}
def Expm1Op : Unary<"expm1"> {
  let summary = "exp(x) - 1, elementwise, exact for small x";
  let scalar = [{ expm1(x) }];
  let numpy = "np.expm1(x)";
  let example = "expm1(tensor({0, 1, 2}))";
}
def LogOp : Unary<"log"> {
  let summary = "The natural logarithm, elementwise; NaN for negative x";
  let scalar = [{ log(x) }];
  let numpy = "np.log(x)";
  let domains = ["0.1, 4"];
  let example = "log(tensor({1, 2, 10}))";
}
def Log1pOp : Unary<"log1p"> {
  let summary = "log(1 + x), elementwise, exact for small x";
  let scalar = [{ log1p(x) }];
  let numpy = "np.log1p(x)";
  let domains = ["-0.5, 4"];
  let example = "log1p(tensor({0, 1, 9}))";
}
def SinOp : Unary<"sin"> {
  let summary = "The sine of x in radians, elementwise";
  let scalar = [{ sin(x) }];
  let numpy = "np.sin(x)";
  let example = "sin(tensor({0, 0.5, 1}))";
}
def CosOp : Unary<"cos"> {
  let summary = "The cosine of x in radians, elementwise";
  let scalar = [{ cos(x) }];
  let numpy = "np.cos(x)";
  let example = "cos(tensor({0, 0.5, 1}))";
}
def TanhOp : Unary<"tanh"> {
  let summary = "The hyperbolic tangent, elementwise";
  let scalar = [{ tanh(x) }];
  let numpy = "np.tanh(x)";
  let example = "tanh(tensor({-1, 0, 1}))";
}
def ErfOp : Unary<"erf"> {
  let summary = "The error function, elementwise";
  let scalar = [{ erf(x) }];
  let numpy = "np.vectorize(math.erf, otypes=[float])(x)";
  let example = "erf(tensor({-1, 0, 1}))";
}
def SigmoidOp : Unary<"sigmoid"> {
  let summary = "1 / (1 + exp(-x)), elementwise";
  let scalar = [{ sigmoid(x) }];
  let numpy = "1 / (1 + np.exp(-x))";
  let example = "sigmoid(tensor({-1, 0, 1}))";
}
def IsNanOp : Unary<"isnan"> {
  let summary = "Whether x is NaN, elementwise, as bool";
  let scalar = [{ isnan(x) }];
  let element = "Bool";
  let numpy = "np.isnan(x)";
  let example = "isnan(sqrt(tensor({-1, 4})))";
}
