#include "frontend/Record.h"

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

Tensor maskScores(const Tensor &scores, Tensor mask) {
  if (mask.rank() == 3)
    mask = expand_dims(mask, 1);
  else if (mask.rank() != 2 && mask.rank() != 4)
    failShape("a mask of scores has 2, 3 or 4 dimensions, not " + mask.type().str(), "attention");
  return isFloat(mask.dtype()) ? scores + cast(mask, scores.dtype())
                               : where(mask, scores, -std::numeric_limits<double>::infinity());
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
  const Tensor q = splitHeads(query_(queries), heads_, each);
  const Tensor projectedKeys = splitHeads(key_(k), heads_, each);
  Tensor scores = matmul(q * (1 / std::sqrt(static_cast<double>(each))), transpose(projectedKeys, {0, 1, 3, 2}));
  if (options_.causal) {
    const auto index = [&](int64_t axis) { return iota({queries.dim(1), k.dim(1)}, axis); };
    scores = maskScores(scores, index(0) >= index(1));
  }
  if (masks.scores)
    scores = maskScores(scores, *masks.scores);
  if (masks.keys) {
    if (masks.keys->rank() != 2 || masks.keys->dtype() != bool_)
      failShape("a mask of keys is bool[batch, keys], not " + masks.keys->type().str(), "attention");
    scores = maskScores(scores, expand_dims(expand_dims(*masks.keys, 1), 1));
  }
  Tensor mixed = matmul(drop_(softmax(scores, -1)), splitHeads(value_(v), heads_, each));
  return out_(reshape(transpose(mixed, {0, 2, 1, 3}), {-1, queries.dim(1), width_}));
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

Tensor TransformerEncoderLayer::forward(Tensor x, AttentionMasks masks) const {
  auto attend = [&](const Tensor &t) { return drop2_(attention_(t, t, t, masks)); };
  auto feedForward = [&](const Tensor &t) { return drop3_(linear2_(drop1_(linear1_(t)))); };
  if (options_.pre_norm) {
    x = x + attend(norm1_(x));
    return x + feedForward(norm2_(x));
  }
  x = norm1_(x + attend(x));
  return norm2_(x + feedForward(x));
}

} // namespace tressel::nn
