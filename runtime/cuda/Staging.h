// Copies of cards from and to memory of the host that is not pinned, through pinned memory. Given such memory, the driver makes the caller wait: from it until the bytes are
// in memory of its own, to it until the copy has ended, and so has all that is before it in the stream. Here a copy to it ends when the host has moved the bytes on.
#pragma once

#include "Driver.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#pragma GCC visibility push(hidden)
namespace tressel::runtime::cuda {

/// Pinned memory that copies share. Thread-safe.
class StagingPool {
public:
  StagingPool(const Driver &driver, const Card &card) : driver_(driver), card_(card) {}
  ~StagingPool();
  struct Block {
    void *memory = nullptr;
    int64_t bytes = 0;
  };
  /// At least so many bytes; no memory if they are too many, or the driver has none.
  Block take(int64_t bytes);
  void give(Block block);

private:
  const Driver &driver_;
  const Card &card_;
  std::mutex mutex_;
  std::multimap<int64_t, void *> free_; ///< by bytes
  int64_t freeBytes_ = 0;
};

/// The second half of a copy to memory that is not pinned.
struct StagedCopy {
  StagingPool::Block block;
  void *to = nullptr;
  int64_t bytes = 0;
  bool isBegun = false;
  std::atomic<bool> isDone{false};
};

/// Moves the bytes of large ones, in a thread of its own. Thread-safe.
class Mover {
public:
  ~Mover();
  /// At once if there are few bytes; else isDone says when.
  void begin(const std::shared_ptr<StagedCopy> &copy);

private:
  void work();
  std::mutex mutex_;
  std::condition_variable given_;
  std::deque<std::shared_ptr<StagedCopy>> copies_;
  bool closing_ = false;
  std::thread thread_; ///< begun when it is first needed
};

} // namespace tressel::runtime::cuda
#pragma GCC visibility pop
