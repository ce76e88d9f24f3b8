// Normalizations: composites over rows, channels or groups of channels.
include "ir/ops/Base.td"

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
  let example = "layer_norm(tensor({{1.0, 2, 3}}), ones({3}), zeros({3}))";
}
def RmsNormOp : Composite<"rms_norm"> {
  let summary = "x divided by the root of its mean square over the last dimensions, times scale";
  let description = [{
    As many last dimensions as `scale` has: x / sqrt(mean(x * x) + epsilon) * scale.
    - (C1) x and scale are of one float type;
    - (C2) scale has x's last dimensions, at least one.
  }];
  let arguments = (ins Tensor:$x, Tensor:$scale, Default<Float, "1e-5">:$epsilon);
  let types = [{
    if (!isFloat(x.dtype) || scale.dtype != x.dtype)
      return fail(1, "operands must have one float type");
    const int offset = x.rank() - scale.rank();
    bool fits = scale.rank() >= 1 && offset >= 0;
    for (int i = 0; fits && i < scale.rank(); ++i)
      fits = scale.shape[i] == x.shape[i + offset];
    if (!fits)
      return fail(2, "scale must have the shape of x's last dimensions");
    return result(x);
  }];
  let decomposition = [{
    Expr v = wide(x);
    Ints axes;
    for (int i = scale.rank(); i > 0; --i)
      axes.push_back(x.rank() - i);
    return cast(v * rsqrt(mean(square(v), axes, true) + epsilon) * wide(scale), resultType(0).dtype);
  }];
  let samples = ["x: ... d | ... c d", "scale: d | c d"];
  let numpy = "x / np.sqrt(np.mean(x * x, tuple(range(-scale.ndim, 0)), keepdims=True) + epsilon) * scale";
  let example = "rms_norm(tensor({{3.0, 4}}), ones({2}))";
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
    Sizes shape(x.rank() - 1, 1);
    shape[0] = -1;
    Expr factor = wide(scale) * rsqrt(wide(variance) + epsilon);
    Expr offset = wide(bias) - wide(mean) * factor;
    return cast(wide(x) * reshape(factor, shape) + reshape(offset, shape), resultType(0).dtype);
  }];
  let domains = ["-2, 2", "0.5, 1.5", "-1, 1", "-1, 1", "0.5, 2"];
  let numpy = "(x - mean.reshape((-1,) + (1,) * (x.ndim - 2))) / np.sqrt(variance.reshape((-1,) + (1,) * (x.ndim - 2)) + epsilon) * scale.reshape((-1,) + (1,) * (x.ndim - 2)) + bias.reshape((-1,) + (1,) * (x.ndim - 2))";
  let example = "batch_norm(tensor({{1.0, 2}, {3, 4}}), ones({2}), zeros({2}), tensor({2.0, 3}), ones({2}))";
}
def BatchNormTrainOp : Composite<"batch_norm_train"> {
  let summary = "x normalized per channel (dimension 1) with its own statistics, times scale, plus bias; and those statistics";
  let description = [{
    The form of training: the results are (x - mean) / sqrt(variance + epsilon) * scale + bias, and the mean and the variance (divided
    by the number of elements) of each channel, from which running statistics are made.
    - (C1) all are of one float type, and x has rank at least 2 and is not empty;
    - (C2) scale and bias have shape [channels].
  }];
  let arguments = (ins Tensor:$x, Tensor:$scale, Tensor:$bias, Default<Float, "1e-5">:$epsilon);
  let results = (outs Tensor:$y, Tensor:$mean, Tensor:$variance);
  let types = [{
    if (!isFloat(x.dtype) || scale.dtype != x.dtype || bias.dtype != x.dtype || x.rank() < 2 ||
        (x.shape.isStatic() && x.shape.numElements() == 0))
      return fail(1, "operands must have one float type, and x rank at least 2 and elements");
    if (scale.shape != Shape{x.shape[1]} || bias.shape != scale.shape)
      return fail(2, "scale and bias must have shape [channels]");
    return result(x, scale, scale);
  }];
  let decomposition = [{
    Ints axes{0};
    Sizes perChannel(x.rank() - 1, 1);
    perChannel[0] = -1;
    for (int d = 2; d < x.rank(); ++d)
      axes.push_back(d);
    const Expr v = wide(x);
    const auto [m, variance] = moments(v, axes, true);
    const Expr y = (v - m) * rsqrt(variance + epsilon) * reshape(wide(scale), perChannel) + reshape(wide(bias), perChannel);
    const DType type = resultType(0).dtype;
    return {cast(y, type), cast(reshape(m, {-1}), type), cast(reshape(variance, {-1}), type)};
  }];
  let gradient = [{ return batchNormGradient(d(0), d(1), d(2), x, scale, epsilon); }];
  let samples = ["x: n c h w | n c h | n c", "scale: c", "bias: c", "epsilon: 0.01 | 0.3"];
  let numpy = "batch_norm_train(x, scale, bias, epsilon)";
  let example = "batch_norm_train(tensor({{1.0, 2}, {3, 6}}), ones({2}), zeros({2}))";
}
def GroupNormOp : Composite<"group_norm"> {
  let summary = "x normalized per sample over groups of channels and all positions, times scale, plus bias per channel";
  let description = [{
    x is [batch, channels, ...]. `groups` = channels normalizes each channel by itself, as instance_norm does.
    - (C1) all are of one float type, and x has rank at least 2;
    - (C2) scale and bias have shape [channels];
    - (C3) groups certainly divides the channels, and a group is not empty.
  }];
  let arguments = (ins Tensor:$x, Tensor:$scale, Tensor:$bias, Int:$groups, Default<Float, "1e-5">:$epsilon);
  let types = [{
    if (!isFloat(x.dtype) || scale.dtype != x.dtype || bias.dtype != x.dtype || x.rank() < 2)
      return fail(1, "operands must have one float type, and x rank at least 2");
    if (scale.shape != Shape{x.shape[1]} || bias.shape != scale.shape)
      return fail(2, "scale and bias must have shape [channels]");
    if (groups < 1 || !dim::divideExactly(x.shape[1], groups) || (x.shape.isStatic() && x.shape.numElements() == 0))
      return fail(3, "channels do not divide into " + std::to_string(groups) + " groups");
    return result(x);
  }];
  let decomposition = [{
    // [batch, groups, channels per group, everything else]
    const Size each = *dim::divideExactly(x.size(1), groups);
    Expr v = reshape(wide(x), {x.size(0), groups, each, -1});
    Expr centered = v - mean(v, {2, 3}, true);
    Expr inverse = rsqrt(mean(square(centered), {2, 3}, true) + epsilon);
    Sizes perChannel{groups, each, 1};
    v = centered * inverse * reshape(wide(scale), perChannel) + reshape(wide(bias), perChannel);
    return cast(reshape(v, x.sizes()), resultType(0).dtype);
  }];
  let samples = ["x: n g*c h w | n g*c h | n g*c", "scale: g*c", "bias: g*c", "groups: g", "epsilon: 0.01 | 0.3"];
  let numpy = "group_norm(x, scale, bias, groups, epsilon)";
  let example = "group_norm(tensor({{1.0, 2, 3, 5}}), ones({4}), zeros({4}), 2)";
}
def InstanceNormOp : Composite<"instance_norm"> {
  let summary = "x normalized per sample and channel over all positions, times scale, plus bias per channel";
  let description = [{
    x is [batch, channels, ...].
    - (C1) all are of one float type, and x has rank at least 3 and is not empty;
    - (C2) scale and bias have shape [channels].
  }];
  let arguments = (ins Tensor:$x, Tensor:$scale, Tensor:$bias, Default<Float, "1e-5">:$epsilon);
  let types = [{
    if (!isFloat(x.dtype) || scale.dtype != x.dtype || bias.dtype != x.dtype || x.rank() < 3 ||
        (x.shape.isStatic() && x.shape.numElements() == 0))
      return fail(1, "operands must have one float type, and x rank at least 3 and elements");
    if (scale.shape != Shape{x.shape[1]} || bias.shape != scale.shape)
      return fail(2, "scale and bias must have shape [channels]");
    return result(x);
  }];
  let decomposition = [{
    Ints axes;
    Sizes perChannel(x.rank() - 1, 1);
    perChannel[0] = -1;
    for (int d = 2; d < x.rank(); ++d)
      axes.push_back(d);
    Expr v = wide(x), centered = v - mean(v, axes, true);
    Expr inverse = rsqrt(mean(square(centered), axes, true) + epsilon);
    v = centered * inverse * reshape(wide(scale), perChannel) + reshape(wide(bias), perChannel);
    return cast(v, resultType(0).dtype);
  }];
  let samples = ["x: n c h w | n c h", "scale: c", "bias: c", "epsilon: 0.01 | 0.3"];
  let numpy = "group_norm(x, scale, bias, x.shape[1], epsilon)";
  let example = "instance_norm(tensor({{{1.0, 2, 3}, {4, 6, 8}}}), ones({2}), zeros({2}))";
}
