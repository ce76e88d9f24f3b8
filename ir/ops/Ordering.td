// Sorting, and running totals along a dimension.
include "ir/ops/Base.td"

class Order<string mnemonic> : TableOp<mnemonic, "Ordering"> {
  let arguments = (ins Tensor:$x, Default<Int, "-1">:$axis, Default<Bool, "false">:$descending);
  let kernelForm = "kernelFormSort";
}
def SortOp : Order<"sort"> {
  let summary = "The elements in order along `axis`; NaN counts as the largest";
  let description = [{
    Stable: equal elements keep their order.
    - (C1) axis is in [-rank, rank).
  }];
  let infer = "inferSort";
  let evaluate = "interp::sort";
  let numpy = "np.flip(np.sort(x, axis=axis), axis) if descending else np.sort(x, axis=axis)";
  let example = "sort(tensor({3, 1, 2}))";
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
  let example = "argsort(tensor({3, 1, 2}))";
}
def TopKOp : TableOp<"top_k", "Ordering"> {
  let summary = "The k largest elements along `axis`, the largest first, or the k smallest, and their indices as i64";
  let description = [{
    Of equal elements the one with the smaller index comes first; NaN counts as the largest.
    - (C1) axis is in [-rank, rank);
    - (C2) k is in [0, size of the dimension].
  }];
  let arguments = (ins Tensor:$x, Int:$k, Default<Int, "-1">:$axis, Default<Bool, "true">:$largest);
  let results = (outs Tensor:$values, Tensor:$indices);
  let infer = "inferTopK";
  let kernelForm = "kernelFormTopK";
  let evaluate = "interp::topK";
  let numpy = "top_k(x, k, axis, largest)";
  let example = "top_k(tensor({3, 1, 2}), 2)";
}

class Scan<string mnemonic, string combine_> : TableOp<mnemonic, "Ordering"> {
  let arguments = (ins Tensor:$x, Default<Int, "-1">:$axis, Default<Bool, "false">:$reverse);
  let combine = combine_;
  let infer = "inferScan";
  let kernelForm = "kernelFormScan";
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
  let numpy = "scan(np.cumsum, x, axis, reverse, exclusive, 0)";
  let example = "cumsum(tensor({1, 2, 3}))";
}
def CumprodOp : WideningScan<"cumprod", "Prod"> {
  let summary = "The running product along `axis`";
  let decomposition = [{ cumprod(cast(x, resultType(0).dtype), axis, reverse, exclusive) }];
  let numpy = "scan(np.cumprod, x, axis, reverse, exclusive, 1)";
  let example = "cumprod(tensor({1, 2, 3}))";
}
defvar extremumScan = [{
    NaN stays from where it stands. With `reverse` the scan runs from the last element to the first.
    - (C1) axis is in [-rank, rank).
}];
def CummaxOp : Scan<"cummax", "Max"> {
  let summary = "The largest element so far along `axis`";
  let description = extremumScan;
  let numpy = "scan(np.maximum.accumulate, x, axis, reverse, False, 0)";
  let example = "cummax(tensor({2, 1, 3}))";
}
def CumminOp : Scan<"cummin", "Min"> {
  let summary = "The smallest element so far along `axis`";
  let description = extremumScan;
  let numpy = "scan(np.minimum.accumulate, x, axis, reverse, False, 0)";
  let example = "cummin(tensor({2, 3, 1}))";
}
