#include "runtime/files/Safetensors.h"
#include "test/unit/frontend/Files.h"

#include <algorithm>
#include <cstring>
#include <random>

using namespace tressel;
using namespace tressel::io;
using namespace tressel::test;

namespace {

std::string file(const std::string &header, const std::string &data, int64_t length = -1) {
  const uint64_t n = length < 0 ? header.size() : static_cast<uint64_t>(length);
  return std::string(reinterpret_cast<const char *>(&n), 8) + header + data;
}
void rejected(const std::string &bytes, std::initializer_list<std::string> texts) {
  const Folder folder;
  put(folder / "a.safetensors", bytes);
  expectInputError([&] { SafetensorsFile f(folder / "a.safetensors"); }, texts);
  expectInputError([&] { SafetensorsFile f(folder / "a.safetensors"); }, {folder / "a.safetensors: "});
}
/// One f32[2] called "w" with the given fields in its place.
std::string header(const std::string &shape, const std::string &offsets, const std::string &dtype = "\"F32\"") {
  return "{\"w\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
}
const std::string kEight(8, 'x');

std::string sample(const Folder &folder) {
  std::vector<SafetensorsItem> items;
  const std::vector<FileCase> cases = fileCases();
  for (const FileCase &c : cases)
    items.push_back({c.name, c.type, c.bytes.data()});
  writeSafetensors(folder / "sample", items, {{"k", "v"}});
  return get(folder / "sample");
}

} // namespace

TEST(Safetensors, ReadsWhatTheReferenceWrites) {
  if (!std::filesystem::exists(kPython))
    GTEST_SKIP() << kPython << " is missing: run ./dev setup";
  const Folder folder;
  ASSERT_EQ(filesOracle("write", folder), 0);
  const SafetensorsFile f(folder / "peer.safetensors");
  EXPECT_EQ(f.metadata(), (std::map<std::string, std::string>{{"format", "np"}, {"schöne", "Grüße \"\\"}}));
  const std::vector<FileCase> cases = fileCases();
  ASSERT_EQ(f.entries().size(), cases.size());
  for (const FileCase &c : cases) {
    const auto e = std::ranges::find(f.entries(), c.name, &SafetensorsEntry::name);
    ASSERT_NE(e, f.entries().end()) << c.name;
    EXPECT_EQ(e->type, c.type) << c.name;
    EXPECT_EQ(std::memcmp(f.read(*e)->data(), c.bytes.data(), c.bytes.size()), 0) << c.name;
  }
}

TEST(Safetensors, AlignsElementsAndWritesTheSameBytesForTheSameTensors) {
  const Folder a, b;
  EXPECT_EQ(sample(a), sample(b));
  const SafetensorsFile f(a / "sample");
  uint64_t length = 0;
  std::memcpy(&length, get(a / "sample").data(), 8);
  EXPECT_EQ(length % 8, 0u);
  for (const SafetensorsEntry &e : f.entries())
    EXPECT_EQ((8 + length + e.begin) % static_cast<uint64_t>(sizeOf(e.type.dtype)), 0u) << e.name;
}

TEST(Safetensors, AcceptsUnusualButValidFiles) {
  const Folder folder;
  auto read = [&](const std::string &bytes) {
    put(folder / "a", bytes);
    const SafetensorsFile f(folder / "a");
    return f.entries().size();
  };
  EXPECT_EQ(read(file("{}", "")), 0u);
  EXPECT_EQ(read(file("{}       ", "")), 0u);
  EXPECT_EQ(read(file("{\"__metadata__\":{}}", "")), 0u);
  EXPECT_EQ(read(file("{\"b\":{\"shape\":[1],\"dtype\":\"U8\",\"data_offsets\":[1,2]},"
                      "\"a\":{\"data_offsets\":[0,1],\"dtype\":\"U8\",\"shape\":[]}}",
                      "xy")),
            2u);
  EXPECT_EQ(read(file(header("[0,4611686018427387904]", "[0,0]"), "")), 1u);
}

TEST(Safetensors, ForeignElementTypesAndRanksFailOnlyWhenRead) {
  const Folder folder;
  put(folder / "a", file("{\"q\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[0,3]},"
                         "\"r\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_"
                         "offsets\":[3,4]},"
                         "\"s\":{\"dtype\":\"BOOL\",\"shape\":[4],\"data_offsets\":[4,8]}}",
                         std::string("abcd\0\1\2\xff", 8)));
  const SafetensorsFile f(folder / "a");
  expectInputError([&] { f.read(f.entries()[0]); }, {"'q'", "F8_E4M3"});
  expectInputError([&] { f.read(f.entries()[1]); }, {"'r'", "9 dimensions"});
  EXPECT_EQ(std::memcmp(f.read(f.entries()[2])->data(), "\0\1\1\1", 4), 0) << "bools are 0 or 1";
}

TEST(Safetensors, RefusesBadFrames) {
  rejected("", {"only 0 bytes"});
  rejected("1234567", {"only 7 bytes"});
  rejected(file("{}", "", 3), {"header has 3 bytes", "ends after 2"});
  rejected(file("{}", "", 100'000'001), {"100000001 bytes"});
  rejected(std::string(8, '\xff') + "{}", {"18446744073709551615 bytes"});
  rejected(file("", ""), {"does not begin with '{'"});
  rejected(file(" {}", ""), {"does not begin with '{'"});
  rejected(file("{}", "x"), {"1 bytes at the end belong to no tensor"});
  const Folder folder;
  expectInputError([&] { SafetensorsFile f(folder / "none"); }, {folder / "none", "No such file"});
  expectInputError([&] { SafetensorsFile f(folder.path.string()); }, {"not a regular file"});
}

TEST(Safetensors, RefusesBadJson) {
  rejected(file("{", ""), {"not valid JSON"});
  rejected(file("{}x", ""), {"not valid JSON"});
  rejected(file("{\"\xff\":1}", ""), {"not valid JSON"});
  rejected(file("{\"w\":1}", ""), {"'w'", "unexpectedly a number"});
  rejected(file("{\"w\":[]}", ""), {"'w'", "unexpectedly a list"});
  rejected(file("{\"w\":{\"dtype\":{}}}", ""), {"'w'", "an object in 'dtype'"});
  rejected(file("{\"w\":{}}", ""), {"'w'", "no dtype"});
  rejected(file("{\"w\":{\"dtype\":\"F32\"}}", ""), {"'w'", "no shape"});
  rejected(file("{\"w\":{\"dtype\":\"F32\",\"shape\":[]}}", ""), {"'w'", "no data_offsets"});
  rejected(file("{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", ""), {"'w'", "dtype is there twice"});
  rejected(file("{\"w\":{\"shape\":[],\"shape\":[]}}", ""), {"'w'", "shape is there twice"});
  rejected(file("{\"w\":{\"extra\":[]}}", ""), {"'w'", "unknown field 'extra'"});
  rejected(file("{\"w\":{\"shape\":[[]]}}", ""), {"'w'", "a list in 'shape'"});
  rejected(file("{\"w\":{\"shape\":[true]}}", ""), {"'w'", "a bool in 'shape'"});
  rejected(file("{\"w\":{\"shape\":[null]}}", ""), {"'w'", "null in 'shape'"});
  rejected(file("{\"__metadata__\":{\"a\":1}}", ""), {"a number in 'a'"});
  rejected(file("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", ""), {"'a' is there twice"});
  rejected(file("{\"__metadata__\":\"a\"}", ""), {"unexpectedly a string"});
  rejected(file("{\"__metadata__\":{},\"__metadata__\":{}}", ""), {"is there twice"});
  std::string deep = "{\"w\":";
  for (int i = 0; i < 1'000'000; ++i)
    deep += '[';
  rejected(file(deep, ""), {"'w'", "a list"});
  const std::string w = "\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
  rejected(file("{" + w + "," + w + "}", ""), {"'w'", "is there twice"});
}

TEST(Safetensors, RefusesBadSizesAndPlaces) {
  rejected(file(header("[2]", "[0,4]"), "xxxx"), {"'w'", "2 elements of type F32 do not fit bytes 0 to 4"});
  rejected(file(header("[2]", "[0,9]"), kEight), {"'w'", "only 8 bytes"});
  rejected(file(header("[2]", "[8,0]"), kEight), {"'w'", "ends before it begins"});
  rejected(file(header("[2]", "[0]"), kEight), {"'w'", "not two numbers"});
  rejected(file(header("[2]", "[0,8,8]"), kEight), {"'w'", "not two numbers"});
  rejected(file(header("[2]", "[0,8.0]"), kEight), {"'w'", "no integer"});
  rejected(file(header("[-2]", "[0,8]"), kEight), {"'w'", "negative"});
  rejected(file(header("[4611686018427387905]", "[0,8]"), kEight), {"'w'", "too large"});
  rejected(file(header("[4294967296,4294967296]", "[0,8]"), kEight), {"'w'", "too large"});
  rejected(file(header("[0,4294967296,4294967296]", "[0,0]"), ""), {"'w'", "too large"});
  rejected(file(header("[99999999999999999999]", "[0,8]"), kEight), {"'w'", "no integer"});
  rejected(file(header("[2]", "[4,12]"), kEight + "xxxx"), {"'w'", "gap of 4 bytes"});
  const std::string a = "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}";
  rejected(file("{" + a + ",\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}", "xxxxxx"),
           {"'b'", "overlaps 'a'"});
  rejected(file("{" + a + ",\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "xxxx"),
           {"'b'", "overlaps 'a'"});
}

TEST(Safetensors, RefusesToWriteWhatItCouldNotRead) {
  const Folder folder;
  const TensorType t{u8, {1}};
  expectInputError(
      [&] {
        writeSafetensors(folder / "a", {{"w", t, "x"}, {"w", t, "x"}}, {});
      },
      {"two tensors are called 'w'"});
  expectInputError([&] { writeSafetensors(folder / "a", {{"__metadata__", t, "x"}}, {}); }, {"__metadata__"});
  expectInputError([&] { writeSafetensors(folder / "a", {{"\xff", t, "x"}}, {}); }, {"UTF-8"});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path)) << "nothing is left behind";
  EXPECT_THROW(writeSafetensors(folder / "none/a", {{"w", t, "x"}}, {}), RuntimeError);
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const Folder folder;
  const std::string bytes = sample(folder);
  for (size_t n = 0; n < bytes.size(); n += 1 + n / 64) {
    put(folder / "cut", bytes.substr(0, n));
    EXPECT_THROW(SafetensorsFile(folder / "cut"), InputError) << n << " of " << bytes.size() << " bytes";
  }
}

TEST(Safetensors, FlippedBitsAreErrorsOrOtherValidFiles) {
  const Folder folder;
  const std::string bytes = sample(folder);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const std::string header = bytes.substr(8, length);
  const uint64_t data = bytes.size() - 8 - length;
  int accepted = 0, refused = 0;
  // Every single bit, then many at once; the text of the header is where
  // everything is decided.
  std::mt19937 random(1);
  for (size_t i = 0; i < header.size() * 8 + 20000; ++i) {
    std::string damaged = header;
    const int flips = i < header.size() * 8 ? 1 : 1 + static_cast<int>(random() % 4);
    for (int k = 0; k < flips; ++k) {
      const size_t bit = i < header.size() * 8 ? i : random() % (header.size() * 8);
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    }
    try {
      uint64_t at = 0;
      for (const SafetensorsEntry &e : parseSafetensorsHeader(damaged, data, "f").entries) {
        ASSERT_EQ(e.begin, at);
        at = e.end;
        if (e.unsupported.empty())
          ASSERT_EQ(static_cast<uint64_t>(e.type.bytes()), e.end - e.begin);
      }
      ASSERT_EQ(at, data);
      ++accepted;
    } catch (const InputError &e) {
      ASSERT_TRUE(std::string(e.what()).starts_with("f: ")) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, accepted);
  EXPECT_GT(accepted, 0); // a bit of a name
  for (int bit = 0; bit < 64; ++bit) {
    std::string damaged = bytes;
    damaged[static_cast<size_t>(bit / 8)] = static_cast<char>(damaged[static_cast<size_t>(bit / 8)] ^ 1 << bit % 8);
    put(folder / "flipped", damaged);
    EXPECT_THROW(SafetensorsFile(folder / "flipped"), InputError) << bit;
  }
}
