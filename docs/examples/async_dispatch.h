// The cost of y = x + 1, taken apart, and a model of a loop of it. The frontend takes t1 to hand an op over, the work
// itself takes t2, and t3 is what it takes on top to have the answer in the caller. n times:
//
//   waiting after each   n (t1 + t2 + t3)
//   waiting at the end   t1 + n max(t1, t2) + t3      the two overlap, so the slower one counts
//
// Each part is measured by itself, and not in the loop that the model predicts.
#pragma once

#include "timing.h"

#include <tressel/runtime/Package.h>
#include <tressel/tressel.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <unistd.h>

namespace dispatch {

using namespace tressel;

/// Seconds per op.
struct Parts {
  double frontend = 0, work = 0, answer = 0; ///< t1, t2, t3
  double sync(int64_t n) const { return static_cast<double>(n) * (frontend + work + answer); }
  double async(int64_t n) const { return frontend + static_cast<double>(n) * std::max(frontend, work) + answer; }
};

/// t2: the op as a package runs it, in the caller's thread, with no frontend and no queue. Two blocks of memory take
/// turns, as they do where results are dropped one after the other.
inline double work(int64_t elements) {
  const auto path = std::filesystem::temp_directory_path() / ("dispatch-" + std::to_string(getpid()) + ".tsl");
  jit([](Tensor x) { return x + 1.0f; }).export_package(path, {.inputs = {{f32, {elements}, "x"}}});
  auto context = runtime::Package::open(path).context();
  std::filesystem::remove(path); // it stays mapped
  using Bytes = std::unique_ptr<void, decltype(&std::free)>;
  const size_t bytes = static_cast<size_t>(elements * 4 + 63) / 64 * 64;
  Bytes memory[2] = {Bytes(std::aligned_alloc(64, bytes), std::free), Bytes(std::aligned_alloc(64, bytes), std::free)};
  std::memset(memory[0].get(), 0, bytes);
  constexpr int runs = 200;
  return timing::median_seconds(9,
                                [&] {
                                  for (int i = 0; i < runs; ++i) {
                                    const void *in = memory[i % 2].get();
                                    void *out = memory[1 - i % 2].get();
                                    context.run({&in, 1}, {&out, 1});
                                  }
                                }) /
         runs;
}

/// t1: calls while the lane is busy with something else, so that nothing but the handing over is timed.
inline double frontend(int64_t elements) {
  const Tensor a = ones({600, 600}), x = zeros({elements});
  constexpr int calls = 64;
  std::vector<double> samples;
  for (int round = 0; round < 9; ++round) {
    Tensor y = x + sum(matmul(matmul(a, a), a)) * 0.0f; // some ten milliseconds that what follows waits for
    samples.push_back(timing::seconds([&] {
                        for (int i = 0; i < calls; ++i)
                          y = y + 1.0f;
                      }) /
                      calls);
    y.wait();
  }
  return timing::median(std::move(samples));
}

/// t3: what a wait for an op that has just been handed over takes beyond the work.
inline double answer(int64_t elements, double work) {
  Tensor y = zeros({elements});
  std::vector<double> samples;
  for (int i = 0; i < 200; ++i) {
    y = y + 1.0f;
    samples.push_back(timing::seconds([&] { y.wait(); }));
  }
  return std::max(0.0, timing::median(std::move(samples)) - work);
}

inline Parts parts(int64_t elements) {
  const double t2 = work(elements);
  return {frontend(elements), t2, answer(elements, t2)};
}

/// n times y = y + 1, waiting after each.
inline Tensor sync_loop(Tensor y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    y = y + 1.0f;
    y.wait();
  }
  return y;
}
/// Waiting once, at the end.
inline Tensor async_loop(Tensor y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y = y + 1.0f;
  y.wait();
  return y;
}
/// One program: it carries the value through the loop, so that it cannot be computed ahead.
inline auto compiled_loop(int64_t n) {
  return jit(
      [n](Tensor y) {
        return for_loop(
            n, [](Tensor, Tensor y) { return y + 1.0f; }, y);
      },
      {.name = "loop"});
}

} // namespace dispatch
