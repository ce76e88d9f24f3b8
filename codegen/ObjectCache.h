// Bytes by key in a folder that all processes of a user share: what one compiled the others need not compile.
//
//   if (ObjectCache *cache = ObjectCache::ofUser())
//     if (auto object = cache->find(key))
//       return *object;
//
// A cache never fails: what cannot be read is not there, what cannot be written is not kept. So a full disk, a folder
// that is read-only and one that somebody deletes meanwhile cost time and nothing else.
//
// Entries are files, written aside and renamed, with their key and a checksum of all their bytes: one that is damaged or cut
// off is deleted and counts as not there. A process may be killed anywhere; what it was writing is swept an hour later.
// Size is accounted in the file `state` under a lock that nobody waits for. When it exceeds the limit, the entries
// that were used longest ago go, until three quarters of the limit are left, so that going through the folder is rare. The
// time of use is the file's, refreshed at most hourly.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::codegen {

/// BLAKE3 of what decides the bytes.
struct CacheKey {
  std::array<uint8_t, 32> bytes = {};
  bool operator==(const CacheKey &) const = default;
  bool operator<(const CacheKey &other) const { return bytes < other.bytes; }
  std::string hex() const;
};
/// Of the parts in order, their lengths included: ("ab", "c") and ("a", "bc") are not equal.
CacheKey cacheKeyOf(std::span<const std::string_view> parts);

/// Thread-safe, and safe against other processes with the same folder.
class ObjectCache {
public:
  static constexpr int64_t kDefaultLimit = int64_t(512) << 20;

  /// The folder is made when something is put into it. `limitBytes` bounds the files' sizes, headers included. Several
  /// processes that write at the same moment may exceed it, by an eighth each at most.
  explicit ObjectCache(std::string folder, int64_t limitBytes = kDefaultLimit);
  /// Accounts for what is not yet.
  ~ObjectCache();
  ObjectCache(const ObjectCache &) = delete;

  /// The process's: TRESSEL_CACHE_DIR, $XDG_CACHE_HOME/tressel or ~/.cache/tressel, bounded by TRESSEL_CACHE_LIMIT bytes
  /// (or 100K, 64M, 2G). Null if there is none: TRESSEL_CACHE_DIR is empty, the limit is 0, there is no home, or
  /// the folder belongs to another user or can be written by others, whose code would be run. `whyNone` says which.
  static ObjectCache *ofUser();
  static const std::string &whyNone();

  std::optional<std::vector<char>> find(const CacheKey &key);
  void insert(const CacheKey &key, std::span<const char> bytes);
  /// Writes down what was used and added since the last time; `insert` does it too.
  void flush();

  const std::string &folder() const { return folder_; }
  int64_t limit() const { return limit_; }
  /// The first reason why something could not be kept, or nothing.
  std::string problem() const;

  struct Info {
    int64_t entries = 0, bytes = 0;
    int64_t hits = 0, misses = 0; ///< of all processes since the cache was cleared
  };
  Info info();
  /// Reads every entry and deletes those that are damaged.
  struct Verified {
    int64_t good = 0, damaged = 0;
  };
  Verified verify();
  /// Deletes all entries, and nothing that is not one.
  Info clear();

private:
  struct State;
  struct Entry;
  std::string pathOf(const CacheKey &key) const;
  std::vector<Entry> scan() const;
  void sweepTemporaries() const;
  void account(int64_t bytes, int64_t entries);
  void evict(State &state);
  void note(const std::string &action, int error);

  const std::string folder_;
  const int64_t limit_;
  std::atomic<int64_t> hits_{0}, misses_{0};               ///< not yet in `state`
  std::atomic<int64_t> pendingBytes_{0}, pendingEntries_{0};
  std::atomic<bool> swept_{false};
  mutable std::mutex problemMutex_;
  std::string problem_;
};

} // namespace tressel::codegen
