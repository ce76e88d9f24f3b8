// Training over a processor and two accelerators: the two-layer perceptron whose step, written by hand, is a page of
// copies, forward and backward passes, sums of gradients and updates. Here it is written for one device; one option
// cuts its batch over both accelerators, and the compiler writes the page, which this program prints.
//
//   data_parallel [MACHINE] [BATCH]     sim:2gpu-pcie3 and 4096, if not given
//
// Times are virtual, by the machine's figures (docs/machines.md). docs/parallel.md has the page beside the hand-written
// one.
#include <tressel/tressel.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>

using namespace tressel;

namespace {

constexpr int64_t kIn = 784, kHidden = 1024, kClasses = 10;

nn::Sequential network(const std::vector<Device> &on) {
  nn::Sequential net{nn::Dense(kHidden, relu), nn::Dense(kClasses)};
  net.initialize({{f32, {1, kIn}}}, /*seed=*/1);
  if (!on.empty())
    net.on(on); // its weights lie there; without, they lie on the processor
  return net;
}

/// Serial code: it knows of no device.
struct Training {
  nn::Sequential net;
  optim::SGD opt{net.parameters(), {.lr = 0.1}};
  explicit Training(const std::vector<Device> &on = {}) : net(network(on)) {}
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
  const std::string machine = argc > 1 ? argv[1] : "sim:2gpu-pcie3";
  const int64_t batch = argc > 2 ? std::atoll(argv[2]) : 4096;
  const JitOptions serial{.name = "step"};
  const JitOptions parallel{
      .name = "step", .devices = {cpu(), gpu(0), gpu(1)}, .shard_axis = 0}; // all that is said of devices

  const std::vector<Device> both{gpu(0), gpu(1)};

  std::cout << "1. Losses of ten steps, 64 images each: the processor alone; with two accelerators, weights on the processor; weights on the accelerators\n" << std::fixed << std::setprecision(6);
  auto train = [](const std::string &where, const JitOptions &options, const std::vector<Device> &on = {}) {
    use_machine(where);
    const Training training(on);
    const auto step = training.step(options);
    std::vector<float> losses;
    for (uint64_t i = 0; i < 10; ++i) {
      const Tensor x = images(64, i);
      losses.push_back(step(x, labels(x)).item<float>());
    }
    return losses;
  };
  const std::vector<float> alone = train("cpu", serial), two = train(machine, parallel), there = train(machine, parallel, both);
  float largest = 0;
  for (size_t i = 0; i < alone.size(); ++i) {
    std::cout << "   " << std::setw(2) << i << "  " << alone[i] << "  " << two[i] << "  " << there[i] << "\n";
    largest = std::max({largest, std::abs(two[i] - alone[i]), std::abs(there[i] - alone[i])});
  }

  Training training;
  auto step = training.step(parallel);
  step.compile({f32, {batch, kIn}}, {i64, {batch}});
  const Prediction plan = step.explain();
  auto planned = [&](const std::vector<Device> &on, const JitOptions &options) {
    auto other = Training(on).step(options);
    other.compile({f32, {batch, kIn}}, {i64, {batch}});
    return other.explain().step_seconds * 1e3;
  };
  const JitOptions single{.name = "step", .devices = {cpu(), gpu(0)}};
  std::cout << "\n2. A step with " << batch << " images: planned " << std::setprecision(3) << plan.step_seconds * 1e3
            << " ms, with one accelerator " << planned({}, single) << " ms; with weights on both "
            << planned(both, parallel) << " ms, on the one " << planned({gpu(0)}, single)
            << " ms. Of what copies could hide, " << std::setprecision(1) << 100 * plan.overlap.value_or(0)
            << "% is hidden (weights on the processor)\n\n"
            << plan.drawing;
  step.draw_plan("data-parallel.html");
  std::cout << "   drawn in data-parallel.html\n\n3. The schedule that the compiler wrote: each command with what it "
               "reads and writes, its queue, and what of other queues it waits for\n\n";
  dump(step, "data-parallel", zeros({64, kIn}), zeros({64}, i64));
  printStep("data-parallel");
  return largest <= 1e-4f ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "data_parallel: " << e.what() << "\n";
  return 1;
}
