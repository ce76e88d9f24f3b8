// Reading at computed places.
include "ir/ops/Base.td"

def TakeOp : Indexing<"take"> {
  let summary = "The slices of x along `axis` that `indices` names; negative indices count from the end";
  let description = [{
    The result's shape is x's with the dimension `axis` replaced by the shape of `indices`. An index outside the dimension fails
    when the op runs.
    - (C1) axis is in [-rank, rank);
    - (C2) `indices` are integers;
    - (C3) the result has at most 8 dimensions.
  }];
  let arguments = (ins Tensor:$x, Tensor:$indices, Default<Int, "0">:$axis);
  let infer = "inferTake";
  let loopForm = "loopFormTake";
  let evaluate = "interp::take";
  let numpy = "np.take(x, indices, axis=axis)";
  let domains = ["-2, 2", "0, 0"];
  let example = "take(tensor({{1, 2}, {3, 4}, {5, 6}}), tensor({2, 0, -1}, i64))";
}
