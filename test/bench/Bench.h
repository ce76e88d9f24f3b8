// The protocol of a benchmark arm: a process prepared for one row answers "ARM COUNT\n" with a JSON list of samples.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace tressel::bench {

/// Seconds that one call of `f` takes.
inline double secondsOf(const std::function<void()> &f) {
  auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// One measurement in the row's unit; of a row over several cases, one for each of them.
struct Sample : std::vector<double> {
  using std::vector<double>::vector;
  Sample(double value) : vector{value} {}
};

/// Arms of one row, by name. Each call gives one sample.
using Arms = std::map<std::string, std::function<Sample()>>;

/// Seconds of one call of `f`, of as many calls as take `atLeast` together.
inline double secondsPerCall(const std::function<void()> &f, double atLeast) {
  auto start = std::chrono::steady_clock::now();
  for (int calls = 1;; ++calls) {
    f();
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (passed >= atLeast)
      return passed / calls;
  }
}

/// Answers requests until standard input ends. Exit status 2 for an unknown arm.
inline int serve(const Arms &arms) {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    std::string arm;
    int count = 0;
    in >> arm >> count;
    auto found = arms.find(arm);
    if (found == arms.end()) {
      std::cerr << "no arm " << arm << " in this row\n";
      return 2;
    }
    std::string out = "[";
    for (int i = 0; i < count; ++i) {
      const Sample sample = found->second();
      out += i ? ", " : "";
      for (size_t k = 0; k < sample.size(); ++k) {
        char text[32];
        std::snprintf(text, sizeof text, "%s%.9g", k ? ", " : sample.size() > 1 ? "[" : "", sample[k]);
        out += text;
      }
      out += sample.size() > 1 ? "]" : "";
    }
    std::cout << out << "]" << std::endl;
  }
  return 0;
}

} // namespace tressel::bench
