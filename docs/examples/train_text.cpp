// Trains a language model over characters, a transformer or an LSTM, and writes with it.
//
//   train_text [FILE...] [--model transformer|lstm] [--steps N] [--batch N] [--rate R] [--seed N] [--state FILE]
//              [--log FILE.jsonl] [--events FOLDER] [--curve FILE.svg] [--write N] [--prompt TEXT]
//
// Without files: the texts of Debian's package fortunes. The last tenth of each file is held out: bits per character are
// those of its windows. With --state, the training is saved to FILE now and then, and goes on from it where it is there.
#include "text_models.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

using namespace tressel;

namespace {
struct Options {
  std::vector<std::string> files;
  std::string model = "transformer", state, prompt = "The ";
  ProgressOptions shown;
  int64_t steps = 3000, batch = 32, length = 128, write = 300;
  uint64_t seed = 1;
  double rate = 0; ///< 0: what suits the model
};

std::vector<std::string> fortunes() {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto &entry : std::filesystem::directory_iterator("/usr/share/games/fortunes", ignored))
    if (entry.is_regular_file() && entry.path().extension().empty() && entry.file_size() > 4096)
      files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw InputError({"/usr/share/games/fortunes: no texts", {}, {}, "install Debian's package fortunes, or name files"});
  return files;
}

data::Dataset<data::TokenWindow> windows(const std::vector<std::string> &files, int64_t length, data::TokenOptions options) {
  std::optional<data::Dataset<data::TokenWindow>> all;
  for (const std::string &file : files) {
    auto one = data::token_windows(file, length, options);
    all = all ? data::concat(*all, one) : one;
  }
  return *all;
}

/// Draws from the scores of the next character, those that are less likely than one of a thousand left out.
int32_t draw(const std::vector<float> &scores, data::Rng &random) {
  const float most = *std::max_element(scores.begin(), scores.end());
  std::vector<double> shares;
  double sum = 0;
  for (float score : scores)
    sum += shares.emplace_back(score > most - 6.9f ? std::exp(score - most) : 0.0);
  double left = random.uniform() * sum;
  for (size_t i = 0; i < shares.size(); ++i)
    if ((left -= shares[i]) < 0)
      return static_cast<int32_t>(i);
  return ' ';
}

/// Text that follows the prompt, a character at a time: what the model keeps of those before is state of the compiled call. The
/// transformer sees as many as it was trained on; then it begins anew with the latest half of them.
template <typename Net> std::string written(const Net &net, const Options &o) {
  const auto memory = net.memory(1, o.length);
  auto next = jit([net, memory](Tensor token, Tensor place) { return net.next(token, place, memory); });
  std::string text = o.prompt.empty() ? " " : o.prompt;
  data::Rng random(o.seed);
  int64_t place = 0;
  auto read = [&](char c) { return next(from_span(std::vector<int32_t>{static_cast<unsigned char>(c)}, {1, 1}), tensor(place++, i64)); };
  Tensor scores;
  for (char c : text.substr(text.size() - std::min(text.size(), static_cast<size_t>(o.length / 2))))
    scores = read(c);
  for (int64_t i = 0; i < o.write; ++i) {
    text += static_cast<char>(draw(reshape(scores, {-1}).template to_vector<float>(), random));
    if (Net::isBounded && place == o.length) {
      place = 0;
      for (char c : text.substr(text.size() - static_cast<size_t>(o.length / 2), static_cast<size_t>(o.length / 2) - 1))
        read(c);
    }
    scores = read(text.back());
  }
  return text;
}

template <typename Net> int run(Net net, const Options &o) {
  const std::vector<std::string> files = o.files.empty() ? fortunes() : o.files;
  data::Loader<data::TokenWindow> train(windows(files, o.length, {.end = 0.9, .shifted = true}),
                                        {.batch = o.batch, .shuffle = true, .drop_last = true, .workers = 1, .seed = o.seed});
  data::Loader<data::TokenWindow> test(windows(files, o.length, {.begin = 0.9}), {.batch = o.batch, .drop_last = true});
  net.initialize({{i32, {o.batch, o.length}}}, o.seed);
  optim::AdamW opt(net.parameters(), {.lr = optim::cosine(o.rate, o.steps, std::min<int64_t>(100, o.steps / 10)), .weight_decay = 0.1, .groups = {{.match = {"*bias", "*scale"}, .weight_decay = 0.0}}});
  auto step = jit([net, opt](data::TokenWindow b) {
    auto [loss, grads] = value_and_grad([&] { return next_token_loss(net(b.x), b.next); }, net.parameters());
    clip_by_global_norm(grads, 1.0);
    opt.update(grads);
    return loss;
  });
  metrics::Mean loss;
  auto look = jit([net, loss](data::TokenWindow b) {
    const Tensor one = next_token_loss(net(b.x), b.next);
    loss.update(one);
    return one;
  });
  auto bits = [&] {
    loss.reset();
    for (data::TokenWindow b : test.epoch(0))
      look(b);
    return loss.value() / std::log(2.0);
  };

  const TrainingState state{{"net", net}, {"opt", opt}, {"loader", train}};
  if (!o.state.empty() && std::filesystem::exists(o.state))
    load_state(o.state, state);
  ProgressOptions shown = o.shown;
  shown.begin = opt.steps();
  Progress progress(o.steps, shown);
  double last = 0;
  for (int64_t e = train.position().epoch, done = opt.steps(); done < o.steps; ++e)
    for (data::TokenWindow b : train.epoch(e)) {
      progress.step({{"loss", step(b)}});
      if (++done % 500 == 0 || done == o.steps) {
        progress.note({{"bits", last = bits()}});
        if (!o.state.empty())
          save_state(o.state, state);
      }
      if (done == o.steps)
        break;
    }
  progress.finish();
  std::printf("%lld steps, %.3f bits per character of %lld held out, %llu trace\n", static_cast<long long>(opt.steps()), last,
              static_cast<long long>(test.num_batches() * o.batch * o.length), static_cast<unsigned long long>(step.stats().traces));
  if (o.write > 0)
    std::printf("%s\n", written(net, o).c_str());
  return step.stats().traces <= 1 ? 0 : 1;
}
} // namespace

int main(int argc, char **argv) {
  Options o;
  CLI::App app("Trains a language model over characters", "train_text");
  app.add_option("files", o.files, "texts; otherwise those of Debian's package fortunes");
  app.add_option("--model", o.model)->check(CLI::IsMember({"transformer", "lstm"}))->capture_default_str();
  app.add_option("--steps", o.steps)->check(CLI::Range(1, 10'000'000))->capture_default_str();
  app.add_option("--batch", o.batch)->check(CLI::Range(1, 65'536))->capture_default_str();
  app.add_option("--rate", o.rate, "the greatest; otherwise what suits the model")->check(CLI::PositiveNumber);
  app.add_option("--seed", o.seed)->capture_default_str();
  app.add_option("--state", o.state, "the training goes on from this file, and is saved to it now and then");
  app.add_option("--log", o.shown.log, "figures of each step, as JSON lines");
  app.add_option("--events", o.shown.events, "the same in a folder for TensorBoard");
  app.add_option("--curve", o.shown.curve, "the same as a picture (SVG)");
  app.add_option("--write", o.write, "characters to write at the end")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--prompt", o.prompt, "what they follow")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  o.shown.label = o.model;
  if (o.rate == 0)
    o.rate = o.model == "lstm" ? 3e-3 : 1e-3;
  try {
    return o.model == "lstm" ? run(TextLSTM(), o) : run(TextTransformer({.context = o.length}), o);
  } catch (const Error &error) {
    std::fprintf(stderr, "train_text: %s\n", error.what());
    return 2;
  }
}
