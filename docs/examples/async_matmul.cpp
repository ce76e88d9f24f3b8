// Ten products of large matrices: the calls return at once, and the work is done meanwhile.
//
//   async_matmul [SIZE] [--timeline FILE]     256, if not given
#include "draw_timeline.h"
#include "timing.h"

#include <tressel/tressel.h>

#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>

using namespace tressel;

int main(int argc, char **argv) try {
  const std::string timeline = timing::timeline_option(argc, argv);
  constexpr int products = 10;
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : 256;
  if (n < 1 || n > 20000) {
    std::cerr << "usage: async_matmul [SIZE] [--timeline FILE], from 1 to 20000\n";
    return 2;
  }
  const Tensor a = full({n, n}, 0.5f), b = full({n, n}, 2.0f);
  matmul(a, b).wait(); // the kernel is made
  std::vector<double> returned, finished;
  bool right = true;
  for (int round = 0; round < 5; ++round) {
    std::vector<Tensor> results;
    double back = 0;
    finished.push_back(timing::seconds([&] {
      back = timing::seconds([&] {
        for (int i = 0; i < products; ++i)
          results.push_back(matmul(a, b));
      });
      wait_all();
    }));
    returned.push_back(back);
    for (const Tensor &result : results) // sums of n times 1
      right &= min(result).item<float>() == static_cast<float>(n) && max(result).item<float>() == static_cast<float>(n);
  }
  const double back = timing::median(returned), done = timing::median(finished);
  std::cout << products << " products of " << n << "x" << n << "\n"
            << std::fixed << std::setprecision(3) << "   the calls returned after " << std::setw(10) << back * 1e3
            << " ms\n   all was there after      " << std::setw(10) << done * 1e3 << " ms, " << std::setprecision(1)
            << 2e-9 * products * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / done
            << " GFLOP/s\n   the caller was free for  " << std::setw(10) << (1 - back / done) * 100 << "% of it\n";
  if (!right)
    std::cout << "   WRONG: not all elements are " << n << "\n";
  timing::draw_timeline(timeline, [&] {
    std::vector<Tensor> results;
    for (int i = 0; i < products; ++i)
      results.push_back(matmul(a, b));
    wait_all();
  });
  return right ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "async_matmul: " << e.what() << "\n";
  return 1;
}
