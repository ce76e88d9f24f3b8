// A sentence encoder with the weights that PyTorch saved (all-MiniLM-L6-v2): sentences of like meaning get vectors of
// like direction.
//   minilm MODEL_DIR [--save FILE.npz] SENTENCE...
// MODEL_DIR holds model.safetensors and vocab.txt. Prints how alike each two sentences are: cosines.
#include <tressel/tressel.h>

#include <cctype>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <unordered_map>
#include <vector>

using namespace tressel;

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
static const LoadOptions kPyTorch{
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

/// Words of the vocabulary, longest first; the rest of a word is looked for with "##" in front.
class Tokenizer {
public:
  explicit Tokenizer(const std::string &path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
      ids_.emplace(line, static_cast<int64_t>(ids_.size()));
    if (!ids_.contains("[UNK]"))
      throw InputError(path + ": no vocabulary");
  }
  std::vector<int64_t> operator()(const std::string &sentence) const {
    std::vector<int64_t> tokens{ids_.at("[CLS]")};
    std::string word;
    auto flush = [&] {
      if (!word.empty())
        addWord(word, tokens);
      word.clear();
    };
    for (char c : sentence) {
      const auto u = static_cast<unsigned char>(c);
      if (std::isspace(u) || std::ispunct(u))
        flush();
      if (std::ispunct(u))
        addWord(std::string(1, c), tokens);
      else if (!std::isspace(u))
        word += static_cast<char>(std::tolower(u));
    }
    flush();
    tokens.push_back(ids_.at("[SEP]"));
    return tokens;
  }

private:
  void addWord(const std::string &word, std::vector<int64_t> &tokens) const {
    std::vector<int64_t> parts;
    for (size_t begin = 0; begin < word.size();) {
      size_t end = word.size();
      auto found = ids_.end();
      for (; end > begin && found == ids_.end(); --end)
        found = ids_.find((begin ? "##" : "") + word.substr(begin, end - begin));
      if (found == ids_.end()) {
        tokens.push_back(ids_.at("[UNK]"));
        return;
      }
      parts.push_back(found->second);
      begin = end + 1;
    }
    tokens.insert(tokens.end(), parts.begin(), parts.end());
  }
  std::unordered_map<std::string, int64_t> ids_;
};

static int run(const std::string &dir, const std::string &save, const std::vector<std::string> &sentences) {
  const Tokenizer tokenize(dir + "/vocab.txt");
  std::vector<std::vector<int64_t>> all;
  size_t length = 0;
  for (const std::string &s : sentences) {
    all.push_back(tokenize(s));
    length = std::max(length, all.back().size());
  }
  std::vector<int64_t> ids, present;
  for (const auto &tokens : all)
    for (size_t i = 0; i < length; ++i) {
      ids.push_back(i < tokens.size() ? tokens[i] : 0);
      present.push_back(i < tokens.size());
    }
  const Shape shape{static_cast<int64_t>(all.size()), static_cast<int64_t>(length)};
  Tensor tokens = from_span(ids, shape), valid = from_span(present, shape) > 0;

  Encoder net;
  net.initialize({{i64, shape}, {bool_, shape}}, 1);
  std::printf("%s", net.load_weights(dir + "/model.safetensors", kPyTorch).str().c_str());
  Tensor eager = net(tokens, valid);
  net.hybridize();
  Tensor vectors = net(tokens, valid);
  auto cosines = matmul(vectors, transpose(vectors)).to_vector<float>();
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      std::printf("%.3f  %s | %s\n", static_cast<double>(cosines[i * all.size() + k]), sentences[i].c_str(),
                  sentences[k].c_str());
  if (!save.empty())
    save_npz(save, {{"tokens", tokens}, {"valid", valid}, {"eager", eager}, {"compiled", vectors}});
  return 0;
}

int main(int argc, char **argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  std::string save;
  if (args.size() > 3 && args[1] == "--save") {
    save = args[2];
    args.erase(args.begin() + 1, args.begin() + 3);
  }
  if (args.size() < 2) {
    std::fprintf(stderr, "usage: minilm MODEL_DIR [--save FILE.npz] SENTENCE...\n");
    return 2;
  }
  try {
    return run(args[0], save, {args.begin() + 1, args.end()});
  } catch (const std::exception &e) {
    std::fprintf(stderr, "minilm: %s\n", e.what());
    return 1;
  }
}
