// What a number on the host costs in a loop: item(), to_vector() and printing wait for what they show, and meanwhile
// the caller cannot do what it has to do itself, here to make the next targets. The same loop of gradient steps, with
// its loss told at each step, and once at the end; then without work of the caller's own, where a wait costs least.
//
//   conversions [STEPS] [ROWS] [--timeline FILE]     40 and 8192, if not given
#include "draw_timeline.h"
#include "timing.h"

#include <tressel/tressel.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <sstream>

using namespace tressel;

namespace {

constexpr int64_t kColumns = 64;

/// Gradient descent on |x w - y|^2. `see` gets each step's loss. If `busy`, the caller computes targets for each step.
template <typename See> Tensor train(const Tensor &x, const Tensor &y, int64_t steps, bool busy, See see) {
  const int64_t rows = x.shape()[0];
  Tensor w = zeros({kColumns, 1});
  const double rate = 0.5 / static_cast<double>(rows);
  std::vector<float> noise(static_cast<size_t>(rows));
  for (int64_t i = 0; i < steps; ++i) {
    Tensor target = y;
    if (busy) {
      for (size_t k = 0; k < noise.size(); ++k)
        noise[k] = 0.1f * std::sin(static_cast<float>(k) + static_cast<float>(i));
      target = y + from_span(noise, {rows, 1});
    }
    const Tensor off = matmul(x, w) - target;
    w = w - matmul(transpose(x, {1, 0}), off) * rate;
    see(sum(off * off));
  }
  return w;
}

} // namespace

int main(int argc, char **argv) try {
  const std::string timeline = timing::timeline_option(argc, argv);
  const int64_t steps = argc > 1 ? std::atoll(argv[1]) : 40, rows = argc > 2 ? std::atoll(argv[2]) : 8192;
  if (steps < 1 || rows < kColumns) {
    std::cerr << "usage: conversions [STEPS] [ROWS] [--timeline FILE], STEPS at least 1, ROWS at least " << kColumns
              << "\n";
    return 2;
  }
  const Tensor x = rng::normal({rows, kColumns}, 1);
  const Tensor y = matmul(x, rng::normal({kColumns, 1}, 2));
  y.wait();

  struct Way {
    const char *what;
    std::function<double(bool)> run; // the sum of all losses
  };
  std::ostringstream printed;
  const Way ways[] = {
      {"added up in a tensor, one item() at the end",
       [&](bool busy) {
         Tensor total = zeros({});
         train(x, y, steps, busy, [&](const Tensor &loss) { total = total + loss; });
         return total.item<double>();
       }},
      {"kept as tensors, item() of all at the end",
       [&](bool busy) {
         std::vector<Tensor> losses;
         train(x, y, steps, busy, [&](const Tensor &loss) { losses.push_back(loss); });
         double total = 0;
         for (const Tensor &loss : losses)
           total += loss.item<double>();
         return total;
       }},
      {"item() at each step",
       [&](bool busy) {
         double total = 0;
         train(x, y, steps, busy, [&](const Tensor &loss) { total += loss.item<double>(); });
         return total;
       }},
      {"to_vector() at each step",
       [&](bool busy) {
         double total = 0;
         train(x, y, steps, busy, [&](const Tensor &loss) { total += loss.to_vector<double>()[0]; });
         return total;
       }},
      {"printed at each step, into a string",
       [&](bool busy) {
         double total = 0;
         train(x, y, steps, busy, [&](const Tensor &loss) {
           printed.str("");
           printed << loss;
           total += loss.item<double>();
         });
         return total;
       }},
  };
  std::cout << steps << " steps on " << rows << "x" << kColumns
            << ", us a step                caller busy too        caller idle\n";
  bool right = true;
  double expected[2] = {}, first[2] = {};
  for (const Way &way : ways) {
    std::cout << "   " << std::left << std::setw(46) << way.what << std::right << std::fixed << std::setprecision(2);
    for (const bool busy : {true, false}) {
      double total = 0;
      const double seconds = timing::median_seconds(5, [&] { total = way.run(busy); });
      if (&way == ways)
        expected[busy] = total, first[busy] = seconds;
      right &= std::abs(total - expected[busy]) <= 1e-4 * expected[busy]; // a sum in float against one in double
      std::cout << std::setw(10) << seconds / static_cast<double>(steps) * 1e6 << std::setw(8) << seconds / first[busy]
                << "x";
    }
    std::cout << "\n";
  }
  if (!right)
    std::cout << "   WRONG: the losses differ\n";
  timing::draw_timeline(timeline, [&] {
    double total = 0;
    train(x, y, 8, true, [&](const Tensor &loss) { total += loss.item<double>(); });
    Tensor sum = zeros({});
    train(x, y, 8, true, [&](const Tensor &loss) { sum = sum + loss; });
    sum.item<double>();
  });
  return right ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "conversions: " << e.what() << "\n";
  return 1;
}
