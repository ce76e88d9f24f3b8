// Attention and the encoder layer around it. Sequences are [batch, length, width].
#pragma once

#include <tressel/nn/norm.h>

namespace tressel::nn {

/// What a query may attend to. Both masks may be given.
struct AttentionMasks {
  /// [queries, keys], [batch, queries, keys] or [batch, heads, queries, keys]. Bools: true takes part. Floats are added
  /// to the scores: 0 takes part, minus infinity does not.
  std::optional<Tensor> scores = {};
  /// [batch, keys]; true takes part, false is padding.
  std::optional<Tensor> keys = {};
};

/// Keys and values of a sequence's tokens for one attention. forward_at() writes into them, so that a sequence can be
/// computed in parts, such as token by token. f32[batch, heads, most, width / heads] by default, zeros at first.
/// Variables: a compiled call updates them in place.
struct KeyValueCache {
  Variable keys, values;
};

struct AttentionOptions {
  bool bias = true;
  double dropout = 0;  ///< of the weights, in training
  bool causal = false; ///< query i sees keys 0 to i only
  Initializer weight_init = init::xavier_uniform();
};
/// softmax(q k' / sqrt(width / heads)) v in several heads, with projections of queries, keys, values and result.
/// Without keys the queries attend to themselves; without values the keys are the values. queries [batch, length, any
/// width], keys and values [batch, keys, any width]; the result is [batch, length, width]. A query that may attend to
/// nothing gives NaN. Children: query, key, value, out, all Dense(width); drop.
class MultiHeadAttention : public Module<MultiHeadAttention> {
public:
  static constexpr bool kLibrary = true;
  /// `heads` divides `width`.
  MultiHeadAttention(int64_t width, int64_t heads, AttentionOptions options = {});
  Tensor forward(Tensor queries, std::optional<Tensor> keys = {}, std::optional<Tensor> values = {},
                 AttentionMasks masks = {}) const;
  /// A cache for `batch` sequences of at most `most` tokens.
  KeyValueCache cache(int64_t batch, int64_t most, DType dtype = f32) const;
  /// The attention of tokens that follow `first` others, whose keys and values are in the cache: x [batch, length,
  /// width], `first` an i64 scalar. Token i attends to the others and to tokens 0 to i. first + length must be at most
  /// `most`: tokens beyond the cache's end are stored at a wrong place.
  Tensor forward_at(Tensor x, Tensor first, const KeyValueCache &cache) const;

private:
  int64_t width_, heads_;
  AttentionOptions options_;
  Dense query_, key_, value_, out_;
  Dropout drop_;
};

struct TransformerOptions {
  double dropout = 0.1;         ///< of the attention's weights, of the hidden elements, and of both branches' results
  Activation activation = relu; ///< of the feed-forward branch
  bool pre_norm = false;        ///< normalize before each branch instead of after the sum
  bool causal = false;
  bool bias = true;
  double epsilon = 1e-5;
};
/// x + attention(x), then x + feed_forward(x) with `hidden` elements inside, each normalized: [batch, length, width] to
/// the same. Children: attention, norm1, linear1, linear2, norm2, drop1 (hidden elements), drop2, drop3 (branches).
class TransformerEncoderLayer : public Module<TransformerEncoderLayer> {
public:
  static constexpr bool kLibrary = true;
  TransformerEncoderLayer(int64_t width, int64_t heads, int64_t hidden, TransformerOptions options = {});
  Tensor forward(Tensor x, AttentionMasks masks = {}) const;
  /// As MultiHeadAttention::forward_at: the results for tokens that follow `first` others. Throws Error unless the
  /// layer is causal.
  Tensor forward_at(Tensor x, Tensor first, const KeyValueCache &cache) const;
  KeyValueCache cache(int64_t batch, int64_t most, DType dtype = f32) const { return attention_.cache(batch, most, dtype); }

private:
  template <typename Attend> Tensor around(Tensor x, Attend attend) const;
  TransformerOptions options_;
  MultiHeadAttention attention_;
  LayerNorm norm1_;
  Dense linear1_, linear2_;
  LayerNorm norm2_;
  Dropout drop1_, drop2_, drop3_;
};

} // namespace tressel::nn
