// Attention, and the cells of recurrent networks.
include "ir/ops/Base.td"

def ScaledDotProductAttentionOp : Composite<"scaled_dot_product_attention"> {
  let summary = "softmax(q k^T * scale + mask) v: each query reads the values whose keys are like it";
  let description = [{
    q [..., queries, size], k [..., keys, size], v [..., keys, width]; the result is [..., queries, width]. With grouped heads, dimension
    -3 of q is a multiple of that of k and v, and neighbouring heads of q share one of k and v. A mask of bools says which keys a query
    sees, one of floats is added to the scores; `causal` lets query i see keys 0 to i. A query that sees no key gives NaN.
    `scale` 0 stands for 1 / sqrt(size). f16 and bf16 are computed in f32.
    - (C1) q, k and v are of one float type, and of the same rank, at least 2;
    - (C2) sizes agree as above, and there is at least one key;
    - (C3) the mask is of bools or of q's type, and broadcasts to [..., queries, keys].
  }];
  let arguments = (ins Tensor:$q, Tensor:$k, Tensor:$v, Optional<Tensor>:$mask, Default<Bool, "false">:$causal,
                       Default<Float, "0.0">:$scale);
  let types = [{
    if (!isFloat(q.dtype) || k.dtype != q.dtype || v.dtype != q.dtype || q.rank() < 2 || k.rank() != q.rank() || v.rank() != q.rank())
      return fail(1, "q, k and v must have one float type and one rank, at least 2");
    const int r = q.rank();
    if (k.shape[r - 2] == 0)
      return fail(2, "there is no key");
    bool fits = dim::equal(q.shape[r - 1], k.shape[r - 1]) && dim::equal(k.shape[r - 2], v.shape[r - 2]);
    for (int i = 0; i < r - 2; ++i) {
      const Size heads = q.shape[i], groups = k.shape[i];
      const bool grouped = i == r - 3 && heads.isNumber() && groups.numberOr(0) > 0 && dim::mod(heads, groups) == 0;
      fits = fits && dim::equal(groups, v.shape[i]) && (dim::equal(heads, groups) || grouped);
    }
    if (!fits)
      return fail(2, "sizes do not agree");
    TensorType scores = q, y = q;
    scores.shape[r - 1] = k.shape[r - 2];
    y.shape[r - 1] = v.shape[r - 1];
    if (mask) {
      const auto shape = broadcastShapes(mask->shape, scores.shape);
      if ((mask->dtype != DType::boolean && mask->dtype != q.dtype) || !shape || *shape != scores.shape)
        return fail(3, "the mask must be of bools or of q's type, and broadcast to " + scores.shape.str());
    }
    return result(y);
  }];
  let decomposition = [{
    const int r = q.rank();
    const Size queries = q.size(r - 2), keys = k.size(r - 2), size = q.size(r - 1);
    // The heads of a group stand next to each other, so their queries are those of one head.
    auto batch = [&](const Expr &like, Size rows, Size columns) {
      Sizes shape(like.type().shape.begin(), like.type().shape.end() - 2);
      shape.push_back(rows);
      shape.push_back(columns);
      return shape;
    };
    const Size each = r > 2 && q.size(r - 3) != k.size(r - 3) ? dim::floorDiv(q.size(r - 3), k.size(r - 3)) : 1;
    const Size rows = each == 1 ? queries : each * queries;
    Ints swap(r);
    std::iota(swap.begin(), swap.end(), 0);
    std::swap(swap[r - 1], swap[r - 2]);
    Expr left = wide(q);
    if (scale != 0 || size.isNumber())
      left = left * (scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size.number())));
    else
      left = left / sqrt(Expr::number(size, left.dtype()));
    if (each != 1)
      left = reshape(left, batch(k, rows, size));
    Expr scores = matmul(left, transpose(wide(k), swap));
    if (each != 1)
      scores = reshape(scores, batch(q, queries, keys));
    Expr minus = Expr::scalar(-std::numeric_limits<double>::infinity(), scores.dtype());
    if (mask)
      scores = mask.dtype() == DType::boolean ? where(mask, scores, minus) : scores + cast(mask, scores.dtype());
    if (causal)
      scores = where(less_equal(iota({keys}, 0, DType::i64), iota({queries, 1}, 0, DType::i64)), scores, minus);
    Expr weights = softmax(scores, -1);
    if (each != 1)
      weights = reshape(weights, batch(k, rows, keys));
    Expr y = matmul(weights, wide(v));
    if (each != 1)
      y = reshape(y, batch(q, queries, v.size(r - 1)));
    return cast(y, resultType(0).dtype);
  }];
  let kernelForm = "kernelFormAttention";
  let samples = ["q: ... l d | b 2*g l d", "k: ... s d | b g s d", "v: ... s e | b g s e", "mask: | l s | bool l s",
                 "causal: 0 | 1", "scale: 0 | 0.5"];
  let numpy = "attention(q, k, v, mask, types, causal, scale)";
  let example = "scaled_dot_product_attention(tensor({{1.0, 0}, {0, 1}}), tensor({{1.0, 0}, {0, 1}}), tensor({{1.0, 2}, {3, 4}}))";
}

defvar cellRules = [{
    x [batch, in], hidden [batch, units]; w_in [in, gates * units], w_hidden [units, gates * units], and biases [gates * units].
    - (C1) all are of one float type; x, hidden and the weights have rank 2;
    - (C2) sizes agree as above.
}];
def LstmCellOp : Composite<"lstm_cell"> {
  let summary = "One step of a long short-term memory: the next hidden state and the next cell";
  let description = !strconcat([{
    The gates stand in the order input, forget, candidate, output: cell' = sigmoid(f) * cell + sigmoid(i) * tanh(g) and
    hidden' = sigmoid(o) * tanh(cell'), where [i, f, g, o] = x w_in + bias_in + hidden w_hidden + bias_hidden.
}], cellRules);
  let arguments = (ins Tensor:$x, Tensor:$hidden, Tensor:$cell, Tensor:$w_in, Tensor:$w_hidden, Optional<Tensor>:$bias_in,
                       Optional<Tensor>:$bias_hidden);
  let results = (outs Tensor:$next_hidden, Tensor:$next_cell);
  let types = [{
    for (const TensorType &t : operands)
      if (!isFloat(t.dtype) || t.dtype != x.dtype || t.rank() != (&t - operands.data() < 5 ? 2 : 1))
        return fail(1, "operands must have one float type, and rank 2 but for the biases");
    const Size units = hidden.shape[1], rows = units * 4;
    bool fits = dim::equal(hidden.shape[0], x.shape[0]) && dim::equal(cell.shape[0], x.shape[0]) && dim::equal(cell.shape[1], units) &&
                dim::equal(w_in.shape[0], x.shape[1]) && dim::equal(w_in.shape[1], rows) && dim::equal(w_hidden.shape[0], units) &&
                dim::equal(w_hidden.shape[1], rows);
    for (const TensorType *bias : {bias_in, bias_hidden})
      fits = fits && (!bias || dim::equal(bias->shape[0], rows));
    if (!fits)
      return fail(2, "sizes do not agree");
    return result(hidden, cell);
  }];
  let decomposition = [{
    Expr gates = matmul(wide(x), wide(w_in)) + matmul(wide(hidden), wide(w_hidden));
    for (const Expr &bias : {bias_in, bias_hidden})
      if (bias)
        gates = gates + wide(bias);
    const Size units = hidden.size(1);
    auto gate = [&](int64_t i) { return slice(gates, {0, units * i}, {x.size(0), units * (i + 1)}); };
    Expr next = sigmoid(gate(1)) * wide(cell) + sigmoid(gate(0)) * tanh(gate(2));
    return {cast(sigmoid(gate(3)) * tanh(next), resultType(0).dtype), cast(next, resultType(1).dtype)};
  }];
  let samples = ["x: b i", "hidden: b h", "cell: b h", "w_in: i 4*h", "w_hidden: h 4*h", "bias_in: 4*h |", "bias_hidden: 4*h |"];
  let numpy = "lstm_cell(x, hidden, cell, w_in, w_hidden, bias_in, bias_hidden)";
  let example = "lstm_cell(ones({1, 2}), zeros({1, 1}), ones({1, 1}), ones({2, 4}), ones({1, 4}))";
}
def GruCellOp : Composite<"gru_cell"> {
  let summary = "One step of a gated recurrent unit: the next hidden state";
  let description = !strconcat([{
    The gates stand in the order reset, update, candidate. With a = x w_in + bias_in and b = hidden w_hidden + bias_hidden:
    r = sigmoid(a_r + b_r), z = sigmoid(a_z + b_z), n = tanh(a_n + r * b_n), and hidden' = (1 - z) * n + z * hidden.
}], cellRules);
  let arguments = (ins Tensor:$x, Tensor:$hidden, Tensor:$w_in, Tensor:$w_hidden, Optional<Tensor>:$bias_in,
                       Optional<Tensor>:$bias_hidden);
  let types = [{
    for (const TensorType &t : operands)
      if (!isFloat(t.dtype) || t.dtype != x.dtype || t.rank() != (&t - operands.data() < 4 ? 2 : 1))
        return fail(1, "operands must have one float type, and rank 2 but for the biases");
    const Size units = hidden.shape[1], rows = units * 3;
    bool fits = dim::equal(hidden.shape[0], x.shape[0]) && dim::equal(w_in.shape[0], x.shape[1]) && dim::equal(w_in.shape[1], rows) &&
                dim::equal(w_hidden.shape[0], units) && dim::equal(w_hidden.shape[1], rows);
    for (const TensorType *bias : {bias_in, bias_hidden})
      fits = fits && (!bias || dim::equal(bias->shape[0], rows));
    if (!fits)
      return fail(2, "sizes do not agree");
    return result(hidden);
  }];
  let decomposition = [{
    Expr a = matmul(wide(x), wide(w_in)), b = matmul(wide(hidden), wide(w_hidden));
    if (bias_in)
      a = a + wide(bias_in);
    if (bias_hidden)
      b = b + wide(bias_hidden);
    const Size units = hidden.size(1);
    auto gate = [&](const Expr &e, int64_t i) { return slice(e, {0, units * i}, {x.size(0), units * (i + 1)}); };
    Expr reset = sigmoid(gate(a, 0) + gate(b, 0)), update = sigmoid(gate(a, 1) + gate(b, 1));
    Expr candidate = tanh(gate(a, 2) + reset * gate(b, 2));
    return cast((1 - update) * candidate + update * wide(hidden), resultType(0).dtype);
  }];
  let samples = ["x: b i", "hidden: b h", "w_in: i 3*h", "w_hidden: h 3*h", "bias_in: 3*h |", "bias_hidden: 3*h |"];
  let numpy = "gru_cell(x, hidden, w_in, w_hidden, bias_in, bias_hidden)";
  let example = "gru_cell(ones({1, 2}), ones({1, 1}), ones({2, 3}), ones({1, 3}))";
}
