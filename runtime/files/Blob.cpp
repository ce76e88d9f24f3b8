#include "tressel/runtime/Blob.h"

#include <algorithm>

namespace tressel::runtime {

static size_t padded(size_t bytes) { return (bytes + Blob::kAlignment - 1) / Blob::kAlignment * Blob::kAlignment; }

void Blob::add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  if (bytes.empty())
    return;
  pieces_.push_back({bytes, std::move(owner)});
  size_ += padded(bytes.size());
}

std::shared_ptr<const std::vector<std::byte>> Blob::joined() const {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  bytes->reserve(size_);
  for (const Piece &piece : pieces_) {
    bytes->insert(bytes->end(), piece.bytes.begin(), piece.bytes.end());
    bytes->resize(padded(bytes->size()));
  }
  return bytes;
}

bool Blob::operator==(const Blob &other) const {
  if (size_ != other.size_)
    return false;
  if (std::ranges::equal(pieces_, other.pieces_, [](const Piece &a, const Piece &b) {
        return a.bytes.size() == b.bytes.size() &&
               (a.bytes.data() == b.bytes.data() || std::ranges::equal(a.bytes, b.bytes));
      }))
    return true;
  return *joined() == *other.joined(); // cut elsewhere, which hardly happens
}

} // namespace tressel::runtime
