// A recurrence, whose every step needs the one before: called op by op, and as one compiled program that carries the
// value through its loop. What neither can do is wait less; what the program saves is the frontend, once per op.
//
//   recurrence [STEPS] [--timeline FILE]     2000, if not given
//
// Both end at the values that plain C++ in double precision gives.
#include "draw_timeline.h"
#include "timing.h"

#include <tressel/tressel.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>

using namespace tressel;

namespace {

constexpr int64_t kSize = 16;

/// Numbers that are floats exactly, so that double precision starts from the same.
std::vector<double> numbers(size_t count, double scale, size_t step) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(scale * (static_cast<double>(i * step % 17) / 8 - 1));
  return values;
}
Tensor tensorOf(const std::vector<double> &values, const Shape &shape) {
  return from_span(std::vector<float>(values.begin(), values.end()), shape);
}

/// Runs `step` so often from zero, both ways; compares with `expected`.
bool compare(const char *what, int64_t steps, const std::function<Tensor(Tensor)> &step,
             const std::vector<double> &expected) {
  const Tensor start = zeros({kSize});
  const auto program = jit(
      [=](Tensor h) {
        return for_loop(
            steps, [&](Tensor, Tensor h) { return step(h); }, h);
      },
      {.name = "recurrence"});
  Tensor imperative, compiled;
  const double slow = timing::median_seconds(5, [&] {
    imperative = start;
    for (int64_t i = 0; i < steps; ++i)
      imperative = step(imperative);
    imperative.wait();
  });
  const double fast = timing::median_seconds(5, [&] { (compiled = program(start)).wait(); });
  double difference = 0;
  for (const Tensor &t : {imperative, compiled}) {
    const auto got = t.to_vector<double>();
    for (size_t i = 0; i < got.size(); ++i)
      difference = std::max(difference, std::abs(got[i] - expected[i]));
  }
  std::cout << std::left << std::setw(26) << what << std::right << std::fixed << std::setprecision(0) << std::setw(14)
            << slow / static_cast<double>(steps) * 1e9 << std::setw(14) << fast / static_cast<double>(steps) * 1e9
            << std::setprecision(1) << std::setw(12) << slow / fast << std::scientific << std::setw(22) << difference
            << "\n";
  return difference < 1e-4;
}

} // namespace

int main(int argc, char **argv) try {
  const std::string timeline = timing::timeline_option(argc, argv);
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 2000;
  if (steps < 1) {
    std::cerr << "usage: recurrence [STEPS] [--timeline FILE], at least 1\n";
    return 2;
  }
  const auto a = numbers(kSize, 0.5, 3), b = numbers(kSize, 1, 5), w = numbers(kSize * kSize, 0.05, 7);
  const Tensor ta = tensorOf(a, {kSize}), tb = tensorOf(b, {kSize}), tw = tensorOf(w, {kSize, kSize});

  std::vector<double> line(kSize, 0), net(kSize, 0);
  for (int64_t s = 0; s < steps; ++s) {
    std::vector<double> next(kSize);
    for (size_t i = 0; i < kSize; ++i) {
      line[i] = line[i] * a[i] + b[i];
      double sum = b[i];
      for (size_t k = 0; k < kSize; ++k)
        sum += w[i * kSize + k] * net[k];
      next[i] = std::tanh(sum);
    }
    net = next;
  }
  std::cout << steps << " steps over " << kSize << " elements         ns a step: one by one      compiled   times as "
            << "fast   off from C++ doubles\n";
  bool right = compare(
      "x = x * a + b", steps, [=](Tensor x) { return x * ta + tb; }, line);
  right &= compare(
      "h = tanh(W h + u)", steps, [=](Tensor h) { return tanh(matmul(tw, h) + tb); }, net);

  const auto program = jit([=](Tensor x) {
    return for_loop(
        40, [&](Tensor, Tensor x) { return x * ta + tb; }, x);
  });
  timing::draw_timeline(timeline, [&] {
    Tensor x = zeros({kSize});
    for (int s = 0; s < 40; ++s)
      x = x * ta + tb;
    x.wait();
    program(zeros({kSize})).wait();
  });
  return right ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "recurrence: " << e.what() << "\n";
  return 1;
}
