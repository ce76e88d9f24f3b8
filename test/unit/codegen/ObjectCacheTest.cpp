// The cache of objects on disk: what is damaged is not there, what is too much goes, and no process harms another.
#include "codegen/ObjectCache.h"
#include "test/unit/frontend/Files.h"

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <random>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>

using namespace tressel;
using codegen::CacheKey;
using codegen::ObjectCache;
namespace fs = std::filesystem;

namespace {

CacheKey keyOf(const std::string &name) {
  const std::string_view parts[] = {name};
  return codegen::cacheKeyOf(parts);
}
/// What belongs to a name: no other name's bytes pass for it.
std::vector<char> bytesOf(const std::string &name, size_t size) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(name[i % name.size()] + static_cast<char>(i / name.size()));
  return bytes;
}
void insert(ObjectCache &cache, const std::string &name, size_t size) {
  cache.insert(keyOf(name), bytesOf(name, size));
}
bool has(ObjectCache &cache, const std::string &name, size_t size) {
  auto found = cache.find(keyOf(name));
  EXPECT_TRUE(!found || *found == bytesOf(name, size)) << name;
  return found.has_value();
}
std::string fileOf(const ObjectCache &cache, const std::string &name) {
  const std::string hex = keyOf(name).hex();
  return cache.folder() + "/" + hex.substr(0, 2) + "/" + hex.substr(2);
}
void setAge(const std::string &path, time_t seconds) {
  const timespec time{::time(nullptr) - seconds, 0}, times[] = {time, time};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
}
/// Runs `body` in a process of its own, which ends with whether it was true.
template <typename Fn> pid_t inProcess(Fn &&body) {
  const pid_t pid = ::fork();
  if (pid == 0)
    ::_exit(body() && !testing::Test::HasFailure() ? 0 : 1);
  return pid;
}
bool succeeded(pid_t pid) {
  int status = 1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class DiskCache : public testing::Test {
protected:
  test::Folder folder;
  std::string path = folder / "a/cache"; // made with what is above it
};

TEST_F(DiskCache, KeepsBytesForAnotherProcess) {
  ObjectCache cache(path);
  EXPECT_FALSE(has(cache, "a", 100));
  insert(cache, "a", 100);
  insert(cache, "empty", 0);
  EXPECT_TRUE(succeeded(inProcess([&] {
    ObjectCache other(path);
    return has(other, "a", 100) && has(other, "empty", 0) && !has(other, "b", 100);
  })));
  cache.flush();
  const ObjectCache::Info info = ObjectCache(path).info();
  EXPECT_EQ(info.entries, 2);
  EXPECT_EQ(info.hits, 2);
  EXPECT_EQ(info.misses, 2);
}

TEST_F(DiskCache, KeysTellPartsApart) {
  const std::string_view a[] = {"ab", "c"}, b[] = {"a", "bc"}, c[] = {"abc"};
  EXPECT_NE(codegen::cacheKeyOf(a), codegen::cacheKeyOf(b));
  EXPECT_NE(codegen::cacheKeyOf(a), codegen::cacheKeyOf(c));
  EXPECT_EQ(codegen::cacheKeyOf(a).hex().size(), 64u);
}

TEST_F(DiskCache, EveryTruncationIsNoticed) {
  ObjectCache cache(path);
  insert(cache, "a", 40);
  const std::string file = fileOf(cache, "a"), whole = test::get(file);
  for (size_t size = 0; size < whole.size(); ++size) {
    test::put(file, whole.substr(0, size));
    EXPECT_FALSE(has(cache, "a", 40)) << size;
    EXPECT_FALSE(fs::exists(file)) << size;
  }
  test::put(file, whole + "x");
  EXPECT_FALSE(has(cache, "a", 40));
  insert(cache, "a", 40);
  EXPECT_TRUE(has(cache, "a", 40));
}

TEST_F(DiskCache, EveryFlippedBitIsNoticed) {
  ObjectCache cache(path);
  insert(cache, "a", 40);
  const std::string file = fileOf(cache, "a"), whole = test::get(file);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    test::put(file, damaged);
    EXPECT_FALSE(has(cache, "a", 40)) << bit;
  }
}

TEST_F(DiskCache, AnEntryServesItsKeyOnly) {
  ObjectCache cache(path);
  insert(cache, "a", 40);
  fs::create_directories(fs::path(fileOf(cache, "b")).parent_path());
  fs::copy_file(fileOf(cache, "a"), fileOf(cache, "b"));
  EXPECT_FALSE(has(cache, "b", 40));
  EXPECT_TRUE(has(cache, "a", 40));
}

TEST_F(DiskCache, VerifyDeletesWhatIsDamaged) {
  ObjectCache cache(path);
  insert(cache, "a", 40), insert(cache, "b", 40);
  test::put(fileOf(cache, "b"), "rubbish");
  const ObjectCache::Verified verified = cache.verify();
  EXPECT_EQ(verified.good, 1);
  EXPECT_EQ(verified.damaged, 1);
  EXPECT_FALSE(fs::exists(fileOf(cache, "b")));
}

TEST_F(DiskCache, WhatWasUsedLongestAgoGoes) {
  ObjectCache cache(path, 100'000);
  for (int i = 0; i < 90; ++i) {
    insert(cache, std::to_string(i), 1000);
    setAge(fileOf(cache, std::to_string(i)), 100'000 - i);
  }
  EXPECT_TRUE(has(cache, "0", 1000)); // which makes it the youngest
  for (int i = 90; i < 120; ++i) {
    insert(cache, std::to_string(i), 1000);
    EXPECT_LE(cache.info().bytes, 100'000);
  }
  EXPECT_TRUE(has(cache, "0", 1000));
  EXPECT_TRUE(has(cache, "119", 1000));
  EXPECT_FALSE(has(cache, "1", 1000));
  EXPECT_GT(cache.info().bytes, 60'000);
  insert(cache, "huge", 90'000); // would throw out nearly all others
  EXPECT_FALSE(has(cache, "huge", 90'000));
}

// Four processes, each with two threads, on the same keys, within a limit that makes them evict all the time.
TEST_F(DiskCache, ProcessesWriteAndEvictAtOnce) {
  constexpr int64_t kLimit = 60'000;
  constexpr size_t kSize = 1500;
  std::vector<pid_t> processes;
  for (unsigned p = 0; p < 4; ++p)
    processes.push_back(inProcess([&] {
      ObjectCache cache(path, kLimit);
      auto work = [&](unsigned seed) {
        std::mt19937 random(seed);
        for (int i = 0; i < 400; ++i) {
          const std::string name = "entry " + std::to_string(random() % 100);
          if (!has(cache, name, kSize))
            insert(cache, name, kSize);
        }
      };
      std::thread other(work, 2 * p);
      work(2 * p + 1);
      other.join();
      return cache.problem().empty();
    }));
  for (pid_t p : processes)
    EXPECT_TRUE(succeeded(p));
  ObjectCache cache(path, kLimit);
  EXPECT_EQ(cache.verify().damaged, 0);
  insert(cache, "one more", kSize); // by one that can account at once
  EXPECT_LE(cache.info().bytes, kLimit * 3 / 2);
  EXPECT_GT(cache.info().hits, 0);
  EXPECT_TRUE(fs::is_empty(path + "/tmp"));
}

TEST_F(DiskCache, AKilledWriterLeavesNothingHarmful) {
  for (int round = 0; round < 20; ++round) {
    const pid_t writer = inProcess([&] {
      ObjectCache cache(path, 1'000'000);
      for (int i = 0;; ++i)
        insert(cache, std::to_string(round) + " " + std::to_string(i), 20'000);
      return true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + round));
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
  }
  ObjectCache cache(path, 1'000'000);
  EXPECT_EQ(cache.verify().damaged, 0);
  insert(cache, "a", 100);
  EXPECT_TRUE(has(cache, "a", 100));
  // What it was writing goes once it is sure that nobody is writing it any more.
  test::put(path + "/tmp/1-0-0", "half"), test::put(path + "/tmp/1-0-1", "half");
  setAge(path + "/tmp/1-0-0", 7200);
  ObjectCache next(path, 1'000'000);
  insert(next, "b", 100);
  EXPECT_FALSE(fs::exists(path + "/tmp/1-0-0"));
  EXPECT_TRUE(fs::exists(path + "/tmp/1-0-1"));
}

TEST_F(DiskCache, AFolderThatCannotBeWrittenIsNoError) {
  test::put(folder / "file", "");
  for (const std::string &impossible : {folder / "file/cache", std::string("/proc/self/cache")}) {
    ObjectCache cache(impossible);
    insert(cache, "a", 100);
    EXPECT_FALSE(has(cache, "a", 100));
    EXPECT_NE(cache.problem(), "");
    cache.flush();
    EXPECT_EQ(cache.info().entries, 0);
    EXPECT_EQ(cache.clear().entries, 0);
  }
}

TEST_F(DiskCache, AFullDiskIsNoError) {
  EXPECT_TRUE(succeeded(inProcess([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit little{500, 500}; // bytes of a file
    ::setrlimit(RLIMIT_FSIZE, &little);
    ObjectCache cache(path);
    insert(cache, "small", 100);
    insert(cache, "large", 10'000);
    return has(cache, "small", 100) && !has(cache, "large", 10'000) && !cache.problem().empty() &&
           fs::is_empty(path + "/tmp");
  })));
}

TEST_F(DiskCache, NobodyWaitsForALockThatIsHeldForever) {
  ObjectCache cache(path, 100'000);
  insert(cache, "a", 1000);
  const int fd = ::open((path + "/state").c_str(), O_RDWR);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  for (int i = 0; i < 100; ++i)
    insert(cache, std::to_string(i), 1000);
  EXPECT_TRUE(has(cache, "0", 1000));
  EXPECT_FALSE(has(cache, "99", 1000)); // no more than an eighth of the limit while nobody counts
  EXPECT_LE(cache.info().bytes, 20'000);
  ::close(fd);
  insert(cache, "99", 1000); // counts what was written, so that the next one is kept
  insert(cache, "99", 1000);
  EXPECT_TRUE(has(cache, "99", 1000));
}

TEST_F(DiskCache, ADamagedStateIsMadeAnew) {
  ObjectCache cache(path, 10'000);
  for (int i = 0; i < 6; ++i)
    insert(cache, std::to_string(i), 1000);
  test::put(path + "/state", "rubbish that is long enough to be taken for a state");
  for (int i = 6; i < 12; ++i)
    insert(cache, std::to_string(i), 1000);
  EXPECT_LE(cache.info().bytes, 10'000); // it knew of the first six
  EXPECT_GT(cache.info().entries, 3);
}

TEST_F(DiskCache, ClearDeletesEntriesOnly) {
  ObjectCache cache(path);
  insert(cache, "a", 100), insert(cache, "b", 100);
  test::put(path + "/notes.txt", "mine"), test::put(path + "/ab", "mine");
  fs::create_directories(path + "/cd");
  test::put(path + "/cd/notes.txt", "mine");
  EXPECT_EQ(cache.clear().entries, 2);
  EXPECT_FALSE(has(cache, "a", 100));
  for (const char *file : {"/notes.txt", "/ab", "/cd/notes.txt"})
    EXPECT_TRUE(fs::exists(path + file)) << file;
  insert(cache, "a", 100);
  EXPECT_EQ(cache.info().entries, 1);
}

} // namespace
