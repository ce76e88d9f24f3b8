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
  let gradient = [{
    // Vectors as matrices.
    const bool row = a.rank() == 1, column = b.rank() == 1;
    Expr left = row ? expand_dims(a, 0) : a, right = column ? expand_dims(b, 1) : b, g = dy;
    if (column)
      g = expand_dims(g, -1);
    if (row)
      g = expand_dims(g, -2);
    Expr da = matmul(g, transposed(right)), db;
    if (right.rank() == 2 && left.rank() > 2) { // one product over all rows instead of a sum of products
      db = matmul(transposed(reshape(left, {-1, left.size(left.rank() - 1)})), reshape(g, {-1, g.size(g.rank() - 1)}));
    } else {
      db = matmul(transposed(left), g);
    }
    return {row ? squeeze(sumLike(da, {da.dtype(), left.type().shape}), {0}) : da,
            column ? squeeze(sumLike(db, {db.dtype(), right.type().shape}), {-1}) : db};
  }];
  let numpy = "np.matmul(a, b)";
  let example = "matmul(tensor({{1.0, 2}, {3, 4}}), tensor({{5.0, 6}, {7, 8}}))";
}
def EinsumOp : Composite<"einsum"> {
  let family = "Contraction";
  let summary = "Einstein's summation: products of elements whose labels agree, summed over the labels that the result lacks";
  let description = [{
    As in NumPy: `"bij,bjk->bik"` is a batched matrix product, `"ii"` a trace, `"ij->ji"` a transpose. `...` stands for any further
    dimensions, which broadcast. Without an arrow the result has `...` and the labels that stand once, in alphabetical order.
    - (C1) the operands hold numbers;
    - (C2) the equation is well-formed, with one term per operand and one letter per dimension; the result's labels
      stand in the operands, none twice;
    - (C3) dimensions of one label have one size; the result has at most 8 dimensions.
  }];
  let arguments = (ins Variadic<Tensor>:$inputs, Str:$equation);
  let types = [{
    std::string why;
    DType type = operands.empty() ? DType::f32 : operands[0].dtype;
    for (const TensorType &t : operands)
      type = promote(type, t.dtype);
    if (operands.empty())
      return fail(2, "there is no operand");
    if (type == DType::boolean)
      return fail(1, "wants numbers, not bools (cast them)");
    const auto einsum = Einsum::parse(equation, operands, why);
    if (!einsum)
      return fail(2, why);
    const auto shape = einsum->shape(operands);
    if (!shape)
      return fail(3, "sizes of equal labels differ, or the result has too many dimensions");
    return result(TensorType{type, *shape});
  }];
  let decomposition = [{
    std::vector<TensorType> types;
    std::vector<Expr> operands;
    for (const Expr &e : inputs) {
      types.push_back(e.type());
      operands.push_back(cast(e, accumulatorType(resultType(0).dtype)));
    }
    std::string why;
    return cast(einsumOf(*Einsum::parse(equation, types, why), operands), resultType(0).dtype);
  }];
  let samples = ["equation: ij,jk->ik | bij,bjk->bik | ij->ji | ii | ii->i | i,j->ij | ij,ij-> | ...ij,...jk->...ik | bhqd,bhkd->bhqk | ij,jk,kl->il | abc,cd->abd | ij->j | iij,jk | ...i->..."];
  let numpy = "np.einsum(equation, *inputs)";
  let example = "einsum({tensor({{1.0, 2}, {3, 4}}), tensor({{5.0, 6}, {7, 8}})}, \"ij,kj->ik\")";
}
def OuterOp : Composite<"outer"> {
  let family = "Contraction";
  let summary = "The products of all elements of the vector a, the rows, with all of b, the columns";
  let description = [{
    - (C1) both are vectors;
    - (C2) they hold numbers.
  }];
  let arguments = (ins Tensor:$a, Tensor:$b);
  let types = [{
    if (a.rank() != 1 || b.rank() != 1)
      return fail(1, "both must be vectors");
    const DType type = promote(a.dtype, b.dtype);
    if (type == DType::boolean)
      return fail(2, "wants numbers, not bools (cast them)");
    return result(TensorType{type, {a.shape[0], b.shape[0]}});
  }];
  let decomposition = [{ expand_dims(a, 1) * expand_dims(b, 0) }];
  let samples = ["a: n", "b: m"];
  let numpy = "np.outer(a, b)";
  let example = "outer(tensor({1.0, 2}), tensor({1.0, 10, 100}))";
}
def TensordotOp : Composite<"tensordot"> {
  let family = "Contraction";
  let summary = "The products of a and b, summed over the dimensions `axes_a` of a, each together with that of `axes_b` of b";
  let description = [{
    The result has the other dimensions of a, then those of b.
    - (C1) both hold numbers;
    - (C2) axes_a and axes_b have equally many entries, in [-rank, rank), none twice;
    - (C3) dimensions summed together have one size; the result has at most 8 dimensions.
  }];
  let arguments = (ins Tensor:$a, Tensor:$b, Ints:$axes_a, Ints:$axes_b);
  let types = [{
    const DType type = promote(a.dtype, b.dtype);
    if (type == DType::boolean)
      return fail(1, "wants numbers, not bools (cast them)");
    const auto left = normalizeAxes(&axes_a, a.rank()), right = normalizeAxes(&axes_b, b.rank());
    if (!left || !right || axes_a.size() != axes_b.size())
      return fail(2, "axes_a and axes_b must have equally many dimensions, none twice");
    bool fits = a.rank() + b.rank() - 2 * static_cast<int>(axes_a.size()) <= kMaxRank;
    for (size_t i = 0; i < axes_a.size(); ++i)
      fits = fits && dim::equal(a.shape[*normalizeAxis(axes_a[i], a.rank())], b.shape[*normalizeAxis(axes_b[i], b.rank())]);
    if (!fits)
      return fail(3, "sizes of dimensions summed together differ, or the result has too many dimensions");
    TensorType type_{type, {}};
    for (int i = 0; i < a.rank(); ++i)
      if (!(*left >> i & 1))
        type_.shape.push_back(a.shape[i]);
    for (int i = 0; i < b.rank(); ++i)
      if (!(*right >> i & 1))
        type_.shape.push_back(b.shape[i]);
    return result(type_);
  }];
  let decomposition = [{
    // As matrices: what is summed last in a, first in b.
    auto matrix = [](const Expr &x, const Ints &axes, bool summedLast) {
      Ints order;
      const uint32_t summed = *normalizeAxes(&axes, x.rank());
      for (int i = 0; i < x.rank(); ++i)
        if (!(summed >> i & 1))
          order.push_back(i);
      const auto at = summedLast ? order.end() : order.begin();
      Ints list;
      for (int64_t axis : axes)
        list.push_back(*normalizeAxis(axis, x.rank()));
      order.insert(at, list.begin(), list.end());
      Size kept = 1, joined = 1;
      for (int i = 0; i < x.rank(); ++i)
        (summed >> i & 1 ? joined : kept) = (summed >> i & 1 ? joined : kept) * x.size(i);
      return reshape(transpose(x, order), summedLast ? Sizes{kept, joined} : Sizes{joined, kept});
    };
    return reshape(matmul(matrix(a, axes_a, true), matrix(b, axes_b, false)),
                   sizesOf(resultType(0).shape));
  }];
  let samples = ["a: n m k", "b: k m j | m k", "axes_a: 2 1 | -1 | 1 |", "axes_b: 0 1 | 0 | 1 | 1 0 |"];
  let numpy = "np.tensordot(a, b, (axes_a, axes_b))";
  let example = "tensordot(tensor({{1.0, 2}, {3, 4}}), tensor({{1.0, 0}, {0, 1}}), {0, 1}, {1, 0})";
}
def VecdotOp : Composite<"vecdot"> {
  let family = "Contraction";
  let summary = "The sum of the products of a and b along `axis`; the other dimensions broadcast";
  let description = [{
    f16 and bf16 accumulate in f32. `axis` counts from the end, as the operands' dimensions are matched there.
    - (C1) both hold numbers;
    - (C2) axis is in [-r, -1], r being the smaller rank;
    - (C3) the shapes broadcast, and along `axis` both have one size.
  }];
  let arguments = (ins Tensor:$a, Tensor:$b, Default<Int, "-1">:$axis);
  let types = [{
    const DType type = promote(a.dtype, b.dtype);
    if (type == DType::boolean)
      return fail(1, "wants numbers, not bools (cast them)");
    if (axis >= 0 || axis < -std::min(a.rank(), b.rank()))
      return fail(2, "axis must be negative, and a dimension of both");
    const auto shape = broadcastShapes(a.shape, b.shape);
    if (!shape || !dim::equal(a.shape[a.rank() + static_cast<int>(axis)], b.shape[b.rank() + static_cast<int>(axis)]))
      return fail(3, "shapes do not broadcast, or differ along axis");
    TensorType y{type, {}};
    for (int i = 0; i < shape->rank(); ++i)
      if (i != shape->rank() + axis)
        y.shape.push_back((*shape)[i]);
    return result(y);
  }];
  let decomposition = [{
    const DType type = resultType(0).dtype;
    auto computed = [&](const Expr &e) { return isFloat(type) ? wide(cast(e, type)) : cast(e, type); };
    return cast(sum(computed(a) * computed(b), {axis}), type);
  }];
  let samples = ["a: ... n m | n m | m", "b: ... n m | m", "axis: -1 | -1 | -2"];
  let numpy = "np.sum(a * b, axis=axis)";
  let example = "vecdot(tensor({{1.0, 2}, {3, 4}}), tensor({1.0, 10}))";
}
def CrossOp : Composite<"cross"> {
  let family = "Contraction";
  let summary = "The cross product of the vectors of three elements along `axis`; the other dimensions broadcast";
  let description = [{
    - (C1) both hold numbers;
    - (C2) axis is in [-r, -1], r being the smaller rank;
    - (C3) the shapes broadcast, and both have size 3 along `axis`.
  }];
  let arguments = (ins Tensor:$a, Tensor:$b, Default<Int, "-1">:$axis);
  let types = [{
    const DType type = promote(a.dtype, b.dtype);
    if (type == DType::boolean)
      return fail(1, "wants numbers, not bools (cast them)");
    if (axis >= 0 || axis < -std::min(a.rank(), b.rank()))
      return fail(2, "axis must be negative, and a dimension of both");
    const auto shape = broadcastShapes(a.shape, b.shape);
    if (!shape || a.shape[a.rank() + static_cast<int>(axis)] != 3 || b.shape[b.rank() + static_cast<int>(axis)] != 3)
      return fail(3, "shapes do not broadcast, or have another size than 3 along axis");
    return result(TensorType{type, *shape});
  }];
  let decomposition = [{
    const DType type = resultType(0).dtype;
    auto turned = [&](const Expr &e, int64_t by) { return roll(isFloat(type) ? wide(cast(e, type)) : cast(e, type), {by}, {axis}); };
    return cast(turned(a, -1) * turned(b, -2) - turned(a, -2) * turned(b, -1), type);
  }];
  let samples = ["a: ... 3 | 3 n", "b: ... 3 | 3 | 3 n", "axis: -1 | -2"];
  let numpy = "np.cross(*np.broadcast_arrays(a, b), axis=axis)";
  let example = "cross(tensor({1.0, 0, 0}), tensor({0.0, 1, 0}))";
}
def ConvOp : Convolution<"conv"> {
  let summary = "Convolution without flipping: x [batch, channels, spatial...], w [features, channels / groups, window...]";
  let description = [{
    With `channels_last` x and the result are [batch, spatial..., channels]; w stays. One to three spatial dimensions. Empty strides and dilations are 1, empty pads 0; `pad_low` and `pad_high` are zeros before and
    after each spatial dimension.
    - (C1) x and w have the same rank, 3 to 5, and float elements of one type; w's sizes are numbers;
    - (C2) strides, dilations (at least 1), pad_low and pad_high (at least 0) have one entry per spatial dimension, or none;
    - (C3) groups divides the channels and the features, and w's channels times groups are x's;
    - (C4) the window fits into the padded input.
  }];
  let arguments = (ins Tensor:$x, Tensor:$w, Default<Ints, "{}">:$strides, Default<Ints, "{}">:$pad_low,
                       Default<Ints, "{}">:$pad_high, Default<Ints, "{}">:$dilations, Default<Int, "1">:$groups,
                       Default<Bool, "false">:$channels_last);
  let infer = "inferConv";
  let loopForm = "loopFormConv";
  // For groups of several features, which are no single loop nest: each group is a convolution of its own.
  let decomposition = [{
    const TensorType xs = x.type(), ws = w.type();
    const int64_t channels = ws.shape.extent(1), features = ws.shape.extent(0) / groups;
    const size_t at = channels_last ? xs.shape.size() - 1 : 1;
    std::vector<Expr> parts;
    for (int64_t g = 0; g < groups; ++g) {
      Sizes xStart(xs.shape.size(), 0), xLimit = sizesOf(xs.shape);
      Sizes wStart(ws.shape.size(), 0), wLimit = sizesOf(ws.shape);
      xStart[at] = g * channels, xLimit[at] = (g + 1) * channels;
      wStart[0] = g * features, wLimit[0] = (g + 1) * features;
      parts.push_back(conv(slice(x, xStart, xLimit), slice(w, wStart, wLimit), strides, pad_low, pad_high, dilations, 1,
                           channels_last));
    }
    return concat(parts, static_cast<int64_t>(at));
  }];
  let evaluate = "interp::conv";
  let gradient = [{ return convGradient(dy, x, w, strides, pad_low, pad_high, dilations, groups, channels_last); }];
  let numpy = "conv(x, w, strides, pad_low, pad_high, dilations, groups, channels_last)";
  let example = "conv(tensor({{{1.0, 2, 3, 4}}}), tensor({{{1.0, 0, -1}}}), {1}, {1}, {1})";
}
def ConvByWeightsOp : TableOp<"conv_by_weights", "ConvolutionByWeights"> {
  let summary = "The derivative of conv by its weights: for each tap of the window, what it saw in x times `given`, summed";
  let description = [{
    x [batch, channels, spatial...], given [batch, features, places...], the cotangents of conv's result; the result is
    [features, channels / groups, window...]. Empty strides and dilations are 1, empty pads 0.
    - (C1) x and `given` have the same rank, 3 to 5, float elements of one type, and the same batch;
    - (C2) window, strides, dilations (at least 1), pad_low and pad_high (at least 0) have one entry per spatial dimension, or, but for
      the window, none;
    - (C3) groups divides the channels and the features, which are numbers;
    - (C4) `given` has as many places as the window has in the padded x.
  }];
  let combine = "Sum";
  let compute = "Float";
  let arguments = (ins Tensor:$x, Tensor:$given, Ints:$window, Default<Ints, "{}">:$strides, Default<Ints, "{}">:$pad_low,
                       Default<Ints, "{}">:$pad_high, Default<Ints, "{}">:$dilations, Default<Int, "1">:$groups);
  let sharding = "shardingOfConv";
  let infer = "inferConvByWeights";
  let loopForm = "loopFormConvByWeights";
  // For groups of several features, which are no single loop nest.
  let decomposition = [{
    const Size channels = x.size(1) / groups, features = given.size(1) / groups;
    std::vector<Expr> parts;
    for (int64_t g = 0; g < groups; ++g) {
      auto part = [&](const Expr &all, Size count) {
        Sizes start(all.type().shape.size(), 0), limit = all.sizes();
        start[1] = count * g, limit[1] = count * (g + 1);
        return slice(all, start, limit);
      };
      parts.push_back(conv_by_weights(part(x, channels), part(given, features), window, strides, pad_low, pad_high, dilations, 1));
    }
    return concat(parts, 0);
  }];
  let evaluate = "interp::convByWeights";
  let gradient = [{ return convByWeightsGradient(dy, x, given, window, strides, pad_low, pad_high, dilations, groups); }];
  let samples = ["x: n g*c h+4 | n g*c h+4 w+4 | n g*c 5 | n g*c 4 5 4", "given: n g*f h+2 | n g*f h+4 w+3 | n g*f 2 | n g*f 3 3 2",
                 "window: 3 | 3 2 | 2 | 2 3 3", "strides: | 1 1 | 3 | 1 1 1", "pad_low: | 1 0 | 0 |", "pad_high: | 1 0 | 1 |",
                 "dilations: | | 2 |", "groups: g"];
  let numpy = "conv_by_weights(x, given, window, strides, pad_low, pad_high, dilations, groups)";
  let example = "conv_by_weights(tensor({{{1.0, 2, 3, 4}}}), tensor({{{1.0, 0, -1}}}), {2})";
}
def ConvTransposeOp : TableOp<"conv_transpose", "ConvolutionByData"> {
  let summary = "The transpose of conv: each element of x, times the window, is added to the result, `strides` apart";
  let description = [{
    x [batch, channels, spatial...], w [channels, features / groups, window...]. With `channels_last` x and the result are
    [batch, spatial..., channels]; w stays. It is what the gradient of conv by its data takes. A spatial size of the result is
    (size - 1) * stride + (window - 1) * dilation + 1 - pad_low - pad_high + output_padding. Empty strides and dilations are 1,
    empty pads 0.
    - (C1) x and w have the same rank, 3 to 5, and float elements of one type; w's sizes are numbers;
    - (C2) strides, dilations (at least 1), pad_low, pad_high and output_padding (at least 0) have one entry per spatial
      dimension, or none;
    - (C3) groups divides the channels, which are w's first size;
    - (C4) sizes of the result are at least 1.
  }];
  let arguments = (ins Tensor:$x, Tensor:$w, Default<Ints, "{}">:$strides, Default<Ints, "{}">:$pad_low,
                       Default<Ints, "{}">:$pad_high, Default<Ints, "{}">:$output_padding, Default<Ints, "{}">:$dilations,
                       Default<Int, "1">:$groups, Default<Bool, "false">:$channels_last);
  let flops = "flopsOfDecomposition";
  let reorder = "reorderImage";
  let sharding = "shardingOfConvByData";
  let infer = "inferConvTranspose";
  // Elements of the result that are a stride apart see the same part of the window: for stride s, s convolutions with every s-th
  // element of the (turned) window, computed as one with s times the features, whose results are then interleaved.
  let decomposition = [{
    if (channels_last)
      return moveaxis(conv_transpose(moveaxis(x, {-1}, {1}), w, strides, pad_low, pad_high, output_padding, dilations, groups), {1}, {-1});
    const int spatial = x.rank() - 2;
    const WindowSpec window = *windowSpec(spatial, numbersOf({w.type().shape.begin() + 2, w.type().shape.end()}), strides, pad_low,
                                          pad_high, dilations, false);
    const int64_t channels = w.size(0).number() / groups;
    Expr kernel = w;
    if (groups > 1) { // the features of each group first: [groups * features, channels, window...]
      Sizes shape = w.sizes();
      shape[0] = groups;
      shape.insert(shape.begin() + 1, channels);
      Ints order(shape.size());
      std::iota(order.begin(), order.end(), 0);
      std::swap(order[1], order[2]);
      kernel = transpose(reshape(w, shape), order);
      shape = kernel.sizes();
      shape[0] *= shape[1];
      shape.erase(shape.begin() + 1);
      kernel = reshape(kernel, shape);
    }
    // Gaps and zeros for whole steps come first. Then one movement turns the window around in steps of the strides, and lets the
    // remainders join the features: [features * strides..., channels, counts...].
    const int features = groups > 1 ? 0 : 1; // where the kernel has them
    Sizes split{kernel.size(0), kernel.size(1)}, from(2, 0), to = split, joined{kernel.size(features), kernel.size(1 - features)};
    Ints by(2, 1), order{features}, rest{1 - features};
    auto floorDiv = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); };
    Ints padsLow, padsHigh; // of the convolution
    Ints cut; // elements of what it makes, ahead of the result
    for (int i = 0; i < spatial; ++i) {
      const int64_t stride = window.stride[i], dilation = window.dilation[i], count = (window.extent(i) + stride - 1) / stride;
      // With zeros ahead of the window, the result begins where steps do; only where these take no step more.
      const int64_t needed = (stride - window.low[i] % stride) % stride, ahead = window.extent(i) + needed <= count * stride ? needed : 0;
      const auto dim = static_cast<size_t>(i) + 2;
      if (dilation > 1) { // the window with its gaps
        Sizes apart = kernel.sizes(), low(apart.size() + 1, 0), high = low, together = apart;
        apart.insert(apart.begin() + i + 3, 1);
        high[dim + 1] = dilation - 1;
        together[dim] *= dilation;
        kernel = reshape(pad(reshape(kernel, apart), low, high), together);
      }
      Sizes limits = kernel.sizes(), low(limits.size(), 0), high = low;
      limits[dim] = window.extent(i);
      kernel = slice(kernel, low, limits);
      low[dim] = ahead;
      high[dim] = count * stride - window.extent(i) - ahead;
      kernel = pad(kernel, low, high);
      rest.push_back(static_cast<int64_t>(split.size()));
      split.push_back(count), joined.push_back(count), from.push_back(count - 1), to.push_back(Size::kLeast), by.push_back(-1);
      if (stride > 1) {
        order.push_back(static_cast<int64_t>(split.size()));
        split.push_back(stride), from.push_back(0), to.push_back(stride), by.push_back(1);
        joined[0] *= stride;
      }
      // Steps that lie ahead of the result or behind it are not computed, as far as less padding leaves them out.
      const int64_t first = window.low[i] + ahead, most = count - 1,
                    extra = output_padding.empty() ? 0 : output_padding[static_cast<size_t>(i)],
                    last = floorDiv(window.extent(i) + ahead - 1 - window.high[i] + extra, stride);
      const int64_t skipped = std::min(first / stride, most), left = std::clamp<int64_t>(most - last, 0, most);
      padsLow.push_back(most - skipped);
      padsHigh.push_back(most - left);
      cut.push_back(first - skipped * stride);
    }
    order.insert(order.end(), rest.begin(), rest.end());
    kernel = reshape(transpose(slice(reshape(kernel, split), from, to, by), order), joined);
    Expr y = conv(x, kernel, {}, padsLow, padsHigh, {}, groups); // [batch, features * strides..., spatial...]
    for (int i = spatial - 1; i >= 0; --i) { // the last stride is the innermost
      const int64_t stride = window.stride[i];
      if (stride == 1)
        continue;
      const int at = i + 2;
      Sizes split = y.sizes();
      split[1] = dim::floorDiv(split[1], stride);
      split.insert(split.begin() + 2, stride);
      Ints order(split.size());
      Sizes joined = y.sizes();
      std::iota(order.begin(), order.end(), 0);
      order.erase(order.begin() + 2);
      order.insert(order.begin() + at + 1, 2);
      joined[1] = dim::floorDiv(joined[1], stride);
      joined[static_cast<size_t>(at)] *= stride;
      y = reshape(transpose(reshape(y, split), order), joined);
    }
    Sizes starts(x.rank(), 0), limits = y.sizes(), low = starts, high = starts;
    for (int i = 0; i < spatial; ++i) {
      const auto at = static_cast<size_t>(i) + 2;
      // How far the result reaches beyond what was computed does not depend on x's size.
      const int64_t begin = cut[static_cast<size_t>(i)];
      const Size end = resultType(0).shape[i + 2] + begin;
      const int64_t beyond = (end - y.size(i + 2)).number();
      starts[at] = begin;
      limits[at] = beyond > 0 ? y.size(i + 2) : end;
      high[at] = std::max<int64_t>(beyond, 0);
      if (const Size missing = begin - y.size(i + 2); missing.numberOr(0) > 0) {
        starts[at] = y.size(i + 2); // nothing of it is seen
        high[at] -= missing;
      }
    }
    return pad(slice(y, starts, limits), low, high);
  }];
  let samples = ["x: n g*c h w | n g*c h | n g*c 2 h w", "w: g*c f 2 3 | g*c f 3 | g*c f 2 1 2", "groups: g",
                 "strides: 2 1 | 2 3 | 2 | 3 | 1 2 2 |", "pad_low: 1 0 | 1 | 0 1 1 |", "pad_high: 0 1 | 1 | 1 0 0 |",
                 "output_padding: 1 0 | 1 |", "dilations: 2 1 | 2 | 1 2 2 |", "channels_last: false"];
  let numpy = "conv_transpose(x, w, strides, pad_low, pad_high, output_padding, dilations, groups, channels_last)";
  let example = "conv_transpose(tensor({{{1.0, 2, 3}}}), tensor({{{1.0, 10}}}), {2})";
}
defvar poolRules = [{
    x [batch, channels, spatial...], or with `channels_last` [batch, spatial..., channels], and so is the result; one to three
    spatial dimensions. Empty strides are the window's sizes.
    With `ceil_mode` a last window may reach beyond the padding, if it begins in x or in the padding before it.
    - (C1) x has rank 3 to 5, and the window one entry, at least 1, per spatial dimension;
    - (C2) strides, dilations (at least 1), pad_low and pad_high (at least 0, less than the dilated window) have one entry per spatial dimension, or none;
    - (C3) the window fits into the padded input.
}];
def MaxPoolOp : Window<"max_pool", "Max"> {
  let summary = "The largest element of each window";
  let description = poolRules;
  let arguments = (ins Tensor:$x, Ints:$window, Default<Ints, "{}">:$strides, Default<Ints, "{}">:$pad_low,
                       Default<Ints, "{}">:$pad_high, Default<Ints, "{}">:$dilations, Default<Bool, "false">:$ceil_mode,
                       Default<Bool, "false">:$channels_last);
  let infer = "inferPool";
  let loopForm = "loopFormMaxPool";
  let evaluate = "interp::maxPool";
  let gradient = [{ poolGradient(dy, x, y, window, strides, pad_low, dilations, channels_last) }];
  let numpy = "max_pool(x, window, strides, pad_low, pad_high, dilations, ceil_mode, channels_last)";
  let example = "max_pool(tensor({{{1.0, 5, 2, 3}}}), {2})";
}
def SumPoolOp : Window<"sum_pool", "Sum"> {
  let summary = "The sum of each window; padding is zeros";
  let description = !strconcat(poolRules, "    - (C4) the elements are floats.\n");
  let arguments = (ins Tensor:$x, Ints:$window, Default<Ints, "{}">:$strides, Default<Ints, "{}">:$pad_low,
                       Default<Ints, "{}">:$pad_high, Default<Ints, "{}">:$dilations, Default<Bool, "false">:$ceil_mode,
                       Default<Bool, "false">:$channels_last);
  let infer = "inferPool";
  let compute = "Float";
  let loopForm = "loopFormSumPool";
  let evaluate = "interp::sumPool";
  let gradient = [{ poolGradient(dy, x, {}, window, strides, pad_low, dilations, channels_last) }];
  let numpy = "sum_pool(x, window, strides, pad_low, pad_high, dilations, ceil_mode, channels_last)";
  let example = "sum_pool(tensor({{{1.0, 5, 2, 3}}}), {2}, {1})";
}
def AvgPoolOp : Composite<"avg_pool"> {
  let family = "Window";
  let summary = "The mean of each window; padding counts as zeros unless `count_include_pad` is false";
  let description = !strconcat(poolRules, "    - (C4) the elements are floats.\n\n    What `ceil_mode` adds beyond the padding never counts.\n");
  let arguments = (ins Tensor:$x, Ints:$window, Default<Ints, "{}">:$strides, Default<Ints, "{}">:$pad_low,
                       Default<Ints, "{}">:$pad_high, Default<Ints, "{}">:$dilations,
                       Default<Bool, "true">:$count_include_pad, Default<Bool, "false">:$ceil_mode,
                       Default<Bool, "false">:$channels_last);
  let infer = "inferPool";
  let compute = "Float";
  let decomposition = [{
    Expr sums = sum_pool(wide(x), window, strides, pad_low, pad_high, dilations, ceil_mode, channels_last);
    const int space = channels_last ? 1 : 2;
    WindowSpec spec = *windowSpec(x.rank() - 2, window, strides, pad_low, pad_high, dilations, true);
    spec.ceil = ceil_mode;
    double always = 1; // elements that count in every window
    Expr counts;       // the product of those that differ from window to window
    for (int i = 0; i < spec.spatial; ++i) {
      const Size size = x.size(i + space), high = count_include_pad ? spec.high[i] : 0;
      const Size begin = count_include_pad ? 0 : spec.low[i], end = size + spec.low[i] + high;
      if (!spec.leaves(i, size) || (count_include_pad && !ceil_mode)) {
        always *= static_cast<double>(window[static_cast<size_t>(i)]);
        continue;
      }
      // Counted from the padding's first element, those of a window before the element `limit`.
      Sizes along(static_cast<size_t>(x.rank() - space - i), 1);
      along[0] = sums.size(i + space);
      const Expr first = iota(along, 0, DType::i64) * Expr::number(spec.stride[i]);
      auto before = [&](Size limit) {
        const Expr room = Expr::number(limit + spec.dilation[i] - 1) - first;
        return clip(floor_divide(room, Expr::number(spec.dilation[i])), Expr::number(0), Expr::number(spec.size[i]));
      };
      const Expr count = cast(begin == 0 ? before(end) : before(end) - before(begin), sums.dtype());
      counts = counts ? counts * count : count;
    }
    if (!counts)
      return cast(sums * (1 / always), resultType(0).dtype);
    return cast(sums / (counts * always), resultType(0).dtype);
  }];
  let numpy = "avg_pool(x, window, strides, pad_low, pad_high, dilations, count_include_pad, ceil_mode, channels_last)";
  let example = "avg_pool(tensor({{{1.0, 5, 2, 3}}}), {2})";
}
class AdaptivePool<string mnemonic> : Composite<mnemonic> {
  let family = "Window";
  let description = [{
    x [batch, channels, spatial...], or with `channels_last` [batch, spatial..., channels]; the result has the spatial sizes `sizes`. Window i of n reaches from element floor(i * size / n) up to
    ceil((i + 1) * size / n).
    - (C1) x has rank 3 to 5 and no empty dimension, and `sizes` one entry, at least 1, per spatial dimension;
    - (C2) the elements are numbers.
  }];
  let arguments = (ins Tensor:$x, Sizes:$sizes, Default<Bool, "false">:$channels_last);
  let samples = ["x: n c h w | n c h | n c 3 h w", "sizes: 1 1 | 2 3 | h 1 | 2 | 3 | 2 1 2"];
}
def AdaptiveAvgPoolOp : AdaptivePool<"adaptive_avg_pool"> {
  let summary = "The means of as many windows as `sizes` says, which cover x evenly";
  let types = [{
    const auto shape = adaptiveShape(x.shape, sizes, channels_last);
    if (!shape)
      return fail(1, "x must have rank 3 to 5 and elements, and sizes one entry per spatial dimension, at least 1");
    if (x.dtype == DType::boolean)
      return fail(2, "wants numbers, not bools (cast them)");
    return result(TensorType{isFloat(x.dtype) ? x.dtype : DType::f32, *shape});
  }];
  let decomposition = [{
    Expr y = wide(x);
    for (size_t i = 0; i < sizes.size(); ++i)
      y = adaptivePool(y, static_cast<int>(i) + (channels_last ? 1 : 2), sizes[i], true);
    return cast(y, resultType(0).dtype);
  }];
  let numpy = "adaptive_pool(x, sizes, np.mean, channels_last)";
  let example = "adaptive_avg_pool(tensor({{{1.0, 2, 3, 4, 5}}}), {2})";
}
def AdaptiveMaxPoolOp : AdaptivePool<"adaptive_max_pool"> {
  let summary = "The largest elements of as many windows as `sizes` says, which cover x evenly";
  let types = [{
    const auto shape = adaptiveShape(x.shape, sizes, channels_last);
    if (!shape)
      return fail(1, "x must have rank 3 to 5 and elements, and sizes one entry per spatial dimension, at least 1");
    if (x.dtype == DType::boolean)
      return fail(2, "wants numbers, not bools (cast them)");
    return result(TensorType{x.dtype, *shape});
  }];
  let decomposition = [{
    Expr y = x;
    for (size_t i = 0; i < sizes.size(); ++i)
      y = adaptivePool(y, static_cast<int>(i) + (channels_last ? 1 : 2), sizes[i], false);
    return y;
  }];
  let numpy = "adaptive_pool(x, sizes, np.max, channels_last)";
  let example = "adaptive_max_pool(tensor({{{1.0, 2, 3, 4, 5}}}), {2})";
}
