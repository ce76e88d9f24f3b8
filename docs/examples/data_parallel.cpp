// Training over a processor and two accelerators: the two-layer perceptron whose step, written by hand, is a page of
// copies, forward and backward passes, sums of gradients and updates. Here it is written for one device; one option
// cuts its batch over both accelerators, and the compiler writes the page, which this program prints.
//
//   data_parallel [MACHINE] [BATCH] [--figures FILE]     sim:2gpu-pcie3 and 4096, if not given
//
// Times are virtual, by the machine's figures (docs/machines.md). docs/parallel.md has the page beside the hand-written
// one.
#include "machine_runs.h"

#include <tressel/tressel.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>

using namespace tressel;

namespace {

constexpr int64_t kIn = 784, kHidden = 1024, kClasses = 10;

enum class Weights : uint8_t { OnProcessor, OnAll, ByLayer };

nn::Sequential network(Weights weights, const std::vector<Device> &accelerators) {
  nn::Sequential net{nn::Dense(kHidden, relu), nn::Dense(kClasses)};
  net.initialize({{f32, {1, kIn}}}, /*seed=*/1);
  if (weights == Weights::OnAll)
    net.on(accelerators);
  else if (weights == Weights::ByLayer) // each layer is a stage of a pipeline
    for (int layer = 0; layer < 2; ++layer)
      net[std::to_string(layer)].stage(layer, {accelerators.at(static_cast<size_t>(layer))});
  return net;
}

/// Serial code: it knows of no device.
struct Training {
  nn::Sequential net;
  optim::SGD opt{net.parameters(), {.lr = 0.1}};
  explicit Training(Weights weights = Weights::OnProcessor, const std::vector<Device> &accelerators = {})
      : net(network(weights, accelerators)) {}
  auto step(JitOptions options) const {
    return jit(
        [net = net, opt = opt](Tensor x, Tensor label) {
          auto [loss, grads] = value_and_grad([&] { return softmax_cross_entropy(net(x), label); }, net.parameters());
          opt.update(grads);
          return loss;
        },
        options);
  }
};

Tensor images(int64_t batch, uint64_t seed) { return rng::normal({batch, kIn}, seed); }
Tensor labels(const Tensor &x) { return argmax(slice(x, {0, 0}, {x.shape()[0], kClasses}), 1); } // something to learn

/// A rank of many, each a process of its own, and how large a batch has to be for the exchange of gradients to hide
/// behind it.
void printManyRanks() {
  auto predicted = [](const std::string &preset, int ranks, int64_t each) {
    use_machine("sim:" + preset + ":" + std::to_string(ranks), {.computes = false});
    const auto step = Training().step({.name = "step"});
    return step.explain_ranks({.mesh = {{"data", ranks}}}, {{f32, {each * ranks, kIn}}, {i64, {each * ranks}}});
  };
  std::cout << "\n4. Many accelerators, each with 4096 images, weights on all: predicted step in ms, and the share of "
               "one's speed that each keeps\n"
            << "   accelerators   NVLink, 8 a host (dgx-h100)   10 Gbit/s Ethernet (cluster-10gbe)\n";
  const double alone = predicted("dgx-h100", 1, 4096).step_seconds,
               apart = predicted("cluster-10gbe", 1, 4096).step_seconds;
  for (int ranks : {1, 2, 8, 64, 1024}) {
    const double near = predicted("dgx-h100", ranks, 4096).step_seconds,
                 far = predicted("cluster-10gbe", ranks, 4096).step_seconds;
    std::cout << "   " << std::setw(12) << ranks << std::setprecision(3) << std::setw(11) << near * 1e3 << std::setw(8)
              << alone / near << std::setw(16) << far * 1e3 << std::setw(8) << apart / far << "\n";
  }
  // From which batch on the step of one of 8 takes at most 1.05 times as long as that of one alone.
  int64_t images = 1024;
  constexpr int64_t kMost = 1 << 19;
  auto hides = [&] {
    return predicted("cluster-10gbe", 8, images).step_seconds <=
           1.05 * predicted("cluster-10gbe", 1, images).step_seconds;
  };
  while (images < kMost && !hides())
    images *= 2;
  if (hides())
    std::cout << "   On 8 over Ethernet the exchange hides behind computation from " << images
              << " images an accelerator on (95% of one's speed)\n";
  else
    std::cout << "   On 8 over Ethernet the exchange does not hide with " << images << " images an accelerator\n";
  std::cout << "\n";
  use_machine("sim:dgx-h100", {.computes = false});
  std::cout << "5. Ways to split 8192 images over 8 accelerators\n\n"
            << Training().step({.name = "step"}).explain_parallel(8, {{f32, {8192, kIn}}, {i64, {8192}}});
}

/// The commands of a step as the compiler has dumped them (docs/debugging.md), without the line of each.
void printStep(const std::filesystem::path &folder) {
  std::ifstream file(folder / "schedule.mlir");
  bool begun = false;
  for (std::string line; std::getline(file, line);) {
    begun |= line.find("sched.step") != std::string::npos;
    if (begun && line.find("sched.") != std::string::npos)
      std::cout << line.substr(0, line.find(" loc(")) << "\n";
  }
}

} // namespace

int main(int argc, char **argv) try {
  machine_runs::Figures figures(argc, argv);
  const std::string machine = argc > 1 ? argv[1] : "sim:2gpu-pcie3";
  const int64_t batch = argc > 2 ? std::atoll(argv[2]) : 4096;
  const JitOptions serial{.name = "step"};
  const JitOptions parallel{
      .name = "step", .devices = {cpu(), gpu(0), gpu(1)}, .shard_axis = 0}; // all that is said of devices
  const JitOptions pipelined{
      .name = "step", .devices = parallel.devices, .pipeline = Pipeline{.micro_batches = 4, .size = 2}};

  const std::vector<Device> both{gpu(0), gpu(1)};

  std::cout << "1. Losses of ten steps, 64 images each: the processor alone; with two accelerators, weights on the "
               "processor; weights on the accelerators; "
               "a layer on each, in four micro-batches\n"
            << std::fixed << std::setprecision(6);
  auto train = [&](const std::string &where, const JitOptions &options, Weights weights = Weights::OnProcessor) {
    use_machine(where);
    const Training training(weights, both);
    const auto step = training.step(options);
    std::vector<float> losses;
    for (uint64_t i = 0; i < 10; ++i) {
      const Tensor x = images(64, i);
      losses.push_back(step(x, labels(x)).item<float>());
    }
    return losses;
  };
  const std::vector<float> alone = train("cpu", serial), two = train(machine, parallel),
                           there = train(machine, parallel, Weights::OnAll),
                           apart = train(machine, pipelined, Weights::ByLayer);
  float largest = 0;
  for (size_t i = 0; i < alone.size(); ++i) {
    std::cout << "   " << std::setw(2) << i << "  " << alone[i] << "  " << two[i] << "  " << there[i] << "  "
              << apart[i] << "\n";
    largest =
        std::max({largest, std::abs(two[i] - alone[i]), std::abs(there[i] - alone[i]), std::abs(apart[i] - alone[i])});
  }

  figures.add("largest_difference", largest);

  Training training;
  auto step = training.step(parallel);
  step.compile({f32, {batch, kIn}}, {i64, {batch}});
  const Prediction plan = step.explain();
  auto planned = [&](Weights weights, const JitOptions &options, const std::vector<Device> &accelerators = {}) {
    auto other = Training(weights, accelerators).step(options);
    other.compile({f32, {batch, kIn}}, {i64, {batch}});
    return other.explain().step_seconds * 1e3;
  };
  const JitOptions single{.name = "step", .devices = {cpu(), gpu(0)}};
  std::cout << "\n2. A step with " << batch << " images: planned " << std::setprecision(3) << plan.step_seconds * 1e3
            << " ms, with one accelerator " << planned(Weights::OnProcessor, single) << " ms; with weights on both "
            << planned(Weights::OnAll, parallel, both) << " ms, on the one "
            << planned(Weights::OnAll, single, {gpu(0)}) << " ms, a layer on each "
            << planned(Weights::ByLayer, pipelined, both) << " ms. Of what copies could hide, " << std::setprecision(1)
            << 100 * plan.overlap.value_or(0) << "% is hidden (weights on the processor)\n\n"
            << plan.drawing;
  step.draw_plan("data-parallel.html");
  std::cout << "   drawn in data-parallel.html\n\n3. The schedule that the compiler wrote: each command with what it "
               "reads and writes, its queue, and what of other queues it waits for\n\n";
  dump(step, "data-parallel", zeros({64, kIn}), zeros({64}, i64));
  printStep("data-parallel");
  printManyRanks();
  return largest <= 1e-4f ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "data_parallel: " << e.what() << "\n";
  return 1;
}
