// Serial code, parallel schedules: what a machine with two accelerators would do, on a computer that has none; or what
// it does, where it is there.
//
//   two_devices [MACHINE] [N] [--figures FILE]     sim:2gpu-pcie3 and 4000, if not given
//
// Products of N x N are planned at that size and run there, and compared with the host's at 1/16 of it. On a simulated
// machine they run in time alone, which is virtual: by the machine's figures (docs/machines.md), the same on every
// computer. "cuda" is a computer with two cards, "cuda:0,0" one card as two accelerators, which then share its speed.
#include "machine_runs.h"

#include <tressel/tressel.h>

#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>

using namespace tressel;
using namespace machine_runs;

namespace {

constexpr int kProducts = 50;

/// A chain of products on one device: each needs the one before, so none can be left out.
std::vector<Tensor> products(Tensor x, const Arg &w, Device device) {
  return with_device(device, [&] {
    std::vector<Tensor> results;
    for (int i = 0; i < kProducts; ++i)
      results.push_back(x = matmul(x, w));
    return results;
  });
}

/// x and w lie on the device already: a Variable that a device reads is copied there when it changes, and not at each
/// call; the number makes x another one at each.
struct Side {
  Side(const std::string &machine, int64_t n, int i)
      : device(gpu(i)), x(operand(machine, {n, n}, 1), "x" + std::to_string(i)),
        w(operand(machine, {n, n}, 2, 1.0 / std::sqrt(static_cast<double>(n))), "w" + std::to_string(i)) {}
  std::vector<Tensor> run(const Tensor &number) const {
    return products(with_device(device, [&] { return x + number; }), w, device);
  }
  Tensor total(const Tensor &number) const {
    return with_device(device, [&] { return sum(run(number).back()); });
  }
  Device device;
  Variable x, w;
};

std::ostream &column(std::ostream &out) { return out << std::fixed << std::setprecision(1) << std::setw(9); }

template <typename F> Prediction planned(const F &function) {
  function.compile(TensorSpec{f32, {}});
  return function.explain();
}

/// A = 2; C = A + 2; B = A + 1; D = B * C: B and C depend on A alone.
void smallGraph() {
  auto f = jit([](Tensor two) {
    Tensor a = two;
    Tensor c = with_device(gpu(0), [&] { return a + 2.0; });
    Tensor b = with_device(gpu(1), [&] { return a + 1.0; });
    return b * c;
  }, {.name = "small"});
  std::cout << "\n1. A = 2; C = A + 2; B = A + 1; D = B * C, with C on gpu0 and B on gpu1: D = "
            << f(2.0f).item<float>() << "\n\n"
            << f.explain().drawing;
}

void twoDevices(const std::string &machine, int64_t n, Figures &figures) {
  const Side first(machine, n, 0), second(machine, n, 1);
  const auto one = jit([=](Tensor s) { return first.total(s); });
  const auto other = jit([=](Tensor s) { return second.total(s); });
  const auto together = jit([=](Tensor s) { return first.total(s) + second.total(s); });
  const Prediction both = planned(together);
  std::cout << "\n2. " << kProducts << " products of " << n << "x" << n << " on each of two devices, in ms\n"
            << "                        gpu0 alone  gpu1 alone   together\n"
            << "   planned              " << column << planned(one).step_seconds * 1e3 << column
            << planned(other).step_seconds * 1e3 << " " << column << both.step_seconds * 1e3 << "\n";
  const double a = milliseconds(machine, one, 0.0f), b = milliseconds(machine, other, 0.0f),
               t = milliseconds(machine, together, 0.0f);
  std::cout << "   " << std::left << std::setw(21) << word_of(machine) << std::right << column << a << column << b
            << " " << column << t << "\n"
            << "   published (two GPUs)     521.9     504.6     518.0\n\n"
            << both.drawing;
  figures.add("first_ms", a), figures.add("second_ms", b), figures.add("together_ms", t);
}

void copyBack(const std::string &machine, int64_t n, Figures &figures) {
  const Side side(machine, n, 0);
  auto alone = jit([=](Tensor s) { return side.total(s); });
  auto toHost = [](std::vector<Tensor> results) {
    for (Tensor &result : results)
      result = result.to(cpu());
    return results;
  };
  auto all = jit([=](Tensor s) { return toHost(side.run(s)); });
  const Prediction computed = planned(alone), together = planned(all);
  const double c = milliseconds(machine, alone, 0.0f), t = milliseconds(machine, all, 0.0f);
  // The copies alone: of results that lie on the device, to the same kind of memory.
  const std::vector<Tensor> there(kProducts, operand(machine, {n, n}, 3).to(gpu(0)));
  auto copies = jit(toHost);
  const double m = milliseconds(machine, copies, there);
  const double hidden = (c + m - t) / std::min(c, m);
  std::cout << "\n3. The same on one device, with all results copied to the host meanwhile, in ms\n"
            << "                        computing   copying  together   of what could be hidden was\n"
            << "   planned              " << column << computed.step_seconds * 1e3 << column
            << together.transfer_seconds * 1e3 << column << together.step_seconds * 1e3 << "   "
            << *together.overlap * 100 << "%\n"
            << "   " << std::left << std::setw(21) << word_of(machine) << std::right << column << c << column << m
            << column << t << "   " << hidden * 100 << "%\n"
            << "   published                562.7    2511.5    2654.7   75%\n\n"
            << together.drawing;
  all.draw_plan("copy-back.html");
  std::cout << "   drawn in copy-back.html\n";
  figures.add("compute_ms", c), figures.add("copies_ms", m), figures.add("overlapped_ms", t);
  figures.add("overlap", hidden), figures.add("planned_overlap", *together.overlap);
}

/// The numbers are those of the host alone, wherever they were made.
bool numbersAgree(const std::string &machine, int64_t n, Figures &figures) {
  Tensor x = rng::normal({n, n}, 1) * 0.1, w = rng::normal({n, n}, 2) * (1.0 / std::sqrt(static_cast<double>(n)));
  auto make = [&](bool placed) {
    return jit([placed](Tensor x, Tensor w) {
      std::vector<Tensor> a = products(x, w, placed ? gpu(0) : cpu()), b = products(x * 2.0, w, placed ? gpu(1) : cpu());
      return (a.back() + b.back()).to(cpu());
    });
  };
  use_machine("cpu");
  const Tensor expected = make(false)(x, w);
  use_machine(machine);
  auto f = make(true);
  const double before = machine_seconds();
  const Tensor got = f(x, w);
  const double difference = max(abs(got - expected)).item<float>();
  std::cout << "\n4. Computed at " << n << "x" << n << ": largest difference from the host alone " << std::defaultfloat
            << difference << "; " << std::fixed << std::setprecision(3) << (machine_seconds() - before) * 1e3
            << (is_simulated(machine) ? " ms of virtual time, planned " : " ms with compiling, planned ")
            << f.explain().step_seconds * 1e3 << "\n";
  figures.add("largest_difference", difference);
  return difference <= 1e-4;
}

} // namespace

int main(int argc, char **argv) try {
  Figures figures(argc, argv);
  const std::string machine = argc > 1 ? argv[1] : "sim:2gpu-pcie3";
  const int64_t n = argc > 2 ? std::atoll(argv[2]) : 4000;
  if (n < 16) {
    std::cerr << "usage: two_devices [MACHINE] [N] [--figures FILE], N at least 16\n";
    return 2;
  }
  use_machine(machine);
  print_title(machine);
  smallGraph();
  use_at_full_size(machine);
  twoDevices(machine, n, figures);
  copyBack(machine, n, figures);
  return numbersAgree(machine, std::max<int64_t>(16, n / 16), figures) ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "two_devices: " << e.what() << "\n";
  return 1;
}
