// Serial code, parallel schedules: what a machine with two accelerators would do, on a computer that has none.
//
//   two_devices [MACHINE] [N]     sim:2gpu-pcie3 and 4000, if not given
//
// Products of N x N are planned at that size and run there in time alone, and computed at 1/16 of it. Times are virtual:
// by the machine's figures (docs/machines.md), the same on every computer.
#include <tressel/tressel.h>

#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>

using namespace tressel;

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
  Side(int64_t n, int i)
      : device(gpu(i)), x(zeros({n, n}), "x" + std::to_string(i)), w(zeros({n, n}), "w" + std::to_string(i)) {}
  std::vector<Tensor> run(const Tensor &number) const {
    return products(with_device(device, [&] { return x + number; }), w, device);
  }
  Tensor total(const Tensor &number) const {
    return with_device(device, [&] { return sum(run(number).back()); });
  }
  Device device;
  Variable x, w;
};

std::ostream &milliseconds(std::ostream &out) { return out << std::fixed << std::setprecision(1) << std::setw(9); }

template <typename F> Prediction planned(const F &function) {
  function.compile(TensorSpec{f32, {}});
  return function.explain();
}

/// Milliseconds of a call by the devices' own clock, when its Variables are there.
template <typename F> double run(const F &function) {
  function(0.0f);
  wait_all();
  const double before = machine_seconds();
  function(0.0f);
  wait_all();
  return (machine_seconds() - before) * 1e3;
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

void twoDevices(int64_t n) {
  const Side first(n, 0), second(n, 1);
  const auto one = jit([=](Tensor s) { return first.total(s); });
  const auto other = jit([=](Tensor s) { return second.total(s); });
  const auto together = jit([=](Tensor s) { return first.total(s) + second.total(s); });
  const Prediction both = planned(together);
  std::cout << "\n2. " << kProducts << " products of " << n << "x" << n << " on each of two devices, in ms\n"
            << "                        gpu0 alone  gpu1 alone   together\n"
            << "   planned              " << milliseconds << planned(one).step_seconds * 1e3 << milliseconds
            << planned(other).step_seconds * 1e3 << " " << milliseconds << both.step_seconds * 1e3 << "\n"
            << "   simulated            " << milliseconds << run(one) << milliseconds << run(other) << " " << milliseconds
            << run(together) << "\n"
            << "   published (two GPUs)     521.9     504.6     518.0\n\n"
            << both.drawing;
}

void copyBack(int64_t n) {
  const Side side(n, 0);
  auto alone = jit([=](Tensor s) { return side.total(s); });
  const Prediction computed = planned(alone);
  auto all = jit([=](Tensor s) {
    std::vector<Tensor> results = side.run(s);
    for (Tensor &result : results)
      result = result.to(cpu());
    return results;
  });
  const Prediction together = planned(all);
  std::cout << "\n3. The same on one device, with all results copied to the host meanwhile, in ms\n"
            << "                         computing   together   of what could be hidden was\n"
            << "   planned              " << milliseconds << computed.step_seconds * 1e3 << " " << milliseconds
            << together.step_seconds * 1e3 << "   " << std::setprecision(1) << *together.overlap * 100 << "%\n"
            << "   simulated            " << milliseconds << run(alone) << milliseconds << run(all) << "\n"
            << "   published                562.7     2654.7   75%\n\n"
            << together.drawing;
  all.draw_plan("copy-back.html");
  std::cout << "   drawn in copy-back.html\n";
}

/// The numbers are those of the host alone, wherever they were made.
bool numbersAgree(int64_t n, const std::string &machine) {
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
  std::cout << "\n4. Computed at " << n << "x" << n << ": largest difference from the host alone " << std::defaultfloat << difference
            << "; " << std::fixed << std::setprecision(3) << (machine_seconds() - before) * 1e3 << " ms of virtual time, planned "
            << f.explain().step_seconds * 1e3 << "\n";
  return difference <= 1e-4;
}

} // namespace

int main(int argc, char **argv) try {
  const std::string machine = argc > 1 ? argv[1] : "sim:2gpu-pcie3";
  const int64_t n = argc > 2 ? std::atoll(argv[2]) : 4000;
  if (n < 16) {
    std::cerr << "usage: two_devices [MACHINE] [N], N at least 16\n";
    return 2;
  }
  use_machine(machine);
  std::cout << "On " << machine << ", which is not there: virtual times by its figures.\n";
  smallGraph();
  use_machine(machine, {.computes = false}); // at this size
  twoDevices(n);
  copyBack(n);
  return numbersAgree(std::max<int64_t>(16, n / 16), machine) ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "two_devices: " << e.what() << "\n";
  return 1;
}
