#include "frontend/io/Idx.h"

#include "tressel/runtime/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sys/stat.h>
#include <zlib.h>

namespace tressel::io {

IdxArray readIdx(const std::string &path, int rank, int64_t maxElements) {
  auto fail = [&](const std::string &why) { throw InputError(path + ": " + why); };
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    fail("cannot be read: not a regular file");
  errno = 0;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose_r);
  if (!file)
    fail(std::string("cannot be read: ") + (errno ? std::strerror(errno) : "out of memory"));
  // Returns fewer bytes only at the end of the file.
  auto read = [&](uint8_t *to, size_t bytes) {
    size_t done = 0;
    while (done < bytes) {
      const int n = gzread(file.get(), to + done, static_cast<unsigned>(std::min<size_t>(bytes - done, 1 << 20)));
      int code = Z_OK;
      const char *text = gzerror(file.get(), &code);
      if (n < 0 || (code != Z_OK && code != Z_STREAM_END))
        fail(code == Z_BUF_ERROR ? "truncated: its gzip stream has no end" : std::string("damaged: ") + text);
      if (n == 0)
        break;
      done += static_cast<size_t>(n);
    }
    return done;
  };

  uint8_t header[4 + 4 * 8];
  const size_t headerBytes = 4 + 4 * static_cast<size_t>(rank);
  const size_t haveHeader = read(header, headerBytes);
  auto number = [&](size_t at) {
    return static_cast<int64_t>(header[at]) << 24 | header[at + 1] << 16 | header[at + 2] << 8 | header[at + 3];
  };
  const int64_t wanted = 0x800 + rank; // 8: unsigned bytes
  if (haveHeader >= 4 && number(0) != wanted)
    fail("not an IDX file of bytes with " + std::to_string(rank) + " dimensions: its first number is " +
         std::to_string(number(0)) + " instead of " + std::to_string(wanted));
  if (haveHeader != headerBytes)
    fail("truncated: it ends within its header");
  IdxArray array;
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) {
    array.sizes.push_back(number(4 + 4 * static_cast<size_t>(i)));
    const int64_t size = array.sizes.back();
    if (size > maxElements / std::max<int64_t>(count, 1))
      fail("says that it holds more than " + std::to_string(maxElements) + " elements");
    count *= size;
  }
  array.elements.resize(static_cast<size_t>(count));
  const size_t have = read(array.elements.data(), array.elements.size());
  if (have != array.elements.size())
    fail("truncated: " + std::to_string(have) + " of " + std::to_string(count) + " elements");
  uint8_t more;
  if (read(&more, 1) != 0)
    fail("longer than the " + std::to_string(count) + " elements it says it holds");
  return array;
}

} // namespace tressel::io
