// Calls that are made again and again: they take a short way, with what the call before has found out, and must not miss
// anything that has changed since.
#include <tressel/jit.h>
#include <tressel/layers.h>
#include <tressel/ops.h>
#include <tressel/random.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

using namespace tressel;

namespace {

std::vector<float> floats(const Tensor &t) { return t.to_vector<float>(); }
/// As many calls as it takes to be on the short way.
constexpr int kMany = 6;

TEST(JitCalls, FollowShapesTypesModesAndStaticArguments) {
  auto f = jit([](Tensor x, int64_t times) { return (training() ? x * 10 : x) * times; });
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kMany; ++i)
      ASSERT_EQ(floats(f(ones({2}), 3)), (std::vector<float>{3, 3}));
    for (int i = 0; i < kMany; ++i)
      ASSERT_EQ(floats(f(ones({3}), 3)), (std::vector<float>{3, 3, 3}));
    for (int i = 0; i < kMany; ++i)
      ASSERT_EQ(f(ones({2}, i32), 3).to_vector<int32_t>(), (std::vector<int32_t>{3, 3}));
    for (int i = 0; i < kMany; ++i)
      ASSERT_EQ(floats(f(ones({2}), 4)), (std::vector<float>{4, 4}));
    TrainScope train;
    for (int i = 0; i < kMany; ++i)
      ASSERT_EQ(floats(f(ones({2}), 3)), (std::vector<float>{30, 30}));
  }
  for (int i = 0; i < kMany; ++i) { // in turn
    ASSERT_EQ(floats(f(ones({2}), 3)), (std::vector<float>{3, 3}));
    ASSERT_EQ(floats(f(ones({2}), 4)), (std::vector<float>{4, 4}));
  }
}

TEST(JitCalls, FollowSizesOfOneProgramForAll) {
  auto f = jit([](Tensor x) { return sum(x, {0}) + x; });
  f.compile({f32, {"n", 2}});
  for (int round = 0; round < 3; ++round)
    for (int64_t n : {1, 3, 1, 40, 2}) {
      const Tensor x = full({n, 2}, 1.5);
      for (int i = 0; i < kMany; ++i) {
        const Tensor y = f(x);
        ASSERT_EQ(y.shape(), (Shape{n, 2}));
        ASSERT_EQ(floats(y), std::vector<float>(static_cast<size_t>(2 * n), 1.5f * static_cast<float>(n + 1)));
      }
    }
  EXPECT_EQ(f.stats().traces, 1u);
  // One for these very sizes goes before it, though it comes later.
  f.compile({f32, {3, 2}});
  for (int i = 0; i < kMany; ++i)
    ASSERT_EQ(floats(f(full({3, 2}, 1))), std::vector<float>(6, 4));
  EXPECT_EQ(f.stats().traces, 2u);
}

TEST(JitCalls, TellEveryHit) {
  auto f = jit([](Tensor x) { return x + 1; });
  constexpr int threads = 12, calls = 100; // more than have places of their own
  const Tensor xs[] = {ones({2}), ones({2}, i32)};
  f(xs[0]);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      for (int i = 0; i < calls; ++i)
        f(xs[t % 2]).wait();
    });
  for (std::thread &t : all)
    t.join();
  const JitStats s = f.stats();
  EXPECT_EQ(s.traces, 2u);
  EXPECT_EQ(s.hits + s.traces, 1u + threads * calls);
}

TEST(JitCalls, OutliveTheirThreads) {
  auto f = jit([](Tensor x) { return x * 2; });
  const Tensor xs[] = {full({3}, 1), full({3}, 2), full({2}, 3)};
  std::atomic<int> wrong{0};
  for (int round = 0; round < 10; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kMany; ++i)
          wrong += floats(f(xs[(t + round) % 3])).back() != static_cast<float>(2 * ((t + round) % 3 + 1));
      });
    for (std::thread &t : threads)
      t.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(JitCalls, SeeAssignedVariables) {
  Variable v(ones({2}), "v");
  auto f = jit([=](Tensor x) { return x * v; });
  for (int round = 1; round <= 4; ++round) {
    v.assign(full({2}, round));
    for (int i = 0; i < kMany; ++i)
      ASSERT_EQ(f(ones({2})).to_vector<float>().front(), static_cast<float>(round));
  }
  // One that is assigned by another program, which does not come this way.
  auto count = jit([=](Tensor x) {
    v.assign(v.value() + x);
    return v.value();
  });
  for (int i = 1; i <= kMany; ++i) {
    ASSERT_EQ(floats(count(ones({2}))).front(), static_cast<float>(4 + i));
    ASSERT_EQ(floats(f(ones({2}))).front(), static_cast<float>(4 + i));
  }
}

TEST(JitCalls, SeeModulesThatWereChanged) {
  nn::Sequential net{nn::Dense(2, nullptr, {.bias = false}), nn::Lambda([](Tensor t) { return t * 2; })};
  net.initialize({{f32, {1, 2}}}, 1);
  net.hybridize();
  const Tensor x = ones({1, 2});
  const auto before = floats(net(x));
  for (int i = 0; i < kMany; ++i)
    ASSERT_EQ(floats(net(x)), before);
  net.replace("1", nn::Lambda([](Tensor t) { return t * 4; }));
  for (int i = 0; i < kMany; ++i)
    ASSERT_EQ(floats(net(x)), (std::vector<float>{2 * before[0], 2 * before[1]}));
}

TEST(JitCalls, GoOnAfterOneThatFails) {
  auto f = jit([](Tensor x, Tensor i) { return take(x, i, 0); });
  const Tensor x = tensor({10.0, 20, 30}), inside = tensor({2}, i64), outside = tensor({3}, i64);
  for (int i = 0; i < kMany; ++i)
    ASSERT_EQ(f(x, inside).to_vector<float>(), (std::vector<float>{30}));
  for (int i = 0; i < 2 * kMany; ++i) {
    Tensor bad = f(x, outside);
    EXPECT_THROW(bad.wait(), RuntimeError);
    EXPECT_THROW(f(x, cast(bad, i64)).wait(), RuntimeError); // what was never computed
    ASSERT_EQ(f(x, inside).to_vector<float>(), (std::vector<float>{30}));
  }
  Tensor none;
  EXPECT_THROW(f(x, none), Error);
  ASSERT_EQ(f(x, inside).to_vector<float>(), (std::vector<float>{30}));
}

TEST(JitCalls, KeepTheirResultsApart) {
  auto f = jit([](Tensor x) { return std::pair(x + 1, x * 2); });
  std::vector<std::pair<Tensor, Tensor>> results;
  for (int i = 0; i < 3 * kMany; ++i)
    results.push_back(f(full({3}, i)));
  for (int i = 0; i < 3 * kMany; ++i) {
    EXPECT_EQ(floats(results[static_cast<size_t>(i)].first).front(), static_cast<float>(i + 1));
    EXPECT_EQ(floats(results[static_cast<size_t>(i)].second).back(), static_cast<float>(2 * i));
  }
}

TEST(JitCalls, UseMakesAProgramRecent) {
  auto f = jit([](Tensor x, int64_t n) { return x + n; }, {.max_programs = 2});
  f(ones({}), 2).wait();
  for (int i = 0; i < kMany; ++i)
    f(ones({}), 1).wait();
  f(ones({}), 2).wait();
  f(ones({}), 1).wait();
  f(ones({}), 3).wait(); // the second one goes
  f(ones({}), 1).wait();
  EXPECT_EQ(f.stats().traces, 3u);
  f(ones({}), 2).wait();
  EXPECT_EQ(f.stats().traces, 4u);
  EXPECT_EQ(f.stats().live, 2u);
}

TEST(JitCalls, ForgetClearedPrograms) {
  auto f = jit([](Tensor x) { return x + 1; });
  for (int i = 0; i < kMany; ++i)
    f(ones({2})).wait();
  clear_compile_caches();
  EXPECT_EQ(floats(f(ones({2}))), (std::vector<float>{2, 2}));
  EXPECT_EQ(f.stats().traces, 2u);
}

// Everything at once: threads with calls of their own, some of which fail, and one that takes programs away.
TEST(JitCalls, ManyThreadsWhileProgramsGo) {
  auto f = jit([](Tensor x, Tensor i, int64_t n) { return take(tanh(x) * n + x, i, 0); }, {.retrace_budget = 1 << 20});
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, failures{0};
  const Tensor inside = tensor({0}, i64), outside = tensor({9}, i64);
  std::vector<Tensor> xs;
  for (int t = 0; t < 6; ++t)
    xs.push_back(from_span(std::vector<float>(static_cast<size_t>(t % 3 + 1), static_cast<float>(t)), {t % 3 + 1}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      const auto v = static_cast<float>(t);
      const float expected = std::tanh(v) * v + v;
      for (int i = 0; i < 200; ++i) {
        wrong += std::abs(floats(f(xs[static_cast<size_t>(t)], inside, t)).back() - expected) > 1e-4f * (1 + expected);
        try {
          f(xs[static_cast<size_t>(t)], outside, t).wait();
        } catch (const RuntimeError &) {
          ++failures;
        }
      }
    });
  std::thread clears([&] {
    while (!stop) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      clear_compile_caches();
    }
  });
  for (std::thread &t : threads)
    t.join();
  stop = true;
  clears.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(failures, 6 * 200);
}

} // namespace
