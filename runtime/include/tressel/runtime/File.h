// Whole files in and out.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tressel::runtime {

/// The bytes of a regular file. Throws InputError that names the path and says why it cannot be read.
std::vector<std::byte> readFile(const std::string &path);
/// The same for large files: the bytes last as long as `owner`, and are written once where a vector's are twice. No mapping of the file,
/// which would take the process along if somebody cut it short.
struct FileBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};
FileBytes loadFile(const std::string &path);
/// Writes aside and renames: a reader sees the old file or the new one, and a failure leaves the old one.
/// Throws RuntimeError that names the path.
void writeFile(const std::string &path, std::span<const std::byte> bytes);
/// The pieces one after the other: large files need not be put together in memory first.
void writeFile(const std::string &path, std::span<const std::span<const std::byte>> pieces);

} // namespace tressel::runtime
