// Everything at once: a processor and two accelerators compute, and both directions of both links carry what they
// compute on, from code that does one thing after the other.
//
//   all_at_once [MACHINE] [N] [--figures FILE]     sim:2gpu-pcie3 and 1408, if not given
//
// Batches of rows are multiplied with an N x N matrix: those of the accelerators come from the host and go back, those
// of the host stay. On this machine a batch takes as long to compute as to copy when N is about 1400, so that nothing
// need wait for long. Planned at that size, which takes little memory, and computed at 1/16 of it. Times are virtual:
// by the machine's figures (docs/machines.md), the same on every computer.
#include "machine_runs.h"

#include <tressel/tressel.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>

using namespace tressel;
using namespace machine_runs;

namespace {

constexpr size_t kRounds = 24;
/// What comes in a round: a batch for each accelerator, and a smaller one for the host.
struct Round {
  std::array<Tensor, 2> far;
  Tensor near;
};
using Rounds = std::array<Round, kRounds>;

/// Rows of a batch, of N columns.
constexpr int64_t farRows(int64_t n) { return 4 * n; }
constexpr int64_t nearRows(int64_t n) { return n * 9 / 32; }

/// Serial code. Where results are made is said; when, and beside what, is not.
Rounds work(const Rounds &rounds, const Arg &w, bool placed) {
  Rounds results;
  for (size_t i = 0; i < kRounds; ++i) {
    for (int d = 0; d < 2; ++d)
      results[i].far[static_cast<size_t>(d)] = with_device(placed ? gpu(d) : cpu(), [&] {
                                                 return relu(matmul(rounds[i].far[static_cast<size_t>(d)], w));
                                               }).to(cpu());
    results[i].near = with_device(cpu(), [&] { return relu(matmul(rounds[i].near, w)); });
  }
  return results;
}

auto jitted(const Variable &w, bool placed) {
  return jit([=](Rounds rounds) { return work(rounds, w, placed); }, {.name = "all at once"});
}

std::vector<TensorSpec> specs(int64_t n) {
  std::vector<TensorSpec> types;
  for (size_t i = 0; i < kRounds; ++i) {
    types.insert(types.end(), 2, TensorSpec(f32, {farRows(n), n}));
    types.push_back(TensorSpec(f32, {nearRows(n), n}));
  }
  return types;
}

/// The paragraph of an explanation that begins with these words.
std::string paragraph(const std::string &text, const std::string &heading) {
  const size_t begin = text.find(heading);
  return begin == std::string::npos ? "" : text.substr(begin, text.find("\n\n", begin) - begin);
}

void plan(const std::string &machine, int64_t n) {
  auto f = jitted(Variable(zeros({n, n}), "w"), true);
  f.compile(specs(n));
  const Prediction p = f.explain();
  Rounds rounds;
  rounds.fill({{zeros({farRows(n), n}), zeros({farRows(n), n})}, zeros({nearRows(n), n})});
  std::cout << "\n1. " << kRounds << " rounds of " << farRows(n) << "x" << n << " on each accelerator and "
            << nearRows(n) << "x" << n << " on the host, planned: " << std::fixed << std::setprecision(2)
            << p.step_seconds * 1e3 << " ms, " << word_of(machine) << " " << milliseconds(machine, f, rounds)
            << " ms, no order takes less than " << p.lower_bound_seconds * 1e3 << " ms, overlap "
            << std::setprecision(3) << p.overlap.value_or(0) << "\n\n"
            << paragraph(p.text, "resources") << "\n\n"
            << p.drawing;
  f.draw_plan("all-at-once.html");
  std::cout << "   drawn in all-at-once.html\n";
}

bool compute(Figures &figures, int64_t n, const std::string &machine) {
  const Variable w(rng::normal({n, n}, 1) * (1.0 / std::sqrt(static_cast<double>(n))), "w");
  Rounds rounds;
  uint64_t seed = 2;
  for (Round &round : rounds) {
    for (Tensor &x : round.far)
      x = rng::normal({farRows(n), n}, seed++);
    round.near = rng::normal({nearRows(n), n}, seed++);
  }
  use_machine("cpu");
  const Rounds expected = jitted(w, false)(rounds);
  use_machine(machine);
  auto f = jitted(w, true);
  f(rounds); // the first call brings w there
  wait_all();
  const double before = machine_seconds();
  const Rounds got = f(rounds);
  double difference = 0;
  auto compare = [&](const Tensor &a, const Tensor &b) {
    difference = std::max<double>(difference, max(abs(a - b)).item<float>());
  };
  for (size_t i = 0; i < kRounds; ++i) {
    for (size_t d = 0; d < 2; ++d)
      compare(got[i].far[d], expected[i].far[d]);
    compare(got[i].near, expected[i].near);
  }
  std::cout << "\n2. Computed with " << n << ": largest difference from the host alone " << std::defaultfloat
            << difference << "; " << std::fixed << std::setprecision(3) << (machine_seconds() - before) * 1e3
            << (is_simulated(machine) ? " ms of virtual time, planned " : " ms, planned ")
            << f.explain().step_seconds * 1e3 << "\n";
  figures.add("largest_difference", difference);
  return difference <= 1e-4;
}

} // namespace

int main(int argc, char **argv) try {
  Figures figures(argc, argv);
  const std::string machine = argc > 1 ? argv[1] : "sim:2gpu-pcie3";
  const int64_t n = argc > 2 ? std::atoll(argv[2]) : 1408;
  if (n < 32) {
    std::cerr << "usage: all_at_once [MACHINE] [N], N at least 32\n";
    return 2;
  }
  use_at_full_size(machine);
  print_title(machine);
  plan(machine, n);
  return compute(figures, std::max<int64_t>(16, n / 16), machine) ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "all_at_once: " << e.what() << "\n";
  return 1;
}
