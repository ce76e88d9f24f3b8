// Steps in numbers, made to fit: what is decided is judged by a walk of its own through the sequence.
#include "passes/place/Residency.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <set>

using namespace tressel::passes::residency;

namespace {
constexpr unsigned kDevice = 1;
constexpr uint32_t kCompute = 3, kIn = 4, kOut = 5;

struct StepBuilder {
  Step step;
  Sequence sequence;

  uint32_t value(int64_t bytes) {
    Value v;
    v.bytes = bytes;
    v.device = kDevice;
    v.inEngine = kIn, v.outEngine = kOut;
    v.inSeconds = v.outSeconds = static_cast<double>(bytes);
    step.values.push_back(v);
    return static_cast<uint32_t>(step.values.size() - 1);
  }
  /// On the host ahead of the step, copied in by a task.
  uint32_t input(int64_t bytes) {
    const uint32_t v = value(bytes);
    Task task;
    task.engine = kIn;
    task.device = kDevice;
    task.seconds = static_cast<double>(bytes);
    task.writes = {v};
    step.values[v].isOnHost = true;
    step.values[v].copiedBy = add(task);
    return v;
  }
  uint32_t add(Task task) {
    step.tasks.push_back(std::move(task));
    sequence.push_back({Item::Run, static_cast<uint32_t>(step.tasks.size() - 1)});
    return sequence.back().index;
  }
  uint32_t compute(llvm::ArrayRef<uint32_t> reads, int64_t bytes, double seconds = 1) {
    Task task;
    task.engine = kCompute;
    task.device = kDevice;
    task.seconds = seconds;
    task.mayRematerialize = true;
    task.reads.assign(reads.begin(), reads.end());
    task.writes = {value(bytes)};
    const uint32_t result = task.writes[0];
    add(std::move(task));
    return result;
  }
};

/// What a sequence does: every task once, each of its operands there, never more than `limit` bytes; or what is wrong.
struct Verdict {
  std::string problem;
  int64_t peak = 0, out = 0, in = 0, again = 0;
};
Verdict judge(const Step &step, const Sequence &sequence, int64_t limit) {
  Verdict verdict;
  // Until where each stay lasts: who touches a value before it comes again, or is made again.
  std::vector<std::vector<size_t>> touches(step.values.size());
  std::vector<std::set<size_t>> begins(step.values.size());
  for (auto [i, item] : llvm::enumerate(sequence)) {
    if (item.kind == Item::Run || item.kind == Item::Rematerialize) {
      for (uint32_t v : step.tasks[item.index].reads)
        touches[v].push_back(i);
      for (uint32_t v : step.tasks[item.index].writes)
        touches[v].push_back(i), begins[v].insert(i);
    } else {
      touches[item.index].push_back(i);
      if (item.kind == Item::Prefetch)
        begins[item.index].insert(i);
    }
  }
  auto lastsUntil = [&](uint32_t v, size_t begin) {
    const auto next = begins[v].upper_bound(begin);
    size_t last = begin;
    for (size_t i : touches[v])
      if (i >= begin && (next == begins[v].end() || i < *next))
        last = i;
    return last;
  };
  std::vector<int> runs(step.tasks.size(), 0);
  std::vector<bool> isHere(step.values.size(), false), isOnHost(step.values.size(), false);
  std::vector<size_t> until(step.values.size(), 0);
  for (size_t v = 0; v < step.values.size(); ++v)
    isOnHost[v] = step.values[v].isOnHost;
  int64_t held = 0;
  for (auto [i, item] : llvm::enumerate(sequence)) {
    auto arrive = [&, i = i](uint32_t v) {
      if (isHere[v])
        verdict.problem = "value " + std::to_string(v) + " comes though it is here";
      isHere[v] = true;
      until[v] = lastsUntil(v, i);
      held += step.values[v].bytes;
    };
    auto needs = [&, i = i](uint32_t v) {
      if (!isHere[v])
        verdict.problem = "item " + std::to_string(i) + " reads value " + std::to_string(v) + ", which is not here";
    };
    if (item.kind == Item::Prefetch) {
      if (!isOnHost[item.index])
        verdict.problem = "value " + std::to_string(item.index) + " comes, but the host does not have it";
      ++verdict.in;
      arrive(item.index);
    } else if (item.kind == Item::Spill) {
      needs(item.index);
      isOnHost[item.index] = true;
      ++verdict.out;
    } else {
      const Task &task = step.tasks[item.index];
      for (uint32_t v : task.reads)
        needs(v);
      runs[item.index] += item.kind == Item::Run;
      verdict.again += item.kind == Item::Rematerialize;
      if (item.kind == Item::Rematerialize && !runs[item.index])
        verdict.problem = "task " + std::to_string(item.index) + " runs again before it runs";
      for (uint32_t v : task.writes)
        arrive(v);
    }
    verdict.peak = std::max(verdict.peak, held);
    for (size_t v = 0; v < step.values.size(); ++v)
      if (isHere[v] && until[v] <= i) {
        isHere[v] = false;
        held -= step.values[v].bytes;
      }
  }
  for (auto [t, count] : llvm::enumerate(runs)) {
    const bool isCopy = step.tasks[t].engine == kIn;
    if (count != (isCopy ? 0 : 1))
      verdict.problem = "task " + std::to_string(t) + " runs " + std::to_string(count) + " times";
  }
  if (verdict.peak > limit)
    verdict.problem = "takes " + std::to_string(verdict.peak) + " of " + std::to_string(limit) + " bytes";
  return verdict;
}

int64_t largestTask(const Step &step) {
  int64_t most = 0;
  for (const Task &task : step.tasks) {
    std::set<uint32_t> values(task.reads.begin(), task.reads.end());
    values.insert(task.writes.begin(), task.writes.end());
    int64_t bytes = 0;
    for (uint32_t v : values)
      bytes += step.values[v].bytes;
    most = std::max(most, bytes);
  }
  return most;
}

TEST(ResidencyTest, WhatIsNeededLastLeaves) {
  StepBuilder b;
  const uint32_t a = b.compute({}, 10), c = b.compute({}, 10), d = b.compute({c}, 10);
  b.compute({d, c}, 10);
  b.compute({a}, 10);
  ASSERT_FALSE(fit(b.step, kDevice, {30}, b.sequence));
  const Verdict verdict = judge(b.step, b.sequence, 30);
  EXPECT_EQ(verdict.problem, "");
  EXPECT_EQ(verdict.out, 1);
  EXPECT_EQ(verdict.in, 1);
  EXPECT_TRUE(llvm::is_contained(b.sequence, (Item{Item::Spill, a})));
}

TEST(ResidencyTest, WhatTheHostHasIsNotCopiedThere) {
  StepBuilder b;
  const uint32_t x = b.input(10), c = b.compute({x}, 10), d = b.compute({c}, 10);
  b.compute({d, c}, 10);
  b.compute({x}, 10);
  ASSERT_FALSE(fit(b.step, kDevice, {30}, b.sequence));
  const Verdict verdict = judge(b.step, b.sequence, 30);
  EXPECT_EQ(verdict.problem, "");
  EXPECT_EQ(verdict.out, 0);
  EXPECT_EQ(verdict.in, 2);
}

TEST(ResidencyTest, WhatIsCheapIsRematerialized) {
  StepBuilder b;
  const uint32_t w = b.compute({}, 10, 100), a = b.compute({w}, 10), c = b.compute({w}, 10), d = b.compute({c}, 10);
  b.compute({d, c, w}, 10);
  b.compute({a, w}, 10);
  Sequence copied = b.sequence;
  ASSERT_FALSE(fit(b.step, kDevice, {40, true, 1}, b.sequence));
  Verdict verdict = judge(b.step, b.sequence, 40);
  EXPECT_EQ(verdict.problem, "");
  EXPECT_EQ(verdict.again, 1);
  EXPECT_EQ(verdict.out + verdict.in, 0);
  b.step.tasks[1].mayRematerialize = false; // it draws random numbers, say
  ASSERT_FALSE(fit(b.step, kDevice, {40, true, 1}, copied));
  verdict = judge(b.step, copied, 40);
  EXPECT_EQ(verdict.problem, "");
  EXPECT_EQ(verdict.again, 0);
  EXPECT_EQ(verdict.out, 1);
}

TEST(ResidencyTest, AResultTakesTheBytesOfWhatDiesOrLeaves) {
  StepBuilder b;
  const uint32_t a = b.compute({}, 10), c = b.compute({a}, 10);
  b.compute({c}, 10);
  b.step.tasks[1].overwrites = {a};
  b.step.tasks[2].overwrites = {c};
  Sequence sequence = b.sequence;
  ASSERT_FALSE(fit(b.step, kDevice, {10}, sequence));
  EXPECT_EQ(peakOf(b.step, kDevice, sequence), 10);
  EXPECT_EQ(sequence.size(), 3u);
  b.compute({a, c}, 10); // both are needed afterwards
  b.step.tasks[3].overwrites = {a};
  ASSERT_FALSE(fit(b.step, kDevice, {20}, b.sequence));
  EXPECT_LE(peakOf(b.step, kDevice, b.sequence), 20);
}

TEST(ResidencyTest, TooLargeAloneIsSaid) {
  StepBuilder b;
  const uint32_t a = b.compute({}, 10), c = b.compute({}, 10);
  b.compute({a, c}, 15);
  const std::optional<Misfit> misfit = fit(b.step, kDevice, {34}, b.sequence);
  ASSERT_TRUE(misfit);
  EXPECT_EQ(misfit->task, 2u);
  EXPECT_EQ(misfit->bytes, 35);
}

TEST(ResidencyTest, CopiesHideBehindWork) {
  // Each value is read again in the opposite order; a copy takes half of what a task does.
  StepBuilder b;
  std::vector<uint32_t> made{b.compute({}, 10, 20)};
  for (int i = 0; i < 20; ++i)
    made.push_back(b.compute({made.back()}, 10, 20));
  uint32_t last = made.back();
  for (size_t i = made.size() - 1; i-- > 0;)
    last = b.compute({last, made[i]}, 10, 20);
  const double whole = secondsOf(b.step, b.sequence, {0, 0});
  ASSERT_EQ(peakOf(b.step, kDevice, b.sequence), 220);
  ASSERT_FALSE(fit(b.step, kDevice, {120}, b.sequence));
  const Verdict verdict = judge(b.step, b.sequence, 120);
  EXPECT_EQ(verdict.problem, "");
  EXPECT_GE(verdict.out, 10);
  EXPECT_EQ(secondsOf(b.step, b.sequence, {0, 120}), whole);
}

TEST(ResidencyTest, RandomWorkingSetsEnd) {
  const char *given = std::getenv("TRESSEL_SEED");
  const uint64_t first = given ? std::strtoull(given, nullptr, 10) : 1;
  int64_t out = 0, in = 0, again = 0, tight = 0, exact = 0;
  for (uint64_t seed = first; seed < first + 400; ++seed) {
    SCOPED_TRACE("TRESSEL_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    StepBuilder b;
    std::vector<uint32_t> values;
    size_t uses = 0;
    const size_t count = 5 + random() % 60;
    for (size_t i = 0; i < count; ++i) {
      const int64_t bytes = static_cast<int64_t>(1 + random() % 16) * 64;
      if (random() % 5 == 0) {
        values.push_back(b.input(bytes));
        continue;
      }
      std::vector<uint32_t> reads;
      for (size_t r = random() % 4; r-- > 0 && !values.empty();)
        if (uint32_t v = values[random() % values.size()]; !llvm::is_contained(reads, v))
          reads.push_back(v);
      uses += reads.size();
      values.push_back(b.compute(reads, bytes, static_cast<double>(1 + random() % 2000)));
      b.step.tasks.back().mayRematerialize = random() % 4 != 0;
    }
    const int64_t peak = peakOf(b.step, kDevice, b.sequence), least = largestTask(b.step);
    for (const int64_t limit : {least, std::max(least, peak / 2), std::max(least, peak * 7 / 10)})
      for (const Rule &rule : {Rule{limit, false, 0}, Rule{limit, true, 0}, Rule{limit, true, 1}}) {
        Sequence sequence = b.sequence;
        const std::optional<Misfit> misfit = fit(b.step, kDevice, rule, sequence);
        if (misfit) { // what is rematerialized needs room for its operands
          EXPECT_GT(rule.rematerializeBelow, 0) << "at " << limit << " of " << peak << " bytes";
          continue;
        }
        const Verdict verdict = judge(b.step, sequence, limit);
        EXPECT_EQ(verdict.problem, "") << "at " << limit << " of " << peak << " bytes";
        EXPECT_EQ(verdict.peak, peakOf(b.step, kDevice, sequence));
        // A value goes out once, and comes once for each use at most.
        EXPECT_LE(verdict.out, static_cast<int64_t>(values.size()));
        if (rule.rematerializeBelow == 0)
          EXPECT_LE(verdict.in, static_cast<int64_t>(uses));
        EXPECT_LT(secondsOf(b.step, sequence, {0, limit}), 1e9);
        out += verdict.out, in += verdict.in, again += verdict.again;
        tight += limit < peak, exact += limit == least;
      }
  }
  std::cout << "seeds from " << first << ": " << tight << " sequences that were too large, " << exact
            << " in what the largest task needs: " << out << " values were spilled, " << in << " were prefetched, " << again
            << " tasks ran again\n";
  EXPECT_GT(out, 1000);
  EXPECT_GT(in, 1000);
  EXPECT_GT(again, 100);
}
} // namespace
