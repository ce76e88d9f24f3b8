// A loop that calls far faster than the work is done: the queue is bounded, so memory is too. When it is full, the
// caller stands still, and helps.
//
//   back_pressure [OPS] [--timeline FILE]     200000, if not given; try 10000000
//
// TRESSEL_LOG_WAITS=1 in the environment tells each time that the caller stood still, and why.
#include "draw_timeline.h"
#include "timing.h"

#include <tressel/runtime/Engine.h>
#include <tressel/tressel.h>

#include <cstdlib>
#include <iomanip>
#include <iostream>

using namespace tressel;

namespace {
constexpr int64_t kElements = 16384;
}

int main(int argc, char **argv) try {
  const std::string timeline = timing::timeline_option(argc, argv);
  const int64_t ops = argc > 1 ? std::atoll(argv[1]) : 200000;
  if (ops < 1) {
    std::cerr << "usage: back_pressure [OPS] [--timeline FILE], at least 1\n";
    return 2;
  }
  // Each op takes longer than calling it, so that the queue fills; the first waits for a product, so that there is one.
  const Tensor a = full({384, 384}, 0.001f), zero = sum(matmul(a, a)) * 0.0f, x = zeros({kElements});
  Tensor y = x + zero + 1.0f;
  wait_all();
  auto &engine = runtime::Engine::global();
  const auto before = engine.stats();
  const int64_t resident = timing::memory("VmRSS");
  std::cout << "        ops called   resident    queued  run by the caller\n";
  const double seconds = timing::seconds([&] {
    y = x + sum(matmul(a, a)) * 0.0f;
    for (int64_t i = 0; i < ops; ++i) {
      y = y + 1.0f;
      if ((i + 1) % std::max<int64_t>(1, ops / 5) == 0) {
        const auto now = engine.stats();
        std::cout << std::setw(18) << i + 1 << std::fixed << std::setprecision(1) << std::setw(8)
                  << static_cast<double>(timing::memory("VmRSS")) * 0x1p-20 << " MB" << std::setw(10)
                  << now.queued - before.queued << std::setw(10)
                  << now.inlined + now.helped - before.inlined - before.helped << "\n";
      }
    }
    y.wait();
  });
  std::cout << "resident memory grew by " << static_cast<double>(timing::memory("VmRSS") - resident) * 0x1p-20
            << " MB, at most " << static_cast<double>(timing::memory("VmHWM")) * 0x1p-20
            << " MB were resident; all results together are " << static_cast<double>(ops * kElements * 4) * 0x1p-20
            << " MB; " << std::setprecision(0) << seconds / static_cast<double>(ops) * 1e9 << " ns an op\n";
  // Up to 2^24 floats count exactly; there they stop.
  const float expected = static_cast<float>(std::min<int64_t>(ops, 1 << 24));
  if (slice(y, {kElements - 1}, {kElements}).item<float>() != expected) {
    std::cout << "WRONG: the last value is not " << expected << "\n";
    return 1;
  }
  // The same once more, a little of it, recorded: why the caller stood still, and where.
  profile_start();
  y = x + sum(matmul(a, a)) * 0.0f;
  for (int i = 0; i < 12000; ++i)
    y = y + 1.0f;
  y.wait();
  std::cout << "\n12000 of them: " << profile_stop(timeline);
  return 0;
} catch (const Error &e) {
  std::cerr << "back_pressure: " << e.what() << "\n";
  return 1;
}
