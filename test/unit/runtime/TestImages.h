// The images that CMakeLists.txt links for these tests.
#pragma once

#include <cstddef>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <vector>

inline std::vector<std::byte> readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::vector<char> chars{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(chars.size());
  std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}
inline std::vector<std::byte> testImage(const std::string &name) {
  return readBytes(std::string(TEST_IMAGE_DIR) + "/" + name + ".image");
}
