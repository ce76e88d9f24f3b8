// Reductions over one dimension, several, or all.
include "ir/ops/Base.td"

def SumOp : Reduction<"sum", "Sum"> {
  let prebuilt = !listconcat(AllNumbers, ["bool"]);
  let summary = "The sum over the dimensions `axis`";
  let description = [{
    Bools and integers sum in i64, as in NumPy; f16 and bf16 accumulate in f32.
    - (C1) every axis is in [-rank, rank), none twice.
  }];
  let gradient = [{
    return unreduced(dy, x, axis);
  }];
  let numpy = "np.sum(x, axis=axis, keepdims=keepdims)";
  let example = "sum(tensor({{1.0, 2, 3}, {4, 5, 6}}), 1)";
}
def MeanOp : Reduction<"mean", "Sum"> {
  let prebuilt = !listconcat(AllNumbers, ["bool"]);
  let summary = "The mean over the dimensions `axis`; of integers and bools it is f32";
  let compute = "Float";
  let isMean = 1;
  let gradient = [{
    return unreduced(dy, x, axis) / countAlong(x, axis);
  }];
  let numpy = "np.mean(x, axis=axis, keepdims=keepdims)";
  let example = "mean(tensor({{1.0, 2, 3}, {4, 5, 6}}), 0)";
}
def ProdOp : Reduction<"prod", "Prod"> {
  let summary = "The product over the dimensions `axis`";
  let description = [{
    Bools and integers multiply in i64, as in NumPy; f16 and bf16 accumulate in f32.
    - (C1) every axis is in [-rank, rank), none twice.
  }];
  let gradient = [{ prodGradient(dy, x, axis) }];
  let numpy = "np.prod(x, axis=axis, keepdims=keepdims)";
  let example = "prod(tensor({{1.0, 2, 3}, {4, 5, 6}}), 1)";
}
defvar extremumGradient = [{
    // Equal ones share it.
    Expr isIt = cast(equal(x, unreduced(y, x, axis)), dy.dtype());
    return isIt * (unreduced(dy, x, axis) / sum(isIt, optional(axis), true));
}];
def MaxOp : OrderReduction<"max", "Max"> {
  let prebuilt = AllNumbers;
  let summary = "The largest element over the dimensions `axis`; NaN if there is one";
  let gradient = extremumGradient;
  let numpy = "np.max(x, axis=axis, keepdims=keepdims)";
  let example = "max(tensor({{1.0, 2, 3}, {4, 5, 6}}), 1, true)";
}
def MinOp : OrderReduction<"min", "Min"> {
  let summary = "The smallest element over the dimensions `axis`; NaN if there is one";
  let gradient = extremumGradient;
  let numpy = "np.min(x, axis=axis, keepdims=keepdims)";
  let example = "min(tensor({{1.0, 2, 3}, {4, 5, 6}}))";
}
def AnyOp : Reduction<"any", "Any"> {
  let prebuilt = ["bool"];
  let summary = "Whether an element is nonzero over the dimensions `axis`";
  let compute = "Bool";
  let numpy = "np.any(x, axis=axis, keepdims=keepdims)";
  let example = "any(tensor({{0.0, 1}, {0, 0}}), 1)";
}
def AllOp : Reduction<"all", "All"> {
  let prebuilt = ["bool"];
  let summary = "Whether all elements are nonzero over the dimensions `axis`";
  let compute = "Bool";
  let numpy = "np.all(x, axis=axis, keepdims=keepdims)";
  let example = "all(tensor({{1.0, 1}, {0, 1}}), 1)";
}
def ArgmaxOp : ArgReduction<"argmax", "ArgMax"> {
  let summary = "The index of the first largest element along `axis`, as i64";
  let numpy = "np.argmax(x, axis=axis, keepdims=keepdims)";
  let example = "argmax(tensor({{1.0, 9, 3}, {4, 5, 6}}))";
}
def ArgminOp : ArgReduction<"argmin", "ArgMin"> {
  let summary = "The index of the first smallest element along `axis`, as i64";
  let numpy = "np.argmin(x, axis=axis, keepdims=keepdims)";
  let example = "argmin(tensor({{1.0, 9, 3}, {4, 5, 6}}), 0)";
}

// --- Written in the above -----------------------------------------------------------------------------------------------------
class ReductionComposite<string mnemonic> : Composite<mnemonic> {
  let family = "Reduction";
  let description = [{
    Integers and bools are converted to f32; f16 and bf16 are computed in f32.
    - (C1) every axis is in [-rank, rank), none twice.
  }];
  let infer = "inferReductionComposite";
  let compute = "Float";
}
def MomentsOp : ReductionComposite<"moments"> {
  let summary = "The mean over the dimensions `axis`, and the variance: the mean of the squared distances from it";
  let arguments = (ins Tensor:$x, Maybe<Ints>:$axis, Default<Bool, "false">:$keepdims);
  let results = (outs Tensor:$mean, Tensor:$variance);
  let decomposition = [{
    const Expr v = wide(x), m = mean(v, optional(axis), true);
    const Expr variance = mean(square(v - m), optional(axis), keepdims);
    return {cast(keepdims ? m : reshape(m, variance.sizes()), floatType(x)), cast(variance, floatType(x))};
  }];
  // Of Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979, for any number of parts.
  let fromParts = [{
    const Expr means = wide(part(0)), m = mean(means, Ints{-1}, true);
    const Expr variance = mean(wide(part(1)) + square(means - m), Ints{-1}, false);
    return {cast(reshape(m, variance.sizes()), part(0).dtype()), cast(variance, part(1).dtype())};
  }];
  let numpy = "(np.mean(x, axis=axis, keepdims=keepdims), np.var(x, axis=axis, keepdims=keepdims))";
  let example = "moments(tensor({{1.0, 2, 3}, {4, 6, 8}}), {1})";
}
def VarOp : ReductionComposite<"var"> {
  let summary = "The mean of the squared distances from the mean over the dimensions `axis`, divided by the number of elements less `correction`";
  let arguments = (ins Tensor:$x, Maybe<Ints>:$axis, Default<Float, "0.0">:$correction, Default<Bool, "false">:$keepdims);
  let decomposition = [{
    const Expr variance = std::get<1>(moments(wide(x), optional(axis), keepdims));
    if (correction == 0)
      return cast(variance, floatType(x));
    const uint32_t mask = *normalizeAxes(axis, x.rank());
    Size n = 1;
    for (int i = 0; i < x.rank(); ++i)
      n = mask >> i & 1 ? n * x.size(i) : n;
    if (n.isNumber())
      return cast(variance * (static_cast<double>(n.number()) / std::max(static_cast<double>(n.number()) - correction, 0.0)), floatType(x));
    Expr count = sum(full({n}, 1, variance.dtype())); // known when the program runs
    return cast(variance * (count / maximum(count - correction, Expr::scalar(0, variance.dtype()))), floatType(x));
  }];
  let numpy = "np.var(x, axis=axis, ddof=correction, keepdims=keepdims)";
  let samples = ["correction: 0 | 1"];
  let example = "var(tensor({1.0, 2, 3, 4}), {}, 1)";
}
def StdOp : ReductionComposite<"std"> {
  let summary = "The square root of the variance over the dimensions `axis`";
  let arguments = (ins Tensor:$x, Maybe<Ints>:$axis, Default<Float, "0.0">:$correction, Default<Bool, "false">:$keepdims);
  let decomposition = [{ cast(sqrt(var(wide(x), optional(axis), correction, keepdims)), floatType(x)) }];
  let gradient = [{
    Expr v = wide(x), deviation = wide(unreduced(y, x, axis)), g = wide(unreduced(dy, x, axis));
    const Expr zero = Expr::scalar(0, v.dtype()); // of equal elements it has a kink; the slope is 0 there
    Expr count = maximum(countAlong(v, axis) - correction, zero);
    return where(equal(deviation, zero), zero, g / (deviation * count)) * (v - mean(v, optional(axis), true));
  }];
  let numpy = "np.std(x, axis=axis, ddof=correction, keepdims=keepdims)";
  let samples = ["correction: 0 | 1"];
  let example = "tressel::std(tensor({1.0, 2, 3, 4}))";
}
def LogsumexpOp : ReductionComposite<"logsumexp"> {
  let summary = "log(sum(exp(x))) over the dimensions `axis`, without overflow";
  let description = [{
    Integers and bools are converted to f32; f16 and bf16 are computed in f32.
    - (C1) every axis is in [-rank, rank), none twice;
    - (C2) the reduced dimensions are not empty.
  }];
  let arguments = (ins Tensor:$x, Maybe<Ints>:$axis, Default<Bool, "false">:$keepdims);
  let infer = "inferLogsumexp";
  let decomposition = [{
    Expr v = wide(x), top = max(v, optional(axis), true);
    Expr shift = where(isfinite(top), top, Expr::scalar(0, v.dtype())); // infinities stay what they are
    return cast(log(sum(exp(v - shift), optional(axis), keepdims)) + (keepdims ? shift : max(shift, optional(axis), false)), floatType(x));
  }];
  let gradient = [{
    Expr top = unreduced(y, x, axis), shift = where(isfinite(top), top, Expr::scalar(0, top.dtype()));
    return unreduced(dy, x, axis) * exp(x - shift);
  }];
  let numpy = "np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))";
  let example = "logsumexp(tensor({0.0, 1, 2}))";
}
def CountNonzeroOp : ReductionComposite<"count_nonzero"> {
  let summary = "The number of elements that are not zero over the dimensions `axis`, as i64";
  let description = [{
    - (C1) every axis is in [-rank, rank), none twice.
  }];
  let arguments = (ins Tensor:$x, Maybe<Ints>:$axis, Default<Bool, "false">:$keepdims);
  let compute = "Any";
  let decomposition = [{ sum(not_equal(x, Expr::scalar(0, x.dtype())), optional(axis), keepdims) }];
  let numpy = "np.asarray(np.count_nonzero(x, axis=axis, keepdims=keepdims), np.int64)";
  let example = "count_nonzero(tensor({0.0, 1, 2}))";
}
def VectorNormOp : ReductionComposite<"vector_norm"> {
  let summary = "The `ord`-th root of the sum of |x|^ord over the dimensions `axis`: by default the Euclidean length";
  let description = [{
    `ord` 0 counts elements that are not zero; infinity is the largest of |x|, minus infinity the smallest. Integers and bools are
    converted to f32; f16 and bf16 are computed in f32.
    - (C1) every axis is in [-rank, rank), none twice;
    - (C2) a largest or smallest element exists: with an infinite ord the reduced dimensions are not empty.
  }];
  let arguments = (ins Tensor:$x, Maybe<Ints>:$axis, Default<Bool, "false">:$keepdims, Default<Float, "2.0">:$ord);
  let infer = ?;
  let types = [{
    const auto mask = normalizeAxes(axis, x.rank());
    if (!mask)
      return fail(1, "an axis is not a dimension, or stands twice");
    TensorType y{isFloat(x.dtype) ? x.dtype : DType::f32, {}};
    for (int i = 0; i < x.rank(); ++i) {
      const bool reduced = *mask >> i & 1;
      if (reduced && x.shape[i] == 0 && std::isinf(ord))
        return fail(2, "there is no largest or smallest of no elements");
      if (!reduced || keepdims)
        y.shape.push_back(reduced ? 1 : x.shape[i]);
    }
    return result(y);
  }];
  let decomposition = [{
    Expr size = abs(wide(x)), norm;
    auto number = [&](double value) { return Expr::scalar(value, size.dtype()); };
    if (std::isinf(ord))
      norm = ord > 0 ? max(size, optional(axis), keepdims) : min(size, optional(axis), keepdims);
    else if (ord == 0)
      norm = sum(cast(not_equal(size, number(0)), size.dtype()), optional(axis), keepdims);
    else if (ord == 1)
      norm = sum(size, optional(axis), keepdims);
    else if (ord == 2)
      norm = sqrt(sum(square(size), optional(axis), keepdims));
    else
      norm = pow(sum(pow(size, number(ord)), optional(axis), keepdims), number(1 / ord));
    return cast(norm, floatType(x));
  }];
  let domains = ["0.5, 2"];
  let samples = ["ord: 2 | 1 | 0 | 3 | 0.5 | -1 | inf | -inf"];
  let gradient = [{
    Expr v = wide(x), norm = wide(unreduced(y, x, axis)), g = wide(unreduced(dy, x, axis));
    const Expr zero = Expr::scalar(0, v.dtype());
    if (std::isinf(ord)) { // equal ones share it
      Expr isIt = cast(equal(abs(v), norm), v.dtype());
      return isIt * sign(v) * (g / sum(isIt, optional(axis), true));
    }
    if (ord == 0)
      return Expr();
    if (ord == 1)
      return g * sign(v);
    // Of zeros it has a kink; the slope is 0 there.
    Expr part = ord == 2 ? v / norm : sign(v) * pow(abs(v) / norm, Expr::scalar(ord - 1, v.dtype()));
    return g * where(equal(v, zero), zero, part);
  }];
  let numpy = "vector_norm(x, axis, keepdims, ord)";
  let example = "vector_norm(tensor({3.0, 4}))";
}
def TrapezoidOp : Composite<"trapezoid"> {
  let family = "Reduction";
  let summary = "The integral of y along `axis` by the trapezoidal rule, over the points x or over points `dx` apart";
  let description = [{
    Integers and bools are converted to f32; f16 and bf16 are computed in f32.
    - (C1) axis is in [-rank, rank), and y has elements along it, a symbolic size by its bounds;
    - (C2) x has y's shape, or is a vector of the size of that dimension.
  }];
  let arguments = (ins Tensor:$y, Optional<Tensor>:$x, Default<Float, "1.0">:$dx, Default<Int, "-1">:$axis);
  let compute = "Float";
  let types = [{
    const auto d = normalizeAxis(axis, y.rank());
    if (!d || !dim::atMost(1, y.shape[*d]))
      return fail(1, "axis is not a dimension, or it may be empty");
    if (x && x->shape != y.shape && (x->rank() != 1 || !dim::equal(x->shape[0], y.shape[*d])))
      return fail(2, "x must have y's shape or be a vector along axis");
    DType type = x ? promote(y.dtype, x->dtype) : y.dtype;
    TensorType area{isFloat(type) ? type : DType::f32, {}};
    for (int i = 0; i < y.rank(); ++i)
      if (i != *d)
        area.shape.push_back(y.shape[i]);
    return result(area);
  }];
  let decomposition = [{
    const int d = *normalizeAxis(axis, y.rank());
    Expr height = wide(y);
    Sizes from(y.type().shape.size(), 0), to(from.size(), std::numeric_limits<int64_t>::max()), none(from.size(), 0), before = to;
    from[static_cast<size_t>(d)] = 1, before[static_cast<size_t>(d)] = -1;
    Expr middle = (slice(height, from, to) + slice(height, none, before)) * 0.5;
    if (!x)
      return cast(sum(middle, {d}) * dx, resultType(0).dtype);
    Expr width = diff(wide(x), {}, {}, x.rank() == 1 ? 0 : d);
    Sizes along(y.type().shape.size(), 1);
    along[static_cast<size_t>(d)] = width.size(x.rank() == 1 ? 0 : d);
    return cast(sum(middle * (x.rank() == 1 ? reshape(width, along) : width), {d}), resultType(0).dtype);
  }];
  let samples = ["y: n m", "x: m | n m |", "dx: 1 | 0.5", "axis: 1 | -1"];
  let numpy = "np.trapezoid(y, x, dx, axis)";
  let example = "trapezoid(tensor({1.0, 2, 3}))";
}
