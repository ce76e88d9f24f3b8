// Reductions over one dimension, several, or all.
include "ir/ops/Base.td"

def SumOp : Reduction<"sum", "Sum"> {
  let summary = "The sum over the dimensions `axis`";
  let description = [{
    Bools and integers sum in i64, as in NumPy; f16 and bf16 accumulate in f32.
    - (C1) every axis is in [-rank, rank), none twice.
  }];
  let numpy = "np.sum(x, axis=axis, keepdims=keepdims)";
  let example = "sum(tensor({{1, 2, 3}, {4, 5, 6}}), 1)";
}
def MeanOp : Reduction<"mean", "Sum"> {
  let summary = "The mean over the dimensions `axis`; of integers and bools it is f32";
  let compute = "Float";
  let isMean = 1;
  let numpy = "np.mean(x, axis=axis, keepdims=keepdims)";
  let example = "mean(tensor({{1, 2, 3}, {4, 5, 6}}), 0)";
}
def ProdOp : Reduction<"prod", "Prod"> {
  let summary = "The product over the dimensions `axis`";
  let description = [{
    Bools and integers multiply in i64, as in NumPy; f16 and bf16 accumulate in f32.
    - (C1) every axis is in [-rank, rank), none twice.
  }];
  let numpy = "np.prod(x, axis=axis, keepdims=keepdims)";
  let example = "prod(tensor({{1, 2, 3}, {4, 5, 6}}), 1)";
}
def MaxOp : Reduction<"max", "Max"> {
  let summary = "The largest element over the dimensions `axis`; NaN if there is one";
  let numpy = "np.max(x, axis=axis, keepdims=keepdims)";
  let example = "max(tensor({{1, 2, 3}, {4, 5, 6}}), 1, true)";
}
def MinOp : Reduction<"min", "Min"> {
  let summary = "The smallest element over the dimensions `axis`; NaN if there is one";
  let numpy = "np.min(x, axis=axis, keepdims=keepdims)";
  let example = "min(tensor({{1, 2, 3}, {4, 5, 6}}))";
}
def AnyOp : Reduction<"any", "Any"> {
  let summary = "Whether an element is nonzero over the dimensions `axis`";
  let compute = "Bool";
  let numpy = "np.any(x, axis=axis, keepdims=keepdims)";
  let example = "any(tensor({{0, 1}, {0, 0}}), 1)";
}
def AllOp : Reduction<"all", "All"> {
  let summary = "Whether all elements are nonzero over the dimensions `axis`";
  let compute = "Bool";
  let numpy = "np.all(x, axis=axis, keepdims=keepdims)";
  let example = "all(tensor({{1, 1}, {0, 1}}), 1)";
}
def ArgmaxOp : ArgReduction<"argmax", "ArgMax"> {
  let summary = "The index of the first largest element along `axis`, as i64";
  let numpy = "np.argmax(x, axis=axis, keepdims=keepdims)";
  let example = "argmax(tensor({{1, 9, 3}, {4, 5, 6}}))";
}
def ArgminOp : ArgReduction<"argmin", "ArgMin"> {
  let summary = "The index of the first smallest element along `axis`, as i64";
  let numpy = "np.argmin(x, axis=axis, keepdims=keepdims)";
  let example = "argmin(tensor({{1, 9, 3}, {4, 5, 6}}), 0)";
}
