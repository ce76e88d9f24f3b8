// Files of named tensors in the safetensors format: 8 bytes with the length of
// a header, the header in JSON (element type, shape and place of each tensor),
// then the elements. Nothing in a file is believed before it is checked.
#pragma once

#include "tressel/runtime/File.h"
#include "tressel/runtime/Storage.h"
#include "tressel/runtime/Types.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tressel::io {

/// A header longer than this is refused before it is read.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  std::string dtypeName;       ///< as the file says: "F32"
  TensorType type;             ///< only if it is supported
  uint64_t begin = 0, end = 0; ///< bytes after the header
  std::string unsupported;     ///< why Tressel cannot hold the tensor; empty if it can
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries; ///< in the order of the elements
  std::map<std::string, std::string> metadata;
};

/// Checks the JSON text of a header that `dataBytes` bytes of elements follow.
/// Throws InputError, which begins with `path` and names the tensor: bad JSON,
/// names twice, sizes that do not fit the shape, places that overlap, leave
/// gaps or do not cover the elements exactly. Tensors of foreign element types
/// or too many dimensions are entries all the same.
SafetensorsHeader parseSafetensorsHeader(std::string_view json, uint64_t dataBytes, const std::string &path);

class SafetensorsFile {
public:
  /// Reads and checks the header. Throws InputError.
  explicit SafetensorsFile(std::string path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile &) = delete;
  SafetensorsFile &operator=(const SafetensorsFile &) = delete;

  const std::string &path() const { return path_; }
  const std::vector<SafetensorsEntry> &entries() const { return header_.entries; }
  const std::map<std::string, std::string> &metadata() const { return header_.metadata; }
  /// Reads the elements of a supported entry; bools become 0 or 1. Throws
  /// InputError.
  runtime::StorageRef read(const SafetensorsEntry &entry) const;

private:
  void readAt(uint64_t offset, void *to, uint64_t bytes) const;

  std::string path_;
  int fd_ = -1;
  uint64_t dataStart_ = 0;
  SafetensorsHeader header_;
};

struct SafetensorsItem {
  std::string name;
  TensorType type;
  const void *data;
};
/// Writes aside and renames. Throws InputError for names that the format cannot
/// hold, RuntimeError if the disk refuses.
void writeSafetensors(const std::string &path, std::vector<SafetensorsItem> items,
                      const std::map<std::string, std::string> &metadata,
                      runtime::Durable durable = runtime::Durable::No);

} // namespace tressel::io
