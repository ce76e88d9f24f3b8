// The least time that any order of some jobs takes, by trying all of them: what plans are judged by.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tressel::test {

/// Holds its engine for its time, from when all jobs of `after` (earlier in the list) have ended.
struct Job {
  uint32_t engine = 0;
  int64_t time = 0;
  std::vector<uint32_t> after;
};

/// The least end of the last job over all orders of the engines' jobs, if that is below `atMost`, else `atMost`. Branch
/// and bound over active schedules (Giffler and Thompson, 1960), among which there is a best one. Nothing if it is not
/// found within so many steps.
std::optional<int64_t> bestEnd(const std::vector<Job> &jobs, int64_t atMost, int64_t steps = 20'000'000);

} // namespace tressel::test
