#include "tressel/runtime/Storage.h"

#include "runtime/types/Concat.h"
#include "SizeClasses.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

namespace tressel::runtime {
namespace {

/// Blocks up to this size are kept per thread, without a lock; larger ones in one shared cache.
constexpr int64_t kSmallBytes = 4096;
constexpr int64_t kHeaderBytes = 2 * kAlignment;
constexpr uint16_t kSmallBlocksPerClass = 64, kBatch = 32;
/// Batches that threads have handed back, per class, in bytes.
constexpr int64_t kSharedSmallBytes = int64_t(1) << 20;
/// Large blocks are kept up to this many bytes in all: mapping fresh pages costs more than most kernels.
constexpr int64_t kCacheBytes = int64_t(512) << 20;
constexpr int kSmallClasses = classOf(kSmallBytes) + 1;

std::atomic<int64_t> liveLargeBytes{0}, cachedLargeBytes{0};

struct LargeCache {
  std::mutex mutex;
  std::vector<void *> blocks[kNumClasses];

  void *take(int sizeClass) {
    std::lock_guard lock(mutex);
    auto &list = blocks[sizeClass];
    if (list.empty())
      return nullptr;
    void *block = list.back();
    list.pop_back();
    cachedLargeBytes.fetch_sub(classBytes(sizeClass), std::memory_order_relaxed);
    return block;
  }
  bool keep(int sizeClass, void *block) {
    std::lock_guard lock(mutex);
    if (cachedLargeBytes.load(std::memory_order_relaxed) + classBytes(sizeClass) > kCacheBytes)
      return false;
    blocks[sizeClass].push_back(block);
    cachedLargeBytes.fetch_add(classBytes(sizeClass), std::memory_order_relaxed);
    return true;
  }
  void trim() {
    std::lock_guard lock(mutex);
    for (int c = 0; c < kNumClasses; ++c) {
      for (void *block : blocks[c]) {
        std::free(block);
        cachedLargeBytes.fetch_sub(classBytes(c), std::memory_order_relaxed);
      }
      blocks[c].clear();
    }
  }
};

/// Never destroyed: storages with static lifetime outlive everything else.
LargeCache &largeCache() {
  static LargeCache &cache = *new LargeCache();
  return cache;
}

/// A free block, linked through its first bytes.
struct FreeBlock {
  FreeBlock *next;
};

/// Exchanges batches of kBatch small blocks between threads: with queued ops one thread allocates what another frees.
struct SmallExchange {
  std::mutex mutex;
  std::vector<FreeBlock *> batches[kSmallClasses];
  std::atomic<uint32_t> counts[kSmallClasses] = {}; // number of batches, read without the lock

  FreeBlock *take(int sizeClass) {
    if (counts[sizeClass].load(std::memory_order_relaxed) == 0)
      return nullptr;
    std::lock_guard lock(mutex);
    auto &list = batches[sizeClass];
    if (list.empty())
      return nullptr;
    FreeBlock *batch = list.back();
    list.pop_back();
    counts[sizeClass].store(static_cast<uint32_t>(list.size()), std::memory_order_relaxed);
    return batch;
  }
  bool keep(int sizeClass, FreeBlock *batch) {
    std::lock_guard lock(mutex);
    auto &list = batches[sizeClass];
    if (static_cast<int64_t>(list.size() + 1) * kBatch * classBytes(sizeClass) > kSharedSmallBytes)
      return false;
    list.push_back(batch);
    counts[sizeClass].store(static_cast<uint32_t>(list.size()), std::memory_order_relaxed);
    return true;
  }
};

void freeAll(FreeBlock *list) {
  while (list) {
    FreeBlock *next = list->next;
    std::free(list);
    list = next;
  }
}

SmallExchange &smallExchange() {
  static SmallExchange &exchange = *new SmallExchange(); // never destroyed, like the cache above
  return exchange;
}

struct SmallCache;
thread_local constinit SmallCache *smallCache = nullptr;
// the thread is ending; destructors that run later may still free storages
thread_local constinit bool smallCacheGone = false;

struct SmallCache {
  FreeBlock *blocks[kSmallClasses] = {};
  uint16_t counts[kSmallClasses] = {};

  [[gnu::always_inline]] static SmallCache *get() { return smallCache ? smallCache : make(); }
  [[gnu::noinline]] static SmallCache *make() {
    if (smallCacheGone)
      return nullptr;
    static thread_local SmallCache cache;
    return smallCache = &cache;
  }
  void *take(int sizeClass) {
    FreeBlock *block = blocks[sizeClass];
    if (!block) {
      block = smallExchange().take(sizeClass);
      if (!block)
        return nullptr;
      counts[sizeClass] = kBatch;
    }
    blocks[sizeClass] = block->next;
    --counts[sizeClass];
    return block;
  }
  void give(int sizeClass, void *block) {
    if (counts[sizeClass] == kSmallBlocksPerClass) {
      FreeBlock *batch = blocks[sizeClass], *last = batch;
      for (int i = 1; i < kBatch; ++i)
        last = last->next;
      blocks[sizeClass] = std::exchange(last->next, nullptr);
      counts[sizeClass] -= kBatch;
      if (!smallExchange().keep(sizeClass, batch))
        freeAll(batch);
    }
    auto *free = static_cast<FreeBlock *>(block);
    free->next = blocks[sizeClass];
    blocks[sizeClass] = free;
    ++counts[sizeClass];
  }
  void trim() {
    for (int c = 0; c < kSmallClasses; ++c) {
      freeAll(std::exchange(blocks[c], nullptr));
      counts[c] = 0;
      while (FreeBlock *batch = smallExchange().take(c))
        freeAll(batch);
    }
  }
  ~SmallCache() {
    for (int c = 0; c < kSmallClasses; ++c)
      freeAll(blocks[c]);
    smallCache = nullptr;
    smallCacheGone = true;
  }
};

void *takeBlock(int sizeClass) {
  if (sizeClass < kSmallClasses) {
    SmallCache *cache = SmallCache::get();
    if (void *block = cache ? cache->take(sizeClass) : nullptr)
      return block;
  } else if (void *block = largeCache().take(sizeClass)) {
    return block;
  }
  return allocateBlock(classBytes(sizeClass));
}

void giveBlock(int sizeClass, void *block) {
  if (sizeClass < kSmallClasses) {
    if (SmallCache *cache = SmallCache::get())
      return cache->give(sizeClass, block);
  } else if (largeCache().keep(sizeClass, block)) {
    return;
  }
  std::free(block);
}

/// Storages whose deleters have to run on a caller's thread.
std::atomic<Storage *> pendingDeleters{nullptr};

} // namespace

/// Set by lanes in their threads (Engine.cpp): no user code, such as a deleter, may run there.
thread_local bool onLaneThread = false;

void Failure::raise(SourceLoc waitedAt) const {
  observed.store(true, std::memory_order_relaxed);
  Error::Details details{message, where, op};
  if (waitedAt)
    details.trace.push_back(waitedAt);
  if (kind == Kind::OutOfMemory)
    throw OutOfMemory(std::move(details));
  throw RuntimeError(std::move(details));
}

StorageRef Storage::allocate(int64_t bytes) {
  if (bytes < 0 || bytes > kLargestBlock)
    throwError<OutOfMemory>("cannot allocate ", bytes, " bytes");
  // Small data follows the header in one block. Larger data has its own block, so that it is page-aligned as a whole.
  static_assert(sizeof(Storage) <= kHeaderBytes);
  const bool together = bytes <= kSmallBytes - kHeaderBytes;
  const int sizeClass = classOf(together ? kHeaderBytes + bytes : bytes);
  void *data = takeBlock(sizeClass);
  if (!data) {
    trimCache();
    data = takeBlock(sizeClass);
  }
  void *header = together || !data ? data : takeBlock(classOf(kHeaderBytes));
  if (!header) {
    if (data)
      giveBlock(sizeClass, data);
    throwError<OutOfMemory>("cannot allocate ", bytes, " bytes; ", liveBytes(), " bytes are in use by tensors");
  }
  auto *storage = new (header) Storage();
  storage->data_ = together ? static_cast<std::byte *>(header) + kHeaderBytes : data;
  storage->bytes_ = bytes;
  storage->sizeClass_ = sizeClass;
  if (sizeClass >= kSmallClasses)
    liveLargeBytes.fetch_add(classBytes(sizeClass), std::memory_order_relaxed);
  return StorageRef(storage);
}

StorageRef Storage::adopt(void *data, int64_t bytes, Deleter deleter, void *user) {
  void *header = takeBlock(classOf(kHeaderBytes));
  if (!header)
    throwError<OutOfMemory>("cannot allocate ", bytes, " bytes");
  auto *storage = new (header) Storage();
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->adopted_ = true;
  storage->deleter_ = deleter;
  storage->user_ = user;
  return StorageRef(storage);
}

FailureRef Storage::failure() const { return failed_.load(std::memory_order_acquire) ? failure_ : nullptr; }

void Storage::fail(FailureRef why) {
  const bool failed = why != nullptr;
  failure_ = std::move(why);
  failed_.store(failed, std::memory_order_release);
}

void (*Storage::giveInOrder_)(Storage &) = nullptr;

void Storage::release(uint64_t one) {
  if (inOrder_ && one == kHandle) {
    // A handle is only made by copying one, so no other thread can make one while the last is released.
    const uint64_t references = references_.load(std::memory_order_acquire);
    if (references > kTask && references % kTask == kHandle)
      giveInOrder_(*this);
  }
  if (references_.fetch_sub(one, std::memory_order_acq_rel) != one)
    return;
  if (adopted_ && deleter_ && onLaneThread) {
    nextPending_ = pendingDeleters.load(std::memory_order_relaxed);
    while (!pendingDeleters.compare_exchange_weak(nextPending_, this, std::memory_order_release))
      ;
    return;
  }
  destroy();
}

void Storage::destroy() {
  if (deleter_)
    deleter_(data_, user_);
  const int sizeClass = sizeClass_;
  void *data = data_;
  const bool together = sizeClass >= 0 && bytes_ <= kSmallBytes - kHeaderBytes;
  this->~Storage();
  if (together)
    return giveBlock(sizeClass, this);
  giveBlock(classOf(kHeaderBytes), this);
  if (sizeClass < 0)
    return;
  if (sizeClass >= kSmallClasses)
    liveLargeBytes.fetch_sub(classBytes(sizeClass), std::memory_order_relaxed);
  giveBlock(sizeClass, data);
}

int64_t Storage::liveBytes() { return liveLargeBytes.load(std::memory_order_relaxed); }
int64_t Storage::cachedBytes() { return cachedLargeBytes.load(std::memory_order_relaxed); }

void Storage::trimCache() {
  largeCache().trim();
  if (SmallCache *cache = SmallCache::get())
    cache->trim();
}

void Storage::runPendingDeleters() {
  if (!pendingDeleters.load(std::memory_order_relaxed) || onLaneThread)
    return;
  Storage *list = pendingDeleters.exchange(nullptr, std::memory_order_acquire);
  while (list) {
    Storage *next = list->nextPending_;
    list->destroy();
    list = next;
  }
}

} // namespace tressel::runtime
