// The encoder of all-MiniLM-L6-v2, and how its weights are called in PyTorch's file.
#pragma once

#include <tressel/tressel.h>

#include <string>
#include <vector>

namespace tressel {

struct Encoder : nn::Module<Encoder> {
  static constexpr int kLayers = 6, kWidth = 384;
  nn::Embedding words = child("words", nn::Embedding(30522, kWidth));
  nn::PositionalEmbedding positions = child("positions", nn::PositionalEmbedding(512));
  nn::Embedding types = child("types", nn::Embedding(2, kWidth)); // of sentences in a pair; here there is one kind
  nn::LayerNorm norm = child("norm", nn::LayerNorm(1e-12));
  std::vector<nn::TransformerEncoderLayer> layers;

  Encoder() {
    for (int i = 0; i < kLayers; ++i)
      layers.push_back(child("layer" + std::to_string(i),
                             nn::TransformerEncoderLayer(kWidth, 12, 1536, {.activation = gelu, .epsilon = 1e-12})));
  }
  /// Tokens i64[batch, length], and bool[batch, length] that tells them from padding; to f32[batch, 384] of length 1.
  Tensor forward(Tensor tokens, Tensor valid) const {
    Tensor x = norm(positions(words(tokens)) + types(tokens * 0));
    for (const auto &layer : layers)
      x = layer(x, nn::AttentionMasks{.keys = valid});
    Tensor weight = expand_dims(cast(valid, f32), -1);
    Tensor mixed = sum(x * weight, 1) / sum(weight, 1);
    return mixed * rsqrt(sum(square(mixed), -1, true));
  }
};

/// From the names in PyTorch's file to those above.
inline const LoadOptions kPyTorch{
    .rename = {{"embeddings.word_embeddings.", "words."},
               {"embeddings.position_embeddings.", "positions."},
               {"embeddings.token_type_embeddings.", "types."},
               {"embeddings.LayerNorm.", "norm."}},
    .rename_regex = {{R"(^encoder\.layer\.(\d+)\.)", "layer$1."},
                     {R"(attention\.self\.)", "attention."},
                     {R"(attention\.output\.dense)", "attention.out"},
                     {R"(attention\.output\.LayerNorm)", "norm1"},
                     {R"(intermediate\.dense)", "linear1"},
                     {R"(output\.dense)", "linear2"},
                     {R"(output\.LayerNorm)", "norm2"},
                     {R"((norm\d?)\.weight$)", "$1.scale"}},
    .skip = {"pooler.*", "embeddings.position_ids"},
    .transpose = {"*.query.weight", "*.key.weight", "*.value.weight", "*.out.weight", "*.linear?.weight"}};

} // namespace tressel
