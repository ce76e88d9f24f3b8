// Trains LeNet-5 on Fashion-MNIST. A step is one program: forward, loss, gradient, and the update of the parameters in
// their own memory.
//
//   train_lenet [FOLDER] [--epochs N] [--steps N] [--seed N] [--state FILE] [--log FILE.jsonl] [--curve FILE.svg] [--compare]
//
// FOLDER has the four files of the data set; Debian's package dataset-fashion-mnist installs them. With --state, the training is
// saved to FILE after each epoch, and goes on from it where it is there. --compare times a step as imperative calls beside the
// compiled one.
#include "lenet.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

using namespace tressel;

namespace {
struct Batch {
  Tensor x, label;
};

data::Dataset<Batch> batches(const std::string &dir, bool train) {
  return data::map(data::fashion_mnist(dir, train), [](data::Sample s, data::Rng &) { return Batch{s.image, s.label}; });
}

Tensor trainOn(const LeNet &net, const optim::SGD &opt, const Batch &b) {
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
void compare(const Batch &batch) {
  LeNet net;
  net.initialize({{f32, {64, 1, 28, 28}}}, 1);
  const optim::SGD opt(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  auto step = jit([net, opt](Batch b) { return trainOn(net, opt, b); });
  const double imperative = timeOf([&] { return trainOn(net, opt, batch); }, 20), compiled = timeOf([&] { return step(batch); }, 50);
  std::printf("a step of 64 images: %.1f ms as imperative calls, %.1f ms compiled: %.1f times as fast\n", imperative, compiled, imperative / compiled);
}
} // namespace

int main(int argc, char **argv) {
  std::string dir = "/usr/share/datasets/fashion-mnist", path;
  ProgressOptions shown{.label = "lenet"};
  int64_t epochs = 5, most = -1;
  uint64_t seed = 1;
  bool compares = false;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    auto value = [&](const char *name) { return arg == name && i + 1 < argc ? argv[++i] : nullptr; };
    if (const char *text = value("--epochs"))
      epochs = std::atoll(text);
    else if (const char *text = value("--steps"))
      most = std::atoll(text);
    else if (const char *text = value("--seed"))
      seed = std::strtoull(text, nullptr, 10);
    else if (const char *text = value("--state"))
      path = text;
    else if (const char *text = value("--log"))
      shown.log = text;
    else if (const char *text = value("--curve"))
      shown.curve = text;
    else if (arg == "--compare")
      compares = true;
    else
      dir = arg;
  }
  data::Loader<Batch> train(batches(dir, true), {.batch = 64, .shuffle = true, .drop_last = true, .workers = 1, .seed = seed});
  data::Loader<Batch> test(batches(dir, false), {.batch = 500});
  if (compares)
    for (const Batch &b : data::Loader<Batch>(batches(dir, true), {.batch = 64}).epoch(0)) {
      compare(b);
      break;
    }

  LeNet net;
  net.initialize({{f32, {64, 1, 28, 28}}}, seed);
  const int64_t steps = epochs * train.num_batches();
  optim::SGD opt(net.parameters(), {.lr = optim::cosine(0.03, steps, 200), .momentum = 0.9, .weight_decay = 5e-4});
  auto step = jit([net, opt](Batch b) { return trainOn(net, opt, b); });
  metrics::Accuracy accuracy;
  auto look = jit([net, accuracy](Batch b) {
    const Tensor scores = net(b.x);
    accuracy.update(scores, b.label);
    return scores;
  });

  const TrainingState state{{"net", net}, {"opt", opt}, {"loader", train}};
  if (!path.empty() && std::filesystem::exists(path))
    load_state(path, state);
  shown.begin = opt.steps();
  Progress progress(most < 0 ? steps : shown.begin + most, shown);
  double last = 0;
  int64_t done = 0;
  for (int64_t e = train.position().epoch; e < epochs && done != most; ++e) {
    for (Batch b : train.epoch(e)) {
      progress.step({{"loss", step(b)}});
      if (++done == most)
        break;
    }
    accuracy.reset();
    for (Batch b : test.epoch(0))
      look(b);
    last = accuracy.value();
    progress.note({{"accuracy", last}});
    if (!path.empty())
      save_state(path, state);
  }
  progress.finish();
  std::printf("%lld steps, accuracy %.4f on 10,000 other images, %llu trace\n", static_cast<long long>(opt.steps()), last,
              static_cast<unsigned long long>(step.stats().traces));
  return step.stats().traces <= 1 && (done == 0 || last > (most < 0 ? 0.85 : 0.4)) ? 0 : 1;
}
