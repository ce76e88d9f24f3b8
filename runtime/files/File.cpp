#include "tressel/runtime/File.h"

#include "runtime/types/Concat.h"
#include "tressel/runtime/Error.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
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

[[noreturn]] static void cannotRead(const std::string &path, const std::string &why) {
  throwError<InputError>(path, ": cannot be read: ", why);
}

InputFile::InputFile(const std::string &path) : path_(path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)}; // a named pipe must not block
  struct stat info;
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0)
    cannotRead(path, std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    cannotRead(path, "not a regular file");
  size_ = static_cast<uint64_t>(info.st_size);
  std::swap(fd_, file.fd);
}

InputFile::~InputFile() { ::close(fd_); }

void InputFile::read(uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t n = ::pread(fd_, to.data(), to.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      cannotRead(path_, std::strerror(errno));
    if (n == 0)
      cannotRead(path_, "it was cut short meanwhile");
    offset += static_cast<uint64_t>(n);
    to = to.subspan(static_cast<size_t>(n));
  }
}

std::vector<std::byte> readFile(const std::string &path) {
  const InputFile file(path);
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return bytes;
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

void writeFile(const std::string &name, std::span<const std::span<const std::byte>> pieces, Durable durable) {
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
  // With its place on the disk the file cannot run out of it halfway, and where it replaces another one, the file system
  // need not find that place before the name changes (ext4: auto_da_alloc), which takes as long as writing.
  off_t bytes = 0;
  for (std::span<const std::byte> piece : pieces)
    bytes += static_cast<off_t>(piece.size());
  if (!special && bytes > 0 && ::fallocate(file.fd, 0, 0, bytes) != 0 && errno == ENOSPC)
    fail(errno);
  for (std::span<const std::byte> piece : pieces)
    while (!piece.empty()) {
      const ssize_t n = ::write(file.fd, piece.data(), piece.size());
      if (n < 0 && errno != EINTR)
        fail(errno);
      if (n > 0)
        piece = piece.subspan(static_cast<size_t>(n));
    }
  // The bytes first, then the name: so whatever the disk has after a crash, the name stands for a whole file.
  if (!special && durable == Durable::Yes && ::fsync(file.fd) != 0)
    fail(errno);
  if (!special && ::rename(aside.c_str(), path.c_str()) != 0)
    fail(errno);
  if (!special && durable == Durable::Yes) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const Descriptor directory{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (directory.fd < 0 || ::fsync(directory.fd) != 0)
      throwError<RuntimeError>(
          path, ": was written, but may be the file of before after a loss of power: ", std::strerror(errno));
  }
}

void writeFile(const std::string &path, std::span<const std::byte> bytes) {
  writeFile(path, std::span<const std::span<const std::byte>>(&bytes, 1));
}

} // namespace tressel::runtime
