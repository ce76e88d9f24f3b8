// NumPy's archives of named arrays: a zip file with one .npy file for each.
#pragma once

#include "tressel/runtime/Npy.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tressel::io {

/// Reads all arrays. Throws InputError that names the file and the array:
/// damaged, encrypted or foreign members, names twice, wrong checksums, and
/// archives that would unpack to more than `maxBytes` or more than zip can pack
/// honestly.
std::map<std::string, runtime::NpyArray> readNpz(const std::string &path, int64_t maxBytes);

struct NpzItem {
  std::string name;
  TensorType type;
  const void *data;
};
/// Writes aside and renames; not compressed, as numpy.savez. Throws InputError
/// for empty names and names with '/' at the front or NUL, RuntimeError if the
/// disk refuses.
void writeNpz(const std::string &path, const std::vector<NpzItem> &items);

} // namespace tressel::io
