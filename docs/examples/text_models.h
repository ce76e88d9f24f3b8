// Language models over characters (bytes): tokens [batch, length] to scores of the next one, [batch, length, vocabulary].
#pragma once

#include <tressel/tressel.h>

#include <vector>

namespace tressel {

struct TextOptions {
  int64_t vocabulary = 256;
  int64_t context = 128; ///< most tokens that are looked at together
  int64_t width = 128;
  int64_t layers = 4;
  int64_t heads = 4;
  double dropout = 0;
};

/// A decoder: learned positions, layers that normalize before attention and feed-forward branch.
struct TextTransformer : nn::Module<TextTransformer> {
  static constexpr bool isBounded = true; ///< sees as many tokens as there are positions
  nn::Embedding embed;
  nn::PositionalEmbedding positions;
  std::vector<nn::TransformerEncoderLayer> blocks;
  nn::LayerNorm norm;
  nn::Dense head;

  explicit TextTransformer(const TextOptions &o = {})
      : embed(child("embed", nn::Embedding(o.vocabulary, o.width, nn::init::normal(0.02)))),
        positions(child("positions", nn::PositionalEmbedding(o.context))), norm(child("norm", nn::LayerNorm())),
        head(child("head", nn::Dense(o.vocabulary))) {
    for (int64_t i = 0; i < o.layers; ++i)
      blocks.push_back(child("block" + std::to_string(i),
                             nn::TransformerEncoderLayer(o.width, o.heads, 4 * o.width,
                                                         {.dropout = o.dropout, .activation = gelu, .pre_norm = true, .causal = true})));
  }
  Tensor forward(Tensor tokens) const {
    Tensor x = positions(embed(tokens));
    for (const auto &block : blocks)
      x = block(x);
    return head(norm(x));
  }

  using Memory = std::vector<nn::KeyValueCache>;
  Memory memory(int64_t batch, int64_t most) const {
    Memory caches;
    for (const auto &block : blocks)
      caches.push_back(block.cache(batch, most));
    return caches;
  }
  /// Scores behind tokens that follow `first` others, which `memory` has.
  Tensor next(Tensor tokens, Tensor first, const Memory &memory) const {
    Tensor x = positions.forward_at(embed(tokens), first);
    for (size_t i = 0; i < blocks.size(); ++i)
      x = blocks[i].forward_at(x, first, memory[i]);
    return head(norm(x));
  }
};

struct TextLSTM : nn::Module<TextLSTM> {
  static constexpr bool isBounded = false; ///< sees all tokens before
  int64_t layers, width;
  nn::Embedding embed;
  nn::LSTM lstm;
  nn::Dense head;

  explicit TextLSTM(const TextOptions &o = {.width = 256, .layers = 1})
      : layers(o.layers), width(o.width), embed(child("embed", nn::Embedding(o.vocabulary, o.width / 4))),
        lstm(child("lstm", nn::LSTM(o.width, {.layers = static_cast<int>(o.layers), .batch_first = true, .dropout = o.dropout}))),
        head(child("head", nn::Dense(o.vocabulary))) {}
  Tensor forward(Tensor tokens) const { return head(lstm(embed(tokens)).output); }

  struct Memory {
    Variable hidden, cell;
  };
  Memory memory(int64_t batch, int64_t) const {
    const Shape shape{layers, batch, width};
    return {Variable(zeros(shape), "hidden"), Variable(zeros(shape), "cell")};
  }
  /// Scores behind tokens that follow those before.
  Tensor next(Tensor tokens, Tensor, const Memory &memory) const {
    const auto [output, state] = lstm(embed(tokens), nn::LSTMState{memory.hidden.value(), memory.cell.value()});
    memory.hidden.assign(state.hidden);
    memory.cell.assign(state.cell);
    return head(output);
  }
};

/// The cross entropy of `scores` against the tokens that follow, in nats per token.
inline Tensor next_token_loss(const Tensor &scores, const Tensor &next) {
  return softmax_cross_entropy(reshape(scores, {-1, scores.dim(2)}), reshape(next, {-1}));
}

} // namespace tressel
