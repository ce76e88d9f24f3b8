// Text as numbers of tokens, and back.
//
//   const text::WordPiece words("minilm/vocab.txt");
//   std::vector<std::vector<int64_t>> sentences;
//   for (const std::string &line : lines)
//     sentences.push_back(words.encode(line, {.first = "[CLS]", .last = "[SEP]"}));
//   text::TokenBatch batch = text::batch(sentences, {.pad = words.id("[PAD]"), .most = 128});
//   Tensor vectors = encoder(batch.tokens, batch.valid);
//
// Text is UTF-8. WordPiece takes invalid bytes for U+FFFD, ByteBPE keeps them. Tokenizers are immutable handles:
// threads may share them.
#pragma once

#include <tressel/tensor.h>

#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::text {

struct WordPieceOptions {
  bool lower = true; ///< small letters without accents, as "uncased" vocabularies have them
};
/// Tokens around a text; "" for none.
struct Around {
  std::string first = "", last = "";
};

/// The tokens of BERT (Devlin et al. 2019): words and punctuation, each cut into the longest pieces that the vocabulary has, where a piece that does not begin
/// a word has "##" in front. Every Chinese character is a word. A word that cannot be cut, or is longer than 100 characters, is "[UNK]".
class WordPiece {
public:
  /// `vocabulary`: a token a line; its number is the line's. Throws InputError for a file that cannot be read, holds a token twice, or has no "[UNK]".
  explicit WordPiece(const std::string &vocabulary, WordPieceOptions options = {}, std::source_location where = std::source_location::current());
  std::vector<int64_t> encode(std::string_view text, const Around &around = {}) const;
  /// Words with a blank between them; case, accents and blanks are not restored. Throws Error for a number that is no
  /// token's.
  std::string decode(std::span<const int64_t> tokens) const;
  int64_t size() const;
  /// Throws Error for a token that the vocabulary lacks.
  int64_t id(std::string_view token) const;

private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// Byte pair encoding over bytes (Sennrich et al. 2016, with GPT-2's bytes and word boundaries, Radford et al. 2019):
/// every text can be encoded, and decode() gives back its bytes.
class ByteBPE {
public:
  /// Learns merges from a text until there are `size` tokens, or no pair of tokens occurs twice. The first 256 are the
  /// bytes, in GPT-2's order.
  /// Throws Error for a size below 256.
  static ByteBPE train(std::string_view text, int64_t size, std::source_location where = std::source_location::current());
  /// GPT-2's files: a JSON object from tokens to numbers, and one merge per line. Throws InputError for invalid files,
  /// or two that do not match.
  static ByteBPE load(const std::string &vocabulary, const std::string &merges, std::source_location where = std::source_location::current());
  void save(const std::string &vocabulary, const std::string &merges, std::source_location where = std::source_location::current()) const;

  std::vector<int64_t> encode(std::string_view text) const;
  /// Throws Error for a number that is no token's.
  std::string decode(std::span<const int64_t> tokens) const;
  int64_t size() const;

private:
  struct Impl;
  explicit ByteBPE(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// Texts of different lengths as one tensor.
struct TokenBatch {
  Tensor tokens; ///< i64[texts, length of the longest]
  Tensor valid;  ///< bool of the same shape: false where there is only padding
};
struct TokenBatchOptions {
  int64_t pad = 0;    ///< fills shorter texts at the end
  int64_t most = 0;   ///< longer texts are cut off there, but keep their last token; 0: no limit
  int64_t length = 0; ///< of all batches, so that a step is compiled once; 0: the length of the longest text
};
/// Throws Error for no texts, and for a text that is longer than `length`.
TokenBatch batch(std::span<const std::vector<int64_t>> texts, TokenBatchOptions options = {}, std::source_location where = std::source_location::current());

} // namespace tressel::text
