// A sentence encoder with the weights that PyTorch saved (all-MiniLM-L6-v2): sentences of like meaning get vectors of
// like direction.
//   minilm MODEL_DIR [--save FILE.npz] SENTENCE...
// MODEL_DIR holds model.safetensors and vocab.txt. Prints how alike each two sentences are: cosines.
#include "minilm.h"

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

using namespace tressel;

static int run(const std::string &dir, const std::string &save, const std::vector<std::string> &sentences) {
  const text::WordPiece words(dir + "/vocab.txt");
  std::vector<std::vector<int64_t>> all;
  for (const std::string &sentence : sentences)
    all.push_back(words.encode(sentence, {.first = "[CLS]", .last = "[SEP]"}));
  const auto [tokens, valid] = text::batch(all, {.pad = words.id("[PAD]"), .most = 512});

  Encoder net;
  net.initialize({tokens.type(), valid.type()}, 1);
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
