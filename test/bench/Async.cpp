#include "Async.h"
#include "Models.h"
#include "Values.h"

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
  return {{"tressel",
           Arm([=] { return ratio(dispatch::async_loop, bound); }, [=] { return flat(dispatch::async_loop(x, n)); })},
          {"sync",
           Arm([=] { return ratio(dispatch::sync_loop, bound); }, [=] { return flat(dispatch::sync_loop(x, n)); })}};
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
  auto imperative = [=] {
    Tensor x = start;
    for (int64_t i = 0; i < steps; ++i)
      x = x * ta + tb;
    return x;
  };
  return {{"tressel", Arm([=] { return timed([&] { return program(start); }); }, [=] { return flat(program(start)); })},
          {"imperative", Arm([=] { return timed(imperative); }, [=] { return flat(imperative()); })}};
}

/// Ten products of 1000 x 1000: until all are there, or until the calls have returned as a share of that.
Arms products(bool share) {
  constexpr int64_t n = 1000;
  const Tensor a = numbers({n, n}, seedOf("a")), b = numbers({n, n}, seedOf("b"));
  auto outputs = [=] {
    std::vector<Tensor> results;
    for (int i = 0; i < 10; ++i)
      results.push_back(matmul(a, b));
    Outputs all;
    for (const Tensor &t : results)
      for (float value : flat(t))
        all.push_back(value);
    return all;
  };
  return {{"tressel", Arm(
                          [=] {
                            std::vector<Tensor> results;
                            double returned = 0;
                            const double finished = secondsOf([&] {
                              returned = secondsOf([&] {
                                for (int i = 0; i < 10; ++i)
                                  results.push_back(matmul(a, b));
                              });
                              wait_all();
                            });
                            return share ? returned / finished : finished;
                          },
                          outputs)}};
}

/// Chains of ops that do not depend on each other, on a fixed grid: 2 or 4 chains, of additions and roots or of
/// products, each of five sizes. Seconds of all. The environment says on how many lanes.
Arms branches() {
  constexpr int depth = 16;
  static constexpr int64_t kElements[] = {1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20},
                           kSides[] = {32, 64, 128, 192, 256};
  auto of = [](size_t index) -> std::function<std::vector<Tensor>()> {
    const size_t chains = index < 10 ? 2 : 4;
    const bool products = index % 10 >= 5;
    const int64_t n = products ? kSides[index % 5] : kElements[index % 5];
    const Tensor w =
        full({products ? n : 1, products ? n : 1}, 1.0 / static_cast<double>(n)); // products keep all elements at 1
    const Tensor start = products ? full({n, n}, 1) : full({n}, 1);
    return [=] {
      std::vector<Tensor> chain(chains, start);
      for (int d = 0; d < depth; ++d)
        for (Tensor &x : chain)
          x = products ? matmul(x, w) : sqrt(x * 4.0f) - 1.0f;
      wait_all();
      return chain;
    };
  };
  return {{"tressel", Arm([=](size_t index) { return secondsPerCall(of(index), 20e-3); },
                          [=](size_t index) {
                            Outputs all;
                            for (const Tensor &t : of(index)())
                              for (float value : flat(t))
                                all.push_back(value);
                            return all;
                          })}};
}

/// Bytes by which resident memory grows at most while ten million ops are queued, whose results are 64 KiB each.
Arms fullQueue() {
  constexpr int64_t ops = 10'000'000, elements = 16384;
  auto run = [] {
    const Tensor a = full({384, 384}, 0.001f), x = zeros({elements});
    Tensor y = x + sum(matmul(a, a)) * 0.0f; // all that follows waits for it
    for (int64_t i = 0; i < ops; ++i)
      y = y + 1.0f;
    y.wait();
    return y;
  };
  return {{"tressel",
           Arm(
               [=, before = int64_t(0)]() mutable {
                 const Tensor warm =
                     zeros({elements}) + sum(matmul(full({384, 384}, 0.001f), full({384, 384}, 0.001f))) * 0.0f + 1.0f;
                 wait_all();
                 if (!before) { // what one sample leaves behind is growth in the next one too
                   std::ofstream("/proc/self/clear_refs") << "5"; // the most that was resident counts from here
                   before = timing::memory("VmRSS");
                 }
                 const auto stats = runtime::Engine::global().stats();
                 check(lastOf(run()) == static_cast<float>(ops), "ten million additions");
                 const double queued = static_cast<double>(runtime::Engine::global().stats().queued - stats.queued);
                 check(queued > 0.9 * static_cast<double>(ops), "too few ops were queued");
                 return static_cast<double>(timing::memory("VmHWM") - before);
               },
               [=] { return flat(run()); })}};
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
