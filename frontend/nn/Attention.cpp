#include "frontend/tensor/Fail.h"

#include <tressel/nn/attention.h>

#include <cmath>
#include <limits>

namespace tressel::nn {
namespace {

[[noreturn]] void failShape(const std::string &message, const char *op) {
  tressel::detail::fail<ShapeError>(
      message, tressel::detail::toLoc(tressel::detail::callerOf(std::source_location::current())), op);
}

/// [batch, length, heads * width] to [batch, heads, length, width].
Tensor splitHeads(const Tensor &x, int64_t heads, int64_t width) {
  return transpose(reshape(x, {-1, x.dim(1), heads, width}), {0, 2, 1, 3});
}

/// Both masks as one over [batch, heads, queries, keys], or none.
std::optional<Tensor> joinMasks(const AttentionMasks &masks, DType dtype) {
  std::optional<Tensor> scores = masks.scores, keys;
  if (scores) {
    if (scores->rank() == 3)
      scores = expand_dims(*scores, 1);
    else if (scores->rank() != 2 && scores->rank() != 4)
      failShape("a mask of scores has 2, 3 or 4 dimensions, not " + scores->type().str(), "attention");
    if (scores->dtype() != bool_)
      scores = cast(*scores, dtype);
  }
  if (!masks.keys)
    return scores;
  if (masks.keys->rank() != 2 || masks.keys->dtype() != bool_)
    failShape("a mask of keys is bool[batch, keys], not " + masks.keys->type().str(), "attention");
  keys = expand_dims(expand_dims(*masks.keys, 1), 1);
  if (!scores)
    return keys;
  return scores->dtype() == bool_ ? logical_and(*scores, *keys)
                                  : where(*keys, *scores, -std::numeric_limits<double>::infinity());
}

/// The softmax weights of the keys, computed apart as dropout needs them; scaled_dot_product_attention does not return
/// them.
Tensor attentionWeights(const Tensor &q, const Tensor &k, const std::optional<Tensor> &mask, bool causal) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.dim(-1)));
  Tensor scores = matmul(q * scale, transpose(k, {0, 1, 3, 2}));
  const auto keep = [&](const Tensor &allowed) {
    scores = where(allowed, scores, -std::numeric_limits<double>::infinity());
  };
  const auto index = [&](int64_t axis) { return iota({q.dim(2), k.dim(2)}, axis); };
  if (causal)
    keep(index(0) >= index(1));
  if (mask && mask->dtype() == bool_)
    keep(*mask);
  else if (mask)
    scores = scores + *mask;
  return softmax(scores, -1);
}

} // namespace

MultiHeadAttention::MultiHeadAttention(int64_t width, int64_t heads, AttentionOptions options)
    : width_(width), heads_(heads), options_(std::move(options)),
      query_(child("query", Dense(width, nullptr, {.bias = options_.bias, .weight_init = options_.weight_init}))),
      key_(child("key", Dense(width, nullptr, {.bias = options_.bias, .weight_init = options_.weight_init}))),
      value_(child("value", Dense(width, nullptr, {.bias = options_.bias, .weight_init = options_.weight_init}))),
      out_(child("out", Dense(width, nullptr, {.bias = options_.bias, .weight_init = options_.weight_init}))),
      drop_(child("drop", Dropout(options_.dropout))) {
  if (heads < 1 || width % heads)
    throw Error("MultiHeadAttention: a width of " + std::to_string(width) + " does not split into " +
                std::to_string(heads) + " heads");
}

Tensor MultiHeadAttention::forward(Tensor queries, std::optional<Tensor> keys, std::optional<Tensor> values,
                                   AttentionMasks masks) const {
  const Tensor k = keys.value_or(queries), v = values.value_or(k);
  for (const Tensor &x : {queries, k, v})
    if (x.rank() != 3)
      failShape("queries, keys and values are [batch, length, width], not " + x.type().str(), "attention");
  const int64_t each = width_ / heads_;
  const Tensor q = splitHeads(query_(queries), heads_, each), heads = splitHeads(key_(k), heads_, each),
               content = splitHeads(value_(v), heads_, each);
  const std::optional<Tensor> mask = joinMasks(masks, q.dtype());
  const Tensor mixed = training() && options_.dropout > 0
                           ? matmul(drop_(attentionWeights(q, heads, mask, options_.causal)), content)
                           : scaled_dot_product_attention(q, heads, content, mask.value_or(Tensor()), options_.causal);
  return out_(reshape(transpose(mixed, {0, 2, 1, 3}), {-1, queries.dim(1), width_}));
}

KeyValueCache MultiHeadAttention::cache(int64_t batch, int64_t most, DType dtype) const {
  const Shape shape{batch, heads_, most, width_ / heads_};
  return {Variable(zeros(shape, dtype), "keys"), Variable(zeros(shape, dtype), "values")};
}

Tensor MultiHeadAttention::forward_at(Tensor x, Tensor first, const KeyValueCache &cache) const {
  if (x.rank() != 3)
    failShape("tokens are [batch, length, width], not " + x.type().str(), "attention");
  const int64_t each = width_ / heads_;
  const Tensor zero = zeros({}, i64), starts = stack({zero, zero, first, zero});
  auto stored = [&](const Variable &all, const Tensor &added) {
    const Tensor now = dynamic_update_slice(all.value(), added, starts);
    all.assign(now);
    return now;
  };
  const Tensor q = splitHeads(query_(x), heads_, each), k = stored(cache.keys, splitHeads(key_(x), heads_, each)),
               v = stored(cache.values, splitHeads(value_(x), heads_, each));
  auto index = [&](int64_t axis) { return iota({q.dim(2), k.dim(2)}, axis); };
  const Tensor mixed = scaled_dot_product_attention(q, k, v, index(1) <= index(0) + first);
  return out_(reshape(transpose(mixed, {0, 2, 1, 3}), {-1, x.dim(1), width_}));
}

TransformerEncoderLayer::TransformerEncoderLayer(int64_t width, int64_t heads, int64_t hidden,
                                                 TransformerOptions options)
    : options_(options),
      attention_(child("attention", MultiHeadAttention(
                                        width, heads,
                                        {.bias = options.bias, .dropout = options.dropout, .causal = options.causal}))),
      norm1_(child("norm1", LayerNorm(options.epsilon))),
      linear1_(child("linear1", Dense(hidden, options.activation, {.bias = options.bias}))),
      linear2_(child("linear2", Dense(width, nullptr, {.bias = options.bias}))),
      norm2_(child("norm2", LayerNorm(options.epsilon))), drop1_(child("drop1", Dropout(options.dropout))),
      drop2_(child("drop2", Dropout(options.dropout))), drop3_(child("drop3", Dropout(options.dropout))) {}

template <typename Attend> Tensor TransformerEncoderLayer::around(Tensor x, Attend attends) const {
  auto attend = [&](const Tensor &t) { return drop2_(attends(t)); };
  auto feedForward = [&](const Tensor &t) { return drop3_(linear2_(drop1_(linear1_(t)))); };
  if (options_.pre_norm) {
    x = x + attend(norm1_(x));
    return x + feedForward(norm2_(x));
  }
  x = norm1_(x + attend(x));
  return norm2_(x + feedForward(x));
}

Tensor TransformerEncoderLayer::forward(Tensor x, AttentionMasks masks) const {
  return around(std::move(x), [&](const Tensor &t) { return attention_(t, t, t, masks); });
}
Tensor TransformerEncoderLayer::forward_at(Tensor x, Tensor first, const KeyValueCache &cache) const {
  if (!options_.causal)
    throw Error("TransformerEncoderLayer: tokens see those that follow, so they cannot be computed in parts; the option is .causal");
  return around(std::move(x), [&](const Tensor &t) { return attention_.forward_at(t, first, cache); });
}

} // namespace tressel::nn
