// 10,000 times y = x + 1: waiting after each, waiting once, and as one compiled program; beside each the model of what
// it should cost (async_dispatch.h).
//
//   async_dispatch [N] [ELEMENTS] [--timeline FILE]     1000 and 524288, if not given
//
// First with two elements: such an op takes less than handing it over, so it runs in the caller and there is nothing to
// wait for. Then with as many as are worth handing over.
#include "async_dispatch.h"
#include "draw_timeline.h"

#include <iomanip>
#include <iostream>

using namespace tressel;

namespace {

void line(const char *what, double seconds, int64_t n, double predicted = 0) {
  std::cout << "   " << std::left << std::setw(34) << what << std::right << std::fixed << std::setprecision(3)
            << std::setw(10) << seconds * 1e3 << " ms" << std::setw(12) << seconds / static_cast<double>(n) * 1e9
            << " ns an op";
  if (predicted > 0)
    std::cout << std::setw(12) << predicted * 1e3 << " ms predicted";
  std::cout << "\n";
}

/// The three loops over a tensor of so many elements. False when one gives a wrong number.
bool loops(int64_t n, int64_t elements, const dispatch::Parts *parts) {
  const Tensor x = zeros({elements});
  const auto program = dispatch::compiled_loop(n);
  bool right = true;
  auto timed = [&](auto &&loop) {
    return timing::median_seconds(5, [&] {
      const Tensor y = loop();
      right &= slice(y, {elements - 1}, {elements}).item<float>() == static_cast<float>(n);
    });
  };
  const double sync = timed([&] { return dispatch::sync_loop(x, n); });
  const double async = timed([&] { return dispatch::async_loop(x, n); });
  const double compiled = timed([&] { return program(x); });
  line("waiting after each", sync, n, parts ? parts->sync(n) : 0);
  line("waiting once", async, n, parts ? parts->async(n) : 0);
  line("compiled, value carried", compiled, n);
  std::cout << (right ? "   each ends with y = " + std::to_string(n) + "\n" : "   WRONG: not all end with y = n\n");
  return right;
}

} // namespace

int main(int argc, char **argv) try {
  const std::string timeline = timing::timeline_option(argc, argv);
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : 1000, elements = argc > 2 ? std::atoll(argv[2]) : 524288;
  if (n < 1 || n > 1 << 24 || elements < 16) { // up to there floats count exactly
    std::cerr << "usage: async_dispatch [N] [ELEMENTS] [--timeline FILE], N from 1 to 16777216, ELEMENTS at least 16\n";
    return 2;
  }
  std::cout << "1. " << n << " times y = x + 1 on 2 elements, which runs in the caller: sync = async\n";
  bool right = loops(n, 2, nullptr);

  const dispatch::Parts parts = dispatch::parts(elements);
  std::cout << "\n2. " << n << " times on " << elements << " elements, which is handed over\n"
            << std::fixed << std::setprecision(2) << "   t1 the frontend " << parts.frontend * 1e6
            << " us, t2 the work " << parts.work * 1e6 << " us, t3 the answer " << parts.answer * 1e6 << " us\n"
            << "   predicted: waiting after each n (t1 + t2 + t3), waiting once t1 + n max(t1, t2) + t3\n";
  right &= loops(n, elements, &parts);

  const Tensor small = zeros({2}), large = zeros({elements});
  const auto program = dispatch::compiled_loop(12);
  timing::draw_timeline(timeline, [&] {
    dispatch::sync_loop(small, 12);
    dispatch::sync_loop(large, 12);
    dispatch::async_loop(large, 12);
    program(large).wait();
  });
  return right ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "async_dispatch: " << e.what() << "\n";
  return 1;
}
