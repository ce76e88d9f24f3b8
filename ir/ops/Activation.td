// The activation functions of neural networks: elementwise.
include "ir/ops/Base.td"

def ReluOp : Unary<"relu"> {
  let prebuilt = AllFloats;
  let summary = "max(x, 0), elementwise";
  let scalar = [{ max(x, 0) }];
  let compute = "Number";
  let numpy = "np.maximum(x, 0)";
  let idempotent = 1;
  let example = "relu(tensor({-2.0, 0, 3}))";
}
def LeakyReluOp : Unary<"leaky_relu"> {
  let summary = "x where it is positive, alpha * x elsewhere";
  let arguments = (ins Tensor:$x, Default<Float, "0.01">:$alpha);
  let scalar = [{ select(x >= 0, x, x * alpha) }];
  let numpy = "np.where(x >= 0, x, x * alpha)";
  let example = "leaky_relu(tensor({-2.0, 0, 3}), 0.1)";
}
def EluOp : Unary<"elu"> {
  let summary = "x where it is positive, alpha * (exp(x) - 1) elsewhere";
  let arguments = (ins Tensor:$x, Default<Float, "1.0">:$alpha);
  let scalar = [{ select(x >= 0, x, expm1(x) * alpha) }];
  let numpy = "np.where(x >= 0, x, alpha * np.expm1(x))";
  let example = "elu(tensor({-2.0, 0, 3}))";
}
def HardSigmoidOp : Unary<"hard_sigmoid"> {
  let summary = "alpha * x + beta, limited to [0, 1], elementwise";
  let arguments = (ins Tensor:$x, Default<Float, "0.2">:$alpha, Default<Float, "0.5">:$beta);
  let scalar = [{ min(max(x * alpha + beta, 0), 1) }];
  let numpy = "np.clip(x * alpha + beta, 0, 1)";
  let example = "hard_sigmoid(tensor({-4.0, 0, 1}))";
}
def GeluOp : Unary<"gelu"> {
  let prebuilt = AllFloats;
  let summary = "x times the normal distribution's cumulative function: x / 2 * (1 + erf(x / sqrt(2)))";
  let scalar = [{ x * 0.5 * (1 + erf(x * 0.70710678118654752440)) }];
  let numpy = "x * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(x / np.sqrt(2)))";
  let example = "gelu(tensor({-1.0, 0, 1}))";
}
def GeluTanhOp : Unary<"gelu_tanh"> {
  let summary = "gelu's approximation: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))";
  let scalar = [{ x * 0.5 * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))) }];
  let numpy = "x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))";
  let example = "gelu_tanh(tensor({-1.0, 0, 1}))";
}
def SiluOp : Unary<"silu"> {
  let prebuilt = AllFloats;
  let summary = "x * sigmoid(x), elementwise";
  let scalar = [{ x * sigmoid(x) }];
  let numpy = "x / (1 + np.exp(-x))";
  let example = "silu(tensor({-1.0, 0, 1}))";
}
def SoftplusOp : Unary<"softplus"> {
  let summary = "log(1 + exp(x)), elementwise, without overflow";
  let scalar = [{ max(x, 0) + log1p(exp(-abs(x))) }];
  let gradient = [{ dy * sigmoid(x) }];
  let numpy = "np.log1p(np.exp(x))";
  let example = "softplus(tensor({-1.0, 0, 1}))";
}
def SeluOp : Unary<"selu"> {
  let summary = "1.0507 * x where it is positive, 1.0507 * 1.6733 * (exp(x) - 1) elsewhere: keeps mean 0 and variance 1";
  let scalar = [{ select(x >= 0, x, expm1(x) * 1.6732632423543772848) * 1.0507009873554804934 }];
  let numpy = "1.0507009873554804934 * np.where(x >= 0, x, 1.6732632423543772848 * np.expm1(x))";
  let example = "selu(tensor({-1.0, 0, 1}))";
}
def CeluOp : Unary<"celu"> {
  let summary = "x where it is positive, alpha * (exp(x / alpha) - 1) elsewhere";
  let arguments = (ins Tensor:$x, Default<Float, "1.0">:$alpha);
  let scalar = [{ select(x >= 0, x, expm1(x / alpha) * alpha) }];
  let numpy = "np.where(x >= 0, x, alpha * np.expm1(x / alpha))";
  let example = "celu(tensor({-1.0, 0, 1}))";
}
def MishOp : Unary<"mish"> {
  let summary = "x * tanh(softplus(x)), elementwise";
  let scalar = [{ x * tanh(max(x, 0) + log1p(exp(-abs(x)))) }];
  let numpy = "x * np.tanh(np.log1p(np.exp(x)))";
  let example = "mish(tensor({-1.0, 0, 1}))";
}
def HardSwishOp : Unary<"hard_swish"> {
  let summary = "x * hard_sigmoid(x, 1/6, 1/2), elementwise";
  let scalar = [{ x * min(max(x * (1.0 / 6) + 0.5, 0), 1) }];
  let numpy = "x * np.clip(x / 6 + 0.5, 0, 1)";
  let example = "hard_swish(tensor({-4.0, -1, 1}))";
}
def HardTanhOp : Unary<"hard_tanh"> {
  let summary = "x limited to [low, high], elementwise";
  let arguments = (ins Tensor:$x, Default<Float, "-1.0">:$low, Default<Float, "1.0">:$high);
  let scalar = [{ min(max(x, low), high) }];
  let numpy = "np.minimum(np.maximum(x, low), high)";
  let example = "hard_tanh(tensor({-2, 0.5, 3}))";
}
def Relu6Op : Unary<"relu6"> {
  let summary = "x limited to [0, 6], elementwise";
  let scalar = [{ min(max(x, 0), 6) }];
  let numpy = "np.clip(x, 0, 6)";
  let domains = ["-3, 9"];
  let idempotent = 1;
  let example = "relu6(tensor({-2.0, 3, 8}))";
}
def PreluOp : Binary<"prelu"> {
  let summary = "x where it is positive, slope * x elsewhere; slope broadcasts";
  let arguments = (ins Tensor:$x, Tensor:$slope);
  let scalar = [{ select(x >= 0, x, x * slope) }];
  let numpy = "np.where(x >= 0, x, x * slope)";
  let example = "prelu(tensor({-2.0, 0, 3}), 0.5)";
}
def LogSigmoidOp : Unary<"log_sigmoid"> {
  let summary = "log(sigmoid(x)), elementwise, without overflow";
  let scalar = [{ min(x, 0) - log1p(exp(-abs(x))) }];
  let gradient = [{ dy * sigmoid(negative(x)) }];
  let numpy = "-np.log1p(np.exp(-x))";
  let example = "log_sigmoid(tensor({-1.0, 0, 1}))";
}
def ThresholdedReluOp : Unary<"thresholded_relu"> {
  let summary = "x where it is above alpha, 0 elsewhere";
  let arguments = (ins Tensor:$x, Default<Float, "1.0">:$alpha);
  let scalar = [{ select(x > alpha, x, x * 0) }];
  let numpy = "np.where(x > alpha, x, 0 * x)";
  let example = "thresholded_relu(tensor({-2, 0.5, 3}))";
}
def HardShrinkOp : Unary<"hard_shrink"> {
  let summary = "x where |x| is above alpha, 0 elsewhere";
  let arguments = (ins Tensor:$x, Default<Float, "0.5">:$alpha);
  let scalar = [{ select(abs(x) > alpha, x, x * 0) }];
  let numpy = "np.where(np.abs(x) > alpha, x, 0 * x)";
  let example = "hard_shrink(tensor({-2, 0.2, 3}))";
}
def SoftShrinkOp : Unary<"soft_shrink"> {
  let summary = "x brought nearer to 0 by alpha, and 0 where |x| is at most alpha";
  let arguments = (ins Tensor:$x, Default<Float, "0.5">:$alpha);
  let scalar = [{ select(abs(x) > alpha, x - sign(x) * alpha, x * 0) }];
  let numpy = "np.where(np.abs(x) > alpha, x - np.sign(x) * alpha, 0 * x)";
  let example = "soft_shrink(tensor({-2, 0.2, 3}))";
}
def TanhShrinkOp : Unary<"tanh_shrink"> {
  let summary = "x - tanh(x), elementwise";
  let scalar = [{ x - tanh(x) }];
  let gradient = [{ dy * square(tanh(x)) }];
  let numpy = "x - np.tanh(x)";
  let example = "tanh_shrink(tensor({-1.0, 0, 1}))";
}
