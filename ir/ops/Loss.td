// Losses: what a prediction lacks. All are composites; `reduction` says what is made of the elements' losses.
include "ir/ops/Base.td"

defvar regressionTypes = [{
    if (promote(x.dtype, target.dtype) == DType::boolean && !isFloat(x.dtype))
      return fail(1, "wants numbers, not bools (cast them)");
    const auto shape = broadcastShapes(x.shape, target.shape);
    if (!shape)
      return fail(2, "shapes do not broadcast");
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      return fail(3, "reduction is 'mean', 'sum' or 'none'");
    const DType type = promote(x.dtype, target.dtype);
    return result(TensorType{isFloat(type) ? type : DType::f32, reduction == "none" ? *shape : Shape{}});
}];
defvar regressionRules = [{
    - (C1) the operands hold numbers; integers are converted to f32;
    - (C2) their shapes broadcast;
    - (C3) reduction is "mean", "sum" or "none".
}];
class RegressionLoss<string mnemonic> : Composite<mnemonic> {
  let description = regressionRules;
  let arguments = (ins Tensor:$x, Tensor:$target, Default<Str, "\"mean\"">:$reduction);
  let types = regressionTypes;
  let samples = ["x: ... d", "target: ... d | d", "reduction: mean | sum | none"];
}
def MseLossOp : RegressionLoss<"mse_loss"> {
  let summary = "The squared difference, averaged";
  let decomposition = [{
    Expr a = wide(x, resultType(0).dtype), b = wide(target, resultType(0).dtype);
    return cast(reduceLoss(square(a - b), reduction), resultType(0).dtype);
  }];
  let numpy = "reduce_loss((x - target) ** 2, reduction)";
  let example = "mse_loss(tensor({1.0, 2, 3}), tensor({1.0, 2, 5}))";
}
def L1LossOp : RegressionLoss<"l1_loss"> {
  let summary = "The absolute difference, averaged";
  let decomposition = [{
    Expr a = wide(x, resultType(0).dtype), b = wide(target, resultType(0).dtype);
    return cast(reduceLoss(abs(a - b), reduction), resultType(0).dtype);
  }];
  let numpy = "reduce_loss(np.abs(x - target), reduction)";
  let example = "l1_loss(tensor({1.0, 2, 3}), tensor({1.0, 2, 5}), \"none\")";
}
def HuberLossOp : RegressionLoss<"huber_loss"> {
  let summary = "Half the squared difference where it is below delta, delta * (|difference| - delta / 2) elsewhere, averaged";
  let arguments = (ins Tensor:$x, Tensor:$target, Default<Str, "\"mean\"">:$reduction, Default<Float, "1.0">:$delta);
  let decomposition = [{
    Expr a = wide(x, resultType(0).dtype), b = wide(target, resultType(0).dtype), d = abs(a - b);
    Expr low = minimum(d, Expr::scalar(delta, d.dtype()));
    return cast(reduceLoss(low * (d - low * 0.5), reduction), resultType(0).dtype);
  }];
  let numpy = "reduce_loss(np.where(np.abs(x - target) < delta, 0.5 * (x - target) ** 2, delta * (np.abs(x - target) - delta / 2)), reduction)";
  let example = "huber_loss(tensor({1.0, 2, 3}), tensor({1, 2.5, 5}), \"none\")";
}
def BceLossOp : RegressionLoss<"bce_loss"> {
  let summary = "The cross entropy of probabilities x against targets in [0, 1], averaged";
  let description = !strconcat("    -(target * log(x) + (1 - target) * log(1 - x)), with logarithms not below -100.\n", regressionRules);
  let decomposition = [{
    Expr p = wide(x, resultType(0).dtype), t = wide(target, resultType(0).dtype), least = Expr::scalar(-100, p.dtype());
    Expr loss = t * maximum(log(p), least) + (1 - t) * maximum(log1p(negative(p)), least);
    return cast(reduceLoss(negative(loss), reduction), resultType(0).dtype);
  }];
  let domains = ["0.1, 0.9", "0, 1"];
  let numpy = "reduce_loss(-(target * np.maximum(np.log(x), -100) + (1 - target) * np.maximum(np.log(1 - x), -100)), reduction)";
  let example = "bce_loss(tensor({0.1, 0.9}), tensor({0.0, 1}))";
}
def BceWithLogitsLossOp : RegressionLoss<"bce_with_logits_loss"> {
  let summary = "The cross entropy of sigmoid(x) against targets in [0, 1], averaged; exact for large x";
  let decomposition = [{
    Expr v = wide(x, resultType(0).dtype), t = wide(target, resultType(0).dtype), zero = Expr::scalar(0, v.dtype());
    return cast(reduceLoss(maximum(v, zero) - v * t + log1p(exp(negative(abs(v)))), reduction), resultType(0).dtype);
  }];
  let samples = ["x: ... d | i64 ... d", "target: ... d | d", "reduction: mean | sum | none"];
  let numpy = "reduce_loss(np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0) - x * target, reduction)";
  let example = "bce_with_logits_loss(tensor({-2.0, 2}), tensor({0.0, 1}))";
}
def KlDivLossOp : RegressionLoss<"kl_div_loss"> {
  let summary = "target * (log(target) - x) for log probabilities x, averaged; 0 where target is 0";
  let decomposition = [{
    Expr v = wide(x, resultType(0).dtype), t = wide(target, resultType(0).dtype), zero = Expr::scalar(0, t.dtype());
    Expr positive = greater(t, zero);
    return cast(reduceLoss(where(positive, t * (log(where(positive, t, Expr::scalar(1, t.dtype()))) - v), zero * v), reduction),
                resultType(0).dtype);
  }];
  let domains = ["-3, 0", "0, 1"];
  let numpy = "reduce_loss(np.where(target > 0, target * (np.log(np.where(target > 0, target, 1)) - x), 0 * x), reduction)";
  let example = "kl_div_loss(log(tensor({0.25, 0.75})), tensor({0.5, 0.5}), \"sum\")";
}

def NllLossOp : Composite<"nll_loss"> {
  let summary = "The negative log probability of each label, averaged over the labels that are not ignored";
  let description = [{
    `log_probs` is [batch, classes, ...], `labels` [batch, ...] with classes as integers. An element whose label is `ignore_index`
    counts nothing; a label outside the classes counts 0 in the sum and 1 in the mean. "mean" of no labels is NaN.
    - (C1) log_probs has floats and rank at least 2;
    - (C2) labels are integers, with log_probs' shape but for dimension 1;
    - (C3) reduction is "mean", "sum" or "none".
  }];
  let arguments = (ins Tensor:$log_probs, Tensor:$labels, Default<Str, "\"mean\"">:$reduction,
                       Default<Int, "-100">:$ignore_index);
  let types = [{
    if (!isFloat(log_probs.dtype) || log_probs.rank() < 2)
      return fail(1, "log_probs must be floats [batch, classes, ...]");
    const Shape elements = withoutDim(log_probs.shape, 1);
    if (!isInteger(labels.dtype) || labels.shape != elements)
      return fail(2, "labels must be integers of shape " + elements.str());
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      return fail(3, "reduction is 'mean', 'sum' or 'none'");
    return result(TensorType{log_probs.dtype, reduction == "none" ? elements : Shape{}});
  }];
  let decomposition = [{
    Expr p = wide(log_probs), ids = cast(labels, DType::i64), zero = Expr::scalar(0, p.dtype());
    Sizes classes(log_probs.rank() - 1, 1);
    classes[0] = log_probs.size(1);
    Expr isLabel = equal(expand_dims(ids, 1), iota(classes, 0, DType::i64));
    Expr counts = not_equal(ids, Expr::scalar(static_cast<double>(ignore_index), DType::i64));
    Expr loss = where(counts, negative(sum(where(isLabel, p, zero), {1}, false)), zero);
    if (reduction == "mean")
      return cast(sum(loss, {}, false) / sum(cast(counts, p.dtype()), {}, false), resultType(0).dtype);
    return cast(reduceLoss(loss, reduction), resultType(0).dtype);
  }];
  let samples = ["log_probs: n c | n c d | n c h w", "labels: i64 n | i32 n d | i64 n h w", "reduction: mean | sum | none",
                 "ignore_index: 1 | 7"];
  let domains = ["-3, 0", "0, 4"];
  let numpy = "nll_loss(log_probs, labels, reduction, ignore_index)";
  let example = "nll_loss(log_softmax(tensor({{1.0, 2, 3}, {3, 2, 1}})), tensor({2, 1}, i64))";
}
def SoftmaxCrossEntropyOp : Composite<"softmax_cross_entropy"> {
  let summary = "The cross entropy of softmax(logits) against integer labels or distributions, averaged";
  let description = [{
    `logits` is [batch, classes, ...]; `target` holds either classes as integers, [batch, ...], or the classes' probabilities as floats,
    with logits' shape. With label_smoothing s, a target distribution t becomes (1 - s) * t + s / classes. An element whose label
    is `ignore_index` counts nothing, and "mean" is over those that count.
    - (C1) logits has floats and rank at least 2, with at least one class;
    - (C2) target has integers and logits' shape but for dimension 1, or floats and logits' shape;
    - (C3) reduction is "mean", "sum" or "none";
    - (C4) label_smoothing is in [0, 1].
  }];
  let arguments = (ins Tensor:$logits, Tensor:$target, Default<Str, "\"mean\"">:$reduction,
                       Default<Float, "0.0">:$label_smoothing, Default<Int, "-100">:$ignore_index);
  let types = [{
    if (!isFloat(logits.dtype) || logits.rank() < 2 || logits.shape[1] == 0)
      return fail(1, "logits must be floats [batch, classes, ...]");
    const Shape elements = withoutDim(logits.shape, 1);
    if (isFloat(target.dtype) ? target.shape != logits.shape : !isInteger(target.dtype) || target.shape != elements)
      return fail(2, "target must be integers of shape " + elements.str() + " or floats of shape " + logits.shape.str());
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      return fail(3, "reduction is 'mean', 'sum' or 'none'");
    if (!(label_smoothing >= 0 && label_smoothing <= 1))
      return fail(4, "label_smoothing is outside [0, 1]");
    return result(TensorType{logits.dtype, reduction == "none" ? elements : Shape{}});
  }];
  let decomposition = [{
    Expr logp = log_softmax(wide(logits), 1);
    if (isFloat(target.dtype())) {
      Expr loss = negative(sum(cast(target, logp.dtype()) * logp, {1}, false));
      if (label_smoothing != 0)
        loss = loss * (1 - label_smoothing) - mean(logp, {1}, false) * label_smoothing;
      return cast(reduceLoss(loss, reduction), resultType(0).dtype);
    }
    if (label_smoothing == 0)
      return cast(nll_loss(logp, target, reduction, ignore_index), resultType(0).dtype);
    Expr ids = cast(target, DType::i64), zero = Expr::scalar(0, logp.dtype());
    Expr counts = not_equal(ids, Expr::scalar(static_cast<double>(ignore_index), DType::i64));
    Expr uniform = where(counts, negative(mean(logp, {1}, false)), zero);
    Expr loss = nll_loss(logp, target, "none", ignore_index) * (1 - label_smoothing) + uniform * label_smoothing;
    if (reduction == "mean")
      return cast(sum(loss, {}, false) / sum(cast(counts, logp.dtype()), {}, false), resultType(0).dtype);
    return cast(reduceLoss(loss, reduction), resultType(0).dtype);
  }];
  let samples = ["logits: n c | n c d", "target: i64 n | i32 n d | n c | n c d", "reduction: mean | sum | none",
                 "label_smoothing: 0 | 0.1", "ignore_index: 1 | 7"];
  let domains = ["-2, 2", "0, 1"];
  let numpy = "softmax_cross_entropy(logits, target, reduction, label_smoothing, ignore_index)";
  let example = "softmax_cross_entropy(tensor({{1.0, 2, 3}, {3, 2, 1}}), tensor({2, 1}, i64))";
}
