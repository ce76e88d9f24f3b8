// Ops written in other ops. A provider may have a kernel for one as a whole; otherwise it is decomposed before clustering.
include "ir/ops/Base.td"

def SoftmaxOp : Composite<"softmax"> {
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
  let numpy = "np.exp(x - np.max(x, axis, keepdims=True)) / np.sum(np.exp(x - np.max(x, axis, keepdims=True)), axis, keepdims=True)";
  let example = "softmax(tensor({{1, 2, 3}, {1, 1, 1}}))";
}
def LogSoftmaxOp : Composite<"log_softmax"> {
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
  let numpy = "x - np.max(x, axis, keepdims=True) - np.log(np.sum(np.exp(x - np.max(x, axis, keepdims=True)), axis, keepdims=True))";
  let example = "log_softmax(tensor({1, 2, 3}))";
}
def LayerNormOp : Composite<"layer_norm"> {
  let summary = "x normalized over its last dimensions, times scale, plus bias";
  let description = [{
    As many last dimensions as `scale` has: (x - mean) / sqrt(variance + epsilon) * scale + bias.
    - (C1) x, scale and bias are of one float type;
    - (C2) scale and bias have the same shape, of rank at least 1: x's last dimensions.
  }];
  let arguments = (ins Tensor:$x, Tensor:$scale, Tensor:$bias, Default<Float, "1e-5">:$epsilon);
  let infer = "inferLayerNorm";
  let decomposition = [{
    Expr v = wide(x);
    Ints axes;
    for (int i = scale.rank(); i > 0; --i)
      axes.push_back(x.rank() - i);
    Expr centered = v - mean(v, axes, true);
    Expr variance = mean(square(centered), axes, true);
    return cast(centered * rsqrt(variance + epsilon) * wide(scale) + wide(bias), resultType(0).dtype);
  }];
  let numpy = "(x - np.mean(x, tuple(range(-scale.ndim, 0)), keepdims=True)) / np.sqrt(np.var(x, tuple(range(-scale.ndim, 0)), keepdims=True) + epsilon) * scale + bias";
  let example = "layer_norm(tensor({{1, 2, 3}}), ones({3}), zeros({3}))";
}
def BatchNormOp : Composite<"batch_norm"> {
  let summary = "x normalized per channel (dimension 1) with given statistics, times scale, plus bias";
  let description = [{
    The form of inference: (x - mean) / sqrt(variance + epsilon) * scale + bias, with one entry per channel in each.
    - (C1) all are of one float type, and x has rank at least 2;
    - (C2) scale, bias, mean and variance have shape [channels].
  }];
  let arguments = (ins Tensor:$x, Tensor:$scale, Tensor:$bias, Tensor:$mean, Tensor:$variance,
                       Default<Float, "1e-5">:$epsilon);
  let infer = "inferBatchNorm";
  let decomposition = [{
    Ints shape(x.rank() - 1, 1);
    shape[0] = -1;
    Expr factor = wide(scale) * rsqrt(wide(variance) + epsilon);
    Expr offset = wide(bias) - wide(mean) * factor;
    return cast(wide(x) * reshape(factor, shape) + reshape(offset, shape), resultType(0).dtype);
  }];
  let domains = ["-2, 2", "0.5, 1.5", "-1, 1", "-1, 1", "0.5, 2"];
  let numpy = "(x - mean.reshape((-1,) + (1,) * (x.ndim - 2))) / np.sqrt(variance.reshape((-1,) + (1,) * (x.ndim - 2)) + epsilon) * scale.reshape((-1,) + (1,) * (x.ndim - 2)) + bias.reshape((-1,) + (1,) * (x.ndim - 2))";
  let example = "batch_norm(tensor({{1, 2}, {3, 4}}), ones({2}), zeros({2}), tensor({2, 3}), ones({2}))";
}
def OneHotOp : Composite<"one_hot"> {
  let summary = "1 where the last, new dimension's index equals x, else 0";
  let description = [{
    - (C1) x holds integers and has at most 7 dimensions;
    - (C2) depth is at least 0, and the result has less than 2^48 elements.
  }];
  let arguments = (ins Tensor:$x, Int:$depth, Default<Type, "DType::f32">:$dtype);
  let infer = "inferOneHot";
  let decomposition = [{
    return cast(equal(expand_dims(x, -1), iota({depth}, 0, DType::i64)), dtype);
  }];
  let numpy = "(np.expand_dims(x, -1) == np.arange(depth)).astype(dtype)";
  let domains = ["0, 3"];
  let example = "one_hot(tensor({2, 0}, i64), 3)";
}
