// Rows of steps of training over the accelerators of simulated machines, in virtual time: `parallel-bench ROW`.
#include "Bench.h"
#include "Models.h"
#include "Values.h"
#include "docs/examples/text_models.h"

#include <tressel/tressel.h>

#include <cstdlib>
#include <iostream>

using namespace tressel;

namespace {

struct Step {
  double seconds = 0;
  Prediction plan;
};

/// A step of SGD with momentum; weights and momentum lie on all accelerators. Its second call, by the machine's clock.
template <typename Net, typename Loss>
Step stepOf(const std::string &machine, Net net, Loss loss, int ranks, const Tensor &x, const Tensor &y) {
  use_machine(machine, {.computes = false});
  std::vector<Device> devices;
  for (int i = 0; i < ranks; ++i)
    devices.push_back(gpu(i));
  net.on(devices);
  const optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  JitOptions options{.name = "step", .devices = devices};
  options.devices.push_back(cpu());
  if (ranks > 1)
    options.shard_axis = 0;
  const auto step = jit(
      [=](Tensor images, Tensor labels) {
        auto [value, grads] = value_and_grad([&] { return loss(net, images, labels); }, net.parameters());
        opt.update(grads);
        return value;
      },
      options);
  step(x, y).wait();
  const double before = machine_seconds();
  step(x, y).wait();
  Step measured{machine_seconds() - before, step.explain()};
  if (std::getenv("TRESSEL_BENCH_VERBOSE"))
    std::cerr << ranks << " accelerators: " << measured.seconds * 1e3 << " ms, planned " << measured.plan.step_seconds * 1e3 << "\n" << measured.plan.text;
  return measured;
}

/// ResNet-18, 32 images of 224 x 224 an accelerator.
Step resnet(const std::string &machine, int ranks) {
  nn::Sequential net = bench::modelNamed("resnet18").make();
  net.initialize({{f32, {1, 3, 224, 224}}}, 1);
  const int64_t images = 32 * ranks;
  return stepOf(machine, net, [](const nn::Sequential &n, Tensor x, Tensor y) { return softmax_cross_entropy(n(x), y); }, ranks,
                zeros({images, 3, 224, 224}), zeros({images}, i64));
}

/// A decoder of 12 layers of 768, 8 texts of 512 tokens an accelerator.
Step transformer(const std::string &machine, int ranks) {
  TextTransformer net({.vocabulary = 256, .context = 512, .width = 768, .layers = 12, .heads = 12});
  net.initialize({{i64, {1, 512}}}, 1);
  const int64_t texts = 8 * ranks;
  return stepOf(machine, net, [](const TextTransformer &n, Tensor x, Tensor y) { return next_token_loss(n(x), y); }, ranks, zeros({texts, 512}, i64),
                zeros({texts, 512}, i64));
}

} // namespace

int main(int argc, char **argv) {
  const std::string row = argc > 1 ? argv[1] : "", prefix = "sim.dp.efficiency.";
  std::string rest = row.starts_with(prefix) ? row.substr(prefix.size()) : "";
  const bool isText = rest.ends_with(".transformer");
  if (isText)
    rest.resize(rest.size() - std::string(".transformer").size());
  const int ranks = std::atoi(rest.c_str());
  if (ranks < 2 || std::to_string(ranks) != rest) {
    std::cerr << "usage: parallel-bench sim.dp.efficiency.N[.transformer]\n";
    return 2;
  }
  return bench::serve({{"tressel", [=] {
                          auto step = [&](int n) { return (isText ? transformer : resnet)("sim:dgx-h100", n).seconds; };
                          return step(1) / step(ranks);
                        }}});
}
