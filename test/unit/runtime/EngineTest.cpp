#include "Gate.h"
#include "tressel/runtime/Engine.h"

#include <array>
#include <deque>
#include <gtest/gtest.h>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace tressel;
using namespace tressel::runtime;

namespace {

StorageRef number(int64_t value) {
  StorageRef s = Storage::allocate(8);
  *static_cast<int64_t *>(s->data()) = value;
  return s;
}
int64_t valueOf(const StorageRef &s) { return *static_cast<const int64_t *>(s->data()); }

/// out = a + b, as a task. `cost` decides where it runs.
StorageRef add(Engine &engine, const StorageRef &a, const StorageRef &b, OpCost *cost) {
  StorageRef out = Storage::allocate(8);
  const StorageRef inputs[] = {a, b};
  engine.submit({"add", {"engine.cpp", 7}, cost}, inputs, {&out, 1}, [](const TaskView &task) -> int32_t {
    *static_cast<int64_t *>(task.outputs[0]) =
        *static_cast<const int64_t *>(task.inputs[0]) + *static_cast<const int64_t *>(task.inputs[1]);
    return kKernelOk;
  });
  return out;
}
/// Holds back what reads `value`, whichever lane that is in, until the gate opens.
void holdBack(Engine &engine, Gate &gate, StorageRef &value) {
  engine.submit({"gate"}, {}, {&value, 1}, [&gate](const TaskView &) -> int32_t {
    gate.pass();
    return kKernelOk;
  });
}

StorageRef failing(Engine &engine, const char *op, OpCost *cost = nullptr) {
  StorageRef out = Storage::allocate(8);
  engine.submit({op, {"user.cpp", 12}, cost}, {}, {&out, 1},
                [](const TaskView &) -> int32_t { throw Error("no luck"); });
  return out;
}

template <typename Fn> std::string messageOf(Fn &&fn) {
  try {
    fn();
  } catch (const RuntimeError &e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing thrown";
  return "";
}

} // namespace

TEST(Engine, RunsAChainInOrder) {
  Engine engine;
  StorageRef sum = number(0), one = number(1);
  for (int i = 0; i < 10000; ++i) // more than the lane holds
    sum = add(engine, sum, one, nullptr);
  engine.wait(*sum);
  EXPECT_EQ(valueOf(sum), 10000);
  EXPECT_EQ(engine.stats().queued, 10000u);
}

TEST(Engine, TinyOpsRunInTheCaller) {
  std::deque<OpCost> costs;
  Engine engine;
  StorageRef sum = number(0), one = number(1);
  for (int i = 0; i < 1000; ++i) {
    sum = add(engine, sum, one, &costs.emplace_back(10));
    ASSERT_EQ(valueOf(sum), i + 1); // no wait
  }
  EXPECT_EQ(engine.stats().inlined, 1000u);
  EXPECT_EQ(engine.stats().queued, 0u);
}

TEST(Engine, TinyOpsOnUnfinishedInputsAreQueued) {
  OpCost tiny(10);
  Engine engine;
  Gate gate;
  StorageRef slow = Storage::allocate(8), one = number(1);
  engine.submit({"slow"}, {}, {&slow, 1}, [&gate](const TaskView &task) -> int32_t {
    gate.pass();
    *static_cast<int64_t *>(task.outputs[0]) = 41;
    return kKernelOk;
  });
  StorageRef out = add(engine, slow, one, &tiny);
  EXPECT_FALSE(Engine::reached(out->ready()));
  gate.open();
  engine.wait(*out);
  EXPECT_EQ(valueOf(out), 42);
}

TEST(Engine, SmallOpsRunInlineUntilTheDebtIsSpent) {
  std::deque<OpCost> costs;
  Engine engine;
  engine.waitAll(); // no debt
  StorageRef one = number(1);
  std::vector<StorageRef> results;
  for (int i = 0; i < 10; ++i) // not one for all: measuring would make it tiny
    results.push_back(add(engine, one, one, &costs.emplace_back(15000)));
  EXPECT_EQ(engine.stats().inlined, 3u);
  engine.waitAll();
  add(engine, one, one, &costs.emplace_back(15000));
  EXPECT_EQ(engine.stats().inlined, 4u);
}

TEST(Engine, AWaiterHelps) {
  Engine engine;
  Gate gate;
  // The worker is held in the first task, so nobody else could run the second; a waiter must not run it out of order.
  StorageRef one = number(1);
  holdBack(engine, gate, one);
  StorageRef out = add(engine, one, number(2), nullptr);
  EXPECT_FALSE(Engine::reached(out->ready()));
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    gate.open();
  });
  engine.wait(*out);
  EXPECT_EQ(valueOf(out), 3);
  opener.join();
}

TEST(Engine, HostWritesWaitForUses) {
  Engine engine;
  Gate gate;
  StorageRef x = number(5), y = number(1);
  holdBack(engine, gate, y);
  StorageRef out = add(engine, x, y, nullptr);
  EXPECT_FALSE(Engine::reached(x->lastUse()));
  std::thread opener([&] { gate.open(); });
  engine.waitForUses(*x);
  *static_cast<int64_t *>(x->data()) = 100;
  engine.wait(*out);
  EXPECT_EQ(valueOf(out), 6);
  opener.join();
}

TEST(Engine, UpdatesInPlaceKeepTheOrder) {
  std::deque<OpCost> costs;
  Engine engine;
  StorageRef cell = number(0), one = number(1);
  std::vector<StorageRef> seen;
  for (int i = 0; i < 100; ++i) {
    OpCost *tiny = &costs.emplace_back(10);
    seen.push_back(add(engine, cell, cell, i % 2 ? tiny : nullptr)); // reads cell = i
    const StorageRef inputs[] = {one};
    engine.submit({"increment", {}, i % 3 ? nullptr : tiny}, inputs, {&cell, 1}, [](const TaskView &task) -> int32_t {
      *static_cast<int64_t *>(task.outputs[0]) += *static_cast<const int64_t *>(task.inputs[0]);
      return kKernelOk;
    });
  }
  engine.waitAll();
  EXPECT_EQ(valueOf(cell), 100);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(valueOf(seen[size_t(i)]), 2 * i);
}

TEST(Engine, FailuresTravel) {
  for (bool inlined : {false, true}) {
    OpCost tiny(10);
    Engine engine;
    OpCost *cost = inlined ? &tiny : nullptr;
    StorageRef bad = failing(engine, "matmul", cost), good = number(1);
    StorageRef later = add(engine, add(engine, bad, good, cost), good, cost);
    try {
      engine.wait(*later, {"user.cpp", 99});
      FAIL();
    } catch (const RuntimeError &e) {
      EXPECT_STREQ(e.what(), "user.cpp:12: matmul: no luck; from user.cpp:99");
      EXPECT_EQ(e.op(), "matmul");
    }
    EXPECT_EQ(bad->failure(), later->failure());
    StorageRef fine = add(engine, good, good, cost);
    engine.wait(*fine);
    EXPECT_EQ(valueOf(fine), 2);
    engine.waitAll(); // it was seen
  }
}

TEST(Engine, AStatusIsAFailure) {
  Engine engine;
  StorageRef out = Storage::allocate(8);
  engine.submit({"gather"}, {}, {&out, 1}, [](const TaskView &) -> int32_t { return kKernelIndexOutOfRange; });
  EXPECT_EQ(messageOf([&] { engine.wait(*out); }), "gather: an index, or a label of a class, is out of range");
}

TEST(Engine, PointsCarryTheirOwnFailure) {
  Engine engine;
  Point bad = engine.submit({"print"}, {}, {}, [](const TaskView &) -> int32_t { throw Error("disk full"); });
  Point good = engine.submit({"print"}, {}, {}, [](const TaskView &) -> int32_t { return kKernelOk; });
  engine.wait(good);
  EXPECT_EQ(messageOf([&] { engine.wait(bad); }), "print: disk full");
}

TEST(Engine, RewritingAStorageClearsItsFailure) {
  Engine engine;
  StorageRef cell = failing(engine, "assign");
  EXPECT_THROW(engine.wait(*cell), RuntimeError);
  engine.submit({"assign"}, {}, {&cell, 1}, [](const TaskView &task) -> int32_t {
    *static_cast<int64_t *>(task.outputs[0]) = 3;
    return kKernelOk;
  });
  engine.wait(*cell);
  EXPECT_EQ(valueOf(cell), 3);
}

TEST(Engine, StatesKeepTheirContentsUntilATaskSaysThatItWritesThem) {
  for (bool inlined : {false, true})
    for (bool wrote : {false, true}) {
      Engine engine;
      OpCost tiny(10);
      StorageRef state = number(7), result = Storage::allocate(8);
      const StorageRef outputs[] = {result, state};
      auto step = [&](const StorageRef &input, bool fails) {
        engine.submit({.op = "step", .cost = inlined ? &tiny : nullptr, .numStates = 1}, {&input, 1}, outputs,
                      [=](const TaskView &task) -> int32_t {
                        task.wroteStates = wrote || !fails;
                        if (fails)
                          throw Error("no luck");
                        ++*static_cast<int64_t *>(task.outputs[1]);
                        return kKernelOk;
                      });
      };
      step(number(0), /*fails=*/true);
      EXPECT_EQ(messageOf([&] { engine.wait(*result); }), "step: no luck");
      if (!wrote) {
        engine.wait(*state);
        EXPECT_EQ(valueOf(state), 7);
        step(failing(engine, "input"), /*fails=*/false); // is not run
        EXPECT_EQ(messageOf([&] { engine.wait(*result); }), "user.cpp:12: input: no luck");
        step(number(0), /*fails=*/false);
        engine.wait(*state);
        EXPECT_EQ(valueOf(state), 8);
      } else {
        EXPECT_EQ(messageOf([&] { engine.wait(*state); }), "step: no luck");
        step(number(0), /*fails=*/false); // nothing is made of a state without a value
        EXPECT_EQ(messageOf([&] { engine.wait(*state); }), "step: no luck");
      }
    }
}

TEST(Engine, WaitAllThrowsTheFirstAndListsTheRest) {
  Engine engine;
  failing(engine, "first");
  failing(engine, "second");
  failing(engine, "third");
  const std::string message = messageOf([&] { engine.waitAll(); });
  EXPECT_NE(
      message.find("user.cpp:12: first: no luck; 2 more failed: user.cpp:12: second: no luck; user.cpp:12: third"),
      std::string::npos)
      << message;
  engine.waitAll(); // told once
}

TEST(Engine, UnseenFailuresArePrinted) {
  testing::internal::CaptureStderr();
  {
    Engine engine;
    failing(engine, "seen");
    EXPECT_THROW(engine.waitAll(), RuntimeError);
    failing(engine, "forgotten");
  }
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_EQ(printed, "tressel: a failure that nobody waited for: user.cpp:12: forgotten: no luck\n");
}

TEST(Engine, FinishesItsWorkWhenDestroyed) {
  std::atomic<int> ran{0};
  {
    Engine engine;
    for (int i = 0; i < 1000; ++i)
      engine.submit({"count"}, {}, {}, [&](const TaskView &) -> int32_t {
        ++ran;
        return kKernelOk;
      });
  }
  EXPECT_EQ(ran, 1000);
}

TEST(Engine, LargeClosuresAndManyOperands) {
  Engine engine;
  std::array<int64_t, 64> weights;
  std::vector<StorageRef> inputs;
  int64_t expected = 0;
  for (int i = 0; i < 64; ++i) {
    weights[size_t(i)] = i;
    inputs.push_back(number(i + 1));
    expected += i * (i + 1);
  }
  auto owner = std::make_shared<int>(1);
  StorageRef out = Storage::allocate(8);
  engine.submit({"dot"}, inputs, {&out, 1}, [weights, owner](const TaskView &task) -> int32_t {
    int64_t sum = 0;
    for (size_t i = 0; i < 64; ++i)
      sum += weights[i] * *static_cast<const int64_t *>(task.inputs[i]);
    *static_cast<int64_t *>(task.outputs[0]) = sum;
    return kKernelOk;
  });
  engine.wait(*out);
  EXPECT_EQ(valueOf(out), expected);
  EXPECT_EQ(owner.use_count(), 1); // the closure is gone
}

TEST(Engine, TasksMaySubmitButNotWait) {
  Engine engine;
  StorageRef inner;
  std::string refused;
  engine.wait(engine.submit({"outer"}, {}, {}, [&](const TaskView &) -> int32_t {
    inner = add(engine, number(1), number(2), nullptr);
    try {
      engine.waitAll();
    } catch (const RuntimeError &e) {
      refused = e.what();
    }
    return kKernelOk;
  }));
  EXPECT_EQ(valueOf(inner), 3);
  EXPECT_NE(refused.find("cannot wait"), std::string::npos);
}

TEST(Engine, DeletersRunInCallersThreads) {
  Engine engine;
  static std::thread::id ranIn;
  static std::atomic<int> runs;
  runs = 0;
  int64_t value = 5;
  for (int i = 0; i < 100; ++i) {
    StorageRef out;
    {
      StorageRef mine = Storage::adopt(
          &value, 8, [](void *, void *) { ranIn = std::this_thread::get_id(), ++runs; }, nullptr);
      out = add(engine, mine, mine, nullptr);
    }
    if (i % 2)
      std::this_thread::sleep_for(std::chrono::microseconds(100)); // let the lane's thread drop the last reference
    engine.wait(*out);
    Storage::runPendingDeleters();
    ASSERT_EQ(ranIn, std::this_thread::get_id());
  }
  engine.waitAll();
  EXPECT_EQ(runs, 100);
}

TEST(Engine, SeveralProducers) {
  Engine engine;
  constexpr int kThreads = 4, kSteps = 3000;
  std::vector<std::thread> producers;
  StorageRef shared = number(1);
  std::vector<int64_t> results(kThreads);
  for (int t = 0; t < kThreads; ++t)
    producers.emplace_back([&, t] {
      std::mt19937 random{unsigned(t)};
      OpCost tiny(10), small(3000);
      OpCost *costs[] = {nullptr, &tiny, &small};
      StorageRef sum = number(t);
      for (int i = 0; i < kSteps; ++i) {
        sum = add(engine, sum, shared, costs[random() % 3]);
        if (random() % 100 == 0)
          engine.wait(*sum);
        if (random() % 500 == 0) {
          try {
            engine.waitAll();
          } catch (const RuntimeError &) { // another producer's planned failure
          }
        }
        if (random() % 500 == 0) {
          StorageRef bad = failing(engine, "planned", costs[random() % 3]);
          EXPECT_THROW(engine.wait(*add(engine, bad, sum, nullptr)), RuntimeError);
        }
      }
      engine.wait(*sum);
      results[size_t(t)] = valueOf(sum);
    });
  for (std::thread &p : producers)
    p.join();
  for (int t = 0; t < kThreads; ++t)
    EXPECT_EQ(results[size_t(t)], t + kSteps);
}

// A child inherits no threads, so an engine that worked before the fork cannot go on in it. (A process that first
// computes after the fork is like any other.)
TEST(Engine, CallsInTheChildOfAForkThrow) {
  Engine before;
  const pid_t child = fork();
  if (child == 0) {
    Engine *engine = new Engine();
    try {
      engine->submit({"x"}, {}, {}, [](const TaskView &) -> int32_t { return kKernelOk; });
      _exit(1);
    } catch (const RuntimeError &) {
      _exit(0);
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
