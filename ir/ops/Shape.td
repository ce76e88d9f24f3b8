// Views and movement of data along the shape.
include "ir/ops/Base.td"

def ReshapeOp : View<"reshape"> {
  let summary = "The elements in row-major order under another shape; one size may be -1";
  let description = [{
    - (C1) at most one size is -1, the others are not negative;
    - (C2) the number of elements stays.
  }];
  let arguments = (ins Tensor:$x, Sizes:$shape);
  let infer = "inferReshape";
  let gradient = [{
    return reshape(dy, x.sizes());
  }];
  let numpy = "np.reshape(x, shape)";
  let example = "reshape(tensor({{1.0, 2, 3}, {4, 5, 6}}), {3, -1})";
}
def ExpandDimsOp : View<"expand_dims"> {
  let summary = "A new dimension of size 1 at `axis` of the result";
  let description = [{
    - (C1) -rank - 1 <= axis <= rank;
    - (C2) the result has at most 8 dimensions.
  }];
  let arguments = (ins Tensor:$x, Default<Int, "0">:$axis);
  let infer = "inferExpandDims";
  let gradient = [{
    return reshape(dy, x.sizes());
  }];
  let numpy = "np.expand_dims(x, axis)";
  let example = "expand_dims(tensor({1.0, 2, 3}), 1)";
}
def SqueezeOp : View<"squeeze"> {
  let summary = "Without the dimensions `axis`, which have size 1; without `axis`, all of size 1";
  let description = [{
    - (C1) every axis is in [-rank, rank), none twice;
    - (C2) the dimensions removed have size 1.
  }];
  let arguments = (ins Tensor:$x, Maybe<Ints>:$axis);
  let infer = "inferSqueeze";
  let sharding = "shardingOfSqueeze";
  let gradient = [{
    return reshape(dy, x.sizes());
  }];
  let numpy = "np.squeeze(x, axis)";
  let example = "squeeze(tensor({{{1.0}, {2}}}))";
}
def FlattenOp : View<"flatten"> {
  let summary = "The dimensions from `start_axis` on as one";
  let description = [{
    - (C1) start_axis is in [-rank, rank), or 0 for a scalar.
  }];
  let arguments = (ins Tensor:$x, Default<Int, "1">:$start_axis);
  let infer = "inferFlatten";
  let gradient = [{
    return reshape(dy, x.sizes());
  }];
  let numpy = "np.reshape(x, x.shape[:start_axis] + (math.prod(x.shape[start_axis:]),))";
  let example = "flatten(tensor({{{1.0, 2}, {3, 4}}, {{5, 6}, {7, 8}}}))";
}
def ToOp : View<"to"> {
  let summary = "x in the memory of `device` (\"cpu\", \"gpu0\"); what reads it is computed there";
  let description = [{
    The values stay. In a compiled program ops that read the result are computed on the device, and so is what reads theirs,
    unless they are placed otherwise ([devices](devices.md)). Only machines that have the device compile it.
    - (C1) `device` is not empty.
  }];
  let arguments = (ins Tensor:$x, Str:$device);
  let types = [{
    if (device.empty())
      return fail(1, "names no device");
    return result(x);
  }];
  let isIdentity = "nullptr";
  let samples = ["device: cpu"];
  let gradient = [{ dy }]; // on the device where it is made
  let numpy = "np.array(x)";
  let example = "to(tensor({1.0, 2, 3}), \"cpu\")";
}
def ShardOp : View<"shard"> {
  let summary = "x, cut over the axes of the mesh as `axes` says where a compiled function has one: \"data, -\"";
  let description = [{
    A word per dimension: the name of an axis of the mesh, several joined by `+` (the first makes the largest parts), or `-` for a
    dimension that is not cut. It says where a value is held in parts; the values stay. Programs without a mesh ignore it
    ([several devices at once](parallel.md)).
    - (C1) `axes` has as many words as x has dimensions.
  }];
  let arguments = (ins Tensor:$x, Str:$axes);
  let types = [{
    const int words = axes.empty() ? 0 : static_cast<int>(std::count(axes.begin(), axes.end(), ',')) + 1;
    if (words != x.rank())
      return fail(1, "names " + std::to_string(words) + " dimensions of " + std::to_string(x.rank()));
    return result(x);
  }];
  let isIdentity = "nullptr";
  let samples = ["x: n m", "axes: data, - | -, -"];
  let gradient = [{ dy }];
  let numpy = "np.array(x)";
  let example = "shard(tensor({1.0, 2}), \"data\")";
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
  let gradient = [{
    Ints back(x.type().shape.size());
    for (size_t i = 0; i < back.size(); ++i)
      back[permutation ? static_cast<size_t>(*normalizeAxis((*permutation)[i], x.rank())) : back.size() - 1 - i] = static_cast<int64_t>(i);
    return transpose(dy, back);
  }];
  let numpy = "np.transpose(x, permutation)";
  let example = "transpose(tensor({{1.0, 2, 3}, {4, 5, 6}}))";
}
def BroadcastToOp : ShapeOp<"broadcast_to"> {
  let summary = "x repeated along dimensions of size 1 and new leading ones to have `shape`";
  let description = [{
    - (C1) `shape` has at least x's rank, at most 8 dimensions, none negative, and less than 2^48 elements;
    - (C2) each size of x, counted from the last, is 1 or that of `shape`.
  }];
  let arguments = (ins Tensor:$x, Sizes:$shape);
  let infer = "inferBroadcastTo";
  let loopForm = "loopFormBroadcastTo";
  let reorder = "reorderPerDimension";
  let evaluate = "interp::broadcastTo";
  let isIdentity = "sameType";
  let gradient = [{
    return dy; // and summed
  }];
  let numpy = "np.broadcast_to(x, shape)";
  let example = "broadcast_to(tensor({1.0, 2, 3}), {2, 3})";
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
  let arguments = (ins Tensor:$x, Sizes:$starts, Sizes:$limits, Default<Ints, "{}">:$strides);
  let infer = "inferSlice";
  let loopForm = "loopFormSlice";
  let reorder = "reorderPerDimension";
  let evaluate = "interp::slice";
  let isIdentity = "isIdentitySlice";
  let gradient = [{
    return sliceGradient(dy, x, starts, strides);
  }];
  let numpy = "x[tuple(slice(s, None if l < -2**62 else l, t) for s, l, t in zip(starts, limits, strides or [1] * x.ndim))]";
  let example = "slice(tensor({{1.0, 2, 3}, {4, 5, 6}}), {0, 2}, {2, -4}, {1, -1})";
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
  let reorder = "reorderConcat";
  let decomposition = [{
    std::vector<Expr> parts;
    for (const Expr &part : inputs)
      parts.push_back(cast(part, resultType(0).dtype));
    return concat(parts, axis);
  }];
  let evaluate = "interp::concat";
  let isIdentity = "sameType";
  let gradient = [{
    Sizes sizes;
    for (const Expr &part : inputs)
      sizes.push_back(part.size(*normalizeAxis(axis, part.rank())));
    return split(dy, sizes, axis);
  }];
  let numpy = "np.concatenate(inputs, axis=axis)";
  let example = "concat({tensor({{1.0, 2}}), tensor({{3.0, 4}, {5, 6}})})";
}
def SplitOp : Composite<"split"> {
  let family = "Shape";
  let summary = "x cut along `axis` into pieces of the given sizes";
  let description = [{
    As many results as `sizes` has entries.
    - (C1) axis is in [-rank, rank);
    - (C2) sizes has an entry, none may be negative, and they certainly add up to the size of that dimension.
  }];
  let arguments = (ins Tensor:$x, Sizes:$sizes, Default<Int, "0">:$axis);
  let results = (outs Variadic<Tensor>:$parts);
  let infer = "inferSplit";
  let decomposition = [{
    Sizes starts(x.type().shape.size(), 0), limits = x.sizes();
    const auto d = static_cast<size_t>(axis < 0 ? axis + x.rank() : axis);
    std::vector<Expr> parts;
    limits[d] = 0;
    for (Size size : sizes) {
      starts[d] = limits[d];
      limits[d] += size;
      parts.push_back(slice(x, starts, limits));
    }
    return parts;
  }];
  let numpy = "np.split(x, np.cumsum(sizes)[:-1], axis=axis)";
  let example = "split(tensor({1.0, 2, 3}), {1, 2})";
}
def PadOp : ShapeOp<"pad"> {
  let summary = "x with `low` elements before and `high` after it, in every dimension, of `value` or by `mode`";
  let description = [{
    `mode` says what they are: "constant" is `value`, "edge" the nearest element, "reflect" the elements mirrored at the
    outermost ones, "symmetric" mirrored at the edge itself, "wrap" those of the other end.
    - (C1) low and high have one entry per dimension of x, none negative; the result has less than 2^48 elements;
    - (C2) mode is one of those above;
    - (C3) a dimension that is padded in another mode than "constant" is certainly not empty.
  }];
  let arguments = (ins Tensor:$x, Sizes:$low, Sizes:$high, Default<Float, "0.0">:$value,
                       Default<Str, "\"constant\"">:$mode);
  let infer = "inferPad";
  let loopForm = "loopFormPad";
  let reorder = "reorderPerDimension";
  let decomposition = [{
    Expr result = x; // for the modes without a loop form: looked up along one dimension after the other
    for (int d = 0; d < x.rank(); ++d) {
      const auto i = static_cast<size_t>(d);
      if (low[i] == 0 && high[i] == 0)
        continue;
      const Size n = x.size(d), last = n - 1, turns = mode == "reflect" ? last : n; // there and back
      auto number = [](Size v) { return Expr::number(v); };
      Expr at = iota({low[i] + n + high[i]}, 0, DType::i64) - number(low[i]);
      if (mode == "edge")
        at = clip(at, number(0), number(last));
      else if (mode == "wrap")
        at = remainder(at, number(n));
      else { // a single element is its own mirror image
        at = remainder(at, number(dim::max(1, turns * 2)));
        at = minimum(at, number(turns * 2 - (mode == "reflect" ? 0 : 1)) - at);
      }
      result = take(result, at, d);
    }
    return result;
  }];
  let evaluate = "interp::pad";
  let isIdentity = "sameType";
  let gradient = [{
    if (mode != "constant")
      throw NoGradient("padding by mode '" + mode + "'");
    Sizes limits = low;
    for (size_t i = 0; i < limits.size(); ++i)
      limits[i] += x.size(static_cast<int>(i));
    return slice(dy, low, limits);
  }];
  let numpy = "np.pad(x, list(zip(low, high)), mode, **({'constant_values': value} if mode == 'constant' else {})) if x.ndim else x";
  let samples = ["mode: constant | edge | reflect | symmetric | wrap"];
  let example = "pad(tensor({1.0, 2, 3}), {2}, {1}, 0, \"edge\")";
}

// --- Written in the above -------------------------------------------------------------------------------------------------------
class ShapeComposite<string mnemonic> : Composite<mnemonic> {
  let family = "Shape";
}
def FlipOp : ShapeComposite<"flip"> {
  let summary = "The elements in reverse order along the dimensions `axis`";
  let description = [{
    - (C1) every axis is in [-rank, rank), none twice.
  }];
  let arguments = (ins Tensor:$x, Maybe<Ints>:$axis);
  let infer = "inferFlip";
  let decomposition = [{
    const size_t rank = x.type().shape.size();
    Sizes starts(rank, 0), limits(rank, std::numeric_limits<int64_t>::max());
    Ints strides(rank, 1);
    const uint32_t mask = *normalizeAxes(axis, x.rank());
    for (size_t i = 0; i < rank; ++i)
      if (mask >> i & 1)
        starts[i] = -1, limits[i] = Size::kLeast, strides[i] = -1;
    return slice(x, starts, limits, strides);
  }];
  let numpy = "np.flip(x, axis)";
  let example = "flip(tensor({1.0, 2, 3}))";
}
def RollOp : ShapeComposite<"roll"> {
  let summary = "The elements moved by `shift` along the dimensions `axis`; what leaves at one end comes in at the other";
  let description = [{
    - (C1) every axis is in [-rank, rank), none twice;
    - (C2) shift has one entry per axis.
  }];
  let arguments = (ins Tensor:$x, Sizes:$shift, Ints:$axis);
  let infer = "inferRoll";
  let decomposition = [{
    Expr result = x;
    for (size_t i = 0; i < axis.size(); ++i) {
      const int d = *normalizeAxis(axis[i], x.rank());
      const Size n = x.size(d);
      if (!n.isNumber()) {
        result = take(result, remainder(iota({n}, 0, DType::i64) - remainder(Expr::number(shift[i]), Expr::number(n)), Expr::number(n)), d);
        continue;
      }
      const Size by = n == 0 ? n : dim::mod(shift[i], n);
      if (by == 0)
        continue;
      std::vector<Expr> parts = split(result, {n - by, by}, d);
      result = concat({parts[1], parts[0]}, d);
    }
    return result;
  }];
  let numpy = "np.roll(x, tuple(shift), tuple(axis))";
  let samples = ["x: n m | n m k", "shift: 1 | -2 | 1 -4 | 7", "axis: 0 | -1 | 0 1 | 1"];
  let example = "roll(tensor({1.0, 2, 3}), {1}, {0})";
}
def TileOp : ShapeComposite<"tile"> {
  let summary = "x repeated as a whole `repetitions[i]` times along dimension i";
  let description = [{
    As in NumPy, the shorter of shape and repetitions gets leading ones.
    - (C1) no repetition is negative, and the result has at most 8 dimensions and less than 2^48 elements.
  }];
  let arguments = (ins Tensor:$x, Sizes:$repetitions);
  let infer = "inferTile";
  let decomposition = [{
    Sizes shape = x.sizes(), times = repetitions;
    shape.insert(shape.begin(), std::max(times.size(), shape.size()) - shape.size(), 1);
    times.insert(times.begin(), shape.size() - times.size(), 1);
    Expr result = reshape(x, shape);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (times[i] == 1)
        continue;
      Size before = 1, after = 1;
      for (size_t j = 0; j < shape.size(); ++j)
        (j < i ? before : after) = (j < i ? before : after) * shape[j];
      shape[i] *= times[i];
      result = reshape(broadcast_to(reshape(result, {before, 1, after}), {before, times[i], after}), shape);
    }
    return result;
  }];
  let numpy = "np.tile(x, repetitions)";
  let example = "tile(tensor({{1.0, 2}}), {2, 2})";
}
def RepeatOp : ShapeComposite<"repeat"> {
  let summary = "Each element `repetitions` times, one after the other along `axis`; without `axis`, of the flattened x";
  let description = [{
    - (C1) axis is in [-rank, rank);
    - (C2) repetitions is not negative, and the result has less than 2^48 elements.
  }];
  let arguments = (ins Tensor:$x, Size:$repetitions, Maybe<Int>:$axis);
  let infer = "inferRepeat";
  let decomposition = [{
    if (!axis)
      return repeat(flatten(x, 0), repetitions, 0);
    Sizes shape = x.sizes();
    const auto d = static_cast<size_t>(*normalizeAxis(*axis, x.rank()));
    Size before = 1, after = 1;
    for (size_t j = 0; j < shape.size(); ++j)
      (j <= d ? before : after) = (j <= d ? before : after) * shape[j];
    shape[d] *= repetitions;
    return reshape(broadcast_to(reshape(x, {before, 1, after}), {before, repetitions, after}), shape);
  }];
  let numpy = "np.repeat(x, repetitions, axis)";
  let samples = ["repetitions: 0 | 1 | 2 | 3"];
  let example = "repeat(tensor({1.0, 2}), 2)";
}
def StackOp : ShapeComposite<"stack"> {
  let summary = "The operands, of one shape, one after the other along a new dimension `axis`";
  let description = [{
    - (C1) there is at least one operand, all have the same shape, of at most 7 dimensions;
    - (C2) axis is in [-rank - 1, rank].
  }];
  let arguments = (ins Variadic<Tensor>:$inputs, Default<Int, "0">:$axis);
  let infer = "inferStack";
  let decomposition = [{
    std::vector<Expr> parts;
    for (const Expr &part : inputs)
      parts.push_back(expand_dims(part, axis));
    return concat(parts, axis);
  }];
  let numpy = "np.stack(inputs, axis)";
  let example = "stack({tensor({1.0, 2}), tensor({3.0, 4})})";
}
def UnstackOp : ShapeComposite<"unstack"> {
  let summary = "The slices along `axis`, without that dimension";
  let description = [{
    - (C1) axis is in [-rank, rank);
    - (C2) the size of that dimension is static, not 0 and at most 65,536.
  }];
  let arguments = (ins Tensor:$x, Default<Int, "0">:$axis);
  let results = (outs Variadic<Tensor>:$parts);
  let infer = "inferUnstack";
  let decomposition = [{
    std::vector<Expr> parts;
    for (const Expr &part : split(x, Sizes(static_cast<size_t>(x.size(*normalizeAxis(axis, x.rank())).number()), 1), axis))
      parts.push_back(squeeze(part, {axis}));
    return parts;
  }];
  let numpy = "[np.squeeze(p, axis) for p in np.split(x, x.shape[axis], axis)]";
  let example = "unstack(tensor({{1.0, 2}, {3, 4}}))";
}
def MoveaxisOp : ShapeComposite<"moveaxis"> {
  let summary = "The dimensions `source` moved to the places `destination`; the others keep their order";
  let description = [{
    - (C1) source and destination have equally many entries in [-rank, rank), none twice.
  }];
  let arguments = (ins Tensor:$x, Ints:$source, Ints:$destination);
  let infer = "inferMoveaxis";
  let decomposition = [{
    Ints order(x.type().shape.size(), -1), rest;
    for (size_t i = 0; i < source.size(); ++i)
      order[static_cast<size_t>(*normalizeAxis(destination[i], x.rank()))] = *normalizeAxis(source[i], x.rank());
    const uint32_t moved = *normalizeAxes(&source, x.rank());
    int next = 0;
    for (int64_t &o : order) {
      if (o >= 0)
        continue;
      while (moved >> next & 1)
        ++next;
      o = next++;
    }
    return transpose(x, order);
  }];
  let numpy = "np.moveaxis(x, source, destination)";
  let samples = ["x: n m k", "source: 0 | 1 | 0 1 | -1", "destination: -1 | 2 | 1 2 | 0"];
  let example = "moveaxis(ones({2, 1, 3}), {0}, {-1})";
}
def SwapaxesOp : ShapeComposite<"swapaxes"> {
  let summary = "Two dimensions exchanged; the last two by default, which transposes matrices";
  let description = [{
    - (C1) both axes are in [-rank, rank).
  }];
  let arguments = (ins Tensor:$x, Default<Int, "-1">:$axis1, Default<Int, "-2">:$axis2);
  let infer = "inferSwapaxes";
  let decomposition = [{
    Ints order;
    for (int i = 0; i < x.rank(); ++i)
      order.push_back(i);
    std::swap(order[static_cast<size_t>(*normalizeAxis(axis1, x.rank()))],
              order[static_cast<size_t>(*normalizeAxis(axis2, x.rank()))]);
    return transpose(x, order);
  }];
  let numpy = "np.swapaxes(x, axis1, axis2)";
  let samples = ["x: n m k", "axis1: 0 | 1 | -1", "axis2: 2 | 0 | -2"];
  let example = "swapaxes(tensor({{1.0, 2}, {3, 4}}))";
}
def DiffOp : ShapeComposite<"diff"> {
  let summary = "The differences of neighbours along `axis`, taken `n` times; `prepend` and `append` extend x first";
  let description = [{
    - (C1) axis is in [-rank, rank);
    - (C2) n is in [0, 64];
    - (C3) x, prepend and append hold numbers, and have the same sizes but for `axis`.
  }];
  let arguments = (ins Tensor:$x, Optional<Tensor>:$prepend, Optional<Tensor>:$append, Default<Int, "-1">:$axis,
                       Default<Int, "1">:$n);
  let infer = "inferDiff";
  let compute = "Number";
  let decomposition = [{
    if (n == 0)
      return x;
    auto computed = [](const Expr &part) { return isFloat(part.dtype()) ? wide(part) : part; };
    std::vector<Expr> parts;
    for (const Expr &part : {prepend, x, append})
      if (part)
        parts.push_back(computed(part));
    DType type = x.dtype();
    for (const Expr &part : {prepend, append})
      type = part ? promote(type, part.dtype()) : type;
    Expr result = concat(parts, axis);
    const auto d = static_cast<size_t>(*normalizeAxis(axis, x.rank()));
    Sizes low(x.type().shape.size(), 0), all(low.size(), std::numeric_limits<int64_t>::max()), high = all;
    low[d] = 1, high[d] = -1;
    for (int64_t i = 0; i < n; ++i)
      result = slice(result, low, all) - slice(result, Sizes(low.size(), 0), high);
    return cast(result, type);
  }];
  let numpy = "np.diff(x, n, axis, **{k: v for k, v in (('prepend', prepend), ('append', append)) if v is not None})";
  let samples = ["x: a n", "prepend: a k | 1 k |", "append: a j |", "axis: 1 | -1", "n: 0 | 1 | 1 | 2"];
  let example = "diff(tensor({1.0, 4, 9}))";
}
def DiagonalOp : ShapeComposite<"diagonal"> {
  let summary = "The diagonal of the matrices in dimensions `axis1` and `axis2`, or one `offset` above it, as the last dimension";
  let description = [{
    - (C1) axis1 and axis2 are in [-rank, rank) and differ;
    - (C2) offset is in [-2^48, 2^48].
  }];
  let arguments = (ins Tensor:$x, Default<Int, "0">:$offset, Default<Int, "0">:$axis1, Default<Int, "1">:$axis2);
  let infer = "inferDiagonal";
  let decomposition = [{
    const int rows = *normalizeAxis(axis1, x.rank()), columns = *normalizeAxis(axis2, x.rank());
    Expr last = moveaxis(x, {rows, columns}, {-2, -1});
    const Size m = x.size(rows), n = x.size(columns);
    const int64_t right = std::max<int64_t>(offset, 0), down = right - offset;
    const Size count = dim::max(0, dim::min(m - down, n - right));
    Expr flat = flatten(last, x.rank() - 2); // one step along the diagonal is a row and an element
    if (!count.isNumber() || !n.isNumber()) {
      const Expr first = Expr::number(down * n) + Expr::number(right);
      return take(flat, first + iota({count}, 0, DType::i64) * Expr::number(n + 1), -1);
    }
    const Size start = count == 0 ? 0 : down * n + right;
    Sizes starts(flat.type().shape.size(), 0), limits(starts.size(), std::numeric_limits<int64_t>::max());
    Ints strides(starts.size(), 1);
    starts.back() = start, limits.back() = count == 0 ? 0 : start + (count - 1) * (n + 1) + 1, strides.back() = n.number() + 1;
    return slice(flat, starts, limits, strides);
  }];
  let numpy = "np.diagonal(x, offset, axis1, axis2)";
  let samples = ["x: n m | n m k", "offset: 0 | 1 | -1 | 3", "axis1: 0 | 1 | -1", "axis2: 1 | 2 | 0"];
  let example = "diagonal(tensor({{1.0, 2}, {3, 4}}))";
}
def TraceOp : ShapeComposite<"trace"> {
  let summary = "The sum of the diagonal of the matrices in dimensions `axis1` and `axis2`, or of one `offset` above it";
  let description = [{
    Bools and integers sum in i64.
    - (C1) axis1 and axis2 are in [-rank, rank) and differ;
    - (C2) offset is in [-2^48, 2^48].
  }];
  let arguments = (ins Tensor:$x, Default<Int, "0">:$offset, Default<Int, "0">:$axis1, Default<Int, "1">:$axis2);
  let infer = "inferDiagonal";
  let decomposition = [{ sum(diagonal(x, offset, axis1, axis2), {-1}) }];
  let numpy = "np.trace(x, offset, axis1, axis2)";
  let samples = ["x: n m | n m k", "offset: 0 | 1 | -1 | 3", "axis1: 0 | 1 | -1", "axis2: 1 | 2 | 0"];
  let example = "trace(tensor({{1.0, 2}, {3, 4}}))";
}
class Triangle<string mnemonic> : Elementwise<mnemonic> {
  let description = [{
    - (C1) x has at least 2 dimensions.
  }];
  let arguments = (ins Tensor:$x, Default<Int, "0">:$k);
  let infer = "inferTriangle";
}
def TrilOp : Triangle<"tril"> {
  let summary = "The matrices of the last two dimensions with zeros above the diagonal, or above the k-th one over it";
  let scalar = [{ select(cx.index(cx.rank() - 1) <= cx.index(cx.rank() - 2) + k, x, like(x, 0)) }];
  let numpy = "np.tril(x, k)";
  let samples = ["x: ... n m", "k: 0 | 1 | -1 | -2"];
  let example = "tril(ones({3, 3}))";
}
def TriuOp : Triangle<"triu"> {
  let summary = "The matrices of the last two dimensions with zeros below the diagonal, or below the k-th one over it";
  let scalar = [{ select(cx.index(cx.rank() - 1) >= cx.index(cx.rank() - 2) + k, x, like(x, 0)) }];
  let numpy = "np.triu(x, k)";
  let samples = ["x: ... n m", "k: 0 | 1 | -1 | -2"];
  let example = "triu(ones({3, 3}))";
}
def BroadcastArraysOp : ShapeComposite<"broadcast_arrays"> {
  let summary = "The operands, each repeated to the shape that all have together";
  let description = [{
    - (C1) there is at least one operand;
    - (C2) the shapes broadcast.
  }];
  let arguments = (ins Variadic<Tensor>:$inputs);
  let results = (outs Variadic<Tensor>:$arrays);
  let types = [{
    if (operands.empty())
      return fail(1, "there is no operand");
    Inferred list;
    std::optional<Shape> shape = operands[0].shape;
    for (const TensorType &t : operands)
      shape = shape ? broadcastShapes(*shape, t.shape) : shape;
    if (!shape)
      return fail(2, "shapes do not broadcast");
    for (const TensorType &t : operands)
      list.types.push_back({t.dtype, *shape});
    return list;
  }];
  let decomposition = [{
    std::vector<Expr> arrays;
    for (size_t i = 0; i < inputs.size(); ++i)
      arrays.push_back(broadcast_to(inputs[i], sizesOf(resultType(0).shape)));
    return arrays;
  }];
  let numpy = "np.broadcast_arrays(*inputs)";
  let example = "broadcast_arrays({tensor({1.0, 2}), tensor({{3.0}, {4}})})";
}
def MeshgridOp : ShapeComposite<"meshgrid"> {
  let summary = "For each vector a tensor over the grid that they span, which repeats it along the other dimensions";
  let description = [{
    With `indexing` "ij" dimension i is that of vector i; with "xy", as for images, the first two change places.
    - (C1) there are 1 to 8 operands, all vectors;
    - (C2) indexing is "xy" or "ij".
  }];
  let arguments = (ins Variadic<Tensor>:$inputs, Default<Str, "\"xy\"">:$indexing);
  let results = (outs Variadic<Tensor>:$grids);
  let infer = "inferMeshgrid";
  let decomposition = [{
    const size_t rank = inputs.size();
    auto place = [&](size_t i) { return indexing == "xy" && rank > 1 && i < 2 ? 1 - i : i; };
    Sizes shape(rank);
    for (size_t i = 0; i < rank; ++i)
      shape[place(i)] = inputs[i].size(0);
    std::vector<Expr> grids;
    for (size_t i = 0; i < rank; ++i) {
      Sizes own(rank, 1);
      own[place(i)] = inputs[i].size(0);
      grids.push_back(broadcast_to(reshape(inputs[i], own), shape));
    }
    return grids;
  }];
  let numpy = "np.meshgrid(*inputs, indexing=indexing)";
  let samples = ["indexing: xy | ij"];
  let example = "meshgrid({tensor({1.0, 2, 3}), tensor({4.0, 5})})";
}
