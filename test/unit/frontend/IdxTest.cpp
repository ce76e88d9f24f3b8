#include "frontend/io/Idx.h"
#include "test/unit/frontend/Files.h"

#include <zlib.h>

using namespace tressel;
using namespace tressel::io;
using namespace tressel::test;

namespace {

std::string number(uint32_t n) { return {char(n >> 24), char(n >> 16), char(n >> 8), char(n)}; }
void pack(const std::string &path, const std::string &bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
  gzclose(file);
}
const std::string kCube = number(0x803) + number(2) + number(3) + number(1) + "abcdef";

} // namespace

TEST(Idx, ReadsPackedAndPlainFiles) {
  const Folder folder;
  pack(folder / "a.gz", kCube);
  put(folder / "a", kCube);
  for (const char *name : {"a.gz", "a"}) {
    const IdxArray a = readIdx(folder / name, 3, 100);
    EXPECT_EQ(a.sizes, (std::vector<int64_t>{2, 3, 1}));
    EXPECT_EQ(std::string(a.elements.begin(), a.elements.end()), "abcdef");
  }
  put(folder / "empty", number(0x801) + number(0));
  EXPECT_TRUE(readIdx(folder / "empty", 1, 100).elements.empty());
}

TEST(Idx, RefusesOtherFiles) {
  const Folder folder;
  auto refused = [&](const std::string &bytes, int rank, std::initializer_list<std::string> texts) {
    for (bool packed : {false, true}) {
      const std::string path = folder / (packed ? "x.gz" : "x");
      packed ? pack(path, bytes) : put(path, bytes);
      expectInputError([&] { readIdx(path, rank, 100); }, texts);
      expectInputError([&] { readIdx(path, rank, 100); }, {path + ": "});
    }
  };
  refused("", 3, {"ends within its header"});
  refused(kCube.substr(0, 15), 3, {"ends within its header"});
  refused(kCube, 1, {"with 1 dimensions", "is 2051 instead of 2049"});
  refused(kCube.substr(0, 21), 3, {"truncated: 5 of 6 elements"});
  refused(kCube + "g", 3, {"longer than the 6 elements"});
  refused(number(0x803) + number(2) + number(51) + number(1), 3, {"more than 100 elements"});
  refused(number(0x803) + number(0xffffffff) + number(0xffffffff) + number(0xffffffff), 3, {"more than 100 elements"});
  expectInputError([&] { readIdx(folder / "none", 3, 100); }, {"none", "No such file"});
  expectInputError([&] { readIdx(folder.path.string(), 3, 100); }, {"not a regular file"});
}

TEST(Idx, EveryTruncationAndFlippedBitOfAPackedFileIsFound) {
  const Folder folder;
  pack(folder / "a.gz", kCube);
  const std::string bytes = get(folder / "a.gz");
  for (size_t n = 0; n < bytes.size(); ++n) {
    put(folder / "cut.gz", bytes.substr(0, n));
    EXPECT_THROW(readIdx(folder / "cut.gz", 3, 100), InputError) << n;
  }
  int refused = 0;
  for (size_t bit = 10 * 8; bit < bytes.size() * 8; ++bit) { // after gzip's own header, of which parts mean nothing
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    put(folder / "flipped.gz", damaged);
    try { // bits between the parts of the stream mean nothing
      const IdxArray a = readIdx(folder / "flipped.gz", 3, 100);
      EXPECT_EQ(std::string(a.elements.begin(), a.elements.end()), "abcdef") << bit;
    } catch (const InputError &) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}
