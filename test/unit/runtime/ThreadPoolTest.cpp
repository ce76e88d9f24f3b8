#include "tressel/runtime/ThreadPool.h"

#include <atomic>
#include <gtest/gtest.h>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace tressel::runtime;

TEST(ThreadPool, CoversTheRangeOnce) {
  ThreadPool pool(4);
  for (int64_t range : {1, 2, 3, 15, 16, 17, 1000, 12345})
    for (int64_t grain : {1, 2, 16, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(range));
      pool.parallelFor(range, grain, [&](int64_t begin, int64_t end, int worker) {
        EXPECT_LT(worker, 4);
        EXPECT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i)
          ++hits[static_cast<size_t>(i)];
      });
      for (auto &hit : hits)
        ASSERT_EQ(hit, 1);
    }
}

TEST(ThreadPool, ChunksAreNotBelowTheGrain) {
  ThreadPool pool(3);
  std::atomic<int> small{0};
  pool.parallelFor(1000, 100, [&](int64_t begin, int64_t end, int) {
    if (end - begin < 100 && end != 1000)
      ++small;
  });
  EXPECT_EQ(small, 0);
}

TEST(ThreadPool, ThreadsGetAsManyChunks) { // three for two threads would take as long as four
  ThreadPool pool(2);
  std::atomic<int> chunks{0};
  pool.parallelFor(90, 30, [&](int64_t begin, int64_t end, int) {
    EXPECT_EQ(end - begin, 45);
    ++chunks;
  });
  EXPECT_EQ(chunks, 2);
}

TEST(ThreadPool, WorkersDoNotShareANumber) {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> inside[4] = {};
    pool.parallelFor(64, 1, [&](int64_t, int64_t, int worker) {
      EXPECT_EQ(inside[worker].fetch_add(1), 0);
      EXPECT_EQ(inside[worker].fetch_sub(1), 1);
    });
  }
}

TEST(ThreadPool, SeveralThreadsTakePart) {
  ThreadPool pool(2);
  // The caller's chunk waits for the other worker's: this ends only if two threads are inside at once.
  std::atomic<int> arrived{0};
  pool.parallelFor(2, 1, [&](int64_t begin, int64_t, int) {
    ++arrived;
    while (arrived < 2)
      std::this_thread::yield();
    (void)begin;
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ThreadPool, ThreadsBeginWithTheirPartOfTheRange) { // which their caches may still hold
  ThreadPool pool(3);
  for (int round = 0; round < 50; ++round) {
    // Nobody ends their first chunk before all have begun one.
    std::atomic<int> arrived{0};
    std::atomic<int64_t> first[3] = {-1, -1, -1};
    pool.parallelFor(12, 1, [&](int64_t begin, int64_t, int worker) {
      int64_t none = -1;
      if (first[worker].compare_exchange_strong(none, begin))
        ++arrived;
      while (arrived < 3)
        std::this_thread::yield();
    });
    for (int worker = 0; worker < 3; ++worker)
      EXPECT_EQ(first[worker], 4 * worker);
  }
}

TEST(ThreadPool, OthersTakeWhatIsLeft) { // from the end, as the owner goes on from the beginning
  ThreadPool pool(2);
  std::atomic<int> ofCaller{0};
  int64_t fifth = -1;
  pool.parallelFor(8, 1, [&](int64_t begin, int64_t, int worker) {
    while (worker == 1 && ofCaller < 7) // one chunk takes as long as all others
      std::this_thread::yield();
    if (worker == 0 && ++ofCaller == 5)
      fifth = begin;
  });
  EXPECT_GE(ofCaller, 7);
  EXPECT_EQ(fifth, 7);
}

TEST(ThreadPool, NestedCallsRunInline) {
  ThreadPool pool(4);
  std::atomic<int> total{0};
  pool.parallelFor(8, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      pool.parallelFor(100, 1, [&](int64_t b, int64_t e, int worker) {
        EXPECT_EQ(worker, 0);
        total += static_cast<int>(e - b);
      });
  });
  EXPECT_EQ(total, 800);
}

TEST(ThreadPool, ServesSeveralCallers) {
  ThreadPool pool(2);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        pool.parallelFor(100, 10, [&](int64_t begin, int64_t end, int) { total += end - begin; });
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(total, 4 * 200 * 100);
}

TEST(ThreadPool, RethrowsTheFirstException) {
  ThreadPool pool(4);
  EXPECT_THROW(pool.parallelFor(100, 1, [](int64_t, int64_t, int) { throw std::runtime_error("x"); }),
               std::runtime_error);
  int64_t sum = 0; // and works afterwards
  pool.parallelFor(1, 1, [&](int64_t b, int64_t e, int) { sum += e - b; });
  EXPECT_EQ(sum, 1);
}

TEST(ThreadPool, WorksSeriallyAfterFork) {
  ThreadPool &pool = ThreadPool::global();
  std::atomic<int64_t> total{0};
  pool.parallelFor(1000, 1, [&](int64_t b, int64_t e, int) { total += e - b; });
  ASSERT_EQ(total, 1000);
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int64_t> inChild{0};
    pool.parallelFor(1000, 1, [&](int64_t b, int64_t e, int) { inChild += e - b; });
    _exit(inChild == 1000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
