#include "tressel/runtime/ThreadPool.h"

#include "tressel/runtime/Shutdown.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

namespace tressel::runtime {
namespace {

thread_local bool insideChunk = false;

/// How long a worker spins for the next range before it sleeps, so that consecutive kernels of a program find it awake:
/// a few times the cost of waking a thread, and of the last chunks of other workers. One worker at a time spins. The
/// caller spins as long for the last worker to leave.
constexpr auto kSpin = std::chrono::microseconds(200);
/// Several chunks per thread, so that a preempted thread delays one chunk only.
constexpr int64_t kChunksPerThread = 4;

/// Spins until `isTrue` returns true, or for kSpin; returns which.
template <typename Fn> bool spinUntil(Fn isTrue) {
  const auto until = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (isTrue())
        return true;
      __builtin_ia32_pause();
    }
    sched_yield(); // threads with work go first
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

int configuredThreads() {
  if (const char *text = std::getenv("TRESSEL_NUM_THREADS")) {
    char *end = nullptr;
    long n = std::strtol(text, &end, 10);
    if (end != text && *end == 0 && n >= 1 && n <= 1024)
      return static_cast<int>(n);
    std::fprintf(stderr, "tressel: TRESSEL_NUM_THREADS is '%s', which is no number from 1 to 1024; all cores are used\n", text);
  }
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

/// The chunks that a worker starts with: the same part of the range for each kernel, so that data written by one kernel
/// is still in the core's cache for the next. A worker that has finished its share steals chunks from the end of
/// others.
struct Share {
  std::atomic<uint64_t> left; ///< begin in the lower half, end in the upper

  /// The number of a chunk, or -1 if none is left.
  int take(bool isMine) {
    uint64_t old = left.load(std::memory_order_relaxed);
    for (;;) {
      const uint32_t first = static_cast<uint32_t>(old), end = old >> 32;
      if (first == end)
        return -1;
      if (left.compare_exchange_weak(old, isMine ? old + 1 : old - (uint64_t(1) << 32), std::memory_order_relaxed))
        return static_cast<int>(isMine ? first : end - 1);
    }
  }
};
constexpr int kMostShares = 64; // further threads start with the same shares

/// One parallelFor in progress. Lives on the caller's stack: workers enter and leave under the pool's mutex.
struct Job {
  void (*chunk)(void *callable, int64_t begin, int64_t end, int worker);
  void *callable;
  int64_t range, chunkSize;
  int numShares;
  Share shares[kMostShares];
  std::atomic<bool> failed{false};
  std::exception_ptr error; // written by the thread that set `failed`
};

} // namespace

struct ThreadPool::Impl {
  std::mutex callers; // held by the thread whose parallelFor is running
  std::mutex mutex;   // guards job, stop, and entering
  std::condition_variable wake, done;
  Job *job = nullptr;
  std::atomic<int> entered{0}; // workers inside `job`
  std::atomic<bool> callerSleeps{false};
  bool stop = false;
  const uint32_t forks = numForks();   ///< numForks() when the threads were created
  std::atomic<uint64_t> generation{0}; // incremented with every job; spinning workers watch it
  std::atomic<bool> spinner{false};
  std::vector<std::thread> threads;

  uint64_t allowed = 0; ///< mask of the process's cores, if there are at most 64
  int callersCore = -1; ///< core that workers avoid; under `callers`

  /// Linux places a woken thread on the core of the thread that woke it, and on machines of few cores often leaves it
  /// there though another core is idle. So workers are kept off the caller's core.
  void keepOff(int core) {
    if (threads.size() > 3 || core == callersCore)
      return;
    const uint64_t others = allowed & ~(uint64_t(1) << (core & 63));
    for (std::thread &thread : threads) // refused if there is no other core
      pthread_setaffinity_np(thread.native_handle(), sizeof(others), reinterpret_cast<const cpu_set_t *>(&others));
    callersCore = core;
  }

  static void runChunks(Job &job, int worker) {
    insideChunk = true;
    for (int i = 0; i < job.numShares && !job.failed.load(std::memory_order_relaxed);) {
      const int number = job.shares[(worker + i) % job.numShares].take(i == 0);
      if (number < 0) {
        ++i;
        continue;
      }
      const int64_t begin = number * job.chunkSize;
      try {
        job.chunk(job.callable, begin, std::min(begin + job.chunkSize, job.range), worker);
      } catch (...) {
        if (!job.failed.exchange(true))
          job.error = std::current_exception();
      }
    }
    insideChunk = false;
  }

  void spin(uint64_t seen) {
    if (spinner.exchange(true, std::memory_order_acquire))
      return;
    spinUntil([&] { return generation.load(std::memory_order_relaxed) != seen; });
    spinner.store(false, std::memory_order_release);
  }

  void workerLoop(int worker) {
    uint64_t seen = 0;
    for (;;) {
      spin(seen);
      Job *mine;
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stop || generation.load(std::memory_order_relaxed) != seen; });
        if (stop)
          return;
        seen = generation.load(std::memory_order_relaxed);
        // Waking takes longer than a short job. A worker that comes too late for one spins for the next, which it would
        // miss as well if it slept again.
        if (!job)
          continue;
        mine = job;
        ++entered;
      }
      runChunks(*mine, worker);
      // The job may be gone from here on. Either the caller sees the count, or this thread sees that the caller sleeps.
      if (entered.fetch_sub(1) == 1 && callerSleeps.load()) {
        std::lock_guard lock(mutex);
        done.notify_one();
      }
    }
  }
};

thread_local constinit int ThreadPool::share = 0;

ThreadPool &ThreadPool::global() {
  // Never destroyed: threads may still be asleep in it when the process leaves main.
  static ThreadPool &pool = *new ThreadPool(configuredThreads());
  return pool;
}

ThreadPool::ThreadPool(int threads) : numThreads_(std::max(1, threads)), impl_(std::make_unique<Impl>()) {
  sched_getaffinity(0, sizeof(impl_->allowed), reinterpret_cast<cpu_set_t *>(&impl_->allowed));
  for (int i = 1; i < numThreads_; ++i)
    impl_->threads.push_back(startInternalThread("tressel.pool", [this, i] { impl_->workerLoop(i); }));
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->wake.notify_all();
  for (std::thread &thread : impl_->threads)
    thread.join();
}

bool ThreadPool::insideParallel() { return insideChunk; }

void ThreadPool::run(int64_t range, int64_t grain, Chunk chunk, void *callable) {
  grain = std::max<int64_t>(grain, 1);
  // No chunk is smaller than the grain, so there are at most range / grain of them.
  const int64_t most = share ? std::min(share, numThreads_) : numThreads_;
  int64_t chunks = most <= 1 ? 1 : std::min(range / grain, most * kChunksPerThread);
  if (chunks > most)
    chunks -= chunks % most; // equal chunks, the same number for each thread
  std::unique_lock<std::mutex> turn(impl_->callers, std::try_to_lock);
  if (chunks <= 1 || !turn || numForks() != impl_->forks) {
    chunk(callable, 0, range, 0);
    return;
  }
  impl_->keepOff(sched_getcpu());
  int64_t chunkSize = (range + chunks - 1) / chunks;
  if (chunkSize > 64)
    chunkSize = (chunkSize + 63) & ~int64_t(63); // chunks begin at cache lines
  chunks = (range + chunkSize - 1) / chunkSize;
  const int threads = static_cast<int>(std::min(chunks, most));
  Job job{chunk, callable, range, chunkSize, std::min(threads, kMostShares)};
  uint64_t end = 0;
  for (int i = 0; i < job.numShares;) {
    const uint64_t begin = end;
    end = static_cast<uint32_t>(chunks) * static_cast<uint32_t>(++i) / static_cast<uint32_t>(job.numShares);
    job.shares[i - 1].left.store(begin | end << 32, std::memory_order_relaxed);
  }
  {
    std::lock_guard lock(impl_->mutex);
    impl_->job = &job;
    impl_->generation.fetch_add(1, std::memory_order_relaxed);
  }
  if (threads == numThreads_)
    impl_->wake.notify_all();
  else
    for (int i = 1; i < threads; ++i)
      impl_->wake.notify_one();
  Impl::runChunks(job, 0);
  {
    std::lock_guard lock(impl_->mutex);
    impl_->job = nullptr; // no worker enters from here on
  }
  auto allLeft = [&] { return impl_->entered.load() == 0; };
  if (!spinUntil(allLeft)) {
    impl_->callerSleeps.store(true);
    std::unique_lock lock(impl_->mutex);
    impl_->done.wait(lock, allLeft);
    impl_->callerSleeps.store(false);
  }
  turn.unlock();
  if (job.error)
    std::rethrow_exception(job.error);
}

} // namespace tressel::runtime
