#include "tressel/runtime/Npy.h"

#include "tressel/runtime/Error.h"
#include "tressel/runtime/File.h"
#include "tressel/runtime/Half.h"

#include <cstring>
#include <filesystem>
#include <cstdio>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tressel;
using namespace tressel::runtime;

namespace {

std::string npy(const std::string &dict, const std::string &payload, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += {version, 0, char(dict.size() & 255), char(dict.size() >> 8 & 255)};
  if (version > 1)
    bytes += {0, 0};
  return bytes + dict + payload;
}
NpyArray parse(const std::string &bytes) { return parseNpy(std::as_bytes(std::span(bytes)), "f.npy"); }
void rejected(const std::string &bytes, const std::string &why) {
  try {
    parse(bytes);
    FAIL() << "accepted; expected: " << why;
  } catch (const InputError &e) {
    EXPECT_TRUE(std::string(e.what()).starts_with("f.npy: ")) << e.what();
    EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
  }
}
template <typename T> std::string raw(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char *>(values.begin()), values.size() * sizeof(T));
}
const std::string f4 = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

} // namespace

TEST(File, WritesThroughLinks) {
  const std::string folder = testing::TempDir(), target = folder + "tressel-target", link = folder + "tressel-link";
  std::remove(link.c_str()), std::remove(target.c_str());
  const std::byte bytes[2] = {std::byte{1}, std::byte{2}};
  writeFile(target, std::span(bytes, 1));
  ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
  writeFile(link, bytes);
  EXPECT_EQ(readFile(target).size(), 2u);
  struct stat info;
  ASSERT_EQ(lstat(link.c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
  std::remove(link.c_str()), std::remove(target.c_str());
}

TEST(Npy, EveryTypeSurvivesTheRoundTrip) {
  const Shape shapes[] = {Shape{}, Shape{0}, Shape{5}, Shape{2, 3}, Shape{1, 2, 1, 3, 1, 1, 1, 2}, Shape{4, 0, 3}};
  for (int d = 0; d < kNumDTypes; ++d)
    for (const Shape &shape : shapes) {
      const TensorType type{DType(d), shape};
      std::string data(size_t(type.bytes()), 0);
      for (size_t i = 0; i < data.size(); ++i)
        data[i] = type.dtype == bool_ ? char(i % 2) : char(i * 37 % 120);
      const std::string bytes = formatNpy(type, data.data());
      EXPECT_EQ((bytes.size() - size_t(type.shape.numElements() * (type.dtype == bf16 ? 4 : sizeOf(type.dtype)))) % 64,
                0u);
      const NpyArray back = parse(bytes);
      EXPECT_EQ(back.type.shape, shape);
      if (type.dtype == bf16) {
        EXPECT_EQ(back.type.dtype, f32);
        for (int64_t i = 0; i < shape.numElements(); ++i)
          EXPECT_EQ(static_cast<float *>(back.data->data())[i],
                    bfloatToFloat(reinterpret_cast<const uint16_t *>(data.data())[i]));
      } else {
        EXPECT_EQ(back.type.dtype, type.dtype);
        EXPECT_EQ(std::memcmp(back.data->data(), data.data(), data.size()), 0);
      }
    }
}

TEST(Npy, ReadsFortranOrderAndBigEndian) {
  const NpyArray a =
      parse(npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }", raw<int32_t>({1, 4, 2, 5, 3, 6})));
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(static_cast<int32_t *>(a.data->data())[i], i + 1);
  const NpyArray b =
      parse(npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", std::string("\0\1\1\0", 4)));
  EXPECT_EQ(static_cast<int16_t *>(b.data->data())[0], 1);
  EXPECT_EQ(static_cast<int16_t *>(b.data->data())[1], 256);
}

TEST(Npy, ReadsOtherVersionsAndSpellings) {
  EXPECT_EQ(parse(npy(f4, std::string(24, 0), 2)).type.str(), "f32[2, 3]");
  EXPECT_EQ(parse(npy(f4, std::string(24, 0), 3)).type.str(), "f32[2, 3]");
  EXPECT_EQ(parse(npy("{\"shape\":(),\"fortran_order\":False,\"descr\":\"|u1\"}", "x")).type.str(), "u8[]");
  EXPECT_EQ(
      parse(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3L,)}", std::string("\0\1\x7f", 3))).type.str(),
      "bool[3]");
}

TEST(Npy, BoolsAreZeroOrOne) {
  const NpyArray a = parse(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", std::string("\0\1\x7f", 3)));
  EXPECT_EQ(static_cast<uint8_t *>(a.data->data())[2], 1);
}

TEST(Npy, RejectsWhatItCannotRead) {
  rejected("", "not a .npy");
  rejected("hello", "not a .npy");
  rejected(npy(f4, std::string(23, 0)), "truncated: f32[2, 3]");
  rejected(npy(f4, std::string(25, 0)), "needs 24");
  rejected(npy(f4, std::string(24, 0), 9), "version 9");
  rejected(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (2,)}", ""), "'<c8'");
  rejected(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", ""), "records");
  rejected(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", ""), "a size expected");
  rejected(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4)}", "1234"), "truncated");
  rejected(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", ""), "a size expected");
  rejected(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "1234"),
           "more than 8 dimensions");
  rejected(npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}", "1234"), "True or False");
  rejected(npy("{'descr': '<f4', 'shape': ()}", "1234"), "damaged");
  rejected(npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "1234"), "unexpected key");
  rejected(npy("{'descr': '<f4", "1234"), "open string");
}

TEST(Npy, DamagedFilesNeverCrash) {
  const std::string good = npy(f4, std::string(24, 'x'));
  for (size_t n = 0; n < good.size(); ++n)
    EXPECT_THROW(parse(good.substr(0, n)), InputError) << n;
  for (size_t i = 0; i < good.size() - 24; ++i)
    for (char c : {'\0', '\xff', '(', '9', '\''}) {
      std::string bad = good;
      bad[i] = c;
      try {
        parse(bad);
      } catch (const InputError &) {
      }
    }
}

TEST(Npy, FilesAreWrittenAndRead) {
  const std::string path = testing::TempDir() + "tressel_npy_test.npy";
  const float data[] = {1, 2, 3, 4, 5, 6};
  writeNpy(path, {f32, {3, 2}}, data);
  const NpyArray back = readNpy(path);
  EXPECT_EQ(back.type.str(), "f32[3, 2]");
  EXPECT_EQ(static_cast<float *>(back.data->data())[5], 6);
  std::filesystem::remove(path);
  EXPECT_THROW(readNpy(path), InputError);
  EXPECT_THROW(readNpy("/"), InputError);
  EXPECT_THROW(writeNpy("/nowhere/x.npy", {f32, {1}}, data), RuntimeError);
}
