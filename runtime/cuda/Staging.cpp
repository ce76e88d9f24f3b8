#include "Staging.h"

#include "tressel/runtime/Shutdown.h"

#include <bit>
#include <cstring>

namespace tressel::runtime::cuda {
namespace {

constexpr unsigned kPortable = 1; // CU_MEMHOSTALLOC
/// Kept when nothing uses it: pinned memory is taken from the rest of the system.
constexpr int64_t kKeptBytes = int64_t(64) << 20;
/// Pinning more takes longer than it saves.
constexpr int64_t kMostBytes = int64_t(32) << 20;
/// Moved by the thread that finds them ended: waking another one takes longer.
constexpr int64_t kFewBytes = 256 << 10;
constexpr uint64_t kSmallest = 4096;

} // namespace

StagingPool::~StagingPool() {
  if (wasForked() || driver_.cuCtxSetCurrent(card_.context) != kSuccess)
    return;
  for (const auto &[bytes, memory] : free_)
    driver_.cuMemFreeHost(memory);
}

StagingPool::Block StagingPool::take(int64_t bytes) {
  if (bytes > kMostBytes)
    return {};
  const auto wanted = static_cast<int64_t>(std::bit_ceil(std::max<uint64_t>(static_cast<uint64_t>(bytes), kSmallest)));
  {
    std::lock_guard lock(mutex_);
    const auto at = free_.lower_bound(wanted);
    if (at != free_.end() && at->first <= 4 * wanted) {
      const Block block{at->second, at->first};
      freeBytes_ -= at->first;
      free_.erase(at);
      return block;
    }
  }
  Block block{nullptr, wanted};
  if (driver_.cuCtxSetCurrent(card_.context) != kSuccess || driver_.cuMemHostAlloc(&block.memory, static_cast<size_t>(wanted), kPortable) != kSuccess)
    return {};
  return block;
}

void StagingPool::give(Block block) {
  {
    std::lock_guard lock(mutex_);
    if (freeBytes_ + block.bytes <= kKeptBytes) {
      free_.emplace(block.bytes, block.memory);
      freeBytes_ += block.bytes;
      return;
    }
  }
  if (driver_.cuCtxSetCurrent(card_.context) == kSuccess)
    driver_.cuMemFreeHost(block.memory);
}

Mover::~Mover() {
  if (wasForked()) { // the thread is not here
    new std::thread(std::move(thread_));
    return;
  }
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    given_.notify_all();
  }
  if (thread_.joinable())
    thread_.join();
}

void Mover::begin(const std::shared_ptr<StagedCopy> &copy) {
  copy->isBegun = true;
  if (copy->bytes <= kFewBytes) {
    std::memcpy(copy->to, copy->block.memory, static_cast<size_t>(copy->bytes));
    copy->isDone.store(true, std::memory_order_release);
    return;
  }
  std::lock_guard lock(mutex_);
  if (!thread_.joinable())
    thread_ = startInternalThread("tressel.move", [this] { work(); });
  copies_.push_back(copy);
  given_.notify_one();
}

void Mover::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    given_.wait(lock, [this] { return closing_ || !copies_.empty(); });
    if (copies_.empty())
      return;
    const std::shared_ptr<StagedCopy> copy = std::move(copies_.front());
    copies_.pop_front();
    lock.unlock();
    std::memcpy(copy->to, copy->block.memory, static_cast<size_t>(copy->bytes));
    copy->isDone.store(true, std::memory_order_release);
    lock.lock();
  }
}

} // namespace tressel::runtime::cuda
