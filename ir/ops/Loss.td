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
    // Where a logarithm is not below -100 its argument is another, so that its slope, which is infinite there, counts for nothing.
    Expr none = less_equal(abs(p), Expr::scalar(std::exp(-100.0), p.dtype())), all = equal(p, Expr::scalar(1, p.dtype()));
    Expr logP = where(none, least, log(where(none, Expr::scalar(1, p.dtype()), p)));
    Expr logQ = where(all, least, log1p(where(all, Expr::scalar(0, p.dtype()), negative(p))));
    Expr loss = t * logP + (1 - t) * logQ;
    return cast(reduceLoss(negative(loss), reduction), resultType(0).dtype);
  }];
  let domains = ["0.1, 0.9", "0, 1"];
  let numpy = "reduce_loss(-(target * np.maximum(np.log(x), -100) + (1 - target) * np.maximum(np.log(1 - x), -100)), reduction)";
  let example = "bce_loss(tensor({0.1, 0.9}), tensor({0.0, 1}))";
}
def BceWithLogitsLossOp : RegressionLoss<"bce_with_logits_loss"> {
  let summary = "The cross entropy of sigmoid(x) against targets in [0, 1], averaged; exact for large x";
  let description = !strconcat("    With `pos_weight`, the part of the targets, -target * log(sigmoid(x)), is multiplied by it: above 1 it counts more to find them.\n",
                               regressionRules, "    - (C4) pos_weight has floats and broadcasts to the shape of x and target.\n");
  let arguments = (ins Tensor:$x, Tensor:$target, Optional<Tensor>:$pos_weight, Default<Str, "\"mean\"">:$reduction);
  let types = !strconcat([{
    if (const auto both = broadcastShapes(x.shape, target.shape); both && pos_weight) {
      const auto all = broadcastShapes(pos_weight->shape, *both);
      if (!isFloat(pos_weight->dtype) || !all || *all != *both)
        return fail(4, "pos_weight must be floats that broadcast to " + both->str());
    }
  }], regressionTypes);
  let decomposition = [{
    Expr v = wide(x, resultType(0).dtype), t = wide(target, resultType(0).dtype), zero = Expr::scalar(0, v.dtype());
    if (!pos_weight)
      return cast(reduceLoss(maximum(v, zero) - v * t + log1p(exp(negative(abs(v)))), reduction), resultType(0).dtype);
    Expr softplus = maximum(negative(v), zero) + log1p(exp(negative(abs(v)))); // -log(sigmoid(x))
    Expr loss = (1 - t) * v + ((cast(pos_weight, v.dtype()) - 1) * t + 1) * softplus;
    return cast(reduceLoss(loss, reduction), resultType(0).dtype);
  }];
  let samples = ["x: ... d | i64 ... d", "target: ... d | d", "pos_weight: | d", "reduction: mean | sum | none"];
  let domains = ["-2, 2", "0, 1", "0.2, 3"];
  let numpy = "bce_with_logits_loss(x, target, pos_weight, reduction)";
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

def SmoothL1LossOp : RegressionLoss<"smooth_l1_loss"> {
  let summary = "The squared difference over 2 * beta where |difference| is below beta, |difference| - beta / 2 elsewhere, averaged";
  let description = !strconcat("    With beta = 0 it is l1_loss.\n", regressionRules, "    - (C4) beta is finite and not negative.\n");
  let arguments = (ins Tensor:$x, Tensor:$target, Default<Str, "\"mean\"">:$reduction, Default<Float, "1.0">:$beta);
  let types = !strconcat([{
    if (!(beta >= 0 && std::isfinite(beta)))
      return fail(4, "beta is finite and not negative");}], regressionTypes);
  let decomposition = [{
    Expr a = wide(x, resultType(0).dtype), b = wide(target, resultType(0).dtype), d = abs(a - b);
    if (beta == 0)
      return cast(reduceLoss(d, reduction), resultType(0).dtype);
    Expr low = minimum(d, Expr::scalar(beta, d.dtype()));
    return cast(reduceLoss(low * (d - low * 0.5) / beta, reduction), resultType(0).dtype);
  }];
  let samples = ["x: ... d", "target: ... d | d", "reduction: mean | sum | none", "beta: 0 | 0.5 | 2"];
  let numpy = "reduce_loss(np.abs(x - target) if beta == 0 else np.where(np.abs(x - target) < beta, 0.5 * (x - target) ** 2 / beta, np.abs(x - target) - beta / 2), reduction)";
  let example = "smooth_l1_loss(tensor({1.0, 2, 3}), tensor({1, 2.5, 5}), \"none\", 0.5)";
}
def SoftMarginLossOp : RegressionLoss<"soft_margin_loss"> {
  let summary = "log(1 + exp(-target * x)) for targets of 1 and -1, averaged";
  let decomposition = [{
    Expr v = negative(wide(x, resultType(0).dtype) * wide(target, resultType(0).dtype)), zero = Expr::scalar(0, v.dtype());
    return cast(reduceLoss(maximum(v, zero) + log1p(exp(negative(abs(v)))), reduction), resultType(0).dtype);
  }];
  let numpy = "reduce_loss(np.logaddexp(0, -x * target), reduction)";
  let example = "soft_margin_loss(tensor({-2.0, 2}), tensor({-1.0, -1}), \"none\")";
}
def HingeEmbeddingLossOp : RegressionLoss<"hinge_embedding_loss"> {
  let summary = "x where target is 1, max(0, margin - x) where it is -1, averaged";
  let description = !strconcat("    Where target is something else, the sum of the two.\n", regressionRules);
  let arguments = (ins Tensor:$x, Tensor:$target, Default<Str, "\"mean\"">:$reduction, Default<Float, "1.0">:$margin);
  let decomposition = [{
    Expr v = wide(x, resultType(0).dtype), t = wide(target, resultType(0).dtype), zero = Expr::scalar(0, v.dtype());
    Expr apart = maximum(Expr::scalar(margin, v.dtype()) - v, zero), one = Expr::scalar(1, t.dtype());
    return cast(reduceLoss(where(not_equal(t, one), apart, zero) + where(not_equal(t, negative(one)), v, zero), reduction), resultType(0).dtype);
  }];
  let samples = ["x: ... d", "target: i64 ... d | i64 d", "reduction: mean | sum | none", "margin: 0.5 | 1"];
  let domains = ["-2, 2", "-1, 1"];
  let numpy = "reduce_loss(np.where(target != 1, np.maximum(margin - x, 0), 0) + np.where(target != -1, x, 0), reduction)";
  let example = "hinge_embedding_loss(tensor({0.25, 0.25, 3}), tensor({1.0, -1, -1}), \"none\")";
}
def PoissonNllLossOp : RegressionLoss<"poisson_nll_loss"> {
  let summary = "The negative log likelihood of counts `target` of Poisson distributions with the expectations exp(x), averaged";
  let description = !strconcat([{
    exp(x) - target * x; without `log_input`, x is the expectation itself: x - target * log(x + epsilon). With `full`, Stirling's
    target * log(target) - target + log(2 * pi * target) / 2 is added where target is above 1.
}], regressionRules);
  let arguments = (ins Tensor:$x, Tensor:$target, Default<Str, "\"mean\"">:$reduction, Default<Bool, "true">:$log_input, Default<Bool, "false">:$full,
                       Default<Float, "1e-8">:$epsilon);
  let decomposition = [{
    Expr v = wide(x, resultType(0).dtype), t = wide(target, resultType(0).dtype);
    Expr loss = log_input ? exp(v) - t * v : v - t * log(v + epsilon);
    if (full) {
      Expr one = Expr::scalar(1, t.dtype()), isMany = greater(t, one), many = where(isMany, t, one);
      loss = loss + where(isMany, many * log(many) - many + log(many * (2 * std::numbers::pi)) * 0.5, Expr::scalar(0, t.dtype()));
    }
    return cast(reduceLoss(loss, reduction), resultType(0).dtype);
  }];
  let samples = ["x: ... d", "target: ... d | d", "reduction: mean | sum | none", "log_input: true | false", "full: true | false"];
  let domains = ["0.1, 2", "0, 4"];
  let numpy = "poisson_nll_loss(x, target, reduction, log_input, full, epsilon)";
  let example = "poisson_nll_loss(tensor({0.0, 1, 2}), tensor({1, 2, 8}), \"none\")";
}

// Losses of three operands that broadcast.
defvar tripleTypes = [{
    const DType type = promote(promote(x.dtype, second.dtype), third.dtype);
    if (type == DType::boolean)
      return fail(1, "wants numbers, not bools (cast them)");
    const auto two = broadcastShapes(x.shape, second.shape);
    const auto shape = two ? broadcastShapes(*two, third.shape) : std::nullopt;
    if (!shape)
      return fail(2, "shapes do not broadcast");
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      return fail(3, "reduction is 'mean', 'sum' or 'none'");
    return result(TensorType{isFloat(type) ? type : DType::f32, reduction == "none" ? *shape : Shape{}});
}];
class TripleTypes<string second, string third> {
  string types = !strconcat("    const auto &second = ", second, "; const auto &third = ", third, ";\n", tripleTypes);
}
def GaussianNllLossOp : Composite<"gaussian_nll_loss"> {
  let summary = "The negative log likelihood of `target` under normal distributions with the means x and these variances, averaged";
  let description = !strconcat([{
    (log(v) + (x - target)^2 / v) / 2 with v = max(variance, epsilon); with `full`, log(2 * pi) / 2 is added.
}], regressionRules);
  let arguments = (ins Tensor:$x, Tensor:$target, Tensor:$variance, Default<Str, "\"mean\"">:$reduction, Default<Bool, "false">:$full,
                       Default<Float, "1e-6">:$epsilon);
  let types = TripleTypes<"target", "variance">.types;
  let decomposition = [{
    const DType type = resultType(0).dtype;
    Expr d = wide(x, type) - wide(target, type), v = maximum(wide(variance, type), Expr::scalar(epsilon, d.dtype()));
    Expr loss = (log(v) + square(d) / v) * 0.5;
    return cast(reduceLoss(full ? loss + 0.5 * std::log(2 * std::numbers::pi) : loss, reduction), type);
  }];
  let samples = ["x: ... d", "target: ... d | d", "variance: ... d | d", "reduction: mean | sum | none", "full: true | false"];
  let domains = ["-2, 2", "-2, 2", "0.2, 3"];
  let numpy = "reduce_loss(0.5 * (np.log(np.maximum(variance, epsilon)) + (x - target) ** 2 / np.maximum(variance, epsilon)) + (0.5 * np.log(2 * np.pi) if full else 0), reduction)";
  let example = "gaussian_nll_loss(tensor({1.0, 2}), tensor({1.5, 2}), tensor({1, 0.5}), \"none\")";
}
def MarginRankingLossOp : Composite<"margin_ranking_loss"> {
  let summary = "max(0, margin - target * (x - other)), averaged: target 1 wants the greater x, -1 the greater other";
  let description = regressionRules;
  let arguments = (ins Tensor:$x, Tensor:$other, Tensor:$target, Default<Str, "\"mean\"">:$reduction, Default<Float, "0.0">:$margin);
  let types = TripleTypes<"other", "target">.types;
  let decomposition = [{
    const DType type = resultType(0).dtype;
    Expr d = wide(x, type) - wide(other, type), zero = Expr::scalar(0, d.dtype());
    return cast(reduceLoss(maximum(Expr::scalar(margin, d.dtype()) - wide(target, type) * d, zero), reduction), type);
  }];
  let samples = ["x: ... d", "other: ... d | d", "target: i64 ... d | i64 d", "reduction: mean | sum | none", "margin: 0 | 0.5"];
  let domains = ["-2, 2", "-2, 2", "-1, 1"];
  let numpy = "reduce_loss(np.maximum(0, margin - target * (x - other)), reduction)";
  let example = "margin_ranking_loss(tensor({1.0, 2}), tensor({2.0, 1}), tensor({1.0, 1}), \"none\", 0.5)";
}

// Of vectors, along the last dimension.
defvar vectorRules = [{
    - (C1) the operands have floats;
    - (C2) their shapes broadcast to at least one dimension;
    - (C3) reduction is "mean", "sum" or "none": that of a loss for each vector.
}];
def TripletMarginLossOp : Composite<"triplet_margin_loss"> {
  let summary = "max(0, |x - positive| - |x - negative| + margin) of vectors along the last dimension, averaged";
  let description = !strconcat("    The distance of a and b is the norm of order `p` of a - b + epsilon.\n", vectorRules, "    - (C4) p is at least 1.\n");
  let arguments = (ins Tensor:$x, Tensor:$positive, Tensor:$negative, Default<Str, "\"mean\"">:$reduction, Default<Float, "1.0">:$margin,
                       Default<Float, "2.0">:$p, Default<Float, "1e-6">:$epsilon);
  let types = [{
    const DType type = promote(promote(x.dtype, positive.dtype), negative.dtype);
    if (!isFloat(x.dtype) || !isFloat(positive.dtype) || !isFloat(negative.dtype))
      return fail(1, "wants floats");
    const auto two = broadcastShapes(x.shape, positive.shape);
    const auto shape = two ? broadcastShapes(*two, negative.shape) : std::nullopt;
    if (!shape || x.rank() < 1 || positive.rank() < 1 || negative.rank() < 1)
      return fail(2, "vectors do not broadcast");
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      return fail(3, "reduction is 'mean', 'sum' or 'none'");
    if (!(p >= 1))
      return fail(4, "p is at least 1");
    return result(TensorType{type, reduction == "none" ? withoutDim(*shape, shape->rank() - 1) : Shape{}});
  }];
  let decomposition = [{
    const DType type = resultType(0).dtype;
    Expr a = wide(x, type), one = wide(positive, type), other = wide(negative, type);
    auto distance = [&](const Expr &b) { return vector_norm(a - b + epsilon, Ints{-1}, false, p); };
    Expr d = distance(one) - distance(other) + margin;
    return cast(reduceLoss(maximum(d, Expr::scalar(0, d.dtype())), reduction), type);
  }];
  let samples = ["x: n d | d", "positive: n d | d", "negative: n d | d", "reduction: mean | sum | none", "margin: 0.5 | 1", "p: 1 | 2 | 3"];
  let numpy = "triplet_margin_loss(x, positive, negative, reduction, margin, p, epsilon)";
  let example = "triplet_margin_loss(tensor({{0.0, 0}}), tensor({{3.0, 4}}), tensor({{0.0, 1}}))";
}
def CosineEmbeddingLossOp : Composite<"cosine_embedding_loss"> {
  let summary = "1 - cos(x, other) where target is 1, max(0, cos(x, other) - margin) where it is -1, of vectors along the last dimension, averaged";
  let description = !strconcat([{
    `target` has one number for each pair of vectors. Where it is neither 1 nor -1 the loss is 0.
}], vectorRules);
  let arguments = (ins Tensor:$x, Tensor:$other, Tensor:$target, Default<Str, "\"mean\"">:$reduction, Default<Float, "0.0">:$margin);
  let types = [{
    if (!isFloat(x.dtype) || !isFloat(other.dtype) || target.dtype == DType::boolean)
      return fail(1, "wants floats, and numbers as targets");
    const auto shape = broadcastShapes(x.shape, other.shape);
    if (!shape || x.rank() < 1 || other.rank() < 1 || target.shape != withoutDim(*shape, shape->rank() - 1))
      return fail(2, "vectors do not broadcast, or there is not one target for each pair");
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      return fail(3, "reduction is 'mean', 'sum' or 'none'");
    return result(TensorType{promote(x.dtype, other.dtype), reduction == "none" ? target.shape : Shape{}});
  }];
  let decomposition = [{
    const DType type = resultType(0).dtype;
    Expr a = wide(x, type), b = wide(other, type), t = wide(target, type), zero = Expr::scalar(0, a.dtype()), one = Expr::scalar(1, t.dtype());
    auto squares = [](const Expr &v) { return sum(square(v), {-1}, false) + 1e-12; };
    Expr cosine = sum(a * b, {-1}, false) * rsqrt(squares(a) * squares(b));
    Expr apart = where(equal(t, negative(one)), maximum(cosine - margin, zero), zero);
    return cast(reduceLoss(where(equal(t, one), negative(cosine) + 1, apart), reduction), type);
  }];
  let samples = ["x: n d", "other: n d | d", "target: i64 n | n", "reduction: mean | sum | none", "margin: 0 | 0.25"];
  let domains = ["0.2, 2", "-2, 2", "-1, 1"];
  let numpy = "cosine_embedding_loss(x, other, target, reduction, margin)";
  let example = "cosine_embedding_loss(tensor({{3.0, 4}, {3, 4}}), tensor({{4.0, 3}, {4, 3}}), tensor({1.0, -1}), \"none\")";
}
def MultiMarginLossOp : Composite<"multi_margin_loss"> {
  let summary = "The sum of max(0, margin - x[label] + x[i])^p over the other classes i, divided by the number of classes, averaged";
  let description = [{
    A label outside the classes fails when the op runs.
    - (C1) x has floats [batch, classes] and at least one class;
    - (C2) labels are integers [batch];
    - (C3) reduction is "mean", "sum" or "none";
    - (C4) p is 1 or 2.
  }];
  let arguments = (ins Tensor:$x, Tensor:$labels, Default<Str, "\"mean\"">:$reduction, Default<Int, "1">:$p, Default<Float, "1.0">:$margin);
  let types = [{
    if (!isFloat(x.dtype) || x.rank() != 2 || x.shape[1] == 0)
      return fail(1, "x must be floats [batch, classes]");
    if (!isInteger(labels.dtype) || labels.shape != withoutDim(x.shape, 1))
      return fail(2, "labels must be integers of shape " + withoutDim(x.shape, 1).str());
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      return fail(3, "reduction is 'mean', 'sum' or 'none'");
    if (p != 1 && p != 2)
      return fail(4, "p is 1 or 2");
    return result(TensorType{x.dtype, reduction == "none" ? labels.shape : Shape{}});
  }];
  let decomposition = [{
    Expr v = wide(x), zero = Expr::scalar(0, v.dtype());
    Expr isLabel = equal(expand_dims(checkedLabels(labels, full(labels.sizes(), 1, DType::boolean), x.size(1)), 1), iota({x.size(1)}, 0, DType::i64));
    Expr ofLabel = sum(where(isLabel, v, zero), {1}, true);
    Expr over = where(isLabel, zero, maximum(v - ofLabel + margin, zero));
    return cast(reduceLoss(mean(p == 2 ? square(over) : over, {1}, false), reduction), resultType(0).dtype);
  }];
  let samples = ["x: n c", "labels: places1 i64 n | i32 n", "reduction: mean | sum | none", "p: 1 | 2", "margin: 0.5 | 1"];
  let domains = ["-2, 2", "0, 4"];
  let numpy = "multi_margin_loss(x, labels, reduction, p, margin)";
  let example = "multi_margin_loss(tensor({{1.0, 2, 3}, {3, 2, 1}}), tensor({2, 1}, i64), \"none\")";
}

def MultiLabelMarginLossOp : Composite<"multilabel_margin_loss"> {
  let summary = "The sum of max(0, 1 - x[j] + x[i]) over the labels j and the classes i that are no labels, divided by the number of classes, averaged";
  let description = [{
    Each row of `labels` holds the classes of a row of x; the first negative number ends it. A class that stands there twice counts
    twice; a number outside the classes fails when the op runs.
    - (C1) x has floats [classes] or [batch, classes], and at least one class;
    - (C2) labels are integers of x's shape;
    - (C3) reduction is "mean", "sum" or "none": that of a loss for each row.
  }];
  let arguments = (ins Tensor:$x, Tensor:$labels, Default<Str, "\"mean\"">:$reduction);
  let types = [{
    if (!isFloat(x.dtype) || x.rank() < 1 || x.rank() > 2 || x.shape[x.rank() - 1] == 0)
      return fail(1, "x must be floats [classes] or [batch, classes]");
    if (!isInteger(labels.dtype) || labels.shape != x.shape)
      return fail(2, "labels must be integers of shape " + x.shape.str());
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      return fail(3, "reduction is 'mean', 'sum' or 'none'");
    return result(TensorType{x.dtype, reduction == "none" ? withoutDim(x.shape, x.rank() - 1) : Shape{}});
  }];
  let decomposition = [{
    Expr v = wide(x), zero = Expr::scalar(0, v.dtype()), ids = cast(labels, DType::i64);
    const int last = x.rank() - 1;
    Expr isBefore = equal(cumsum(cast(less(ids, Expr::scalar(0, DType::i64)), DType::i64), last, false, false), Expr::scalar(0, DType::i64));
    // [..., labels, classes]
    Expr classes = checkedLabels(labels, isBefore, x.size(last));
    Expr isPair = logical_and(expand_dims(isBefore, -1), equal(expand_dims(classes, -1), iota({x.size(last)}, 0, DType::i64)));
    Expr ofLabel = sum(where(isPair, expand_dims(v, last), zero), {-1}, true);
    Expr isLabel = any(isPair, {last}, true);
    Expr counts = logical_and(expand_dims(isBefore, -1), logical_not(isLabel));
    Expr over = where(counts, maximum(expand_dims(v, last) - ofLabel + 1, zero), zero);
    return cast(reduceLoss(sum(mean(over, {-1}, false), {-1}, false), reduction), resultType(0).dtype);
  }];
  let samples = ["x: n c | c", "labels: places-1 i64 n c | i32 n c | i64 c", "reduction: mean | sum | none"];
  let domains = ["-2, 2", "-1, 3"];
  let numpy = "multilabel_margin_loss(x, labels, reduction)";
  let example = "multilabel_margin_loss(tensor({{0.1, 0.2, 0.4, 0.8}}), tensor({{3, 0, -1, 1}}, i64))";
}
def MultiLabelSoftMarginLossOp : Composite<"multilabel_soft_margin_loss"> {
  let summary = "The cross entropy of sigmoid(x) against targets in [0, 1], averaged over the classes, then over the rows";
  let description = [{
    - (C1) x and target have floats and one shape of rank at least 1, and at least one class (the last dimension);
    - (C2) reduction is "mean", "sum" or "none": that of a loss for each row.
  }];
  let arguments = (ins Tensor:$x, Tensor:$target, Default<Str, "\"mean\"">:$reduction);
  let types = [{
    if (!isFloat(x.dtype) || !isFloat(target.dtype) || x.shape != target.shape || x.rank() < 1 || x.shape[x.rank() - 1] == 0)
      return fail(1, "x and target must be floats of one shape [..., classes]");
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      return fail(2, "reduction is 'mean', 'sum' or 'none'");
    return result(TensorType{promote(x.dtype, target.dtype), reduction == "none" ? withoutDim(x.shape, x.rank() - 1) : Shape{}});
  }];
  let decomposition = [{
    const DType type = resultType(0).dtype;
    Expr loss = mean(bce_with_logits_loss(wide(x, type), wide(target, type), {}, "none"), {-1}, false);
    return cast(reduceLoss(loss, reduction), type);
  }];
  let samples = ["x: n c | n m c", "target: n c | n m c", "reduction: mean | sum | none"];
  let domains = ["-2, 2", "0, 1"];
  let numpy = "reduce_loss((np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0) - x * target).mean(-1), reduction)";
  let example = "multilabel_soft_margin_loss(tensor({{-2.0, 2}}), tensor({{0.0, 1}}))";
}

def NllLossOp : Composite<"nll_loss"> {
  let summary = "The negative log probability of each label, averaged over the labels that are not ignored";
  let description = [{
    `log_probs` is [batch, classes, ...], `labels` [batch, ...] with classes as integers. An element whose label is `ignore_index`
    counts nothing; another label outside the classes fails when the op runs. With `weight`, an element counts as much as its label's
    weight says: its loss is multiplied by it, and "mean" divides by the sum of these weights. "mean" of no labels is NaN.
    - (C1) log_probs has floats and rank at least 2;
    - (C2) labels are integers, with log_probs' shape but for dimension 1;
    - (C3) reduction is "mean", "sum" or "none";
    - (C4) weight has floats of shape [classes].
  }];
  let arguments = (ins Tensor:$log_probs, Tensor:$labels, Optional<Tensor>:$weight, Default<Str, "\"mean\"">:$reduction,
                       Default<Int, "-100">:$ignore_index);
  let types = [{
    if (!isFloat(log_probs.dtype) || log_probs.rank() < 2)
      return fail(1, "log_probs must be floats [batch, classes, ...]");
    const Shape elements = withoutDim(log_probs.shape, 1);
    if (!isInteger(labels.dtype) || labels.shape != elements)
      return fail(2, "labels must be integers of shape " + elements.str());
    if (reduction != "mean" && reduction != "sum" && reduction != "none")
      return fail(3, "reduction is 'mean', 'sum' or 'none'");
    if (weight && (!isFloat(weight->dtype) || weight->shape != Shape{log_probs.shape[1]}))
      return fail(4, "weight must be floats of shape " + Shape{log_probs.shape[1]}.str());
    return result(TensorType{log_probs.dtype, reduction == "none" ? elements : Shape{}});
  }];
  let decomposition = [{
    Expr p = wide(log_probs), zero = Expr::scalar(0, p.dtype());
    Sizes classes(log_probs.rank() - 1, 1);
    classes[0] = log_probs.size(1);
    Expr counts = not_equal(cast(labels, DType::i64), Expr::scalar(static_cast<double>(ignore_index), DType::i64));
    Expr isLabel = equal(expand_dims(checkedLabels(labels, counts, log_probs.size(1)), 1), iota(classes, 0, DType::i64));
    Expr loss = where(counts, negative(sum(where(isLabel, p, zero), {1}, false)), zero), share = cast(counts, p.dtype());
    if (weight) {
      share = where(counts, sum(where(isLabel, reshape(cast(weight, p.dtype()), classes), zero), {1}, false), zero);
      loss = loss * share;
    }
    if (reduction == "mean")
      return cast(sum(loss, {}, false) / sum(share, {}, false), resultType(0).dtype);
    return cast(reduceLoss(loss, reduction), resultType(0).dtype);
  }];
  let samples = ["log_probs: n c | n c d | n c h w", "labels: places1 i64 n | i32 n d | i64 n h w", "weight: | c", "reduction: mean | sum | none",
                 "ignore_index: 1 | 7"];
  let domains = ["-3, 0", "0, 4", "0.2, 3"];
  let numpy = "nll_loss(log_probs, labels, weight, reduction, ignore_index)";
  let example = "nll_loss(log_softmax(tensor({{1.0, 2, 3}, {3, 2, 1}})), tensor({2, 1}, i64))";
}
def SoftmaxCrossEntropyOp : Composite<"softmax_cross_entropy"> {
  let summary = "The cross entropy of softmax(logits) against integer labels or distributions, averaged";
  let description = [{
    `logits` is [batch, classes, ...]; `target` holds either classes as integers, [batch, ...], or the classes' probabilities as floats,
    with logits' shape. With label_smoothing s, a target distribution t becomes (1 - s) * t + s / classes. An element whose label
    is `ignore_index` counts nothing, and "mean" is over those that count; another label outside the classes fails when the op runs. With
    `weight`, a class's part of the sum is multiplied by its weight, and "mean" over labels divides by the sum of the labels' weights.
    - (C1) logits has floats and rank at least 2, with at least one class;
    - (C2) target has integers and logits' shape but for dimension 1, or floats and logits' shape;
    - (C3) reduction is "mean", "sum" or "none";
    - (C4) label_smoothing is in [0, 1];
    - (C5) weight has floats of shape [classes].
  }];
  let arguments = (ins Tensor:$logits, Tensor:$target, Optional<Tensor>:$weight, Default<Str, "\"mean\"">:$reduction,
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
    if (weight && (!isFloat(weight->dtype) || weight->shape != Shape{logits.shape[1]}))
      return fail(5, "weight must be floats of shape " + Shape{logits.shape[1]}.str());
    return result(TensorType{logits.dtype, reduction == "none" ? elements : Shape{}});
  }];
  let decomposition = [{
    Expr logp = log_softmax(wide(logits), 1), parts = logp, perClass; // parts: what each class gives of the sum
    if (weight) {
      Sizes classes(logits.rank() - 1, 1);
      classes[0] = logits.size(1);
      perClass = reshape(cast(weight, logp.dtype()), classes);
      parts = logp * perClass;
    }
    if (isFloat(target.dtype())) {
      Expr loss = negative(sum(cast(target, logp.dtype()) * parts, {1}, false));
      if (label_smoothing != 0)
        loss = loss * (1 - label_smoothing) - mean(parts, {1}, false) * label_smoothing;
      return cast(reduceLoss(loss, reduction), resultType(0).dtype);
    }
    if (label_smoothing == 0)
      return cast(nll_loss(logp, target, weight, reduction, ignore_index), resultType(0).dtype);
    Expr ids = cast(target, DType::i64), zero = Expr::scalar(0, logp.dtype());
    Expr counts = not_equal(ids, Expr::scalar(static_cast<double>(ignore_index), DType::i64));
    Expr uniform = where(counts, negative(mean(parts, {1}, false)), zero);
    Expr loss = nll_loss(logp, target, weight, "none", ignore_index) * (1 - label_smoothing) + uniform * label_smoothing;
    if (reduction == "mean") {
      // The sum of the labels' weights is the loss of minus the weights.
      Sizes shape(logits.type().shape.begin(), logits.type().shape.end());
      Expr share = weight ? nll_loss(broadcast_to(negative(perClass), shape), target, {}, "sum", ignore_index)
                          : sum(cast(counts, logp.dtype()), {}, false);
      return cast(sum(loss, {}, false) / share, resultType(0).dtype);
    }
    return cast(reduceLoss(loss, reduction), resultType(0).dtype);
  }];
  let samples = ["logits: n c | n c d", "target: places1 i64 n | i32 n d | n c | n c d", "weight: | c", "reduction: mean | sum | none",
                 "label_smoothing: 0 | 0 | 0.1", "ignore_index: 1 | 7"];
  let domains = ["-2, 2", "0, 1", "0.2, 3"];
  let numpy = "softmax_cross_entropy(logits, target, weight, reduction, label_smoothing, ignore_index)";
  let example = "softmax_cross_entropy(tensor({{1.0, 2, 3}, {3, 2, 1}}), tensor({2, 1}, i64))";
}
