// Variables that compiled programs update: in their own memory, alone, and not at all by a call that fails before its first write.
#include "frontend/tensor/StateGroup.h"

#include <tressel/tressel.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace tressel {
namespace {

std::vector<float> floats(const Tensor &t) { return t.to_vector<float>(); }

std::string messageOf(const std::function<void()> &fn) {
  try {
    fn();
  } catch (const Error &e) {
    return e.what();
  }
  return "nothing thrown";
}

/// As long as nothing is read from it.
const void *memoryOf(const Variable &v) { return v.impl()->value.impl()->storage->data(); }

TEST(States, AreUpdatedInTheirOwnMemory) {
  Variable v(zeros({1000}) + 1.0, "v");
  auto step = jit([=](Tensor a, Tensor b) {
    v.assign(v.value() * a + b);
    return sum(v.value());
  });
  const Tensor a = full({}, 2.0), b = full({}, 1.0);
  step(a, b).wait();
  const void *memory = memoryOf(v);
  float expected = 3;
  for (int i = 0; i < 20; ++i) {
    EXPECT_FLOAT_EQ(step(a, b).item<float>(), 1000 * (2 * expected + 1));
    expected = 2 * expected + 1;
    if (expected > 1e6f)
      expected = 3, v.assign(full({1000}, 3.0)), step(a, b).wait(), expected = 7, memory = memoryOf(v);
    EXPECT_EQ(memoryOf(v), memory);
  }
  EXPECT_EQ(step.stats().traces, 1u);
}

TEST(States, ATensorThatWasReadKeepsItsValue) {
  Variable v(full({4}, 1.0) + 0.0, "v");
  auto step = jit([=] { v.assign(v.value() + 1.0); });
  step();
  const Tensor held = v.value();
  EXPECT_EQ(step.stats().state_copies, 0u);
  step();
  EXPECT_EQ(step.stats().state_copies, 1u);
  EXPECT_EQ(floats(held), (std::vector<float>{2, 2, 2, 2}));
  EXPECT_EQ(floats(v.value()), (std::vector<float>{3, 3, 3, 3}));
  for (int i = 0; i < 10; ++i)
    step();
  EXPECT_EQ(step.stats().state_copies, 1u); // its own again
  EXPECT_EQ(floats(held).front(), 2);
  EXPECT_EQ(floats(v.value()).front(), 13);
  const std::string text = step.explain().text;
  EXPECT_NE(text.find("1 Variable was copied before a call updated them"), std::string::npos) << text;
}

TEST(States, StrictDonationNamesTheVariableAndItsHolder) {
  Variable v(full({4}, 1.0) + 0.0, "weight");
  auto step = jit([=] { v.assign(v.value() + 1.0); }, {.name = "step", .strict_donation = true});
  step();
  {
    const Tensor held = v.value();
    const std::string message = messageOf([&] { step(); });
    EXPECT_NE(message.find("'step' updates the Variable 'weight', whose value is still held by a tensor, read or made at "),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("StatesTest.cpp:" + std::to_string(__LINE__ - 5)), std::string::npos) << message;
  }
  step();
  EXPECT_EQ(floats(v.value()).front(), 3);
}

TEST(States, ResultsMayBeOldAndNewValues) {
  Variable v(full({3}, 1.0), "v"), w(full({3}, 10.0), "w");
  auto swap = jit([=](Tensor x) {
    const Tensor old = v.value();
    v.assign(w.value());
    w.assign(old + x);
    return std::tuple{old, v.value(), w.value()};
  });
  auto [a, b, c] = swap(ones({3}));
  EXPECT_EQ(floats(a).front(), 1);
  EXPECT_EQ(floats(b).front(), 10);
  EXPECT_EQ(floats(c).front(), 2);
  swap(ones({3}));
  EXPECT_EQ(floats(a).front(), 1); // what was returned stays
  EXPECT_EQ(floats(b).front(), 10);
  EXPECT_EQ(floats(v.value()).front(), 2);
  EXPECT_EQ(floats(w.value()).front(), 11);
}

TEST(States, AssignedAnArgumentOrAConstantTheyAreCopied) {
  Variable v(zeros({2}), "v"), w(zeros({2}), "w");
  const Tensor outside = full({2}, 7.0);
  auto f = jit([=](Tensor x) {
    v.assign(x);
    w.assign(outside);
  });
  Tensor x = full({2}, 5.0);
  f(x);
  auto add = jit([=] {
    v.assign(v.value() + 1.0);
    w.assign(w.value() + 1.0);
  });
  add();
  EXPECT_EQ(floats(x).front(), 5);
  EXPECT_EQ(floats(outside).front(), 7);
  EXPECT_EQ(floats(v.value()).front(), 6);
  EXPECT_EQ(floats(w.value()).front(), 8);
  EXPECT_EQ(add.stats().state_copies, 0u);
}

TEST(States, AFailureBeforeTheFirstWriteLeavesThem) {
  Variable v(full({2}, 1.0), "v"), w(full({2}, 1.0), "w");
  auto step = jit([=](Tensor index) {
    v.assign(v.value() + 1.0); // written behind the op that may fail, whatever the order of the lines
    const Tensor taken = take(tensor({1.0, 2, 3}), index, 0);
    w.assign(w.value() + taken);
    return sum(taken);
  });
  const Tensor good = tensor({0, 1}), bad = tensor({0, 9});
  step(good).wait();
  EXPECT_NE(messageOf([&] { step(bad).wait(); }).find("out of range"), std::string::npos);
  EXPECT_EQ(floats(v.value()), (std::vector<float>{2, 2}));
  EXPECT_EQ(floats(w.value()), (std::vector<float>{2, 3}));
  step(good).wait();
  EXPECT_EQ(floats(v.value()), (std::vector<float>{3, 3}));
  EXPECT_EQ(floats(w.value()), (std::vector<float>{3, 5}));
}

TEST(States, AFailedInputLeavesThem) {
  Variable v(full({2}, 1.0), "v");
  auto step = jit([=](Tensor x) { v.assign(v.value() + x); });
  const Tensor failed = take(tensor({1.0, 2, 3}), tensor({0, 9}), 0);
  step(failed);
  EXPECT_NE(messageOf([&] { wait_all(); }).find("out of range"), std::string::npos);
  EXPECT_EQ(floats(v.value()).front(), 1);
}

TEST(States, CallsOnTheSameVariablesRunOneByOne) {
  Variable v(zeros({}), "v");
  auto step = jit([=] { v.assign(v.value() + 1.0); });
  auto read = jit([=](Tensor x) { return v.value() * x; });
  constexpr int threads = 4, calls = 500;
  std::atomic<int> torn{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      const Tensor x = full({64}, 1.0);
      for (int i = 0; i < calls; ++i)
        if (t % 2) {
          step();
        } else {
          const auto values = floats(read(x));
          torn += !std::ranges::all_of(values, [&](float value) { return value == values.front(); });
        }
    });
  for (std::thread &thread : all)
    thread.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(v.value().item<float>(), threads / 2 * calls);
}

TEST(States, LargeOnesInOrder) { // queued, with readers and assignments between
  Variable v(zeros({1 << 18}), "v");
  auto step = jit([=](Tensor x) { v.assign(v.value() + x); });
  auto read = jit([=](Tensor x) { return v.value() * x; });
  const Tensor one = ones({1 << 18});
  std::vector<Tensor> seen;
  for (int i = 0; i < 20; ++i) {
    step(one);
    seen.push_back(slice(read(one), {0}, {4}));
    if (i % 7 == 6)
      v.assign(v.value() + 100.0);
  }
  float expected = 0;
  for (int i = 0; i < 20; ++i) {
    ++expected;
    EXPECT_EQ(floats(seen[static_cast<size_t>(i)]), std::vector<float>(4, expected)) << i;
    expected += i % 7 == 6 ? 100 : 0;
  }
}

TEST(States, DisjointOnesAtOnce) {
  constexpr int threads = 4;
  std::vector<std::thread> all;
  std::atomic<int> wrong{0};
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      Variable v(full({16}, static_cast<double>(t)), "v" + std::to_string(t));
      auto step = jit([=] { v.assign(v.value() + 1.0); });
      for (int i = 0; i < 300; ++i)
        step();
      wrong += floats(v.value()).front() != static_cast<float>(t + 300);
    });
  for (std::thread &thread : all)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(States, InBranchesAndLoops) {
  auto run = [](bool compiled) {
    Variable v(full({4}, 1.0), "v"), n(zeros({}), "n");
    auto body = [=](Tensor x) {
      const Tensor y = cond(
          max(x) > 0,
          [=](Tensor t) {
            v.assign(v.value() * 2.0 + t);
            return t + v.value();
          },
          [=](Tensor t) { return t - v.value(); }, x);
      return for_loop(
          3,
          [=](Tensor, Tensor z) {
            n.assign(n.value() + 1.0);
            v.assign(v.value() + z * 0.5);
            return z * 0.5 + n.value();
          },
          y);
    };
    auto f = jit(body);
    std::vector<float> all;
    for (double x : {1.0, -1.0, 2.0, -3.0, 0.5}) {
      const Tensor t = full({4}, x);
      const auto values = floats(compiled ? f(t) : body(t));
      all.insert(all.end(), values.begin(), values.end());
    }
    for (const Variable &each : {v, n}) {
      const auto values = floats(each.value());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const auto eager = run(false), compiled = run(true);
  ASSERT_EQ(eager.size(), compiled.size());
  for (size_t i = 0; i < eager.size(); ++i)
    EXPECT_NEAR(eager[i], compiled[i], 1e-5f * std::abs(eager[i]) + 1e-6f) << i;
}

// A thread that holds one Variable's group may wait for another's, as a program's parts of a Variable are locked while
// the whole is. One that waited for the second group while it held the first would wait for ever.
TEST(States, GroupsAreJoinedWhileThreadsHoldOneAndWaitForAnother) {
  for (int i = 0; i < 200; ++i) {
    const Variable a(zeros({1}), "a"), b(zeros({1}), "b");
    std::atomic<int> ready{0};
    auto meet = [&] {
      for (++ready; ready < 2;)
        std::this_thread::yield();
    };
    std::thread other([&] {
      const detail::StateGroup::Lock whole(*a.impl());
      meet();
      std::this_thread::sleep_for(std::chrono::microseconds(200)); // the join holds the other group by then
      const detail::StateGroup::Lock part(*b.impl());
    });
    meet();
    const std::shared_ptr<detail::VariableImpl> both[] = {b.impl(), a.impl()};
    detail::StateGroup::join(both);
    other.join();
    const detail::StateGroup::Lock first(*a.impl()), second(*b.impl());
    EXPECT_EQ(&first.group(), &second.group());
  }
}

} // namespace
} // namespace tressel
