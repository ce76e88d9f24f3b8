// Windows of files of tokens, which are mapped and never read as a whole.
#include "frontend/io/AtLine.h"
#include "frontend/tensor/Make.h"

#include <tressel/data.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tressel::data {
namespace {

/// A mapped file. Writes of other programs to it are visible, and truncating it kills this process: token files must
/// not change while they are read.
class Mapping {
public:
  explicit Mapping(const std::string &path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (file < 0 || ::fstat(file, &info) != 0)
      fail(path, file);
    if (!S_ISREG(info.st_mode)) {
      ::close(file);
      throw InputError(path + ": no file");
    }
    size_ = static_cast<size_t>(info.st_size);
    if (size_ > 0 && (bytes_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0)) == MAP_FAILED)
      fail(path, file);
    ::close(file);
  }
  ~Mapping() {
    if (size_ > 0)
      ::munmap(bytes_, size_);
  }
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;

  size_t size() const { return size_; }
  const unsigned char *at(size_t offset) const { return static_cast<const unsigned char *>(bytes_) + offset; }

private:
  [[noreturn]] static void fail(const std::string &path, int file) {
    const std::string why = std::strerror(errno);
    if (file >= 0)
      ::close(file);
    throw InputError(path + ": " + why);
  }
  void *bytes_ = nullptr;
  size_t size_ = 0;
};

/// Little-endian.
uint32_t tokenAt(const unsigned char *bytes, int64_t width) {
  uint32_t token = 0;
  for (int64_t i = 0; i < width; ++i)
    token |= static_cast<uint32_t>(bytes[i]) << 8 * i;
  return token;
}

} // namespace

Dataset<TokenWindow> token_windows(const std::string &path, int64_t length, TokenOptions options, std::source_location where) {
  return io::atLine(where, "data::token_windows", [&] {
    if (length < 1)
      throw InputError("windows of " + std::to_string(length) + " tokens; there is at least one");
    if (options.bytes != 1 && options.bytes != 2 && options.bytes != 4)
      throw InputError("tokens of " + std::to_string(options.bytes) + " bytes; they have 1, 2 or 4");
    if (!(options.begin >= 0 && options.begin <= options.end && options.end <= 1))
      throw InputError("the share from " + std::to_string(options.begin) + " to " + std::to_string(options.end) + " of a file; shares are 0 <= begin <= end <= 1");
    auto file = std::make_shared<const Mapping>(path);
    const auto width = static_cast<size_t>(options.bytes);
    if (file->size() % width)
      throw InputError(path + ": " + std::to_string(file->size()) + " bytes are no whole number of tokens of " + std::to_string(width));
    const auto all = static_cast<double>(file->size() / width);
    const auto first = static_cast<int64_t>(all * options.begin), count = static_cast<int64_t>(all * options.end) - first;
    const int64_t windows = count > 0 ? (count - 1) / length : 0;
    if (windows == 0)
      throw InputError(path + ": " + std::to_string(std::max<int64_t>(0, count)) + " tokens are too few for a window of " + std::to_string(length) +
                       " and the one that follows");
    const SourceLoc line = tressel::detail::toLoc(where);
    const int64_t room = options.shifted ? std::min(length, count - windows * length) : 1; // possible beginnings
    return Dataset<TokenWindow>(windows, [=](int64_t index, Rng &random) {
      // A later window may begin up to `length` tokens later, as long as all windows fit.
      const int64_t begin = first + index * length + (options.shifted ? random.below(index + 1 < windows ? length : room) : 0);
      TokenWindow window{tressel::detail::allocateTensor({i32, {length}}, line), tressel::detail::allocateTensor({i32, {length}}, line)};
      auto *x = static_cast<int32_t *>(window.x.impl()->storage->data()), *next = static_cast<int32_t *>(window.next.impl()->storage->data());
      for (int64_t i = 0; i <= length; ++i) {
        const uint32_t token = tokenAt(file->at(static_cast<size_t>(begin + i) * width), options.bytes);
        if (token > INT32_MAX)
          throw InputError(path + ": token " + std::to_string(begin + i) + " is " + std::to_string(token) + ", more than i32 holds");
        if (i < length)
          x[i] = static_cast<int32_t>(token);
        if (i > 0)
          next[i - 1] = static_cast<int32_t>(token);
      }
      return window;
    });
  });
}

} // namespace tressel::data
