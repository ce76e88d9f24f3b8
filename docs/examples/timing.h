// What the programs about asynchronous execution measure with.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace timing {

/// Seconds that one call of `f` takes.
template <typename F> double seconds(F &&f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> samples) {
  std::ranges::sort(samples);
  return samples.empty() ? 0 : samples[samples.size() / 2];
}
/// Median of the seconds of `times` calls, after one that is not counted.
template <typename F> double median_seconds(int times, F &&f) {
  f();
  std::vector<double> samples;
  for (int i = 0; i < times; ++i)
    samples.push_back(seconds(f));
  return median(std::move(samples));
}

/// A figure of /proc/self/status in bytes: "VmRSS" is the memory that is resident, "VmHWM" the most that was.
inline int64_t memory(const std::string &what) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (word == what + ":") {
      int64_t kilobytes = 0;
      file >> kilobytes;
      return kilobytes << 10;
    }
  return 0;
}

/// What follows `name` among the arguments, both of which are taken out; empty if it is not there.
inline std::string option(const std::string &name, int &argc, char **argv) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == name) {
      std::string value = argv[i + 1];
      for (int k = i; k + 2 < argc; ++k)
        argv[k] = argv[k + 2];
      argc -= 2;
      return value;
    }
  return {};
}

} // namespace timing
