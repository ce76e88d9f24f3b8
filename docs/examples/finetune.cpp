// Trains LeNet-5 on eight kinds of clothes, and what it has learned on few images of the other two, beside the same
// network from scratch.
//
//   finetune [FOLDER] [--kinds A,B] [--images N] [--epochs N] [--steps N] [--seed N] [--file FILE.safetensors]
//            [--log FILE.jsonl] [--curve FILE.svg]
//
// FOLDER has the four files of Fashion-MNIST. The weights go through FILE, as those of another's network would: its
// head is left out, the first convolution is frozen, so that no gradient is computed for it, and the layers between
// learn at a third of the rate of the new head. Both rates, of the network from scratch too, were chosen on training
// images that neither has seen. --log and --curve get the losses of the fine-tuning and its accuracy on test images.
#include "lenet.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

using namespace tressel;

namespace {

struct Options {
  std::string dir = "/usr/share/datasets/fashion-mnist", file = "finetune.safetensors";
  std::vector<int64_t> kinds = {0, 6}; ///< T-shirts and shirts: the two that are taken for each other most often
  int64_t images = 500, epochs = 5, steps = 600;
  uint64_t seed = 1;
  ProgressOptions shown; ///< of the fine-tuning
};

using Samples = data::Dataset<data::Sample>;

/// The samples whose kind is one of these, `most` of them at most, with its place among them as the label.
Samples ofKinds(const data::LabelledImages &images, const std::vector<int64_t> &kinds, int64_t most) {
  std::vector<int64_t> indices, places(10, -1);
  for (size_t i = 0; i < kinds.size(); ++i)
    places[static_cast<size_t>(kinds[i])] = static_cast<int64_t>(i);
  const std::vector<int64_t> labels = images.labels.to_vector<int64_t>();
  for (size_t i = 0; i < labels.size() && static_cast<int64_t>(indices.size()) < most; ++i)
    if (places[static_cast<size_t>(labels[i])] >= 0)
      indices.push_back(static_cast<int64_t>(i));
  return data::map(data::subset(data::samples(images), indices), [places](data::Sample s) {
    return data::Sample{s.image, tensor(places[static_cast<size_t>(s.label.item<int64_t>())])};
  });
}

/// Answers the accuracy on test images.
std::function<double()> accuracyOf(const LeNet &net, const Samples &set) {
  const metrics::Accuracy accuracy;
  auto look = jit([net, accuracy](data::Sample b) {
    const Tensor scores = net(b.image);
    accuracy.update(scores, b.label);
    return scores;
  });
  return [=] {
    accuracy.reset();
    for (const data::Sample &b : data::Loader<data::Sample>(set, {.batch = 500}).epoch(0))
      look(b);
    return accuracy.value();
  };
}

/// Looks at the accuracy from time to time.
void train(const LeNet &net, const optim::AdamW &opt, const Samples &set, int64_t steps, uint64_t seed,
           const std::function<double()> &accuracy, ProgressOptions shown) {
  Progress progress(steps, std::move(shown));
  auto step = jit([net, opt](data::Sample b) {
    auto [loss, gradients] = value_and_grad([&] { return softmax_cross_entropy(net(b.image), b.label); }, net.parameters());
    opt.update(gradients);
    return loss;
  });
  data::Loader<data::Sample> loader(set, {.batch = 64, .shuffle = true, .drop_last = true, .workers = 1, .seed = seed});
  for (int64_t epoch = 0, done = 0; done < steps; ++epoch)
    for (const data::Sample &b : loader.epoch(epoch)) {
      progress.step({{"loss", step(b)}});
      if (++done % std::max<int64_t>(1, steps / 12) == 0)
        progress.note({{"accuracy", accuracy()}});
      if (done == steps)
        break;
    }
  progress.finish();
}

LeNet withHead(int64_t kinds, uint64_t seed) {
  LeNet net;
  net.replace("fc3", nn::Dense(kinds));
  net.initialize({{f32, {64, 1, 28, 28}}}, seed);
  return net;
}

int run(const Options &o) {
  const data::LabelledImages all = data::fashion_mnist(o.dir, true), others = data::fashion_mnist(o.dir, false);
  std::vector<int64_t> known;
  for (int64_t kind = 0; kind < 10; ++kind)
    if (std::ranges::find(o.kinds, kind) == o.kinds.end())
      known.push_back(kind);

  const LeNet first = withHead(static_cast<int64_t>(known.size()), o.seed);
  const auto many = ofKinds(all, known, all.labels.size());
  const int64_t steps = o.epochs * (many.size() / 64);
  const auto firstAccuracy = accuracyOf(first, ofKinds(others, known, 10'000));
  train(first, optim::AdamW(first.parameters(), {.lr = optim::cosine(2e-3, steps, 100)}), many, steps, o.seed,
        firstAccuracy, {.label = "eight kinds"});
  std::printf("trained on %zu kinds: accuracy %.4f\n", known.size(), firstAccuracy());
  first.save_weights(o.file);

  // The other two kinds: few images, of which each seed has others.
  auto few = ofKinds(all, o.kinds, all.labels.size());
  const int64_t begin = static_cast<int64_t>(o.seed % 20) * o.images % (few.size() - o.images + 1);
  few = data::slice(few, begin, begin + o.images);
  const auto test = ofKinds(others, o.kinds, 10'000);
  const auto schedule = [&](double rate) { return optim::cosine(rate, o.steps, 50); };

  const LeNet scratch = withHead(2, o.seed + 100), tuned = withHead(2, o.seed + 100);
  const auto scratchAccuracy = accuracyOf(scratch, test), tunedAccuracy = accuracyOf(tuned, test);
  train(scratch, optim::AdamW(scratch.parameters(), {.lr = schedule(2e-3)}), few, o.steps, o.seed, scratchAccuracy,
        {.label = "from scratch"});

  tuned.load_weights(o.file, {.strict = false, .skip = {"fc3.*"}});
  tuned["conv1"].freeze();
  train(tuned,
        optim::AdamW(tuned.parameters(),
                     {.lr = schedule(3e-3), .groups = {{.match = {"conv2.*", "fc1.*", "fc2.*"}, .lr_scale = 0.3}}}),
        few, o.steps, o.seed, tunedAccuracy, o.shown);

  const double alone = scratchAccuracy(), after = tunedAccuracy();
  std::printf("%lld images of kinds %lld and %lld: accuracy %.4f from scratch, %.4f fine-tuned\ngain %.4f\n", static_cast<long long>(o.images),
              static_cast<long long>(o.kinds[0]), static_cast<long long>(o.kinds[1]), alone, after, after - alone);
  return after > 0.6 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  Options o;
  CLI::App app("Fine-tunes LeNet-5 on two kinds of clothes", "finetune");
  app.add_option("FOLDER", o.dir);
  app.add_option("--kinds", o.kinds)->delimiter(',')->expected(2)->check(CLI::Range(0, 9));
  app.add_option("--images", o.images)->check(CLI::Range(64, 6000));
  app.add_option("--epochs", o.epochs)->check(CLI::Range(1, 1000));
  app.add_option("--steps", o.steps)->check(CLI::Range(1, 1'000'000));
  app.add_option("--seed", o.seed);
  app.add_option("--file", o.file);
  app.add_option("--log", o.shown.log, "figures of the fine-tuning, as JSON lines");
  app.add_option("--curve", o.shown.curve, "the same as a picture (SVG)");
  CLI11_PARSE(app, argc, argv);
  o.shown.label = "fine-tuned";
  try {
    if (o.kinds[0] == o.kinds[1])
      throw Error("the two kinds are the same");
    return run(o);
  } catch (const Error &error) {
    std::fprintf(stderr, "finetune: %s\n", error.what());
    return 2;
  }
}
