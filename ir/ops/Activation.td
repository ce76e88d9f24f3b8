// The activation functions of neural networks: elementwise.
include "ir/ops/Base.td"

def ReluOp : Unary<"relu"> {
  let summary = "max(x, 0), elementwise";
  let scalar = [{ max(x, 0) }];
  let compute = "Number";
  let numpy = "np.maximum(x, 0)";
  let idempotent = 1;
  let example = "relu(tensor({-2, 0, 3}))";
}
def LeakyReluOp : Unary<"leaky_relu"> {
  let summary = "x where it is positive, alpha * x elsewhere";
  let arguments = (ins Tensor:$x, Default<Float, "0.01">:$alpha);
  let scalar = [{ select(x >= 0, x, x * alpha) }];
  let numpy = "np.where(x >= 0, x, x * alpha)";
  let example = "leaky_relu(tensor({-2, 0, 3}), 0.1)";
}
def EluOp : Unary<"elu"> {
  let summary = "x where it is positive, alpha * (exp(x) - 1) elsewhere";
  let arguments = (ins Tensor:$x, Default<Float, "1.0">:$alpha);
  let scalar = [{ select(x >= 0, x, expm1(x) * alpha) }];
  let numpy = "np.where(x >= 0, x, alpha * np.expm1(x))";
  let example = "elu(tensor({-2, 0, 3}))";
}
def HardSigmoidOp : Unary<"hard_sigmoid"> {
  let summary = "alpha * x + beta, limited to [0, 1], elementwise";
  let arguments = (ins Tensor:$x, Default<Float, "0.2">:$alpha, Default<Float, "0.5">:$beta);
  let scalar = [{ min(max(x * alpha + beta, 0), 1) }];
  let numpy = "np.clip(x * alpha + beta, 0, 1)";
  let example = "hard_sigmoid(tensor({-4, 0, 1}))";
}
def GeluOp : Unary<"gelu"> {
  let summary = "x times the normal distribution's cumulative function: x / 2 * (1 + erf(x / sqrt(2)))";
  let scalar = [{ x * 0.5 * (1 + erf(x * 0.70710678118654752440)) }];
  let numpy = "x * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(x / np.sqrt(2)))";
  let example = "gelu(tensor({-1, 0, 1}))";
}
def GeluTanhOp : Unary<"gelu_tanh"> {
  let summary = "gelu's approximation: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))";
  let scalar = [{ x * 0.5 * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))) }];
  let numpy = "x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))";
  let example = "gelu_tanh(tensor({-1, 0, 1}))";
}
def SiluOp : Unary<"silu"> {
  let summary = "x * sigmoid(x), elementwise";
  let scalar = [{ x * sigmoid(x) }];
  let numpy = "x / (1 + np.exp(-x))";
  let example = "silu(tensor({-1, 0, 1}))";
}
def SoftplusOp : Unary<"softplus"> {
  let summary = "log(1 + exp(x)), elementwise, without overflow";
  let scalar = [{ max(x, 0) + log1p(exp(-abs(x))) }];
  let numpy = "np.log1p(np.exp(x))";
  let example = "softplus(tensor({-1, 0, 1}))";
}
