// Two chains of products that have nothing to do with each other: waiting for the one result that is needed, against
// waiting for everything.
//
//   one_result [SIZE] [LENGTH] [--timeline FILE]     192 and 12, if not given: the long chain has LENGTH products, the
//   short one two
//
// What is needed is the short chain's result, called for before the long chain, and behind it.
#include "draw_timeline.h"
#include "timing.h"

#include <tressel/tressel.h>

#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>

using namespace tressel;

namespace {

Tensor chain(Tensor x, const Tensor &w, int64_t length) {
  for (int64_t i = 0; i < length; ++i)
    x = matmul(x, w);
  return x;
}

} // namespace

int main(int argc, char **argv) try {
  const std::string timeline = timing::timeline_option(argc, argv);
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : 192, length = argc > 2 ? std::atoll(argv[2]) : 12;
  if (n < 1 || n > 20000 || length < 1) {
    std::cerr << "usage: one_result [SIZE] [LENGTH] [--timeline FILE], SIZE from 1 to 20000, LENGTH at least 1\n";
    return 2;
  }
  const Tensor one = full({n, n}, 1), w = full({n, n}, 1.0 / static_cast<double>(n)); // products keep all elements at 1
  chain(one, w, 1).wait();
  bool right = true;
  auto run = [&](bool shortFirst, bool everything) {
    std::vector<double> samples;
    for (int round = 0; round < 7; ++round) {
      Tensor needed, other;
      samples.push_back(timing::seconds([&] {
        if (shortFirst)
          needed = chain(one, w, 2);
        other = chain(one, w, length);
        if (!shortFirst)
          needed = chain(one, w, 2);
        if (everything)
          wait_all();
        else
          needed.wait();
      }));
      wait_all();
      for (const Tensor &t : {needed, other})
        right &= std::abs(sum(t).item<double>() / static_cast<double>(n * n) - 1) < 1e-3;
    }
    return timing::median(std::move(samples)) * 1e3;
  };
  std::cout << "Two products are needed, " << length << " are not, of " << n << "x" << n
            << "; ms until the caller goes on\n"
            << "                            needed ones first   needed ones last\n"
            << std::fixed << std::setprecision(3) << "   waiting for the result" << std::setw(20) << run(true, false)
            << std::setw(19) << run(false, false) << "\n   waiting for everything" << std::setw(20) << run(true, true)
            << std::setw(19) << run(false, true) << "\n";
  if (!right)
    std::cout << "   WRONG: elements are not 1\n";
  timing::draw_timeline(timeline, [&] {
    for (bool everything : {false, true}) {
      const Tensor needed = chain(one, w, 2), other = chain(one, w, length);
      if (everything)
        wait_all();
      else
        needed.wait();
      full({2}, 1) + 1.0f; // what the caller goes on with
      wait_all();
    }
  });
  return right ? 0 : 1;
} catch (const Error &e) {
  std::cerr << "one_result: " << e.what() << "\n";
  return 1;
}
