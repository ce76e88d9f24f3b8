// Contractions, convolutions and pooling.
include "ir/ops/Base.td"

def MatmulOp : Contraction<"matmul"> {
  let summary = "The matrix product over the last two dimensions; leading ones broadcast";
  let description = [{
    As in NumPy: a one-dimensional `a` is a row, a one-dimensional `b` a column, and that dimension is dropped from the result.
    - (C1) both have at least one dimension, and numbers as elements;
    - (C2) the last size of `a` equals the last but one of `b`;
    - (C3) the leading dimensions broadcast.

    f16 and bf16 accumulate in f32.
  }];
  let arguments = (ins Tensor:$a, Tensor:$b);
  let infer = "inferMatmul";
  let loopForm = "loopFormMatmul";
  let evaluate = "interp::matmul";
  let numpy = "np.matmul(a, b)";
  let example = "matmul(tensor({{1, 2}, {3, 4}}), tensor({{5, 6}, {7, 8}}))";
}
def ConvOp : Convolution<"conv"> {
  let summary = "Convolution without flipping, channels first: x [batch, channels, spatial...], w [features, channels / groups, window...]";
  let description = [{
    One to three spatial dimensions. Empty strides and dilations are 1, empty pads 0; `pad_low` and `pad_high` are zeros before and
    after each spatial dimension.
    - (C1) x and w have the same rank, 3 to 5, and float elements of one type;
    - (C2) strides, dilations (at least 1), pad_low and pad_high (at least 0) have one entry per spatial dimension, or none;
    - (C3) groups divides the channels and the features, and w's channels times groups are x's;
    - (C4) the window fits into the padded input.
  }];
  let arguments = (ins Tensor:$x, Tensor:$w, Default<Ints, "{}">:$strides, Default<Ints, "{}">:$pad_low,
                       Default<Ints, "{}">:$pad_high, Default<Ints, "{}">:$dilations, Default<Int, "1">:$groups);
  let infer = "inferConv";
  let loopForm = "loopFormConv";
  // For groups of several features, which are no single loop nest: each group is a convolution of its own.
  let decomposition = [{
    const TensorType xs = x.type(), ws = w.type();
    const int64_t channels = ws.shape[1], features = ws.shape[0] / groups;
    std::vector<Expr> parts;
    for (int64_t g = 0; g < groups; ++g) {
      Ints xStart(xs.shape.size(), 0), xLimit(xs.shape.begin(), xs.shape.end());
      Ints wStart(ws.shape.size(), 0), wLimit(ws.shape.begin(), ws.shape.end());
      xStart[1] = g * channels, xLimit[1] = (g + 1) * channels;
      wStart[0] = g * features, wLimit[0] = (g + 1) * features;
      parts.push_back(conv(slice(x, xStart, xLimit), slice(w, wStart, wLimit), strides, pad_low, pad_high, dilations, 1));
    }
    return concat(parts, 1);
  }];
  let evaluate = "interp::conv";
  let numpy = "conv(x, w, strides, pad_low, pad_high, dilations, groups)";
  let example = "conv(tensor({{{1, 2, 3, 4}}}), tensor({{{1, 0, -1}}}), {1}, {1}, {1})";
}
defvar poolRules = [{
    Channels first: x [batch, channels, spatial...], with one to three spatial dimensions. Empty strides are the window's sizes.
    - (C1) x has rank 3 to 5, and the window one entry, at least 1, per spatial dimension;
    - (C2) strides, dilations (at least 1), pad_low and pad_high (at least 0, less than the dilated window) have one entry per spatial dimension, or none;
    - (C3) the window fits into the padded input.
}];
def MaxPoolOp : Window<"max_pool", "Max"> {
  let summary = "The largest element of each window";
  let description = poolRules;
  let arguments = (ins Tensor:$x, Ints:$window, Default<Ints, "{}">:$strides, Default<Ints, "{}">:$pad_low,
                       Default<Ints, "{}">:$pad_high, Default<Ints, "{}">:$dilations);
  let infer = "inferPool";
  let loopForm = "loopFormMaxPool";
  let evaluate = "interp::maxPool";
  let numpy = "max_pool(x, window, strides, pad_low, pad_high, dilations)";
  let example = "max_pool(tensor({{{1, 5, 2, 3}}}), {2})";
}
def SumPoolOp : Window<"sum_pool", "Sum"> {
  let summary = "The sum of each window; padding is zeros";
  let description = !strconcat(poolRules, "    - (C4) the elements are floats.\n");
  let arguments = (ins Tensor:$x, Ints:$window, Default<Ints, "{}">:$strides, Default<Ints, "{}">:$pad_low,
                       Default<Ints, "{}">:$pad_high, Default<Ints, "{}">:$dilations);
  let infer = "inferPool";
  let compute = "Float";
  let loopForm = "loopFormSumPool";
  let evaluate = "interp::sumPool";
  let numpy = "sum_pool(x, window, strides, pad_low, pad_high, dilations)";
  let example = "sum_pool(tensor({{{1, 5, 2, 3}}}), {2}, {1})";
}
def AvgPoolOp : Composite<"avg_pool"> {
  let family = "Window";
  let summary = "The mean of each window; padding counts as zeros unless `count_include_pad` is false";
  let description = !strconcat(poolRules, "    - (C4) the elements are floats.\n");
  let arguments = (ins Tensor:$x, Ints:$window, Default<Ints, "{}">:$strides, Default<Ints, "{}">:$pad_low,
                       Default<Ints, "{}">:$pad_high, Default<Ints, "{}">:$dilations,
                       Default<Bool, "true">:$count_include_pad);
  let infer = "inferPool";
  let compute = "Float";
  let decomposition = [{
    Expr sums = sum_pool(wide(x), window, strides, pad_low, pad_high, dilations);
    bool padded = false;
    double count = 1;
    for (int64_t size : window)
      count *= static_cast<double>(size);
    for (const Ints *pads : {&pad_low, &pad_high})
      for (int64_t p : *pads)
        padded |= p != 0;
    if (count_include_pad || !padded)
      return cast(sums * (1 / count), resultType(0).dtype);
    Ints shape(x.type().shape.begin(), x.type().shape.end());
    shape[0] = shape[1] = 1;
    Expr counts = sum_pool(full(shape, 1, sums.dtype()), window, strides, pad_low, pad_high, dilations);
    return cast(sums / counts, resultType(0).dtype);
  }];
  let numpy = "avg_pool(x, window, strides, pad_low, pad_high, dilations, count_include_pad)";
  let example = "avg_pool(tensor({{{1, 5, 2, 3}}}), {2})";
}
