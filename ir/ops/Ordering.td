// Sorting, and running totals along a dimension.
include "ir/ops/Base.td"

class Order<string mnemonic> : TableOp<mnemonic, "Ordering"> {
  let arguments = (ins Tensor:$x, Default<Int, "-1">:$axis, Default<Bool, "false">:$descending);
  let kernelForm = "kernelFormSort";
  let sharding = "shardingAlongAxis";
}
def SortOp : Order<"sort"> {
  let summary = "The elements in order along `axis`; NaN counts as the largest";
  let description = [{
    Stable: equal elements keep their order.
    - (C1) axis is in [-rank, rank).
  }];
  let infer = "inferSort";
  let evaluate = "interp::sort";
  let gradient = [{
    return put_along_axis(zeros(dy.type()), argsort(x, axis, descending), dy, axis, "set");
  }];
  let numpy = "np.flip(np.sort(x, axis=axis), axis) if descending else np.sort(x, axis=axis)";
  let example = "sort(tensor({3.0, 1, 2}))";
}
def ArgsortOp : Order<"argsort"> {
  let summary = "The indices, as i64, that put the elements in order along `axis`; NaN counts as the largest";
  let description = [{
    Stable: equal elements keep their order.
    - (C1) axis is in [-rank, rank).
  }];
  let infer = "inferArgsort";
  let evaluate = "interp::argsort";
  let numpy = "argsort(x, axis, descending)";
  let example = "argsort(tensor({3.0, 1, 2}))";
}
def TopKOp : TableOp<"top_k", "Ordering"> {
  let summary = "The k largest elements along `axis`, the largest first, or the k smallest, and their indices as i64";
  let description = [{
    Of equal elements the one with the smaller index comes first; NaN counts as the largest.
    - (C1) axis is in [-rank, rank);
    - (C2) k is in [0, size of the dimension].
  }];
  let arguments = (ins Tensor:$x, Size:$k, Default<Int, "-1">:$axis, Default<Bool, "true">:$largest);
  let results = (outs Tensor:$values, Tensor:$indices);
  let infer = "inferTopK";
  let kernelForm = "kernelFormTopK";
  let sharding = "shardingAlongAxis";
  let evaluate = "interp::topK";
  let gradient = [{
    if (!d(0))
      return Expr();
    return put_along_axis(zeros({d(0).dtype(), x.type().shape}), out(1), d(0), axis, "set");
  }];
  let numpy = "top_k(x, k, axis, largest)";
  let example = "top_k(tensor({3.0, 1, 2}), 2)";
}

class Scan<string mnemonic, string combine_> : TableOp<mnemonic, "Ordering"> {
  let arguments = (ins Tensor:$x, Default<Int, "-1">:$axis, Default<Bool, "false">:$reverse);
  let combine = combine_;
  let infer = "inferScan";
  let kernelForm = "kernelFormScan";
  let sharding = "shardingAlongAxis";
  let evaluate = "interp::scan";
}
/// Of integers and bools in i64: the kernel converts nothing.
class WideningScan<string mnemonic, string combine_> : Scan<mnemonic, combine_> {
  let arguments = (ins Tensor:$x, Default<Int, "-1">:$axis, Default<Bool, "false">:$reverse,
                       Default<Bool, "false">:$exclusive);
  let description = [{
    Bools and integers are added up or multiplied in i64, as in NumPy; f16 and bf16 keep their total in f32. With `exclusive` an
    element's own value is left out; with `reverse` the totals run from the last element to the first.
    - (C1) axis is in [-rank, rank).
  }];
}
def CumsumOp : WideningScan<"cumsum", "Sum"> {
  let summary = "The running sum along `axis`";
  let decomposition = [{ cumsum(cast(x, resultType(0).dtype), axis, reverse, exclusive) }];
  let gradient = [{
    return cumsum(dy, axis, !reverse, exclusive);
  }];
  let numpy = "scan(np.cumsum, x, axis, reverse, exclusive, 0)";
  let example = "cumsum(tensor({1.0, 2, 3}))";
}
def CumprodOp : WideningScan<"cumprod", "Prod"> {
  let summary = "The running product along `axis`";
  let decomposition = [{ cumprod(cast(x, resultType(0).dtype), axis, reverse, exclusive) }];
  let gradient = [{ cumprodGradient(dy, x, axis, reverse, exclusive) }];
  let numpy = "scan(np.cumprod, x, axis, reverse, exclusive, 1)";
  let example = "cumprod(tensor({1.0, 2, 3}))";
}
defvar extremumScan = [{
    NaN stays from where it stands. With `reverse` the scan runs from the last element to the first.
    - (C1) axis is in [-rank, rank).
}];
def CummaxOp : Scan<"cummax", "Max"> {
  let summary = "The largest element so far along `axis`";
  let description = extremumScan;
  let gradient = [{ extremumScanGradient(dy, x, y, axis, reverse) }];
  let numpy = "scan(np.maximum.accumulate, x, axis, reverse, False, 0)";
  let example = "cummax(tensor({2.0, 1, 3}))";
}
def CumminOp : Scan<"cummin", "Min"> {
  let summary = "The smallest element so far along `axis`";
  let description = extremumScan;
  let gradient = [{ extremumScanGradient(dy, x, y, axis, reverse) }];
  let numpy = "scan(np.minimum.accumulate, x, axis, reverse, False, 0)";
  let example = "cummin(tensor({2.0, 3, 1}))";
}

// --- Written in other ops -----------------------------------------------------------------------------------------------------
def CumulativeLogsumexpOp : Composite<"cumulative_logsumexp"> {
  let family = "Ordering";
  let summary = "The running log(sum(exp(x))) along `axis`, without overflow";
  let description = [{
    Integers and bools are converted to f32; f16 and bf16 are computed in f32. With `reverse` the totals run from the last element
    to the first.
    - (C1) axis is in [-rank, rank).
  }];
  let arguments = (ins Tensor:$x, Default<Int, "-1">:$axis, Default<Bool, "false">:$reverse);
  let compute = "Float";
  let types = [{
    if (!normalizeAxis(axis, x.rank()))
      return fail(1, "axis is not a dimension");
    return result(TensorType{isFloat(x.dtype) ? x.dtype : DType::f32, x.shape});
  }];
  // Totals of 1, 2, 4, ... elements, each of two halves: every sum is taken relative to its own largest term.
  let decomposition = [{
    const int d = *normalizeAxis(axis, x.rank());
    const Size size = x.size(d);
    const int64_t longest = dim::bounds(size).hi;
    Sizes along(x.type().shape.size(), 1);
    along[static_cast<size_t>(d)] = size;
    Expr total = wide(x), place = iota({size}, 0, DType::i64), least = Expr::scalar(0, DType::i64);
    Expr last = dim_size(size) - 1;
    for (int64_t step = 1; step < longest; step *= 2) {
      Expr other = reverse ? place + static_cast<double>(step) : place - static_cast<double>(step);
      Expr exists = reverse ? less_equal(other, last) : greater_equal(other, least);
      Expr before = take(total, reverse ? minimum(other, last) : maximum(other, least), d);
      total = where(reshape(exists, along), logaddexp(total, before), total);
    }
    return cast(total, resultType(0).dtype);
  }];
  let samples = ["x: n | n m | n m k", "axis: 0 | -1", "reverse: 0 | 1"];
  let numpy = "scan(np.logaddexp.accumulate, x, axis, reverse, False, 0)";
  let example = "cumulative_logsumexp(tensor({0.0, 0, 1}))";
}
def SearchsortedOp : Composite<"searchsorted"> {
  let family = "Ordering";
  let summary = "For each of `values` the index, as i64, before which it would stand in the ascending vector x";
  let description = [{
    With `side` "left" before elements that are equal, with "right" behind them; NaN counts as the largest. `sorter`, as
    argsort gives it, puts an x that is not in order into order. Found by bisection: of an x that is in no order some index results.
    - (C1) x is a vector;
    - (C2) sorter is a vector of integers of x's size;
    - (C3) side is "left" or "right".
  }];
  let arguments = (ins Tensor:$x, Tensor:$values, Optional<Tensor>:$sorter, Default<Str, "\"left\"">:$side);
  let types = [{
    if (x.rank() != 1)
      return fail(1, "x must be a vector");
    if (sorter && (sorter->rank() != 1 || !isInteger(sorter->dtype) || !dim::equal(sorter->shape[0], x.shape[0])))
      return fail(2, "sorter must be a vector of integers of x's size");
    if (side != "left" && side != "right")
      return fail(3, "side is 'left' or 'right'");
    return result(TensorType{DType::i64, values.shape});
  }];
  let decomposition = [{
    const DType type = promote(x.dtype(), values.dtype());
    const Size size = x.size(0);
    Expr place = cast(full_like(values, 0), DType::i64);
    if (size == 0)
      return place;
    Expr sorted = cast(sorter ? take(x, sorter) : x, type), v = cast(values, type), last = dim_size(size) - 1;
    int64_t step = 1;
    while (step <= dim::bounds(size).hi / 2)
      step *= 2;
    for (; step; step /= 2) { // `place` elements are known to stand before the value
      Expr next = place + static_cast<double>(step - 1), element = take(sorted, minimum(next, last));
      Expr stands = side == "left" ? less(element, v) : less_equal(element, v);
      if (isFloat(type))
        stands = logical_or(stands, side == "left" ? logical_and(isnan(v), logical_not(isnan(element))) : isnan(v));
      place = where(logical_and(stands, less_equal(next, last)), next + 1, place);
    }
    return place;
  }];
  let samples = ["x: sorted n", "values: k | k m | scalar", "side: left | right", "sorter:"];
  let numpy = "np.asarray(np.searchsorted(x, values, side, sorter), np.int64)";
  let example = "searchsorted(tensor({1.0, 3, 5}), tensor({0.0, 3, 9}))";
}
