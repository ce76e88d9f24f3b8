#include "codegen/CodeArchive.h"

#include "tressel/runtime/Error.h"

#include "llvm/Support/Compression.h"
#include "llvm/Support/Error.h"

#include <cstring>
#include <string_view>

namespace tressel::codegen {
namespace {

// In this machine's byte order, as the archive is part of what was built for it: the mark, how many entries, and how
// many bytes their code is; for each the key and its size; the compressed code.
constexpr std::string_view kMark = "tressel code 1\n";

void append(std::vector<std::byte> &to, const void *bytes, size_t size) {
  const auto *begin = static_cast<const std::byte *>(bytes);
  to.insert(to.end(), begin, begin + size);
}

} // namespace

std::vector<std::byte> packArchive(const std::map<CacheKey, Code> &all) {
  std::vector<uint8_t> code;
  for (const auto &[key, one] : all)
    code.insert(code.end(), one->begin(), one->end());
  llvm::SmallVector<uint8_t, 0> packed;
  llvm::compression::zstd::compress(code, packed, llvm::compression::zstd::BestSizeCompression);
  const uint64_t count = all.size(), size = code.size();
  std::vector<std::byte> archive;
  append(archive, kMark.data(), kMark.size());
  append(archive, &count, sizeof count);
  append(archive, &size, sizeof size);
  for (const auto &[key, one] : all) {
    const uint64_t bytes = one->size();
    append(archive, key.bytes.data(), key.bytes.size());
    append(archive, &bytes, sizeof bytes);
  }
  append(archive, packed.data(), packed.size());
  return archive;
}

PackedArchive::PackedArchive(std::span<const std::byte> bytes) {
  auto take = [&](void *to, size_t size) {
    if (bytes.size() < size)
      throw InternalError("the archive of code that came with Tressel is cut off");
    std::memcpy(to, bytes.data(), size);
    bytes = bytes.subspan(size);
  };
  char mark[kMark.size()];
  uint64_t count = 0, offset = 0;
  take(mark, sizeof mark);
  take(&count, sizeof count);
  take(&unpackedSize_, sizeof unpackedSize_);
  if (std::string_view(mark, sizeof mark) != kMark)
    throw InternalError("the archive of code that came with Tressel is damaged");
  for (; count > 0; --count) {
    CacheKey key;
    Entry entry{.offset = offset, .size = 0};
    take(key.bytes.data(), key.bytes.size());
    take(&entry.size, sizeof entry.size);
    offset += entry.size;
    entries_.emplace(key, entry);
  }
  if (offset != unpackedSize_)
    throw InternalError("the archive of code that came with Tressel is damaged");
  packed_ = bytes;
}

Code PackedArchive::find(const CacheKey &key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end())
    return nullptr;
  std::call_once(once_, [&] {
    const llvm::ArrayRef<uint8_t> packed(reinterpret_cast<const uint8_t *>(packed_.data()), packed_.size());
    std::vector<uint8_t> unpacked(unpackedSize_);
    size_t size = unpacked.size();
    if (llvm::Error error = llvm::compression::zstd::decompress(packed, unpacked.data(), size);
        error || size != unpacked.size())
      throw InternalError("the archive of code that came with Tressel is damaged: " + llvm::toString(std::move(error)));
    unpacked_ = std::move(unpacked);
  });
  const auto begin = unpacked_.begin() + static_cast<std::ptrdiff_t>(found->second.offset);
  return std::make_shared<const std::vector<char>>(begin, begin + static_cast<std::ptrdiff_t>(found->second.size));
}

} // namespace tressel::codegen
