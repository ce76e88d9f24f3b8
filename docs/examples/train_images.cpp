// Trains a perceptron, LeNet-5 or a small ResNet on Fashion-MNIST. A step is one program: forward, loss, gradient, and the
// update of the parameters in their own memory.
//
//   train_images [FOLDER] [--net mlp|lenet|resnet] [--epochs N] [--steps N] [--seed N] [--rate R] [--held-out N] [--state FILE]
//                [--log FILE.jsonl] [--events FOLDER] [--curve FILE.svg] [--compare]
//
// FOLDER has the four files of the data set; Debian's package dataset-fashion-mnist installs them. With --held-out, the last N
// images of the training set are kept apart and looked at after each epoch, in place of the test images: for choosing rates.
// With --state, the training is saved to FILE after each epoch, and goes on from it where it is there. --compare times a step
// as imperative calls beside the compiled one.
#include "image_models.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

using namespace tressel;

namespace {
struct Batch {
  Tensor x, label;
};

struct Options {
  std::string dir = "/usr/share/datasets/fashion-mnist", net = "lenet", state;
  ProgressOptions shown;
  int64_t epochs = 5, most = -1, heldOut = 0;
  uint64_t seed = 1;
  double rate = 0, decay = 5e-4; ///< 0: what suits the network
  bool augments = false, compares = false;
};

data::Dataset<Batch> batches(const data::LabelledImages &images, bool augments) {
  return data::map(images, [augments](data::Sample s, data::Rng &r) { return Batch{augments && r.flip() ? flip(s.image, {-1}) : s.image, s.label}; });
}

template <typename Net> Tensor trainOn(const Net &net, const optim::SGD &opt, const Batch &b) {
  auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(b.x), b.label); }, net.parameters());
  opt.update(grads);
  return loss;
}

/// Milliseconds, the median of some calls.
double timeOf(const std::function<Tensor()> &call, int calls) {
  std::vector<double> times;
  for (int i = -3; i < calls; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call().wait();
    if (i >= 0)
      times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// On a network of its own.
template <typename Net> void compare(const Batch &batch) {
  Net net;
  net.initialize({{f32, {64, 1, 28, 28}}}, 1);
  const optim::SGD opt(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  auto step = jit([net, opt](Batch b) { return trainOn(net, opt, b); });
  const double imperative = timeOf([&] { return trainOn(net, opt, batch); }, 20), compiled = timeOf([&] { return step(batch); }, 50);
  std::printf("a step of 64 images: %.1f ms as imperative calls, %.1f ms compiled: %.1f times as fast\n", imperative, compiled, imperative / compiled);
}

template <typename Net> int run(const Options &o) {
  auto all = batches(data::fashion_mnist(o.dir, true), o.augments);
  const int64_t count = all.size() - o.heldOut;
  data::Loader<Batch> train(data::slice(all, 0, count), {.batch = 64, .shuffle = true, .drop_last = true, .workers = 1, .seed = o.seed});
  data::Loader<Batch> test(o.heldOut > 0 ? data::slice(batches(data::fashion_mnist(o.dir, true), false), count, count + o.heldOut)
                                         : batches(data::fashion_mnist(o.dir, false), false),
                           {.batch = 500});
  if (o.compares)
    for (const Batch &b : data::Loader<Batch>(all, {.batch = 64}).epoch(0)) {
      compare<Net>(b);
      break;
    }

  Net net;
  net.initialize({{f32, {64, 1, 28, 28}}}, o.seed);
  const int64_t steps = o.epochs * train.num_batches();
  optim::SGD opt(net.parameters(), {.lr = optim::cosine(o.rate, steps, 200), .momentum = 0.9, .weight_decay = o.decay});
  auto step = jit([net, opt](Batch b) { return trainOn(net, opt, b); });
  metrics::Accuracy accuracy;
  auto look = jit([net, accuracy](Batch b) {
    const Tensor scores = net(b.x);
    accuracy.update(scores, b.label);
    return scores;
  });

  const TrainingState state{{"net", net}, {"opt", opt}, {"loader", train}};
  if (!o.state.empty() && std::filesystem::exists(o.state))
    load_state(o.state, state);
  ProgressOptions shown = o.shown;
  shown.begin = opt.steps();
  Progress progress(o.most < 0 ? steps : shown.begin + o.most, shown);
  auto evaluate = [&] {
    accuracy.reset();
    for (Batch b : test.epoch(0))
      look(b);
    return accuracy.value();
  };
  std::optional<double> last;
  int64_t done = 0;
  for (int64_t e = train.position().epoch; e < o.epochs && done != o.most; ++e) {
    for (Batch b : train.epoch(e)) {
      progress.step({{"loss", step(b)}});
      if (++done == o.most)
        break;
    }
    last = evaluate();
    progress.note({{"accuracy", *last}});
    if (!o.state.empty())
      save_state(o.state, state);
  }
  progress.finish();
  if (!last) // the state was that of a training at its end
    last = evaluate();
  std::printf("%lld steps, accuracy %.4f on %lld other images, %llu trace\n", static_cast<long long>(opt.steps()), *last,
              static_cast<long long>(o.heldOut > 0 ? o.heldOut : 10'000), static_cast<unsigned long long>(step.stats().traces));
  return step.stats().traces <= 1 && (done == 0 || *last > (o.most < 0 ? 0.85 : 0.4)) ? 0 : 1;
}
} // namespace

int main(int argc, char **argv) {
  Options o;
  CLI::App app("Trains a network on Fashion-MNIST", "train_images");
  app.add_option("folder", o.dir, "where the four files of the data set are")->capture_default_str();
  app.add_option("--net", o.net)->check(CLI::IsMember({"mlp", "lenet", "resnet"}))->capture_default_str();
  app.add_option("--epochs", o.epochs)->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--steps", o.most, "end after so many")->check(CLI::PositiveNumber);
  app.add_option("--seed", o.seed)->capture_default_str();
  app.add_option("--rate", o.rate, "the greatest; otherwise what suits the network")->check(CLI::PositiveNumber);
  app.add_option("--held-out", o.heldOut, "training images to look at in place of the test images")
      ->check(CLI::Range(0, 50'000));
  app.add_option("--state", o.state, "the training goes on from this file, and is saved to it after each epoch");
  app.add_option("--log", o.shown.log, "figures of each step, as JSON lines");
  app.add_option("--events", o.shown.events, "the same in a folder for TensorBoard");
  app.add_option("--curve", o.shown.curve, "the same as a picture (SVG)");
  app.add_flag("--compare", o.compares, "time a step as imperative calls, too");
  CLI11_PARSE(app, argc, argv);
  o.shown.label = o.net;
  const bool isResNet = o.net == "resnet";
  o.augments = isResNet;
  if (o.rate == 0)
    o.rate = isResNet ? 0.1 : 0.03;
  try {
    return o.net == "mlp" ? run<Perceptron>(o) : isResNet ? run<SmallResNet>(o) : run<LeNet>(o);
  } catch (const Error &error) {
    std::fprintf(stderr, "train_images: %s\n", error.what());
    return 2;
  }
}
