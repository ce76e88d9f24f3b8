#include "runtime/engine/Blocks.h"

#include "runtime/types/Concat.h"
#include "SizeClasses.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <unistd.h>
#include <utility>
#include <vector>

namespace tressel::runtime {
namespace {

/// Free blocks are kept up to this many bytes. Blocks that queued tasks still use do not count: they cannot be returned
/// yet.
constexpr int64_t kIdleBytes = int64_t(512) << 20;
/// How many free blocks of a class are examined, the latest first, as those are most likely in a cache.
constexpr size_t kLook = 16;
constexpr size_t kReportLines = 4;

struct Block {
  void *data = nullptr;
  int sizeClass = 0;
  Uses uses;           ///< while free: of queued tasks that may still use it
  const char *op = ""; ///< the op that wrote its contents
  SourceLoc where;
  Block *previous = nullptr, *next = nullptr; ///< in the list of blocks in use
  int64_t bytes() const { return classBytes(sizeClass); }
};

/// "4G" as bytes; 0 when it is no size.
int64_t parseBytes(const char *text) {
  char *end = nullptr;
  const double number = std::strtod(text, &end);
  if (end == text || !(number > 0))
    return 0;
  int64_t unit = 1;
  switch (std::toupper(static_cast<unsigned char>(*end))) {
  case 'T':
    unit <<= 10;
    [[fallthrough]];
  case 'G':
    unit <<= 10;
    [[fallthrough]];
  case 'M':
    unit <<= 10;
    [[fallthrough]];
  case 'K':
    unit <<= 10;
    ++end;
    break;
  default:
    break;
  }
  if (unit > 1 && *end == 'i')
    ++end;
  if (*end == 'B')
    ++end;
  if (*end || number * static_cast<double>(unit) > 9e18)
    return 0;
  return static_cast<int64_t>(number * static_cast<double>(unit));
}

int64_t machineLimit() {
  if (const char *text = std::getenv("TRESSEL_MEMORY_LIMIT")) {
    if (const int64_t bytes = parseBytes(text))
      return bytes;
    std::fprintf(
        stderr,
        "tressel: TRESSEL_MEMORY_LIMIT is '%s', which is no size like 8000000 or 4G; 80%% of the memory is used\n",
        text);
  }
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  // The memory limit of a container, if there is one ("max" otherwise).
  if (std::ifstream file("/sys/fs/cgroup/memory.max"); file) {
    int64_t bound = 0;
    if (file >> bound && bound > 0)
      bytes = std::min(bytes, bound);
  }
  return bytes / 5 * 4;
}

class Pool {
public:
  static Pool &get() {
    static Pool &pool = *new Pool(); // never destroyed: tensors with static lifetime return their blocks later
    return pool;
  }

  Block *take(int64_t bytes, int lane, const TaskInfo &info) {
    const int sizeClass = classOf(bytes);
    std::unique_lock lock(mutex_);
    Block *block = reuse(sizeClass, lane);
    if (!block) {
      const int64_t needed = classBytes(sizeClass);
      if (!fitsLocked(needed))
        return nullptr;
      void *data = allocateBlock(needed);
      if (!data) {
        trimLocked();
        Storage::trimCache();
        if (data = allocateBlock(needed); !data)
          return nullptr;
      }
      block = new Block{data, sizeClass};
    }
    block->op = info.op;
    block->where = info.where;
    block->uses = {};
    live_ += block->bytes();
    block->next = first_;
    block->previous = nullptr;
    if (first_)
      first_->previous = block;
    first_ = block;
    return block;
  }

  void give(Block *block, Uses uses) {
    std::lock_guard lock(mutex_);
    live_ -= block->bytes();
    (block->previous ? block->previous->next : first_) = block->next;
    if (block->next)
      block->next->previous = block->previous;
    const bool isIdle = Engine::reached(uses);
    if (isIdle && idle_ + block->bytes() > kIdleBytes)
      return destroy(block);
    block->uses = uses;
    idle_ += block->bytes();
    free_[block->sizeClass].push_back(block);
  }

  void trim() {
    std::lock_guard lock(mutex_);
    trimLocked();
  }
  bool fits(int64_t bytes) {
    std::lock_guard lock(mutex_);
    return fitsLocked(bytes);
  }
  Engine::Memory memory() {
    std::lock_guard lock(mutex_);
    return {live_, idle_, limit()};
  }
  void setLimit(int64_t bytes) {
    std::lock_guard lock(mutex_);
    limit_ = bytes;
  }

  /// Bytes by the op and source line that allocated them, the largest first.
  std::vector<std::pair<std::string, int64_t>> holders() {
    std::lock_guard lock(mutex_);
    std::vector<std::pair<std::string, int64_t>> all;
    std::vector<std::pair<const Block *, int64_t>> sums;
    for (const Block *b = first_; b; b = b->next) {
      auto same = [&](const auto &sum) {
        return sum.first->op == b->op && sum.first->where.file == b->where.file &&
               sum.first->where.line == b->where.line;
      };
      // A linear search: programs have few lines, and blocks of one line in a loop are adjacent.
      if (auto it = std::find_if(sums.rbegin(), sums.rend(), same); it != sums.rend())
        it->second += b->bytes();
      else if (sums.size() < 256)
        sums.emplace_back(b, b->bytes());
    }
    for (const auto &[block, bytes] : sums)
      all.emplace_back(concat(block->op, block->where ? concat(" at ", block->where.str()) : ""), bytes);
    std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
    return all;
  }

private:
  int64_t limit() {
    if (!limit_) {
      static const int64_t machine = machineLimit();
      limit_ = machine;
    }
    return limit_;
  }

  Block *reuse(int sizeClass, int lane) {
    std::vector<Block *> &list = free_[sizeClass];
    for (size_t i = list.size(), looked = 0; i-- > 0 && looked < kLook; ++looked) {
      Block *block = list[i];
      Uses uses = block->uses;
      if (lane != Blocks::kNoLane && uses.engine == static_cast<uint32_t>(lane) / kLanesPerEngine)
        uses.lanes &= static_cast<uint8_t>(~(1u << (static_cast<uint32_t>(lane) % kLanesPerEngine)));
      if (!Engine::reached(uses))
        continue;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      idle_ -= block->bytes();
      return block;
    }
    return nullptr;
  }

  bool fitsLocked(int64_t bytes) {
    const auto isShort = [&] {
      return live_ + idle_ + Storage::liveBytes() + Storage::cachedBytes() > limit() - bytes;
    };
    if (!isShort())
      return true;
    trimLocked();
    Storage::trimCache();
    return !isShort();
  }

  void destroy(Block *block) {
    std::free(block->data);
    delete block;
  }

  void trimLocked() {
    for (std::vector<Block *> &list : free_)
      std::erase_if(list, [&](Block *block) {
        if (!Engine::reached(block->uses))
          return false;
        idle_ -= block->bytes();
        destroy(block);
        return true;
      });
  }

  std::mutex mutex_;
  std::vector<Block *> free_[kNumClasses];
  Block *first_ = nullptr;
  int64_t live_ = 0, idle_ = 0, limit_ = 0;
};

} // namespace

StorageRef Blocks::make(int64_t bytes) {
  StorageRef ref = Storage::adopt(
      nullptr, bytes,
      [](void *, void *user) {
        if (user)
          Pool::get().give(static_cast<Block *>(user), {});
      },
      nullptr);
  ref->adopted_ = false;
  ref->inOrder_ = true;
  static std::once_flag once;
  std::call_once(once, [] {
    Storage::giveInOrder_ = [](Storage &storage) {
      if (storage.user_)
        Pool::get().give(static_cast<Block *>(std::exchange(storage.user_, nullptr)), storage.lastUse());
    };
  });
  return ref;
}

bool Blocks::materialize(Storage &storage, int lane, const TaskInfo &info) {
  if (storage.data_ || !storage.inOrder_)
    return true;
  Block *block = Pool::get().take(storage.bytes_, lane, info);
  if (!block)
    return false;
  storage.data_ = block->data;
  storage.user_ = block;
  return true;
}

bool Blocks::fits(int64_t bytes) { return Pool::get().fits(bytes); }

std::string Blocks::report(int64_t bytes) {
  const Engine::Memory memory = Pool::get().memory();
  std::string text = concat("cannot allocate ", bytes, " bytes: tensors hold ", memory.live + Storage::liveBytes(),
                            " of ", memory.limit, " bytes");
  const auto holders = Pool::get().holders();
  for (size_t i = 0; i < std::min(holders.size(), kReportLines); ++i)
    text += concat(i ? "; " : ", of results ", holders[i].first, ": ", holders[i].second);
  if (holders.size() > kReportLines)
    text += "; and others";
  if (Storage::liveBytes() > 0)
    text += concat(holders.empty() ? ", " : "; ", "written by the host: ", Storage::liveBytes());
  return text;
}

Engine::Memory Blocks::memory() { return Pool::get().memory(); }
void Blocks::setLimit(int64_t bytes) { Pool::get().setLimit(bytes); }
void Blocks::trim() { Pool::get().trim(); }

} // namespace tressel::runtime
