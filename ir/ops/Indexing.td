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
  let reorder = "reorderTake";
  let evaluate = "interp::take";
  let gradient = [{
    return {scatter(zeros({dy.dtype(), x.type().shape}), indices, dy, axis, "add")};
  }];
  let numpy = "np.take(x, indices, axis=axis)";
  let domains = ["-2, 2", "0, 0"];
  let example = "take(tensor({{1.0, 2}, {3, 4}, {5, 6}}), tensor({2, 0, -1}, i64))";
}
def ResizeOp : Composite<"resize"> {
  let family = "Indexing";
  let summary = "x with every dimension brought to the size of `sizes` by interpolation between neighbours";
  let description = [{
    `mode` is nearest, linear or cubic. `coordinates` says where an element of the result lies: half_pixel, half_pixel_symmetric,
    pytorch_half_pixel, align_corners or asymmetric; `nearest` how that is rounded: round_prefer_floor, round_prefer_ceil, floor or
    ceil. With `antialias` the filter of linear and cubic widens where a dimension shrinks; `cubic_a` is the cubic filter's parameter.
    All as in ONNX. What lies outside counts as the nearest element inside.
    - (C1) `sizes` has one entry per dimension of x, each certainly at least 1, as are x's own;
    - (C2) mode, coordinates and nearest are one of the names above, and nearest knows no antialias;
    - (C3) linear and cubic take floats; nearest takes any type.
  }];
  let arguments = (ins Tensor:$x, Sizes:$sizes, Default<Str, "\"linear\"">:$mode, Default<Str, "\"half_pixel\"">:$coordinates,
                       Default<Str, "\"round_prefer_floor\"">:$nearest, Default<Float, "-0.75">:$cubic_a,
                       Default<Bool, "false">:$antialias);
  let types = [{
    bool fits = sizes.size() == static_cast<size_t>(x.rank());
    for (int i = 0; fits && i < x.rank(); ++i)
      fits = dim::bounds(sizes[static_cast<size_t>(i)]).lo >= 1 && dim::bounds(x.shape[i]).lo >= 1;
    if (!fits || !fitsMemory(Shape(sizes)))
      return fail(1, "sizes must have one entry per dimension, at least 1, and x elements");
    const Resample how{mode, coordinates, nearest, cubic_a, antialias};
    if (!how.isValid() || coordinates == "tf_crop_and_resize")
      return fail(2, "there is no resizing of mode '" + mode + "', coordinates '" + coordinates + "', nearest '" + nearest + "'");
    if (mode != "nearest" && !isFloat(x.dtype))
      return fail(3, "wants floats (cast them)");
    return result(TensorType{x.dtype, Shape(sizes)});
  }];
  let decomposition = [{
    const Resample how{mode, coordinates, nearest, cubic_a, antialias};
    Expr y = mode == "nearest" ? x : wide(x);
    for (int d = 0; d < x.rank(); ++d) {
      if (const Size size = sizes[static_cast<size_t>(d)]; x.size(d) != size)
        y = resample(y, d, how, size);
    }
    return cast(y, resultType(0).dtype);
  }];
  let samples = ["x: n c h w | n c h | h w | h", "sizes: n c 2*h w+1 | n c 3 | 5 2 | 3 | 7 | n c 1 4",
                 "mode: nearest | linear | cubic", "antialias: 0 | 1",
                 "coordinates: half_pixel | half_pixel_symmetric | pytorch_half_pixel | align_corners | asymmetric",
                 "nearest: round_prefer_floor | round_prefer_ceil | floor | ceil", "cubic_a: -0.75 | -0.5"];
  let numpy = "resize(x, sizes, mode, coordinates, nearest, cubic_a, antialias)";
  let example = "resize(tensor({{{1.0, 2, 3}}}), {1, 1, 6})";
}
def TakeAlongAxisOp : Indexing<"take_along_axis"> {
  let summary = "For each position the element of x that stands at `indices` along `axis`; negative indices count from the end";
  let description = [{
    The other dimensions of x and indices broadcast; the result has the size of indices along `axis`. With the result of
    `argsort` it sorts. An index outside the dimension fails when the op runs.
    - (C1) axis is in [-rank, rank);
    - (C2) `indices` are integers;
    - (C3) `indices` have x's rank, and the sizes besides `axis` broadcast.
  }];
  let arguments = (ins Tensor:$x, Tensor:$indices, Default<Int, "-1">:$axis);
  let infer = "inferTakeAlongAxis";
  let loopForm = "loopFormTakeAlongAxis";
  let evaluate = "interp::takeAlongAxis";
  let gradient = [{
    // The dimensions besides `axis` are those of the result, whose sum along broadcast ones follows.
    Sizes shape = y.sizes();
    const auto d = static_cast<size_t>(*normalizeAxis(axis, x.rank()));
    shape[d] = x.size(static_cast<int>(d));
    return {put_along_axis(zeros({dy.dtype(), Shape(shape)}), indices, dy, axis, "add")};
  }];
  let numpy = "np.take_along_axis(x, indices, axis)";
  let samples = ["x: a n", "indices: i64 a k | i32 1 k | u8 a k", "axis: 1 | -1"];
  let example = "take_along_axis(tensor({3.0, 1, 2}), argsort(tensor({3.0, 1, 2})))";
}

defvar writes = [{
    `mode` says what is done with the element that stands there: "set", "add", "mul", "min" or "max" ("add" and "mul" of
    bools are "or" and "and"). Several updates of one place are applied in their order, so of several that are set the last
    stays. The updates are converted to x's type. An index outside fails when the op runs.
}];
def PutAlongAxisOp : Indexing<"put_along_axis"> {
  let summary = "x with `values` at `indices` along `axis`: the counterpart of take_along_axis";
  let description = !strconcat(writes, [{
    - (C1) axis is in [-rank, rank);
    - (C2) `indices` are integers;
    - (C3) `indices` have x's rank, and their sizes besides `axis` broadcast to x's;
    - (C4) values broadcast to x's shape with the size of `indices` along `axis`;
    - (C5) mode is one of those above.
  }]);
  let arguments = (ins Tensor:$x, Tensor:$indices, Tensor:$values, Default<Int, "-1">:$axis,
                       Default<Str, "\"set\"">:$mode);
  let infer = "inferPutAlongAxis";
  let sharding = "shardingPutAlongAxis";
  let kernelForm = "kernelFormPutAlongAxis";
  let overwrites = 0;
  let decomposition = [{
    Sizes shape = x.sizes();
    const auto d = static_cast<size_t>(axis < 0 ? axis + x.rank() : axis);
    shape[d] = indices.size(static_cast<int>(d));
    return put_along_axis(x, broadcast_to(cast(indices, DType::i64), shape), broadcast_to(cast(values, x.dtype()), shape),
                          axis, mode);
  }];
  let evaluate = "interp::putAlongAxis";
  let gradient = [{
    if (mode == "add")
      return {dy, {}, take_along_axis(dy, broadcastIndices(indices, x, axis), axis)};
    if (mode != "set")
      throw NoGradient("writes of mode '" + mode + "'");
    // Of several updates of one place the last one stays: each knows its number, and so does the place.
    Expr at = broadcastIndices(indices, x, axis);
    const int d = *normalizeAxis(axis, x.rank());
    Expr number = iota(at.sizes(), d, DType::i64);
    Expr last = put_along_axis(full(x.sizes(), -1, DType::i64), at, number, axis, "set");
    Expr stays = equal(take_along_axis(last, at, axis), number), free = less(last, Expr::scalar(0, DType::i64));
    const Expr zero = Expr::scalar(0, dy.dtype());
    return {where(free, dy, zero), {}, where(stays, take_along_axis(dy, at, axis), zero)};
  }];
  let numpy = "put_along_axis(x, indices, values, axis, mode, dtypes['x'])";
  let samples = ["x: n b",
                 "indices: i64 k b | u8 k 1",
                 "values: k b | 1 b",
                 "axis: 0 | -2",
                 "mode: set | add | mul | min | max"];
  let example = "put_along_axis(zeros({2, 3}), tensor({{0}, {2}}, i64), 1.0f, 1)";
}
def GatherNdOp : Indexing<"gather_nd"> {
  let summary = "The slices of x whose leading indices are the rows of `indices`; negative indices count from the end";
  let description = [{
    `indices` [batch..., i..., depth] and x [batch..., dims..., slice...] with `depth` dims give [batch..., i..., slice...]: element
    by element if depth is x's rank. The first `batch_dims` dimensions are shared. An index outside fails when the op runs.
    - (C1) `indices` are integers;
    - (C2) batch_dims is in [0, rank of indices), and the sizes of the batch agree;
    - (C3) the last size of `indices` is in [1, rank of x - batch_dims];
    - (C4) the result has at most 8 dimensions.
  }];
  let arguments = (ins Tensor:$x, Tensor:$indices, Default<Int, "0">:$batch_dims);
  let infer = "inferGatherNd";
  let sharding = "shardingGatherNd";
  let kernelForm = "kernelFormGatherNd";
  let decomposition = [{ gather_nd(x, cast(indices, DType::i64), batch_dims) }];
  let evaluate = "interp::gatherNd";
  let gradient = [{
    if (batch_dims == 0)
      return {scatter_nd(zeros({dy.dtype(), x.type().shape}), indices, dy, "add")};
    // The batch's places as further indices.
    const int b = static_cast<int>(batch_dims), n = indices.rank();
    std::vector<Expr> places;
    Sizes shape = indices.sizes();
    shape.back() = 1;
    for (int i = 0; i < b; ++i)
      places.push_back(iota(shape, i, DType::i64));
    places.push_back(cast(indices, DType::i64));
    return {scatter_nd(zeros({dy.dtype(), x.type().shape}), concat(places, n - 1), dy, "add")};
  }];
  let numpy = "gather_nd(x, indices, batch_dims)";
  let samples = ["x: n m s", "indices: i64 k 1 | i32 k 2 | i64 n k 1", "batch_dims: 0 | 0 | 1"];
  let example = "gather_nd(tensor({{1.0, 2}, {3, 4}}), tensor({{0, 1}, {1, 1}}, i64))";
}
def ScatterNdOp : Indexing<"scatter_nd"> {
  let summary = "x with the slices of `updates` at the leading indices that the rows of `indices` name: the counterpart of gather_nd";
  let description = !strconcat(writes, [{
    `indices` [i..., depth] and x [dims..., slice...] with `depth` dims take updates [i..., slice...].
    - (C1) `indices` are integers;
    - (C2) the last size of `indices` is in [1, rank of x];
    - (C3) updates have that shape;
    - (C4) mode is one of those above.
  }]);
  let arguments = (ins Tensor:$x, Tensor:$indices, Tensor:$updates, Default<Str, "\"set\"">:$mode);
  let infer = "inferScatterNd";
  let sharding = "shardingScatterNd";
  let kernelForm = "kernelFormScatterNd";
  let overwrites = 0;
  let decomposition = [{ scatter_nd(x, cast(indices, DType::i64), cast(updates, x.dtype()), mode) }];
  let evaluate = "interp::scatterNd";
  let gradient = [{
    if (mode == "add")
      return {dy, {}, gather_nd(dy, indices)};
    if (mode != "set")
      throw NoGradient("writes of mode '" + mode + "'");
    // Of several updates of one place the last one stays: each knows its number, and so does the place.
    Sizes rows = indices.sizes();
    rows.pop_back();
    Size count = 1;
    for (Size size : rows)
      count = count * size;
    Sizes places(x.type().shape.begin(), x.type().shape.begin() + static_cast<int>(indices.size(indices.rank() - 1).number()));
    Expr number = reshape(iota({count}, 0, DType::i64), rows);
    Expr last = scatter_nd(full(places, -1, DType::i64), indices, number, "set");
    Expr stays = equal(gather_nd(last, indices), number), free = less(last, Expr::scalar(0, DType::i64));
    auto along = [](const Expr &mask, int rank) {
      Sizes shape = mask.sizes();
      shape.resize(static_cast<size_t>(rank), 1);
      return reshape(mask, shape);
    };
    const Expr zero = Expr::scalar(0, dy.dtype());
    return {where(along(free, dy.rank()), dy, zero), {}, where(along(stays, updates.rank()), gather_nd(dy, indices), zero)};
  }];
  let numpy = "scatter_nd(x, indices, updates, mode, dtypes['x'])";
  let samples = ["x: n m s",
                 "indices: i64 k 1 | i64 k 2 | i32 k 2",
                 "updates: k m s | k s",
                 "mode: set | add | mul | min | max"];
  let example = "scatter_nd(zeros({4}), tensor({{1}, {3}}, i64), tensor({5.0, 6}))";
}
def ScatterOp : Indexing<"scatter"> {
  let summary = "x with `updates` in the slices along `axis` that `indices` names: the counterpart of take";
  let description = !strconcat(writes, [{
    - (C1) axis is in [-rank, rank);
    - (C2) `indices` are integers;
    - (C3) updates have x's shape with the dimension `axis` replaced by the shape of `indices`, at most 8 dimensions;
    - (C4) mode is one of those above.
  }]);
  let arguments = (ins Tensor:$x, Tensor:$indices, Tensor:$updates, Default<Int, "0">:$axis,
                       Default<Str, "\"set\"">:$mode);
  let infer = "inferScatter";
  let decomposition = [{
    const int d = static_cast<int>(axis < 0 ? axis + x.rank() : axis), n = indices.type().rank();
    Ints toFront, toPlace, slices; // the axis first, and the dimensions of the indices before all others of the updates
    toFront.push_back(d);
    for (int i = 0; i < x.rank(); ++i)
      if (i != d)
        toFront.push_back(i);
    for (int i = 0; i < x.rank(); ++i)
      toPlace.push_back(i == d ? 0 : i < d ? i + 1 : i);
    for (int i = 0; i < n; ++i)
      slices.push_back(d + i);
    for (int i = 0; i < updates.rank(); ++i)
      if (i < d || i >= d + n)
        slices.push_back(i);
    return transpose(scatter_nd(transpose(x, toFront), expand_dims(indices, -1), transpose(updates, slices), mode), toPlace);
  }];
  let evaluate = "interp::scatter";
  let numpy = "scatter(x, indices, updates, axis, mode, dtypes['x'])";
  let samples = ["x: n m",
                 "indices: i64 k | i32 j k | i64 scalar",
                 "updates: k m | n k | j k m | n | m",
                 "axis: 0 | 1 | -1",
                 "mode: set | add | mul | min | max"];
  let example = "scatter(zeros({3, 2}), tensor({2, 2}, i64), ones({2, 2}), 0, \"add\")";
}
def DynamicSliceOp : Indexing<"dynamic_slice"> {
  let summary = "The window of the given sizes that begins at `starts`, which is moved inside where it reaches out";
  let description = [{
    - (C1) starts is a vector of integers, one per dimension of x, which has at least one;
    - (C2) sizes has one entry per dimension, none negative or larger than x's.
  }];
  let arguments = (ins Tensor:$x, Tensor:$starts, Sizes:$sizes);
  let infer = "inferDynamicSlice";
  let sharding = "shardingOfWindow";
  let kernelForm = "kernelFormDynamicSlice";
  let decomposition = [{ dynamic_slice(x, cast(starts, DType::i64), sizes) }];
  let evaluate = "interp::dynamicSlice";
  let gradient = [{
    return {dynamic_update_slice(zeros({dy.dtype(), x.type().shape}), dy, starts)};
  }];
  let numpy = "x[tuple(slice(b, b + n) for b, n in zip(np.clip(starts, 0, np.subtract(x.shape, sizes)).astype(int), sizes))]";
  let domains = ["-2, 2", "-2, 4"];
  let samples = ["x: n m | n m k", "starts: i64 2 | i32 2 | i64 3", "sizes: 1 2 | 2 1 | 0 1 | 1 1 2 | 2 1 1"];
  let example = "dynamic_slice(tensor({{1.0, 2, 3}, {4, 5, 6}}), tensor({0, 1}, i64), {2, 2})";
}
def DynamicUpdateSliceOp : Indexing<"dynamic_update_slice"> {
  let summary = "x with `update` in the window that begins at `starts`, which is moved inside where it reaches out";
  let description = [{
    Done in place where nobody needs x any more. `update` is converted to x's type.
    - (C1) starts is a vector of integers, one per dimension of x, which has at least one;
    - (C2) update has x's rank and is not larger in any dimension.
  }];
  let arguments = (ins Tensor:$x, Tensor:$update, Tensor:$starts);
  let infer = "inferDynamicUpdateSlice";
  let sharding = "shardingOfWindow";
  let kernelForm = "kernelFormDynamicUpdateSlice";
  let overwrites = 0;
  let decomposition = [{ dynamic_update_slice(x, cast(update, x.dtype()), cast(starts, DType::i64)) }];
  let evaluate = "interp::dynamicUpdateSlice";
  let gradient = [{
    return {dynamic_update_slice(dy, zeros(update.type()), starts), dynamic_slice(dy, starts, update.sizes())};
  }];
  let numpy = "dynamic_update_slice(x, update, starts)";
  let domains = ["-2, 2", "-2, 2", "-2, 4"];
  let samples = ["x: n m | n m k", "update: 1 m | n 1 | 1 1 | 1 m 1 | n 1 k", "starts: i64 2 | i32 2 | i64 3"];
  let example = "dynamic_update_slice(zeros({2, 3}), ones({1, 2}), tensor({1, 1}, i64))";
}
