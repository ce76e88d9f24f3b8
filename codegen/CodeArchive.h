// Code that a build compiles and ships: written by a program of the build, embedded, and read where it runs.
#pragma once

#include "codegen/CodeCache.h"

#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace tressel::codegen {

/// The bytes of an archive: the keys, and all code compressed together, as kernels are much alike.
std::vector<std::byte> packArchive(const std::map<CacheKey, Code> &all);

class PackedArchive final : public CodeArchive {
public:
  /// Bytes of packArchive, which outlive it. Code is unpacked, all at once, when a key is found first. Throws
  /// InternalError for other bytes.
  explicit PackedArchive(std::span<const std::byte> bytes);
  Code find(const CacheKey &key) const override;
  size_t size() const { return entries_.size(); }

private:
  struct Entry {
    uint64_t offset = 0, size = 0;
  };
  std::map<CacheKey, Entry> entries_;
  std::span<const std::byte> packed_;
  uint64_t unpackedSize_ = 0;
  mutable std::once_flag once_;
  mutable std::vector<uint8_t> unpacked_;
};

} // namespace tressel::codegen
