// Random programs on random engines: threads that compute, share, drop, wait, fail and write in place. What each value
// must be is computed when its op is submitted; it has to come out the same however the engine ran it.
// TRESSEL_STRESS_OPS: ops of all threads together; TRESSEL_STRESS_SEED.
#include "tressel/runtime/Engine.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

using namespace tressel;
using namespace tressel::runtime;

namespace {

int64_t setting(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

/// Elements of 8 bytes, all the same.
struct Value {
  StorageRef storage;
  size_t n = 0;
  int64_t expected = 0;
  bool failed = false;
};

struct Coverage {
  std::atomic<uint64_t> inlined{0}, queued{0}, crossed{0}, helped{0}, full{0}, failed{0}, inPlace{0}, shared{0},
      waits{0}, dropped{0};
};

/// What threads give each other. Nobody writes to it in place.
struct Market {
  std::mutex mutex;
  std::vector<Value> values;
};

class Worker {
public:
  Worker(Engine &engine, Market &market, Coverage &coverage, uint64_t seed)
      : engine_(engine), market_(market), coverage_(coverage), random_(seed), costs_(4096) {}

  void run(int64_t ops) {
    for (int64_t i = 0; i < ops; ++i)
      step();
    for (Value &value : own_)
      check(value);
  }

private:
  static constexpr size_t kSizes[] = {1, 100, 1000, 8192};
  size_t pick(size_t n) { return random_() % n; }

  OpCost *cost() {
    static constexpr double kGuesses[] = {10, 3000, 30000, 1e6};
    const size_t which = pick(5);
    if (which == 4)
      return nullptr;
    // Shared by ops that are queued, so it is never made again: what it learns changes where later ones run.
    std::unique_ptr<OpCost> &slot = costs_[pick(costs_.size())];
    if (!slot)
      slot = std::make_unique<OpCost>(kGuesses[which]);
    return slot.get();
  }

  Value *operand(size_t n) {
    if (pick(8) == 0) {
      std::lock_guard lock(market_.mutex);
      for (Value &v : market_.values)
        if (v.n == n && pick(2)) {
          borrowed_ = v;
          ++coverage_.shared;
          return &borrowed_;
        }
    }
    for (size_t tries = 0; tries < 4 && !own_.empty(); ++tries)
      if (Value &v = own_[pick(own_.size())]; v.n == n)
        return &v;
    return nullptr;
  }

  void fresh(size_t n) {
    Value v{Storage::allocate(static_cast<int64_t>(n * 8)), n, static_cast<int64_t>(pick(1000)), false};
    auto *data = static_cast<int64_t *>(v.storage->data());
    for (size_t i = 0; i < n; ++i)
      data[i] = v.expected;
    keep(std::move(v));
  }

  void keep(Value v) {
    if (own_.size() < 12)
      own_.push_back(std::move(v));
    else
      own_[pick(own_.size())] = std::move(v);
  }

  void add(size_t n) {
    Value *a = operand(n), *b = operand(n);
    if (!a || !b || (a == &borrowed_ && b == &borrowed_))
      return fresh(n);
    const bool fails = pick(200) == 0;
    Value out{Engine::output(static_cast<int64_t>(n * 8)), n, 0, a->failed || b->failed || fails};
    out.expected = static_cast<int64_t>(static_cast<uint64_t>(a->expected) * 3 + static_cast<uint64_t>(b->expected));
    const StorageRef inputs[] = {a->storage, b->storage};
    engine_.submit({"add", {"stress.cpp", 1}, cost()}, inputs, {&out.storage, 1},
                   [n, fails](const TaskView &task) -> int32_t {
                     if (fails)
                       return kKernelIndexOutOfRange;
                     const auto *x = static_cast<const uint64_t *>(task.inputs[0]),
                                *y = static_cast<const uint64_t *>(task.inputs[1]);
                     auto *z = static_cast<uint64_t *>(task.outputs[0]);
                     for (size_t i = 0; i < n; ++i)
                       z[i] = x[i] * 3 + y[i];
                     return kKernelOk;
                   });
    coverage_.failed += fails;
    borrowed_ = {};
    keep(std::move(out));
  }

  void update(Value &v) { // as a Variable is
    if (v.failed)
      return;
    ++coverage_.inPlace;
    const StorageRef inputs[] = {v.storage};
    const size_t n = v.n;
    engine_.submit({"update", {"stress.cpp", 2}, cost()}, inputs, {&v.storage, 1},
                   [n](const TaskView &task) -> int32_t {
                     auto *x = static_cast<uint64_t *>(task.outputs[0]);
                     for (size_t i = 0; i < n; ++i)
                       x[i] += 7;
                     return kKernelOk;
                   });
    v.expected += 7;
  }

  void check(Value &v) {
    ++coverage_.waits;
    try {
      engine_.wait(*v.storage);
      EXPECT_FALSE(v.failed);
    } catch (const RuntimeError &) {
      EXPECT_TRUE(v.failed);
      return;
    }
    const auto *data = static_cast<const int64_t *>(v.storage->data());
    for (size_t i = 0; i < v.n; ++i)
      if (data[i] != v.expected) {
        ADD_FAILURE() << "element " << i << " of " << v.n << " is " << data[i] << ", not " << v.expected;
        return;
      }
  }

  void step() {
    const size_t what = pick(100);
    if (what < 60)
      return add(kSizes[pick(4)]);
    if (what < 70)
      return fresh(kSizes[pick(4)]);
    if (own_.empty())
      return;
    const size_t which = pick(own_.size());
    if (what < 80) {
      // Only what nobody else has a handle of: others expect what they saw.
      if (own_[which].storage->unique() || !isShared(own_[which]))
        update(own_[which]);
    } else if (what < 90) {
      ++coverage_.dropped;
      own_.erase(own_.begin() + static_cast<std::ptrdiff_t>(which));
    } else if (what < 93) {
      check(own_[which]);
    } else if (what < 97) {
      std::lock_guard lock(market_.mutex);
      shared_.push_back(own_[which].storage.get());
      if (market_.values.size() < 16)
        market_.values.push_back(own_[which]);
      else
        market_.values[pick(16)] = own_[which];
    } else if (what < 98) {
      try {
        engine_.waitAll();
      } catch (const RuntimeError &) { // planned ones, of any thread
      }
    }
  }

  /// Whether it was ever given to others: addresses of storages that are gone may say so for others, which does no
  /// harm.
  bool isShared(const Value &v) const {
    return std::find(shared_.begin(), shared_.end(), v.storage.get()) != shared_.end();
  }

  Engine &engine_;
  Market &market_;
  Coverage &coverage_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<OpCost>> costs_;
  std::vector<Value> own_;
  std::vector<const Storage *> shared_;
  Value borrowed_;
};

} // namespace

TEST(EngineStress, RandomProgramsEqualSerialExecution) {
  const int64_t ops = setting("TRESSEL_STRESS_OPS", 200000);
  const uint64_t seed = static_cast<uint64_t>(setting("TRESSEL_STRESS_SEED", 1));
  Coverage coverage;
  std::mt19937_64 random(seed);
  constexpr int kEngines = 8;
  for (int round = 0; round < kEngines; ++round) {
    const int lanes = 1 + round % 4, threads = round % 2 ? 16 : 1 + static_cast<int>(random() % 4);
    std::deque<Worker> workers; // queued tasks use their costs, so they outlive the engine
    Engine engine(lanes);
    Market market;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, &worker = workers.emplace_back(engine, market, coverage, random())] {
        worker.run(ops / kEngines / threads);
      });
    for (std::thread &t : all)
      t.join();
    try {
      engine.waitAll();
    } catch (const RuntimeError &) {
    }
    const Engine::Stats stats = engine.stats();
    coverage.inlined += stats.inlined, coverage.queued += stats.queued, coverage.crossed += stats.crossed;
    coverage.helped += stats.helped, coverage.full += stats.queueFull;
  }
  std::printf("seed %lu: %lu inline, %lu queued, %lu across lanes, %lu by waiters, %lu times full, %lu failures, %lu "
              "in place, %lu shared, "
              "%lu waits, %lu dropped\n",
              seed, coverage.inlined.load(), coverage.queued.load(), coverage.crossed.load(), coverage.helped.load(),
              coverage.full.load(), coverage.failed.load(), coverage.inPlace.load(), coverage.shared.load(),
              coverage.waits.load(), coverage.dropped.load());
  for (const auto *count : {&coverage.inlined, &coverage.queued, &coverage.crossed, &coverage.helped, &coverage.failed,
                            &coverage.inPlace, &coverage.shared, &coverage.waits, &coverage.dropped})
    EXPECT_GT(count->load(), 0u);
}

TEST(EngineStress, MillionsOfQueuedOpsNeedNoMoreMemory) {
  Engine engine(2);
  StorageRef one = Storage::allocate(8), sum = Storage::allocate(8);
  *static_cast<int64_t *>(one->data()) = 1;
  *static_cast<int64_t *>(sum->data()) = 0;
  const int64_t ops = setting("TRESSEL_STRESS_OPS", 200000) * 5;
  auto resident = [] {
    long pages = 0, total = 0;
    if (FILE *f = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(f, "%ld %ld", &total, &pages) != 2)
        pages = 0;
      std::fclose(f);
    }
    return pages * 4096;
  };
  long before = 0;
  for (int64_t i = 0; i < ops; ++i) {
    StorageRef next = Engine::output(8);
    const StorageRef inputs[] = {sum, one};
    engine.submit({"add"}, inputs, {&next, 1}, [](const TaskView &task) -> int32_t {
      *static_cast<int64_t *>(task.outputs[0]) =
          *static_cast<const int64_t *>(task.inputs[0]) + *static_cast<const int64_t *>(task.inputs[1]);
      return kKernelOk;
    });
    sum = next;
    if (i == ops / 10)
      before = resident();
  }
  engine.wait(*sum);
  EXPECT_EQ(*static_cast<const int64_t *>(sum->data()), ops);
  EXPECT_EQ(engine.stats().queued, static_cast<uint64_t>(ops));
  EXPECT_LT(resident() - before, 16 << 20);
}
