// Folders, bytes and the Python libraries that file formats are tested against.
#pragma once

#include "tressel/runtime/Error.h"
#include "tressel/runtime/Types.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace tressel::test {

/// A folder that goes when the test ends.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tressel-io-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string &name) const { return (path / name).string(); }
};

inline void put(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
inline std::string get(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The cases of test/oracle/files_oracle.py.
struct FileCase {
  std::string name;
  TensorType type;
  std::string bytes;
};
inline std::vector<FileCase> fileCases() {
  const std::pair<const char *, Shape> shapes[] = {
      {"scalar", {}}, {"empty", {2, 0}}, {"row", {5}}, {"cube", {2, 3, 4}}};
  std::vector<FileCase> cases;
  for (int d = 0; d < kNumDTypes; ++d)
    for (const auto &[form, shape] : shapes) {
      const TensorType type{DType(d), shape};
      std::string bytes(static_cast<size_t>(type.bytes()), '\0');
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<char>((7 * i + 3) % 61 % (type.dtype == bool_ ? 2 : 61));
      cases.push_back({std::string(nameOf(type.dtype)) + "." + form, type, bytes});
    }
  return cases;
}

inline const char *const kPython = TRESSEL_SOURCE_DIR "/build/venv/bin/python";
/// Exit status of files_oracle.py.
inline int filesOracle(const std::string &verb, const Folder &folder, bool quiet = false) {
  return std::system((std::string(kPython) + " " TRESSEL_SOURCE_DIR "/test/oracle/files_oracle.py " + verb + " " +
                      folder.path.string() + (quiet ? " 2>/dev/null" : ""))
                         .c_str());
}

/// Expects an InputError that contains all the texts.
template <typename Fn> void expectInputError(Fn fn, std::initializer_list<std::string> texts) {
  try {
    fn();
    FAIL() << "accepted; expected: " << *texts.begin();
  } catch (const InputError &e) {
    for (const std::string &text : texts)
      EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what() << "\nlacks: " << text;
  }
}

} // namespace tressel::test
