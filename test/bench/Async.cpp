#include "Async.h"

#include "docs/examples/async_dispatch.h"

#include <tressel/runtime/Engine.h>
#include <tressel/tressel.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>

namespace tressel::bench {
namespace {

/// A wrong result makes the row fail: the arm's process ends.
void check(bool right, const char *what) {
  if (right)
    return;
  std::cerr << "wrong result: " << what << "\n";
  std::exit(1);
}

float lastOf(const Tensor &t) { return reshape(t, {t.size()}).to_vector<float>().back(); }

/// A loop's time over the model's. The model's parts are measured for each sample, as clocks change, by themselves.
Arms overModel() {
  constexpr int64_t n = 1000, elements = 524288;
  const Tensor x = zeros({elements});
  auto ratio = [x](auto loop, auto predicted) {
    const dispatch::Parts parts = dispatch::parts(elements);
    Tensor y;
    const double seconds = secondsOf([&] { y = loop(x, n); });
    check(lastOf(y) == n, "n times y = y + 1");
    return seconds / predicted(parts);
  };
  auto bound = [](const dispatch::Parts &p) { return p.async(n); };
  return {{"tressel", [=] { return ratio(dispatch::async_loop, bound); }},
          {"sync", [=] { return ratio(dispatch::sync_loop, bound); }}};
}

/// x = x * a + b, the recurrence of docs/examples/recurrence.cpp; seconds of all steps.
Arms recurrence() {
  constexpr int64_t steps = 10000, size = 16;
  std::vector<float> a(size), b(size);
  std::vector<double> expected(size);
  for (size_t i = 0; i < size; ++i) {
    a[i] = static_cast<float>(i) / 32 - 0.25f;
    b[i] = static_cast<float>(i % 5) / 4 - 0.5f;
    for (int64_t s = 0; s < steps; ++s)
      expected[i] = expected[i] * a[i] + b[i];
  }
  const Tensor ta = from_span(a, {size}), tb = from_span(b, {size}), start = zeros({size});
  auto timed = [=](auto run) {
    Tensor x;
    const double seconds = secondsOf([&] { (x = run()).wait(); });
    const auto got = x.to_vector<double>();
    for (size_t i = 0; i < size; ++i)
      check(std::abs(got[i] - expected[i]) < 1e-5, "the recurrence");
    return seconds;
  };
  auto program = jit([=](Tensor x) {
    return for_loop(
        steps, [&](Tensor, Tensor x) { return x * ta + tb; }, x);
  });
  return {{"tressel", [=] { return timed([&] { return program(start); }); }}, {"imperative", [=] {
                                                                                 return timed([&] {
                                                                                   Tensor x = start;
                                                                                   for (int64_t i = 0; i < steps; ++i)
                                                                                     x = x * ta + tb;
                                                                                   return x;
                                                                                 });
                                                                               }}};
}

/// Ten products of 1000 x 1000: until all are there, or until the calls have returned as a share of that.
Arms products(bool share) {
  constexpr int64_t n = 1000;
  const Tensor a = full({n, n}, 0.5), b = full({n, n}, 2.0);
  return {{"tressel", [=] {
             std::vector<Tensor> results;
             double returned = 0;
             const double finished = secondsOf([&] {
               returned = secondsOf([&] {
                 for (int i = 0; i < 10; ++i)
                   results.push_back(matmul(a, b));
               });
               wait_all();
             });
             for (const Tensor &t : results)
               check(lastOf(t) == n, "a product");
             return share ? returned / finished : finished;
           }}};
}

/// Four chains of ops that do not depend on each other; seconds of all. The environment says on how many lanes.
Arms branches() {
  constexpr int chains = 4, depth = 16;
  auto run = [](auto step, const Tensor &start) {
    auto all = [&] {
      std::array<Tensor, chains> chain;
      chain.fill(start);
      for (int d = 0; d < depth; ++d)
        for (Tensor &x : chain)
          x = step(x);
      wait_all();
      return chain;
    };
    for (const Tensor &x : all())
      check(std::abs(lastOf(x) - 1) < 1e-4f, "a branch");
    return secondsPerCall(all, 20e-3);
  };
  return {{"tressel", [=](size_t index) {
             if (index < 5) {
               const int64_t elements = std::array<int64_t, 5>{16384, 32768, 65536, 131072, 262144}.at(index);
               return run([](const Tensor &x) { return sqrt(x * 4.0f) - 1.0f; }, full({elements}, 1));
             }
             const int64_t n = std::array<int64_t, 4>{64, 96, 128, 192}.at(index - 5);
             const Tensor w = full({n, n}, 1.0 / static_cast<double>(n)); // products keep all elements at 1
             return run([w](const Tensor &x) { return matmul(x, w); }, full({n, n}, 1));
           }}};
}

/// Bytes by which resident memory grows at most while ten million ops are queued, whose results are 64 KiB each.
Arms fullQueue() {
  return {{"tressel", [before = int64_t(0)]() mutable {
             constexpr int64_t ops = 10'000'000, elements = 16384;
             const Tensor a = full({384, 384}, 0.001f), x = zeros({elements});
             Tensor y = x + sum(matmul(a, a)) * 0.0f + 1.0f;
             wait_all();
             if (!before) { // what one sample leaves behind is growth in the next one too
               std::ofstream("/proc/self/clear_refs") << "5"; // the most that was resident counts from here
               before = timing::memory("VmRSS");
             }
             const auto stats = runtime::Engine::global().stats();
             y = x + sum(matmul(a, a)) * 0.0f; // all that follows waits for it
             for (int64_t i = 0; i < ops; ++i)
               y = y + 1.0f;
             y.wait();
             check(lastOf(y) == static_cast<float>(ops), "ten million additions");
             const double queued = static_cast<double>(runtime::Engine::global().stats().queued - stats.queued);
             check(queued > 0.9 * static_cast<double>(ops), "too few ops were queued");
             return static_cast<double>(timing::memory("VmHWM") - before);
           }}};
}

} // namespace

Arms asyncArms(const std::string &row) {
  if (row == "async.large")
    return overModel();
  if (row == "loop.compiled.speedup")
    return recurrence();
  if (row == "loop.imperative")
    return {{"tressel", recurrence().at("imperative")}};
  if (row == "async.matmul10" || row == "async.matmul10.return")
    return products(row.ends_with(".return"));
  if (row == "branches.two-lanes") {
    const Arm lanes = branches().at("tressel");
    return {{"tressel", lanes}, {"one-lane", lanes}, {"one-thread", lanes}};
  }
  if (row == "memory.queue.10m")
    return fullQueue();
  return {};
}

} // namespace tressel::bench
