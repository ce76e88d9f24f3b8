// Ops that do not depend on each other: chains side by side, each a branch. Several lanes run them at once; one lane
// runs them in order, each split over the threads of the pool or not.
//
//   branches [ROUNDS] [--timeline FILE]     40, if not given
//
// How many lanes and threads there are is settled when a program starts, so this one starts itself once for each way,
// with TRESSEL_LANES and TRESSEL_NUM_THREADS set.
#include "draw_timeline.h"
#include "timing.h"

#include <tressel/tressel.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <sstream>

using namespace tressel;

namespace {

constexpr std::array<int64_t, 4> kSizes = {16384, 32768, 65536, 131072};
constexpr int kBranches = 2, kDepth = 16;

/// Microseconds an op, in branches of so many elements; NaN when a result is wrong.
double run(int64_t elements, int rounds) {
  const Tensor x = full({elements}, 1);
  bool right = true;
  const double seconds = timing::median_seconds(rounds, [&] {
    std::array<Tensor, kBranches> branch;
    branch.fill(x);
    for (int d = 0; d < kDepth; ++d)
      for (Tensor &b : branch)
        b = sqrt(b * 4.0f) - 1.0f; // 1 stays 1
    wait_all();
    for (const Tensor &b : branch)
      right &= b.ready();
  });
  Tensor b = x;
  for (int d = 0; d < kDepth; ++d)
    b = sqrt(b * 4.0f) - 1.0f;
  right &= min(b).item<float>() == 1 && max(b).item<float>() == 1;
  return right ? seconds / (kBranches * kDepth * 3) * 1e6 : std::nan("");
}

/// What the same program prints with these settings: a figure per size.
std::vector<double> started(const std::string &self, const std::string &settings, int rounds) {
  const std::string command = settings + " '" + self + "' --one " + std::to_string(rounds);
  std::vector<double> figures;
  if (FILE *pipe = popen(command.c_str(), "r")) {
    for (double figure; std::fscanf(pipe, "%lf", &figure) == 1;)
      figures.push_back(figure);
    pclose(pipe);
  }
  return figures;
}

} // namespace

int main(int argc, char **argv) try {
  const std::string timeline = timing::timeline_option(argc, argv);
  const bool one = argc > 1 && std::string(argv[1]) == "--one";
  const int rounds = argc > 1 + one ? std::atoi(argv[1 + one]) : 40;
  if (rounds < 1) {
    std::cerr << "usage: branches [ROUNDS] [--timeline FILE], at least 1\n";
    return 2;
  }
  if (one) {
    for (int64_t elements : kSizes)
      std::printf("%.9g\n", run(elements, rounds));
    return 0;
  }
  struct Way {
    const char *what, *settings;
    std::vector<double> figures;
  } ways[] = {{"several lanes", "TRESSEL_LANES=2", {}},
              {"one lane, ops split over the pool", "TRESSEL_LANES=1", {}},
              {"one lane, one thread", "TRESSEL_LANES=1 TRESSEL_NUM_THREADS=1", {}}};
  std::cout << kBranches << " branches of " << kDepth * 3 << " ops, us an op\n   elements                          ";
  for (int64_t elements : kSizes)
    std::cout << std::setw(10) << elements;
  std::cout << "\n";
  for (Way &way : ways) {
    way.figures = started(argv[0], way.settings, rounds);
    std::cout << "   " << std::left << std::setw(34) << way.what << std::right << std::fixed << std::setprecision(2);
    for (double figure : way.figures)
      std::cout << std::setw(10) << figure;
    std::cout << "\n";
    if (way.figures.size() != kSizes.size() ||
        std::ranges::any_of(way.figures, [](double f) { return std::isnan(f); })) {
      std::cout << "   WRONG: no figure for each size, or results that differ\n";
      return 1;
    }
  }
  std::cout << "   several against the better other  ";
  for (size_t i = 0; i < kSizes.size(); ++i)
    std::cout << std::setw(10) << std::min(ways[1].figures[i], ways[2].figures[i]) / ways[0].figures[i];
  std::cout << "\n";
  timing::draw_timeline(timeline, [] {
    std::array<Tensor, kBranches> branch;
    branch.fill(full({kSizes[2]}, 1));
    for (int d = 0; d < 10; ++d)
      for (Tensor &b : branch)
        b = sqrt(b * 4.0f) - 1.0f;
    wait_all();
  });
  return 0;
} catch (const Error &e) {
  std::cerr << "branches: " << e.what() << "\n";
  return 1;
}
