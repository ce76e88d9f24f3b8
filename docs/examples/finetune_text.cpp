// Fine-tunes a sentence encoder (all-MiniLM-L6-v2, with the weights that PyTorch saved) to tell from which file a
// saying is.
//
//   finetune_text MODEL_DIR [--texts FOLDER] [--classes A,B,...] [--steps N] [--batch N] [--length N] [--open N]
//   [--seed N] [--log FILE.jsonl] [--curve FILE.svg]
//
// MODEL_DIR holds model.safetensors and vocab.txt. FOLDER has files of sayings, parted by lines of '%': Debian's
// package fortunes puts them into /usr/share/games/fortunes. Every fifth saying is kept for the test. The embeddings
// and the lower layers are frozen: no gradient is computed for them, and nothing is kept of them. The last --open
// layers learn at a twentieth of the new head's rate.
#include "minilm.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>

using namespace tressel;

namespace {

struct Options {
  std::string dir, texts = "/usr/share/games/fortunes";
  std::vector<std::string> classes{"computers", "law", "startrek", "food", "zippy", "wisdom"};
  int64_t steps = 300, batch = 16, length = 64, open = 2;
  uint64_t seed = 1;
  ProgressOptions shown;
};

struct Example {
  Tensor tokens, valid, label;
};

struct Classifier : nn::Module<Classifier> {
  Encoder encoder = child("encoder", Encoder());
  nn::Dense head;
  explicit Classifier(int64_t classes) : head(child("head", nn::Dense(classes))) {}
  Tensor forward(Tensor tokens, Tensor valid) const { return head(encoder(tokens, valid) * 8.0); } // the vectors have length 1
};

std::vector<std::string> sayingsIn(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw InputError(path + ": cannot be read; Debian's package fortunes has such files");
  std::vector<std::string> sayings;
  std::string saying;
  for (std::string line; std::getline(file, line);)
    if (line != "%") {
      saying += line + " ";
    } else if (!saying.empty()) {
      sayings.push_back(std::move(saying));
      saying.clear();
    }
  return sayings;
}

data::Dataset<Example> datasetOf(const std::vector<std::vector<int64_t>> &texts, const std::vector<int64_t> &labels, int64_t pad, int64_t length) {
  const auto [tokens, valid] = text::batch(texts, {.pad = pad, .most = length, .length = length});
  return data::rows(Example{tokens, valid, from_span(labels, {static_cast<int64_t>(labels.size())})});
}

int run(const Options &o) {
  const text::WordPiece words(o.dir + "/vocab.txt");
  std::vector<std::vector<int64_t>> texts[2]; // to train with, and to test with
  std::vector<int64_t> labels[2];
  std::map<int64_t, int64_t> most;
  for (size_t label = 0; label < o.classes.size(); ++label) {
    const std::vector<std::string> sayings = sayingsIn(o.texts + "/" + o.classes[label]);
    for (size_t i = 0; i < sayings.size(); ++i) {
      texts[i % 5 == 4].push_back(words.encode(sayings[i], {.first = "[CLS]", .last = "[SEP]"}));
      labels[i % 5 == 4].push_back(static_cast<int64_t>(label));
      most[static_cast<int64_t>(label)] += i % 5 == 4;
    }
  }
  int64_t largest = 0;
  for (const auto &[label, count] : most)
    largest = std::max(largest, count);
  std::printf("%zu sayings of %zu files to train with, %zu to test with; the largest file is %.3f of those\n", texts[0].size(), o.classes.size(), texts[1].size(),
              static_cast<double>(largest) / static_cast<double>(texts[1].size()));
  const int64_t pad = words.id("[PAD]");
  const auto train = datasetOf(texts[0], labels[0], pad, o.length),
             other = datasetOf(texts[1], labels[1], pad, o.length);

  Classifier net(static_cast<int64_t>(o.classes.size()));
  net.initialize({{i64, {o.batch, o.length}}, {bool_, {o.batch, o.length}}}, o.seed);
  net.encoder.load_weights(o.dir + "/model.safetensors", kPyTorch);
  net.encoder.freeze();
  std::vector<std::string> opened;
  for (int64_t i = Encoder::kLayers - o.open; i < Encoder::kLayers; ++i) {
    net.encoder["layer" + std::to_string(i)].freeze(false);
    opened.push_back("encoder.layer" + std::to_string(i) + ".*");
  }
  std::vector<optim::Group> groups;
  if (!opened.empty())
    groups.push_back({.match = opened, .lr_scale = 0.05});
  const optim::AdamW opt(net.parameters(), {.lr = optim::linear(2e-3, o.steps, o.steps / 10), .groups = groups});
  auto step = jit([net, opt](Example b) {
    auto [loss, gradients] = value_and_grad([&] { return softmax_cross_entropy(net(b.tokens, b.valid), b.label); }, net.parameters());
    clip_by_global_norm(gradients, 1.0);
    opt.update(gradients);
    return loss;
  });
  metrics::Accuracy accuracy;
  auto look = jit([net, accuracy](Example b) {
    const Tensor scores = net(b.tokens, b.valid);
    accuracy.update(scores, b.label);
    return scores;
  });

  data::Loader<Example> loader(train, {.batch = o.batch, .shuffle = true, .drop_last = true, .seed = o.seed});
  const auto test = [=, batch = o.batch] {
    accuracy.reset();
    for (const Example &b : data::Loader<Example>(other, {.batch = batch}).epoch(0))
      look(b);
    return accuracy.value();
  };
  Progress progress(o.steps, o.shown);
  double last = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t epoch = 0, done = 0; done < o.steps; ++epoch)
    for (const Example &b : loader.epoch(epoch)) {
      progress.step({{"loss", step(b)}});
      if (++done % 100 == 0 || done == o.steps)
        progress.note({{"accuracy", last = test()}});
      if (done == o.steps)
        break;
    }
  progress.finish();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%lld steps in %.0f s, accuracy %.4f\n", static_cast<long long>(o.steps), seconds, last);
  return step.stats().traces == 1 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  Options o;
  CLI::App app("Fine-tunes MiniLM to tell files of sayings apart", "finetune_text");
  app.add_option("MODEL_DIR", o.dir)->required();
  app.add_option("--texts", o.texts);
  app.add_option("--classes", o.classes)->delimiter(',')->expected(2, 100);
  app.add_option("--steps", o.steps)->check(CLI::Range(1, 1'000'000));
  app.add_option("--batch", o.batch)->check(CLI::Range(1, 1024));
  app.add_option("--length", o.length)->check(CLI::Range(8, 512));
  app.add_option("--open", o.open, "layers that learn; 0: the head alone")->check(CLI::Range(0, Encoder::kLayers));
  app.add_option("--seed", o.seed);
  app.add_option("--log", o.shown.log, "figures of each step, as JSON lines");
  app.add_option("--curve", o.shown.curve, "the same as a picture (SVG)");
  CLI11_PARSE(app, argc, argv);
  o.shown.label = "MiniLM";
  try {
    return run(o);
  } catch (const Error &error) {
    std::fprintf(stderr, "finetune_text: %s\n", error.what());
    return 1;
  }
}
