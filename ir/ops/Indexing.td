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
def ResizeOp : Composite<"resize"> {
  let family = "Indexing";
  let summary = "x with every dimension brought to the size of `sizes` by interpolation between neighbours";
  let description = [{
    `mode` is nearest, linear or cubic. `coordinates` says where an element of the result lies: half_pixel, half_pixel_symmetric,
    pytorch_half_pixel, align_corners or asymmetric; `nearest` how that is rounded: round_prefer_floor, round_prefer_ceil, floor or
    ceil. With `antialias` the filter of linear and cubic widens where a dimension shrinks; `cubic_a` is the cubic filter's parameter.
    All as in ONNX. What lies outside counts as the nearest element inside.
    - (C1) `sizes` has one entry per dimension of x, each at least 1, and x is not empty;
    - (C2) mode, coordinates and nearest are one of the names above, and nearest knows no antialias;
    - (C3) linear and cubic take floats; nearest takes any type.
  }];
  let arguments = (ins Tensor:$x, Ints:$sizes, Default<Str, "\"linear\"">:$mode, Default<Str, "\"half_pixel\"">:$coordinates,
                       Default<Str, "\"round_prefer_floor\"">:$nearest, Default<Float, "-0.75">:$cubic_a,
                       Default<Bool, "false">:$antialias);
  let types = [{
    bool fits = sizes.size() == static_cast<size_t>(x.rank());
    for (int i = 0; fits && i < x.rank(); ++i)
      fits = sizes[static_cast<size_t>(i)] >= 1 && x.shape[i] >= 1;
    if (!fits || !fitsMemory(Shape(sizes)))
      return fail(1, "sizes must have one entry per dimension, at least 1, and x elements");
    const Resample how{mode, coordinates, nearest, cubic_a, antialias};
    if (!how.isValid() || coordinates == "tf_crop_and_resize")
      return fail(2, "no such way to resize: mode '" + mode + "', coordinates '" + coordinates + "', nearest '" + nearest + "'");
    if (mode != "nearest" && !isFloat(x.dtype))
      return fail(3, "wants floats (cast them)");
    return result(TensorType{x.dtype, Shape(sizes)});
  }];
  let decomposition = [{
    const Resample how{mode, coordinates, nearest, cubic_a, antialias};
    Expr y = mode == "nearest" ? x : wide(x);
    for (int d = 0; d < x.rank(); ++d) {
      const int64_t in = x.size(d), out = sizes[static_cast<size_t>(d)];
      if (in != out)
        y = resample(y, d, resampleTaps(how, in, out, static_cast<double>(out) / static_cast<double>(in)));
    }
    return cast(y, resultType(0).dtype);
  }];
  let samples = ["x: n c h w | n c h | h w | h", "sizes: n c 2*h w+1 | n c 3 | 5 2 | 3 | 7 | n c 1 4",
                 "mode: nearest | linear | cubic", "antialias: 0 | 1",
                 "coordinates: half_pixel | half_pixel_symmetric | pytorch_half_pixel | align_corners | asymmetric",
                 "nearest: round_prefer_floor | round_prefer_ceil | floor | ceil", "cubic_a: -0.75 | -0.5"];
  let numpy = "resize(x, sizes, mode, coordinates, nearest, cubic_a, antialias)";
  let example = "resize(tensor({{{1, 2, 3}}}), {1, 1, 6})";
}
