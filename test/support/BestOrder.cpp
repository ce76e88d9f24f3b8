#include "test/support/BestOrder.h"

#include <algorithm>

namespace tressel::test {

namespace {

class Search {
public:
  Search(const std::vector<Job> &jobs, int64_t atMost, int64_t steps) : jobs(jobs), best(atMost), steps(steps) {
    uint32_t engines = 0;
    tail.assign(jobs.size(), 0);
    for (size_t j = jobs.size(); j-- > 0;) {
      tail[j] += jobs[j].time;
      for (uint32_t before : jobs[j].after)
        tail[before] = std::max(tail[before], tail[j]);
      engines = std::max(engines, jobs[j].engine + 1);
    }
    freeAt.assign(engines, 0);
    end.assign(jobs.size(), kOpen);
  }

  std::optional<int64_t> run() {
    go(0);
    return steps > 0 ? std::optional(best) : std::nullopt;
  }

private:
  static constexpr int64_t kOpen = -1;

  void go(size_t settled) {
    if (--steps <= 0)
      return;
    // The earliest that each job can begin, and what can then be reached.
    std::vector<int64_t> begin(jobs.size(), 0);
    std::vector<bool> isReady(jobs.size(), false);
    struct Left {
      int64_t begin = INT64_MAX, work = 0, tail = INT64_MAX;
    };
    std::vector<Left> left(freeAt.size());
    int64_t bound = 0;
    for (size_t j = 0; j < jobs.size(); ++j) {
      if (end[j] != kOpen) {
        bound = std::max(bound, end[j]);
        continue;
      }
      bool ready = true;
      begin[j] = freeAt[jobs[j].engine];
      for (uint32_t before : jobs[j].after) {
        ready &= end[before] != kOpen;
        begin[j] = std::max(begin[j], end[before] != kOpen ? end[before] : begin[before] + jobs[before].time);
      }
      isReady[j] = ready;
      bound = std::max(bound, begin[j] + tail[j]);
      Left &engine = left[jobs[j].engine];
      engine.begin = std::min(engine.begin, begin[j]);
      engine.work += jobs[j].time;
      engine.tail = std::min(engine.tail, tail[j] - jobs[j].time);
    }
    if (settled == jobs.size()) {
      best = std::min(best, bound);
      return;
    }
    for (const Left &engine : left)
      if (engine.work > 0)
        bound = std::max(bound, engine.begin + engine.work + engine.tail);
    if (bound >= best)
      return;
    // Of the engine that could end something first: which of its jobs that begin before then is the next?
    size_t first = jobs.size();
    for (size_t j = 0; j < jobs.size(); ++j)
      if (isReady[j] && (first == jobs.size() || begin[j] + jobs[j].time < begin[first] + jobs[first].time))
        first = j;
    std::vector<size_t> candidates;
    for (size_t j = 0; j < jobs.size(); ++j)
      if (isReady[j] && jobs[j].engine == jobs[first].engine &&
          (j == first || begin[j] < begin[first] + jobs[first].time))
        candidates.push_back(j);
    std::ranges::sort(candidates, {}, [&](size_t j) { return std::pair(-tail[j], j); });
    for (size_t j : candidates) {
      const int64_t before = freeAt[jobs[j].engine];
      freeAt[jobs[j].engine] = end[j] = begin[j] + jobs[j].time;
      go(settled + 1);
      freeAt[jobs[j].engine] = before;
      end[j] = kOpen;
    }
  }

  const std::vector<Job> &jobs;
  int64_t best, steps;
  std::vector<int64_t> tail; ///< of a job: to the end, with itself
  std::vector<int64_t> freeAt, end;
};

} // namespace

std::optional<int64_t> bestEnd(const std::vector<Job> &jobs, int64_t atMost, int64_t steps) {
  return Search(jobs, atMost, steps).run();
}

} // namespace tressel::test
