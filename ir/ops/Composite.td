// Ops written in other ops. A provider may have a kernel for one as a whole; otherwise it is decomposed before clustering.
include "ir/ops/Base.td"

def SoftmaxOp : Composite<"softmax"> {
  let prebuilt = ["f32"];
  let summary = "exp(x) divided by its sum along `axis`, without overflow";
  let description = [{
    - (C1) axis is in [-rank, rank);
    - (C2) that dimension is not empty.

    Integers and bools are converted to f32; f16 and bf16 are computed in f32.
  }];
  let arguments = (ins Tensor:$x, Default<Int, "-1">:$axis);
  let infer = "inferAlongAxis";
  let decomposition = [{
    Expr v = wide(x);
    Expr e = exp(v - max(v, {axis}, true));
    return cast(e / sum(e, {axis}, true), resultType(0).dtype);
  }];
  let gradient = [{
    Expr p = wide(y), g = wide(dy);
    return p * (g - sum(p * g, {axis}, true));
  }];
  let numpy = "np.exp(x - np.max(x, axis, keepdims=True)) / np.sum(np.exp(x - np.max(x, axis, keepdims=True)), axis, keepdims=True)";
  let example = "softmax(tensor({{1.0, 2, 3}, {1, 1, 1}}))";
}
def LogSoftmaxOp : Composite<"log_softmax"> {
  let prebuilt = ["f32"];
  let summary = "The logarithm of softmax along `axis`, exact for small probabilities";
  let description = [{
    - (C1) axis is in [-rank, rank);
    - (C2) that dimension is not empty.

    Integers and bools are converted to f32; f16 and bf16 are computed in f32.
  }];
  let arguments = (ins Tensor:$x, Default<Int, "-1">:$axis);
  let infer = "inferAlongAxis";
  let decomposition = [{
    Expr v = wide(x);
    Expr shifted = v - max(v, {axis}, true);
    return cast(shifted - log(sum(exp(shifted), {axis}, true)), resultType(0).dtype);
  }];
  let gradient = [{
    Expr g = wide(dy);
    return g - exp(wide(y)) * sum(g, {axis}, true);
  }];
  let numpy = "x - np.max(x, axis, keepdims=True) - np.log(np.sum(np.exp(x - np.max(x, axis, keepdims=True)), axis, keepdims=True))";
  let example = "log_softmax(tensor({1.0, 2, 3}))";
}
def OneHotOp : Composite<"one_hot"> {
  let summary = "1 where the last, new dimension's index equals x, else 0";
  let description = [{
    - (C1) x holds integers and has at most 7 dimensions;
    - (C2) depth is at least 0, and the result has less than 2^48 elements.
  }];
  let arguments = (ins Tensor:$x, Size:$depth, Default<Type, "DType::f32">:$dtype);
  let infer = "inferOneHot";
  let decomposition = [{
    return cast(equal(expand_dims(x, -1), iota({depth}, 0, DType::i64)), dtype);
  }];
  let numpy = "(np.expand_dims(x, -1) == np.arange(depth)).astype(dtype)";
  let domains = ["0, 3"];
  let example = "one_hot(tensor({2, 0}, i64), 3)";
}
