#include "codegen/CodeCache.h"

#include "tressel/runtime/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>

namespace tressel::codegen {
namespace {

/// The oldest goes first when it holds too much.
class MemoryCache {
public:
  static MemoryCache &instance() {
    static MemoryCache &cache = *new MemoryCache();
    return cache;
  }
  Code find(const CacheKey &key) {
    std::lock_guard lock(mutex_);
    auto it = all_.find(key);
    return it == all_.end() ? nullptr : it->second;
  }
  void insert(const CacheKey &key, Code code) {
    std::lock_guard lock(mutex_);
    if (!all_.emplace(key, code).second)
      return;
    bytes_ += code->size();
    order_.push_back(key);
    while (bytes_ > kMostBytes && order_.size() > 1) {
      auto it = all_.find(order_.front());
      bytes_ -= it->second->size();
      all_.erase(it);
      order_.pop_front();
    }
  }
  void clear() {
    std::lock_guard lock(mutex_);
    all_.clear(), order_.clear(), bytes_ = 0;
  }

private:
  static constexpr size_t kMostBytes = size_t(64) << 20;
  std::mutex mutex_;
  std::map<CacheKey, Code> all_;
  std::deque<CacheKey> order_;
  size_t bytes_ = 0;
};

} // namespace

Code findCode(const CacheKey &key, const CodeArchive *archive, ObjectCache *disk) {
  Code code = MemoryCache::instance().find(key);
  if (code)
    return code;
  if (archive)
    code = archive->find(key);
  if (!code && disk)
    if (auto bytes = disk->find(key))
      code = std::make_shared<const std::vector<char>>(std::move(*bytes));
  if (code)
    MemoryCache::instance().insert(key, code);
  return code;
}

void keepCode(const CacheKey &key, const Code &code, ObjectCache *disk) {
  MemoryCache::instance().insert(key, code);
  if (disk)
    disk->insert(key, *code);
}

void clearCodeCache() { MemoryCache::instance().clear(); }

void forEachInParallel(size_t count, const std::function<std::function<void(size_t)>()> &worker) {
  if (count == 0)
    return;
  if (count == 1)
    return worker()(0);
  runtime::ThreadPool &pool = runtime::ThreadPool::global();
  std::atomic<size_t> next{0};
  pool.parallelFor(std::min<int64_t>(pool.numThreads(), static_cast<int64_t>(count)), 1, [&](int64_t, int64_t, int) {
    const std::function<void(size_t)> work = worker();
    for (size_t i; (i = next.fetch_add(1)) < count;)
      work(i);
  });
}

} // namespace tressel::codegen
