// A network over a processor and two accelerators: the two-layer perceptron whose forward pass, written by hand, is a
// page of copies, products and waits. Here the user writes the network, the loss, and which half of a batch goes where;
// the compiler writes the page, and this program prints it.
//
//   split_network [MACHINE] [WIDTH] [--figures FILE]     sim:2gpu-pcie3 and 4096, if not given
//
// Layers of WIDTH over a batch of as many are planned and drawn; layers of 1/64 of it are computed and compared with
// the processor alone, and the page is theirs: at full size the compiler cuts the first copies and products into blocks
// of rows. Times are virtual: by the machine's figures (docs/machines.md), the same on every computer.
#include "machine_runs.h"

#include <tressel/tressel.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>

using namespace tressel;
using namespace machine_runs;

namespace {

constexpr int64_t kClasses = 10;

struct Out {
  Tensor loss, logits;
};

nn::Sequential network(int64_t width) {
  nn::Sequential net{nn::Dense(width, relu), nn::Dense(kClasses)};
  net.initialize({{f32, {1, width}}}, /*seed=*/1);
  return net;
}

/// Each accelerator has the weights and gets its half of the batch; the processor gets their logits.
auto jitted(const nn::Sequential &net, std::array<Device, 2> devices) {
  return jit(
      [=](Tensor x, Tensor label) {
        std::vector<Arg> logits;
        const int64_t rows = x.shape()[0];
        const std::vector<Tensor> halves = split(x, {rows / 2, rows - rows / 2});
        for (size_t i = 0; i < 2; ++i)
          logits.push_back(with_device(devices[i], [&] { return net(halves[i]); }));
        return with_device(cpu(), [&] {
          const Tensor all = concat(logits, 0);
          return Out{softmax_cross_entropy(all, label), all};
        });
      },
      {.name = "perceptron"});
}

void plan(const std::string &machine, int64_t width) {
  auto f = jitted(network(width), {gpu(0), gpu(1)});
  f.compile({f32, {width, width}}, {i64, {width}});
  const Prediction p = f.explain();
  const nn::Sequential net = network(width);
  auto one = jit([net](Tensor x, Tensor label) {
    return softmax_cross_entropy(with_device(gpu(0), [&] { return net(x); }), label);
  });
  one.compile({f32, {width, width}}, {i64, {width}});
  const double alone = one.explain().step_seconds;
  std::cout << "\n1. A batch of " << width << " through layers of " << width << " and " << kClasses << ": planned "
            << std::fixed << std::setprecision(2) << p.step_seconds * 1e3 << " ms, " << word_of(machine) << " "
            << milliseconds(machine, f, zeros({width, width}), zeros({width}, i64))
            << " ms, with one accelerator alone " << alone * 1e3 << " ms\n\n"
            << p.drawing;
  f.draw_plan("split-network.html");
  std::cout << "   drawn in split-network.html\n";
}

/// As the compiler has dumped them (docs/debugging.md): what is part of something else, then the commands, without the
/// line of each.
void printCommands(const std::filesystem::path &folder) {
  std::ifstream file(folder / "schedule.mlir");
  bool begun = false;
  for (std::string line; std::getline(file, line);) {
    begun |= line.find("sched.prepare") != std::string::npos;
    if ((begun || line.find("sched.view") != std::string::npos) && line.find("sched.") != std::string::npos)
      std::cout << line.substr(0, line.find(" loc(")) << "\n";
  }
}

bool compute(Figures &figures, int64_t width, const std::string &machine) {
  const nn::Sequential net = network(width);
  const Tensor x = rng::normal({width, width}, 1);
  const Tensor label = cast(remainder(arange(width), kClasses), i64);
  use_machine("cpu");
  const Out expected = jitted(net, {cpu(), cpu()})(x, label);
  use_machine(machine);
  auto f = jitted(net, {gpu(0), gpu(1)});
  f(x, label); // the first call brings the weights there
  wait_all();
  const double before = machine_seconds();
  const Out got = f(x, label);
  const double difference = max(abs(got.logits - expected.logits)).item<float>();
  std::cout << "\n2. Computed with " << width << ": loss " << std::setprecision(4) << got.loss.item<float>()
            << ", on the processor alone " << expected.loss.item<float>() << ", largest difference of logits "
            << std::defaultfloat << difference << "; " << std::fixed << std::setprecision(3)
            << (machine_seconds() - before) * 1e3
            << (is_simulated(machine) ? " ms of virtual time, planned " : " ms, planned ")
            << f.explain().step_seconds * 1e3
            << "\n\n3. What nobody had to write: when the weights change, and in each call, each command with what it "
               "reads and writes, its queue, and what of other queues it waits for\n\n";
  dump(f, "split-network", x, label);
  printCommands("split-network");
  figures.add("largest_difference", difference);
  return difference <= 1e-5;
}

} // namespace

int main(int argc, char **argv) try {
  Figures figures(argc, argv);
  const std::string machine = argc > 1 ? argv[1] : "sim:2gpu-pcie3";
  const int64_t width = argc > 2 ? std::atoll(argv[2]) : 4096;
  if (width < 64 || width % 2) {
    std::cerr << "usage: split_network [MACHINE] [WIDTH], WIDTH even and at least 64\n";
    return 2;
  }
  use_at_full_size(machine);
  print_title(machine);
  plan(machine, width);
  return compute(figures, std::max<int64_t>(16, width / 64 / 2 * 2), machine) ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "split_network: " << e.what() << "\n";
  return 1;
}
