// Whole files in and out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tressel::runtime {

/// The bytes of a regular file. Throws InputError that names the path and says why it cannot be read.
std::vector<std::byte> readFile(const std::string &path);
/// A regular file that is read in parts, where they are wanted. Not mapped: another process that truncated a mapped
/// file would end this one.
class InputFile {
public:
  /// Throws InputError that names the path and says why it cannot be read.
  explicit InputFile(const std::string &path);
  ~InputFile();
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;

  uint64_t size() const { return size_; } ///< when it was opened
  /// Fills `to` with the bytes from `offset` on. Throws InputError if it cannot, or the file has shrunk. Any number of
  /// threads may do so.
  void read(uint64_t offset, std::span<std::byte> to) const;

private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};
/// Writes aside and renames: a reader sees the old file or the new one, and a failure leaves the old one.
/// Throws RuntimeError that names the path.
enum class Durable : bool { No, Yes };
void writeFile(const std::string &path, std::span<const std::byte> bytes);
/// The pieces one after the other: large files need not be put together in memory first.
void writeFile(const std::string &path, std::span<const std::span<const std::byte>> pieces,
               Durable durable = Durable::No);

} // namespace tressel::runtime
