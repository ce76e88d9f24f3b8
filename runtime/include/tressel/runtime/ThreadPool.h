// The process's one set of compute threads. Kernels are serial over a chunk; the pool splits a range into chunks.
//
//   ThreadPool::global().parallelFor(rows, 16, [&](int64_t begin, int64_t end, int worker) { ... });
//
// Libraries are pinned to one thread and called from here, so cores are never shared by two pools.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace tressel::runtime {

class ThreadPool {
public:
  /// The process's pool: as many threads as the process may use cores, or TRESSEL_NUM_THREADS. Made at the first call;
  /// its threads sleep until a range is large enough to be split. In the child of a fork it runs everything serially.
  static ThreadPool &global();

  /// `threads` counts the caller: 1 makes no thread at all. For tests and tools; programs use global().
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  /// Threads that may run chunks, the caller included. `worker` is below this.
  int numThreads() const { return numThreads_; }

  /// How many threads the ranges of this thread may use; 0: all. An engine whose lanes run side by side divides them.
  static thread_local constinit int share;

  /// Calls fn(begin, end, worker) over disjoint chunks of at least `grain` units (the last may be smaller) that cover
  /// [0, range), the caller taking part as worker 0, and returns when all are done. At any time no two calls of one
  /// parallelFor have the same worker, so scratch memory may be indexed by it. Serial, with one call and no
  /// synchronization, when there is one chunk, from inside another parallelFor, and while another thread uses the pool.
  /// The first exception of `fn` is rethrown here after the started chunks are done; chunks not started are dropped.
  template <typename Fn> void parallelFor(int64_t range, int64_t grain, Fn &&fn) {
    if (range <= 0)
      return;
    if (numThreads_ == 1 || range <= grain || insideParallel()) {
      fn(int64_t(0), range, 0);
      return;
    }
    using Callable = std::remove_reference_t<Fn>;
    run(
        range, grain,
        [](void *callable, int64_t begin, int64_t end, int worker) {
          (*static_cast<Callable *>(callable))(begin, end, worker);
        },
        const_cast<void *>(static_cast<const void *>(&fn)));
  }

private:
  using Chunk = void (*)(void *callable, int64_t begin, int64_t end, int worker);
  void run(int64_t range, int64_t grain, Chunk chunk, void *callable);
  static bool insideParallel();

  struct Impl;
  int numThreads_ = 1;
  std::unique_ptr<Impl> impl_;
};

} // namespace tressel::runtime
