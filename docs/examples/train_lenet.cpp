// Trains LeNet-5 on Fashion-MNIST. A step is one program: forward, loss, gradient, and the update of the parameters in
// their own memory.
//
//   train_lenet [FOLDER] [--epochs N] [--steps N]      of the four files; Debian's package dataset-fashion-mnist has them
#include "lenet.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace tressel;

namespace {
struct Batch {
  Tensor x, label;
};

Batch batchOf(const data::Sample &s) { return {s.image, s.label}; }

double accuracy(const LeNet &net, data::Loader<Batch> &loader) {
  int64_t right = 0, images = 0;
  auto count = jit([net](Batch b) { return sum(argmax(net(b.x), -1) == b.label); });
  for (Batch b : loader.epoch(0)) {
    right += count(b).item<int64_t>();
    images += b.label.size();
  }
  return static_cast<double>(right) / static_cast<double>(images);
}
} // namespace

int main(int argc, char **argv) {
  std::string dir = "/usr/share/datasets/fashion-mnist";
  int64_t epochs = 5, steps = -1;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--epochs" && i + 1 < argc)
      epochs = std::atoll(argv[++i]);
    else if (arg == "--steps" && i + 1 < argc)
      steps = std::atoll(argv[++i]);
    else
      dir = arg;
  }
  const data::LoaderOptions options{.batch = 64, .shuffle = true, .drop_last = true, .workers = 1, .seed = 1};
  data::Loader<Batch> train(data::map(data::fashion_mnist(dir, true), [](data::Sample s, data::Rng &) { return batchOf(s); }), options);
  data::Loader<Batch> test(data::map(data::fashion_mnist(dir, false), [](data::Sample s, data::Rng &) { return batchOf(s); }),
                           {.batch = 500});

  LeNet net;
  net.initialize({{f32, {64, 1, 28, 28}}}, /*seed=*/1);
  // Momentum: a Variable beside each parameter.
  std::vector<Variable> velocities;
  for (const auto &[name, parameter] : net.parameters())
    velocities.emplace_back(zeros(parameter.shape()), name + ".velocity");
  Variable rate(full({}, 0.02), "rate");

  auto step = jit([net, velocities, rate](Batch b) {
    auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(b.x), b.label); }, net.parameters());
    size_t i = 0;
    for (const auto &[name, parameter] : net.parameters()) {
      const Tensor velocity = velocities[i].value() * 0.9 + grads[i];
      velocities[i++].assign(velocity);
      parameter.assign(parameter.value() - velocity * rate.value());
    }
    return loss;
  });

  const auto begin = std::chrono::steady_clock::now();
  int64_t done = 0;
  for (int64_t e = 0; e < epochs && done != steps; ++e) {
    rate.assign(full({}, 0.02 * static_cast<double>(epochs - e) / static_cast<double>(epochs)));
    Tensor total = full({}, 0.0);
    int64_t batches = 0;
    for (Batch b : train.epoch(e)) {
      total = total + step(b);
      ++batches;
      if (++done == steps)
        break;
    }
    const double loss = total.item<float>() / static_cast<double>(batches); // waits for the steps
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("epoch %lld: loss %.4f, accuracy %.4f, %.1f s\n", static_cast<long long>(e + 1), loss, accuracy(net, test), seconds);
  }
  const double last = accuracy(net, test);
  std::printf("%lld steps, accuracy %.4f, %llu trace\n", static_cast<long long>(done), last,
              static_cast<unsigned long long>(step.stats().traces));
  return step.stats().traces == 1 && last > (steps < 0 ? 0.85 : 0.4) ? 0 : 1;
}
