// Views and movement of data along the shape.
include "ir/ops/Base.td"

def ReshapeOp : View<"reshape"> {
  let summary = "The elements in row-major order under another shape; one size may be -1";
  let description = [{
    - (C1) at most one size is -1, the others are not negative;
    - (C2) the number of elements stays.
  }];
  let arguments = (ins Tensor:$x, Ints:$shape);
  let infer = "inferReshape";
  let numpy = "np.reshape(x, shape)";
  let example = "reshape(tensor({{1, 2, 3}, {4, 5, 6}}), {3, -1})";
}
def ExpandDimsOp : View<"expand_dims"> {
  let summary = "A new dimension of size 1 at `axis` of the result";
  let description = [{
    - (C1) -rank - 1 <= axis <= rank;
    - (C2) the result has at most 8 dimensions.
  }];
  let arguments = (ins Tensor:$x, Default<Int, "0">:$axis);
  let infer = "inferExpandDims";
  let numpy = "np.expand_dims(x, axis)";
  let example = "expand_dims(tensor({1, 2, 3}), 1)";
}
def SqueezeOp : View<"squeeze"> {
  let summary = "Without the dimensions `axis`, which have size 1; without `axis`, all of size 1";
  let description = [{
    - (C1) every axis is in [-rank, rank), none twice;
    - (C2) the dimensions removed have size 1.
  }];
  let arguments = (ins Tensor:$x, Maybe<Ints>:$axis);
  let infer = "inferSqueeze";
  let numpy = "np.squeeze(x, axis)";
  let example = "squeeze(tensor({{{1}, {2}}}))";
}
def FlattenOp : View<"flatten"> {
  let summary = "The dimensions from `start_axis` on as one";
  let description = [{
    - (C1) start_axis is in [-rank, rank), or 0 for a scalar.
  }];
  let arguments = (ins Tensor:$x, Default<Int, "1">:$start_axis);
  let infer = "inferFlatten";
  let numpy = "np.reshape(x, x.shape[:start_axis] + (math.prod(x.shape[start_axis:]),))";
  let example = "flatten(tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}))";
}
def TransposeOp : ShapeOp<"transpose"> {
  let summary = "Dimensions permuted: dimension i of the result is dimension permutation[i] of x; reversed by default";
  let description = [{
    - (C1) `permutation` holds each of 0 .. rank - 1 once (negative ones count from the end).
  }];
  let arguments = (ins Tensor:$x, Maybe<Ints>:$permutation);
  let infer = "inferTranspose";
  let loopForm = "loopFormTranspose";
  let evaluate = "interp::transpose";
  let compose = "composeTranspose";
  let isIdentity = "isIdentityTranspose";
  let numpy = "np.transpose(x, permutation)";
  let example = "transpose(tensor({{1, 2, 3}, {4, 5, 6}}))";
}
def BroadcastToOp : ShapeOp<"broadcast_to"> {
  let summary = "x repeated along dimensions of size 1 and new leading ones to have `shape`";
  let description = [{
    - (C1) `shape` has at least x's rank, at most 8 dimensions, none negative, and less than 2^48 elements;
    - (C2) each size of x, counted from the last, is 1 or that of `shape`.
  }];
  let arguments = (ins Tensor:$x, Ints:$shape);
  let infer = "inferBroadcastTo";
  let loopForm = "loopFormBroadcastTo";
  let evaluate = "interp::broadcastTo";
  let isIdentity = "sameType";
  let numpy = "np.broadcast_to(x, shape)";
  let example = "broadcast_to(tensor({1, 2, 3}), {2, 3})";
}
def SliceOp : ShapeOp<"slice"> {
  let summary = "x[start : limit : stride] in every dimension";
  let description = [{
    As in NumPy, negative starts and limits count from the end, values beyond the ends are clamped, and a negative stride
    walks backwards (its limit is exclusive below; a limit below -size, such as the smallest integer, means through
    the first element). Missing strides are 1.
    - (C1) starts and limits have one entry per dimension of x, strides too or none;
    - (C2) strides are not 0;
    - (C3) sliced dimensions are static.
  }];
  let arguments = (ins Tensor:$x, Ints:$starts, Ints:$limits, Default<Ints, "{}">:$strides);
  let infer = "inferSlice";
  let loopForm = "loopFormSlice";
  let evaluate = "interp::slice";
  let isIdentity = "isIdentitySlice";
  let numpy = "x[tuple(slice(s, None if l < -2**62 else l, t) for s, l, t in zip(starts, limits, strides or [1] * x.ndim))]";
  let example = "slice(tensor({{1, 2, 3}, {4, 5, 6}}), {0, 2}, {2, -4}, {1, -1})";
}
def ConcatOp : ShapeOp<"concat"> {
  let summary = "The operands one after the other along `axis`, in their promoted element type";
  let description = [{
    - (C1) there is at least one operand;
    - (C2) all have the same rank, at least 1, and axis is in [-rank, rank);
    - (C3) all sizes but that of `axis` agree.
  }];
  let arguments = (ins Variadic<Tensor>:$inputs, Default<Int, "0">:$axis);
  let infer = "inferConcat";
  let loopForm = "loopFormConcat";
  let decomposition = [{
    std::vector<Expr> parts;
    for (const Expr &part : inputs)
      parts.push_back(cast(part, resultType(0).dtype));
    return concat(parts, axis);
  }];
  let evaluate = "interp::concat";
  let isIdentity = "sameType";
  let numpy = "np.concatenate(inputs, axis=axis)";
  let example = "concat({tensor({{1, 2}}), tensor({{3, 4}, {5, 6}})})";
}
def SplitOp : Composite<"split"> {
  let family = "Shape";
  let summary = "x cut along `axis` into pieces of the given sizes";
  let description = [{
    As many results as `sizes` has entries.
    - (C1) axis is in [-rank, rank);
    - (C2) sizes has an entry, none is negative, and they add up to the size of that dimension.
  }];
  let arguments = (ins Tensor:$x, Ints:$sizes, Default<Int, "0">:$axis);
  let results = (outs Variadic<Tensor>:$parts);
  let infer = "inferSplit";
  let decomposition = [{
    Ints starts(x.type().shape.size(), 0), limits(x.type().shape.begin(), x.type().shape.end());
    const auto d = static_cast<size_t>(axis < 0 ? axis + x.rank() : axis);
    std::vector<Expr> parts;
    limits[d] = 0;
    for (int64_t size : sizes) {
      starts[d] = limits[d];
      limits[d] += size;
      parts.push_back(slice(x, starts, limits));
    }
    return parts;
  }];
  let numpy = "np.split(x, np.cumsum(sizes)[:-1], axis=axis)";
  let example = "split(tensor({1, 2, 3}), {1, 2})";
}
def PadOp : ShapeOp<"pad"> {
  let summary = "x with `low` elements of `value` before and `high` after it, in every dimension";
  let description = [{
    - (C1) low and high have one entry per dimension of x, none negative; the result has less than 2^48 elements.
  }];
  let arguments = (ins Tensor:$x, Ints:$low, Ints:$high, Default<Float, "0.0">:$value);
  let infer = "inferPad";
  let loopForm = "loopFormPad";
  let evaluate = "interp::pad";
  let isIdentity = "sameType";
  let numpy = "np.pad(x, list(zip(low, high)), constant_values=value) if x.ndim else x";
  let example = "pad(tensor({{1, 2}}), {1, 0}, {0, 2}, 9)";
}
