// Attention and what belongs to it.
#include "frontend/onnx/NodeImporter.h"
#include "frontend/onnx/OpTable.h"
#include "tressel/runtime/Dim.h"
#include "frontend/onnx/TensorData.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace tressel::onnx {

namespace {
using N = NodeImporter;
using Ints = std::vector<int64_t>;

Value like(N &n, const Value &v, double x) { return n.scalar(v.dtype(), x); }
/// [batch, sequence, heads * size] as [batch, heads, sequence, size]; four dimensions stay.
Value splitHeads(N &n, const Value &v, int64_t heads) {
  if (v.rank() == 4)
    return v;
  if (v.rank() != 3 || heads < 1 || n.number(v, 2) % heads)
    n.fail(v.type.str() + " cannot be divided into " + dim::str(heads) + " heads");
  return n.transpose(n.reshape(v, {v.dim(0), v.dim(1), heads, v.dim(2) / heads}), {0, 2, 1, 3});
}

/// -inf where a mask of bools is false; a mask of numbers as it is. Missing places at the end are masked.
Value additiveMask(N &n, Value mask, DType type, Size length) {
  const double minus = -std::numeric_limits<double>::infinity();
  if (mask.dtype() == bool_)
    mask = n.emit("where", {mask, n.scalar(type, 0), n.scalar(type, minus)});
  if (mask.rank() == 0)
    return mask;
  op::Sizes low(static_cast<size_t>(mask.rank())), high = low;
  high.back() = length - mask.dim(mask.rank() - 1);
  if (dim::bounds(high.back()).hi < 0 || mask.dim(mask.rank() - 1) == 1)
    return mask;
  if (high.back().isSymbolic())
    n.unsupported("a mask of type " + mask.type.str() + " for " + dim::str(length) + " keys");
  return high.back() ? n.emit("pad", {mask}, {{"low", low}, {"high", high}, {"value", minus}}) : mask;
}

void attention(N &n) {
  Value q = n.in(0), k = n.in(1), v = n.in(2);
  n.requireFloat(q);
  n.sameType(q, k);
  const bool packed = q.rank() == 3;
  const int64_t qHeads = n.intAttr("q_num_heads", 0), kvHeads = n.intAttr("kv_num_heads", 0);
  q = splitHeads(n, q, qHeads);
  k = splitHeads(n, k, kvHeads);
  v = splitHeads(n, v, kvHeads);
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4)
    n.fail("needs queries, keys and values of 3 or 4 dimensions");
  Size past = 0;
  if (n.has(4) != n.has(5))
    n.fail("needs both a past key and a past value, or none");
  if (n.has(4)) {
    past = n.in(4).rank() == 4 ? n.in(4).dim(2) : 0;
    k = n.emit("concat", {n.in(4), k}, {{"axis", int64_t(2)}});
    v = n.emit("concat", {n.in(5), v}, {{"axis", int64_t(2)}});
  }
  n.out(1, k);
  n.out(2, v);

  const Size heads = n.number(q, 1), groups = n.number(k, 1), length = k.dim(2), queries = q.dim(2);
  if (groups < 1 || heads % groups || v.dim(1) != groups)
    n.fail(dim::str(heads) + " query heads do not divide into " + dim::str(groups) + " groups");
  // Each key head serves several query heads, which stand next to each other: [batch, groups, heads / groups, sequence, size].
  const Size each = heads / groups;
  auto grouped = [&](const Value &t) { return n.reshape(t, {t.dim(0), groups, 1, t.dim(2), t.dim(3)}); };
  const double given = n.floatAttr("scale", 0);
  const double scale = std::sqrt(n.hasAttr("scale") ? given : 1 / std::sqrt(static_cast<double>(n.number(q, 3))));
  Value wideQ = n.reshape(n.emit("mul", {q, like(n, q, scale)}), {q.dim(0), groups, each, queries, q.dim(3)});
  Value wideK = n.transpose(grouped(n.emit("mul", {k, like(n, k, scale)})), {0, 1, 2, 4, 3});
  const Shape scoresShape{q.dim(0), heads, queries, length};
  Value scores = n.reshape(n.emit("matmul", {wideQ, wideK}), scoresShape);
  const int64_t mode = n.intAttr("qk_matmul_output_mode", 0);
  if (mode == 0)
    n.out(3, scores);
  if (const double cap = n.floatAttr("softcap", 0); cap > 0)
    scores = n.emit("mul", {n.emit("tanh", {n.emit("div", {scores, like(n, scores, cap)})}), like(n, scores, cap)});
  if (mode == 1)
    n.out(3, scores);

  const double minus = -std::numeric_limits<double>::infinity();
  if (n.has(3))
    scores = n.emit("add", {scores, n.cast(additiveMask(n, n.in(3), scores.dtype(), length), scores.dtype())});
  if (n.intAttr("is_causal", 0)) {
    Value row = n.emit("add", {n.iota(queries, {queries, 1}), n.reshape(n.sizes({past}), {})});
    Value seen = n.emit("less_equal", {n.iota(length, {length}), row});
    scores = n.emit("where", {seen, scores, like(n, scores, minus)});
  }
  if (n.has(6)) { // how many keys of each sample are real
    Value real = n.emit("less", {n.iota(length, {length}), n.reshape(n.cast(n.in(6), i64), {q.dim(0), 1, 1, 1})});
    scores = n.emit("where", {real, scores, like(n, scores, minus)});
  }
  if (!(scores.type.shape == scoresShape))
    n.fail("the mask does not fit scores of shape " + scoresShape.str());
  if (mode == 2)
    n.out(3, scores);
  const DType precision = n.hasAttr("softmax_precision") ? n.typeAttr("softmax_precision") : scores.dtype();
  Value weights = n.cast(n.emit("softmax", {n.cast(scores, precision)}, {{"axis", int64_t(-1)}}), q.dtype());
  if (mode == 3)
    n.out(3, weights);
  weights = n.reshape(n.cast(weights, v.dtype()), {q.dim(0), groups, each, queries, length});
  Value y = n.reshape(n.emit("matmul", {weights, grouped(v)}), {q.dim(0), heads, queries, v.dim(3)});
  n.out(0, packed ? n.reshape(n.transpose(y, {0, 2, 1, 3}), {q.dim(0), queries, heads * n.number(v, 3)}) : y);
}

/// Pairs of elements turned by an angle that grows with the position.
void rotaryEmbedding(N &n) {
  const Value x = n.in(0);
  n.requireFloat(x);
  const bool packed = x.rank() == 3;
  Value heads = splitHeads(n, x, n.intAttr("num_heads", 0));
  if (heads.rank() != 4)
    n.fail("needs 3 or 4 dimensions, not " + x.type.str());
  Size turned = n.intAttr("rotary_embedding_dim", 0);
  const Size size = n.number(heads, 3), length = heads.dim(2);
  turned = turned ? turned : size;
  if (turned < 2 || turned % 2 || turned > size)
    n.fail("cannot turn " + dim::str(turned) + " of " + dim::str(size) + " elements");
  const bool interleaved = n.intAttr("interleaved", 0) != 0;
  auto cache = [&](int i) {
    Value v = n.has(3) ? n.emit("take", {n.in(i), n.in(3)}, {{"axis", int64_t(0)}}) : n.in(i);
    if (v.rank() != 3 || v.dim(1) != length || v.dim(2) != turned / 2)
      n.fail("angles of type " + v.type.str() + " do not fit " + x.type.str());
    return n.reshape(v, {v.dim(0), 1, length, turned / 2});
  };
  const Value cosine = cache(1), sine = cache(2);
  auto part = [&](Size from, Size to, int64_t step) {
    return n.emit("slice", {heads},
                  {{"starts", op::Sizes{0, 0, 0, from}},
                   {"limits", op::Sizes{heads.dim(0), heads.dim(1), length, to}},
                   {"strides", Ints{1, 1, 1, step}}});
  };
  const Size half = turned / 2;
  const Value a = interleaved ? part(0, turned, 2) : part(0, half, 1), b = interleaved ? part(1, turned, 2) : part(half, turned, 1);
  auto mul = [&](const Value &l, const Value &r) { return n.emit("mul", {l, r}); };
  Value real = n.emit("sub", {mul(a, cosine), mul(b, sine)}), imaginary = n.emit("add", {mul(a, sine), mul(b, cosine)});
  Value y;
  if (interleaved) {
    const Shape pairs{heads.dim(0), heads.dim(1), length, half, 1};
    y = n.reshape(n.emit("concat", {n.reshape(real, pairs), n.reshape(imaginary, pairs)}, {{"axis", int64_t(4)}}),
                  {heads.dim(0), heads.dim(1), length, turned});
  } else {
    y = n.emit("concat", {real, imaginary}, {{"axis", int64_t(3)}});
  }
  if (turned < size)
    y = n.emit("concat", {y, part(turned, size, 1)}, {{"axis", int64_t(3)}});
  n.out(0, packed ? n.reshape(n.transpose(y, {0, 2, 1, 3}), x.type.shape) : y);
}

constexpr OpEntry kTable[] = {{"Attention", 23, attention}, {"RotaryEmbedding", 23, rotaryEmbedding}};
} // namespace

std::span<const OpEntry> attentionOps() { return kTable; }

} // namespace tressel::onnx
