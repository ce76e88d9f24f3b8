#include "tressel/runtime/File.h"

#include "Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tressel::runtime {

namespace {
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
};
} // namespace

/// Opens a regular file, calls `make(size)` for that many writable bytes, and fills them. Returns how many it had.
template <typename Make> static size_t read(const std::string &path, Make make) {
  auto fail = [&](const std::string &why) -> void { throwError<InputError>(path, ": cannot be read: ", why); };
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)}; // a named pipe must not block
  if (file.fd < 0)
    fail(std::strerror(errno));
  struct stat info;
  if (::fstat(file.fd, &info) != 0)
    fail(std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    fail("not a regular file");
  const auto size = static_cast<size_t>(info.st_size);
  std::byte *bytes = make(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(file.fd, bytes + done, size - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      fail(std::strerror(errno));
    if (n == 0)
      break; // it shrank meanwhile
    done += static_cast<size_t>(n);
  }
  return done;
}

std::vector<std::byte> readFile(const std::string &path) {
  std::vector<std::byte> bytes;
  const size_t size = read(path, [&](size_t all) { return bytes.resize(all), bytes.data(); });
  bytes.resize(size);
  return bytes;
}

FileBytes loadFile(const std::string &path) {
  FileBytes file;
  std::byte *bytes = nullptr;
  const size_t size = read(path, [&](size_t all) {
    void *pages = ::mmap(nullptr, std::max<size_t>(1, all), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
      throwError<OutOfMemory>(path, ": there is no memory for its ", all, " bytes");
    ::madvise(pages, all, MADV_HUGEPAGE); // fewer faults; a wish
    file.owner = std::shared_ptr<const void>(
        pages, [all](const void *p) { ::munmap(const_cast<void *>(p), std::max<size_t>(1, all)); });
    return bytes = static_cast<std::byte *>(pages);
  });
  file.bytes = {bytes, size};
  return file;
}

namespace {
/// Devices and pipes cannot be replaced by a new file, they are written to.
bool isSpecial(const std::string &path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}
/// The file behind links, so that the link stays one.
std::string behindLinks(const std::string &path) {
  char *real = ::realpath(path.c_str(), nullptr);
  if (!real)
    return path; // not there yet
  std::string name = real;
  std::free(real);
  return name;
}
} // namespace

void writeFile(const std::string &name, std::span<const std::span<const std::byte>> pieces) {
  static std::atomic<unsigned> counter{0};
  const bool special = isSpecial(name);
  const std::string path = special ? name : behindLinks(name);
  const std::string aside = concat(path, ".", ::getpid(), "-", counter++, ".tmp");
  Descriptor file{special ? ::open(path.c_str(), O_WRONLY | O_CLOEXEC)
                          : ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  auto fail = [&](int error) {
    if (file.fd >= 0 && !special)
      ::unlink(aside.c_str());
    throwError<RuntimeError>(path, ": cannot be written: ", std::strerror(error));
  };
  if (file.fd < 0)
    fail(errno);
  for (std::span<const std::byte> piece : pieces)
    while (!piece.empty()) {
      const ssize_t n = ::write(file.fd, piece.data(), piece.size());
      if (n < 0 && errno != EINTR)
        fail(errno);
      if (n > 0)
        piece = piece.subspan(static_cast<size_t>(n));
    }
  if (!special && ::rename(aside.c_str(), path.c_str()) != 0)
    fail(errno);
}

void writeFile(const std::string &path, std::span<const std::byte> bytes) {
  writeFile(path, std::span<const std::span<const std::byte>>(&bytes, 1));
}

} // namespace tressel::runtime
