// Several lanes: what runs side by side, what waits for what, and whose bytes are given on when.
#include "Gate.h"
#include "tressel/runtime/Engine.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

using namespace tressel;
using namespace tressel::runtime;

namespace {

constexpr int64_t kLarge = 1 << 20; // bytes

/// Fills the output with the sum of the inputs' first bytes, plus one; passes the gate first, where there is one.
StorageRef increment(Engine &engine, std::vector<StorageRef> inputs, OpCost &cost, Gate *gate = nullptr,
                     int64_t bytes = kLarge, Point *point = nullptr) {
  StorageRef out = Engine::output(bytes);
  const size_t n = inputs.size();
  const Point p =
      engine.submit({"increment", {"lanes.cpp", 3}, &cost}, inputs, {&out, 1}, [=](const TaskView &task) -> int32_t {
        if (gate)
          gate->pass();
        int sum = 1;
        for (size_t i = 0; i < n; ++i)
          sum += *static_cast<const uint8_t *>(task.inputs[i]);
        std::memset(task.outputs[0], sum, static_cast<size_t>(bytes));
        return kKernelOk;
      });
  if (point)
    *point = p;
  return out;
}
uint8_t firstOf(const StorageRef &s) { return *static_cast<const uint8_t *>(s->data()); }

/// Frees what earlier tests left, and bounds memory for one test.
struct MemoryLimit {
  explicit MemoryLimit(int64_t beyond) {
    Engine::trimMemory();
    Engine::setMemoryLimit(Engine::memory().live + Storage::liveBytes() + beyond);
  }
  ~MemoryLimit() { Engine::setMemoryLimit(0); }
};

} // namespace

TEST(Lanes, IndependentLargeTasksRunSideBySide) {
  OpCost large(1e6);
  Engine engine(2);
  // Each is done when the other has begun, so on one lane they would stand still.
  std::atomic<int> begun{0};
  std::atomic<bool> met{true};
  for (int i = 0; i < 2; ++i)
    engine.submit({"meet", {}, &large}, {}, {}, [&](const TaskView &) -> int32_t {
      ++begun;
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (begun < 2 && std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
      if (begun < 2)
        met = false;
      return kKernelOk;
    });
  engine.waitAll();
  EXPECT_TRUE(met);
}

TEST(Lanes, WorkIsDoneWhileNobodyWaits) {
  OpCost large(1e6);
  Engine engine(2);
  for (int round = 0; round < 3; ++round) {
    Gate gate;
    StorageRef x = increment(engine, {}, large, &gate), a = increment(engine, {x}, large),
               b = increment(engine, {x}, large);
    StorageRef joined = increment(engine, {a, b}, large);
    std::this_thread::sleep_for(std::chrono::milliseconds(5)); // whoever has nothing to do is asleep
    gate.open();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!Engine::reached(joined->ready()) && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(Engine::reached(joined->ready()));
    EXPECT_EQ(firstOf(joined), 5);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(engine.stats().helped, 0u);
}

TEST(Lanes, AChainStaysOnItsLane) {
  OpCost large(1e6);
  Engine engine(4);
  Gate gate;
  Point first, last;
  StorageRef x = increment(engine, {}, large, &gate, kLarge, &first);
  for (int i = 0; i < 10; ++i)
    x = increment(engine, {x}, large, nullptr, kLarge, &last);
  EXPECT_EQ(first.lane, last.lane);
  gate.open();
  engine.wait(*x);
  EXPECT_EQ(firstOf(x), 11);
  EXPECT_EQ(engine.stats().crossed, 0u);
}

TEST(Lanes, ABranchGoesToAnotherLaneAndWaitsThere) {
  OpCost large(1e6);
  Engine engine(2);
  Gate gate;
  Point a, b, c, d;
  StorageRef x = increment(engine, {}, large, &gate, kLarge, &a);
  StorageRef left = increment(engine, {x}, large, nullptr, kLarge, &b);
  StorageRef right = increment(engine, {x}, large, nullptr, kLarge, &c);
  StorageRef joined = increment(engine, {left, right}, large, nullptr, kLarge, &d);
  EXPECT_EQ(a.lane, b.lane);
  EXPECT_NE(b.lane, c.lane);
  EXPECT_EQ(engine.stats().crossed, 2u);
  std::this_thread::sleep_for(std::chrono::milliseconds(2)); // whoever would run too early has the time to
  EXPECT_FALSE(Engine::reached(right->ready()));
  gate.open();
  engine.wait(*joined);
  EXPECT_EQ(firstOf(joined), 5);
}

TEST(Lanes, AWaiterHelpsThroughTheLanesThatItWaitsFor) {
  // Both threads of the engine are held; what the caller waits for crosses from lane to lane.
  std::deque<OpCost> costs;
  Engine engine(2);
  Gate gates[2], begun[2];
  for (int i = 0; i < 2; ++i)
    engine.submit({"hold", {}, &costs.emplace_back(1e6)}, {}, {}, [&, i](const TaskView &) -> int32_t {
      begun[i].open();
      gates[i].pass();
      return kKernelOk;
    });
  begun[0].pass(), begun[1].pass();
  StorageRef x = increment(engine, {}, costs.emplace_back(1e6));
  for (int i = 0; i < 20; ++i) {
    StorageRef a = increment(engine, {x}, costs.emplace_back(1e6)), b = increment(engine, {x}, costs.emplace_back(1e6));
    x = increment(engine, {a, b}, costs.emplace_back(1));
  }
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    gates[1].open();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    gates[0].open();
  });
  engine.wait(*x);
  int expected = 1;
  for (int i = 0; i < 20; ++i)
    expected = 1 + 2 * (expected + 1);
  EXPECT_EQ(firstOf(x), static_cast<uint8_t>(expected));
  EXPECT_GT(engine.stats().crossed, 0u);
  opener.join();
}

TEST(Lanes, WritesWaitForReadersOnOtherLanes) {
  OpCost large(1e6), larger(2e6);
  Engine engine(2);
  Gate gate;
  Point reading, other, writing;
  StorageRef cell = increment(engine, {}, large), out = Engine::output(kLarge);
  engine.wait(*cell);
  const StorageRef inputs[] = {cell};
  reading = engine.submit({"read", {}, &larger}, inputs, {&out, 1}, [&](const TaskView &task) -> int32_t {
    gate.pass();
    std::memcpy(task.outputs[0], task.inputs[0], kLarge);
    return kKernelOk;
  });
  increment(engine, {}, large, nullptr, kLarge, &other); // keeps nobody: it is elsewhere
  EXPECT_NE(reading.lane, other.lane);
  writing = engine.submit({"write", {}, &large}, {}, {&cell, 1}, [](const TaskView &task) -> int32_t {
    std::memset(task.outputs[0], 77, kLarge);
    return kKernelOk;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_FALSE(Engine::reached(writing));
  gate.open();
  engine.wait(*cell);
  engine.wait(*out);
  EXPECT_EQ(firstOf(cell), 77);
  EXPECT_EQ(firstOf(out), 1);
}

TEST(Lanes, AQueuedChainNeedsTheMemoryOfTwoResults) {
  OpCost large(1e6);
  Engine engine(2);
  Engine::trimMemory();
  const Engine::Memory before = Engine::memory();
  Gate gate;
  StorageRef x = increment(engine, {}, large, &gate);
  for (int i = 0; i < 1000; ++i)
    x = increment(engine, {x}, large);
  const Engine::Memory queued = Engine::memory();
  EXPECT_LE(queued.live + queued.idle - before.live - before.idle, 3 * kLarge);
  gate.open();
  engine.wait(*x);
  EXPECT_EQ(firstOf(x), static_cast<uint8_t>(1001));
}

TEST(Lanes, BytesInUseAreNotGivenToOtherLanes) {
  OpCost large(1e6);
  Engine engine(2);
  Engine::trimMemory();
  Gate gate;
  Point a, b;
  StorageRef x = increment(engine, {}, large); // 1
  engine.wait(*x);
  // A reader is held on one lane while the last handle goes; a task of the other lane must not write over it.
  StorageRef copy = increment(engine, {x}, large, &gate, kLarge, &a); // 2
  const void *bytes = x->data();
  x = {};
  StorageRef other = increment(engine, {}, large, nullptr, kLarge, &b);
  ASSERT_NE(a.lane, b.lane);
  EXPECT_NE(other->data(), bytes);
  // One of the same lane runs later, and may.
  StorageRef behind = increment(engine, {copy}, large, nullptr, kLarge, &b); // 3
  ASSERT_EQ(a.lane, b.lane);
  EXPECT_EQ(behind->data(), bytes);
  gate.open();
  engine.wait(*behind);
  EXPECT_EQ(firstOf(behind), 3);
  EXPECT_EQ(firstOf(copy), 2);
}

TEST(Lanes, MemoryThatIsShortIsWaitedFor) {
  MemoryLimit limit(8 * kLarge);
  OpCost large(1e6);
  Engine engine(1);
  // Sizes that cannot take each other's bytes, none held: each has room once those before are done.
  StorageRef last;
  for (int i = 0; i < 12; ++i)
    last = increment(engine, {}, large, nullptr, kLarge * (1 + i % 4));
  engine.wait(*last);
  EXPECT_GT(engine.stats().memoryShort, 0u);
}

TEST(Lanes, WhatHandlesHoldIsNotWaitedFor) {
  MemoryLimit limit(8 * kLarge);
  OpCost large(1e6), tiny(1);
  Engine engine(2);
  for (OpCost *cost : {&large, &tiny}) {
    std::vector<StorageRef> held;
    try {
      for (int i = 0; i < 100; ++i)
        held.push_back(increment(engine, {}, *cost));
      FAIL() << "100 MiB in 8";
    } catch (const OutOfMemory &e) {
      EXPECT_EQ(e.where().line, 3u);
      EXPECT_NE(std::string(e.what()).find("lanes.cpp:3: increment: cannot allocate 1048576 bytes: tensors hold "),
                std::string::npos)
          << e.what();
      EXPECT_NE(std::string(e.what()).find("increment at lanes.cpp:3: 8388608"), std::string::npos) << e.what();
    }
    EXPECT_EQ(held.size(), 8u);
    // What was there is there, and with room it goes on.
    for (const StorageRef &s : held) {
      engine.wait(*s);
      EXPECT_EQ(firstOf(s), 1);
    }
    held.pop_back();
    StorageRef next = increment(engine, {held[0]}, *cost);
    engine.wait(*next);
    EXPECT_EQ(firstOf(next), 2);
  }
}

TEST(Lanes, WhatTheHostWritesCountsToo) {
  MemoryLimit limit(4 * kLarge);
  OpCost large(1e6);
  Engine engine(1);
  Gate gate;
  StorageRef held = increment(engine, {}, large, &gate, 3 * kLarge), x = Storage::allocate(kLarge / 2);
  StorageRef later = increment(engine, {held}, large, nullptr, 8);
  held = {};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    gate.open();
  });
  engine.makeRoomFor(3 * kLarge, {.op = "zeros"}); // once the queue has let go
  opener.join();
  EXPECT_EQ(engine.stats().memoryShort, 1u);
  try {
    engine.makeRoomFor(5 * kLarge, {.op = "zeros", .where = {"lanes.cpp", 8}});
    FAIL();
  } catch (const OutOfMemory &e) {
    EXPECT_NE(std::string(e.what()).find("lanes.cpp:8: zeros: cannot allocate 5242880 bytes: tensors hold "),
              std::string::npos)
        << e.what();
    EXPECT_NE(std::string(e.what()).find("written by the host: "), std::string::npos) << e.what();
  }
}

TEST(Lanes, AFullLaneMakesTheCallerHelp) {
  constexpr int full = 4096; // tasks in a lane
  Engine engine(1);
  OpCost large(1e6); // queued, not run by the caller
  std::atomic<int> ran{0}, submitted{0};
  // Holds the lane until it is full, and the caller a little longer.
  engine.submit({.op = "hold", .cost = &large}, {}, {}, [&](const TaskView &) -> int32_t {
    while (submitted < full)
      std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return kKernelOk;
  });
  for (int i = 0; i < 20000; ++i) {
    ++submitted;
    engine.submit({"count"}, {}, {}, [&](const TaskView &) -> int32_t {
      ++ran;
      return kKernelOk;
    });
  }
  engine.waitAll();
  EXPECT_EQ(ran, 20000);
  EXPECT_GT(engine.stats().queueFull, 0u);
}

TEST(Lanes, FailuresCrossLanes) {
  OpCost large(1e6);
  Engine engine(2);
  Gate gate;
  StorageRef bad = Engine::output(kLarge);
  engine.submit({"matmul", {"user.cpp", 12}, &large}, {}, {&bad, 1}, [&](const TaskView &) -> int32_t {
    gate.pass();
    throw Error("no luck");
  });
  StorageRef a = increment(engine, {bad}, large), b = increment(engine, {bad}, large),
             good = increment(engine, {}, large);
  ASSERT_GT(engine.stats().crossed, 0u);
  gate.open();
  EXPECT_THROW(engine.wait(*a), RuntimeError);
  EXPECT_THROW(engine.wait(*b), RuntimeError);
  engine.wait(*good);
  EXPECT_EQ(firstOf(good), 1);
}

TEST(Lanes, RecordsTellWhatRanWhereAndWhatItWaitedFor) {
  OpCost large(1e6), tiny(1);
  Engine engine(2);
  engine.startRecording();
  Gate gate;
  StorageRef one = Storage::allocate(8);
  *static_cast<uint8_t *>(one->data()) = 1;
  StorageRef inlined = increment(engine, {one}, tiny, nullptr, 8);
  StorageRef x = increment(engine, {inlined}, large, &gate), y = increment(engine, {x}, large);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    gate.open();
  });
  engine.wait(*y, {"lanes.cpp", 9}, "item");
  opener.join();
  engine.waitAll();
  increment(engine, {one}, tiny, nullptr, 8);
  const std::vector<TaskRecord> records = engine.stopRecording();
  std::vector<const TaskRecord *> tasks, waits;
  for (const TaskRecord &r : records)
    (r.kind == TaskRecord::Kind::Wait ? waits : tasks).push_back(&r);
  ASSERT_EQ(tasks.size(), 4u);
  EXPECT_EQ(tasks[0]->kind, TaskRecord::Kind::Inline);
  EXPECT_STREQ(tasks[0]->op, "increment");
  EXPECT_EQ(tasks[0]->where.line, 3u);
  EXPECT_EQ(tasks[1]->sequence, x->ready().sequence);
  EXPECT_TRUE(tasks[1]->after.empty());
  EXPECT_EQ(tasks[2]->after, std::vector<uint64_t>{x->ready().sequence});
  EXPECT_LE(tasks[1]->submitNs, tasks[1]->beginNs);
  EXPECT_LE(tasks[1]->endNs, tasks[2]->beginNs);
  EXPECT_GE(tasks[1]->endNs - tasks[1]->beginNs, 1000000); // it was held
  ASSERT_GE(waits.size(), 1u);
  EXPECT_STREQ(waits[0]->op, "item");
  EXPECT_EQ(waits[0]->where.line, 9u);
  EXPECT_TRUE(waits[0]->hidden);
  EXPECT_EQ(waits[0]->sequence, y->ready().sequence);
  engine.waitAll();
  EXPECT_TRUE(engine.stopRecording().empty());
}
