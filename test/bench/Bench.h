// The protocol of a benchmark arm: a process prepared for one row answers "ARM COUNT CASE\n" with a JSON list of samples
// (CASE is 0 in rows of one case).
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace tressel::bench {

/// Seconds that one call of `f` takes.
inline double secondsOf(const std::function<void()> &f) {
  auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// What measures one sample in the row's unit; of a row over several cases, of one of them.
class Arm {
public:
  template <typename F> Arm(F measure) {
    if constexpr (std::is_invocable_v<F &, size_t>)
      measure_ = std::move(measure);
    else
      measure_ = [measure = std::move(measure)](size_t) mutable { return measure(); };
  }
  double operator()(size_t index) const { return measure_(index); }

private:
  std::function<double(size_t)> measure_;
};

/// Arms of one row, by name.
using Arms = std::map<std::string, Arm>;

/// Calls `f` for at least `seconds`; gives the seconds of one call.
inline double repeatFor(const std::function<void()> &f, double seconds) {
  auto start = std::chrono::steady_clock::now();
  for (int calls = 1;; ++calls) {
    f();
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (passed >= seconds)
      return passed / calls;
  }
}
/// Seconds of one call of `f`, of as many calls as take `atLeast` together, after some that are not counted: another process
/// ran before, and caches and the places of threads are to be as within a long loop.
inline double secondsPerCall(const std::function<void()> &f, double atLeast) {
  constexpr double warmUp = 20e-3;
  repeatFor(f, warmUp);
  return repeatFor(f, atLeast);
}

/// Answers requests until standard input ends. Exit status 2 for an unknown arm.
inline int serve(const Arms &arms) {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    std::string arm;
    int count = 0;
    size_t index = 0;
    in >> arm >> count >> index;
    auto found = arms.find(arm);
    if (found == arms.end()) {
      std::cerr << "no arm " << arm << " in this row\n";
      return 2;
    }
    std::string out = "[";
    for (int i = 0; i < count; ++i) {
      char text[32];
      std::snprintf(text, sizeof text, "%s%.9g", i ? ", " : "", found->second(index));
      out += text;
    }
    std::cout << out << "]" << std::endl;
  }
  return 0;
}

} // namespace tressel::bench
