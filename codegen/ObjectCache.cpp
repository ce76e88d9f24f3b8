#include "codegen/ObjectCache.h"

#include "tressel/runtime/CacheFolder.h"

#include "llvm/Support/BLAKE3.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace tressel::codegen {
namespace {

using Digest = std::array<uint8_t, 32>;

constexpr char kEntryMagic[8] = {'T', 'R', 'S', 'L', 'O', 'B', 'J', '1'};
constexpr char kStateMagic[8] = {'T', 'R', 'S', 'L', 'S', 'T', 'A', '1'};
constexpr time_t kRefreshSeconds = 3600, kStaleSeconds = 3600;

/// Of an entry: the header, the bytes, and the digest of both.
struct EntryHeader {
  char magic[8];
  uint64_t size;
  uint8_t key[32];
};
constexpr size_t kAroundBytes = sizeof(EntryHeader) + sizeof(Digest);

Digest digestOf(std::span<const char> bytes) {
  llvm::BLAKE3 hash;
  hash.update(llvm::StringRef(bytes.data(), bytes.size()));
  return hash.final();
}

struct Descriptor {
  int fd;
  explicit Descriptor(int fd) : fd(fd) {}
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
  Descriptor(const Descriptor &) = delete;
  explicit operator bool() const { return fd >= 0; }
};

bool writeAll(int fd, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR)
      return false;
    if (n > 0)
      bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

/// The whole file; false if it cannot be read.
bool readAll(int fd, std::vector<char> &bytes) {
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
    return false;
  bytes.resize(static_cast<size_t>(info.st_size));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

/// Whether a file's bytes are an entry, whole and unharmed, of this key.
bool isEntry(std::span<const char> file, const Digest &key) {
  EntryHeader header;
  if (file.size() < kAroundBytes)
    return false;
  std::memcpy(&header, file.data(), sizeof header);
  const Digest digest = digestOf(file.first(file.size() - sizeof digest));
  return std::memcmp(header.magic, kEntryMagic, sizeof kEntryMagic) == 0 && header.size == file.size() - kAroundBytes &&
         std::memcmp(header.key, key.data(), key.size()) == 0 &&
         std::memcmp(file.data() + file.size() - sizeof digest, digest.data(), sizeof digest) == 0;
}

bool isHex(std::string_view text, size_t length) {
  return text.size() == length && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
Digest digestFromHex(std::string_view text) {
  Digest digest;
  auto value = [](char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<uint8_t>(value(text[2 * i]) << 4 | value(text[2 * i + 1]));
  return digest;
}

template <typename Fn> void forEachName(const std::string &folder, Fn &&fn) {
  std::unique_ptr<DIR, int (*)(DIR *)> dir(::opendir(folder.c_str()), ::closedir);
  while (const dirent *entry = dir ? ::readdir(dir.get()) : nullptr)
    fn(std::string_view(entry->d_name));
}

bool makeFolder(const std::string &path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST)
    return true;
  const size_t slash = path.find_last_of('/');
  return errno == ENOENT && slash != std::string::npos && slash > 0 && makeFolder(path.substr(0, slash)) &&
         (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST);
}

} // namespace

std::string CacheKey::hex() const {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t b : bytes)
    text += digits[b >> 4], text += digits[b & 15];
  return text;
}

CacheKey cacheKeyOf(std::span<const std::string_view> parts) {
  llvm::BLAKE3 hash;
  for (std::string_view part : parts) {
    const uint64_t size = part.size();
    hash.update(llvm::StringRef(reinterpret_cast<const char *>(&size), sizeof size));
    hash.update(llvm::StringRef(part.data(), part.size()));
  }
  return {hash.final()};
}

/// What the file `state` holds. It only saves going through the folder: numbers that are wrong, after a kill at the wrong
/// moment, are put right at the next eviction.
struct ObjectCache::State {
  char magic[8];
  int64_t bytes, entries, hits, misses;

  /// Locked while it lives; false if another process, or thread, has it.
  class Locked;
};

class ObjectCache::State::Locked {
public:
  /// `patient`: tries for a second. Nobody is waited for longer: a stopped process may have it.
  Locked(const std::string &folder, bool patient)
      : file_(::open((folder + "/state").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    for (int tries = patient ? 100 : 1; file_ && !locked_ && tries > 0; --tries) {
      locked_ = ::flock(file_.fd, LOCK_EX | LOCK_NB) == 0;
      if (!locked_ && tries > 1)
        ::usleep(10'000);
    }
  }
  ~Locked() {
    if (locked_)
      ::flock(file_.fd, LOCK_UN); // closing would not do while the child of a fork has the descriptor too
  }
  explicit operator bool() const { return locked_; }
  /// False if the file does not say, and has to be made anew.
  bool read(State &state) const {
    return ::pread(file_.fd, &state, sizeof state, 0) == sizeof state &&
           std::memcmp(state.magic, kStateMagic, sizeof kStateMagic) == 0 && state.bytes >= 0 && state.entries >= 0;
  }
  void write(State &state) const {
    std::memcpy(state.magic, kStateMagic, sizeof kStateMagic);
    (void)!::pwrite(file_.fd, &state, sizeof state, 0);
  }

private:
  Descriptor file_;
  bool locked_ = false;
};

struct ObjectCache::Entry {
  std::string path;
  Digest key;
  int64_t bytes;
  timespec used;
};

ObjectCache::ObjectCache(std::string folder, int64_t limitBytes) : folder_(std::move(folder)), limit_(limitBytes) {}

ObjectCache::~ObjectCache() { flush(); }

std::string ObjectCache::pathOf(const CacheKey &key) const {
  const std::string hex = key.hex();
  return folder_ + "/" + hex.substr(0, 2) + "/" + hex.substr(2);
}

void ObjectCache::note(const std::string &action, int error) {
  std::lock_guard lock(problemMutex_);
  if (problem_.empty())
    problem_ = folder_ + ": " + action + ": " + std::strerror(error);
}

std::string ObjectCache::problem() const {
  std::lock_guard lock(problemMutex_);
  return problem_;
}

std::optional<std::vector<char>> ObjectCache::find(const CacheKey &key) {
  const std::string path = pathOf(key);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::vector<char> bytes;
  if (!file || !readAll(file.fd, bytes)) {
    ++misses_;
    return std::nullopt;
  }
  if (!isEntry(bytes, key.bytes)) {
    ::unlink(path.c_str());
    ++misses_;
    return std::nullopt;
  }
  struct stat info;
  if (::fstat(file.fd, &info) == 0 && info.st_mtime + kRefreshSeconds < ::time(nullptr))
    ::futimens(file.fd, nullptr);
  ++hits_;
  bytes.resize(bytes.size() - sizeof(Digest));
  bytes.erase(bytes.begin(), bytes.begin() + sizeof(EntryHeader));
  return bytes;
}

void ObjectCache::insert(const CacheKey &key, std::span<const char> bytes) {
  const auto total = static_cast<int64_t>(bytes.size() + kAroundBytes);
  // With the lock held elsewhere for long, nothing is known of the size.
  if (total > limit_ / 2 || pendingBytes_ > limit_ / 8)
    return flush();
  const std::string path = pathOf(key);
  if (::access(path.c_str(), F_OK) == 0)
    return;
  if (!swept_.exchange(true))
    sweepTemporaries();

  std::vector<char> file(static_cast<size_t>(total));
  EntryHeader header{{}, bytes.size(), {}};
  std::memcpy(header.magic, kEntryMagic, sizeof kEntryMagic);
  std::memcpy(header.key, key.bytes.data(), key.bytes.size());
  std::memcpy(file.data(), &header, sizeof header);
  std::ranges::copy(bytes, file.begin() + sizeof header);
  const Digest digest = digestOf(std::span(file).first(file.size() - sizeof digest));
  std::memcpy(file.data() + file.size() - sizeof digest, digest.data(), sizeof digest);

  static std::atomic<unsigned> counter{0};
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::string aside = folder_ + "/tmp/" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + "-" +
                            std::to_string(now.tv_nsec); // processes of two containers may have one number
  auto create = [&] { return ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); };
  int fd = create();
  if (fd < 0 && errno == ENOENT && makeFolder(folder_ + "/tmp"))
    fd = create();
  const Descriptor written(fd);
  if (!written)
    return note("cannot be written", errno);
  if (!writeAll(written.fd, file)) {
    note("cannot be written", errno);
    ::unlink(aside.c_str());
    return;
  }
  if (::rename(aside.c_str(), path.c_str()) != 0 &&
      (errno != ENOENT || !makeFolder(path.substr(0, path.find_last_of('/'))) ||
       ::rename(aside.c_str(), path.c_str()) != 0)) {
    note("cannot be written", errno);
    ::unlink(aside.c_str());
    return;
  }
  account(total, 1);
}

void ObjectCache::flush() {
  if (hits_ || misses_ || pendingBytes_)
    account(0, 0);
}

void ObjectCache::account(int64_t bytes, int64_t entries) {
  pendingBytes_ += bytes, pendingEntries_ += entries;
  State::Locked file(folder_, /*patient=*/false);
  if (!file)
    return;
  State state = {};
  if (!file.read(state)) { // new, or foreign: what is there counts, the entry just written too
    state = {};
    for (const Entry &e : scan())
      state.bytes += e.bytes, ++state.entries;
    pendingBytes_ = pendingEntries_ = 0;
  }
  state.bytes += pendingBytes_.exchange(0), state.entries += pendingEntries_.exchange(0);
  state.hits += hits_.exchange(0), state.misses += misses_.exchange(0);
  if (state.bytes > limit_)
    evict(state);
  file.write(state);
}

std::vector<ObjectCache::Entry> ObjectCache::scan() const {
  std::vector<Entry> entries;
  forEachName(folder_, [&](std::string_view part) {
    if (!isHex(part, 2))
      return;
    const std::string folder = folder_ + "/" + std::string(part);
    forEachName(folder, [&](std::string_view name) {
      if (!isHex(name, 62))
        return;
      Entry entry{folder + "/" + std::string(name), digestFromHex(std::string(part) + std::string(name)), 0, {}};
      struct stat info;
      if (::lstat(entry.path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
        return;
      entry.bytes = info.st_size, entry.used = info.st_mtim;
      entries.push_back(std::move(entry));
    });
  });
  return entries;
}

void ObjectCache::sweepTemporaries() const {
  forEachName(folder_ + "/tmp", [&](std::string_view name) {
    const std::string path = folder_ + "/tmp/" + std::string(name);
    struct stat info;
    if (::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_mtime + kStaleSeconds < ::time(nullptr))
      ::unlink(path.c_str());
  });
}

void ObjectCache::evict(State &state) {
  sweepTemporaries();
  std::vector<Entry> entries = scan();
  std::ranges::sort(entries, [](const Entry &a, const Entry &b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec, a.key) < std::tie(b.used.tv_sec, b.used.tv_nsec, b.key);
  });
  state.bytes = 0, state.entries = static_cast<int64_t>(entries.size());
  for (const Entry &e : entries)
    state.bytes += e.bytes;
  for (const Entry &e : entries) {
    if (state.bytes <= limit_ - limit_ / 4)
      break;
    if (::unlink(e.path.c_str()) == 0 || errno == ENOENT)
      state.bytes -= e.bytes, --state.entries;
  }
}

ObjectCache::Info ObjectCache::info() {
  flush();
  Info info;
  for (const Entry &e : scan())
    info.bytes += e.bytes, ++info.entries;
  State state = {};
  const Descriptor file(::open((folder_ + "/state").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file && ::pread(file.fd, &state, sizeof state, 0) == sizeof state &&
      std::memcmp(state.magic, kStateMagic, sizeof kStateMagic) == 0)
    info.hits = state.hits, info.misses = state.misses;
  return info;
}

ObjectCache::Verified ObjectCache::verify() {
  Verified result;
  std::vector<char> bytes;
  for (const Entry &e : scan()) {
    const Descriptor file(::open(e.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file && errno == ENOENT)
      continue; // evicted meanwhile
    if (file && readAll(file.fd, bytes) && isEntry(bytes, e.key)) {
      ++result.good;
      continue;
    }
    ++result.damaged;
    ::unlink(e.path.c_str());
  }
  return result;
}

ObjectCache::Info ObjectCache::clear() {
  Info removed;
  for (const Entry &e : scan())
    if (::unlink(e.path.c_str()) == 0)
      removed.bytes += e.bytes, ++removed.entries;
    else if (errno != ENOENT)
      note("cannot be cleared", errno);
  sweepTemporaries();
  hits_ = misses_ = pendingBytes_ = pendingEntries_ = 0;
  if (removed.entries || ::access((folder_ + "/state").c_str(), F_OK) == 0)
    if (State::Locked file(folder_, /*patient=*/true); file) {
      State state = {};
      for (const Entry &e : scan()) // others go on writing
        state.bytes += e.bytes, ++state.entries;
      file.write(state);
    }
  return removed;
}

namespace {

/// "512M", "512m", "512MiB" and the like, powers of 1024; nothing if it is no size.
std::optional<int64_t> parseBytes(const char *text) {
  char *end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text, &end, 10);
  static const char units[] = "KMG";
  int shift = 0;
  if (const char *unit = *end ? std::strchr(units, std::toupper(static_cast<unsigned char>(*end))) : nullptr) {
    shift = 10 * static_cast<int>(unit - units + 1), ++end;
    if (strcasecmp(end, "iB") == 0 || strcasecmp(end, "B") == 0)
      end += std::strlen(end);
  }
  if (end == text || *end || errno || number < 0 || number > (INT64_MAX >> shift))
    return std::nullopt;
  return static_cast<int64_t>(number) << shift;
}

struct OfUser {
  ObjectCache *cache = nullptr;
  std::string why;

  OfUser() {
    int64_t limit = ObjectCache::kDefaultLimit;
    if (const char *text = std::getenv("TRESSEL_CACHE_LIMIT"); text && *text) {
      const std::optional<int64_t> bytes = parseBytes(text);
      if (!bytes) {
        why = "TRESSEL_CACHE_LIMIT is no number of bytes (such as 512M): '" + std::string(text) + "'";
        std::fprintf(stderr, "tressel: TRESSEL_CACHE_LIMIT is '%s', which is no number of bytes (such as 512M); no kernels are kept\n", text);
        return;
      }
      limit = *bytes;
    }
    if (limit == 0) {
      why = "TRESSEL_CACHE_LIMIT is 0";
      return;
    }
    const std::string folder = runtime::cacheFolder(&why);
    if (folder.empty())
      return;
    static ObjectCache &made = *new ObjectCache(folder, limit); // never destroyed: threads may use it at exit
    cache = &made;
  }
};
const OfUser &ofUserOnce() {
  static const OfUser &once = *new OfUser();
  return once;
}

} // namespace

ObjectCache *ObjectCache::ofUser() { return ofUserOnce().cache; }
const std::string &ObjectCache::whyNone() { return ofUserOnce().why; }

} // namespace tressel::codegen
