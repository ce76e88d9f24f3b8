// NumPy's archives of named arrays: a zip file with one .npy file for each.
#pragma once

#include "tressel/runtime/Npy.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tressel::io {

/// Reads all arrays. Throws InputError that names the file and the array for damaged, encrypted or foreign members,
/// duplicate names, wrong checksums, and archives that would unpack to more than `maxBytes` or by more than zip's
/// largest ratio.
std::map<std::string, runtime::NpyArray> readNpz(const std::string &path, int64_t maxBytes);

struct NpzItem {
  std::string name;
  TensorType type;
  const void *data;
};
/// Writes a temporary file and renames it; not compressed, like numpy.savez. Throws InputError for empty names and
/// names that begin with '/' or contain NUL, RuntimeError if writing fails.
void writeNpz(const std::string &path, const std::vector<NpzItem> &items);

} // namespace tressel::io
